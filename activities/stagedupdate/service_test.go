package stagedupdate_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	outOfService = "1 cluster that the run took out of service could not be put back, as the API server refuses to write that: member3"
	leftOut      = "BackInService=False Refused: " + outOfService
	isBack       = "BackInService=True Resolved: No cluster that the run does not update is out of service"
	toldOut      = "Warning example-run-2 WriteRefused: Cluster member3 could not be put back into service: its binding cannot be written: " + denial
)

// prepared is the hub of the documents with both clusters of the stage canary out of service: a hook holds them. The API server refuses
// to write the binding of member3 from then on.
func prepared(t *testing.T, err error) (*hub, chan wf.StageDelta) {
	t.Helper()
	h := initialized(t)
	h.hooked()
	h.mark("member3", true)
	h.mark("member1", true)
	delta := background(h, func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil))
	})
	h.untilItWaits()
	require.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
	require.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member1"))
	h.refuse("member3", err)
	h.mu.Lock()
	h.events = nil
	h.mu.Unlock()
	return h, delta
}

func forbidden() error { return answers(http.StatusForbidden, metav1.StatusReasonForbidden, denial) }

// serviceOn is what the run says of clusters out of service.
func (h *hub) serviceOn() string {
	return conditionOf(h.run("example-run-2").Status.Conditions, "BackInService")
}

// stops gives both clusters of the stage up, as the run stops.
func (h *hub) stops(delta chan wf.StageDelta) {
	h.t.Helper()
	old := h.run("example-run-2")
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, edit(h, old.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateStop
		r.Generation = 2
	}))
	soon(h, delta)
	assert.Equal(h.t, names("member3", "member1"),
		must(h, h.acts.AdvanceStage, canaryAdvance(nil, names("member3", "member1"), nil)).NotStarted)
}

// An admission policy answers as a failed test of the patch does: with 422.
func TestAClusterThatIsRefusedKeepsNoOtherOutOfService(t *testing.T) {
	for sentence, err := range map[string]error{
		"by a webhook":           forbidden(),
		"by an admission policy": answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, denial),
	} {
		t.Run(sentence, func(t *testing.T) {
			h, delta := prepared(t, err)
			h.stops(delta)
			assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member1"), "others are back")
			assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
			assert.Equal(t, "BackInService=False Refused: "+denial, h.canaryCondition("member3", "BackInService"))
			assert.Equal(t, leftOut+"; this is tried again", h.serviceOn())
			assert.Contains(t, h.events, toldOut)

			assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
			assert.Equal(t, "Progressing=False UpdateRunStopped: The update run has been stopped; "+outOfService, progressingOf(h))
		})
	}
}

func TestAStopTriesOnceMoreToPutAClusterBackIntoService(t *testing.T) {
	h, delta := prepared(t, forbidden())
	h.stops(delta)
	h.refuse("member3", nil)
	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
	assert.Empty(t, h.canaryCondition("member3", "BackInService"))
	assert.Equal(t, isBack, h.serviceOn())
	assert.Equal(t, "Progressing=False UpdateRunStopped: The update run has been stopped", progressingOf(h))
}

func TestAClusterThatIsUpdatedAfterAllIsNotOutOfService(t *testing.T) {
	h, delta := prepared(t, forbidden())
	h.stops(delta)
	h.refuse("member3", nil)
	h.mark("member3", false)
	h.wish(placementv1beta1.StateRun)
	background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)) })
	require.Eventually(t, func() bool { // the status is written beside the binding
		return h.serviceOn() == isBack && h.binding("member3").Spec.ResourceSnapshotName == newSnapshot
	}, 2*time.Minute, time.Millisecond)
	assert.Empty(t, h.canaryCondition("member3", "BackInService"))
	assert.Equal(t, isBack, h.serviceOn())
}

func TestASkippedClusterIsPutBackIntoServiceOnceThatCanBeWritten(t *testing.T) {
	h, delta := prepared(t, forbidden())
	h.ask(action("member3", skip, 1))
	assert.Equal(t, names("member3"), soon(h, delta).Skipped)
	h.advancing(withoutFirst(canaryAdvance(nil, names("member1"), nil)))
	assert.Equal(t, leftOut+"; this is tried again", h.serviceOn())
	h.clock.Step(2 * time.Second)
	h.untilItWaits()
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
	h.refuse("member3", nil)
	h.clock.Step(time.Minute)
	require.Eventually(t, func() bool { return h.serviceOn() == isBack }, 2*time.Minute, time.Millisecond)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member1"), "its turn goes on")
}

