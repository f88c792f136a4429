//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
)

const (
	// flapFor is for how long clusters flap, each of them once in flapEvery.
	flapFor, flapEvery = time.Minute, 20 * time.Second
	// maxStatusRate is how many writes of a placement's status there may be in a second, and fewer if it is larger
	// than targetStatus.
	maxStatusRate = 2
	targetStatus  = 250 << 10
)

// TestStagedThousandClusters takes 1,000 clusters through one run.
func TestStagedThousandClusters(t *testing.T) {
	shared.staged(t, scale{clusters: many, runs: 1, changes: 1, target: time.Minute})
}

// TestFlapping lets the availability of 1,000 clusters of a placement come and go.
func TestFlapping(t *testing.T) {
	f := shared
	name := "flapping"
	size := many
	f.grow(t, size)
	f.content(t, name)
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(size) }, rolling("25%"), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
	f.awaitNoneOpen(t)
	f.awaitQuiet(t)
	members := f.members.Members()[:size]
	t.Cleanup(func() { assert.NoError(t, f.members.Behave(context.Background(), hollow.Behaviour{}, members...)) })

	stop := f.meter(t)
	began := time.Now()
	largest := 0
	shares := int(flapEvery / time.Second)
	for tick := 0; time.Since(began) < flapFor; tick++ {
		var flapping []string
		for i := tick % shares; i < size; i += shares {
			flapping = append(flapping, members[i])
		}
		require.NoError(t, f.members.Behave(t.Context(), hollow.Behaviour{Unavailable: tick/shares%2 == 0}, flapping...))
		largest = max(largest, f.statusSize(t, name))
		pause(time.Until(began.Add(time.Duration(tick+1) * time.Second))) // they flap evenly
	}
	took := time.Since(began)
	done, _ := stop()
	rate := done["clusterresourceplacements/status"] / took.Seconds()
	t.Logf("writes in %s: %s", seconds(took), done)
	f.figures.add(t, fmt.Sprintf("%d clusters flap: writes of the placement's status a second", size), "<= 2, fewer above 250 KiB", quantity{rate, ""})
	f.figures.add(t, fmt.Sprintf("%d clusters flap: largest status of the placement", size), fmt.Sprintf("< %d KiB", maxStatus>>10), kibibytes(largest))
	assert.Positive(t, rate, "that clusters come and go is told")
	assert.LessOrEqual(t, rate, float64(maxStatusRate))
	if largest > targetStatus {
		assert.LessOrEqual(t, rate, float64(maxStatusRate)*targetStatus/float64(largest))
	}
	assert.Less(t, largest, maxStatus)
}

func (f *fleet) statusSize(t *testing.T, placement string) int {
	t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, f.cache.Get(t.Context(), client.ObjectKey{Name: placement}, p))
	content, err := json.Marshal(p.Status)
	require.NoError(t, err)
	return len(content)
}

// TestStagedFiveThousandClusters takes 5,000 clusters through one run.
func TestStagedFiveThousandClusters(t *testing.T) {
	shared.staged(t, scale{clusters: most, runs: 1})
}
