package stagedupdate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// drive does what the workflows do, calling every activity again until it
// succeeds: do repairs whatever made it fail.
type driver struct {
	*hub
	run    string
	repair func()
}

func try[In, Out any](d *driver, f func(in In) (Out, error), in In) Out {
	d.t.Helper()
	for range 3 {
		out, err := f(in)
		if err == nil {
			return out
		}
		require.ErrorContains(d.t, err, errDied.Error())
		require.NotNil(d.t, d.repair, "%v", err)
		d.repair()
	}
	d.t.Fatal("the activity fails again and again")
	panic("unreachable")
}

// stage runs the window of a stage.
func (d *driver) stage(name string, index int) {
	d.t.Helper()
	request := stageOf(d.run, name, index)
	plan := try(d, func(in wf.StageRequest) (wf.StagePlan, error) { return call(d.hub, d.acts.LoadStage, in) }, request)
	require.False(d.t, plan.Gone)
	progress := make(rollout.Progress, len(plan.Clusters))
	for phase, indexes := range map[rollout.ClusterPhase][]int{
		rollout.ClusterUpdating: plan.Started, rollout.ClusterDone: plan.Done, rollout.ClusterFailed: plan.Failed, rollout.ClusterSkipped: plan.Skipped,
	} {
		for _, i := range indexes {
			progress[i] = phase
		}
	}
	mark := func(names []string, phase rollout.ClusterPhase) {
		for _, c := range names {
			progress[slices.Index(plan.Clusters, c)] = phase
		}
	}
	in := func(phase rollout.ClusterPhase) (names []string) {
		for _, i := range progress.In(phase) {
			names = append(names, plan.Clusters[i])
		}
		return names
	}
	var unrecorded []string
	for next := plan.NextAt; !progress.Settled() || len(unrecorded) > 0; {
		start := next.Of(plan.Clusters)
		in := wf.StageAdvance{
			StageRequest: request, Start: start, Done: unrecorded, InFlight: in(rollout.ClusterUpdating), Failed: in(rollout.ClusterFailed),
			SkippedAt: wf.PositionsOf(progress.In(rollout.ClusterSkipped)),
		}
		mark(start, rollout.ClusterUpdating)
		delta := try(d, func(in wf.StageAdvance) (wf.StageDelta, error) { return call(d.hub, d.acts.AdvanceStage, in) }, in)
		require.False(d.t, delta.Ended)
		next = delta.NextAt
		unrecorded = delta.Done
		mark(delta.Requeued, rollout.ClusterWaiting)
		mark(delta.Failed, rollout.ClusterFailed)
		mark(delta.Skipped, rollout.ClusterSkipped)
		mark(slices.Concat(delta.Done, delta.Recorded), rollout.ClusterDone)
	}
}

func (d *driver) gates(name string, index int) wf.GateState {
	d.t.Helper()
	return try(d, func(in wf.GateRequest) (wf.GateState, error) { return call(d.hub, d.acts.CheckGates, in) },
		wf.GateRequest{StageRequest: stageOf(d.run, name, index)})
}

// whole drives the run of the documents from its start to its end.
func (d *driver) whole() {
	d.t.Helper()
	state := try(d, func(string) (wf.RunState, error) {
		result, err := call(d.hub, d.acts.InitializeRun, refOf(d.run))
		return result.State, err
	}, "")
	require.True(d.t, state.Initialized)
	d.stage("staging", 0)
	waiting := d.gates("staging", 0)
	assert.Equal(d.t, d.clock.Now().Add(time.Minute), soakEnd(waiting).UTC())
	d.clock.Step(time.Minute)
	assert.True(d.t, d.gates("staging", 0).Open)
	d.stage("canary", 1)
	waiting = d.gates("canary", 1)
	assert.Equal(d.t, waitsForApproval(d.run+"-canary"), waiting)
	result := try(d, func(in wf.ApprovalRequest) (wf.ApprovalResult, error) {
		return call(d.hub, d.acts.RecordApproval, in)
	},
		wf.ApprovalRequest{StageRequest: stageOf(d.run, "canary", 1), Channel: wf.ChannelSignal, Comment: "lgtm"})
	assert.Equal(d.t, d.run+"-canary", result.Request)
	assert.Equal(d.t, "ada", result.By)
	assert.True(d.t, d.gates("canary", 1).Open)
	assert.True(d.t, try(d, func(string) (wf.DeletionResult, error) { return call(d.hub, d.acts.AdvanceDeletion, refOf(d.run)) }, "").Done)
}

