package apis_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

// addedFields are the fields of specs that KubeFleet's kinds have not, the highest ones of those that stand in one another, by kind
// and version.
func addedFields(t *testing.T) map[string][]string {
	added := map[string][]string{}
	for _, definition := range readCRDs(t) {
		kind := definition.Spec.Names.Kind
		for _, version := range definition.Spec.Versions {
			if !kubefleet.KnowsSpec(kind, version.Name) {
				continue
			}
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			var fields []string
			var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
			walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
				for name, property := range schema.Properties {
					if at := path + "." + name; kubefleet.HasField(kind, version.Name, at) {
						walk(at, &property)
					} else {
						fields = append(fields, at)
					}
				}
				if schema.Items != nil && schema.Items.Schema != nil {
					walk(path+"[]", schema.Items.Schema)
				}
			}
			walk("spec", &spec)
			slices.Sort(fields)
			added[kind+" "+version.Name] = fields
		}
	}
	return added
}

// TestNoTermOfKubeFleetsHasAFieldOfOurs: a term that has lost its only field matches every cluster.
func TestNoTermOfKubeFleetsHasAFieldOfOurs(t *testing.T) {
	added := addedFields(t)
	assert.NotEmpty(t, added["ClusterResourcePlacement v1beta1"])
	for kind, fields := range added {
		for _, field := range fields {
			for _, selects := range []string{"clusterSelectorTerms[].", "preference.", "labelSelector.", "resourceSelectors[]."} {
				assert.NotContains(t, strings.TrimPrefix(field, "spec."), selects, kind)
			}
		}
	}
}

// TestTheGuideListsTheAddedFields: what updates by KubeFleet's clients lose is told to who has such clients.
func TestTheGuideListsTheAddedFields(t *testing.T) {
	text, err := os.ReadFile("../deploy/docs/migration.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "## Fields that KubeFleet has not")
	_, table, _ := strings.Cut(section, "|---|---|---|")
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string]bool{}
	for _, field := range regexp.MustCompile("`(spec[^`]*)`").FindAllStringSubmatch(table, -1) {
		told[field[1]] = true
	}
	added := map[string]bool{}
	for _, fields := range addedFields(t) {
		for _, field := range fields {
			added[field] = true
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(added)), slices.Sorted(maps.Keys(told)))
}
