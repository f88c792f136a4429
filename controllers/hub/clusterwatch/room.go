package clusterwatch

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// followRoomAfter is how long replicas that follow the room of clusters stay where they are at least.
	followRoomAfter = time.Minute
	// firstRetry and lastRetry bound how long a placement waits that was woken since there is more room, which was not enough.
	firstRetry, lastRetry = 15 * time.Second, 5 * time.Minute
)

// roomMemory is what was seen of the room that the clusters of one placement have. It is lost with the process; then the placement
// is woken once when one of its clusters reports something else.
type roomMemory struct {
	clusters map[string]*seenRoom
	// wakes counts how often the placement was woken, owed says that it is to be woken at the time next.
	wakes int
	owed  bool
	next  time.Time
	// retry is how long the placement waits after a wake-up that changed nothing.
	retry time.Duration
}

// seenRoom is for how many more pods a cluster had room: base when the placement was last woken, last at its last report.
type seenRoom struct {
	base, last []int64
	wakes      int
}

// see takes note of the room that a cluster has, and says whether there is less or more than when the placement was last woken. What is
// not known is taken to have changed.
func (m *roomMemory) see(cluster string, free []int64) (changed, grown bool) {
	seen := m.clusters[cluster]
	if seen == nil || len(seen.last) != len(free) {
		m.clusters[cluster] = &seenRoom{base: free, last: free, wakes: m.wakes}
		return true, true
	}
	if seen.wakes != m.wakes {
		seen.base = seen.last
		seen.wakes = m.wakes
	}
	seen.last = free
	for i := range free {
		grown = grown || free[i] > seen.base[i]
	}
	return !slices.Equal(free, seen.base), grown
}

// pace reports whether a placement for which room has changed is to be woken now, or else after what time.
func (m *roomMemory) pace(follows, waits bool, now time.Time) (wake bool, after time.Duration) {
	if now.Before(m.next) {
		m.owed = true
		return false, m.next.Sub(now)
	}
	if waits {
		m.retry = min(lastRetry, max(firstRetry, 2*m.retry))
	}
	pause := m.retry
	if follows {
		pause = max(pause, followRoomAfter)
	}
	m.wakes = m.wakes + 1
	m.owed = false
	m.next = now.Add(pause)
	return true, 0
}

// wantsRoom reports whether a placement would divide replicas differently because one of its clusters has other room for pods, or after
// what time it is to be asked again: replicas that follow the room move at most once a minute, and those that wait for room
// are tried again ever less often. Nothing but this cluster is looked at.
func (r *Reconciler) wantsRoom(ctx context.Context, placement placementv1beta1.PlacementObject, stake Stake,
	cluster *clusterv1beta1.MemberCluster) (wake bool, after time.Duration, err error) {
	if !stake.Bound || cluster == nil {
		return false, 0, nil
	}
	policy, err := r.latestPolicyOf(ctx, placement)
	if err != nil {
		return false, 0, err
	}
	now := r.clock.Now()
	free := scheduler.CountFree(cluster, scheduler.StateOf(policy).Requests, now)
	if len(free) == 0 {
		return false, 0, nil // no room counts
	}
	told := meta.FindStatusCondition(policy.GetPolicySnapshotStatus().Conditions, placementv1beta1.ConditionTypeScheduled)
	follows := scheduler.FollowsRoom(placement.GetPlacementSpec().Policy)
	waits := stake.Limited || told != nil && told.Reason == placementv1beta1.ReasonReplicasUnplaced
	memory := r.roomMemoryOf(placement.GetUID())
	changed, grown := memory.see(cluster.Name, free)
	if !waits {
		memory.retry = 0
	}
	memory.owed = memory.owed && (follows || waits)
	if (!follows || !changed) && (!waits || !grown) && !memory.owed {
		return false, 0, nil
	}
	wake, after = memory.pace(follows, waits, now)
	return wake, after, nil
}

// roomMemoryOf returns what was seen of the room that the clusters of a placement have.
func (r *Reconciler) roomMemoryOf(placement types.UID) *roomMemory {
	if known, ok := r.rooms.Get(placement); ok {
		return known.(*roomMemory)
	}
	memory := &roomMemory{clusters: map[string]*seenRoom{}}
	r.rooms.Add(placement, memory)
	return memory
}
