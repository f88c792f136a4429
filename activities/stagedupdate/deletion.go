package stagedupdate

import (
	"context"
	"errors"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// AdvanceDeletion takes the resources away from the clusters that the placement
// no longer selects, waits until they are gone, and ends the run. It is a stage that removes, behind the last of the plan.
func (a *Activities) AdvanceDeletion(ctx context.Context, ref wf.Ref) (wf.DeletionResult, error) {
	var ended wf.DeletionResult
	sub := a.Notifier.Subscribe(clusterwait.RunKey(scopeOf(ref), ref.Name), clusterwait.GatesKey)
	defer sub.Close()
	run, err := a.runs().readActive(ctx, ref)
	if err != nil || run == nil {
		return ended, err
	}
	if run.GetUpdateRunStatus().DeletionStageStatus == nil {
		return ended, serviceSweep{a, run}.failRun(ctx, cannotContinue("its plan has been removed from its status; create another run"))
	}
	last := len(run.GetUpdateRunStatus().StagesStatus)
	if why := unfinishedBefore(run, last); why != "" && !updaterun.IsStopping(run) {
		a.runs().refuseCall(run, "Running the deletion stage", why)
		return ended, nil
	}
	sub.Add(clusterwait.PlacementKey(placementv1beta1.ScopeOf(run), run.GetUpdateRunSpec().PlacementName))
	request := wf.StageRequest{Run: ref, Stage: placementv1beta1.DeletionStageName, Index: last}
	c := newStageCall(a, wf.StageAdvance{StageRequest: request}, run, sub)
	delta, err := c.advance(ctx)
	if end, ok := errors.AsType[*userError](err); ok {
		if err := c.service.putBack(ctx, updaterun.OutOfService(c.run)); err != nil {
			return ended, err
		}
		return ended, a.runs().failRun(ctx, c.run, end.text)
	}
	return wf.DeletionResult{Done: !c.superseded && hasSucceeded(c.run), Held: delta.Held}, err
}
