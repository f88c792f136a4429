package scheduler

import (
	"slices"
	"time"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// target is a picked cluster.
type target struct {
	cluster string
	// member is the cluster; nil if it is not in the fleet.
	member *clusterv1beta1.MemberCluster
	labels map[string]string
	// before are the assignments that its binding has, in the order of workloads.
	before []placementv1beta1.ReplicaAssignment
	// returned says that the cluster had been let go, so that its replicas were given to others.
	returned bool
	// withheld says why the cluster gets no replicas, if it does not; withheldBefore says that it got none before.
	withheld       *placementv1beta1.WithheldReplicas
	withheldBefore bool
	// short are the workloads of which the member tells that no node takes some of the pods.
	short map[rules.Workload]placementv1beta1.ReplicaStatus
	// room is what the cluster has left, if that counts.
	room room
	// tier is the place of the group that the cluster is in, if groups overflow.
	tier int
}

// findBefore finds what a cluster was assigned of a workload before; nil if nothing.
func (t *target) findBefore(workload rules.Workload) *placementv1beta1.ReplicaAssignment {
	at, found := slices.BinarySearchFunc(t.before, workload, func(one placementv1beta1.ReplicaAssignment,
		wanted rules.Workload) int {
		return rules.AssignedWorkload(&one).Compare(wanted)
	})
	if !found {
		return nil
	}
	return &t.before[at]
}

// findNoted finds what was noted of a workload when it was divided last by the room that clusters have; nil if it was not.
func (t *target) findNoted(workload rules.Workload) *placementv1beta1.ReplicaAssignment {
	if before := t.findBefore(workload); before != nil && before.Free != nil && !t.returned {
		return before
	}
	return nil
}

// noteRoom notes with an assignment what a later decision has to know: the room that there was, and when replicas were added. Where
// nothing is moved, everything stays as it was noted.
func (t *target) noteRoom(assignment *placementv1beta1.ReplicaAssignment, demand *rules.ReplicaDemand, s *share, moved bool,
	now time.Time) {
	before := t.findNoted(demand.Workload)
	if before != nil && !moved {
		assignment.Reason = before.Reason
		assignment.Free = before.Free
		assignment.Grown = before.Grown
		assignment.GrownAt = before.GrownAt
		return
	}
	assignment.Free = new(int32(s.free)) //nolint:gosec // it is bounded
	if added := s.seats - s.current; added > 0 {
		assignment.Grown = int32(added + t.room.inFlight(before))
		assignment.GrownAt = timeOf(now) //nolint:gosec // it is a part of the total
	} else if left := t.room.inFlight(before) + added; left > 0 {
		assignment.Grown = int32(left)
		assignment.GrownAt = before.GrownAt //nolint:gosec // it is a part of the total
	}
}

// limitOf works out the limit of a workload on a cluster: what the member reports now, or else what was learnt before and not
// forgotten. It is nil if there is none, and otherwise has nothing but Capacity, CapacityAt and CapacityFree.
func (t *target) limitOf(demand *rules.ReplicaDemand, now time.Time) *placementv1beta1.ReplicaAssignment {
	before := t.findBefore(demand.Workload)
	free := t.room.countFree(demand.Requests)
	if t.returned || before != nil && before.Capacity == nil {
		before = nil
	}
	replicas, learnt := learnLimit(t.short[demand.Workload])
	switch {
	case before != nil && (!learnt || *before.Capacity == replicas) && !t.forgets(before, demand, free, now, learnt):
		return &placementv1beta1.ReplicaAssignment{Capacity: before.Capacity, CapacityAt: before.CapacityAt, CapacityFree: before.CapacityFree}
	case learnt:
		return &placementv1beta1.ReplicaAssignment{Capacity: &replicas, CapacityAt: timeOf(now), CapacityFree: int32(free)} //nolint:gosec // it is bounded
	}
	return nil
}

// forgets reports whether a limit is to be forgotten: the cluster reports room for more than when it was learnt, or of pods without
// requests, of which no report tells, it was learnt long ago. While the member reports pods that no node takes, it stays.
func (t *target) forgets(before *placementv1beta1.ReplicaAssignment, demand *rules.ReplicaDemand, free int64, now time.Time,
	stillShort bool) bool {
	if len(demand.Requests) == 0 {
		return before.CapacityAt == nil || !now.Before(before.CapacityAt.Add(limitForgottenAfter))
	}
	if stillShort || t.room.available == nil || before.CapacityAt != nil && !t.room.observed.After(before.CapacityAt.Time) {
		return false
	}
	return int64(min(before.Replicas, *before.Capacity))+free > int64(*before.Capacity)+int64(before.CapacityFree)
}
