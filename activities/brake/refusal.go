package brake

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Refusal returns what a cluster waits for whose binding the API server refuses to write: why, since when, and when that is tried
// again.
func Refusal(cluster, why string, since, nextTry time.Time) rollout.Wait {
	return rollout.Wait{
		Cluster: cluster, Kind: rollout.BrakeRefusal, Reason: placementv1beta1.ReasonRefused, Why: why, Since: since, Until: nextTry,
	}
}

// A refused write is tried again after as long as it has been refused, within these bounds. With many
// refused clusters, each is tried less often.
const (
	minRetryDelay        = time.Second
	maxRetryDelay        = 30 * time.Second
	retryDelayPerCluster = 50 * time.Millisecond
)

// refusalMemory is how long a refusal is remembered that is not tried again: its rollout has ended.
const refusalMemory = time.Hour

// Refusals has the clusters that this process could not write to when it last tried, of runs and of placements that are rolled out by
// themselves. What these report of it is for people and for other processes.
type Refusals struct {
	mu        sync.Mutex
	refusals  map[refusalKey]refusal
	lastPrune time.Time
}

// refusalKey names a cluster of a run or of a placement, by the UID of that.
type refusalKey struct {
	of      types.UID
	cluster string
}

// refusal is a refused write: what is waited for, and what was to be written where.
type refusal struct {
	rollout.Wait
	basis string
}

// Record notes that a write is refused, and why. The basis tells apart what was to be written where: of another one, the refusal says
// nothing.
func (r *Refusals) Record(of types.UID, cluster, basis, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusals == nil {
		r.refusals = map[refusalKey]refusal{}
	}
	if now.Sub(r.lastPrune) > refusalMemory {
		maps.DeleteFunc(r.refusals, func(_ refusalKey, of refusal) bool { return now.Sub(of.Until) > refusalMemory })
		r.lastPrune = now
	}
	key := refusalKey{of, cluster}
	since := now
	others := len(r.refusals)
	if last, known := r.refusals[key]; known {
		others--
		if last.basis == basis {
			since = last.Since
		}
	}
	most := maxRetryDelay + time.Duration(others)*retryDelayPerCluster
	r.refusals[key] = refusal{Refusal(cluster, why, since, now.Add(min(max(now.Sub(since), minRetryDelay), most))), basis}
}

// Learn notes a refusal that another process reports, unless this one knows as much.
func (r *Refusals) Learn(of types.UID, told rollout.Wait, basis string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := refusalKey{of, told.Cluster}
	if known, has := r.refusals[key]; has && !known.Until.Before(told.Until) {
		return
	}
	if r.refusals == nil {
		r.refusals = map[refusalKey]refusal{}
	}
	r.refusals[key] = refusal{told, basis}
}

// Of returns what a cluster waits for whose binding could not be written when that was last tried, and on which basis.
func (r *Refusals) Of(of types.UID, cluster string) (wait rollout.Wait, basis string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, refused := r.refusals[refusalKey{of, cluster}]
	return found.Wait, found.basis, refused
}

// Forget notes that a cluster could be written to, or is not to be written to any more.
func (r *Refusals) Forget(of types.UID, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refusals, refusalKey{of, cluster})
}

// RefusedWaits returns what the clusters of a placement wait for whose bindings cannot be written, as the placement tells.
func RefusedWaits(placement placementv1beta1.PlacementObject) map[string]rollout.Wait {
	waits := map[string]rollout.Wait{}
	for _, write := range rules.RefusedWritesOf(placement).Clusters {
		waits[write.Cluster] = Refusal(write.Cluster, write.Why, write.Since, time.Time{})
	}
	return waits
}