func TestARunLeavesTheBindingsAndEventsOfTheDocuments(t *testing.T) {
	h := howTo(t)
	(&driver{hub: h, run: "example-run-2"}).whole()
	assert.Equal(t, "0", h.run("example-run-2").Status.ResourceSnapshotIndexUsed)
	for _, cluster := range []string{"member1", "member2", "member3"} {
		b := h.binding(cluster)
		assert.Equal(t, "example-placement-0-snapshot", b.Spec.ResourceSnapshotName)
		assert.Equal(t, map[string]string{
			placementv1beta1.UpdateRunAnnotation: "example-run-2", placementv1beta1.UpdateRunUIDAnnotation: "uid-example-run-2",
			placementv1beta1.UpdateRunCreatedAnnotation:         "2026-01-02T03:04:05Z",
			placementv1beta1.PreviousResourceSnapshotAnnotation: "example-placement-1-snapshot",
		}, b.Annotations)
	}
	assert.Equal(t, []string{
		"Normal example-run-2 UpdateRunInitializedSuccessfully: Froze 3 clusters in 2 stages, resource snapshot index 0",
		"Normal example-run-2 StageUpdatingSucceeded: Stage staging is complete",
		"Normal example-run-2 ApprovalRequestCreated: Stage canary waits for an approval: approve example-run-2-canary with kubectl, or send approve to workflow updaterun/example-run-2",
		"Normal example-run-2 Approved: Stage canary of run example-run-2 was approved by ada through a Temporal signal (not verified)",
		"Normal example-run-2-canary Approved: Stage canary of run example-run-2 was approved by ada through a Temporal signal (not verified)",
		"Normal example-run-2 StageUpdatingSucceeded: Stage canary is complete",
		"Normal example-run-2 UpdateRunSucceeded: All stages are completed successfully",
	}, h.events)
}

// A process may die at any of its writes, before it or after it: done again, the
// run comes to the same end.
func TestARunDiesAtAnyWriteAndEndsTheSame(t *testing.T) {
	removed := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot")
	dieAnywhere(t, func() *hub { return howTo(t, removed.DeepCopy()) }, (*driver).whole, ending, 10)
}

// dieAnywhere drives a run to its end on one hub after the other and dies at another write each time, which it can do at
// more than so many of them; what the run leaves behind is always the same.
func dieAnywhere(t *testing.T, begin func() *hub, drive func(*driver), ending func(*hub) map[string]any, atLeast int) {
	t.Helper()
	whole := func(left int, lost bool) (*hub, bool) {
		h := begin()
		h.left = left
		h.lost = lost
		died := false
		drive(&driver{hub: h, run: "example-run-2", repair: func() {
			died = true
			h.left = -1
		}})
		return h, died
	}
	want, _ := whole(-1, false)
	for _, lost := range []bool{false, true} {
		deaths := 0
		for k := range want.writes {
			got, died := whole(k, lost)
			if died {
				deaths++
			}
			if diff := cmp.Diff(ending(want), ending(got)); diff != "" {
				t.Errorf("died at write %d (its answer lost: %t) (-want +got):\n%s", k, lost, diff)
			}
		}
		assert.Greater(t, deaths, atLeast)
	}
}

// unhindered is the hub of the documents with nothing to wait for between its stages.
func unhindered(t *testing.T, further ...client.Object) *hub {
	t.Helper()
	h := howTo(t, further...)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		for i := range s.Spec.Stages {
			s.Spec.Stages[i].AfterStageTasks = nil
		}
	})
	return h
}

