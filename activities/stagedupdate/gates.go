package stagedupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// CheckGates checks the tasks before, during or after a stage, records how far they are,
// and says whether the stage may pass.
func (a *Activities) CheckGates(ctx context.Context, in wf.GateRequest) (wf.GateState, error) {
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil {
		return wf.GateState{}, err
	}
	if run == nil || !hasStage(run, in.StageRequest) {
		return wf.GateState{Ended: true}, nil
	}
	if run.GetUpdateRunSpec().State == placementv1beta1.StateStop {
		return wf.GateState{Stopping: true}, nil
	}
	if why := unfinishedBefore(run, in.Index); why != "" {
		a.runs().refuseCall(run, "Checking the tasks of stage "+in.Stage, why)
		return wf.GateState{Ended: true}, nil
	}
	check := gateCheck{a, run, in}
	if in.During {
		return check.checkDuring(ctx)
	}
	if !in.Before && (!updaterun.StageUpdated(&run.GetUpdateRunStatus().StagesStatus[in.Index]) || updaterun.OverBudget(run, in.Index)) {
		return wf.GateState{Stopping: true}, nil // nothing passes before its clusters are done: look again
	}
	f, err := a.planner(placementv1beta1.ScopeOf(run)).readPlacementFacts(ctx, run.GetUpdateRunSpec().PlacementName,
		run.GetUpdateRunStatus().PolicySnapshotIndexUsed)
	if err != nil {
		return wf.GateState{}, err
	}
	var state wf.GateState
	active, err := check.checkClusters(ctx, f)
	if err == nil && !active {
		return wf.GateState{Ended: true}, nil
	}
	if err == nil {
		state, err = check.checkTasks(ctx)
		err = a.runs().recordRefusedWrite(ctx, run, err)
	}
	if refused, ok := errors.AsType[*userError](err); ok {
		return wf.GateState{Ended: true}, serviceSweep{a, run}.failRun(ctx, refused.text)
	}
	return state, err
}

// gateCheck is one check of the tasks of a stage.
type gateCheck struct {
	acts *Activities
	run  placementv1beta1.UpdateRunObject
	in   wf.GateRequest
}

// checkDuring checks the tasks of a stage whose clusters are being updated. Whether the plan of the run still holds, AdvanceStage
// checks; and once all clusters are updated, the check of the tasks after the stage ends these first.
func (g gateCheck) checkDuring(ctx context.Context) (wf.GateState, error) {
	if updaterun.StageUpdated(&g.run.GetUpdateRunStatus().StagesStatus[g.in.Index]) {
		return wf.GateState{Open: true}, nil
	}
	state, err := g.checkTasks(ctx)
	err = g.acts.runs().recordRefusedWrite(ctx, g.run, err)
	if refused, ok := errors.AsType[*userError](err); ok {
		return wf.GateState{Ended: true}, serviceSweep{g.acts, g.run}.failRun(ctx, refused.text)
	}
	return state, err
}

// checkTasks checks each task on one side of a stage and records what was found.
func (g gateCheck) checkTasks(ctx context.Context) (wf.GateState, error) {
	checked, ended, err := g.performChecks(ctx)
	if err != nil || ended {
		return wf.GateState{Ended: ended}, err
	}
	waits := waitsOf(checked, g.acts.Clock.Now())
	state := wf.GateState{Waits: waits, Open: len(waits) == 0, Measure: measureOf(g.in, checked)}
	wasOver := false
	active, err := g.acts.runs().recordStatus(ctx, g.run, func(r updaterun.Recorder) {
		stage := r.Stage(g.in.Index)
		wasOver = updaterun.StageOver(stage)
		recordChecks(r, stage, g.in, state.Open, checked)
	})
	if err != nil || !active {
		return wf.GateState{Ended: err == nil}, err
	}
	if acted, err := g.acts.runs().actOn(ctx, g.run, checked); acted || err != nil {
		return wf.GateState{Stopping: true}, err
	}
	if state.Open && !g.in.Before && !g.in.During && !wasOver {
		g.acts.runs().emitStageEvent(g.run, g.in.Stage, placementv1beta1.ReasonStageUpdatingSucceeded, "Stage %s is complete", g.in.Stage)
	}
	return state, nil
}

