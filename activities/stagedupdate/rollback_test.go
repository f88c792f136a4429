package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const back = "example-run-2-rollback"

// rollback is a run that a user makes to roll the run of the documents back.
func rollback(h *hub) *placementv1beta1.ClusterStagedUpdateRun {
	h.t.Helper()
	run := runObject(back, "")
	run.Spec.RollbackOf = "example-run-2"
	run.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour))
	require.NoError(h.t, h.WithWatch.Create(h.t.Context(), run))
	return run
}

// approvedIfAsked passes the gates after a stage of a rollback: it has no tasks but approvals.
func (d *driver) approvedIfAsked(stage string, index int) {
	d.t.Helper()
	if d.gates(stage, index).NeedsApproval() {
		in := wf.ApprovalRequest{StageRequest: stageOf(back, stage, index), Channel: wf.ChannelUpdate}
		require.Empty(d.t, must(d.hub, d.acts.RecordApproval, in).Refused)
	}
	assert.True(d.t, d.gates(stage, index).Open, "there are no other tasks")
}

// tookBack drives a rollback to its end.
func tookBack(h *hub) *placementv1beta1.ClusterStagedUpdateRun {
	h.t.Helper()
	ref := refOf(back)
	state := must(h, h.acts.InitializeRun, ref).State
	require.True(h.t, state.Initialized, "%+v", h.run(back).Status.Conditions)
	d := &driver{hub: h, run: back}
	for i, stage := range state.Stages {
		if stage.Clusters > 0 {
			d.stage(stage.Name, i)
		}
		d.approvedIfAsked(stage.Name, i)
	}
	must(h, h.acts.AdvanceDeletion, ref)
	return h.run(back)
}

// failedHalfway is the run of the documents, of which one stage is done and one cluster of the
// other stays away.
func failedHalfway(t *testing.T, action placementv1beta1.FailureBudgetAction) *hub {
	t.Helper()
	h := withBudget(t, "0", action)
	d := &driver{hub: h, run: "example-run-2"}
	d.soaked("staging", 0)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	h.stuck["member1"] = true
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "canary", 1), Done: names("member3")})
	return h
}

func TestBeyondItsBudgetARunIsRolledBack(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
	assert.True(t, h.late(names("member1"), nil).Ended)
	assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: the failure budget of stage `canary` is exceeded: "+
		"member1 failed (1, at most 0 may); clusterStagedUpdateRun `example-run-2-rollback` takes its clusters back",
		conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
	made := h.run(back)
	assert.Equal(t, "example-run-2", made.Spec.RollbackOf)
	assert.Equal(t, "uid-example-run-2", made.Annotations[placementv1beta1.RollbackOfUIDAnnotation])

	// The same, an hour later and with a UID that this test knows.
	require.NoError(t, h.WithWatch.Delete(t.Context(), made))
	made.ResourceVersion = ""
	made.UID = "uid-" + back
	made.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour))
	require.NoError(t, h.WithWatch.Create(t.Context(), made))
	h.stuck["member1"] = false
	run := tookBack(h)
	assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully", conditionOf(run.Status.Conditions, "Succeeded"))
	assert.Equal(t, "1", run.Status.ResourceSnapshotIndexUsed)
	require.Len(t, run.Status.StagesStatus, 2)
	assert.Equal(t, "canary", run.Status.StagesStatus[0].StageName, "in reverse order")
	assert.Equal(t, []string{"member1", "member3"}, clustersOf(run, 0), "the one that is away goes first")
	assert.Equal(t, []string{"member2"}, clustersOf(run, 1))
	for _, cluster := range names("member1", "member2", "member3") {
		b := h.binding(cluster)
		assert.Equal(t, oldSnapshot, b.Spec.ResourceSnapshotName)
		assert.Equal(t, back, b.Annotations[placementv1beta1.UpdateRunAnnotation])
		assert.Equal(t, newSnapshot, b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation], "it can be rolled forward again")
	}
}

