package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const waitsSuspended = "Started=True ClusterUpdatingStarted: Cluster update waits: " + rules.SuspensionText

// suspend suspends clusters of the placement, as a user does, and lets the informer tell.
func (h *hub) suspend(clusters ...string) {
	h.t.Helper()
	before := get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement")
	now := edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: clusters}
		p.Generation++
	})
	h.tell(&placementv1beta1.ClusterResourcePlacement{}, before, now)
}

func TestARunWaitsForASuspendedClusterAndDoesNotFailIt(t *testing.T) {
	h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		s.Stages[1].FailureBudget = &placementv1beta1.FailureBudget{}
	})
	h.suspend("member3")
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, waitsSuspended, h.canaryCondition("member3", "Started"))
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
	assert.Equal(t, names("Normal example-run-2 ClusterSuspended: Cluster member3 in stage canary waits: "+rules.SuspensionText), h.events)

	h.clock.Step(time.Hour)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta, "it is waited for however long it takes")
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Equal(t, waitsSuspended, h.canaryCondition("member3", "Started"))

	delta = h.advancing(canaryAdvance(nil, names("member3"), nil))
	h.suspend()
	assert.Equal(t, "member3", (<-delta).Waiting, "it is written to")
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)).Done)
	assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Len(t, h.events, 1, "%v", h.events)
}

func TestAClusterThatIsSuspendedAfterItWasWrittenToIsWaitedFor(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.suspend("member3")
	h.clock.Step(time.Hour)
	<-delta
	assert.Equal(t, isStarted, progressingOf(h), "the run is not stuck")
	delta = h.advancing(canaryAdvance(nil, names("member3"), nil))
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Done, "it counts as it is")
}

func TestASuspendedClusterIsSkippedIfTheUserAsksForThat(t *testing.T) {
	h := initialized(t)
	h.suspend("member3")
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.ask(action("member3", skip, 1))
	assert.Equal(t, names("member3"), (<-delta).Skipped)
	require.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

func TestTheDeletionStageWaitsForASuspendedCluster(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot"))
	initialize(h, "example-run-2")
	h.suspend("member4")
	h.events = nil
	ended := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	cluster := h.run("example-run-2").Status.DeletionStageStatus.Clusters[0]
	assert.Equal(t, waitsSuspended, conditionOf(cluster.Conditions, "Started"))
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	assert.Len(t, h.events, 1, "%v", h.events)
	h.suspend()
	assert.False(t, <-ended, "the workflow calls again")
	assert.True(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Succeeded)
}
