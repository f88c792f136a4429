package feed

import (
	"strconv"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Map is the members with what goes on there, and the placements with the snapshots that their clusters are to have.
type Map struct {
	Members []picture.Member
	Placed  []picture.Placed
}

// Map returns the map of the fleet. It must not be changed.
func (f *Fleet) Map() Map {
	made := f.made(hub.Ref{}, func() any {
		members, placed := f.draw()
		return Map{members, placed}
	})
	return made.(Map) //nolint:forcetypeassert // no reference is empty but this
}

func (f *Fleet) draw() (members []picture.Member, placed []picture.Placed) {
	changing := map[string][]string{}
	by := map[hub.Ref]map[string]bool{}
	for i := range f.Runs {
		run := &f.Runs[i]
		if run.Outcome() != "" {
			continue
		}
		placement := run.Run.Placement()
		if by[placement] == nil {
			by[placement] = map[string]bool{}
		}
		for _, stage := range run.State.Stages {
			for _, name := range stage.ClustersIn(updaterun.PhaseRunning) {
				changing[name] = append(changing[name], run.Qualified())
				by[placement][name] = true
			}
		}
	}
	count := map[string]int{}
	for _, p := range f.Placements {
		one := picture.Placed{Name: p.Qualified(), Path: p.Path(), Has: map[string]int{}, Changing: by[p.Ref]}
		one.Latest, _ = strconv.Atoi(p.Object.GetPlacementStatus().ObservedResourceIndex) // without one there is no snapshot
		for _, binding := range f.bindings[p.Ref] {
			index, err := strconv.Atoi(workmodel.SnapshotIndex(binding.Spec.ResourceSnapshotName))
			if err != nil || rules.IsDeleting(binding.Object) {
				continue
			}
			one.Has[binding.Spec.TargetCluster] = index
			one.Latest = max(one.Latest, index)
			count[binding.Spec.TargetCluster]++
		}
		placed = append(placed, one)
	}
	for _, row := range f.Clusters {
		members = append(members, picture.Member{Member: row, Placements: count[row.Name], Changing: changing[row.Name]})
	}
	return members, placed
}