// Users who create runs choose what is rolled back: only what has proved good comes back past a hold.
func TestARollbackIsExemptIfItRestoresWhatHasSucceeded(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*placementv1beta1.ClusterStagedUpdateRun)
		exempt bool
	}{
		"a run had brought it, and has succeeded": {exempt: true},
		"there is no such run any more":           {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Name = "" }},
		"it has failed": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Status.Conditions[0].Status = metav1.ConditionFalse
		}},
		"it has not ended":                {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Status.Conditions = nil }},
		"it had brought something else":   {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Status.ResourceSnapshotIndexUsed = "0" }},
		"it was of another placement":     {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.PlacementName = "another" }},
		"it has brought it to no cluster": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Status.StagesStatus = nil }},
		"it has brought it to other clusters": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Status.StagesStatus[0].Clusters = r.Status.StagesStatus[0].Clusters[:1]
		}},
		"it has skipped a cluster": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Status.StagesStatus[0].Clusters[0].Conditions = []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonClusterUpdatingSkipped, LastTransitionTime: metav1.NewTime(begin),
			}}
		}},
		"it was a rollback, to what had been there": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.RollbackOf = "example-run-0" }},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
			require.True(t, h.late(names("member1"), nil).Ended)
			before := broughtBefore("member1", "member2", "member3")
			if test.change != nil {
				test.change(before)
			}
			if before.Name != "" {
				status := before.Status
				require.NoError(t, h.WithWatch.Create(t.Context(), before))
				before.Status = status
				require.NoError(t, h.WithWatch.Status().Update(t.Context(), before))
			}
			made := h.run(back) // the same, with a UID
			require.NoError(t, h.WithWatch.Delete(t.Context(), made))
			made.ResourceVersion = ""
			made.UID = "uid-" + back
			require.NoError(t, h.WithWatch.Create(t.Context(), made))
			require.True(t, initialize(h, back).Initialized, "%+v", h.run(back).Status.Conditions)
			run := h.run(back)
			assert.Equal(t, "1", run.Status.ResourceSnapshotIndexUsed)
			assert.Equal(t, test.exempt, rules.RestoresWhatSucceeded(run))
		})
	}
}

// broughtBefore is a run that has succeeded, and has brought clusters what a rollback takes them back to.
func broughtBefore(clusters ...string) *placementv1beta1.ClusterStagedUpdateRun {
	before := runObject("example-run-1", "")
	before.Status.ResourceSnapshotIndexUsed = "1"
	before.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all"}}
	for _, cluster := range clusters {
		before.Status.StagesStatus[0].Clusters = append(before.Status.StagesStatus[0].Clusters, placementv1beta1.ClusterUpdatingStatus{
			ClusterName: cluster,
			Conditions:  []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: "ClusterUpdatingSucceeded", LastTransitionTime: metav1.NewTime(begin)}},
		})
	}
	before.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: "UpdateRunSucceeded", LastTransitionTime: metav1.NewTime(begin)}}
	return before
}

func clustersOf(run *placementv1beta1.ClusterStagedUpdateRun, stage int) (names []string) {
	for _, c := range run.Status.StagesStatus[stage].Clusters {
		names = append(names, c.ClusterName)
	}
	return names
}

func TestARollbackIsMadeOnceAndUnderANameOfItsOwn(t *testing.T) {
	for sentence, test := range map[string]struct {
		there string
		want  string
	}{
		"it is there already":                             {there: "uid-example-run-2", want: back},
		"one of an earlier run of the same name is there": {there: "another", want: placementv1beta1.UniqueRollbackName("example-run-2", "uid-example-run-2")},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
			other := runObject(back, "")
			other.Spec.RollbackOf = "example-run-2"
			other.Annotations = map[string]string{placementv1beta1.RollbackOfUIDAnnotation: test.there}
			require.NoError(t, h.WithWatch.Create(t.Context(), other))
			assert.True(t, h.late(names("member1"), nil).Ended)
			assert.Equal(t, "uid-example-run-2", h.run(test.want).Annotations[placementv1beta1.RollbackOfUIDAnnotation])
			assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "`"+test.want+"`")
		})
	}
}

