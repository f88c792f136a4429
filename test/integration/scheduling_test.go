//go:build integration

package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// key is a label key or taint key that no other spec uses.
func (s *spec) key() string { return "fleetflow.test/" + s.name }

// label gives members the spec's label; an empty value takes it away.
func (s *spec) label(value string, names ...string) {
	s.Helper()
	for _, name := range names {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		update(s, s.hub, member, func(m *clusterv1beta1.MemberCluster) {
			if delete(m.Labels, s.key()); value != "" {
				m.Labels[s.key()] = value
			}
		})
	}
}

// labelled asks for the spec's label.
func (s *spec) labelled(values ...string) placementv1beta1.ClusterSelectorTerm {
	expression := metav1.LabelSelectorRequirement{Key: s.key(), Operator: metav1.LabelSelectorOpExists}
	if len(values) > 0 {
		expression.Operator = metav1.LabelSelectorOpIn
		expression.Values = values
	}
	return placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression}}}
}

// pickSome asks for a number of clusters, with terms.
func pickSome(n int32, required []placementv1beta1.ClusterSelectorTerm, preferred ...placementv1beta1.PreferredClusterSelector) placementOption {
	return func(p *placementv1beta1.PlacementSpec) {
		affinity := &placementv1beta1.ClusterAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		if len(required) > 0 {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = &placementv1beta1.ClusterSelector{ClusterSelectorTerms: required}
		}
		p.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(n), Affinity: &placementv1beta1.Affinity{ClusterAffinity: affinity},
		}
	}
}

func tolerating(tolerations ...placementv1beta1.Toleration) placementOption {
	return func(p *placementv1beta1.PlacementSpec) { p.Policy.Tolerations = tolerations }
}

// scores of a cluster that was picked.
type scores struct{ affinity, topology int }

// awaitPicked waits until just these clusters are picked, with these scores, and returns the placement.
func (s *spec) awaitPicked(want map[string]scores) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	return await(s, s.hub, s.placement(), fmt.Sprintf("to be on %v", want), func(p *placementv1beta1.ClusterResourcePlacement) error {
		picked := 0
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			score, ok := want[entry.ClusterName]
			if entry.ClusterName == "" {
				continue
			}
			sentence := fmt.Sprintf("Successfully scheduled resources for placement in %q (affinity score: %d, topology spread score: %d): picked by scheduling policy",
				entry.ClusterName, score.affinity, score.topology)
			said := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeScheduled)
			if !ok || said == nil || said.Message != sentence {
				return fmt.Errorf("%s: %v", entry.ClusterName, said)
			}
			picked++
		}
		if scheduled := meta.FindStatusCondition(p.Status.Conditions, ofPlacement("Scheduled")); scheduled == nil || scheduled.ObservedGeneration != p.Generation || scheduled.Status == metav1.ConditionUnknown {
			return fmt.Errorf("it is not scheduled yet")
		}
		if picked != len(want) {
			return fmt.Errorf("it is on %d clusters", picked)
		}
		return nil
	})
}

// awaitReason waits until the status of the latest policy snapshot says why a cluster is not picked.
func (s *spec) awaitReason(cluster, reason string) {
	s.Helper()
	awaitAll(s, s.hub, "to say why "+cluster+" is not picked", func(policies []*placementv1beta1.ClusterSchedulingPolicySnapshot) error {
		for _, policy := range policies {
			if policy.Labels[placementv1beta1.IsLatestSnapshotLabel] != "true" {
				continue
			}
			for _, decision := range policy.Status.ClusterDecisions {
				if decision.ClusterName == cluster && !decision.Selected && decision.Reason == reason {
					return nil
				}
			}
			return fmt.Errorf("%v", policy.Status.ClusterDecisions)
		}
		return fmt.Errorf("there is no policy snapshot")
	}, s.mine())
}

func (s *spec) resize(n int32) {
	s.Helper()
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.NumberOfClusters = &n })
}