// checkedTask is a task and what its check has found.
type checkedTask struct {
	stagetask.Task
	outcome stagetask.Outcome
}

// performChecks checks the tasks on one side of a stage, in their order, unless the run has ended meanwhile. A
// stage without clusters is skipped, tasks and all.
func (g gateCheck) performChecks(ctx context.Context) (checked []checkedTask, ended bool, err error) {
	stage := updaterun.StageAt(g.run, g.in.Index)
	now := g.acts.Clock.Now()
	if len(stage.Clusters) == 0 {
		return nil, false, nil
	}
	tasks := inOrder(g.run, g.in)
	before := doneOf(tasks)
	done := map[placementv1beta1.StageTaskType]bool{}
	for _, task := range tasks {
		if task.Side == stagetask.After && slices.ContainsFunc(checked, isDuring) && len(waitsOf(checked, now)) > 0 {
			return checked, false, nil // what is done during the stage comes first
		}
		if !task.Starts(done) {
			continue // another is waited for
		}
		if task.WaitsSince.IsZero() {
			task.WaitsSince = updaterun.CeilSecond(now) // as it is recorded when the checks are done
		}
		outcome, err := stagetask.Perform(ctx, stagetask.Check{Task: task, Run: g.run, Stage: stage, Now: now, Anew: !task.Starts(before),
			Hub: taskHub{g.acts, g.run, stage.StageName}})
		if err != nil {
			return nil, false, err
		}
		if outcome.Refused != "" {
			return nil, false, refuse("%s", cannotContinue(outcome.Refused))
		}
		if outcome.RunEnded {
			return nil, true, nil
		}
		checked = append(checked, checkedTask{task, outcome})
		done[task.Status.Type] = task.DescribeAfter(outcome, now).Done()
		if outcome.Rehearsal != nil { // it is part of the plan that the tasks behind it are about
			g.run = placementv1beta1.DeepCopyOf(g.run)
			stage = updaterun.StageAt(g.run, g.in.Index)
			outcome.RecordIn(stage, task, g.run.GetGeneration(), now)
		}
	}
	return checked, false, g.checkStart(ctx, checked, now)
}

// doneOf returns the types of the tasks that are done.
func doneOf(tasks []stagetask.Task) map[placementv1beta1.StageTaskType]bool {
	done := map[placementv1beta1.StageTaskType]bool{}
	for _, task := range tasks {
		done[task.Status.Type] = task.Describe().Done()
	}
	return done
}

// checkStart looks once more at what holds for a time only, if nothing else keeps a stage from starting.
func (g gateCheck) checkStart(ctx context.Context, checked []checkedTask, now time.Time) error {
	if !g.in.Before || len(waitsOf(checked, now)) > 0 {
		return nil
	}
	stage := &g.run.GetUpdateRunStatus().StagesStatus[g.in.Index]
	for i := range checked {
		outcome, err := stagetask.PerformStart(ctx, stagetask.Check{Task: checked[i].Task, Run: g.run, Stage: stage, Now: now,
			Hub: taskHub{g.acts, g.run, stage.StageName}}, checked[i].outcome)
		if err != nil {
			return err
		}
		if outcome.Refused != "" {
			return refuse("%s", cannotContinue(outcome.Refused))
		}
		checked[i].outcome = outcome
	}
	return nil
}

// inOrder returns the tasks that a request is about, those that start after others behind these.
func inOrder(run placementv1beta1.UpdateRunObject, in wf.GateRequest) []stagetask.Task {
	var tasks []stagetask.Task
	switch {
	case in.Before:
		tasks = updaterun.Tasks(run, in.Index, stagetask.Before)
	case in.During:
		tasks = updaterun.Tasks(run, in.Index, stagetask.During)
	default:
		tasks = updaterun.Tasks(run, in.Index, stagetask.After)
	}
	slices.SortStableFunc(tasks, func(a, b stagetask.Task) int {
		return cmp.Compare(len(a.Config.StartsAfter), len(b.Config.StartsAfter))
	})
	if !in.Before && !in.During {
		tasks = slices.Concat(updaterun.Tasks(run, in.Index, stagetask.During), tasks)
	}
	return tasks
}

