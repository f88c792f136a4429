//go:build bench

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// maxCeiling is how many times what a bare client needs a run may take, maxCeilingMany is that of many at once.
	maxCeiling, maxCeilingMany = 1.3, 1.25
	// maxEvents and maxStatus bound what is kept of a run.
	maxEvents = 4096
	maxStatus = 1 << 20
	// maxAgentBusy bounds the hub agent's memory under many runs.
	maxAgentBusy = 1 << 30
)

// scale is one measurement of staged runs.
type scale struct {
	clusters, runs int
	target         time.Duration
	// changes is how many further runs there are of each placement; none where the first takes long enough.
	changes int
}

// TestStagedOne takes 100 clusters through three stages, half of each at a time and without gates.
func TestStagedOne(t *testing.T) {
	shared.staged(t, scale{clusters: few, runs: 1, changes: rounds, target: 5 * time.Second})
}

// TestStagedTwenty does so with 20 placements at once.
func TestStagedTwenty(t *testing.T) {
	runs := scaled(20, 2)
	shared.staged(t, scale{clusters: few, runs: runs, changes: 1, target: time.Duration(runs) * time.Minute / 20})
}

// TestStagedHundred does so with 100 placements at once.
func TestStagedHundred(t *testing.T) {
	shared.staged(t, scale{clusters: few, runs: scaled(100, 2), target: 5 * time.Minute})
}

// staged measures a first run, which creates the Works, and further ones, which change them; of these the median counts.
func (f *fleet) staged(t *testing.T, s scale) {
	t.Helper()
	prefix := fmt.Sprintf("staged-%d-%d", s.clusters, s.runs)
	names := named(prefix, s.runs)
	f.grow(t, s.clusters)
	ceiling := f.ceilingFor(t, s.clusters*s.runs)
	f.strategy(t, staged(prefix))
	f.content(t, names...)
	began := time.Now()
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(s.clusters) }, external(), names...)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", names...)
	t.Logf("%d placements of %d clusters are scheduled after %s", s.runs, s.clusters, seconds(time.Since(began)))
	f.report(t, s, "creating", ceiling, f.measureRuns(t, s, "creating", prefix, names))
	var all []outcome
	for i := range s.changes {
		f.change(t, fmt.Sprintf("value-%d", i+1), names...)
		f.awaitNoneOpen(t)
		all = append(all, f.measureRuns(t, s, fmt.Sprintf("changing-%d", i+1), prefix, names))
	}
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.wall, b.wall) })
		f.report(t, s, "changing", ceiling, all[len(all)/2])
	}
}

// outcome is what runs took.
type outcome struct {
	cost
	took []time.Duration
	// writes are those per cluster, memory is the most that the hub agent had.
	writes float64
	memory int64
	// events are those of the longest history, status is the size of the largest status.
	events, status int64
}

// measureRuns starts a run of each placement, looks at what they take, and asserts what is the same on any machine.
func (f *fleet) measureRuns(t *testing.T, s scale, suffix, strategy string, names []string) outcome {
	t.Helper()
	f.awaitQuiet(t)
	stop := f.meter(t)
	readBefore, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	cpu := f.cpu(t)
	profiled := f.profile(t, fmt.Sprintf("%d runs of %d clusters, %s", s.runs, s.clusters, suffix))
	began := time.Now()
	memory := f.peakMemory(t)
	runs := f.startRuns(t, suffix, strategy, names...)
	took := f.awaitRuns(t, 20*time.Minute, runs)
	all := time.Since(began)
	peak := memory()
	used := f.cpuSince(t, cpu)
	profiled()
	t.Logf("%s: all over after %s; CPU time: %s", suffix, seconds(all), used)
	f.awaitNoneOpen(t)
	done, refused := stop()
	read, err := f.readsSoFar(t.Context())
	require.NoError(t, err)
	t.Logf("writes: %s; refused: %s; read: %s", done, refused, read.minus(readBefore))
	events, status := f.checkKept(t, runs)
	perCluster := done.counted() / float64(s.clusters*s.runs)
	assert.LessOrEqual(t, perCluster, maxWrites)
	assert.Less(t, peak, int64(maxAgentBusy))
	return outcome{
		cost: cost{wall: all, cpu: time.Duration(used.total() * float64(time.Second))},
		took: took, writes: perCluster, memory: peak, events: events, status: status,
	}
}

// report prints what runs took.
func (f *fleet) report(t *testing.T, s scale, kind string, ceiling cost, o outcome) {
	t.Helper()
	title := fmt.Sprintf("%d run(s) of %d clusters, %s", s.runs, s.clusters, kind)
	f.figures.add(t, title+": p90", targetOf(s.target), seconds(percentile(o.took, 0.9)))
	most := maxCeiling
	if s.runs > 1 {
		most = maxCeilingMany
	}
	f.figures.add(t, title+": time of all against the ceiling", fmt.Sprintf("<= %.4g x", most),
		quantity{o.wall.Seconds() / ceiling.wall.Seconds(), "x"})
	f.figures.add(t, title+": CPU time of everything against the ceiling", "-",
		quantity{o.cpu.Seconds() / ceiling.cpu.Seconds(), "x"})
	f.figures.add(t, title+": writes per cluster", fmt.Sprintf("<= %.1f", maxWrites), quantity{o.writes, ""})
	f.figures.add(t, title+": memory of the hub agent", "<= 1024 MiB", bytesOf(o.memory))
	f.figures.add(t, title+": longest history", fmt.Sprintf("< %d events", maxEvents), count(int(o.events)))
	f.figures.add(t, title+": largest run status", "< 1024 KiB", kibibytes(int(o.status)))
}

func targetOf(d time.Duration) string {
	if d == 0 {
		return "completes"
	}
	return fmt.Sprintf("<= %.0f s", d.Seconds())
}

// checkKept looks at the size of what Temporal and the hub keep of runs, and that every cluster was updated.
func (f *fleet) checkKept(t *testing.T, runs map[string]time.Time) (events, status int64) {
	t.Helper()
	for name := range runs {
		for _, e := range f.executions(t, fmt.Sprintf(`WorkflowId STARTS_WITH "updaterun/%s"`, name)) {
			events = max(events, e.events)
		}
		run := f.run(t, name)
		content, err := json.Marshal(run.Status)
		require.NoError(t, err)
		status = max(status, int64(len(content)))
		for _, stage := range run.Status.StagesStatus {
			for _, c := range stage.Clusters {
				require.True(t, succeeded(c), "%s is over, but %s is not updated: %+v", name, c.ClusterName, c)
			}
		}
	}
	assert.Positive(t, events)
	assert.Less(t, events, int64(maxEvents))
	assert.Less(t, status, int64(maxStatus))
	return events, status
}

func succeeded(c placementv1beta1.ClusterUpdatingStatus) bool {
	for _, condition := range c.Conditions {
		if condition.Type == placementv1beta1.ConditionTypeSucceeded {
			return condition.Status == "True"
		}
	}
	return false
}

// peakMemory looks at the hub agent's memory until it is asked for the most.
func (f *fleet) peakMemory(t *testing.T) func() int64 {
	t.Helper()
	end := make(chan struct{})
	most := make(chan int64)
	go func() {
		var peak int64
		for {
			peak = max(peak, f.agent(t).Memory)
			select {
			case <-end:
				most <- peak
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() int64 { close(end); return <-most }
}
