package work

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	minRetryDelay = 200 * time.Millisecond
	maxRetryDelay = time.Minute
	// maxReconnectDelay is the longest wait between attempts to reach the hub or the member: the
	// report is to follow soon after they are back.
	maxReconnectDelay = 15 * time.Second
)

// retryDelay returns how long to wait after so many failures in a row.
func retryDelay(failures int) time.Duration {
	delay := minRetryDelay
	for range failures - 1 {
		delay *= 2
		if delay >= maxRetryDelay {
			return maxRetryDelay
		}
	}
	return delay
}

// failedTries counts the failed attempts in a row at one manifest. Each manifest backs off by
// itself: one that keeps failing neither delays the others nor is tried again because of them.
type failedTries struct {
	failures int
	last     time.Time
}

func (t failedTries) addFailure(now time.Time) failedTries {
	return failedTries{failures: t.failures + 1, last: now}
}

// nextRetry returns when to try again.
func (t failedTries) nextRetry() time.Time { return t.last.Add(retryDelay(t.failures)) }

// errReportWaits says that the hub has not taken the last reports on a Work and is not asked again yet.
var errReportWaits = errors.New("the report on the Work waits until the hub is asked again")

// unsent counts the reports in a row on one generation of a Work that the hub did not take. While it is away, changes of the Work's
// objects do not make the agent ask it more often.
type unsent struct {
	generation int64
	tries      failedTries
}

func (u unsent) addFailure(generation int64, now time.Time) unsent {
	if u.generation != generation {
		u = unsent{generation: generation}
	}
	u.tries = u.tries.addFailure(now)
	return u
}

// nextReport returns when the hub is asked again.
func (u unsent) nextReport() time.Time {
	return u.tries.last.Add(min(retryDelay(u.tries.failures), maxReconnectDelay))
}

// mustWait reports whether the hub is not to be asked yet. A new generation comes from a hub that is back.
func (u unsent) mustWait(generation int64, now time.Time) bool {
	return u.generation == generation && u.tries.failures > 0 && now.Before(u.nextReport())
}

// earliestRetry returns when the first manifest that failed is to be tried again; zero if none failed.
func earliestRetry(outcomes []outcome) time.Time {
	return earliestOf(outcomes, func(o outcome) (time.Time, bool) { return o.failedTries.nextRetry(), o.retry })
}

// isBackingOff reports whether a manifest that failed is not to be tried again yet.
func (o outcome) isBackingOff(now time.Time) bool {
	return o.retry && o.failedTries.failures > 0 && now.Before(o.failedTries.nextRetry())
}

// retrySoonerIfAffected shortens the wait of a manifest that failed if one of the changed objects
// may have been the cause. It still waits as long as after a first failure, because the object may
// change all the time.
func (o outcome) retrySoonerIfAffected(changed map[objectRef]bool) outcome {
	if o.failedTries.failures > 1 && o.isAffectedBy(changed) {
		o.failedTries.failures = 1
	}
	return o
}

// isAffectedBy reports whether one of the changed objects may be why a manifest failed: the
// manifest's own object, its namespace or, as its kind may have been unknown, a definition. A
// reference without a name stands for all objects of its kind.
func (o outcome) isAffectedBy(changed map[objectRef]bool) bool {
	if len(changed) == 0 {
		return false
	}
	for _, cause := range []objectRef{
		o.ref(), {gvr: o.gvr},
		{gvr: namespaceResource, name: types.NamespacedName{Name: o.id.Namespace}}, {gvr: namespaceResource},
	} {
		if changed[cause] {
			return true
		}
	}
	for other := range changed {
		if other.gvr == definitionResource {
			return true
		}
	}
	return false
}

// recordChange records that an object has changed, if a manifest of the Work has failed and the
// change may help.
func (m *memories) recordChange(name string, o objectRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unapplied[name] == nil {
		return
	}
	if m.changedObjects[name] == nil {
		m.changedObjects[name] = map[objectRef]bool{}
	}
	m.changedObjects[name][o] = true
}

// takeChangedObjects returns the objects that changed since the last call.
func (m *memories) takeChangedObjects(name string) map[objectRef]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.changedObjects[name]
	delete(m.changedObjects, name)
	return taken
}