// placementIsScheduledOtherwise takes one placement through what is otherwise than usual about scheduling.
func placementIsScheduledOtherwise(s *spec) {
	s.Cleanup(func() { s.unlabel(allMembers...) })
	says := func(step, reason string) {
		s.Helper()
		await(s, s.hub, s.placement(), "to say "+reason, func(p *placementv1beta1.ClusterResourcePlacement) error {
			said := meta.FindStatusCondition(p.Status.Conditions, ofPlacement(step))
			if said == nil || said.Reason != reason || said.ObservedGeneration != p.Generation {
				return fmt.Errorf("it says %+v", said)
			}
			return nil
		})
	}
	s.namespaceWithConfigMap()
	s.place(pickSome(1, nil, placementv1beta1.PreferredClusterSelector{Weight: 10, Preference: s.labelled()}), func(p *placementv1beta1.PlacementSpec) {
		p.RequiredOverrides = []placementv1beta1.RequiredOverride{{Name: s.name}}
	})
	says("Overridden", placementv1beta1.ReasonRequiredOverrideMissing)
	s.requireNoWorks()
	s.create(s.namespaceOverride(labelling("one").OverrideRules...))
	s.awaitValue(value1, "member-3")

	s.label("here", "member-1")
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Annotations[placementv1beta1.RescheduleAtAnnotation] = time.Now().UTC().Format(time.RFC3339)
	})
	s.awaitPicked(map[string]scores{"member-1": {10, 0}})
	s.awaitValue(value1, "member-1")
	s.awaitCleared("member-3")

	placed := update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.SchedulerName = "theirs" })
	says("Scheduled", placementv1beta1.ReasonWaitingForScheduler)
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-0"}}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKeyFromObject(policy), policy))
	before := policy.DeepCopy()
	policy.Status.ClusterDecisions = []placementv1beta1.ClusterDecision{{ClusterName: "member-2", Selected: true, Reason: "picked by theirs"}}
	policy.Status.ObservedCRPGeneration = placed.Generation
	require.NoError(s, s.hub.Status().Patch(s.Context(), policy, client.MergeFrom(before)))
	s.awaitValue(value1, "member-2")
	s.awaitCleared("member-1")
	says("Scheduled", placementv1beta1.ReasonSchedulingPolicyFulfilled)
}

func pickNSpreadsOverALabel(s *spec) {
	s.label("a", "member-2", "member-3")
	s.label("b", "member-1")
	s.Cleanup(func() { s.unlabel(allMembers...) })
	s.namespaceWithConfigMap()
	s.place(pickSome(2, nil), func(p *placementv1beta1.PlacementSpec) {
		p.Policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: s.key()}}
	})
	s.awaitPicked(map[string]scores{"member-3": {0, -1}, "member-1": {0, 1}})
	s.awaitReason("member-2", `Cluster "member-2" does not score high enough (affinity score: 0, topology spread score: -1)`)
	s.awaitValue(value1, "member-1", "member-3")
	s.resize(3)
	s.awaitPicked(map[string]scores{"member-3": {0, -1}, "member-1": {0, 1}, "member-2": {0, -1}})
	s.awaitValue(value1, allMembers...)

	s.resize(1)
	s.awaitPicked(map[string]scores{"member-1": {0, 1}})
	s.awaitCleared("member-2", "member-3")
}

func spreadKeepsClustersOutUntilGroupsChange(s *spec) {
	s.label("a", "member-2", "member-3")
	s.label("b", "member-1")
	s.Cleanup(func() { s.unlabel(allMembers...) })
	s.namespaceWithConfigMap()
	s.place(pickSome(2, []placementv1beta1.ClusterSelectorTerm{s.labelled("a")}), func(p *placementv1beta1.PlacementSpec) {
		p.Policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: s.key()}}
	})
	placed := s.awaitPicked(map[string]scores{"member-3": {0, -1}})
	reason := fmt.Sprintf("ClusterUnschedulable, violated doNotSchedule topology spread constraint %q (max skew 1)", s.key())
	s.awaitReason("member-2", reason)
	scheduled := meta.FindStatusCondition(placed.Status.Conditions, ofPlacement("Scheduled"))
	require.Contains(s, scheduled.Message, "1 of 2 clusters found: ", "the cause first")
	require.Contains(s, scheduled.Message, "TopologySpreadConstraints keeps 1 out")
	require.Contains(s, scheduled.Message, "(could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead)")
	require.Equal(s, "member-2 is not selected: "+reason, placed.Status.PerClusterPlacementStatuses[1].Conditions[0].Message)

	s.label("", "member-1") // one group is left: there is nothing to spread over
	s.awaitPicked(map[string]scores{"member-3": {0, -1}, "member-2": {0, 0}})
	s.awaitValue(value1, "member-2", "member-3")
}