func isDuring(c checkedTask) bool { return c.Side == stagetask.During }

func sideOf(before bool) stagetask.Side {
	if before {
		return stagetask.Before
	}
	return stagetask.After
}

// waitsOf returns the tasks that the stage waits for; those that do not end by themselves come first.
func waitsOf(checked []checkedTask, now time.Time) []wf.TaskWait {
	var waits []wf.TaskWait
	for _, c := range checked {
		if s := c.DescribeAfter(c.outcome, now); !s.Done() {
			waits = append(waits, wf.TaskWait{
				Type: string(s.Type), Title: s.Title, Subject: s.Subject, Phase: s.RunPhase, Approvable: s.Approvable,
				Until: s.Due, CheckAt: c.outcome.CheckAgain,
			})
		}
	}
	slices.SortStableFunc(waits, func(a, b wf.TaskWait) int { return a.Until.Compare(b.Until) })
	return waits
}

// recordChecks writes what the checks have found into the status, and ends a stage that has nothing left to wait for.
func recordChecks(r updaterun.Recorder, stage *placementv1beta1.StageUpdatingStatus, in wf.GateRequest, open bool, checked []checkedTask) {
	switch {
	case in.During: // AdvanceStage says how the run stands
	case open:
		r.Progressing() // a run that was stopped, or stuck before, goes on
	default:
		r.WaitingForTasks(stage, sideOf(in.Before))
	}
	switch {
	case in.During:
	case in.Before && !open:
		r.WaitingBefore(stage)
	case !in.Before && len(stage.Clusters) > 0:
		r.WaitingAfter(stage)
	}
	for _, c := range checked {
		r.TaskChecked(stage, c.Task, c.outcome)
	}
	if !in.Before && !in.During && open {
		r.StageSucceeded(stage)
	}
}

// taskHub is the hub as the checks of tasks see it.
type taskHub struct {
	acts *Activities
	run  placementv1beta1.UpdateRunObject
	// stage is the name of the stage that the task belongs to.
	stage string
}

var _ stagetask.Hub = taskHub{}

// Get implements stagetask.Hub.
func (h taskHub) Get(ctx context.Context, key types.NamespacedName, into placementv1beta1.Object) error {
	return h.acts.Live.Get(ctx, key, into)
}

// Create implements stagetask.Hub.
func (h taskHub) Create(ctx context.Context, object placementv1beta1.Object) error {
	return h.acts.Client.Create(ctx, object)
}

// UpdateStatus implements stagetask.Hub.
func (h taskHub) UpdateStatus(ctx context.Context, object placementv1beta1.Object) error {
	return h.acts.Client.Status().Update(ctx, object)
}

// Label implements stagetask.Hub.
func (h taskHub) Label(ctx context.Context, object placementv1beta1.Object, label, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, label, value)
	return client.IgnoreNotFound(h.acts.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)))
}

// Annotate implements stagetask.Hub.
func (h taskHub) Annotate(ctx context.Context, object placementv1beta1.Object, annotation, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, object.GetUID(), annotation, value)
	return h.acts.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// Delete implements stagetask.Hub.
func (h taskHub) Delete(ctx context.Context, object placementv1beta1.Object) error {
	return client.IgnoreNotFound(h.acts.Client.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())}))
}

// RunIsActive implements stagetask.Hub.
func (h taskHub) RunIsActive(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	run, err := h.acts.runs().readActive(ctx, wf.Ref{Namespace: key.Namespace, Name: key.Name, UID: string(uid)})
	return run != nil, err
}

// Report implements stagetask.Hub.
func (h taskHub) Report(reason, note string) {
	h.acts.runs().emitStageEvent(h.run, h.stage, reason, "%s", note)
}

// ReportOn implements stagetask.Hub.
func (h taskHub) ReportOn(object placementv1beta1.Object, reason, action, note string) {
	h.acts.Events.Eventf(object, h.run, corev1.EventTypeNormal, reason, action, "%s", note)
}
