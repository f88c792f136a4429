//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// maxWrites is how many writes of the hub one update of one cluster may cost, the member's included.
	maxWrites = 4.5
	// maxEventsPerBatch bounds the history of a rollout.
	maxEventsPerBatch = 15
	rounds            = 3
)

// TestRolling changes what is placed on 100 clusters and waits until all have it.
func TestRolling(t *testing.T) {
	f := shared
	name := "rolling"
	size := few
	f.grow(t, size)
	f.content(t, name)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(size) }, rolling("25%"), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
	var took []time.Duration
	for round := 1; round <= rounds; round++ {
		f.awaitNoneOpen(t)
		f.awaitQuiet(t)
		stop := f.meter(t)
		cpu := f.cpu(t)
		began := time.Now()
		f.change(t, fmt.Sprintf("value-%d", round), name)
		f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, fmt.Sprint(round), name)
		took = append(took, time.Since(began))
		t.Logf("round %d: %s; CPU: %s", round, seconds(took[round-1]), f.cpuSince(t, cpu))
		f.awaitNoneOpen(t)
		done, refused := stop()
		t.Logf("writes: %s; refused: %s", done, refused)
		if round == rounds {
			perCluster := done.counted() / float64(size)
			f.figures.add(t, "rolling update of 100 clusters, maxUnavailable 25 %: writes per cluster", fmt.Sprintf("<= %.1f", maxWrites), quantity{perCluster, ""})
			assert.LessOrEqual(t, perCluster, maxWrites)
		}
	}
	f.figures.add(t, "rolling update of 100 clusters: change to all available, median of 3", "<= 4 s + members", seconds(percentile(took, 0.5)))
	f.eventsPerBatch(t, name)
}

// eventsPerBatch looks at the newest history of a placement.
func (f *fleet) eventsPerBatch(t *testing.T, name string) {
	t.Helper()
	batches, events := f.activities(t.Context(), t, wf.PlacementID("", name), "", wf.AdvancePlacement)
	perBatch := float64(events) / float64(max(batches, 1))
	f.figures.add(t, "rolling update of 100 clusters: events per batch", fmt.Sprintf("<= %d", maxEventsPerBatch), quantity{perBatch, ""})
	assert.LessOrEqual(t, perBatch, float64(maxEventsPerBatch))
}
