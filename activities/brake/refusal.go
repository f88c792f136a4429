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
// refused clusters of one placement or run, each is tried less often, and several are tried together: at the next tick.
const (
	minRetryDelay        = time.Second
	maxRetryDelay        = 30 * time.Second
	retryDelayPerCluster = 50 * time.Millisecond
	retryTick            = 5 * time.Second
)

// longestDelay returns for how long a write is not tried again at most if those of so many others are refused.
func longestDelay(others int) time.Duration {
	return maxRetryDelay + time.Duration(others)*retryDelayPerCluster
}

// nextTick returns when a write is tried again that has to wait for some time: no sooner, and at a tick if that is no long delay.
func nextTick(now time.Time, delay time.Duration) time.Time {
	at := now.Add(delay)
	if early := at.Truncate(retryTick); delay >= 2*retryTick && early.Before(at) {
		return early.Add(retryTick)
	}
	return at
}

// refusalMemory is how long a refusal is remembered that is not tried again: its rollout has ended.
const refusalMemory = time.Hour

// Refusals has the clusters that this process could not write to when it last tried, of runs and of placements that are rolled out by
// themselves. What these report of it is for people and for other processes.
type Refusals struct {
	mu sync.Mutex
	// refusals by the UID of the run or placement, and by cluster.
	refusals  map[types.UID]map[string]refusal
	lastPrune time.Time
}

// refusal is a refused write: what is waited for, and what was to be written where.
type refusal struct {
	rollout.Wait
	basis string
	// kept says that what takes the write back was refused as well.
	kept bool
}

// Record notes that a write is refused, and why. The basis tells apart what was to be written where: of another one, the refusal says
// nothing.
func (r *Refusals) Record(of types.UID, cluster, basis, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(now)
	since := now
	others := len(r.refusals[of])
	if last, known := r.refusals[of][cluster]; known {
		others--
		if last.basis == basis {
			since = last.Since
		}
	}
	delay := min(max(now.Sub(since), minRetryDelay), longestDelay(others))
	r.put(of, refusal{Wait: Refusal(cluster, why, since, nextTick(now, delay)), basis: basis})
}

// prune forgets what is not tried again.
func (r *Refusals) prune(now time.Time) {
	if now.Sub(r.lastPrune) <= refusalMemory {
		return
	}
	for of, clusters := range r.refusals {
		maps.DeleteFunc(clusters, func(_ string, of refusal) bool { return now.Sub(of.Until) > refusalMemory })
		if len(clusters) == 0 {
			delete(r.refusals, of)
		}
	}
	r.lastPrune = now
}

func (r *Refusals) put(of types.UID, noted refusal) {
	if r.refusals == nil {
		r.refusals = map[types.UID]map[string]refusal{}
	}
	if r.refusals[of] == nil {
		r.refusals[of] = map[string]refusal{}
	}
	r.refusals[of][noted.Cluster] = noted
}

// Learn notes a refusal that another process reports, unless this one knows as much. A reported one has a write wait no longer than one
// of this process does.
func (r *Refusals) Learn(of types.UID, told rollout.Wait, basis string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if latest := now.Add(longestDelay(len(r.refusals[of]))); told.Until.After(latest) {
		told.Until = latest
	}
	if known, has := r.refusals[of][told.Cluster]; has && !known.Until.Before(told.Until) {
		return
	}
	r.put(of, refusal{Wait: told, basis: basis})
}

// Of returns what a cluster waits for whose binding could not be written when that was last tried, and on which basis.
func (r *Refusals) Of(of types.UID, cluster string) (wait rollout.Wait, basis string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, refused := r.refusals[of][cluster]
	return found.Wait, found.basis, refused
}

// Keep notes that a refused write could not be taken back either, until it is tried again.
func (r *Refusals) Keep(of types.UID, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, has := r.refusals[of][cluster]; has {
		known.kept = true
		r.refusals[of][cluster] = known
	}
}

// IsKept reports whether a refused write could not be taken back. Of writes of other processes it is not known.
func (r *Refusals) IsKept(of types.UID, cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusals[of][cluster].kept
}

// Forget notes that a cluster could be written to, or is not to be written to any more.
func (r *Refusals) Forget(of types.UID, cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.refusals[of], cluster); len(r.refusals[of]) == 0 {
		delete(r.refusals, of)
	}
}

// RefusedWaits returns what the clusters of a placement wait for whose bindings cannot be written, as the placement tells.
func RefusedWaits(placement placementv1beta1.PlacementObject) map[string]rollout.Wait {
	waits := map[string]rollout.Wait{}
	if rules.IsExternal(placement) { // runs list their writes themselves
		return waits
	}
	for _, write := range rules.RefusedWritesOf(placement).Clusters {
		waits[write.Cluster] = Refusal(write.Cluster, write.Why, write.Since, time.Time{})
	}
	return waits
}
