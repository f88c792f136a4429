package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func serving(kinds ...string) change {
	served := clusterrules.ServedKinds{"v1": {"ConfigMap"}}
	if len(kinds) > 0 {
		served["example.com/v1"] = kinds
	}
	return reporting(string(clusterv1beta1.ServedKindsProperty), served.Report())
}

func namesOf(decisions []placementv1beta1.ClusterDecision) []string {
	var names []string
	for i := range decisions {
		names = append(names, decisions[i].ClusterName)
	}
	return names
}

func TestClustersThatDoNotServeAKindAreNotPickedIfThePolicySaysSo(t *testing.T) {
	facts := scheduler.Facts{
		PolicySnapshot: "p-1", Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}, Now: now,
		Clusters: []clusterv1beta1.MemberCluster{
			cluster("serves", serving("Widget")), cluster("bare", serving()), cluster("silent"), cluster("holds", serving()),
		},
		Bindings: []scheduler.Binding{with(bound("holds"), old)},
		Kinds:    []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "example.com", Version: "v1", Kind: "Widget"}},
	}
	assert.ElementsMatch(t, []string{"serves", "bare", "silent", "holds"}, namesOf(scheduler.Decide(facts).Selected), "as in KubeFleet")

	for _, policy := range []*placementv1beta1.PlacementPolicy{{PlacementType: placementv1beta1.PickAllPlacementType}, pickN(4)} {
		policy.UnservedKinds = placementv1beta1.UnservedKindsExclude
		facts.Policy = policy
		decision := scheduler.Decide(facts)
		assert.ElementsMatch(t, []string{"serves", "silent", "holds"}, namesOf(decision.Selected),
			"what does not report its kinds may serve them, and what is placed stays")
		assert.Equal(t, []string{"bare"}, namesOf(decision.Unselected))
		assert.Equal(t, "ClusterUnschedulable, cluster does not serve Widget of example.com/v1", decision.Unselected[0].Reason)
	}
	facts.Policy = pickFixed("bare")
	facts.Policy.UnservedKinds = placementv1beta1.UnservedKindsExclude
	assert.Equal(t, []string{"bare"}, namesOf(scheduler.Decide(facts).Selected), "who names clusters means them")
}

func TestAPolicyIsInterestedInTheKindsOfClustersIfItLooksAtThem(t *testing.T) {
	interest := framework.Property(string(clusterv1beta1.ServedKindsProperty))
	policy := pickN(1)
	assert.NotContains(t, scheduler.Interests("", policy), interest)
	policy.UnservedKinds = placementv1beta1.UnservedKindsExclude
	assert.Contains(t, scheduler.Interests("", policy), interest)
	before := cluster("a", serving())
	after := cluster("a", serving("Widget"))
	assert.Contains(t, scheduler.Changes(&before, &after, now), interest)
}

// What is within envelopes is in no status: the looks whether a decision is due, and the explanations of one, go by what it noted.
func TestAskedAgainADecisionLooksAtTheKindsThatItWasMadeFor(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	placement := &placementv1beta1.ClusterResourcePlacement{}
	placement.Spec.Policy = &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAllPlacementType, UnservedKinds: placementv1beta1.UnservedKindsExclude,
	}
	placement.Status.SelectedResources = []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "ConfigMap", Name: "envelope"}}
	state := scheduler.State{Kinds: []schema.GroupVersionKind{widget}}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	policy.Spec.Policy = placement.Spec.Policy
	policy.SetAnnotations(state.Notes())
	assert.Equal(t, state.Kinds, scheduler.FactsOf(placement, policy, nil, nil, now).Kinds)
	policy.SetAnnotations(nil)
	assert.Equal(t, []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}, scheduler.FactsOf(placement, policy, nil, nil, now).Kinds)

	placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	policy.Spec.Policy = placement.Spec.Policy
	policy.SetAnnotations(state.Notes())
	assert.Empty(t, scheduler.FactsOf(placement, policy, nil, nil, now).Kinds, "the policy does not ask any more")
}
