package fleetview

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// TestAnExplanationIsOfTheDecisionOfTheHub has bindings that only the hub tells apart: by their owners, and by when they were made.
func TestAnExplanationIsOfTheDecisionOfTheHub(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"}}
	placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(1))}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{placementv1beta1.IsLatestSnapshotLabel: "true"}}}
	member := func(name string) clusterv1beta1.MemberCluster {
		return clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now), Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
			}}},
		}}
	}
	members := []clusterv1beta1.MemberCluster{member("a"), member("b"), member("c")}
	binding := func(name, cluster, owner string, made time.Time) *placementv1beta1.ClusterResourceBinding {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made)}}
		b.Spec = placementv1beta1.ResourceBindingSpec{TargetCluster: cluster, State: placementv1beta1.BindingStateBound, SchedulingPolicySnapshotName: "web-0",
			ClusterDecision: placementv1beta1.ClusterDecision{ClusterName: cluster, Selected: true}}
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: placementv1beta1.GroupVersion.String(), Kind: "ClusterResourcePlacement", Name: owner, UID: "uid-of-owner"}}
		return b
	}
	for name, bindings := range map[string][]placementv1beta1.BindingObject{
		"a binding of another placement":     {binding("web-c", "c", "api", now)},
		"the older of two is kept":           {binding("web-b", "b", "web", now.Add(-time.Hour)), binding("web-a", "a", "web", now)},
		"the younger comes first by name":    {binding("web-a", "b", "web", now), binding("web-b", "a", "web", now.Add(-time.Hour))},
		"nothing was picked":                 {},
		"two of one cluster, one of another": {binding("web-1", "b", "web", now), binding("web-2", "b", "web", now.Add(-time.Hour)), binding("web-3", "c", "api", now)},
	} {
		t.Run(name, func(t *testing.T) {
			decision := scheduler.Decide(scheduler.FactsOf(placement, policy, bindings, members, now))
			require.NotEmpty(t, decision.Selected)
			picked := map[string]bool{}
			for _, selected := range decision.Selected {
				picked[selected.ClusterName] = true
			}
			facts := WhyFacts{Placement: hub.PlacementOf(placement), Members: members, Now: now,
				Policies: []hub.PolicySnapshot{{Object: policy, Spec: &policy.Spec, Status: &policy.Status}}}
			for _, b := range bindings {
				facts.Bindings = append(facts.Bindings, hub.BindingOf(b))
			}
			answers := Why(facts)
			require.Len(t, answers, len(members))
			for _, answer := range answers {
				assert.Equal(t, picked[answer.Cluster], answer.Selected, "%s: %s", answer.Cluster, answer.Reason)
			}
		})
	}
}

func TestAnExplanationSaysWhatIsStillToBeRemoved(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a", "b"}}
	facts := WhyFacts{Placement: hub.PlacementOf(placement)}
	for cluster, status := range map[string]metav1.ConditionStatus{"a": metav1.ConditionTrue, "b": metav1.ConditionFalse} {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster}}
		b.Spec.TargetCluster = cluster
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeRemovalPending, Status: status,
			Reason: placementv1beta1.ReasonWaitingForFinalizers, Message: "ConfigMap n/old waits for its finalizers: example.com/hold"}}
		facts.Bindings = append(facts.Bindings, hub.BindingOf(b))
	}
	const note = "objects that are not wanted any more are still there: ConfigMap n/old waits for its finalizers: example.com/hold"
	assert.Contains(t, Why(facts, "a")[0].Notes, note)
	assert.NotContains(t, Why(facts, "b")[0].Notes, note)
}

func TestAnExplanationNamesOverridesOfNoPlacement(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a", "b"}}
	facts := WhyFacts{Placement: hub.PlacementOf(placement)}
	overridden := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-a"}}
	overridden.Spec = placementv1beta1.ResourceBindingSpec{TargetCluster: "a", ClusterResourceOverrideSnapshots: []string{"base-2", "named-0", "base-old"},
		ResourceOverrideSnapshots: []placementv1beta1.NamespacedName{{Namespace: "shop", Name: "base-7"}}}
	plain := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-b"}}
	plain.Spec.TargetCluster = "b"
	facts.Bindings = []hub.Binding{hub.BindingOf(overridden), hub.BindingOf(plain)}
	named := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "named"}}
	named.Spec.Placement = &placementv1beta1.PlacementRef{Name: "web"}
	facts.Overrides = []placementv1beta1.OverrideObject{
		&placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "base"}}, named,
		&placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "bas"}},
		&placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "base"}},
		&placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "base"}},
	}
	overrides := func(cluster string) []string {
		return slices.DeleteFunc(Why(facts, cluster)[0].Notes, func(note string) bool { return !strings.Contains(note, "names no placement") })
	}
	assert.Equal(t, []string{
		"ClusterResourceOverride base changes what is placed there, as it names no placement and so concerns all",
		"ResourceOverride shop/base changes what is placed there, as it names no placement and so concerns all",
	}, overrides("a"))
	assert.Empty(t, overrides("b"))
}
