package rollout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// manyEvictions asks to evict from every one of n clusters under a budget of half of them.
func manyEvictions(n int) rollout.Facts {
	facts := rollout.Facts{Limits: limits(n, n/4, 1), Policy: pickN(n, maxUnavailable("50%"))}
	for i := range n {
		name := fmt.Sprintf("c%05d", i)
		facts.Clusters = append(facts.Clusters, outdated(name))
		facts.Evictions = append(facts.Evictions, off(name))
	}
	return facts
}

func TestManyEvictionsCostInProportion(t *testing.T) {
	plan := rollout.Decide(manyEvictions(1000))
	executed := 0
	for _, step := range plan.Evictions {
		if step.Verdict.Executed() {
			executed++
		}
	}
	assert.Equal(t, 500, executed, "the budget is spent once")
	allocations := func(n int) float64 {
		facts := manyEvictions(n)
		return testing.AllocsPerRun(3, func() { rollout.Decide(facts) })
	}
	assert.Less(t, allocations(8000)/allocations(1000), 12.0, "eight times as many cost about eight times as much")
}

func BenchmarkDecideManyEvictions(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		facts := manyEvictions(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				rollout.Decide(facts)
			}
		})
	}
}
