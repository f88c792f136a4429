package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// roomDivision divides the replicas of a workload by how many more the clusters have room for.
type roomDivision struct {
	total  int64
	shares []share
	// keep leaves what runs where it is; aggregate takes as few clusters as have room.
	keep, aggregate bool
	// parts are the shares in the division of what there is to divide: all replicas, or those that are added to held.
	parts []share
	held  []int64
	// votes are what counts of each cluster in the division, and said is what it is, in words.
	votes []int64
	said  string
}

// runsWithin returns how many replicas a cluster keeps of those it has, within its upper bound.
func (s *share) runsWithin() int64 { return min(s.current, s.upper) }

// top returns the most that a cluster can have: what it has, and what it has room for, within its upper bound.
func (s *share) top() int64 { return max(0, min(s.upper, s.current+s.free)) }

// floor returns the lower bound of a cluster, as far as it has room.
func (s *share) floor() int64 { return min(s.lower, s.top()) }

// holds returns how many replicas a cluster has if what runs stays, as far as its own bounds and its room let it.
func (s *share) holds() int64 { return max(s.floor(), s.runsWithin()) }

// divide divides, if the clusters have room enough. If they do not, everything stays as it is, except for what the total is less;
// then it returns how many more replicas are wanted, and how many of them there is room for.
func (d *roomDivision) divide() (missing, fit int64) {
	running := int64(0)
	for i := range d.shares {
		running += d.shares[i].holds()
	}
	switch {
	case d.keep && running > d.total:
		d.shrink()
		running = 0
	case d.keep:
		d.grow()
	default:
		d.afresh()
		running = 0
	}
	room := int64(0)
	for i := range d.parts {
		room += d.parts[i].upper
	}
	if wanted := d.total - running; wanted > room {
		return d.stay()
	}
	d.divideTiers(d.total - running)
	for i := range d.parts {
		d.shares[i].seats = d.held[i] + d.parts[i].seats
	}
	return 0, 0
}

// divideTiers divides replicas over the clusters of the first tier, and what they have no room for over those of the next.
func (d *roomDivision) divideTiers(left int64) {
	tiers := map[int][]int{}
	later := int64(0)
	for i := range d.parts {
		tiers[d.parts[i].tier] = append(tiers[d.parts[i].tier], i)
		later += d.parts[i].lower
	}
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		lower := int64(0)
		room := int64(0)
		for _, i := range tiers[tier] {
			lower = lower + d.parts[i].lower
			room = room + d.parts[i].upper
		}
		later -= lower
		takes := min(left, room, max(lower, left-later))
		if d.aggregate || takes == 0 {
			d.narrow(tiers[tier], takes)
		}
		d.divideTier(tiers[tier], takes)
		left -= takes
	}
}

// divideTier divides replicas over the clusters of a tier.
func (d *roomDivision) divideTier(tier []int, takes int64) {
	parts := make([]share, 0, len(tier))
	for _, i := range tier {
		parts = append(parts, d.parts[i])
	}
	divideReplicas(takes, parts, false)
	for at, i := range tier {
		d.parts[i].seats = parts[at].seats
	}
}

// prepare makes a part of each share.
func (d *roomDivision) prepare(said string, part func(s *share) (held, votes, lower, upper int64)) {
	d.said, d.parts, d.held, d.votes = said, slices.Clone(d.shares), make([]int64, len(d.shares)), make([]int64, len(d.shares))
	for i := range d.parts {
		p := &d.parts[i]
		if d.held[i], p.votes, p.lower, p.upper = part(&d.shares[i]); p.upper <= 0 {
			p.votes = 0
		}
		d.votes[i] = p.votes
		p.current -= d.held[i]
	}
}

// grow divides what is added to what runs.
func (d *roomDivision) grow() {
	d.prepare("free", func(s *share) (held, votes, lower, upper int64) {
		held = s.holds()
		return held, max(0, s.free-max(0, held-s.current)), 0, max(0, s.top()-held)
	})
}

// shrink divides fewer replicas than there are: no cluster grows, except for its lower bound. If there are not even enough for
// these, they alone count: they stay the same while replicas move.
func (d *roomDivision) shrink() {
	floors := int64(0)
	for i := range d.shares {
		floors += d.shares[i].floor()
	}
	votes := (*share).holds
	if floors >= d.total {
		votes = (*share).floor
	}
	d.prepare("running", func(s *share) (held, counts, lower, upper int64) { return 0, votes(s), s.floor(), s.holds() })
}

// afresh divides all replicas by what runs and what there is room for.
func (d *roomDivision) afresh() {
	d.prepare("free or running", func(s *share) (held, votes, lower, upper int64) {
		return 0, s.current + s.free, s.floor(), s.top()
	})
}

// stay leaves what runs where it is, and less of it if the total is less.
func (d *roomDivision) stay() (missing, fit int64) {
	running := int64(0)
	room := int64(0)
	for i := range d.shares {
		s := &d.shares[i]
		running += s.runsWithin()
		room += max(0, s.top()-s.runsWithin())
	}
	d.prepare("running", func(s *share) (held, votes, lower, upper int64) { return 0, s.current, 0, s.current })
	divideReplicas(d.total, d.parts, false)
	for i := range d.parts {
		d.shares[i].seats = d.parts[i].seats
	}
	return d.total - running, min(room, d.total-running)
}

// narrow leaves the replicas of a tier to its first clusters that have room for them: those that have some come first, then those with
// most votes.
func (d *roomDivision) narrow(tier []int, wanted int64) {
	order := slices.Clone(tier)
	for _, i := range order {
		wanted -= d.parts[i].lower
	}
	slices.SortFunc(order, func(a, b int) int {
		one := &d.parts[a]
		other := &d.parts[b]
		return cmp.Or(
			compareFalseFirst(d.shares[a].current == 0, d.shares[b].current == 0), cmp.Compare(other.votes, one.votes),
			cmp.Compare(one.tie, other.tie), cmp.Compare(one.cluster, other.cluster),
		)
	})
	for _, i := range order {
		p := &d.parts[i]
		if wanted <= 0 {
			p.upper = p.lower
			p.votes = 0
			continue
		}
		wanted -= p.upper - p.lower
	}
}

// describe returns why a cluster gets as many replicas as it does.
func (d *roomDivision) describe(i int) string {
	all := int64(0)
	for _, votes := range d.votes {
		all += votes
	}
	s := &d.shares[i]
	reason := fmt.Sprintf("%d of %d %s", d.votes[i], all, d.said) + s.describeBound()
	if s.unreported && d.said != "running" {
		reason += ", as no report of the last 5 minutes has room"
	}
	if d.votes[i] > 0 && d.parts[i].votes == 0 {
		reason += ", and others have room for all"
	}
	return reason
}
