package rollingupdate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func shareOf(replicas int32) []placementv1beta1.ReplicaAssignment {
	return []placementv1beta1.ReplicaAssignment{{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front", Replicas: replicas, Reason: "weight 1 of 2"}}
}

func dividing(b *placementv1beta1.ClusterResourceBinding, decided, inForce int32) *placementv1beta1.ClusterResourceBinding {
	b.Spec.ClusterDecision.Assignments = shareOf(decided)
	if b.Spec.ResourceSnapshotName != "" {
		b.Spec.ReplicaAssignments = shareOf(inForce)
	}
	return b
}

// scale brings replicas into force once and tells what every cluster has then.
func (r *rollout) scale(clusters ...string) []string {
	r.t.Helper()
	_, err := r.rolling.ScaleReplicas(r.t.Context(), wf.ScaleRequest{Placement: ref, Snapshot: newSnapshot})
	require.NoError(r.t, err)
	return r.inForce(clusters...)
}

func (r *rollout) inForce(clusters ...string) (told []string) {
	r.t.Helper()
	for _, cluster := range clusters {
		text := cluster + ":"
		for _, a := range r.binding(cluster).Spec.ReplicaAssignments {
			text += fmt.Sprint(" ", a.Replicas)
		}
		told = append(told, text)
	}
	return told
}

// countReady is the report of a member on its pods, which are all that are asked for.
func (r *rollout) countReady(cluster string, ready int32) {
	r.t.Helper()
	r.count(cluster, ready, ready)
	r.report(cluster, "True")
}

// count lets a member count its pods.
func (r *rollout) count(cluster string, replicas, ready int32) {
	r.t.Helper()
	work := &placementv1beta1.Work{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Namespace: "fleet-member-" + cluster, Name: "crp-work"}, work))
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier:    placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
		ReplicaStatus: &placementv1beta1.ReplicaStatus{Replicas: replicas, Ready: ready},
	}}
	require.NoError(r.t, r.Status().Update(r.t.Context(), work))
}

func newScaling(t *testing.T, bindings ...*placementv1beta1.ClusterResourceBinding) *rollout {
	t.Helper()
	r := newRollout(t, bindings...)
	for _, b := range bindings {
		member := &clusterv1beta1.MemberCluster{}
		member.Name = b.Spec.TargetCluster
		require.NoError(t, r.Create(t.Context(), member))
	}
	return r
}

func TestGrowthIsWrittenFirstAndFewerReplicasOnceOthersAreReady(t *testing.T) {
	r := newScaling(t, dividing(bound("a", newSnapshot), 2, 8), dividing(bound("b", newSnapshot), 8, 2), dividing(scheduled("c"), 0, 0))
	r.countReady("a", 8)
	r.countReady("b", 2)
	assert.Equal(t, []string{"a: 8", "b: 8", "c:"}, r.scale("a", "b", "c"), "c gets its share with its first version")
	version := r.binding("b").ResourceVersion
	assert.Equal(t, []string{"a: 8", "b: 8", "c:"}, r.scale("a", "b", "c"))
	assert.Equal(t, version, r.binding("b").ResourceVersion, "nothing is written if nothing changes")
	r.countReady("b", 7)
	assert.Equal(t, []string{"a: 8", "b: 8", "c:"}, r.scale("a", "b", "c"))
	r.countReady("b", 8)
	assert.Equal(t, []string{"a: 2", "b: 8", "c:"}, r.scale("a", "b", "c"))
}

func TestASuspendedClusterIsNotScaled(t *testing.T) {
	r := newScaling(t, dividing(bound("a", newSnapshot), 9, 2))
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Suspension: &placementv1beta1.Suspension{ClusterNames: []string{"a"}}}
	})
	assert.Equal(t, []string{"a: 2"}, r.scale("a"))
}

func TestWithoutRequiredOverridesNothingIsScaled(t *testing.T) {
	r := newScaling(t, dividing(bound("a", newSnapshot), 9, 2))
	lack := func(overrides ...string) {
		r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
			verdict := snapshot.Verdict{Generation: p.Generation, Snapshot: newSnapshot, OverridesLacking: overrides}
			p.Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: verdict.Encode()}
		})
	}
	lack("ClusterResourceOverride made")
	assert.Equal(t, []string{"a: 2"}, r.scale("a"))
	lack()
	assert.Equal(t, []string{"a: 9"}, r.scale("a"))
}

func TestAClusterThatLeavesTheFleetIsNotScaled(t *testing.T) {
	r := newScaling(t, dividing(bound("a", newSnapshot), 9, 2))
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: "a"}, member))
	require.NoError(t, r.Delete(t.Context(), member))
	assert.Equal(t, []string{"a: 2"}, r.scale("a"))
}

func TestAFirstVersionBringsTheShareOfTheCluster(t *testing.T) {
	r := newScaling(t, dividing(scheduled("a"), 5, 0))
	first := r.advance(wf.AdvanceRequest{})
	r.advance(wf.AdvanceRequest{Batch: first.Next, Epoch: first.Epoch, Basis: first.Basis})
	assert.Equal(t, newSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Equal(t, []string{"a: 5"}, r.inForce("a"))
}
