package worksync

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// overrideSnapshot is a snapshot of an override that adds a label to the ClusterRole reader.
func overrideSnapshot(name, path, value string) *placementv1beta1.ClusterResourceOverrideSnapshot {
	s := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	s.Spec.OverrideSpec = placementv1beta1.ClusterResourceOverrideSpec{
		ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "reader"},
		},
		Policy: placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}},
			JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
				Operator: placementv1beta1.JSONPatchOverrideOpAdd, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(value)},
			}},
		}}},
	}
	return s
}

// withRole is a snapshot of one ClusterRole without labels, and a binding to it.
func withRole(overrides ...string) ([]client.Object, *placementv1beta1.ClusterResourceBinding) {
	objects := snapshot(0, 1)
	objects[0].(*placementv1beta1.ClusterResourceSnapshot).Spec.SelectedResources = []placementv1beta1.ResourceContent{{
		RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"}}`)},
	}}
	binding := newBinding(0, 1)
	binding.Spec.ClusterResourceOverrideSnapshots = overrides
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: binding.Spec.TargetCluster, Labels: map[string]string{"region": "east"}}}
	return append(objects, member), binding
}

func TestWorksCarryWhatOverridesMakeOfResources(t *testing.T) {
	objects, binding := withRole("cro-0")
	h := newHub(t, append(objects, overrideSnapshot("cro-0", "/metadata/labels", `{"on":"${MEMBER-CLUSTER-NAME}","in":"${MEMBER-CLUSTER-LABEL-KEY-region}"}`))...)
	require.NoError(t, newSyncer(h).Sync(t.Context(), binding))
	manifests := h.work(t, "app-work").Spec.Workload.Manifests
	require.Len(t, manifests, 1)
	assert.JSONEq(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader","labels":{"on":"member1","in":"east"}}}`,
		string(manifests[0].Raw))
}

// The message is the one that KubeFleet's troubleshooting guide prints.
func TestAnOverrideThatCannotBeAppliedIsShownOnTheBinding(t *testing.T) {
	objects, binding := withRole("cro-1-0")
	h := newHub(t, append(objects, overrideSnapshot("cro-1-0", "/metadata/labels/new-label", `"new-value"`))...)
	err := newSyncer(h).Sync(t.Context(), binding)
	var failed *workmodel.OverrideError
	require.ErrorAs(t, err, &failed)
	assert.Empty(t, h.work(t, "app-work").Spec.Workload.Manifests, "what the cluster has never had stays away")

	conditions := workmodel.BindingConditions(binding, nil, err, metav1.Now())
	require.Len(t, conditions, 2)
	overridden := conditions[1]
	assert.Equal(t, placementv1beta1.ConditionTypeOverridden, overridden.Type)
	assert.Equal(t, metav1.ConditionFalse, overridden.Status)
	assert.Equal(t, placementv1beta1.ReasonOverriddenFailed, overridden.Reason)
	assert.Contains(t, overridden.Message, `Failed to apply the override rules on the resources: add operation does not apply: doc is missing path: "/metadata/labels/new-label": missing value`)
	assert.Contains(t, overridden.Message, "cro-1-0")
}

func TestAnOverrideThatCannotBeAppliedKeepsNothingElseBack(t *testing.T) {
	role := func(name, label string) placementv1beta1.ResourceContent {
		return placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"` + name + `","labels":{"at":"` + label + `"}}}`)}}
	}
	names := func(work *placementv1beta1.Work) (all []string) {
		for _, manifest := range work.Spec.Workload.Manifests {
			var o metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(manifest.Raw, &o))
			all = append(all, o.Name+" "+o.Labels["at"])
		}
		return all
	}
	objects, binding := withRole()
	objects[0].(*placementv1beta1.ClusterResourceSnapshot).Spec.SelectedResources = []placementv1beta1.ResourceContent{
		role("a", "1"), role("reader", "1"), role("z", "1")}
	fails := overrideSnapshot("cro-0", "/rules/0", `"x"`)
	h := newHub(t, append(objects, fails)...)
	syncer := newSyncer(h)
	require.NoError(t, syncer.Sync(t.Context(), binding))
	require.Equal(t, []string{"a 1", "reader 1", "z 1"}, names(h.work(t, "app-work")))

	next := snapshot(1, 1)
	next[0].(*placementv1beta1.ClusterResourceSnapshot).Spec.SelectedResources = []placementv1beta1.ResourceContent{
		role("a", "2"), role("reader", "2"), role("z", "2")}
	require.NoError(t, h.Create(t.Context(), next[0]))
	binding.Spec.ResourceSnapshotName = next[0].GetName()
	binding.Spec.ClusterResourceOverrideSnapshots = []string{"cro-0"}
	binding.Generation++
	err := syncer.Sync(t.Context(), binding)
	var failed *workmodel.OverrideError
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.Held, 1)
	assert.Contains(t, err.Error(), "(1 resource(s) stay as they were on the cluster, and keep no others back)")
	work := h.work(t, "app-work")
	assert.Equal(t, []string{"a 2", "reader 1", "z 2"}, names(work), "it stays as it was, in its place")

	works := []placementv1beta1.Work{*work}
	state := workmodel.StateOf(binding, works)
	assert.True(t, state.Synced)
	assert.True(t, state.HeldBack)
	status := workmodel.BindingStatus(binding, works, err, metav1.Now())
	require.Len(t, status.FailedPlacements, 1)
	assert.Equal(t, "reader", status.FailedPlacements[0].Name)
	assert.Equal(t, placementv1beta1.ConditionTypeOverridden, status.FailedPlacements[0].Condition.Type)
	assert.Equal(t, placementv1beta1.ReasonOverriddenFailed, status.FailedPlacements[0].Condition.Reason)
	binding.Status = status
	assert.Equal(t, status, workmodel.BindingStatus(binding, works, err, metav1.NewTime(metav1.Now().Add(time.Hour))), "it is said once")

	h.writes = nil
	require.ErrorAs(t, syncer.Sync(t.Context(), binding), &failed)
	assert.Empty(t, h.writes, "there is nothing to write until something changes")

	binding.Spec.ClusterResourceOverrideSnapshots = nil
	binding.Generation++
	require.NoError(t, syncer.Sync(t.Context(), binding))
	work = h.work(t, "app-work")
	assert.Equal(t, []string{"a 2", "reader 2", "z 2"}, names(work))
	assert.NotContains(t, work.Annotations, workmodel.HeldBackAnnotation)
}

func TestAnOverrideThatIsGoneIsNamed(t *testing.T) {
	objects, binding := withRole("cro-0")
	h := newHub(t, objects...)
	err := newSyncer(h).Sync(t.Context(), binding)
	var failed *workmodel.OverrideError
	require.ErrorAs(t, err, &failed)
	assert.ErrorContains(t, err, "ClusterResourceOverrideSnapshot cro-0 does not exist any more, as its override was deleted: ")
	assert.Empty(t, h.writes)
}
