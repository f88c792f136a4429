package rollout

import (
	"slices"
	"strings"
)

// Blocked returns how many clusters wait for the limits of the rollout, or for other clusters.
func (p Plan) Blocked() int { return p.countWaits(func(of nature) bool { return of.limited }) }

// HeldBack returns how many clusters keep what they have until the placement is changed.
func (p Plan) HeldBack() int { return p.countWaits(func(of nature) bool { return of.lasting }) }

// Hooked returns how many clusters wait for the answer to a hook.
func (p Plan) Hooked() int {
	return p.countWaits(func(of nature) bool { return of.prepares })
}

// Refused returns the waits of clusters whose bindings the API server refuses to write.
func (p Plan) Refused() (refused []Wait) {
	for _, wait := range p.Waits {
		if natures[wait.Kind].retried {
			refused = append(refused, wait)
		}
	}
	return refused
}

// ReachesPartition reports whether every cluster that keeps an older snapshot does so until the placement is changed: the rollout has come
// as far as it should.
func (p Plan) ReachesPartition(clusters []Cluster) bool {
	kept := map[string]bool{}
	for _, wait := range p.Waits {
		kept[wait.Cluster] = kept[wait.Cluster] || natures[wait.Kind].lasting
	}
	return !slices.ContainsFunc(clusters, func(c Cluster) bool { return c.isOlder() && !kept[c.Name] })
}

// Closed returns the waits for what must not begin now.
func (p Plan) Closed() []Wait { return waitsAtStart(p.Waits) }

// Stuck says why, if there is no cluster whose end could free those that wait for the limits; empty if there is one.
func (p Plan) Stuck() string {
	var whys []string
	for _, wait := range p.Waits {
		if natures[wait.Kind].limited && wait.Why != "" && !slices.Contains(whys, wait.Why) {
			whys = append(whys, wait.Why)
		}
	}

	return strings.Join(whys, "; ")
}

func (p Plan) countWaits(is func(nature) bool) (n int) {
	for _, wait := range p.Waits {
		if is(natures[wait.Kind]) {
			n++
		}
	}
	return n
}

// note notes why a cluster does not move: the wait that it was given, or one of a brake of the rollout.
func (p *planner) note(c Cluster, op Op, wait Wait) {
	wait.Cluster = c.Name
	wait.Op = op
	p.plan.Waits = append(p.plan.Waits, wait)
}

// waitFor returns the first wait of a cluster for an operation whose brake is of a nature; nil if it has none.
func (c Cluster) waitFor(op Op, is func(nature) bool) *Wait {
	switch op {
	case PrepareUpdate:
		op = Update
	case AddStable:
		op = Add
	case PrepareRemove:
		op = Remove
	}
	return firstWait(c.Waits, op, is)
}

// isClosed reports whether an operation must not begin on a cluster.
func (c Cluster) isClosed(op Op) bool {
	return c.waitFor(op, func(of nature) bool { return of.atStart }) != nil
}

// obstacle returns what keeps an operation on a cluster from being written now though nothing else stands against it: what closes the
// cluster, or that the write was refused a moment ago; nil if nothing does.
func (c Cluster) obstacle(op Op) *Wait {
	return c.waitFor(op, func(of nature) bool { return of.atStart || of.retried })
}

// Refusal returns why the binding of a cluster is not written before it is time to try again; nil if it is not known to be refused.
func (c Cluster) Refusal() *Wait {
	return c.waitFor("", func(of nature) bool { return of.retried })
}

// freeze returns what keeps anything from being written for a cluster, or removed from it; nil if that may be.
func (c Cluster) freeze() *Wait {
	return c.waitFor("", func(of nature) bool { return of.frozen })
}

// hook returns what has to be answered before an operation, once the cluster is prepared; nil if nothing has.
func (c Cluster) hook(op Op) *Wait {
	return c.waitFor(op, func(of nature) bool { return of.prepares })
}

// WaitsForHook reports whether a hook is to be answered before an operation on the cluster.
func (c Cluster) WaitsForHook(op Op) bool { return c.hook(op) != nil }

// noteClosed notes what waits only because clusters are closed, or cannot be written, after everything else is planned: whichever is open
// goes first. What a freeze, a pause or the partition keeps back waits for those.
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
		case c.obstacle(op) == nil:
		case op == Add && !p.keepsFrozen(c), op != Add && !p.keepsBack(c):
			p.note(c, op, *c.obstacle(op))
			if op == Update && c.isOlder() {
				p.accounts.waitingOlder++
			}
		}
	}
}