func pickNPrefersAndKeepsWhatIsPicked(s *spec) {
	s.label("yes", "member-1")
	s.Cleanup(func() { s.unlabel(allMembers...) })
	s.namespaceWithConfigMap()
	s.place(pickSome(1, nil, placementv1beta1.PreferredClusterSelector{Weight: 20, Preference: s.labelled("yes")}))
	s.awaitPicked(map[string]scores{"member-1": {20, 0}})
	s.awaitReason("member-3", `Cluster "member-3" does not score high enough (affinity score: 0, topology spread score: 0)`)

	s.label("", "member-1")
	s.label("yes", "member-2")
	s.resize(2)
	s.awaitPicked(map[string]scores{"member-1": {20, 0}, "member-2": {20, 0}})
	s.awaitValue(value1, "member-1", "member-2")
	s.label("", "member-2")
	s.resize(1)
	s.awaitPicked(map[string]scores{"member-2": {20, 0}})
	s.awaitCleared("member-1")
}

// unlabel takes the spec's label from members when the spec is over.
func (s *spec) unlabel(names ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), printTimeout)
	defer cancel()
	for _, name := range names {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, s.key())
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.hub.Patch(ctx, member, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			s.Logf("taking the label from %s: %v", name, err)
		}
	}
}

func propertiesDecideWhoIsPicked(s *spec) {
	nodes := placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{
		MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
			{Name: string(clusterv1beta1.NodeCountProperty), Operator: placementv1beta1.PropertySelectorGreaterThanOrEqualTo, Values: []string{"3"}},
		},
	}}
	s.namespaceWithConfigMap()
	s.place(func(p *placementv1beta1.PlacementSpec) {
		p.Policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{nodes}},
		}}
	})
	placed := s.awaitPicked(nil)
	scheduled := meta.FindStatusCondition(placed.Status.Conditions, ofPlacement("Scheduled"))
	require.Equal(s, metav1.ConditionTrue, scheduled.Status, "picking all is always satisfied")
	s.awaitReason("member-1", "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms")

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "extra"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	member := s.member("member-1")
	require.NoError(s, member.Create(s.Context(), node))
	s.Cleanup(func() { _ = member.Delete(context.Background(), node) })
	s.awaitPicked(map[string]scores{"member-1": {}})
	s.awaitValue(value1, "member-1")

	sorted := newSpec(s.T)
	sorted.namespaceWithConfigMap()
	sorted.place(pickSome(2, nil, placementv1beta1.PreferredClusterSelector{Weight: 10, Preference: placementv1beta1.ClusterSelectorTerm{
		PropertySorter: &placementv1beta1.PropertySorter{Name: string(clusterv1beta1.NodeCountProperty), SortOrder: placementv1beta1.Descending},
	}}))
	sorted.awaitPicked(map[string]scores{"member-1": {10, 0}, "member-3": {}})
}

func taintsKeepNewPlacementsOff(s *spec) {
	s.taint("member-2", true)
	s.namespaceWithConfigMap()
	s.place()
	s.awaitPicked(map[string]scores{"member-1": {}, "member-3": {}})
	s.awaitReason("member-2", fmt.Sprintf("ClusterUnschedulable, taint %s=v:NoSchedule is not tolerated", s.key()))
	tolerant := newSpec(s.T)
	tolerant.namespaceWithConfigMap()
	tolerant.place(tolerating(placementv1beta1.Toleration{Key: s.key(), Operator: corev1.TolerationOpExists}))
	tolerant.awaitValue(value1, allMembers...)

	s.taint("member-2", false)
	s.awaitPicked(map[string]scores{"member-1": {}, "member-2": {}, "member-3": {}})
	s.awaitValue(value1, "member-2")
	s.taint("member-2", true)
	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	s.taint("member-2", false)
}

