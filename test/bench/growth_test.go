//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// growthIdle is for how long a fleet of each size is looked at while its members report and nothing else happens.
	growthIdle = time.Minute
	// linear is how many times what a cluster of the smaller fleet takes one of the larger fleet may take. It is told, never asserted.
	linear = "<= 1.15 x"
	// idleTarget bounds the hub agent while all members of the largest fleet report.
	idleTarget = "<= 15 %"
)

// grown compares fleets of different sizes by what a cluster takes in each.
type grown struct {
	*fleet

	size, before int
	// smaller has what a cluster took in the smaller fleet.
	smaller map[string]float64
}

// TestGrowth takes 10, 100, 1,000 and 5,000 clusters through the same: one run, one rolling update, a rest in which the members report,
// and a restart of the hub agent.
func TestGrowth(t *testing.T) {
	g := &grown{fleet: shared, smaller: map[string]float64{}}
	for _, size := range slices.Compact([]int{fewest, few, many, most}) {
		g.size = size
		if !t.Run(fmt.Sprintf("%d clusters", size), g.measure) {
			return // a larger fleet would fail alike, and later
		}
		g.before = size
	}
}

// measure looks at a fleet of one size, and leaves nothing of it.
func (g *grown) measure(t *testing.T) {
	g.grow(t, g.size)
	g.awaitQuiet(t)
	hub := g.hubBytes(t)
	temporal := g.temporalBytes(t)
	g.oneRun(t)
	name := fmt.Sprintf("growth-rolling-%d", g.size)
	g.content(t, name)
	g.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(g.size) }, rolling("25%"), name)
	g.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "0", name)
	g.update(t, name)
	g.awaitNoneOpen(t)
	g.awaitQuiet(t)
	g.perCluster(t, "on disk", "bytes of the hub's store", quantity{float64(g.hubBytes(t) - hub), "bytes"})
	g.perCluster(t, "on disk", "bytes of Temporal's database", quantity{float64(g.temporalBytes(t) - temporal), "bytes"})
	g.idle(t)
	g.again(t)
}

// oneRun creates the Works by one staged run.
func (g *grown) oneRun(t *testing.T) {
	t.Helper()
	const step = "one run"
	name := fmt.Sprintf("growth-run-%d", g.size)
	g.strategy(t, staged(name))
	g.content(t, name)
	g.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(g.size) }, external(), name)
	g.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", name)
	took := g.measureRuns(t, scale{clusters: g.size, runs: 1}, "run", name, []string{name})
	g.perCluster(t, step, "time", milliseconds(took.wall))
	g.perCluster(t, step, "CPU time", milliseconds(took.cpu))
	g.perCluster(t, step, "writes", quantity{took.writes * float64(g.size), ""})
	g.whole(t, step, "memory of the hub agent", "-", bytesOf(took.memory))
}

// update changes what is placed on all clusters.
func (g *grown) update(t *testing.T, name string) {
	t.Helper()
	const step = "a rolling update"
	g.awaitNoneOpen(t)
	g.awaitQuiet(t)
	stop := g.meter(t)
	before := g.cpu(t)
	memory := g.peakMemory(t)
	began := time.Now()
	g.change(t, "value-1", name)
	g.awaitPlacements(t, placementv1beta1.ConditionTypeAvailable, "1", name)
	took := time.Since(began)
	used := g.cpuSince(t, before)
	peak := memory()
	g.awaitNoneOpen(t)
	done, refused := stop()
	t.Logf("CPU time: %s; writes: %s; refused: %s", used, done, refused)
	g.perCluster(t, step, "time", milliseconds(took))
	g.perCluster(t, step, "CPU time", quantity{used.total() * 1000, "ms"})
	g.perCluster(t, step, "writes", quantity{done.counted(), ""})
	g.whole(t, step, "memory of the hub agent", "-", bytesOf(peak))
	assert.LessOrEqual(t, done.counted()/float64(g.size), maxWrites)
}

