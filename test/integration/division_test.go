//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// dividing divides the replicas of all workloads by weights of member-1, member-2 and member-3.
func dividing(rebalance placementv1beta1.ReplicaRebalance, weights ...int32) placementOption {
	rule := placementv1beta1.ReplicaSchedulingRule{Type: placementv1beta1.ReplicasDivided, Rebalance: rebalance}
	for i, weight := range weights {
		rule.Clusters = append(rule.Clusters, placementv1beta1.ClusterReplicas{
			ClusterSelector: placementv1beta1.ReplicaClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterLabelTerm{{
				ClusterNameFilter: placementv1beta1.ClusterNameFilter{ClusterNames: []string{allMembers[i]}},
			}}},
			Weight: new(weight),
		})
	}
	return func(p *placementv1beta1.PlacementSpec) {
		p.Policy.ReplicaScheduling = []placementv1beta1.ReplicaSchedulingRule{rule}
	}
}

// divisible creates the namespace with a Deployment of so many replicas.
func (s *spec) divisible(replicas int32) {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	deployment := s.deployment()
	deployment.Spec.Replicas = new(replicas)
	s.create(deployment)
}

// scaleTo scales the Deployment on the hub.
func (s *spec) scaleTo(replicas int32) {
	s.Helper()
	update(s, s.hub, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = new(replicas) })
}

// awaitRunning waits until so many replicas are available on each member.
func (s *spec) awaitRunning(replicas ...int32) {
	s.Helper()
	for i, want := range replicas {
		s.awaitRunningOn(allMembers[i], want)
	}
}

