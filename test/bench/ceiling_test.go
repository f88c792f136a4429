//go:build bench

package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/bench/ceiling"
)

// ceilingClusters is how many clusters the bare client updates in a round.
const ceilingClusters = 250

// perCluster is what a bare client needs for a cluster, measured once: all that is compared with it is compared with the
// same figure.
var perCluster struct {
	once sync.Once
	is   time.Duration
}

// ceilingFor is how long a bare client needs for the writes of n clusters. The hub agent rests meanwhile.
func (f *fleet) ceilingFor(t *testing.T, n int) time.Duration {
	t.Helper()
	perCluster.once.Do(func() { perCluster.is = f.measureCeiling(t) })
	return perCluster.is * time.Duration(n)
}

func (f *fleet) measureCeiling(t *testing.T) time.Duration {
	t.Helper()
	require.NoError(t, f.Control.Stop(t.Context(), controlplane.HubAgent))
	defer func() { require.NoError(t, f.Control.Start(context.Background(), controlplane.HubAgent)) }()
	c, err := ceiling.SetUp(t.Context(), f.hub, ceilingClusters)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Clear(context.Background())) }()
	var took []time.Duration
	for range rounds {
		stop := f.meter(t)
		cpu := f.cpuOfServers(t)
		d, err := c.Update(t.Context(), ceilingClusters)
		require.NoError(t, err)
		took = append(took, d)
		done, _ := stop()
		t.Logf("a bare client: %d clusters in %s; CPU of API server and etcd %.1f s; writes: %s", ceilingClusters, seconds(d), f.cpuOfServers(t)-cpu, done)
		assert.InDelta(t, ceiling.WritesPerCluster*ceilingClusters, done.counted(), 5)
	}
	median := slices.Sorted(slices.Values(took))[rounds/2]
	f.figures.add(t, "the ceiling: 4 writes of a bare client per cluster", "-", fmt.Sprintf("%.1f ms a cluster, %.0f writes a second",
		median.Seconds()*1000/ceilingClusters, ceiling.WritesPerCluster*ceilingClusters/median.Seconds()))
	return median / ceilingClusters
}

func (f *fleet) cpuOfServers(t *testing.T) float64 {
	t.Helper()
	return cpuTime(t, f.component(t, "hub/apiserver").PID) + cpuTime(t, f.component(t, "hub/etcd").PID)
}

// TestCeiling measures the ceiling.
func TestCeiling(t *testing.T) { shared.ceilingFor(t, 1) }