func TestARunThatIsRolledBackEndsFirst(t *testing.T) {
	for sentence, test := range map[string]struct {
		state placementv1beta1.UpdateRunState
		end   func(h *hub)
	}{
		"while it updates a stage": {end: func(h *hub) {
			assert.True(h.t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil)).Ended)
		}},
		"while it waits at a gate": {end: func(h *hub) {
			must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
			assert.True(h.t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
		}},
		"when it stands still": {state: placementv1beta1.StateStop, end: func(h *hub) {
			assert.True(h.t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := failedHalfway(t, placementv1beta1.FailureBudgetWait)
			edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = test.state })
			rollback(h)
			_, err := call(h, h.acts.InitializeRun, refOf(back))
			require.ErrorContains(t, err, "run example-run-2, which example-run-2-rollback rolls back, has not ended yet")
			assert.Equal(t, "Progressing=False UpdateRunWaiting: The updateRun is waiting for run example-run-2, which it rolls back, to end",
				conditionOf(h.run(back).Status.Conditions, "Progressing"))
			assert.Equal(t, back, h.run("example-run-2").Annotations[placementv1beta1.RolledBackByAnnotation])
			test.end(h)
			assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: clusterStagedUpdateRun `example-run-2-rollback` rolls it back",
				conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
			h.stuck["member1"] = false
			run := tookBack(h)
			assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully", conditionOf(run.Status.Conditions, "Succeeded"))
			assert.Equal(t, "Progressing=True UpdateRunStarted: The update run is making progress", conditionOf(run.Status.Conditions, "Progressing"))
			assert.Equal(t, oldSnapshot, h.binding("member2").Spec.ResourceSnapshotName)
		})
	}
}

func TestARollbackLeavesWhatHasNoWayBack(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	assert.True(t, h.late(names("member1"), nil).Ended)
	edit(h, h.binding("member1"), func(b *placementv1beta1.ClusterResourceBinding) {
		delete(b.Annotations, placementv1beta1.PreviousResourceSnapshotAnnotation)
	})
	edit(h, h.binding("member2"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.UpdateRunAnnotation], b.Annotations[placementv1beta1.UpdateRunUIDAnnotation] = "example-run-3", "uid-3"
	})
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation] = "example-placement-7-snapshot"
	})
	rollback(h)
	run := tookBack(h)
	reasons := map[string]string{}
	for _, stage := range run.Status.StagesStatus {
		for _, c := range stage.Clusters {
			reasons[c.ClusterName] = conditionOf(c.Conditions, "Succeeded")
		}
	}
	const left = "Succeeded=False ClusterUpdatingSkipped: Left as it is: "
	assert.Equal(t, map[string]string{
		"member1": left + "it had nothing before",
		"member2": left + "run example-run-3 has updated the cluster since",
		"member3": left + "resource snapshot example-placement-7-snapshot, which it had before, is gone",
	}, reasons)
	for cluster := range reasons {
		assert.Equal(t, newSnapshot, h.binding(cluster).Spec.ResourceSnapshotName)
	}
	assert.Equal(t, "Succeeded=True UpdateRunSucceeded: All stages are completed successfully, 3 skipped (member1, member3, member2)", conditionOf(run.Status.Conditions, "Succeeded"))
}

func TestEachClusterGoesBackToWhatItHad(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	require.NoError(t, h.WithWatch.Create(t.Context(), snapshotObject(3)))
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation] = "example-placement-3-snapshot"
	})
	assert.True(t, h.late(names("member1"), nil).Ended)
	h.stuck["member1"] = false
	rollback(h)
	run := tookBack(h)
	assert.Empty(t, run.Status.ResourceSnapshotIndexUsed, "there is no snapshot for all")
	assert.Equal(t, "example-placement-3-snapshot", h.binding("member3").Spec.ResourceSnapshotName)
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
}

func TestARollbackGoesOnWithoutAClusterThatStaysAwayAndFails(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	assert.True(t, h.late(names("member1"), nil).Ended)
	made := rollback(h)
	require.True(t, initialize(h, back).Initialized)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(back, "canary", 0), Start: names("member1")})
	})
	h.untilItWaits()
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, names("member1"), (<-delta).Failed)
	in := wf.StageAdvance{StageRequest: stageOf(back, "canary", 0), Start: names("member3"), Failed: names("member1")}
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, in).Recorded)
	d := &driver{hub: h, run: back}
	d.approvedIfAsked("canary", 0)
	d.stage("staging", 1)
	d.approvedIfAsked("staging", 1)
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf(made.Name)).Done)
	assert.Equal(t, "Succeeded=False UpdateRunFailed: 1 clusters were taken back and are not available: member1", conditionOf(h.run(back).Status.Conditions, "Succeeded"))
	assert.True(t, must(h, h.acts.LoadRun, refOf(back)).Terminal)
}