func TestARunDoesNotEndWellWithAClusterOutOfService(t *testing.T) {
	h, delta := prepared(t, forbidden())
	h.stops(delta)
	h.wish(placementv1beta1.StateRun)
	done := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	h.untilItWaits()
	assert.Equal(t, "Progressing=False UpdateRunStuck: The updateRun is stuck: "+outOfService+"; this is tried again", progressingOf(h))
	assert.Nil(t, meta.FindStatusCondition(h.run("example-run-2").Status.Conditions, placementv1beta1.ConditionTypeSucceeded))
	h.refuse("member3", nil)
	h.clock.Step(time.Minute)
	assert.True(t, <-done)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
	assert.True(t, meta.IsStatusConditionTrue(h.run("example-run-2").Status.Conditions, placementv1beta1.ConditionTypeSucceeded))
	assert.Equal(t, isBack, h.serviceOn())
}

func TestARunThatFailsNamesTheClustersItLeavesOutOfService(t *testing.T) {
	h, delta := prepared(t, forbidden())
	old := h.run("example-run-2")
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, edit(h, old.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Annotations = map[string]string{placementv1beta1.RolledBackByAnnotation: "example-run-3"}
		r.Generation = 2
	}))
	require.True(t, soon(h, delta).Ended)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member1"), "others are back")
	failed := conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded")
	assert.Contains(t, failed, "UpdateRunFailed")
	assert.Contains(t, failed, "; "+outOfService)
	assert.Equal(t, leftOut, h.serviceOn(), "it is not tried again")
}

// failing is the hub of the documents with a failure budget, where member3 is out of service and past its deadline: its hook was answered, and
// it cannot be written to.
func failing(t *testing.T, maxFailures string, action placementv1beta1.FailureBudgetAction) (*hub, chan wf.StageDelta) {
	t.Helper()
	h := withBudget(t, maxFailures, action)
	h.hooked()
	h.mark("member3", true)
	delta := background(h, func() wf.StageDelta { return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)) })
	h.untilItWaits()
	h.refuse("member3", forbidden())
	h.mark("member3", false)
	require.Eventually(t, func() bool { return h.canaryCondition("member3", "Started") == couldNotWrite+denial }, 2*time.Minute, time.Millisecond)
	h.clock.Step(30 * time.Minute)
	return h, delta
}

func TestAClusterThatFailsOutOfServiceIsPutBack(t *testing.T) {
	t.Run("within the budget", func(t *testing.T) {
		h, delta := failing(t, "1", placementv1beta1.FailureBudgetAbort)
		assert.Equal(t, names("member3"), soon(h, delta).Failed)
		assert.Equal(t, leftOut+"; this is tried again", h.serviceOn())
		h.refuse("member3", nil)
		h.stuck["member1"] = true
		h.clock.Step(time.Minute)
		in := canaryAdvance(names("member1"), nil, nil)
		in.Failed = names("member3")
		h.advancing(in)
		assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
		assert.Equal(t, isBack, h.serviceOn())
	})
	t.Run("beyond the budget, and the run stops", func(t *testing.T) {
		h, delta := failing(t, "0", placementv1beta1.FailureBudgetPause)
		assert.Equal(t, names("member3"), soon(h, delta).Failed)
		assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
		assert.Equal(t, leftOut+"; this is tried again", h.serviceOn())
		h.refuse("member3", nil)
		assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
		assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
		assert.Equal(t, isBack, h.serviceOn())
	})
	t.Run("beyond the budget, and the run fails", func(t *testing.T) {
		h, delta := failing(t, "0", placementv1beta1.FailureBudgetAbort)
		assert.True(t, soon(h, delta).Ended)
		assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "; "+outOfService)
		assert.Equal(t, leftOut, h.serviceOn())
	})
}

// Nothing is read of stages by a run that has none out of service.
func TestARunWhoseStagesAreNotInItsStatusIsPaused(t *testing.T) {
	h := initialized(t)
	run := h.run("example-run-2")
	run.Status.StagesStatus, run.Status.DeletionStageStatus = nil, nil
	require.NoError(t, h.unwatched.Status().Update(t.Context(), run))
	h.wish(placementv1beta1.StateStop)
	assert.True(t, must(h, h.acts.PauseRun, refOf("example-run-2")))
}

