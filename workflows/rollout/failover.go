package rollout

import "time"

// Leaving says how the copy on a cluster that a placement has left makes place for that on another.
type Leaving string

const (
	// LeavingGracefully keeps the copy until what replaces it has settled.
	LeavingGracefully Leaving = "gracefully"
	// LeavingDirectly keeps what replaces the copy back until the copy is gone.
	LeavingDirectly Leaving = "directly"
)

// failovers count what waits for each other because a placement fails over.
type failovers struct {
	// leaving are the copies that wait for a replacement, unsettled the wanted clusters that have not settled, and settlesAt is
	// when time alone settles the first of these.
	leaving, unsettled int
	settlesAt          time.Time
	// departing are the copies that replacements wait for, fresh the clusters that have nothing yet.
	departing, fresh int
	// handovers are between clusters of which one replaces the other.
	handovers handovers
}

func (f *failovers) countCluster(c Cluster) {
	switch {
	case c.State == Unscheduled && c.Leaving == LeavingDirectly:
		f.departing++
	case c.State == Unscheduled && c.Leaving == LeavingGracefully && c.Placed && !c.Deleting:
		f.leaving++
	case c.State == Unscheduled || c.Deleting:
	default:
		if !isUp(c) && !c.Settled {
			f.unsettled++
			f.settlesAt = EarlierOf(f.settlesAt, c.SettlesAt)
		}
		if c.State == Scheduled && !c.Placed {
			f.fresh++
		}
	}
}

// awaitsReplacement reports whether the copy on a cluster that the placement has left is to stay for now: as many copies stay as clusters
// have not settled. More would take the room of those that are to replace them.
func (f *failovers) awaitsReplacement(c Cluster) bool {
	return c.State == Unscheduled && c.Leaving == LeavingGracefully && c.Placed && f.unsettled > 0 && f.leaving <= f.unsettled
}

// awaitsDeparture reports whether a cluster gets nothing for now: as many wait as copies are still to go.
func (f *failovers) awaitsDeparture(c Cluster) bool {
	if c.Placed || f.departing == 0 {
		return false
	}
	if f.fresh > f.departing {
		f.fresh--
		return false
	}
	return true
}
