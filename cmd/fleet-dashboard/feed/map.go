package feed

import (
	"strconv"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
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
	made, _ := f.madeOnce(hub.Ref{}, func() any {
		members, placed := f.draw()
		return Map{members, placed}
	})
	return made.(Map) //nolint:forcetypeassert // no reference is empty but this
}

func (f *Fleet) draw() (members []picture.Member, placed []picture.Placed) {
	changing := map[string][]string{}
	by := map[hub.Ref]map[string]bool{}
	for run := range f.Active() {
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
	for i := range f.Placements {
		one := f.placed(&f.Placements[i])
		one.Changing = by[f.Placements[i].Ref]
		for cluster := range one.Has {
			count[cluster]++
		}
		placed = append(placed, one)
	}
	all := f.seesAll(placements) && f.seesAll(bindings)
	for _, row := range f.Clusters {
		if !all {
			count[row.Name] = -1
		}
		members = append(members, picture.Member{Member: row, Placements: count[row.Name], Changing: changing[row.Name]})
	}
	return members, placed
}

// Placed returns which snapshots the clusters of a placement are to have.
func (f *Fleet) Placed(of hub.Ref) picture.Placed {
	p := f.Placement(of)
	if p == nil {
		return picture.Placed{Latest: -1, Unseen: true}
	}
	return f.placed(p)
}

func (f *Fleet) placed(p *Placement) picture.Placed {
	one := picture.Placed{Name: p.Qualified(), Path: p.Path(), Has: map[string]int{}, Unseen: !f.seesBindings(p.Namespace)}
	one.Latest = latestOf(p.Object.GetPlacementStatus())
	for _, binding := range f.bindings[p.Ref] {
		index, err := strconv.Atoi(workmodel.SnapshotIndex(binding.Spec.ResourceSnapshotName))
		if err != nil || rules.IsDeleting(binding.Object) {
			continue
		}
		one.Has[binding.Spec.TargetCluster] = index
		one.Latest = max(one.Latest, index)
	}
	return one
}

// latestOf returns the index of the latest snapshot of a placement as its status has it; -1 if there is none. The index that the status
// observes is the one that all clusters have where runs are External: alone it does not tell.
func latestOf(of *placementv1beta1.PlacementStatus) int {
	latest := -1
	for _, snapshot := range of.ResourceSnapshots {
		if index, err := strconv.Atoi(snapshot.Index); err == nil {
			latest = max(latest, index)
		}
	}
	if index, err := strconv.Atoi(of.ObservedResourceIndex); err == nil {
		latest = max(latest, index)
	}
	return latest
}