func TestARollbackThatCannotBe(t *testing.T) {
	for sentence, test := range map[string]struct {
		prepare func(h *hub, run *placementv1beta1.ClusterStagedUpdateRun)
		text    string
	}{
		"of a run that is not there": {func(_ *hub, r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.RollbackOf = "nobody" },
			"clusterStagedUpdateRun `nobody` to roll back not found"},
		"of an earlier run of the same name": {func(_ *hub, r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Annotations = map[string]string{placementv1beta1.RollbackOfUIDAnnotation: "earlier"}
		}, "clusterStagedUpdateRun `example-run-2` to roll back not found"},
		"of another placement": {func(_ *hub, r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.PlacementName = "other" },
			"clusterStagedUpdateRun `example-run-2` to roll back is of clusterResourcePlacement `example-placement`: name that one in placementName"},
		"with another strategy": {func(_ *hub, r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.StagedUpdateStrategyName = "other" },
			"clusterStagedUpdateRun `example-run-2` to roll back uses clusterStagedUpdateStrategy `example-strategy`: name that one in stagedRolloutStrategyName"},
		"of a run that is a rollback itself": {func(h *hub, r *placementv1beta1.ClusterStagedUpdateRun) {
			taken := runObject("taken-back", "")
			taken.Spec.RollbackOf = "example-run-1"
			taken.UID = "uid-taken-back"
			require.NoError(h.t, h.WithWatch.Create(h.t.Context(), taken))
			editStatus(h, h.run("taken-back"), func(t *placementv1beta1.ClusterStagedUpdateRun) { t.Status = h.run("example-run-2").Status })
			r.Spec.RollbackOf = "taken-back"
		}, "clusterStagedUpdateRun `taken-back` to roll back is a rollback itself, of `example-run-1`: create a run with the resourceSnapshotIndex that the clusters are to have"},
		"while an earlier run uses another strategy": {func(h *hub, _ *placementv1beta1.ClusterStagedUpdateRun) {
			editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse,
					Reason: placementv1beta1.ReasonUpdateRunFailed, LastTransitionTime: metav1.NewTime(begin)})
			})
			other := runObject("a-run", "")
			other.Spec.StagedUpdateStrategyName = "another-strategy"
			require.NoError(h.t, h.WithWatch.Create(h.t.Context(), other))
		}, "clusterStagedUpdateRun `a-run` of the same placement has not ended and uses clusterStagedUpdateStrategy `another-strategy`; " +
			"all concurrent runs of a placement must use the same strategy: use that one in another run, or wait for `a-run` to end, or delete it"},
		"of a run that was not initialized": {func(h *hub, _ *placementv1beta1.ClusterStagedUpdateRun) {
			editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Status.Conditions = nil })
		}, "clusterStagedUpdateRun `example-run-2` to roll back has updated no cluster: it was not initialized"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			run := runObject(back, "")
			run.Spec.RollbackOf = "example-run-2"
			run.UID = types.UID("uid-" + back)
			test.prepare(h, run)
			require.NoError(t, h.WithWatch.Create(t.Context(), run))
			assert.True(t, initialize(h, back).Terminal)
			assert.Contains(t, conditionOf(h.run(back).Status.Conditions, "Initialized"), test.text)
		})
	}
}

func TestARollbackSaysWhichClustersTheRunHasNotWrittenTo(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	assert.True(t, h.late(names("member1"), nil).Ended)
	edit(h, h.binding("member1"), func(b *placementv1beta1.ClusterResourceBinding) { b.Annotations = nil })
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.UpdateRunAnnotation], b.Annotations[placementv1beta1.UpdateRunUIDAnnotation] = "example-run-1", "uid-1"
		b.Annotations[placementv1beta1.UpdateRunCreatedAnnotation] = begin.Add(-time.Hour).Format(time.RFC3339)
	})
	rollback(h)
	initialize(h, back)
	for _, c := range h.run(back).Status.StagesStatus[0].Clusters {
		assert.Equal(t, "Succeeded=False ClusterUpdatingSkipped: Left as it is: the run has not written to it", conditionOf(c.Conditions, "Succeeded"))
	}
	assert.Len(t, h.run(back).Status.StagesStatus[0].Clusters, 2)
}

