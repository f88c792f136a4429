package rollout_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Kinds of budgets and policies.
func minAvailable(value string) *rollout.Budget { return &rollout.Budget{MinAvailable: value} }

func maxUnavailable(value string) *rollout.Budget { return &rollout.Budget{MaxUnavailable: value} }

func pickN(n int, budget *rollout.Budget) rollout.EvictionPolicy {
	return rollout.EvictionPolicy{Type: "PickN", Clusters: n, Budget: budget}
}

func pickAll(budget *rollout.Budget) rollout.EvictionPolicy {
	return rollout.EvictionPolicy{Type: "PickAll", Budget: budget}
}

func off(cluster string) rollout.Eviction {
	return rollout.Eviction{Name: "off-" + cluster, Cluster: cluster}
}

func TestHowAnEvictionIsDecided(t *testing.T) {
	two := []rollout.Cluster{current("a"), current("b")}
	three := append(two, current("c"))
	begun := func(gone bool) rollout.Eviction {
		e := off("a")
		e.Begun = &rollout.Verdict{Code: rollout.WithinBudget, Available: 3, Total: 3}
		e.Gone = gone
		return e
	}
	expendable := current("a")
	expendable.Expendable = true
	frozen := failed(current("a"))
	frozen.Waits = []rollout.Wait{freeze}
	for sentence, test := range map[string]struct {
		clusters []rollout.Cluster
		eviction rollout.Eviction
		policy   rollout.EvictionPolicy
		message  string
		valid    bool
		executed bool
	}{
		"from a placement that names its clusters": {clusters: two, policy: rollout.EvictionPolicy{Type: "PickFixed"},
			message: "The placement names its clusters: take the cluster out of spec.policy.clusterNames (Found ClusterResourcePlacement with PickFixed placement type targeted by eviction)"},
		"off a cluster that was not picked": {clusters: two[1:], policy: pickAll(nil),
			message: "The placement is not on this cluster, there is nothing to evict (Failed to find scheduler decision for placement in cluster targeted by eviction)"},
		"off a cluster with two bindings": {clusters: []rollout.Cluster{current("a"), current("a")}, policy: pickAll(nil),
			message: "The placement has two bindings for this cluster; evict again once one of them is gone (Found more than one scheduler decision for placement in cluster targeted by eviction)"},
		"off a cluster that is being cleared": {clusters: []rollout.Cluster{deleting(current("a"))}, policy: pickAll(minAvailable("9")), valid: true, executed: true,
			message: "Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction"},
		"off a cluster that has nothing yet": {clusters: []rollout.Cluster{fresh("a")}, policy: pickAll(nil), valid: true,
			message: "Eviction is blocked, placement has not propagated resources to target cluster yet"},
		"off a cluster dropped before it had anything": {clusters: []rollout.Cluster{{Name: "a", State: rollout.Unscheduled}}, policy: pickAll(nil), valid: true,
			message: "Eviction is blocked, placement has not propagated resources to target cluster yet"},
		"off a cluster where it has failed": {clusters: []rollout.Cluster{failed(current("a")), current("b")}, policy: pickAll(minAvailable("2")), valid: true, executed: true,
			message: "Eviction is allowed, placement has failed"},
		"off a cluster that only reports": {clusters: []rollout.Cluster{expendable}, policy: pickAll(minAvailable("2")), valid: true, executed: true,
			message: "Eviction is allowed, placement has failed"},
		"without a budget": {clusters: two, policy: pickAll(nil), valid: true, executed: true,
			message: "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"},
		"with maxUnavailable for every cluster": {clusters: two, policy: pickAll(maxUnavailable("2")), valid: true,
			message: "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"},
		"with maxUnavailable in percent for every cluster": {clusters: two, policy: pickAll(maxUnavailable("50%")), valid: true,
			message: "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"},
		"with minAvailable in percent for every cluster": {clusters: two, policy: pickAll(minAvailable("10%")), valid: true,
			message: "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement"},
		"when all must stay": {clusters: two, policy: pickAll(minAvailable("2")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2"},
		"when one may go": {clusters: two, policy: pickAll(minAvailable("1")), valid: true, executed: true,
			message: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2"},
		"when one may go and is down": {clusters: []rollout.Cluster{current("a"), down(current("b"))}, policy: pickAll(minAvailable("1")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 2"},
		"with nothing to keep": {clusters: []rollout.Cluster{current("a"), down(current("b"))}, policy: pickAll(minAvailable("0")), valid: true, executed: true,
			message: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 2"},
		"half of three rounded up stay": {clusters: three, policy: pickN(3, minAvailable("50%")), valid: true, executed: true,
			message: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3"},
		"two thirds and more of three stay": {clusters: three, policy: pickN(3, minAvailable("67%")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3"},
		"none of three may go": {clusters: three, policy: pickN(3, maxUnavailable("0")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3"},
		"a percent of three, rounded up, may go": {clusters: three, policy: pickN(3, maxUnavailable("1%")), valid: true, executed: true,
			message: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3"},
		"one of three may go and one is down": {clusters: []rollout.Cluster{current("a"), down(current("b")), current("c")}, policy: pickN(3, maxUnavailable("1")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 3"},
		"one of three may go and one was never found": {clusters: two, policy: pickN(3, maxUnavailable("1")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2"},
		"off a cluster that is frozen": {clusters: []rollout.Cluster{frozen, current("b")}, policy: pickAll(nil), valid: true,
			message: "Eviction is blocked, the placement suspends the cluster targeted by eviction: leave it out of strategy.suspension first"},
		"begun and done": {clusters: two[1:], eviction: begun(true), policy: pickAll(minAvailable("9")), valid: true, executed: true,
			message: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 3, totalPlacements: 3"},
		"begun, not done and no longer allowed": {clusters: two, eviction: begun(false), policy: pickAll(minAvailable("2")), valid: true,
			message: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.eviction.Name == "" {
				test.eviction = off("a")
			}
			plan := rollout.Decide(rollout.Facts{Clusters: test.clusters, Evictions: []rollout.Eviction{test.eviction}, Policy: test.policy, EvictionsOnly: true})
			if !assert.Len(t, plan.Evictions, 1) {
				return
			}
			step := plan.Evictions[0]
			assert.Equal(t, test.message, step.Verdict.Message())
			assert.Equal(t, test.valid, step.Verdict.Valid())
			assert.Equal(t, test.executed, step.Verdict.Executed())
			deletes := test.executed && !test.eviction.Gone && !test.clusters[0].Deleting
			assert.Equal(t, deletes, step.Op == rollout.Evict, "op is %s", step.Op)
			assert.False(t, plan.Settled)
		})
	}
}

func TestPlacementsThatAreNotThere(t *testing.T) {
	for code, message := range map[rollout.Code]string{
		rollout.PlacementMissing:  "The hub has no placement of this name: correct spec.placementName in another eviction (Failed to find ClusterResourcePlacement targeted by eviction)",
		rollout.PlacementDeleting: "The placement is being deleted, which clears the cluster without an eviction (Found deleting ClusterResourcePlacement targeted by eviction)",
	} {
		v := rollout.Verdict{Code: code}
		assert.Equal(t, message, v.Message())
		assert.False(t, v.Valid())
		assert.False(t, v.Executed())
	}
}

// ops are what is planned for each cluster.
func ops(plan rollout.Plan) map[string]rollout.Op {
	planned := map[string]rollout.Op{}
	for _, step := range plan.Evictions {
		planned[step.Eviction] = step.Op
	}
	for _, step := range plan.Steps {
		planned[step.Cluster] = step.Op
	}
	return planned
}

func TestOneAccountForAll(t *testing.T) {
	claimed := func(c rollout.Cluster) rollout.Cluster { c.Claimed = true; return c }
	for sentence, test := range map[string]struct {
		facts   rollout.Facts
		want    map[string]rollout.Op
		blocked int
	}{
		"two evictions spend a budget of one once": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{current("a"), current("b"), current("c")}, Limits: limits(3, 1, 0),
				Evictions: []rollout.Eviction{off("b"), off("a")}, Policy: pickN(3, maxUnavailable("1"))},
			want: map[string]rollout.Op{"off-b": rollout.Evict, "off-a": rollout.Conclude},
		},
		"an eviction leaves nothing for an update": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{outdated("a"), outdated("b"), outdated("c")}, Limits: limits(3, 1, 0),
				Evictions: []rollout.Eviction{off("c")}, Policy: pickN(3, nil)},
			want: map[string]rollout.Op{"off-c": rollout.Evict}, blocked: 2,
		},
		"what is evicted is not updated as well": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{outdated("a"), outdated("b"), outdated("c")}, Limits: limits(3, 3, 0),
				Evictions: []rollout.Eviction{off("a")}, Policy: pickN(3, nil)},
			want: map[string]rollout.Op{"off-a": rollout.Evict, "b": rollout.Update, "c": rollout.Update},
		},
		"two evictions off one cluster: the second waits for the first": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{current("a"), current("b")}, Limits: limits(2, 1, 0),
				Evictions: []rollout.Eviction{off("a"), {Name: "again", Cluster: "a"}}, Policy: pickN(2, nil)},
			want: map[string]rollout.Op{"off-a": rollout.Evict}, blocked: 1,
		},
		"evictions leave updates to a run that is responsible": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{outdated("a"), outdated("b")}, EvictionsOnly: true, Limits: limits(2, 2, 0),
				Evictions: []rollout.Eviction{off("a")}, Policy: pickN(2, nil)},
			want: map[string]rollout.Op{"off-a": rollout.Evict},
		},
		"what was claimed counts against all others": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{outdated("a"), claimed(outdated("b")), outdated("c")}, Limits: limits(3, 1, 0)},
			want:  map[string]rollout.Op{"b": rollout.Update}, blocked: 2,
		},
		"what was claimed and is not wanted any more is taken back first": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{outdated("a"), claimed(current("b")), outdated("c")}, Limits: limits(3, 1, 0)},
			want:  map[string]rollout.Op{"b": rollout.Release}, blocked: 2,
		},
		"what was claimed and is no longer allowed is taken back": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{down(current("a")), claimed(outdated("b")), current("c")}, Limits: limits(3, 1, 0)},
			want:  map[string]rollout.Op{"b": rollout.Release}, blocked: 1,
		},
		"a claimed first write takes its room": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{fresh("a"), claimed(fresh("b"))}, Limits: limits(1, 1, 0)},
			want:  map[string]rollout.Op{"b": rollout.Add}, blocked: 1,
		},
		"an eviction is not refused before its claim was taken back": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{claimed(current("a")), down(current("b"))}, EvictionsOnly: true,
				Evictions: []rollout.Eviction{off("a")}, Policy: pickN(2, maxUnavailable("1"))},
			want: map[string]rollout.Op{"a": rollout.Release}, blocked: 1,
		},
		"nor is another one allowed before": {
			facts: rollout.Facts{Clusters: []rollout.Cluster{claimed(current("a")), current("b")}, EvictionsOnly: true,
				Evictions: []rollout.Eviction{off("b")}, Policy: pickN(2, maxUnavailable("1"))},
			want: map[string]rollout.Op{"off-b": rollout.Conclude, "a": rollout.Release},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := rollout.Decide(test.facts)
			assert.Equal(t, test.want, ops(plan))
			assert.Equal(t, test.blocked, plan.Blocked())
			assert.False(t, plan.Settled)
		})
	}
}