// taint puts the spec's taint on a member, or takes it away.
func (s *spec) taint(name string, on bool) {
	s.Helper()
	if on {
		s.taintWith(name, corev1.TaintEffectNoSchedule)
		return
	}
	s.taintWith(name)
}

// taintWith gives a member just the spec's taints with the effects.
func (s *spec) taintWith(name string, effects ...corev1.TaintEffect) {
	s.Helper()
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	update(s, s.hub, member, func(m *clusterv1beta1.MemberCluster) {
		m.Spec.Taints = nil
		for _, effect := range effects {
			m.Spec.Taints = append(m.Spec.Taints, clusterv1beta1.Taint{Key: s.key(), Value: "v", Effect: effect})
		}
	})
}

// affinityGroupsFollowEachOther has member-1 in a group before the others.
func affinityGroupsFollowEachOther(s *spec) {
	s.taint("member-1", true)
	s.namespaceWithConfigMap()
	s.place(pickSome(1, nil), func(p *placementv1beta1.PlacementSpec) {
		p.Policy.Failback = placementv1beta1.FailbackAutomatic
		p.Policy.FailbackAfterSeconds = new(int32(3))
		for name, clusters := range map[string][]string{"first": {"member-1"}, "second": {"member-2", "member-3"}} {
			p.Policy.AffinityGroups = append(p.Policy.AffinityGroups, placementv1beta1.AffinityGroup{
				Name: name, ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
					{LabelSelector: clusterv1beta1.SelectNames(clusters...)},
				}},
			})
		}
		slices.SortFunc(p.Policy.AffinityGroups, func(a, b placementv1beta1.AffinityGroup) int { return cmp.Compare(a.Name, b.Name) })
	})
	s.awaitScheduled(metav1.ConditionTrue, `found all cluster needed as specified by the scheduling policy, found 1 cluster(s), from affinity group "second"`)
	s.awaitReason("member-1", `ClusterUnschedulable, cluster is not in affinity group "second", from which clusters are picked`)
	s.awaitValue(value1, "member-3")
	s.requireNothingOn("member-1", "member-2")

	s.taint("member-1", false)
	s.awaitValue(value1, "member-1")
	s.awaitCleared("member-3")

	s.resize(3)
	s.awaitScheduled(metav1.ConditionFalse, `no affinity group has enough clusters, so that nothing is moved: "first" has 1 of 3; "second" has 2 of 3`)
	s.awaitValue(value1, "member-1")
	s.requireNothingOn("member-2", "member-3")

	s.resize(2)
	s.awaitValue(value1, "member-2", "member-3")
	s.awaitCleared("member-1")
	s.resize(1)
	s.awaitValue(value1, "member-1")
	s.awaitCleared("member-2", "member-3")
}

// placementsFailOver leaves the cluster for another when the seconds of a toleration are over, and stays where none can be picked.
func placementsFailOver(s *spec) {
	const tolerated = 4 * time.Second
	s.namespaceWithConfigMap()
	s.place(pickSome(1, nil), tolerating(placementv1beta1.Toleration{
		Key: s.key(), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(tolerated / time.Second)),
	}), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{}}}
	})
	s.awaitValue(value1, "member-3")
	s.awaitBound("member-3")
	began := time.Now()
	s.taintWith("member-3", corev1.TaintEffectNoExecute)
	s.awaitValue(value1, "member-2")
	took := time.Since(began)
	s.Logf("failed over %s after the taint, which is tolerated for %s", took.Round(time.Millisecond), tolerated)
	require.Greater(s, took, tolerated-time.Second, "times are kept in whole seconds")
	s.awaitCleared("member-3")

	s.taint("member-1", true)
	s.taintWith("member-2", corev1.TaintEffectNoExecute)
	s.awaitScheduled(metav1.ConditionFalse, fmt.Sprintf(" (could not find all clusters needed as specified by the scheduling policy, found 0 cluster(s) instead); no other cluster can be picked in "+
		"place of member-2 (its taint %s=v:NoExecute is not tolerated for longer than 4 s), so that what is placed there stays", s.key()))
	s.awaitValue(value1, "member-2")
	s.requireNothingOn("member-1", "member-3")

	s.taint("member-3", false)
	s.awaitValue(value1, "member-3")
	s.awaitCleared("member-2")
	s.taint("member-1", false)
	s.taint("member-2", false)
}

