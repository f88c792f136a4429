package feed

import (
	"slices"
	"strconv"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// Ahead returns the plan of a run with when what is left of it may go on, worked out as `kubectl fleet plan` does, from what is watched:
// what changes on clusters is not in it. It is empty for a run that is over, that is not planned, or whose placement is not seen.
func (f *Fleet) Ahead(run *Run) plan.Plan {
	made := f.made(run.Ref, func() any { return f.workOut(run) })
	return made.(plan.Plan) //nolint:forcetypeassert // what has the reference of a run is that
}

// made returns what was made of this picture for an object before, or makes it: many pages ask for the same.
func (f *Fleet) made(of hub.Ref, work func() any) any {
	if made, is := f.worked.Load(of); is {
		return made
	}
	made := work()
	f.worked.Store(of, made)
	return made
}

func (f *Fleet) workOut(run *Run) plan.Plan {
	placement := f.Placement(run.Run.Placement())
	if placement == nil || run.State.Phase.Over() || len(run.Status.StagesStatus) == 0 {
		return plan.Plan{}
	}
	facts := plan.Facts{Run: run.Name, Placement: placement.Placement, Frozen: run.Status, RollbackOf: run.Spec.RollbackOf,
		Indexes: map[string]int{}, Bindings: f.bindings[placement.Ref], Members: f.members}
	for _, binding := range facts.Bindings {
		name := binding.Spec.ResourceSnapshotName
		if index, err := strconv.Atoi(workmodel.SnapshotIndex(name)); err == nil {
			facts.Indexes[name] = index
		}
	}
	made, err := plan.Make(facts)
	if err != nil {
		return plan.Plan{} // without content nothing can fail
	}
	if slices.Contains(f.Denied, "holds") || slices.Contains(f.Denied, "windows") {
		made.Notes = append(made.Notes, "you may not list holds and windows")
		return made
	}
	labels := map[string]map[string]string{}
	for i := range f.members {
		labels[f.members[i].Name] = f.members[i].Labels
	}
	made.AddOpenings(func(stage plan.Stage) *brake.Chain {
		return f.Gates.Chain(run.Object, placement.Object, stage.Name, stage.Windows, f.members)
	}, labels, f.At)
	return made
}
