package stagedupdate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// initialized is the hub of the documents with the plan frozen.
func initialized(t *testing.T) *hub {
	t.Helper()
	h := howTo(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.events = nil
	return h
}

func canaryAdvance(start, inFlight, done []string) wf.StageAdvance {
	return wf.StageAdvance{StageRequest: stageOf("example-run-2", "canary", 1), Start: start, InFlight: inFlight, Done: done}
}

func names(list ...string) []string { return list }

func progressingOf(h *hub) string {
	return conditionOf(h.run("example-run-2").Status.Conditions, "Progressing")
}

const (
	isStarted = "Progressing=True UpdateRunStarted: The update run is making progress"
	isStuck   = "Progressing=False UpdateRunStuck: The updateRun is stuck waiting for cluster member3 in stage canary to finish updating, please check crp status for potential errors"
	isStopped = "Progressing=False UpdateRunStopped: The update run has been stopped"
)

func TestAdvanceStageStartsExactlyWhatItIsTold(t *testing.T) {
	h := initialized(t)
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, wf.StageDelta{Done: names("member3"), NextAt: "1"}, delta)
	assert.Equal(t, "example-placement-0-snapshot", h.binding("member3").Spec.ResourceSnapshotName)
	assert.Equal(t, "example-placement-1-snapshot", h.binding("member1").Spec.ResourceSnapshotName)
	stage := h.run("example-run-2").Status.StagesStatus[1]
	assert.Equal(t, "Progressing=True StageUpdatingStarted: Clusters in the stage started updating", conditionOf(stage.Conditions, "Progressing"))
	assert.Equal(t, "Started=True ClusterUpdatingStarted: Cluster update started", conditionOf(stage.Clusters[0].Conditions, "Started"))
	assert.Empty(t, conditionOf(stage.Clusters[0].Conditions, "Succeeded"), "it is recorded with the next call")
	assert.Empty(t, stage.Clusters[1].Conditions)

	delta = must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, delta, "the last of a stage is recorded at once")
	stage = h.run("example-run-2").Status.StagesStatus[1]
	for _, c := range stage.Clusters {
		assert.Equal(t, "Succeeded=True ClusterUpdatingSucceeded: Cluster update completed successfully", conditionOf(c.Conditions, "Succeeded"))
	}
}

func TestOverlappingAttemptsRecordTheSameInAnyOrder(t *testing.T) {
	steps := []wf.StageAdvance{
		canaryAdvance(names("member3"), nil, nil),
		canaryAdvance(names("member1"), nil, names("member3")),
	}
	want := initialized(t)
	for _, step := range steps {
		must(want, want.acts.AdvanceStage, step)
	}
	for sentence, order := range map[string][]int{
		"the first attempt again at the end": {0, 1, 0},
		"each attempt twice":                 {0, 0, 1, 1},
		"all attempts again":                 {0, 1, 0, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			for _, i := range order {
				must(h, h.acts.AdvanceStage, steps[i])
			}
			if diff := cmp.Diff(want.run("example-run-2").Status, h.run("example-run-2").Status); diff != "" {
				t.Errorf("status (-in order +here):\n%s", diff)
			}
		})
	}
}

func TestAnotherWriterOfTheStatusIsNotOverwritten(t *testing.T) {
	h := initialized(t)
	// Between the read and the write of the run somebody else writes it.
	h.onGet["example-placement"] = func() {
		editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Status.StagesStatus[0].Clusters[0].Conditions = []metav1.Condition{{
				Type: "Started", Status: metav1.ConditionTrue, Reason: "ClusterUpdatingStarted", LastTransitionTime: metav1.NewTime(begin),
			}}
		})
	}
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	status := h.run("example-run-2").Status
	assert.NotEmpty(t, status.StagesStatus[0].Clusters[0].Conditions)
	assert.NotEmpty(t, status.StagesStatus[1].Clusters[0].Conditions)
}