// idle looks at a fleet whose members report.
func (g *grown) idle(t *testing.T) {
	t.Helper()
	const step = "idle"
	share, written := g.rest(t, growthIdle)
	t.Logf("writes in %s: %s", growthIdle, written)
	g.whole(t, step, "hub agent's share of a core", idleTarget, percent(share))
	g.perCluster(t, step, "hub agent's CPU time in a minute", milliseconds(time.Duration(share*float64(growthIdle))))
	g.whole(t, step, "writes that are not of the members", "0", quantity{written.without(resting...).counted(), ""})
	g.whole(t, step, "memory of the hub agent", "-", bytesOf(g.agent(t).Memory))
	assert.Empty(t, written.without(resting...), "nothing is written but what members report")
}

// again kills the hub agent of a fleet at rest.
func (g *grown) again(t *testing.T) {
	t.Helper()
	const step = "a restart"
	stop := g.meter(t)
	ready, _ := g.restart(t, nil)
	leads := g.awaitLeader(t, ready.killed)
	g.awaitAgentIdle(t)
	g.awaitQuiet(t)
	written, _ := stop()
	within, memory := restartTargets(2 * g.size) // a binding of the run and one of the rolling update
	g.whole(t, step, "ready", within, seconds(ready.after))
	g.perCluster(t, step, "time until it leads", milliseconds(leads))
	g.perCluster(t, step, "hub agent's CPU time", quantity{cpuTime(t, g.component(t, controlplane.HubAgent).PID) * 1000, "ms"})
	g.whole(t, step, "memory of the hub agent", memory, bytesOf(g.agent(t).Memory))
	g.whole(t, step, "writes", "0", quantity{written.counted(), ""})
	assert.Zero(t, written.counted(), "what is at rest is not written")
}

// whole notes what a fleet of this size takes.
func (g *grown) whole(t *testing.T, step, what, target string, measured quantity) {
	t.Helper()
	g.figures.add(t, fmt.Sprintf("growth, %d clusters, %s: %s", g.size, step, what), target, measured)
}

// perCluster notes what a cluster takes of a whole, and how many times what it takes in the smaller fleet.
func (g *grown) perCluster(t *testing.T, step, what string, all quantity) {
	t.Helper()
	one := quantity{all.value / float64(g.size), all.unit}
	g.whole(t, step, what+" a cluster", "-", one)
	key := step + ": " + what
	if smaller := g.smaller[key]; smaller > 0 {
		g.whole(t, step, fmt.Sprintf("%s a cluster against that of %d clusters", what, g.before), linear, quantity{one.value / smaller, "x"})
	}
	g.smaller[key] = one.value
}

// hubBytes is how much of the hub's store is in use once it has forgotten what was, which it does every five minutes by itself.
func (g *grown) hubBytes(t *testing.T) int64 {
	t.Helper()
	used, err := g.store().inUse(within(t, patience))
	require.NoError(t, err)
	return used
}

// temporalBytes is how large Temporal's database is, with what is written ahead of it.
func (g *grown) temporalBytes(t *testing.T) int64 {
	t.Helper()
	var sum int64
	for _, end := range []string{"", "-wal"} {
		file, err := os.Stat(g.Fleet.TemporalDatabase() + end)
		if os.IsNotExist(err) && end != "" {
			continue // it is written ahead only while there is something
		}
		require.NoError(t, err)
		sum += file.Size()
	}
	return sum
}

// inUse forgets what was and returns how many bytes are in use then.
func (s store) inUse(ctx context.Context) (int64, error) {
	var status struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
		InUse int64 `json:"dbSizeInUse,string"`
	}
	nothing := struct{}{}
	if err := s.ask(ctx, "maintenance/status", nothing, &status); err != nil {
		return 0, err
	}
	// Physical waits until it is done.
	forget := map[string]any{"revision": status.Header.Revision, "physical": true}
	if err := s.ask(ctx, "kv/compaction", forget, &nothing); err != nil {
		return 0, err
	}
	if err := s.ask(ctx, "maintenance/status", nothing, &status); err != nil {
		return 0, err
	}
	return status.InUse, nil
}
