package stagedupdate

import (
	"sync"
	"time"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A large run writes its status at most so often: it is large, too, and each step writes it.
const (
	largeQuiet  = 200 * time.Millisecond
	largeAtMost = time.Second
)

// How much longer clusters that are done are collected when the hub is busy: so many times
// as long as it takes to write the status of a run, and never longer than a person waits.
const (
	busyQuiet  = 2
	busyAtMost = 10
	longest    = 3 * time.Second
	// newest is the share that the newest write has in what is usual.
	newest = 4
)

// pace learns how long it takes to write the status of a run. Each step writes it once,
// however many clusters it tells of; with many runs at once, steps that wait for a few
// more clusters leave the hub the time to bring them about.
type pace struct {
	mu   sync.Mutex
	took time.Duration
}

// wrote learns from a write.
func (p *pace) wrote(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took += (took - p.took) / newest
}

// quiet and atMost are how long to collect clusters that are done before the next step.
func (p *pace) quiet(run *placementv1beta1.ClusterStagedUpdateRun) time.Duration {
	return p.stretched(run, clusterwait.DefaultDebounce, largeQuiet, busyQuiet)
}

func (p *pace) atMost(run *placementv1beta1.ClusterStagedUpdateRun) time.Duration {
	return p.stretched(run, clusterwait.DefaultMaxDebounce, largeAtMost, busyAtMost)
}

func (p *pace) stretched(run *placementv1beta1.ClusterStagedUpdateRun, usual, ofLarge, busy time.Duration) time.Duration {
	if updaterun.IsLarge(run) {
		usual = ofLarge
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(usual, min(busy*p.took, longest*busy/busyAtMost))
}
