package stagedupdate

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestANewDecisionOfTheSchedulerWakesRuns(t *testing.T) {
	policy := func(generation int64, clusters ...string) *placementv1beta1.ClusterSchedulingPolicySnapshot {
		p := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
		p.Status.ObservedCRPGeneration = generation
		for _, name := range clusters {
			p.Status.ClusterDecisions = append(p.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: name, Selected: true})
		}
		return p
	}
	for sentence, test := range map[string]struct {
		before, after *placementv1beta1.ClusterSchedulingPolicySnapshot
		wakes         bool
	}{
		"the same clusters for the same placement wake nobody": {policy(1, "a"), policy(1, "a"), false},
		"a newer placement wakes":                              {policy(1, "a"), policy(2, "a"), true},
		"another cluster wakes":                                {policy(1, "a"), policy(1, "a", "b"), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.Equal(t, test.wakes, onNewDecision().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}))
		})
	}
	require.False(t, onNewDecision().Create(event.CreateEvent{Object: policy(1, "a")}), "what there is when the process starts wakes nobody")
}

func TestAPolicySnapshotWakesTheRunsOfItsPlacementThatAreNotOver(t *testing.T) {
	scheme := fixture.Scheme(t)
	run := func(name, placement string) *placementv1beta1.ClusterStagedUpdateRun {
		return &placementv1beta1.ClusterStagedUpdateRun{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: placement},
		}
	}
	over := run("over", "mine")
	over.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}}
	c := fixture.NewClientBuilder(scheme).WithObjects(run("open", "mine"), over, run("foreign", "other")).
		WithIndex(&placementv1beta1.ClusterStagedUpdateRun{}, fieldindex.ByPlacement, func(o client.Object) []string {
			return []string{o.(*placementv1beta1.ClusterStagedUpdateRun).Spec.PlacementName}
		}).Build()
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "mine-1", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "mine"},
	}}
	require.Equal(t, []reconcile.Request{{NamespacedName: client.ObjectKey{Name: "open"}}}, New(c, nil, nil).requestRunsOfPolicy(t.Context(), policy))
}
