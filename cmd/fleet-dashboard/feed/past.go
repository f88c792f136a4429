package feed

import (
	"time"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Past returns what has happened in the fleet, the latest first, and the runs that were under way, from an instant until another. It reads
// only the runs of that time.
func (f *Fleet) Past(from, until time.Time) ([]fleetview.Happening, []picture.Ran) {
	facts := fleetview.FleetFacts{
		Members: f.Members, Runs: map[hub.Ref][]hub.Run{}, Bindings: f.bindings, Approvals: f.approvals, Evictions: f.Evictions, Holds: f.Holds,
		Exemptions: f.Gates.Exemptions, Now: f.At,
	}
	for _, p := range f.Placements {
		facts.Placements = append(facts.Placements, p.Placement)
	}
	var ran []picture.Ran
	for i := range f.Runs {
		run := &f.Runs[i]
		one := picture.Ran{Run: run.Ref, Of: run.Run.Placement(), Phase: run.State.Phase, Began: run.Object.GetCreationTimestamp().Time}
		if run.Outcome() != "" {
			one.Ended = run.State.Since
		}
		if one.Began.After(until) || !one.Ended.IsZero() && one.Ended.Before(from) {
			continue
		}
		ran = append(ran, one)
		facts.Runs[one.Of] = append(facts.Runs[one.Of], run.Run)
	}
	return fleetview.Happenings(facts), ran
}