func TestALaterRunPreempts(t *testing.T) {
	for sentence, test := range map[string]struct{ start, inFlight []string }{
		"before the cluster is started": {start: names("member3")},
		"while the cluster is updating": {inFlight: names("member3")},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			if test.inFlight != nil {
				must(h, h.acts.AdvanceStage, canaryAdvance(test.inFlight, nil, nil))
			}
			edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
				b.Spec.State = placementv1beta1.BindingStateBound
				b.Spec.ResourceSnapshotName = "example-placement-1-snapshot"
				b.Annotations = map[string]string{
					placementv1beta1.UpdateRunAnnotation: "example-run-3", placementv1beta1.UpdateRunUIDAnnotation: "uid-3",
					placementv1beta1.UpdateRunCreatedAnnotation: begin.Add(time.Minute).Format(time.RFC3339),
				}
			})
			delta := must(h, h.acts.AdvanceStage, canaryAdvance(test.start, test.inFlight, nil))
			assert.Equal(t, wf.StageDelta{Ended: true}, delta)
			run := h.run("example-run-2")
			assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: the later run `example-run-3` has taken cluster `member3` of stage `canary`: kubectl fleet status example-run-3 shows it "+
				"(cannot continue the ClusterStagedUpdateRun: unexpected behavior which cannot be handled by the controller: "+
				"the clusterResourceBinding of the updating cluster `member3` in the stage `canary` does not have expected status: "+
				"binding spec diff: binding has different resourceSnapshotName, want: example-placement-0-snapshot, got: example-placement-1-snapshot; "+
				"binding state (want Bound): Bound; binding RolloutStarted (want true): true, please check if there is concurrent clusterStagedUpdateRun `example-run-3`)",
				conditionOf(run.Status.Conditions, "Succeeded"))
			progressing := conditionOf(run.Status.Conditions, "Progressing")
			assert.Contains(t, progressing, "Progressing=False UpdateRunFailed: Cannot go on: the later run `example-run-3` has taken cluster `member3`", "the cause comes first")
			assert.Contains(t, progressing, ". The stages are aborted due to a non-recoverable error")
			assert.Equal(t, "example-run-3", h.binding("member3").Annotations[placementv1beta1.UpdateRunAnnotation], "the cluster stays with the later run")
			assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil)), "a run that has failed writes nothing more")
			assert.Equal(t, "example-placement-1-snapshot", h.binding("member1").Spec.ResourceSnapshotName)
		})
	}
}

func TestARunOfTheSameSecondThatHasEndedIsNotInTheWay(t *testing.T) {
	h := initialized(t)
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.ResourceSnapshotName = "example-placement-1-snapshot"
		b.Annotations = map[string]string{
			placementv1beta1.UpdateRunAnnotation: "example-run-3", placementv1beta1.UpdateRunUIDAnnotation: "zzz",
			placementv1beta1.UpdateRunCreatedAnnotation: h.run("example-run-2").CreationTimestamp.UTC().Format(time.RFC3339),
		}
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, "example-run-2", h.binding("member3").Annotations[placementv1beta1.UpdateRunAnnotation])
}

func TestARunIsAbandonedWhenWhatItWasPlannedForChanges(t *testing.T) {
	policy := func(change func(*placementv1beta1.ClusterSchedulingPolicySnapshot)) func(*hub) {
		return func(h *hub) {
			editStatus(h, get(h, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, "", "example-placement-0"), change)
		}
	}
	for sentence, test := range map[string]struct {
		change func(*hub)
		want   string
	}{
		"the placement is deleted": {
			change: func(h *hub) {
				require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), placementObject()))
			},
			want: "parent clusterResourcePlacement not found",
		},
		"another cluster is picked": {
			change: policy(func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
				p.Status.ClusterDecisions = append(p.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: "member4", Selected: true})
			}),
			want: "the cluster count initialized in the clusterStagedUpdateRun is outdated, latest: 4, recorded: 3",
		},
		"one cluster is picked instead of another": {
			change: policy(func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
				p.Status.ClusterDecisions[0].ClusterName = "member4"
			}),
			want: "the clusters selected for clusterResourcePlacement `example-placement` have changed: `member4` is in no stage of the clusterStagedUpdateRun",
		},
		"the policy is another one": {
			change: func(h *hub) {
				edit(h, get(h, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, "", "example-placement-0"), func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
					p.Labels[placementv1beta1.PolicyIndexLabel] = "1"
				})
			},
			want: "the policy snapshot index used in the clusterStagedUpdateRun is outdated, latest: 1, recorded: 0",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for where, look := range map[string]func(h *hub){
				"advance": func(h *hub) {
					assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
				},
				"gates": func(h *hub) {
					assert.Equal(t, wf.GateState{Ended: true}, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}))
				},
				"deletion": func(h *hub) { assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done) },
			} {
				h := initialized(t)
				if where == "gates" {
					h = updated(t)
				}
				before := h.binding("member3").ResourceVersion
				test.change(h)
				look(h)
				assert.Equal(t, "Succeeded=False UpdateRunFailed: "+outdated(test.want), conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), where)
				assert.Equal(t, before, h.binding("member3").ResourceVersion, "%s writes to no cluster", where)
			}
		})
	}
}