// through drives a run without tasks from its start to its end.
func (d *driver) through() {
	d.t.Helper()
	try(d, func(string) (wf.InitializeResult, error) { return call(d.hub, d.acts.InitializeRun, refOf(d.run)) }, "")
	for i, stage := range []string{"staging", "canary"} {
		d.stage(stage, i)
		assert.True(d.t, d.gates(stage, i).Open)
	}
	assert.True(d.t, try(d, func(string) (wf.DeletionResult, error) { return call(d.hub, d.acts.AdvanceDeletion, refOf(d.run)) }, "").Done)
}

// The status of a run is the most expensive thing it writes: a stage that nothing holds up ends
// with the write of its last cluster.
func TestAStageThatNothingHoldsUpEndsWithTheWriteOfItsLastCluster(t *testing.T) {
	h := unhindered(t)
	d := &driver{hub: h, run: "example-run-2"}
	require.True(t, initialize(h, d.run).Initialized)
	h.events = nil
	d.stage("staging", 0)
	stage := h.run(d.run).Status.StagesStatus[0]
	assert.Equal(t, "Succeeded=True StageUpdatingSucceeded: Stage update completed successfully", conditionOf(stage.Conditions, "Succeeded"))
	assert.Equal(t, "Progressing=False StageUpdatingWaiting: All clusters in the stage are updated", conditionOf(stage.Conditions, "Progressing"))
	assert.NotNil(t, stage.EndTime)
	complete := []string{"Normal example-run-2 StageUpdatingSucceeded: Stage staging is complete"}
	assert.Equal(t, complete, h.events)

	writes := h.writes
	assert.True(t, d.gates("staging", 0).Open)
	assert.Equal(t, writes, h.writes, "there is nothing left to say")
	assert.Equal(t, complete, h.events)
}

func TestAStageDoesNotEndWithItsLastClusterWhereSomethingIsLeftToDo(t *testing.T) {
	for sentence, test := range map[string]struct {
		before func(*placementv1beta1.ClusterStagedUpdateRun)
		then   wf.StageAdvance
	}{
		"a task comes after it": {
			before: func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.StagesStatus[1].AfterStageTaskStatus = []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeTimedWait}}
			},
			then: canaryAdvance(names("member1", "member3"), nil, nil),
		},
		"another cluster was given up": {
			before: func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.StagesStatus[1].Clusters[0].Conditions = []metav1.Condition{{
					Type: "Succeeded", Status: metav1.ConditionFalse, Reason: "ClusterUpdatingFailed", LastTransitionTime: metav1.NewTime(begin),
				}}
			},
			then: wf.StageAdvance{StageRequest: stageOf("example-run-2", "canary", 1), Start: names("member1"), Failed: names("member3")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := unhindered(t)
			require.True(t, initialize(h, "example-run-2").Initialized)
			editStatus(h, h.run("example-run-2"), test.before)
			assert.Contains(t, must(h, h.acts.AdvanceStage, test.then).Recorded, "member1")
			assert.Empty(t, conditionOf(h.run("example-run-2").Status.StagesStatus[1].Conditions, "Succeeded"))
		})
	}
}

// afterTheRead changes the run once an activity has read it, before it writes its status.
func afterTheRead(h *hub, change func(*placementv1beta1.UpdateRunSpec)) {
	h.onGet["example-placement"] = func() {
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { change(&r.Spec) })
	}
}

func TestAStageDoesNotEndIfTheRunIsStoppedInTheLastMoment(t *testing.T) {
	last := canaryAdvance(names("member1", "member3"), nil, nil)
	whole := unhindered(t)
	require.True(t, initialize(whole, "example-run-2").Initialized)
	before := whole.writes
	must(whole, whole.acts.AdvanceStage, last)
	require.NotEmpty(t, conditionOf(whole.run("example-run-2").Status.StagesStatus[1].Conditions, "Succeeded"))

	h := unhindered(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.left = whole.writes - before - 1 // it dies before the last write, and is called again
	_, err := call(h, h.acts.AdvanceStage, last)
	require.ErrorContains(t, err, errDied.Error())
	h.left = -1
	afterTheRead(h, func(s *placementv1beta1.UpdateRunSpec) { s.State = placementv1beta1.StateStop })
	assert.Contains(t, must(h, h.acts.AdvanceStage, last).Recorded, "member1")
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.StagesStatus[1].Conditions, "Succeeded"))
}

