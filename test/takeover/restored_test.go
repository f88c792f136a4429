//go:build integration

package takeover

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

// The bindings that are damaged before the agents start.
const (
	unlabelled  = "fixed-member-1-759667e4"
	ownedByTwo  = "roll-member-1-86c8c387"
	ofNone      = "gone-member-1-00000000"
	toNowhere   = "team-namespace-member-9-00000000"
	handWritten = "some-work"
	// signedBefore is one that ours have written before the restore.
	signedBefore = "team-namespace-work"
)

// damage makes some of what was recorded what nobody has ever written.
func damage(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, binding := range kubefleet.OfKinds(objects, "ClusterResourceBinding") {
		switch binding.GetName() {
		case unlabelled:
			binding.SetLabels(nil)
		case ownedByTwo:
			binding.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement", Name: "roll", UID: "one"},
				{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement", Name: "other", UID: "another"},
			})
			gone := binding.DeepCopy()
			gone.SetName(ofNone)
			gone.SetOwnerReferences(nil)
			gone.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: "gone"})
			objects = append(objects, gone)
		case "team-namespace-member-1-31cb2932":
			nowhere := binding.DeepCopy()
			nowhere.SetName(toNowhere)
			_ = unstructured.SetNestedField(nowhere.Object, "member-9", "spec", "targetCluster")
			objects = append(objects, nowhere)
		}
	}
	for _, work := range kubefleet.OfKinds(objects, "Work") {
		if work.GetName() == signedBefore && work.GetNamespace() == "fleet-member-member-2" {
			annotations := work.GetAnnotations()
			annotations[placementv1beta1.BindingUIDAnnotation], annotations[placementv1beta1.RevisionAnnotation] = "before", "before"
			work.SetAnnotations(annotations)
		}
		if work.GetName() == handWritten && work.GetNamespace() == "fleet-member-member-2" {
			manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
			_ = unstructured.SetNestedField(manifests[1].(map[string]any), "red", "data", "color")
			_ = unstructured.SetNestedSlice(work.Object, manifests, "spec", "workload", "manifests")
		}
	}
	return objects
}

// No member answers here, as on the day of a restore; what they have is as their Works say.
func TestAHubRestoredFromABackupAndDamaged(t *testing.T) {
	r := newRig(t, 0)
	r.restored = true
	writes := r.takeOver(damage)

	bindingNamed := func(name string) *placementv1beta1.ClusterResourceBinding {
		b := &placementv1beta1.ClusterResourceBinding{}
		require.NoError(t, client.IgnoreNotFound(r.hub().Get(r.ctx, client.ObjectKey{Name: name}, b)))
		return b
	}
	t.Run("no binding changes its spec, and none is created", func(t *testing.T) { bindingsStay(t, writes) })
	t.Run("no snapshot is made for content that has one", func(t *testing.T) { noSnapshots(t, writes) })
	t.Run("a run that has ended stays as it is", func(t *testing.T) { endedRunStays(t, writes) })
	t.Run("what has neither placement nor cluster goes, and nothing else", func(t *testing.T) {
		none(t, writes.matching(func(w write) bool {
			return w.event == watch.Deleted && !slices.Contains([]string{ofNone, toNowhere}, w.after.GetName())
		}))
		assert.Empty(t, bindingNamed(ofNone).UID)
		assert.Empty(t, bindingNamed(toNowhere).UID)
	})
	t.Run("snapshots name their owners by the UIDs these have now", func(t *testing.T) {
		snapshots := &placementv1beta1.ClusterResourceSnapshotList{}
		require.NoError(t, r.hub().List(r.ctx, snapshots))
		require.NotEmpty(t, snapshots.Items)
		for _, snapshot := range snapshots.Items {
			placement := &placementv1beta1.ClusterResourcePlacement{}
			require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: snapshot.Labels[placementv1beta1.ParentPlacementLabel]}, placement))
			assert.Equal(t, rules.KinshipOwn, rules.KinshipOf(&snapshot, rules.PlacementOwner(placement)), snapshot.Name)
		}
	})
	t.Run("a binding without labels gets back the one it had", func(t *testing.T) {
		assert.Equal(t, "fixed", bindingNamed(unlabelled).Labels[placementv1beta1.ParentPlacementLabel])
	})
	t.Run("a binding with two owners is left alone", func(t *testing.T) {
		none(t, writes.matching(func(w write) bool { return w.after.GetName() == ownedByTwo }))
	})
	t.Run("a Work that was changed by hand is what its binding wants", func(t *testing.T) {
		work := &placementv1beta1.Work{}
		require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Namespace: "fleet-member-member-2", Name: handWritten}, work))
		assert.True(t, strings.Contains(string(work.Spec.Workload.Manifests[1].Raw), "blue"))
	})
	t.Run("a Work that names its binding by an earlier UID is adopted, and its member has nothing to do", func(t *testing.T) {
		work := &placementv1beta1.Work{}
		require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Namespace: "fleet-member-member-2", Name: signedBefore}, work))
		binding := bindingNamed(work.Labels[placementv1beta1.ParentBindingLabel])
		assert.Equal(t, string(binding.UID), work.Annotations[placementv1beta1.BindingUIDAnnotation])
		assert.Equal(t, int64(1), work.Generation)
	})
	t.Run("a run under way waits for its approval", func(t *testing.T) {
		run := &placementv1beta1.ClusterStagedUpdateRun{}
		require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: "web-2"}, run))
		assert.Nil(t, meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded), "%+v", run.Status.Conditions)
		request := &placementv1beta1.ClusterApprovalRequest{}
		require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: "web-2-after-canary"}, request))
		assert.Equal(t, string(run.UID), request.Annotations[placementv1beta1.ApprovalRunUIDAnnotation])
	})
	t.Run("the agents report no errors", func(t *testing.T) { r.requireNoErrors(t) })
}
