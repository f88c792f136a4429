package stagedupdate

import (
	"slices"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// stageCall is one call of AdvanceStage.
type stageCall struct {
	acts     *Activities
	in       wf.StageAdvance
	sub      *clusterwait.Subscription
	observer *stageObserver
	fence    *runFence
	// run is the observer's: as it was last read or written.
	run placementv1beta1.UpdateRunObject
	// roles are what is left to do of the request, by cluster.
	roles map[string]rollout.StageRole
	// begun says that the status has what the call begins with.
	begun bool
	// gate knows which clusters are closed.
	gate    stageGate
	service serviceKeeper
	// writing says that the turn before was a part of the same batch.
	writing bool
	// superseded says that the run has ended, or that its user wants something else of it: this call
	// must not go on.
	superseded bool
	delta      wf.StageDelta
}

func newStageCall(a *Activities, in wf.StageAdvance, run placementv1beta1.UpdateRunObject, sub *clusterwait.Subscription) *stageCall {
	fence := newRunFence(a, in.Run, run)
	observer := &stageObserver{
		acts: a, request: in.StageRequest, bindings: clusterwait.NewBindingCache(a.Client, a.Live), fence: fence, run: run,
		seen:   map[string]observation{},
		keeper: newKeeper(a),
	}
	c := &stageCall{acts: a, in: in, sub: sub, observer: observer, fence: fence, run: run, roles: map[string]rollout.StageRole{},
		gate: stageGate{observer: observer}, service: serviceKeeper{observer: observer}}
	order := updaterun.ClusterNames(c.stageStatus())
	for role, names := range map[rollout.StageRole][]string{
		rollout.RoleStart: in.Start, rollout.RoleInFlight: slices.Concat(in.InFlight, in.InFlightAt.Of(order)),
		rollout.RoleFailed: slices.Concat(in.Failed, in.FailedAt.Of(order)), rollout.RoleSkipped: in.SkippedAt.Of(order),
		rollout.RoleDone: in.Done,
	} {
		for _, name := range names {
			c.roles[name] = role
		}
	}
	return c
}

// stageStatus returns the status of the stage that is being advanced.
func (c *stageCall) stageStatus() *placementv1beta1.StageUpdatingStatus {
	return updaterun.StageAt(c.run, c.in.Index)
}