func TestAnEditedApplyStrategyDoesNotEndTheRunAndIsNotTaken(t *testing.T) {
	h := initialized(t)
	edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Generation = 2
		p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	frozen := rules.EffectiveApplyStrategy(nil)
	assert.Equal(t, &frozen, h.binding("member3").Spec.ApplyStrategy)
}

// A cluster that takes too long is reported once, the run goes on waiting and
// says so until the cluster is done.
func TestAStuckRunSaysWhyFirst(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	editStatus(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: "NotAllWorkAvailable",
			Message: "Deployment shop/web has 1 of 3 replicas", ObservedGeneration: b.Generation,
		})
	})
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Equal(t, "Progressing=False UpdateRunStuck: Cluster member3 in stage canary has not finished updating: Available is False, NotAllWorkAvailable: "+
		"Deployment shop/web has 1 of 3 replicas. kubectl fleet skip example-run-2 member3 goes on without it. ("+strings.TrimPrefix(isStuck, "Progressing=False UpdateRunStuck: ")+")", progressingOf(h))
}

// What the cluster tells of the object is what the run says, not that something is not available.
func TestAStuckRunNamesTheObjectAndItsCause(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	editStatus(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		unavailable := metav1.Condition{
			Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: "NotAllWorkAvailable",
			Message: "Work object example-work is not yet available", ObservedGeneration: b.Generation,
		}
		meta.SetStatusCondition(&b.Status.Conditions, unavailable)
		unavailable.Message = "1 of 3 pods: CrashLoopBackOff exit 1 of container web: no database"
		b.Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
			ResourceIdentifier: placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
			Condition:          unavailable,
		}}
	})
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Contains(t, progressingOf(h), "Cluster member3 in stage canary has not finished updating: Available is False: "+
		"Deployment shop/web: 1 of 3 pods: CrashLoopBackOff exit 1 of container web: no database. ")
}

func TestARunThatWaitsForASilentMemberSaysSo(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	editStatus(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionUnknown, Reason: "MemberClusterHeartbeatMissed",
			Message: "member3 has not reported since 2026-03-01 10:00:00 UTC", ObservedGeneration: b.Generation,
		})
	})
	h.clock.Step(5 * time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Contains(t, progressingOf(h), "Progressing=False UpdateRunStuck: Cluster member3 in stage canary has not finished updating: "+
		"member3 has not reported since 2026-03-01 10:00:00 UTC, and the change waits there. kubectl fleet skip example-run-2 member3 goes on without it.")
}

func TestAStuckClusterIsReportedOnceAndWaitedFor(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	h.clock.Step(4 * time.Minute)
	assert.Equal(t, isStarted, progressingOf(h))
	h.clock.Step(time.Minute)
	assert.Equal(t, wf.StageDelta{Waiting: "member3"}, <-delta)
	assert.Equal(t, isStuck, progressingOf(h))
	assert.Equal(t, names("Warning example-run-2 UpdateRunStuck: Cluster member3 in stage canary has not finished updating for 5m0s"), h.events)

	delta = background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3"), nil))
	})
	h.untilItWaits()
	select {
	case got := <-delta:
		t.Fatalf("a stuck run must not loop: %+v", got)
	default:
	}
	assert.Equal(t, isStuck, progressingOf(h), "waiting is no progress")
	h.recover("member3")
	assert.Equal(t, wf.StageDelta{Done: names("member3"), NextAt: "1"}, <-delta)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Len(t, h.events, 1)
}

func TestStoppingStartsNothingAndFinishesWhatIsInFlight(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	})
	h.untilItWaits()
	old := h.run("example-run-2")
	stopped := edit(h, old.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateStop
		r.Generation = 2
	})
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, stopped)
	assert.Equal(t, wf.StageDelta{Stopping: true, Waiting: "member3"}, <-delta)

	h.recover("member3")
	got := must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), names("member3"), nil))
	assert.Equal(t, wf.StageDelta{Stopping: true, NotStarted: names("member1"), Recorded: names("member3")}, got)
	assert.Equal(t, "example-placement-1-snapshot", h.binding("member1").Spec.ResourceSnapshotName)

	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")), "twice is the same")
	assert.Equal(t, isStopped, progressingOf(h))
	assert.Len(t, h.events, 1)

	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
	assert.False(t, must(h, h.acts.PauseRun, refOf("example-run-2")), "a run that was resumed is not paused")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
	assert.Equal(t, isStarted, progressingOf(h))
}

