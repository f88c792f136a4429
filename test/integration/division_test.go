//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
		await(s, s.member(allMembers[i]), s.deployment(), fmt.Sprintf("to run %d replicas", want), func(d *appsv1.Deployment) error {
			if *d.Spec.Replicas != want || d.Status.AvailableReplicas != want || d.Status.Replicas != want {
				return fmt.Errorf("%d of %d are available", d.Status.AvailableReplicas, *d.Spec.Replicas)
			}
			return nil
		})
	}
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
