package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// largeStage is a stage of n clusters of which a third is done and ten are under way.
func largeStage(n int) rollout.StageFacts {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	facts := rollout.StageFacts{MaxConcurrency: 20, Deadline: time.Hour, Now: now, ReliableFrom: now}
	facts.Clusters = make([]rollout.StageCluster, n)
	for i := range facts.Clusters {
		c := rollout.StageCluster{Name: fmt.Sprintf("member-%06d", i)}
		switch {
		case i < n/3:
			c.Phase = rollout.ClusterDone
			c.Owner = rollout.OwnerThisRun
			c.Available = true
		case i < n/3+10:
			c.Role = rollout.RoleInFlight
			c.Phase = rollout.ClusterUpdating
			c.StartedAt = now
			c.Owner = rollout.OwnerThisRun
		}
		facts.Clusters[i] = c
	}
	return facts
}

// largeUpdate is a rolling update of n clusters of which none is up to date.
func largeUpdate(n int) rollout.Facts {
	facts := rollout.Facts{Limits: limits(n, n/4, 0)}
	facts.Limits.MaxInFlight = 40
	for i := range n {
		facts.Clusters = append(facts.Clusters, outdated(fmt.Sprintf("member-%06d", i)))
	}
	return facts
}

// growthSizes end past what one hub can hold, so that what grows faster than the fleet shows.
var growthSizes = []int{1_000, 10_000, 100_000}

func BenchmarkDecideStageOfMany(b *testing.B) {
	for _, n := range growthSizes {
		facts := largeStage(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rollout.DecideStage(facts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cluster")
		})
	}
}

func BenchmarkDecideOfMany(b *testing.B) {
	for _, n := range growthSizes {
		facts := largeUpdate(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rollout.Decide(facts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cluster")
		})
	}
}

func TestAStepOfALargeFleetCostsInProportion(t *testing.T) {
	stage, update := largeStage(1_000), largeUpdate(1_000)
	require.Len(t, rollout.DecideStage(stage).Next, 10, "the stage has something to decide")
	require.NotEmpty(t, rollout.Decide(update).Steps)
	for name, decide := range map[string]func(n int) func(){
		"stage":  func(n int) func() { facts := largeStage(n); return func() { rollout.DecideStage(facts) } },
		"update": func(n int) func() { facts := largeUpdate(n); return func() { rollout.Decide(facts) } },
	} {
		t.Run(name, func(t *testing.T) {
			allocations := func(n int) float64 { return testing.AllocsPerRun(3, decide(n)) }
			assert.Less(t, allocations(32_000)/max(1, allocations(1_000)), 40.0, "32 times as many cost about 32 times as much")
		})
	}
}
