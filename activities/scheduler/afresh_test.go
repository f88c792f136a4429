package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// selectedBy are the names of the clusters that a decision selects, in order.
func selectedBy(decision scheduler.Decision) []string {
	var names []string
	for _, d := range decision.Selected {
		names = append(names, d.ClusterName)
	}
	return names
}

func TestAfreshMovesWhatStaysOtherwise(t *testing.T) {
	cases := map[string]struct {
		facts        scheduler.Facts
		stays, moves []string
	}{
		"to a cluster that is preferred": {
			facts: scheduler.Facts{
				Policy: preferring(pickN(1), weighed(10, only("b"))), Clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")}, Bindings: []scheduler.Binding{bound("a")},
			},
			stays: []string{"a"}, moves: []string{"b"},
		},
		"off a cluster that does not fit any more": {
			facts: scheduler.Facts{
				Policy: requiring(pickAll(), only("a")), Clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b")}, Bindings: []scheduler.Binding{bound("a"), bound("b")},
			},
			stays: []string{"a", "b"}, moves: []string{"a"},
		},
		"to the first affinity group": {
			facts: scheduler.Facts{
				Policy: localThenCloud(pickAll()), Clusters: []clusterv1beta1.MemberCluster{local("l"), cloud("c")}, Bindings: []scheduler.Binding{from("cloud", "c")},
			},
			stays: []string{"c"}, moves: []string{"l"},
		},
		"not from clusters that are named": {
			facts: scheduler.Facts{
				Policy:   &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a"}},
				Clusters: []clusterv1beta1.MemberCluster{cluster("a", tainted), cluster("b")}, Bindings: []scheduler.Binding{bound("a")},
			},
			stays: []string{"a"}, moves: []string{"a"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.facts.PolicySnapshot = "p-1"
			c.facts.Now = now
			assert.Equal(t, c.stays, selectedBy(scheduler.Decide(c.facts)))
			c.facts.Afresh = true
			assert.Equal(t, c.moves, selectedBy(scheduler.Decide(c.facts)))
		})
	}
}

func TestReplicasAreDividedAfresh(t *testing.T) {
	rule := placementv1beta1.ReplicaSchedulingRule{Clusters: []placementv1beta1.ClusterReplicas{weighing(1, "A"), weighing(1, "B")}}
	d := newDivided(t, rule, front(4), "A")
	d.decide()
	d.facts.Clusters = append(d.facts.Clusters, cluster("B"))
	d.decide()
	assert.Equal(t, []string{"A 4", "B 0"}, d.assigned(), "what runs stays where it is")
	d.facts.Afresh = true
	d.decide()
	assert.Equal(t, []string{"A 2", "B 2"}, d.assigned())
}

func TestWhileAnotherSchedulerHasNotPickedEverythingStays(t *testing.T) {
	decision := scheduler.Decide(scheduler.Facts{
		PolicySnapshot: "p-1", Now: now, Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType}, Undecided: "not yet",
		Clusters: []clusterv1beta1.MemberCluster{cluster("a"), cluster("b"), cluster("gone", leaving)},
		Bindings: []scheduler.Binding{bound("a"), with(bound("b"), old), bound("gone")},
	})
	assert.Equal(t, []string{"a", "b"}, selectedBy(decision))
	assert.Equal(t, []string{"b-gone"}, decision.Unschedule, "a cluster that leaves the fleet is not waited for")
	assert.False(t, decision.Satisfied)
	assert.Equal(t, "not yet", decision.Message)
}
