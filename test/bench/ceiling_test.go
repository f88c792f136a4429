//go:build bench

package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/bench/ceiling"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// ceilingClusters is how many clusters the bare client updates in a round.
const ceilingClusters = 250

// cost is what updates of clusters take: time as it passed, which depends on what else the machine does, and CPU time,
// which hardly does.
type cost struct{ wall, cpu time.Duration }

// ceilingFor is what a bare client needs for the writes of n clusters, measured anew each time, as an API server with
// much in its memory collects garbage less often than one that has just started. The hub agent rests meanwhile.
func (f *fleet) ceilingFor(t *testing.T, n int) cost {
	t.Helper()
	perCluster := f.measureCeiling(t)
	return cost{wall: perCluster.wall * time.Duration(n), cpu: perCluster.cpu * time.Duration(n)}
}

func (f *fleet) measureCeiling(t *testing.T) cost {
	t.Helper()
	require.NoError(t, f.Control.Do(t.Context(), control.Stop, controlplane.HubAgent))
	defer func() { require.NoError(t, f.Control.Do(context.Background(), control.Start, controlplane.HubAgent)) }()
	c, err := ceiling.SetUp(t.Context(), f.hub, ceilingClusters)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Clear(context.Background())) }()
	_, err = c.Update(t.Context(), ceilingClusters) // the first round warms up
	require.NoError(t, err)
	f.awaitQuiet(t)
	var all []cost
	for range rounds {
		stop := f.meter(t)
		before := f.busy(t)
		took, err := c.Update(t.Context(), ceilingClusters)
		require.NoError(t, err)
		all = append(all, cost{wall: took, cpu: f.busy(t) - before})
		done, _ := stop()
		t.Logf("a bare client: %d clusters in %s, CPU time %s; writes: %s", ceilingClusters, seconds(took), seconds(all[len(all)-1].cpu), done)
		for _, what := range []string{"clusterresourcebindings", "clusterresourcebindings/status", "works", "works/status"} {
			assert.InDelta(t, ceilingClusters, done[what], 0.5, what)
		}
	}
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	median := all[rounds/2]
	title := fmt.Sprintf("the ceiling, %d writes of a bare client per cluster", ceiling.WritesPerCluster)
	f.figures.add(t, title+": time a cluster", "-", milliseconds(median.wall/ceilingClusters))
	f.figures.add(t, title+": CPU time a cluster", "-", milliseconds(median.cpu/ceilingClusters))
	f.figures.add(t, title+": writes a second", "-", quantity{ceiling.WritesPerCluster * ceilingClusters / median.wall.Seconds(), ""})
	return cost{wall: median.wall / ceilingClusters, cpu: median.cpu / ceilingClusters}
}

// busy is the CPU time that the bare client and the hub's servers have had.
func (f *fleet) busy(t *testing.T) time.Duration {
	t.Helper()
	used := cpuTime(t, os.Getpid()) + cpuTime(t, f.component(t, "hub/apiserver").PID) + cpuTime(t, f.component(t, "hub/etcd").PID)
	return time.Duration(used * float64(time.Second))
}

// TestCeiling measures the ceiling.
func TestCeiling(t *testing.T) { shared.ceilingFor(t, 1) }
