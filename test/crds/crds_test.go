// Package crds checks the installed CRDs with the API server's own code: that it accepts
// them, expression costs included, and that their rules say what they shall. It is a
// module of its own so that the product does not depend on the API server.
package crds

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// kind is one CRD, ready to check objects with.
type kind struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

// loadCRDs reads every CRD of the fleet in both charts; that of ClusterProfile is as SIG Multicluster publishes it.
func loadCRDs(t *testing.T) map[string]*apiextensions.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../deploy/charts/*/crds/*fleet*.io_*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	crds := map[string]*apiextensions.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		external := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.UnmarshalStrict(text, external), file)
		apiextensionsv1.SetDefaults_CustomResourceDefinition(external)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
		crd := &apiextensions.CustomResourceDefinition{}
		require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, crd, nil))
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				crd.Status.StoredVersions = []string{version.Name}
			}
		}
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

func loadKind(t *testing.T, name string) *kind {
	t.Helper()
	crd := loadCRDs(t)[name]
	require.NotNil(t, crd, name)
	// The conversion moves the schema to the top if all versions share it.
	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	require.NoError(t, err)
	values, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	require.NoError(t, err)
	return &kind{structural: structural, values: values, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// admit does to an object what the API server does: prune, default, validate.
func (k *kind) admit(t *testing.T, text, oldText string) (map[string]any, field.ErrorList) {
	t.Helper()
	obj := k.prepare(t, text)
	old := k.prepare(t, oldText)
	errs := validation.ValidateCustomResource(nil, obj, k.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, obj, k.structural, true)...)
	if len(errs) > 0 {
		return obj, errs
	}
	// A missing old object must be an untyped nil: the API server skips transition rules then.
	var previous any
	if old != nil {
		previous = old
	}
	celErrs, _ := k.rules.Validate(context.Background(), nil, k.structural, obj, previous, celconfig.RuntimeCELCostBudget)
	return obj, celErrs
}

func (k *kind) prepare(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	obj := map[string]any{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(asJSON, &obj)) // keeps whole numbers whole
	pruning.Prune(obj, k.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	return obj
}

func TestAPIServerAcceptsCRDs(t *testing.T) {
	for name, crd := range loadCRDs(t) {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd))
		})
	}
}

func texts(errs field.ErrorList) string {
	var lines []string
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}
