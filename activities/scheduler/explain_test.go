package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func explain(policy *placementv1beta1.PlacementPolicy, clusters []clusterv1beta1.MemberCluster, bindings ...scheduler.Binding) map[string]scheduler.Explanation {
	byName := map[string]scheduler.Explanation{}
	for _, e := range scheduler.Explain(scheduler.Facts{PolicySnapshot: "p-1", Policy: policy, Clusters: clusters, Bindings: bindings, Now: now}) {
		byName[e.Cluster] = e
	}
	return byName
}

func TestExplainWhyThisClusterAndWhyNotThatOne(t *testing.T) {
	policy := spreading(pickN(2), over("region", 1, placementv1beta1.DoNotSchedule))
	preferring(requiring(policy, expressing("region", "Exists")),
		weighed(10, matching("system", "critical")), weighed(20, sortedBy("nodes", placementv1beta1.Descending)))
	clusters := append(fourAnimals(), cluster("snail"), cluster("tiger", leaving), cluster("urchin", labels("region", "east"), tainted))
	for i := range clusters {
		property([]string{"4", "8", "2", "6", "2", "2", "2"}[i])(&clusters[i])
	}
	got := explain(policy, clusters)

	chosen := got["smartfish"]
	assert.True(t, chosen.Selected)
	assert.False(t, chosen.Before)
	assert.Equal(t, framework.Score{Affinity: 20, Topology: -1}, chosen.Score)
	assert.Contains(t, chosen.Reason, "picked by scheduling policy")
	assert.True(t, got["flyingpenguin"].Selected, "the other region, and more nodes than jumpingcat")

	missed := got["jumpingcat"]
	assert.Equal(t, lowScore("jumpingcat", 10, -1), missed.Reason)
	assert.Equal(t, framework.Score{Affinity: 10, Topology: -1}, missed.Score)
	assert.Equal(t, []int{2, 2}, []int{missed.Rank, missed.InLine})
	assert.Equal(t, 1, got["bravelion"].Rank)
	assert.Equal(t, &scheduler.Rival{Cluster: "smartfish", Score: framework.Score{Affinity: 20, Topology: -1}}, missed.Last)
	assert.Equal(t, []string{
		"preferred term 0 adds 10 of 10: its labelSelector matches",
		"preferred term 1 adds 0 of 20: nodes is 2, the best in the fleet is 8 and the worst 2",
		`region: 1 picked in group "west", between 1 and 1 in each group, max skew 1; picking it makes the spread more uneven (-1)`,
	}, missed.Details)
	for _, check := range missed.Checks {
		assert.Empty(t, check.Reason, check.Plugin)
	}

	assert.Equal(t, "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms", got["snail"].Reason)
	assert.Zero(t, got["snail"].Rank)
	assert.Equal(t, "ClusterUnschedulable, cluster has left the fleet", got["tiger"].Reason)
	assert.Equal(t, []scheduler.Check{
		{Plugin: "SamePlacementAffinity"}, {Plugin: "ClusterEligibility"}, {Plugin: "ClusterAffinity"},
		{Plugin: "TaintToleration", Reason: "taint k=v:NoSchedule is not tolerated"}, {Plugin: "TopologySpreadConstraints"},
	}, got["urchin"].Checks)
}

func TestExplainThatATaintHasOthersPickedFirst(t *testing.T) {
	got := explain(pickN(1), fleet(cluster("a"), cluster("b", taintedWith(corev1.TaintEffectPreferNoSchedule))))["b"]
	assert.False(t, got.Selected)
	assert.Equal(t, framework.Score{Taints: -1}, got.Score)
	assert.Equal(t, []string{"taint k=v:PreferNoSchedule is not tolerated: of clusters that are otherwise as good, others are picked first (-1)"}, got.Details)
	assert.Equal(t, 1, got.Rank)
}

func TestExplainWhatAPlacedClusterWouldFailToday(t *testing.T) {
	got := explain(requiring(pickN(1), prod()), fleet(cluster("a", silent), cluster("b", labelled("env", "prod"))), bound("a"))["a"]
	assert.True(t, got.Selected)
	assert.True(t, got.Before)
	assert.Equal(t, []scheduler.Check{
		{Plugin: "SamePlacementAffinity"},
		{Plugin: "ClusterEligibility", Reason: "cluster is not connected to the fleet: no recent heartbeat signals (last received 6.00 minutes ago)"},
		{Plugin: "ClusterAffinity", Reason: "cluster does not match with any of the required cluster affinity terms"},
		{Plugin: "TaintToleration"},
	}, got.Checks)
}

func TestExplainClustersByName(t *testing.T) {
	got := explain(pickFixed("a", "gone", "leaving", "silent"), fleet(cluster("a"), cluster("leaving", leaving), cluster("silent", silent), cluster("other")))
	assert.True(t, got["a"].Selected)
	assert.Equal(t, `Specified cluster "gone" is not found`, got["gone"].Reason)
	assert.Equal(t, `Cluster "leaving" is not eligible for resource placement yet: cluster has left the fleet`, got["leaving"].Reason)
	assert.Equal(t, `The scheduling policy picks clusters by name, and does not name "other"`, got["other"].Reason)
	assert.Contains(t, got["silent"].Reason, `Cluster "silent" is not eligible for resource placement yet: cluster is not connected`)
}

func TestExplainAPolicyThatCannotBeFollowed(t *testing.T) {
	got := explain(requiring(pickAll(), nodes("In", "3")), fleet(cluster("a"), cluster("b")), bound("a"))
	assert.True(t, got["a"].Selected, "what is placed stays")
	assert.Contains(t, got["b"].Reason, `operator "In" is none of Gt, Ge, Eq, Ne, Lt, Le`)
}

func TestWhatAPolicyKeepsThatCannotBeFollowedWasThereBefore(t *testing.T) {
	unreadable := requiring(pickN(1), nodes("In", "3"))
	got := explain(unreadable, fleet(cluster("a"), cluster("b"), cluster("c")), bound("a"), bound("b"), with(bound("c"), marked))
	for _, name := range []string{"a", "b", "c"} {
		assert.True(t, got[name].Selected && got[name].Before, "%s stays, though fewer are wanted or it is marked", name)
	}
}

func TestExplanationsSayWhatIsDecided(t *testing.T) {
	for seed := range *fleets / 10 {
		facts := throw(seed).facts()
		decision := scheduler.Decide(facts)
		selected := map[string]bool{}
		reasons := map[string]string{}
		for _, d := range append(decision.Selected, decision.Unselected...) {
			selected[d.ClusterName] = d.Selected
			reasons[d.ClusterName] = d.Reason
		}
		for _, e := range scheduler.Explain(facts) {
			require.Equal(t, selected[e.Cluster], e.Selected, "cluster %s of fleet %d", e.Cluster, seed)
			if reason, told := reasons[e.Cluster]; told {
				require.Equal(t, reason, e.Reason, "cluster %s of fleet %d", e.Cluster, seed)
			}
		}
	}
}
