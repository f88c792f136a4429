package rollout

// Closed are the changes of a cluster that must not begin now. What is under way ends.
type Closed struct{ Update, Addition, Removal, Eviction bool }

// isClosed reports whether an operation must not begin on a cluster.
func (c Cluster) isClosed(op Op) bool {
	switch op {
	case Update, PrepareUpdate:
		return c.Closed.Update
	case Add, AddStable:
		return c.Closed.Addition
	case Remove, PrepareRemove:
		return c.Closed.Removal
	case Evict:
		return c.Closed.Eviction
	}
	return false
}

// noteClosed notes what waits only because clusters are closed, after everything else is planned: whichever is open goes
// first. What a freeze, a pause or the partition keeps back waits for those.
func (p *planner) noteClosed(clusters []Cluster) {
	for _, c := range clusters {
		op := Add
		switch {
		case c.WantsTakeAway() && p.isFree(c):
			op = takeAwayOp(c)
		case c.State != Scheduled || !p.isIdle(c):
			continue
		}
		switch {
		case !c.isClosed(op):
		case op == Add && !p.keepsFrozen(c), op != Add && !p.keepsBack(c):
			p.plan.Closed = append(p.plan.Closed, Step{c.Name, op})
			if op == Update && c.isOlder() {
				p.waitingOlder++
			}
		}
	}
}