// applicationsFailOver takes the pods of a Deployment away and lets no node have new ones: the placement leaves the cluster when the
// toleration is over, and does not come back.
func applicationsFailOver(s *spec) {
	const tolerated = 4 * time.Second
	s.divisible(2)
	s.place(pickSome(1, nil), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{
			DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: new(int32(tolerated / time.Second))},
		}}}
	})
	s.awaitAvailable("0")
	s.cordon("member-3", true)
	defer s.cordon("member-3", false)
	began := time.Now()
	require.NoError(s, s.member("member-3").DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.name), client.GracePeriodSeconds(0)))
	await(s, s.member("member-2"), s.deployment(), "to be there", func(*appsv1.Deployment) error { return nil })
	placed := time.Since(began)
	s.awaitRunningOn("member-2", 2)
	s.Logf("placed elsewhere %s after the pods were gone, available there %s after; that is tolerated for %s",
		placed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), tolerated)
	require.Greater(s, placed, tolerated-time.Second, "times are kept in whole seconds")
	awaitGone(s, s.member("member-3"), s.deployment())

	s.cordon("member-3", false)
	s.cordon("member-2", true)
	defer s.cordon("member-2", false)
	s.taint("member-1", true)
	defer s.taint("member-1", false)
	require.NoError(s, s.member("member-2").DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.name), client.GracePeriodSeconds(0)))
	s.awaitScheduled(metav1.ConditionFalse, "no other cluster can be picked in place of member-2 (what is placed there has not been available for longer than 4 s), so that what is placed there stays")
	awaitGone(s, s.member("member-3"), s.deployment())
}

// replicasFailOver takes the pods of a divided Deployment away from one member, and puts a taint on another: the others take their replicas,
// and nothing comes back of itself.
func replicasFailOver(s *spec) {
	s.divisible(8)
	s.place(dividing(placementv1beta1.RebalanceNever, 1, 1, 2), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{
			Application: &placementv1beta1.ApplicationFailover{DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: new(int32(4))}},
			Cluster:     &placementv1beta1.ClusterFailover{},
		}}
	})
	s.awaitAvailable("0")
	s.awaitRunning(2, 2, 4)
	s.cordon("member-3", true)
	defer s.cordon("member-3", false)
	began := time.Now()
	require.NoError(s, s.member("member-3").DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.name), client.GracePeriodSeconds(0)))
	s.awaitRunning(4, 4, 0)
	s.Logf("replicas run elsewhere %s after the pods were gone, which is tolerated for 4 s", time.Since(began).Round(time.Millisecond))
	s.awaitScheduled(metav1.ConditionTrue, "; the placement fails over, and divides no replicas to member-3 (what is placed there has not been available for longer than 4 s)")

	s.cordon("member-3", false)
	s.awaitAvailable("0")
	s.scaleTo(10)
	s.awaitRunning(5, 5, 0) // an emptied workload is available wherever it is
	update(s, s.hub, s.deployment(), func(d *appsv1.Deployment) { d.Annotations = map[string]string{"version": "2"} })
	s.awaitAvailable("1")
	s.awaitBindings("to get replicas", func(b *placementv1beta1.ClusterResourceBinding) bool { return b.Spec.ClusterDecision.Withheld == nil })
	s.scaleTo(12)
	s.awaitRunning(5, 5, 2) // what is added counts for it again

	s.taintWith("member-1", corev1.TaintEffectNoExecute)
	s.awaitRunning(0, 5, 7)
	s.taint("member-1", false)
	s.awaitBindings("to get replicas", func(b *placementv1beta1.ClusterResourceBinding) bool { return b.Spec.ClusterDecision.Withheld == nil })
	s.scaleTo(13)
	s.awaitRunning(1, 5, 7)
}

