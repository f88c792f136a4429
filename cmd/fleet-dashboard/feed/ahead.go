package feed

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// Ahead returns the plan of a run with when what is left of it may go on, worked out as `kubectl fleet plan` does, from what is watched:
// what changes on clusters is not in it. It is empty for a run that is over, that is not planned, or whose placement is not seen.
func (f *Fleet) Ahead(run *Run) plan.Plan {
	made, _ := f.madeOnce(run.Ref, func() any { return f.workOut(run) })
	return made.(plan.Plan) //nolint:forcetypeassert // what has the reference of a run is that
}

// maxQueries is of how many queries a picture keeps what was drawn: they are whatever users write.
const maxQueries = 50

// Drawn returns what was drawn of this picture for a query before, or draws it.
func (f *Fleet) Drawn(query any, draw func() any) any {
	if f.worked.queries.Load() >= maxQueries {
		if _, kept := f.worked.Load(query); !kept {
			return draw()
		}
	}
	made, kept := f.madeOnce(query, draw)
	if !kept {
		f.worked.queries.Add(1)
	}
	return made
}

// madeOnce returns what was made of this picture for an object before, or makes it: many pages ask for the same, some of them at a time.
func (f *Fleet) madeOnce(of any, work func() any) (made any, kept bool) {
	found, kept := f.worked.LoadOrStore(of, sync.OnceValue(work))
	return found.(func() any)(), kept //nolint:forcetypeassert // nothing else is stored
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
	if unseen := f.unseenOf(run.Namespace); len(unseen) > 0 {
		made.Notes = append(made.Notes, "you may not list "+strings.Join(unseen, " and "))
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

// unseenOf returns which kinds may not be listed of those that say when a run goes on that is in a namespace, or in none.
func (f *Fleet) unseenOf(namespace string) []string {
	kinds := []string{"holds", "windows", "exemptions", "member clusters"}
	if namespace != "" {
		kinds = append(kinds, "namespaces")
	}
	kinds = slices.DeleteFunc(kinds, f.Sees)
	if !f.seesBindings(namespace) {
		kinds = append(kinds, bindings.what)
	}
	return kinds
}
