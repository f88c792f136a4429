package workmodel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func decided(assignments ...placementv1beta1.ReplicaAssignment) func(*placementv1beta1.ClusterResourceBinding) {
	return func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ClusterDecision.Assignments = assignments }
}

// cluster is a cluster with a Deployment of which so many pods are reported.
func cluster(t *testing.T, name string, ready int32, change ...func(*placementv1beta1.ClusterResourceBinding)) DividedCluster {
	t.Helper()
	b := binding(append(change, func(b *placementv1beta1.ClusterResourceBinding) {
		b.Name = name
		b.UID = "uid-of-" + b.UID
		b.Spec.TargetCluster = name
	})...)
	c := DividedCluster{Binding: b}
	if b.Spec.ResourceSnapshotName != "" {
		work := single(t, b)
		work.Generation = 1
		count(&work, max(ready, 1), ready)
		c.Works = []placementv1beta1.Work{work}
	}
	return c
}

func notPlaced(b *placementv1beta1.ClusterResourceBinding) {
	b.Spec.State = placementv1beta1.BindingStateScheduled
	b.Spec.ResourceSnapshotName = ""
}

func unscheduled(b *placementv1beta1.ClusterResourceBinding) {
	b.Spec.State = placementv1beta1.BindingStateUnscheduled
}

func frozen(c DividedCluster) DividedCluster {
	c.Frozen = true
	return c
}

func TestNextAssignments(t *testing.T) {
	const latest = "crp-1-5-snapshot"
	of := func(replicas int32) placementv1beta1.ReplicaAssignment {
		return assigned("Deployment", "front", replicas)
	}
	for name, tc := range map[string]struct {
		clusters []DividedCluster
		want     []string
	}{
		"what is in force stays": {
			clusters: []DividedCluster{cluster(t, "a", 4, decided(of(4)), inForce(of(4)))},
		},
		"a placement without division is left alone": {
			clusters: []DividedCluster{cluster(t, "a", 4), cluster(t, "b", 0, notPlaced)},
		},
		"growth comes first": {
			clusters: []DividedCluster{cluster(t, "a", 8, decided(of(4)), inForce(of(8))), cluster(t, "b", 2, decided(of(6)), inForce(of(2)))},
			want:     []string{"b: front 6"},
		},
		"then the other shrinks": {
			clusters: []DividedCluster{cluster(t, "a", 8, decided(of(4)), inForce(of(8))), cluster(t, "b", 6, decided(of(6)), inForce(of(6)))},
			want:     []string{"a: front 4 (shrinks)"},
		},
		"a cluster that waits for its first version is waited for": {
			clusters: []DividedCluster{cluster(t, "a", 10, decided(of(4)), inForce(of(10))), cluster(t, "b", 0, decided(of(6)), notPlaced)},
		},
		"a cluster that leaves counts for nothing": {
			clusters: []DividedCluster{cluster(t, "a", 6, decided(of(10)), inForce(of(6))), cluster(t, "b", 4, inForce(of(4)), unscheduled)},
			want:     []string{"a: front 10"},
		},
		"nothing is written for a suspended cluster": {
			clusters: []DividedCluster{frozen(cluster(t, "a", 4, decided(of(9)), inForce(of(4))))},
		},
		"a workload that was not divided before gets its share at once": {
			clusters: []DividedCluster{cluster(t, "a", 0, decided(of(0))), cluster(t, "b", 0, decided(of(10)))},
			want:     []string{"a: front 0", "b: front 10"},
		},
		"what is divided no more goes with the latest snapshot": {
			clusters: []DividedCluster{cluster(t, "a", 4, inForce(of(4)))},
			want:     []string{"a: "},
		},
		"an emptied cluster drops the workload once the others are ready": {
			clusters: []DividedCluster{cluster(t, "a", 4, decided(assigned("Deployment", "front", 0, dropped)), inForce(of(4))), cluster(t, "b", 8, decided(of(8)), inForce(of(8)))},
			want:     []string{"a: front 0 dropped (shrinks)"},
		},
		"a cluster whose differences are only reported keeps no other waiting": {
			clusters: []DividedCluster{cluster(t, "a", 0, decided(of(4)), inForce(of(8)), reportDiff), cluster(t, "b", 0, decided(of(6)), inForce(of(6)), reportDiff)},
			want:     []string{"a: front 4 (shrinks)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			for _, change := range NextAssignments(tc.clusters, latest) {
				text := change.Binding.GetName() + ": "
				for _, a := range change.Assignments {
					text += fmt.Sprintf("%s %d", a.Name, a.Replicas)
					if a.Dropped {
						text += " dropped"
					}
				}
				if change.Shrinks {
					text += " (shrinks)"
				}
				told = append(told, text)
				require.True(t, HasPendingAssignments(change.Binding, latest), "it is known before reports are read")
			}
			assert.Equal(t, tc.want, told)
		})
	}
}

