package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	skip  = placementv1beta1.ClusterActionSkip
	retry = placementv1beta1.ClusterActionRetry

	wasSkipped  = "Succeeded=False ClusterUpdatingSkipped: Skipped, as spec.clusterActions asks for"
	wasUpdated  = "Succeeded=True ClusterUpdatingSucceeded: Cluster update completed successfully"
	wasStarted  = "Started=True ClusterUpdatingStarted: Cluster update started"
	startedAnew = "Started=True ClusterUpdatingStarted: Cluster update started again, as spec.clusterActions asks for"
	oldSnapshot = "example-placement-1-snapshot"
	newSnapshot = "example-placement-0-snapshot"
)

// ask changes the actions of the run as a user does, and lets the informer tell.
func (h *hub) ask(actions ...placementv1beta1.ClusterAction) {
	h.t.Helper()
	before := h.run("example-run-2")
	now := edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.ClusterActions = actions
		r.Generation++
	})
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, before, now)
}

func action(cluster string, what placementv1beta1.ClusterActionType, attempt int32) placementv1beta1.ClusterAction {
	return placementv1beta1.ClusterAction{Cluster: cluster, Action: what, Attempt: attempt}
}

// canaryCluster is the status of a cluster of the stage canary.
func (h *hub) canaryCluster(name string) placementv1beta1.ClusterUpdatingStatus {
	h.t.Helper()
	for _, c := range h.run("example-run-2").Status.StagesStatus[1].Clusters {
		if c.ClusterName == name {
			return c
		}
	}
	h.t.Fatalf("there is no cluster %s", name)
	panic("unreachable")
}

func (h *hub) canaryCondition(cluster, kind string) string {
	h.t.Helper()
	return conditionOf(h.canaryCluster(cluster).Conditions, kind)
}

// advancing runs AdvanceStage in the background until it waits.
func (h *hub) advancing(in wf.StageAdvance) chan wf.StageDelta {
	h.t.Helper()
	delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, in) })
	h.untilItWaits()
	return delta
}

// withoutFirst is a request that goes on without the first cluster of its stage, which is skipped.
func withoutFirst(in wf.StageAdvance) wf.StageAdvance {
	in.SkippedAt = "0"
	return in
}

func TestAClusterThatWaitsForItsTurnIsSkipped(t *testing.T) {
	h := initialized(t)
	h.ask(action("member3", skip, 1))
	assert.Equal(t, wf.StageDelta{Skipped: names("member3"), NextAt: "1"}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
	assert.Equal(t, wasSkipped, h.canaryCondition("member3", "Succeeded"))
	assert.Empty(t, h.canaryCondition("member3", "Started"))
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
	assert.Equal(t, names("Normal example-run-2 ClusterSkipped: Cluster member3 in stage canary is skipped, as spec.clusterActions asks for"), h.events)

	plan := must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
	assert.Equal(t, []int{0}, plan.Skipped)
	assert.Empty(t, plan.Started)
	delta := must(h, h.acts.AdvanceStage, withoutFirst(canaryAdvance(names("member1"), nil, nil)))
	assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, delta)
	assert.Len(t, h.events, 1, "it is skipped once")
	gates := must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)})
	assert.True(t, gates.NeedsApproval(), "the stage comes to its gates")
}

func TestAClusterInFlightIsSkippedAndKeepsWhatItHas(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.ask(action("member3", skip, 1))
	skipped := wf.StageDelta{Skipped: names("member3"), NextAt: "1"}
	assert.Equal(t, skipped, <-delta, "the wait ends")
	assert.Equal(t, skipped, must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)), "should its answer be lost, it is given again")
	assert.Equal(t, wasSkipped+"; it keeps what was written to it", h.canaryCondition("member3", "Succeeded"))
	assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, must(h, h.acts.AdvanceStage, withoutFirst(canaryAdvance(names("member1"), nil, nil))), "another takes its place")
}

func TestARunThatStopsNeedNotWaitForASkippedCluster(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	before := h.run("example-run-2")
	stopped := edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateStop
		r.Generation = 2
	})
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, before, stopped)
	assert.True(t, (<-delta).Stopping)
	h.ask(action("member3", skip, 1))
	assert.Equal(t, wf.StageDelta{Stopping: true, Skipped: names("member3")}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil)))
}