// valuesOfTheStatusGoAlong has the status of a Deployment say how many pods there are: that is a label of the Deployment wherever the
// placement goes next. The cluster is left twice, and scaled in between.
func valuesOfTheStatusGoAlong(s *spec) {
	const alias = "state.example.com/replicas"
	s.divisible(2)
	s.place(pickSome(1, nil), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{
			PurgeMode: placementv1beta1.PurgeDirectly,
			StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{
				{AliasLabelName: alias, JSONPath: "{ .replicas }"}, {AliasLabelName: "state.example.com/conditions", JSONPath: "{.conditions}"},
			}},
		}}}
	})
	labelled := func(member, value string) *appsv1.Deployment {
		s.Helper()
		return await(s, s.member(member), s.deployment(), "to have the label "+value, func(d *appsv1.Deployment) error {
			if has := d.Labels[alias]; has != value {
				return fmt.Errorf("it is %q", has)
			}
			return nil
		})
	}
	reported := func(member, value string) {
		s.Helper()
		awaitAll(s, s.hub, "to say "+value, func(all []*placementv1beta1.Work) error {
			for _, work := range all {
				for _, said := range work.Status.ManifestConditions {
					if slices.ContainsFunc(said.StateValues, func(v placementv1beta1.StateValue) bool { return v.Value == value }) {
						return nil
					}
				}
			}
			return fmt.Errorf("%d Works do not", len(all))
		}, client.InNamespace(placementv1beta1.MemberNamespace(member)), s.mine())
	}
	s.awaitAvailable("0")
	labelled("member-3", "")
	reported("member-3", "2")
	s.taintWith("member-3", corev1.TaintEffectNoExecute)
	defer s.taint("member-3", false)
	labelled("member-2", "2")
	awaitGone(s, s.member("member-3"), s.deployment())
	s.awaitRunningOn("member-2", 2)

	s.scaleTo(3)
	s.awaitRunningOn("member-2", 3)
	labelled("member-2", "2")
	reported("member-2", "3")
	s.taintWith("member-2", corev1.TaintEffectNoExecute)
	defer s.taint("member-2", false)
	require.NotContains(s, labelled("member-1", "3").Labels, "state.example.com/conditions", "a list is no label")
	awaitGone(s, s.member("member-2"), s.deployment())
}

// awaitScheduled waits until the condition Scheduled ends with a message: what is counted before it changes with the fleet.
func (s *spec) awaitScheduled(status metav1.ConditionStatus, message string) {
	s.Helper()
	await(s, s.hub, s.placement(), "to say "+message, func(p *placementv1beta1.ClusterResourcePlacement) error {
		said := meta.FindStatusCondition(p.Status.Conditions, ofPlacement("Scheduled"))
		if said == nil || said.Status != status || !strings.HasSuffix(said.Message, message) || said.ObservedGeneration != p.Generation {
			return fmt.Errorf("%v", said)
		}
		return nil
	})
}

