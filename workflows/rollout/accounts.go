package rollout

// accounts are the two of a rolling update: clusters that are available, and clusters that have resources. What claims may still take of
// them is reserved.
type accounts struct {
	total             int
	available, placed int
	reservedAvailable int
	reservedRoom      int
	// pending clusters have resources and are not available.
	pending int
	// older clusters keep an older snapshot, once what is planned is written; reservedOlder are
	// those of them that claims may still take, waitingOlder those that are to be updated when the
	// limits allow it. older counts what new clusters are given as well.
	older, reservedOlder, waitingOlder int
	// stable says that there is an older snapshot to give to new clusters.
	stable bool
}

// count enters a cluster as it is.
func (a *accounts) count(c Cluster) {
	if !c.Superseded {
		a.total++
	}
	if isUp(c) {
		a.available++
	}
	if holdsResources(c) {
		a.placed++
		if !isUp(c) {
			a.pending++
		}
	}
	if c.Claimed && isUp(c) {
		a.reservedAvailable++
	}
	if c.Claimed && !holdsResources(c) {
		a.reservedRoom++
	}
	if c.Old && c.Placed {
		a.stable = true
	}
	if c.isOlder() {
		a.older++
		if c.Claimed {
			a.reservedOlder++
		}
	}
}

// availableFor returns how many clusters are available when one is to be taken away. What was
// claimed for itself is not reserved against it.
func (a *accounts) availableFor(c Cluster) int {
	if c.Claimed {
		return a.available
	}
	return a.available - a.reservedAvailable
}

// take enters that a cluster is taken away.
func (a *accounts) take(c Cluster) {
	if c.isOlder() {
		a.older--
		if c.Claimed {
			a.reservedOlder--
		}
	}
	if !isUp(c) {
		return
	}
	a.available--
	if c.Claimed {
		a.reservedAvailable--
	}
}

func isUp(c Cluster) bool           { return c.Available && !c.Deleting && !c.Superseded }
func holdsResources(c Cluster) bool { return (c.Placed || c.Deleting) && !c.Lost && !c.Superseded }