func TestReportsBeforeAChangeDoNotCount(t *testing.T) {
	of := func(replicas int32) placementv1beta1.ReplicaAssignment {
		return assigned("Deployment", "front", replicas)
	}
	waiting := cluster(t, "a", 8, decided(of(4)), inForce(of(8)))
	grown := cluster(t, "b", 6, decided(of(6)), inForce(of(6)))
	grown.Works[0].Generation++
	assert.Empty(t, NextAssignments([]DividedCluster{waiting, grown}, ""), "its member has not seen the present Work")
	before := grown.Works[0]
	after := *before.DeepCopy()
	for i := range after.Status.Conditions {
		after.Status.Conditions[i].ObservedGeneration = after.Generation
	}
	assert.True(t, ReplicasReportedSince(&before, &after), "this wakes the placement")
	assert.False(t, ReplicasReportedSince(&after, after.DeepCopy()))
	short := after.DeepCopy()
	short.Status.ManifestConditions[0].ReplicaStatus.Unschedulable = 1
	assert.True(t, ReplicasReportedSince(&after, short), "this tells how much room there is")
	assert.True(t, HasUnschedulable(short))
	assert.False(t, HasUnschedulable(&after))
	grown.Works[0] = after
	assert.Len(t, NextAssignments([]DividedCluster{waiting, grown}, ""), 1)
}

func TestAVersionBringsAssignments(t *testing.T) {
	of := func(replicas int32) placementv1beta1.ReplicaAssignment {
		return assigned("Deployment", "front", replicas)
	}
	other := assigned("Deployment", "back", 3)
	first := binding(decided(of(4), other), notPlaced)
	assert.Equal(t, []placementv1beta1.ReplicaAssignment{other, of(4)}, AssignmentsWithVersion(&first.Spec, "crp-1-5-snapshot"), "a new cluster begins with what is decided")
	next := binding(decided(of(4), other), inForce(of(9)))
	assert.Equal(t, []placementv1beta1.ReplicaAssignment{other, of(9)}, AssignmentsWithVersion(&next.Spec, "crp-1-6-snapshot"), "of what is there already, a version changes nothing")
	ended := binding(inForce(of(9)))
	assert.Empty(t, AssignmentsWithVersion(&ended.Spec, "crp-1-6-snapshot"))
	assert.Equal(t, []placementv1beta1.ReplicaAssignment{of(9)}, AssignmentsWithVersion(&ended.Spec, "crp-1-5-snapshot"))
}

func TestWhatTheNextDecisionHasToKnowIsNoMatterOfTheCluster(t *testing.T) {
	noted := assigned("Deployment", "front", 4)
	plain := noted
	noted.Free = new(int32(9))
	noted.Grown = 2
	noted.GrownAt = &metav1.Time{}
	noted.Capacity = new(int32(4))
	noted.CapacityAt = &metav1.Time{}
	noted.CapacityFree = 1
	assert.Empty(t, NextAssignments([]DividedCluster{cluster(t, "a", 4, decided(noted), inForce(plain))}, ""))
	first := binding(decided(noted), notPlaced)
	assert.Equal(t, []placementv1beta1.ReplicaAssignment{plain}, AssignmentsWithVersion(&first.Spec, "crp-1-5-snapshot"))
	grows := NextAssignments([]DividedCluster{cluster(t, "a", 3, decided(noted), inForce(assigned("Deployment", "front", 3)))}, "")
	require.Len(t, grows, 1)
	assert.Equal(t, []placementv1beta1.ReplicaAssignment{plain}, grows[0].Assignments)
}
