package definitions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, fleetflowv1alpha1.AddToScheme, placementv1beta1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return scheme
}

// read returns the schemas of the definitions of both charts.
func read(t *testing.T) map[schema.GroupVersionKind]*Schema {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/charts/*/crds/*.kubernetes-fleet.io_*.yaml")
	require.NoError(t, err)
	own, err := filepath.Glob("../../../deploy/charts/*/crds/fleetflow.io_*.yaml")
	require.NoError(t, err)
	schemas := map[schema.GroupVersionKind]*Schema{}
	for _, file := range append(files, own...) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.UnmarshalStrict(content, definition))
		for _, version := range definition.Spec.Versions {
			text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
			require.NoError(t, err)
			of := &Schema{}
			require.NoError(t, json.Unmarshal(text, of))
			schemas[schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}] = of
		}
	}
	return schemas
}

func TestOurDefinitionsLackNothing(t *testing.T) {
	scheme := newScheme(t)
	schemas := read(t)
	for _, version := range Versions {
		for kind := range scheme.KnownTypes(version) {
			if _, isObject := scheme.KnownTypes(version)[kind+"List"]; isObject {
				assert.Contains(t, schemas, version.WithKind(kind))
			}
		}
	}
	assert.Empty(t, Lacking(scheme, schemas))
}

// drop removes from a schema what KubeFleet's kind has not.
func drop(kind schema.GroupVersionKind, has *Schema, path string) {
	if has == nil {
		return
	}
	for name, field := range has.Properties {
		if at := path + "." + name; kubefleet.HasField(kind.Kind, kind.Version, at) {
			drop(kind, field, at)
		} else {
			delete(has.Properties, name)
		}
	}
	drop(kind, has.Items, path+"[]")
}

func TestKubeFleetsDefinitionsLackWhatFleetflowAdds(t *testing.T) {
	schemas := read(t)
	for kind, has := range schemas {
		if kubefleet.KnowsSpec(kind.Kind, kind.Version) {
			drop(kind, has.Properties["spec"], "spec")
		}
	}
	found := map[string][]string{}
	for _, gap := range Lacking(newScheme(t), schemas) {
		found[gap.Kind.Kind] = gap.Fields
	}
	assert.Subset(t, found["ClusterResourcePlacement"], []string{"spec.priority", "spec.strategy.suspension", "spec.strategy.lifecycle", "spec.strategy.rollingUpdate.paused",
		"spec.policy.tolerations[].tolerationSeconds"})
	assert.Equal(t, found["ClusterResourcePlacement"], found["ResourcePlacement"])
	assert.Subset(t, found["StagedUpdateStrategy"], []string{"spec.stages[].windows", "spec.stages[].afterStageTasks[].approval"})
	assert.Subset(t, found["MemberCluster"], []string{"spec.agent", "spec.taints[].timeAdded"})
	assert.NotContains(t, found, "RolloutHold")
}

func TestAKindThatIsNotServedLacksNothing(t *testing.T) {
	assert.Empty(t, Lacking(newScheme(t), nil))
}

func TestFieldsOfListsMapsAndStructsInStructsAreFound(t *testing.T) {
	schemas := read(t)
	run := fleetflowv1alpha1.GroupVersion.WithKind("StageAnalysisRun")
	delete(schemas[run].Properties["spec"].Properties["metrics"].Items.Properties, "count") // of a struct that is inline
	delete(schemas[run].Properties, "status")
	gaps := Lacking(newScheme(t), schemas)
	require.Len(t, gaps, 1)
	assert.Equal(t, "StageAnalysisRun.fleetflow.io v1alpha1: spec.metrics[].count, status", gaps[0].String())
	assert.True(t, strings.HasPrefix(Describe(gaps), "the definitions of 1 kind(s) lack fields"))
}
