package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestHowLongToCollectClustersThatAreDone(t *testing.T) {
	of := func(clusters int) *placementv1beta1.ClusterStagedUpdateRun {
		run := &placementv1beta1.ClusterStagedUpdateRun{}
		run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{Clusters: make([]placementv1beta1.ClusterUpdatingStatus, clusters)}}
		return run
	}
	for sentence, test := range map[string]struct {
		clusters              int
		took                  time.Duration
		debounce, maxDebounce time.Duration
	}{
		"a hub at rest is told at once":                   {100, 5 * time.Millisecond, clusterwait.DefaultDebounce, clusterwait.DefaultMaxDebounce},
		"a large run is told of less often":               {2000, 5 * time.Millisecond, largeDebounce, largeMaxDebounce},
		"a busy hub is told less often":                   {100, 100 * time.Millisecond, 200 * time.Millisecond, time.Second},
		"a large run waits for a busy hub, too":           {2000, 200 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second},
		"nobody waits long, however busy the hub may be ": {100, time.Minute, maxCollecting / 5, maxCollecting},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &statusPace{}
			for range 100 {
				p.observeWrite(test.took)
			}
			assert.InDelta(t, test.debounce, p.debounceOf(of(test.clusters)), float64(time.Millisecond))
			assert.InDelta(t, test.maxDebounce, p.maxDebounceOf(of(test.clusters)), float64(time.Millisecond))
		})
	}
}

func TestASingleSlowWriteHardlyChangesThePace(t *testing.T) {
	p := &statusPace{}
	p.observeWrite(100 * time.Millisecond)
	p.observeWrite(5 * time.Millisecond)
	p.observeWrite(5 * time.Millisecond)
	assert.Less(t, p.maxDebounceOf(&placementv1beta1.ClusterStagedUpdateRun{}), 200*time.Millisecond)
}