// Whichever activity finds that a run must end tries once more to put back what the run leaves out of service.
func TestWhatEndsARunTriesOnceMoreToPutItsClustersBack(t *testing.T) {
	rolledBack := func(h *hub) {
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Annotations = map[string]string{placementv1beta1.RolledBackByAnnotation: "example-run-3"}
		})
	}
	gates := func(in wf.GateRequest) func(h *hub) {
		return func(h *hub) {
			rolledBack(h)
			assert.True(h.t, must(h, h.acts.CheckGates, in).Ended)
		}
	}
	for sentence, end := range map[string]func(h *hub){
		"a run that is loaded": func(h *hub) {
			rolledBack(h)
			assert.True(h.t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
		},
		"a stage that is loaded": func(h *hub) {
			run := h.run("example-run-2")
			run.Status.UpdateStrategySnapshot.Stages[1].MaxConcurrency = new(intstr.FromString("none"))
			require.NoError(h.t, h.unwatched.Status().Update(h.t.Context(), run))
			assert.True(h.t, must(h, h.acts.LoadStage, stageOf("example-run-2", "canary", 1)).Gone)
		},
		"the tasks before a stage": gates(wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), Before: true}),
		"a deletion stage without its plan": func(h *hub) {
			run := h.run("example-run-2")
			run.Status.DeletionStageStatus = nil
			require.NoError(h.t, h.unwatched.Status().Update(h.t.Context(), run))
			assert.False(h.t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
		},
	} {
		for _, refused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, refused: %t", sentence, refused), func(t *testing.T) {
				h, delta := prepared(t, forbidden())
				h.stops(delta)
				h.wish(placementv1beta1.StateRun)
				if !refused {
					h.refuse("member3", nil)
				}
				tries := h.triesOf("member3")
				end(h)
				assert.Greater(t, h.triesOf("member3"), tries)
				failed := conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded")
				assert.Contains(t, failed, "UpdateRunFailed")
				if refused {
					assert.Contains(t, failed, "; "+outOfService)
					assert.Equal(t, leftOut, h.serviceOn())
					return
				}
				assert.NotContains(t, failed, outOfService)
				assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
				assert.Equal(t, isBack, h.serviceOn())
			})
		}
	}
}

// The call that is in flight when another activity ends the run has the clusters to put back, and the run says of them what became of that.
func TestARunThatWasEndedElsewhereNamesTheClustersItLeavesOutOfService(t *testing.T) {
	h, delta := prepared(t, forbidden())
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Annotations = map[string]string{placementv1beta1.RolledBackByAnnotation: "example-run-3"}
	})
	old := h.run("example-run-2")
	require.True(t, must(h, h.restarted().LoadRun, refOf("example-run-2")).Terminal)
	ended := h.run("example-run-2")
	ended.Generation = old.Generation + 1
	h.tell(&placementv1beta1.ClusterStagedUpdateRun{}, old, ended)
	require.True(t, soon(h, delta).Ended)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member1"), "others are back")
	assert.Equal(t, "BackInService=False Refused: "+denial, h.canaryCondition("member3", "BackInService"))
	assert.Equal(t, leftOut, h.serviceOn())
	assert.Contains(t, h.events, toldOut)
}

// died is the hub where an attempt has died once it has recorded that member3, which it had taken out of service, has failed. It returns what
// was asked of the attempt.
func died(t *testing.T, most string, action placementv1beta1.FailureBudgetAction) (*hub, wf.StageAdvance) {
	t.Helper()
	h := withBudget(t, most, action)
	h.hooked()
	h.mark("member3", true)
	in := canaryAdvance(names("member3"), nil, nil)
	dies := background(h, func() error {
		_, err := call(h, h.acts.AdvanceStage, in)
		return err
	})
	h.untilItWaits()
	h.refuse("member3", forbidden())
	h.mark("member3", false)
	require.Eventually(t, func() bool { return h.canaryCondition("member3", "Started") == couldNotWrite+denial }, 2*time.Minute, time.Millisecond)
	h.mu.Lock()
	h.left, h.lost = 1, true
	h.mu.Unlock()
	h.clock.Step(30 * time.Minute)
	require.ErrorContains(t, <-dies, errDied.Error())
	h.left, h.lost = -1, false
	require.Contains(t, h.canaryCondition("member3", "Succeeded"), "ClusterUpdatingFailed")
	require.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
	h.acts = h.restarted()
	return h, in
}