func TestAClusterThatIsDoneIsLeftAlone(t *testing.T) {
	for sentence, what := range map[string]placementv1beta1.ClusterActionType{"by a skip": skip, "by a retry": retry} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
			h.ask(action("member3", what, 1))
			h.stuck["member1"] = true
			h.advancing(canaryAdvance(names("member1"), nil, names("member3"))) // it waits, so it does not loop
			assert.Equal(t, wasUpdated, h.canaryCondition("member3", "Succeeded"))
			assert.Empty(t, h.events)
		})
	}
}

func TestAClusterInFlightIsTriedAgain(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.clock.Step(4 * time.Minute)
	edit(h, get(h, &placementv1beta1.Work{}, "fleet-member-member3", "example-placement-work"), func(w *placementv1beta1.Work) {
		w.Annotations[placementv1beta1.RevisionAnnotation] = "spoiled"
	})
	h.ask(action("member3", retry, 1))
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta, "the wait ends")

	delta = h.advancing(canaryAdvance(nil, names("member3"), nil))
	assert.Equal(t, startedAnew, h.canaryCondition("member3", "Started"))
	assert.EqualValues(t, 1, h.canaryCluster("member3").Attempt)
	assert.NotEqual(t, "spoiled", get(h, &placementv1beta1.Work{}, "fleet-member-member3", "example-placement-work").Annotations[placementv1beta1.RevisionAnnotation], "it is written to again")
	h.clock.Step(4 * time.Minute)
	assert.Equal(t, isStarted, progressingOf(h), "its deadline counts from the retry")
	h.clock.Step(time.Minute)
	<-delta
	assert.Equal(t, isStuck, progressingOf(h))

	h.ask(action("member3", retry, 2))
	delta = h.advancing(canaryAdvance(nil, names("member3"), nil))
	assert.EqualValues(t, 2, h.canaryCluster("member3").Attempt)
	h.recover("member3")
	assert.Equal(t, names("member3"), (<-delta).Done)
	assert.Len(t, h.events, 3, "tried again, stuck, tried again: %v", h.events)
}

func TestASkippedClusterIsTriedAfterAll(t *testing.T) {
	h := initialized(t)
	h.ask(action("member3", skip, 1))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	h.ask(action("member3", retry, 1))
	assert.Equal(t, wf.StageDelta{Requeued: names("member3"), Waiting: "member1"}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil)),
		"it waits for its turn")
	assert.Empty(t, h.canaryCluster("member3").Conditions)
	plan := must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1))
	assert.Empty(t, plan.Skipped)
	assert.Equal(t, []int{1}, plan.Started)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), names("member1"), nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Equal(t, wasStarted, h.canaryCondition("member3", "Started"))
}

func TestARetryBeforeTheTurnIsNoRetry(t *testing.T) {
	h := initialized(t)
	h.ask(action("member1", retry, 1), action("no-such-cluster", skip, 1))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.EqualValues(t, 1, h.canaryCluster("member1").Attempt)
	h.stuck["member1"] = true
	h.advancing(canaryAdvance(names("member1"), nil, names("member3")))
	assert.Equal(t, wasStarted, h.canaryCondition("member1", "Started"))
	assert.Empty(t, h.events)
}

func TestARunSaysWhichClustersItSkipped(t *testing.T) {
	h := initialized(t)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.ClusterActions = []placementv1beta1.ClusterAction{action("member3", skip, 0), action("member2", skip, 0)}
	})
	d := &driver{hub: h, run: "example-run-2"}
	d.stage("staging", 0)
	d.gates("staging", 0)
	h.clock.Step(time.Minute)
	require.True(t, d.gates("staging", 0).Open)
	d.stage("canary", 1)
	d.approved("canary", 1)
	require.True(t, must(h, h.acts.AdvanceDeletion, refOf(d.run)).Done)
	run := h.run(d.run)
	assert.Equal(t, "Succeeded=True StageUpdatingSucceeded: Stage update completed successfully, 1 skipped (member2)", conditionOf(run.Status.StagesStatus[0].Conditions, "Succeeded"))
	assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully, 2 skipped (member2, member3)", conditionOf(run.Status.Conditions, "Succeeded"))
	assert.Equal(t, oldSnapshot, h.binding("member2").Spec.ResourceSnapshotName)
	assert.Equal(t, newSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
}
