package placement

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// statusPause is the time between two writes of a placement's status, for every 150 clusters, or 3,000 selected
	// resources, that it has.
	statusPause = 500 * time.Millisecond
	// resourcesPerCluster is how many selected resources take up about as much of a status as one cluster.
	resourcesPerCluster = 20
	// busyShare is the least ratio of the pause after a write to the time that the write took: when the hub is busy,
	// it writes statuses less often.
	busyShare = 20
	// maxStatusPause bounds the pause of very large placements and of a very busy hub.
	maxStatusPause = 5 * time.Second
	// Update runs report in their own statuses; the placement's status only repeats that, and costs the hub as much
	// as the writes to twenty clusters. So it waits longer for a busy hub.
	externalBusyShare, maxExternalPause = 3 * busyShare, 30 * time.Second
	// projectionsPerPause is how often in a pause a status that has to wait is computed again, to see whether it
	// tells an outcome by then: each computation covers the whole status.
	projectionsPerPause = 4
)

// statusLimiter spaces the writes of each placement's status, so that there are never more than two in twice the pause. The first
// change is written at once. A status that only reports progress may use one of the two; the other is left for an outcome, which
// is never kept waiting.
type statusLimiter struct {
	mu     sync.Mutex
	writes map[string]writes
}

// writes are the last two of a placement's status, and the pauses after them.
type writes struct {
	last, before time.Time
	pauses
	// projected is when a status that had to wait was last computed.
	projected time.Time
}

// pauses are the times after a write until the next status may be written that reports progress, and of an outcome. The latter is
// short: the user waits for it, and it comes once.
type pauses struct{ progress, outcome time.Duration }

func newStatusLimiter() *statusLimiter { return &statusLimiter{writes: map[string]writes{}} }

// waitBeforeWrite returns how long the next write has to wait; 0 if it can be made now.
func (l *statusLimiter) waitBeforeWrite(name string, settled bool, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writes[name]
	if settled {
		return max(0, w.before.Add(2*w.outcome).Sub(now))
	}
	return max(0, w.last.Add(2*w.progress).Sub(now))
}

// waitBeforeProjection returns how long computing a status is useless, because it could not be written.
func (l *statusLimiter) waitBeforeProjection(name string, now time.Time) time.Duration {
	l.mu.Lock()
	w := l.writes[name]
	l.mu.Unlock()
	return max(l.waitBeforeWrite(name, true, now), w.projected.Add(w.outcome/projectionsPerPause).Sub(now))
}

// recordProjection records that a status was computed and has to wait.
func (l *statusLimiter) recordProjection(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writes[name]
	w.projected = now
	l.writes[name] = w
}

// recordWrite records a write of a status, and the pauses after it.
func (l *statusLimiter) recordWrite(name string, now time.Time, after pauses) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes[name] = writes{last: now, before: l.writes[name].last, pauses: after}
}

func (l *statusLimiter) forgetPlacement(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.writes, name)
}

// pauseAfter returns the pauses after a write that took so long, for a placement with so many clusters.
func pauseAfter(clusters int, external bool, took time.Duration) pauses {
	after := max(pauseFor(clusters), min(busyShare*took, maxStatusPause))
	if external {
		return pauses{progress: max(after, min(externalBusyShare*took, maxExternalPause)), outcome: after}
	}
	return pauses{after, after}
}

func pauseFor(clusters int) time.Duration {
	pages := max(1, (clusters+fullClusters-1)/fullClusters)
	return min(time.Duration(pages)*statusPause, maxStatusPause)
}

// isOutcome reports whether a status tells an outcome rather than progress. The outcome of a placement that is left to
// update runs is that it is scheduled; the progress of a run is no outcome.
func isOutcome(facts *Facts, status placementv1beta1.PlacementStatus) bool {
	is := func(kind string, wanted metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(status.Conditions,
			placementv1beta1.ScopeOf(facts.Placement).PlacementConditionType(kind), wanted)
	}
	return is(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue) ||
		is(placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue) ||
		is(placementv1beta1.ConditionTypeScheduled, metav1.ConditionFalse) ||
		rules.IsExternal(facts.Placement) && is(placementv1beta1.ConditionTypeScheduled, metav1.ConditionTrue) &&
			!scheduledBefore(facts.Placement, status)
}

// scheduledBefore reports whether a status of a placement tells nothing new of which clusters are picked, or for which resources.
func scheduledBefore(placement placementv1beta1.PlacementObject, now placementv1beta1.PlacementStatus) bool {
	before := placement.GetPlacementStatus()
	kind := placementv1beta1.ScopeOf(placement).PlacementConditionType(placementv1beta1.ConditionTypeScheduled)
	old := meta.FindStatusCondition(before.Conditions, kind)
	fresh := meta.FindStatusCondition(now.Conditions, kind)
	return old != nil && fresh != nil && old.Status == fresh.Status && old.ObservedGeneration == fresh.ObservedGeneration &&
		before.ObservedResourceIndex == now.ObservedResourceIndex
}