// An attempt that dies once it has recorded that a cluster has failed leaves it to the next to put it back.
func TestAClusterThatADeadAttemptHasGivenUpIsPutBack(t *testing.T) {
	for _, action := range []placementv1beta1.FailureBudgetAction{placementv1beta1.FailureBudgetAbort, placementv1beta1.FailureBudgetPause} {
		for _, most := range names("0", "1") {
			t.Run(string(action)+" beyond "+most, func(t *testing.T) {
				h, in := died(t, most, action)
				h.refuse("member3", nil)
				must(h, h.acts.AdvanceStage, in)
				assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
			})
		}
	}
}

// A workflow that is started anew asks for nothing of a cluster whose status says that it has failed.
func TestAClusterThatADeadAttemptHasGivenUpIsPutBackByANewWorkflow(t *testing.T) {
	for _, action := range []placementv1beta1.FailureBudgetAction{placementv1beta1.FailureBudgetAbort, placementv1beta1.FailureBudgetPause} {
		for _, most := range names("0", "1") {
			t.Run(string(action)+" beyond "+most, func(t *testing.T) {
				h, _ := died(t, most, action)
				h.refuse("member3", nil)
				assert.False(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
				assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
				tries := h.triesOf("member3")
				must(h, h.acts.LoadRun, refOf("example-run-2"))
				assert.Equal(t, tries, h.triesOf("member3"), "it is in service")
			})
		}
	}
	t.Run("where that is refused, the run says so", func(t *testing.T) {
		h, _ := died(t, "1", placementv1beta1.FailureBudgetAbort)
		must(h, h.acts.LoadRun, refOf("example-run-2"))
		assert.Equal(t, leftOut+"; this is tried again", h.serviceOn())
		tries := h.triesOf("member3")
		must(h, h.acts.LoadRun, refOf("example-run-2"))
		assert.Equal(t, tries, h.triesOf("member3"), "the stage tries again, in its time")
	})
	t.Run("also by what ends the run", func(t *testing.T) {
		h, _ := died(t, "1", placementv1beta1.FailureBudgetAbort)
		h.refuse("member3", nil)
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Annotations = map[string]string{placementv1beta1.RolledBackByAnnotation: "example-run-3"}
		})
		assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
		assert.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
	})
}

// A failed cluster that was not taken out of service is not written to again.
func TestAClusterThatFailsInServiceIsNotWrittenTo(t *testing.T) {
	h := withBudget(t, "1", placementv1beta1.FailureBudgetAbort)
	h.hooked()
	h.stuck["member3"] = true
	in := canaryAdvance(names("member3"), nil, nil)
	delta := h.advancing(in)
	tries := h.triesOf("member3")
	h.clock.Step(5 * time.Minute)
	require.Equal(t, names("member3"), soon(h, delta).Failed)
	require.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, in).Failed, "as if the answer was lost")
	assert.Equal(t, tries, h.triesOf("member3"))
}

// livePlacements counts the live reads of placements.
type livePlacements struct {
	*hub
	reads int
}

func (l *livePlacements) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, is := o.(*placementv1beta1.ClusterResourcePlacement); is {
		l.reads++
	}
	return l.hub.Get(ctx, key, o, options...)
}

// A run keeps its failed clusters in its status for as long as it is there, and each reload looks at them: what another run has taken out of
// service after that is for that run.
func TestAClusterThatAnotherRunHasPreparedMeanwhileIsLeftToIt(t *testing.T) {
	h, _ := died(t, "1", placementv1beta1.FailureBudgetAbort)
	h.refuse("member3", nil)
	edit(h, h.binding("member3"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations[placementv1beta1.LifecycleSinceAnnotation] = h.clock.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	})
	tries := h.triesOf("member3")
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, h.stands("member3"))
	assert.Equal(t, tries, h.triesOf("member3"))
}

func TestTheReloadOfARunReadsItsPlacementOnlyToPutAClusterBack(t *testing.T) {
	h, _ := died(t, "1", placementv1beta1.FailureBudgetAbort)
	h.refuse("member3", nil)
	live := &livePlacements{hub: h}
	h.acts.Live = live
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	require.Equal(t, placementv1beta1.LifecycleUpdated, h.stands("member3"))
	require.NotZero(t, live.reads)
	live.reads = 0
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Zero(t, live.reads, "no cluster is out of service")
}
