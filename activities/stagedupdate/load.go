package stagedupdate

import (
	"context"
	"errors"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// LoadRun reads how far a run has come. It looks for the name, not the uid: a
// successor of the same name is taken over by the same workflow.
func (a *Activities) LoadRun(ctx context.Context, ref wf.Ref) (wf.RunState, error) {
	ref.UID = ""
	run, err := a.runs().readRun(ctx, ref)
	if err != nil || run == nil {
		return wf.RunState{}, err
	}
	if sweep := (serviceSweep{a, run}); run.GetDeletionTimestamp().IsZero() && !rules.IsRunOver(run) {
		if refused, ok := errors.AsType[*userError](checkEnding(run)); ok {
			// One that stands still ends, too: it will not be asked again.
			err = sweep.failRun(ctx, refused.text)
		} else {
			err = sweep.putBackLeft(ctx)
		}
	}
	if err == nil && rules.IsRunOver(run) { // whichever activity has recorded that, the workflow loads the run once more
		err = a.runs().stopAnalyses(ctx, run)
	}
	return stateOf(run), err
}

// LoadStage reads the frozen plan of a stage and how far it has come.
func (a *Activities) LoadStage(ctx context.Context, in wf.StageRequest) (wf.StagePlan, error) {
	run, err := a.runs().readActive(ctx, in.Run)
	if err != nil {
		return wf.StagePlan{}, err
	}
	if run == nil || !hasStage(run, in) {
		return wf.StagePlan{Gone: true}, nil
	}
	if _, err := rollout.Concurrency(concurrencyOf(updaterun.StageConfig(run, in.Index)),
		len(run.GetUpdateRunStatus().StagesStatus[in.Index].Clusters)); err != nil {
		return wf.StagePlan{Gone: true}, serviceSweep{a, run}.failRun(ctx, cannotContinue("stage `"+in.Stage+"`: "+err.Error()))
	}
	return stagePlanOf(run, in.Index), nil
}

// stagePlanOf returns the frozen order of a stage, how far it has come, and with which clusters it goes on. What
// the user asks for in the spec is carried out by the call of AdvanceStage that follows.
func stagePlanOf(run placementv1beta1.UpdateRunObject, index int) wf.StagePlan {
	stage := &run.GetUpdateRunStatus().StagesStatus[index]
	facts := stageFacts(run, index)
	facts.Budget = nil
	facts.Stopping = updaterun.IsStopping(run)
	for i := range facts.Clusters {
		if facts.Clusters[i].Phase == rollout.ClusterUpdating {
			facts.Clusters[i].Role = rollout.RoleInFlight
		}
	}
	return wf.StagePlan{
		Clusters: updaterun.ClusterNames(stage), OverBudget: updaterun.OverBudget(run, index),
		Done: updaterun.PositionsIn(stage, updaterun.PhaseSucceeded), Started: updaterun.PositionsIn(stage, updaterun.PhaseRunning),
		Failed: updaterun.PositionsIn(stage, updaterun.PhaseFailed), Skipped: updaterun.PositionsIn(stage, updaterun.PhaseSkipped),
		Watched:        len(typesToDo(run, index, stagetask.During)) > 0,
		MaxConcurrency: facts.MaxConcurrency, NextAt: positionsIn(stage, rollout.DecideStage(facts).Next),
	}
}

func hasStage(run placementv1beta1.UpdateRunObject, in wf.StageRequest) bool {
	return in.Index >= 0 && in.Index < len(run.GetUpdateRunStatus().StagesStatus) &&
		run.GetUpdateRunStatus().StagesStatus[in.Index].StageName == in.Stage
}
