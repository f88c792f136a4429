package rollingupdate

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// flightLog records what one call has written, from several goroutines.
type flightLog struct {
	mu sync.Mutex
	// inFlight are the clusters that were written to and have not been seen available since.
	inFlight sets.Set[string]
	// evicted says that an eviction was executed, whether or not its outcome is written;
	// concluded has the uids of the evictions whose outcome was written.
	evicted   atomic.Bool
	concluded sync.Map
	// awaited are the clusters whose copies stay because the API server says that those which replace them are not available, whatever the
	// cache says, until a time.
	awaited map[string]time.Time
}

func newFlightLog() *flightLog {
	return &flightLog{inFlight: sets.New[string](), awaited: map[string]time.Time{}}
}

// markInFlight notes that a cluster was written to.
func (l *flightLog) markInFlight(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight.Insert(cluster)
}

// markLanded notes that a cluster no longer has to be waited for.
func (l *flightLog) markLanded(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight.Delete(cluster)
}

// keepInFlight notes that all clusters but some have landed.
func (l *flightLog) keepInFlight(isKept func(cluster string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.inFlight, func(cluster string, _ sets.Empty) bool { return !isKept(cluster) })
}

func (l *flightLog) isInFlight(cluster string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight.Has(cluster)
}

// markAwaited notes that the copy on a cluster stays until a time, whatever the cache says of that which replaces it.
func (l *flightLog) markAwaited(cluster string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited[cluster] = until
}

// awaitedUntil returns until when the copy on a cluster stays, whatever the cache says; zero if the cache counts.
func (l *flightLog) awaitedUntil(cluster string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.awaited[cluster]
}
