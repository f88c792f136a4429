package rollingupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
)

func TestClustersAreCollectedForLongerIfThereAreMany(t *testing.T) {
	for clusters, want := range map[int][2]time.Duration{
		3:      {clusterwait.DefaultDebounce, clusterwait.DefaultMaxDebounce},
		1000:   {40 * time.Millisecond, 200 * time.Millisecond},
		5000:   {200 * time.Millisecond, time.Second},
		20_000: {200 * time.Millisecond, time.Second},
	} {
		debounce, most := collectFor(clusters)
		assert.Equal(t, want, [2]time.Duration{debounce, most}, "%d clusters", clusters)
	}
}