// skipped is a run of which the first cluster of the canaries was left out.
func skipped(t *testing.T) *hub {
	t.Helper()
	h := unhindered(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Status.StagesStatus[1].Clusters[0].Conditions = []metav1.Condition{{
			Type: "Succeeded", Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonClusterUpdatingSkipped, LastTransitionTime: metav1.NewTime(begin),
		}}
	})
	return h
}

func anotherTry(s *placementv1beta1.UpdateRunSpec) {
	s.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member3", Action: placementv1beta1.ClusterActionRetry, Attempt: 1}}
}

func TestARetryThatComesWithTheLastWriteOfAStageIsCarriedOut(t *testing.T) {
	h := skipped(t)
	afterTheRead(h, anotherTry)
	delta := must(h, h.acts.AdvanceStage, withoutFirst(canaryAdvance(names("member1"), nil, nil)))
	assert.Equal(t, names("member3"), delta.Requeued)
	delta = must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member1"), nil))
	assert.Equal(t, wf.StageDelta{Done: names("member1"), NextAt: "0"}, delta, "the next call records it, and starts the other")
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, names("member1")))
	stage := h.run("example-run-2").Status.StagesStatus[1]
	assert.Empty(t, conditionOf(stage.Conditions, "Succeeded"))
	assert.Empty(t, stage.Clusters[0].Conditions)
	assert.NotEmpty(t, conditionOf(stage.Clusters[1].Conditions, "Succeeded"))
}

func TestAStageThatIsOverIsNotTakenUpAgainByALateRetry(t *testing.T) {
	h := skipped(t)
	last := withoutFirst(canaryAdvance(names("member1"), nil, nil))
	assert.Equal(t, names("member1"), must(h, h.acts.AdvanceStage, last).Recorded)
	over := h.run("example-run-2").Status.StagesStatus[1]
	require.Equal(t, "Succeeded=True StageUpdatingSucceeded: Stage update completed successfully, 1 skipped (member3)", conditionOf(over.Conditions, "Succeeded"))
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { anotherTry(&r.Spec) })
	// The answer of the call that ended the stage was lost, and it is made again.
	delta := must(h, h.acts.AdvanceStage, last)
	assert.Empty(t, delta.Requeued)
	assert.Equal(t, over, h.run("example-run-2").Status.StagesStatus[1])
}

func TestARunWithoutTasksDiesAtAnyWriteAndEndsTheSame(t *testing.T) {
	dieAnywhere(t, func() *hub { return unhindered(t) }, (*driver).through, onClusters, 8)
}

// ending is all that a run leaves behind.
func ending(h *hub) map[string]any {
	h.t.Helper()
	out := onClusters(h)
	request := get(h, &placementv1beta1.ClusterApprovalRequest{}, "", "example-run-2-canary")
	out["request"] = []any{request.Labels, request.Annotations, request.Spec, request.Status}
	return out
}

// onClusters is what a run leaves behind for each cluster, and its status.
func onClusters(h *hub) map[string]any {
	h.t.Helper()
	out := map[string]any{"run": h.run("example-run-2").Status}
	for _, name := range []string{"member1", "member2", "member3"} {
		b := h.binding(name)
		out[name] = []any{b.Spec, b.Annotations}
		work := get(h, &placementv1beta1.Work{}, placementv1beta1.MemberNamespace(name), "example-placement-work")
		out[name+" work"] = work.Annotations
	}
	var left placementv1beta1.ClusterResourceBindingList
	require.NoError(h.t, h.List(h.t.Context(), &left))
	out["bindings"] = len(left.Items)
	return out
}
