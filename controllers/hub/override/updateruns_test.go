package override

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// freezing is an update run that has frozen snapshots of overrides for its cluster.
func freezing(name string, snapshots ...string) *placementv1beta1.ClusterStagedUpdateRun {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{
		StageName: "all", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member1", ClusterResourceOverrideSnapshots: snapshots}},
	}}
	return run
}

func endOf(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	run = run.DeepCopy()
	run.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: "r"}}
	return run
}

// An override that is deleted has no effect any more, but for the update runs that had frozen it
// before: it goes with the last of them.
func TestARunKeepsTheSnapshotsThatItHasFrozen(t *testing.T) {
	b := newBench(t, clusterOverride(0, "cro", "a"))
	b.settled(t, cro)
	b.edit(t, cro, "b")
	b.settled(t, cro)
	run := freezing("run", "cro-1")
	require.NoError(t, b.hub.Create(t.Context(), run))
	require.NoError(t, b.hub.Create(t.Context(), endOf(freezing("ended", "cro-0"))))
	o := &placementv1beta1.ClusterResourceOverride{}
	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	require.NoError(t, b.hub.Delete(t.Context(), o))
	b.told()
	b.settled(t, cro)
	assert.Equal(t, "cro-1:b", b.taken(t), "it is there, and in force no more")
	require.NoError(t, b.hub.Get(t.Context(), cro, o))
	assert.Contains(t, b.told(), "Normal OverrideInUse It goes when the update runs end that have frozen its snapshots cro-1; it has no effect on others any more")

	require.NoError(t, b.hub.Update(t.Context(), endOf(run)))
	b.settled(t, cro)
	assert.Empty(t, b.taken(t))
	require.True(t, isGone(b.hub.Get(t.Context(), cro, o)))
}

func TestTheEndOfARunWakesTheOverridesThatWaitForIt(t *testing.T) {
	going := clusterOverride(0, "going", "a")
	going.Finalizers = []string{placementv1beta1.OverrideCleanupFinalizer}
	b := newBench(t, going, clusterOverride(0, "stays", "b"))
	require.NoError(t, b.hub.Delete(t.Context(), going))
	assert.Equal(t, []reconcile.Request{ctrl.Request{NamespacedName: client.ObjectKey{Name: "going"}}}, b.cluster.requestDeleted(t.Context(), nil))

	run := freezing("run", "going-0")
	ends := onRunOver()
	for sentence, test := range map[string]struct{ got, want bool }{
		"a run that begins":          {ends.Create(event.CreateEvent{Object: run}), false},
		"a run that goes on":         {ends.Update(event.UpdateEvent{ObjectOld: run, ObjectNew: run}), false},
		"a run that ends":            {ends.Update(event.UpdateEvent{ObjectOld: run, ObjectNew: endOf(run)}), true},
		"a run that ended before":    {ends.Update(event.UpdateEvent{ObjectOld: endOf(run), ObjectNew: endOf(run)}), false},
		"a run that is deleted":      {ends.Delete(event.DeleteEvent{Object: run}), true},
		"a run that is being erased": {ends.Generic(event.GenericEvent{Object: run}), false},
	} {
		assert.Equal(t, test.want, test.got, sentence)
	}
}
