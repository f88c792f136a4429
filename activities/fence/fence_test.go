package fence

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestPatch(t *testing.T) {
	for sentence, test := range map[string]struct {
		operations []Op
		want       string
	}{
		"the uid is always pinned":          {want: `[{"op":"test","path":"/metadata/uid","value":"u"}]`},
		"a test for nothing keeps its null": {[]Op{Test("/spec/x", nil)}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/spec/x","value":null}]`},
		"an empty value is a value":         {[]Op{Replace("/spec/x", "")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/spec/x","value":""}]`},
		"a removal has no value":            {[]Op{Remove("/spec/x")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"remove","path":"/spec/x"}]`},
		"keys are escaped":                  {[]Op{Add(LabelPath("a/b~c"), "v")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add","path":"/metadata/labels/a~1b~0c","value":"v"}]`},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, err := Patch("u", test.operations...)
			require.NoError(t, err)
			data, err := patch.Data(nil)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(data))
		})
	}
}

func TestAnnotate(t *testing.T) {
	assert.Equal(t, []Op{Test("/metadata/annotations", nil), Add("/metadata/annotations", map[string]string{"k": "v"})}, Annotate(nil, "k", "v"), "there are none yet")
	assert.Equal(t, []Op{Test("/metadata/annotations/k", nil), Add("/metadata/annotations/k", "v")}, Annotate(map[string]string{"x": "y"}, "k", "v"), "it is new")
	assert.Equal(t, []Op{Test("/metadata/annotations/k", "old"), Add("/metadata/annotations/k", "v")}, Annotate(map[string]string{"k": "old"}, "k", "v"), "it has a value")
}

func TestUntrackLeavesWhatAUserHasApplied(t *testing.T) {
	binding := &placementv1beta1.ClusterResourceBinding{}
	binding.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "fleetflow-hub-agent", Operation: metav1.ManagedFieldsOperationUpdate}}
	patch, err := Patch("u", Untrack(binding)...)
	require.NoError(t, err)
	data, err := patch.Data(nil)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add","path":"/metadata/managedFields","value":[{}]}]`, string(data))

	binding.ManagedFields = append(binding.ManagedFields, metav1.ManagedFieldsEntry{Manager: "load-balancer", Operation: metav1.ManagedFieldsOperationApply})
	assert.Empty(t, Untrack(binding))
}
