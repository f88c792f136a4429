package placement

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// accessible is a placement that has its status copied into namespace app.
func accessible() situation {
	s := newSituation("member1").bound(0, up, "member1")
	s.Placement.Finalizers = []string{placementv1beta1.PlacementCleanupFinalizer}
	s.Placement.Spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
	s.Placement.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "app"}}
	return s
}

func TestTheStatusIsCopiedIntoTheSelectedNamespace(t *testing.T) {
	b := newBench(t, stored(accessible())...)
	copied := &placementv1beta1.ClusterResourcePlacementStatus{}
	key := client.ObjectKey{Namespace: "app", Name: "crp"}
	b.reconcile(t)
	require.NoError(t, b.hub.Get(t.Context(), key, copied))
	assert.Equal(t, b.placement(t).Status, copied.SourceStatus)
	assert.True(t, metav1.IsControlledBy(copied, b.placement(t)))
	assert.Equal(t, []ctrl.Request{{NamespacedName: client.ObjectKey{Name: "crp"}}}, requestCopied(t.Context(), copied))
	synced := meta.FindStatusCondition(copied.SourceStatus.Conditions, "ClusterResourcePlacementStatusSynced")
	require.NotNil(t, synced)
	assert.Equal(t, placementv1beta1.ReasonStatusSyncSucceeded, synced.Reason)

	before := copied.ResourceVersion
	b.clock.SetTime(now.Add(statusPause))
	b.reconcile(t)
	require.NoError(t, b.hub.Get(t.Context(), key, copied))
	assert.Equal(t, before, copied.ResourceVersion, "nothing has changed, and nothing is written")
	assert.Equal(t, 1, b.statusWrites)

	require.NoError(t, b.hub.Delete(t.Context(), copied))
	b.clock.SetTime(now.Add(2 * statusPause))
	b.reconcile(t)
	assert.NoError(t, b.hub.Get(t.Context(), key, copied), "one that is deleted comes back")
}

func TestACopyThatCannotBeWrittenIsTold(t *testing.T) {
	s := accessible()
	status := Project(s.Facts, View{CopiedTo: "app", NotCopied: errors.New("no such namespace"), Now: now})
	synced := meta.FindStatusCondition(status.Conditions, "ClusterResourcePlacementStatusSynced")
	require.NotNil(t, synced)
	assert.Equal(t, metav1.ConditionFalse, synced.Status)
	assert.Equal(t, placementv1beta1.ReasonStatusSyncFailed, synced.Reason)
	assert.Contains(t, synced.Message, `into namespace "app": no such namespace`)
}

func TestAPlacementInANamespaceHasConditionsOfItsOwnKind(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	placement := &placementv1beta1.ResourcePlacement{ObjectMeta: s.Placement.ObjectMeta, Spec: s.Placement.Spec}
	placement.Namespace = "team"
	placement.Spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
	s.Facts.Placement = placement
	status := Project(s.Facts, View{CopiedTo: rules.NamespaceOfStatusCopy(placement), Now: now})
	types := make([]string, 0, len(status.Conditions))
	for _, c := range status.Conditions {
		types = append(types, c.Type)
	}
	assert.Equal(t, []string{
		"ResourcePlacementScheduled", "ResourcePlacementRolloutStarted", "ResourcePlacementOverridden",
		"ResourcePlacementWorkSynchronized", "ResourcePlacementApplied", "ResourcePlacementAvailable",
	}, types, "and no copy of the status, which is in its namespace already")
}