func TestARollbackThatMustNotBeCreatedIsSaid(t *testing.T) {
	const byHand = "the run that takes its clusters back could not be created: " + denial + "; create it by hand once it can be: kubectl fleet rollback example-run-2"
	h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
	h.refused[back] = answers(403, metav1.StatusReasonForbidden, denial)
	assert.True(t, h.late(names("member1"), nil).Ended)
	assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: the failure budget of stage `canary` is exceeded: "+
		"member1 failed (1, at most 0 may); "+byHand, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
	assert.Contains(t, h.events, "Warning example-run-2 RollbackRefused: "+byHand)

	h = failedHalfway(t, placementv1beta1.FailureBudgetRollback)
	h.refused[back] = answers(503, metav1.StatusReasonServiceUnavailable, "later")
	h.stuck["member1"] = true
	failed := background(h, func() error {
		_, err := call(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
		return err
	})
	h.untilItWaits()
	h.clock.Step(5 * time.Minute)
	require.ErrorContains(t, <-failed, "later")
	h.refused[back] = nil
	assert.True(t, must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member1"), nil)).Ended, "the next attempt makes it")
	assert.Equal(t, "example-run-2", h.run(back).Spec.RollbackOf)
}

func TestARollbackWhoseNamesAreTakenIsSaid(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
	for _, name := range []string{back, placementv1beta1.UniqueRollbackName("example-run-2", "uid-example-run-2")} {
		require.NoError(t, h.WithWatch.Create(t.Context(), runObject(name, "")))
	}
	assert.True(t, h.late(names("member1"), nil).Ended)
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "others have its names; create it by hand once it can be: kubectl fleet rollback example-run-2 --name NAME")
}

func TestARollbackKeepsItsApprovalsUnlessTheStrategySaysOtherwise(t *testing.T) {
	for sentence, test := range map[string]struct {
		approvals placementv1beta1.RollbackApprovalsPolicy
		action    placementv1beta1.FailureBudgetAction
		kept      bool
	}{
		"if it is left out":                 {"", placementv1beta1.FailureBudgetAbort, true},
		"if it says so":                     {placementv1beta1.RollbackApprovalsKeep, placementv1beta1.FailureBudgetAbort, true},
		"not if it says Skip":               {placementv1beta1.RollbackApprovalsSkip, placementv1beta1.FailureBudgetAbort, false},
		"not if its budget asks to go back": {"", placementv1beta1.FailureBudgetRollback, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := failedHalfway(t, test.action)
			assert.True(t, h.late(names("member1"), nil).Ended)
			editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.UpdateStrategySnapshot.RollbackApprovals = test.approvals
			})
			if test.action != placementv1beta1.FailureBudgetRollback {
				rollback(h)
			}
			must(h, h.acts.InitializeRun, refOfUID(h.run(back)))
			canary := h.run(back).Status.StagesStatus[0]
			if !test.kept {
				assert.Empty(t, canary.AfterStageTaskStatus)
				return
			}
			require.Len(t, canary.AfterStageTaskStatus, 1, "and no soak time")
			assert.Equal(t, placementv1beta1.StageTaskTypeApproval, canary.AfterStageTaskStatus[0].Type)
			assert.Equal(t, back+"-canary", canary.AfterStageTaskStatus[0].ApprovalRequestName)
		})
	}
}

// refOfUID names a run by the UID that it has.
func refOfUID(run *placementv1beta1.ClusterStagedUpdateRun) wf.Ref {
	ref := refOf(run.Name)
	ref.UID = string(run.UID)
	return ref
}

func TestAPlacementNamesTheStrategiesThatRunsMayUse(t *testing.T) {
	const refused = "clusterResourcePlacement `example-placement` does not allow runs with clusterStagedUpdateStrategy `example-strategy`: create the run with one of gated, slow, " +
		"or have a user who may change the placement add it to spec.strategy.external.allowedStrategies"
	for sentence, test := range map[string]struct {
		allowed []string
		why     string
	}{
		"any, if it names none": {nil, ""},
		"one of them":           {names("gated", "example-strategy"), ""},
		"no other":              {names("gated", "slow"), refused},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t)
			edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Spec.Strategy.External = &placementv1beta1.ExternalRolloutConfig{AllowedStrategies: test.allowed}
			})
			assert.Equal(t, test.why == "", initialize(h, "example-run-2").Initialized)
			if test.why != "" {
				assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), "Initialized=False UpdateRunInitializedFailed: ")
				assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), test.why)
			}
		})
	}
}
