//go:build bench

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// idleFor is for how long a hub at rest is looked at.
	idleFor = 20 * time.Second
	// maxIdleShare and maxIdleMemory bound the hub agent while 1,000 runs wait.
	maxIdleShare  = 0.05
	maxIdleMemory = 300 << 20
)

// resting are written while nothing happens: leases, what members report of themselves and what is copied of that.
var resting = []string{"leases", "internalmemberclusters/status", "memberclusters/status", "clusterprofiles/status", "placementdecisions"}

// TestIdle looks at a hub on which nothing happens, with every member there and then with one that is away.
func TestIdle(t *testing.T) {
	f := shared
	name := "idle"
	size := few
	f.grow(t, size)
	f.content(t, name)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(size) }, rolling("25%"), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
	f.atRest(t, fmt.Sprintf("%d clusters at rest", size))

	away := f.members.Members()[size/2]
	require.NoError(t, f.members.Behave(t.Context(), hollow.Behaviour{Vanished: true}, away))
	t.Cleanup(func() { assert.NoError(t, f.members.Behave(context.Background(), hollow.Behaviour{}, away)) })
	f.change(t, "value-1", name)
	f.await(t, patience, "all clusters but one to be available", func() string {
		p := &placementv1beta1.ClusterResourcePlacement{}
		require.NoError(t, f.cache.Get(t.Context(), client.ObjectKey{Name: name}, p))
		available := 0
		for _, cluster := range p.Status.PerClusterPlacementStatuses {
			if cluster.ObservedResourceIndex == "1" && isAvailable(cluster) {
				available++
			}
		}
		if available != size-1 {
			return fmt.Sprintf("%d are", available)
		}
		return ""
	})
	f.atRest(t, fmt.Sprintf("%d clusters at rest, of which one is away in the middle of an update", size))
}

func isAvailable(cluster placementv1beta1.PerClusterPlacementStatus) bool {
	for _, c := range cluster.Conditions {
		if c.Type == placementv1beta1.ConditionTypeAvailable {
			return c.Status == "True"
		}
	}
	return false
}

// atRest demands that nothing is open, and nothing written but what is for ever.
func (f *fleet) atRest(t *testing.T, title string) {
	t.Helper()
	f.awaitNoneOpen(t)
	f.awaitQuiet(t)
	share, written := f.rest(t, idleFor)
	f.figures.add(t, title+": writes in "+idleFor.String(), "0", quantity{written.counted(), ""})
	f.figures.add(t, title+": open workflows", "0", count(len(f.executions(t, `ExecutionStatus = "Running"`))))
	f.figures.add(t, title+": hub agent's share of a core", "-", percent(share))
	f.figures.add(t, title+": hub agent's memory", "-", bytesOf(f.agent(t).Memory))
	assert.Empty(t, written.without(resting...), title)
}

// rest does nothing for a while, and tells what share of a core the hub agent took and what was written.
func (f *fleet) rest(t *testing.T, period time.Duration) (share float64, written writes) {
	t.Helper()
	stop := f.meter(t)
	before := f.cpu(t)
	began := time.Now()
	pause(period) // that nothing happens cannot be waited for
	used := f.cpuSince(t, before)[controlplane.HubAgent]
	written, _ = stop()
	return used / time.Since(began).Seconds(), written
}