// awaitRunningOn waits until so many replicas are available on a member.
func (s *spec) awaitRunningOn(name string, want int32) {
	s.Helper()
	await(s, s.member(name), s.deployment(), fmt.Sprintf("to run %d replicas", want), func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != want || d.Status.AvailableReplicas != want || d.Status.Replicas != want {
			return fmt.Errorf("%d of %d are available", d.Status.AvailableReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// requireScaledOnly asserts that, as was recorded, no cluster was given another version, and none was told to be unavailable.
func (s *spec) requireScaledOnly(bindings *recording, version string) {
	s.Helper()
	s.awaitBindings("to be available with what is in force", func(b *placementv1beta1.ClusterResourceBinding) bool {
		said := meta.FindStatusCondition(b.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
		return said != nil && said.Reason == placementv1beta1.ReasonAllWorkAreAvailable && said.ObservedGeneration == b.Generation
	})
	for _, c := range bindings.soFar() {
		b, ok := c.object.(*placementv1beta1.ClusterResourceBinding)
		if !ok {
			continue
		}
		assert.Equal(s, version, b.Spec.ResourceSnapshotName)
		said := meta.FindStatusCondition(b.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
		require.NotNil(s, said, "%s: %v", b.Spec.TargetCluster, b.Status.Conditions)
		assert.Equal(s, metav1.ConditionTrue, said.Status, "%s: %s", b.Spec.TargetCluster, said.Message)
	}
}

// dividedDeploymentIsScaled divides a Deployment over all members and scales it on the hub: no cluster gets another version.
func dividedDeploymentIsScaled(s *spec) {
	s.divisible(10)
	s.place(dividing(placementv1beta1.RebalanceNever, 1, 2, 2))
	s.awaitAvailable("0")
	s.awaitRunning(2, 4, 4)
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	since := time.Now()
	s.scaleTo(40)
	s.awaitRunning(8, 16, 16)
	s.Logf("10 replicas were 40 after %s", time.Since(since).Round(time.Millisecond))
	s.requireScaledOnly(bindings, s.name+"-0-snapshot")
	s.scaleTo(5)
	s.awaitRunning(1, 2, 2)
	s.requireScaledOnly(bindings, s.name+"-0-snapshot")
	s.awaitAvailable("0")
}

// dividedDeploymentIsScaledUnderExternal scales while no update run is there: it is no business of runs.
func dividedDeploymentIsScaledUnderExternal(s *spec) {
	s.divisible(10)
	s.strategy(everywhere())
	s.place(external, dividing(placementv1beta1.RebalanceNever, 1, 2, 2))
	s.awaitIndex("0")
	s.awaitSucceeded(s.startRun("first", "0"))
	s.awaitRunning(2, 4, 4)
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	since := time.Now()
	s.scaleTo(40)
	s.awaitRunning(8, 16, 16)
	s.Logf("10 replicas were 40 after %s", time.Since(since).Round(time.Millisecond))
	s.requireScaledOnly(bindings, s.name+"-0-snapshot")
}

// replicasMoveWithoutMissingAny moves replicas from one cluster to others by other weights: those grow first.
func replicasMoveWithoutMissingAny(s *spec) {
	s.divisible(10)
	placement := s.place(dividing(placementv1beta1.RebalanceAlways, 3, 1, 1))
	s.awaitAvailable("0")
	s.awaitRunning(6, 2, 2)
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	update(s, s.hub, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
		dividing(placementv1beta1.RebalanceAlways, 1, 2, 2)(&p.Spec)
	})
	s.awaitRunning(2, 4, 4)
	s.requireScaledOnly(bindings, s.name+"-0-snapshot")
	inForce := map[string]int32{allMembers[0]: 6, allMembers[1]: 2, allMembers[2]: 2}
	var written []string
	for _, c := range bindings.soFar() {
		b, ok := c.object.(*placementv1beta1.ClusterResourceBinding)
		if !ok || b.Spec.ReplicaAssignments[0].Replicas == inForce[b.Spec.TargetCluster] {
			continue
		}
		inForce[b.Spec.TargetCluster] = b.Spec.ReplicaAssignments[0].Replicas
		written = append(written, fmt.Sprintf("%s %d", b.Spec.TargetCluster, b.Spec.ReplicaAssignments[0].Replicas))
		total := int32(0)
		for _, replicas := range inForce {
			total += replicas
		}
		assert.GreaterOrEqual(s, total, int32(10), "after %v", written)
	}
	require.Len(s, written, 3)
	assert.Equal(s, allMembers[0]+" 2", written[2], "the one that shrinks is the last")
}

// aggregating puts the replicas of all workloads on as few clusters as have room for them.
func aggregating(p *placementv1beta1.PlacementSpec) {
	p.Policy.ReplicaScheduling = []placementv1beta1.ReplicaSchedulingRule{{Division: placementv1beta1.DivisionAggregated}}
}

// awaitAssigned waits until so many clusters are given as many replicas as there are, and run them.
func (s *spec) awaitAssigned(total, clusters int32) {
	s.Helper()
	var each []int32
	awaitAll(s, s.hub, "to be given their shares", func(all []*placementv1beta1.ClusterResourceBinding) error {
		each = make([]int32, len(allMembers))
		sum := int32(0)
		some := int32(0)
		for _, b := range all {
			for _, a := range b.Spec.ReplicaAssignments {
				each[slices.Index(allMembers, b.Spec.TargetCluster)] = a.Replicas
				sum += a.Replicas
				if a.Replicas > 0 {
					some++
				}
			}
		}
		if sum != total || some != clusters {
			return fmt.Errorf("they have %v", each)
		}
		return nil
	}, s.mine())
	s.awaitRunning(each...)
}

// replicasGoWhereThereIsRoom aggregates a Deployment whose pods request a quarter of a node, until there is no room.
func replicasGoWhereThereIsRoom(s *spec) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	deployment := s.deployment()
	deployment.Spec.Replicas = new(int32(5))
	deployment.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	s.create(deployment)
	s.place(aggregating)
	s.awaitAssigned(5, 1)
	s.scaleTo(10)
	s.awaitAssigned(10, 2)
	s.scaleTo(40)
	await(s, s.hub, s.placement(), "to say that there is no room", func(p *placementv1beta1.ClusterResourcePlacement) error {
		said := meta.FindStatusCondition(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeScheduled))
		if said == nil || said.Reason != placementv1beta1.ReasonReplicasUnplaced || !strings.Contains(said.Message, "30 more replicas of apps/Deployment") {
			return fmt.Errorf("it says %v", said)
		}
		return nil
	})
	s.awaitAssigned(10, 2)
	s.scaleTo(5)
	s.awaitAssigned(5, 1)
}

// whatNoNodeTakesRunsElsewhere lets no node of member-3 take the pods of a Deployment: after a minute they run elsewhere.
func whatNoNodeTakesRunsElsewhere(s *spec) {
	s.divisible(9)
	on3 := &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "canary", "order": "1"}}
	s.create(&placementv1beta1.ResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.name},
		Spec: placementv1beta1.ResourceOverrideSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: s.deployment().Name}},
			Policy: placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{
				patching(on3, placementv1beta1.JSONPatchOverrideOpAdd, "/spec/template/spec/nodeSelector", `{"disk": "none"}`),
			}},
		},
	})
	s.place(dividing(placementv1beta1.RebalanceNever, 1, 1, 1))
	since := time.Now()
	learnt := func() bool {
		list := &placementv1beta1.ClusterResourceBindingList{}
		return s.hub.List(s.Context(), list, s.mine()) == nil && slices.ContainsFunc(list.Items, func(b placementv1beta1.ClusterResourceBinding) bool {
			assigned := b.Spec.ClusterDecision.Assignments
			return b.Spec.TargetCluster == allMembers[2] && len(assigned) == 1 && assigned[0].Capacity != nil && *assigned[0].Capacity == 0
		})
	}
	require.Eventually(s, learnt, 2*time.Minute, lookEvery, "no node of %s takes its pods", allMembers[2])
	s.Logf("it was learnt after %s that no node takes the pods", time.Since(since).Round(time.Second))
	s.awaitAssigned(9, 2)
	s.awaitAvailable("0")
}