func TestARunThatIsGoneIsNotWrittenFor(t *testing.T) {
	for sentence, change := range map[string]func(*hub){
		"deleted": func(h *hub) { require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), h.run("example-run-2"))) },
		"replaced": func(h *hub) {
			edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.UID = "another" })
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := initialized(t)
			change(h)
			writes := h.writes
			assert.True(t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Ended)
			assert.True(t, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)).Gone)
			assert.True(t, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}).Ended)
			assert.True(t, must(h, h.acts.RecordApproval, wf.ApprovalRequest{StageRequest: stageOf("example-run-2", "canary", 1)}).Ended)
			assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
			assert.False(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
			assert.False(t, must(h, h.acts.StopRun, wf.StopRequest{Run: refOf("example-run-2")}))
			assert.Equal(t, writes, h.writes)
		})
	}
}

func TestLoadStageReadsPlanAndProgress(t *testing.T) {
	h := howTo(t)
	half := intstr.FromString("50%")
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].MaxConcurrency = &half
	})
	initialize(h, "example-run-2")
	assert.Equal(t, wf.StagePlan{Clusters: names("member3", "member1"), MaxConcurrency: 1, NextAt: "0"}, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, []int{0}, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)).Started)
	assert.Equal(t, 1, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].InFlight)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.Equal(t, []int{0, 1}, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)).Done)
	assert.True(t, must(h, h.acts.LoadStage, stageOf("example-run-2", "nowhere", 1)).Gone)
	assert.True(t, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 5)).Gone)
}

func TestLoadRunFindsTheRunOfTheNameWhateverItsUID(t *testing.T) {
	h := howTo(t)
	ref := refOf("example-run-2")
	ref.UID = "an earlier one"
	assert.Equal(t, "uid-example-run-2", must(h, h.acts.LoadRun, ref).UID)
	ref.Name = "nowhere"
	assert.Equal(t, wf.RunState{}, must(h, h.acts.LoadRun, ref))
}

func TestTheDeletionStageRemovesOnlyWhatIsNoLongerPicked(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot"))
	initialize(h, "example-run-2")
	assert.True(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	var left placementv1beta1.ClusterResourceBindingList
	require.NoError(t, h.List(t.Context(), &left))
	assert.Len(t, left.Items, 3)
	stage := h.run("example-run-2").Status.DeletionStageStatus
	assert.Equal(t, "Succeeded=True ClusterUpdatingSucceeded: Cluster update completed successfully", conditionOf(stage.Clusters[0].Conditions, "Succeeded"))
}

func TestTheDeletionStageWaitsUntilTheBindingIsGone(t *testing.T) {
	binding := bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot")
	binding.Finalizers = names(placementv1beta1.WorkFinalizer)
	h := howTo(t, binding)
	initialize(h, "example-run-2")
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	going := h.binding("member4")
	assert.False(t, going.DeletionTimestamp.IsZero())
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
	edit(h, going, func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	h.tell(&placementv1beta1.ClusterResourceBinding{}, going, going)
	assert.True(t, <-done)
}

func TestStopRunWritesTheWishToStop(t *testing.T) {
	request := wf.StopRequest{Run: refOf("example-run-2"), Workflow: "updaterun/example-run-2"}
	h := initialized(t)
	assert.True(t, must(h, h.acts.StopRun, request))
	assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
	assert.Equal(t, names("Normal example-run-2 StopRequested: grace cancelled workflow updaterun/example-run-2: the run will stop; set spec.state to Run to resume it"), h.events)
	assert.False(t, must(h, h.acts.StopRun, request), "it is stopped already")

	h = initialized(t)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateInitialize })
	assert.False(t, must(h, h.acts.StopRun, request), "the API allows no step from Initialize to Stop, and nothing runs")
	assert.Equal(t, placementv1beta1.StateInitialize, h.run("example-run-2").Spec.State)
}

func TestAWindowOfTwoIsWrittenTogether(t *testing.T) {
	h := initialized(t)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil))
	})
	got := <-delta
	recorded := slices.Clone(got.Recorded)
	slices.Sort(recorded)
	assert.Equal(t, names("member1", "member3"), recorded)
}

func TestARunThatHasLostItsPlanFailsInsteadOfLoopingHot(t *testing.T) {
	h := initialized(t)
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Status.StagesStatus = nil
		r.Status.DeletionStageStatus = nil
	})
	assert.False(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.Equal(t, "Succeeded=False UpdateRunFailed: Cannot go on: its plan has been removed from its status; create another run",
		conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"))
}