// clustersComeAndGo has a member that exists on the hub only; the spec reports in its place. Its taint keeps the
// placements of others off.
func clustersComeAndGo(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickSome(3, nil, placementv1beta1.PreferredClusterSelector{Weight: 50, Preference: placementv1beta1.ClusterSelectorTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{s.key(): "new"}},
	}}), tolerating(placementv1beta1.Toleration{Key: s.key(), Operator: corev1.TolerationOpExists}))
	s.awaitPicked(map[string]scores{"member-1": {}, "member-2": {}, "member-3": {}})
	s.resize(4)
	placed := s.awaitPicked(map[string]scores{"member-1": {}, "member-2": {}, "member-3": {}})
	require.Equal(s, "3 of 4 clusters found: the fleet has no more (could not find all clusters needed as specified by the scheduling policy, found 3 cluster(s) instead)",
		meta.FindStatusCondition(placed.Status.Conditions, ofPlacement("Scheduled")).Message)

	ghost := s.join()
	s.awaitPicked(map[string]scores{"member-1": {}, "member-2": {}, "member-3": {}, ghost.Name: {50, 0}})
	s.awaitBound(ghost.Name) // who still waits for its turn would be the first to leave
	s.resize(3)
	s.awaitPicked(map[string]scores{"member-2": {}, "member-3": {}, ghost.Name: {50, 0}})

	s.letGo(ghost)
	s.awaitPicked(map[string]scores{"member-1": {}, "member-2": {}, "member-3": {}})
	s.awaitValue(value1, allMembers...)
}

// awaitBound waits until a cluster has had its turn.
func (s *spec) awaitBound(cluster string) {
	s.Helper()
	awaitAll(s, s.hub, "to have "+cluster+" bound", func(all []*placementv1beta1.ClusterResourceBinding) error {
		for _, b := range all {
			if b.Spec.TargetCluster == cluster && b.Spec.State == placementv1beta1.BindingStateBound {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	}, s.mine())
}

// letGo deletes a member, and says in the place of its agent that it has left.
func (s *spec) letGo(ghost *clusterv1beta1.MemberCluster) {
	s.Helper()
	s.delete(s.hub, ghost)
	s.report(ghost.Name, metav1.ConditionFalse, clusterv1beta1.ReasonInternalMemberClusterLeft)
	awaitGone(s, s.hub, ghost)
}

// join makes a member that joins at once.
func (s *spec) join() *clusterv1beta1.MemberCluster {
	s.Helper()
	return s.joinAs(func(*clusterv1beta1.MemberCluster) {})
}

// joinAs makes a member that is somewhat different.
func (s *spec) joinAs(change func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
	s.Helper()
	ghost := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name + "-ghost", Labels: map[string]string{s.key(): "new"},
			Annotations: map[string]string{clusterv1beta1.KeepPlacedAnnotation: clusterv1beta1.KeepPlacedValue}, // nobody would remove it
		},
		Spec: clusterv1beta1.MemberClusterSpec{
			Identity: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.name},
			Taints:   []clusterv1beta1.Taint{{Key: s.key(), Value: "v", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	change(ghost)
	s.create(ghost)
	s.report(ghost.Name, metav1.ConditionTrue, clusterv1beta1.ReasonInternalMemberClusterJoined)
	return ghost
}

// report reports in the place of a member's agent that it has joined, or has not any more.
func (s *spec) report(name string, joined metav1.ConditionStatus, reason string) {
	s.Helper()
	box := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterv1beta1.MemberNamespace(name)}}
	state := clusterv1beta1.ClusterStateJoin
	if joined != metav1.ConditionTrue {
		state = clusterv1beta1.ClusterStateLeave
	}
	box = await(s, s.hub, box, "to be told to "+string(state), func(b *clusterv1beta1.InternalMemberCluster) error {
		if b.Spec.State != state {
			return fmt.Errorf("it is told to %s", b.Spec.State)
		}
		return nil
	})
	now := metav1.Now()
	agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now}
	for conditionType, status := range map[string]metav1.ConditionStatus{
		clusterv1beta1.ConditionTypeJoined: joined, clusterv1beta1.ConditionTypeHealthy: metav1.ConditionTrue,
	} {
		agent.Conditions = append(agent.Conditions, metav1.Condition{
			Type: conditionType, Status: status, Reason: reason, LastTransitionTime: now, ObservedGeneration: box.Generation,
		})
	}
	before := box.DeepCopy()
	box.Status.AgentStatus = []clusterv1beta1.AgentStatus{agent}
	require.NoError(s, s.hub.Status().Patch(s.Context(), box, client.MergeFrom(before)))
}
