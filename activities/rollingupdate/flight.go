package rollingupdate

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// flightLog records what one call has written, from several goroutines.
type flightLog struct {
	mu sync.Mutex
	// inFlight are the clusters that were written to and have not been seen available
	// since; everInFlight are all that were in flight during the call.
	inFlight, everInFlight map[string]struct{}
	// concluded are the evictions whose outcome was written, evicted says that one of them
	// was executed.
	concluded map[types.UID]bool
	evicted   bool
}

func newFlightLog() *flightLog {
	return &flightLog{inFlight: map[string]struct{}{}, everInFlight: map[string]struct{}{}, concluded: map[types.UID]bool{}}
}

// markInFlight notes that a cluster was written to.
func (l *flightLog) markInFlight(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[cluster], l.everInFlight[cluster] = struct{}{}, struct{}{}
}

// markLanded notes that a cluster no longer has to be waited for.
func (l *flightLog) markLanded(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inFlight, cluster)
}

// keepInFlight notes that all clusters but some have landed.
func (l *flightLog) keepInFlight(isKept func(cluster string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.inFlight, func(cluster string, _ struct{}) bool { return !isKept(cluster) })
}

func (l *flightLog) isInFlight(cluster string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, is := l.inFlight[cluster]
	return is
}

// countInFlight is the number of clusters in flight.
func (l *flightLog) countInFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.inFlight)
}

// sortedNames are the clusters that have landed and those that are in flight, in order.
func (l *flightLog) sortedNames() (landed, inFlight []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.everInFlight {
		if _, still := l.inFlight[name]; !still {
			landed = append(landed, name)
		}
	}
	slices.Sort(landed)
	return landed, slices.Sorted(maps.Keys(l.inFlight))
}

// markEvicted notes that an eviction was executed, whether or not its outcome is written.
func (l *flightLog) markEvicted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evicted = true
}

func (l *flightLog) hasEvicted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evicted
}

// markConcluded notes that the outcome of an eviction was written.
func (l *flightLog) markConcluded(eviction types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.concluded[eviction] = true
}

func (l *flightLog) isConcluded(eviction types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.concluded[eviction]
}
