package feed

import (
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// past is what has happened in a stretch of time, and what was under way.
type past struct {
	all []fleetview.Happening
	ran []picture.Ran
}

// stretch is a query for it.
type stretch struct{ from, until time.Time }

// Past returns what has happened in the fleet, the latest first, and the runs that were under way, from an instant until another. It reads
// only what is of that time, and once for all who ask. Neither must be changed.
func (f *Fleet) Past(from, until time.Time) ([]fleetview.Happening, []picture.Ran) {
	made := f.Drawn(stretch{from, until}, func() any { return f.readPast(from, until) }).(past) //nolint:forcetypeassert // what such a query has is that
	return made.all, made.ran
}

func (f *Fleet) readPast(from, until time.Time) past {
	facts := fleetview.FleetFacts{
		Members: f.Members, Runs: map[hub.Ref][]hub.Run{}, Bindings: map[hub.Ref][]hub.Binding{}, Approvals: f.approvals, States: map[hub.Ref]updaterun.State{},
		Evictions: f.Evictions, Holds: f.Holds, Exemptions: f.Gates.Exemptions, Now: f.At,
	}
	within := func(at time.Time) bool { return !at.Before(from) && !at.After(until) }
	for _, p := range f.Placements {
		facts.Placements = append(facts.Placements, p.Placement)
		if slices.ContainsFunc(p.Status.ResourceSnapshots, func(s placementv1beta1.ResourceSnapshotSummary) bool { return within(s.CreationTime.Time) }) {
			facts.Bindings[p.Ref] = f.bindings[p.Ref] // they say how many clusters a snapshot is on
		}
	}
	for _, record := range f.records {
		if within(record.Spec.Time.Time) {
			facts.Records = append(facts.Records, record)
		}
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
		facts.States[run.Ref] = run.State
	}
	return past{fleetview.Happenings(facts), ran}
}
