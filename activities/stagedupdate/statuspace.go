package stagedupdate

import (
	"sync"
	"time"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A large run collects clusters that are done for longer: its status is large, too, and each step
// writes it.
const (
	largeDebounce    = 200 * time.Millisecond
	largeMaxDebounce = time.Second
)

// When the hub is busy, clusters are collected for so many times as long as it takes to write the
// status of a run, and never for longer than a person waits.
const (
	busyDebounce    = 2
	busyMaxDebounce = 10
	maxCollecting   = 3 * time.Second
	// newestShare is the share of the newest write in the average, as one part in so many.
	newestShare = 4
)

// statusPace adapts the time that finished clusters are collected for to the time that a status write
// takes. Each step writes the status once, however many clusters it reports; with many runs at once,
// fewer and larger steps leave the hub the time to update clusters.
type statusPace struct {
	mu      sync.Mutex
	average time.Duration
}

// observeWrite learns how long a write took.
func (p *statusPace) observeWrite(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.average += (took - p.average) / newestShare
}

// debounceOf returns for how long no further cluster of a run must have become done before the next step.
func (p *statusPace) debounceOf(run placementv1beta1.UpdateRunObject) time.Duration {
	return p.adapt(run, clusterwait.DefaultDebounce, largeDebounce, busyDebounce)
}

// maxDebounceOf bounds the time from the first cluster that is done to the next step.
func (p *statusPace) maxDebounceOf(run placementv1beta1.UpdateRunObject) time.Duration {
	return p.adapt(run, clusterwait.DefaultMaxDebounce, largeMaxDebounce, busyMaxDebounce)
}

func (p *statusPace) adapt(run placementv1beta1.UpdateRunObject, ofSmall, ofLarge, busy time.Duration) time.Duration {
	least := ofSmall
	if updaterun.IsLarge(run) {
		least = ofLarge
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(least, min(busy*p.average, maxCollecting*busy/busyMaxDebounce))
}
