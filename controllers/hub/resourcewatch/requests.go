package resourcewatch

import (
	"maps"
	"sync"
)

// requests are what the loop of the watcher is asked for.
type requests struct {
	// kick wakes the loop.
	kick chan struct{}

	mu sync.Mutex
	// touched are the placements to refresh; refresh says that the catalog may have changed, too.
	touched map[string]bool
	refresh bool
}

func newRequests() *requests {
	return &requests{kick: make(chan struct{}, 1), touched: map[string]bool{}}
}

// addPlacement has a placement refreshed.
func (r *requests) addPlacement(name string) {
	r.mu.Lock()
	r.touched[name] = true
	r.mu.Unlock()
	r.kickLoop()
}

// addCatalog has the catalog of served kinds read again.
func (r *requests) addCatalog() {
	r.mu.Lock()
	r.refresh = true
	r.mu.Unlock()
	r.kickLoop()
}

func (r *requests) kickLoop() {
	select {
	case r.kick <- struct{}{}:
	default: // it is awake
	}
}

// take returns the pending requests and clears them.
func (r *requests) take() (touched map[string]bool, refresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched = r.touched
	refresh = r.refresh
	r.touched = map[string]bool{}
	r.refresh = false
	return touched, refresh
}

// restore keeps placements for the next refresh, without triggering one.
func (r *requests) restore(names map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.touched, names)
}
