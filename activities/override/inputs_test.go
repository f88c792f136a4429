package override

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestInputs(t *testing.T) {
	inputs := func(hash, value string, labels map[string]string) string {
		s := placementv1beta1.ClusterResourceOverrideSnapshot{}
		s.Name = "cro-0"
		s.Spec.OverrideHash = []byte(hash)
		s.Spec.OverrideSpec.Policy.OverrideRules = []placementv1beta1.OverrideRule{{
			ClusterSelector: &placementv1beta1.ClusterSelector{},
			JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
				Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: "/a", Value: apiextensionsv1.JSON{Raw: []byte(value)},
			}},
		}}
		return Picked([]placementv1beta1.OverrideSnapshotObject{&s}).Inputs(Cluster{Name: "a", Labels: labels})
	}
	const value = `{"b": ["in ${MEMBER-CLUSTER-LABEL-KEY-example.com/region}"]}`
	east := map[string]string{"example.com/region": "east"}
	west := map[string]string{"example.com/region": "west"}
	base := inputs("1", value, east)
	assert.NotEmpty(t, base)
	assert.Equal(t, base, inputs("1", value, map[string]string{"example.com/region": "east", "other": "x"}), "labels that nothing stands for do not matter")
	assert.NotEqual(t, base, inputs("1", value, west))
	assert.NotEqual(t, base, inputs("1", value, nil), "a label that is missing is not an empty one")
	assert.NotEqual(t, base, inputs("2", value, east), "an override of the same name that says something else")
	assert.Equal(t, inputs("1", `"plain"`, east), inputs("1", `"plain"`, west))
	assert.Empty(t, Picked(nil).Inputs(Cluster{Name: "a"}))
	assert.Equal(t, "3c6307f72acf", base, "what bindings have noted is not made anew by another version")
}
