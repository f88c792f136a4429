package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// withStrategy is the hub of the documents with the plan frozen from a strategy that was changed
// before.
func withStrategy(t *testing.T, change func(*placementv1beta1.UpdateStrategySpec)) *hub {
	t.Helper()
	h := howTo(t)
	strategy := get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy")
	edit(h, strategy, func(s *placementv1beta1.ClusterStagedUpdateStrategy) { change(&s.Spec) })
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.events = nil
	return h
}

func minutes(n int32) *int32 {
	return new(60 * n)
}

func TestARunIsStuckAfterTheDeadlineOfItsStage(t *testing.T) {
	h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) { s.Stages[1].ClusterDeadlineSeconds = minutes(20) })
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	h.clock.Step(9 * time.Minute) // that is how long one call waits
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Equal(t, isStarted, progressingOf(h), "the deadline has not passed")
	delta = background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil))
	})
	h.untilItWaits()
	h.clock.Step(9 * time.Minute)
	<-delta
	delta = background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil))
	})
	h.untilItWaits()
	h.clock.Step(2 * time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Equal(t, isStuck, progressingOf(h))
	assert.Equal(t, names("Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating for 20m0s"), h.events)
}
