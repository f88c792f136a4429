package scheduler

import (
	"cmp"
	"container/heap"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
)

// bisectAbove is from how many replicas on most of them are given at once.
const bisectAbove = 10_000

// share is what one cluster gets of the replicas of a workload.
type share struct {
	cluster string
	// votes are the weight of the cluster. Without any, it gets nothing beyond its lower bound.
	votes int64
	// lower and upper bound of its replicas.
	lower, upper int64
	// limit is the upper bound that was learnt, which upper is not above; noUpper if there is none.
	limit int64
	// free is how many more replicas there is room for; unreported says that no report tells.
	free       int64
	unreported bool
	// tier is the place of the group that the cluster is in, if groups overflow.
	tier int
	// current is how many it got last.
	current int64
	// withheld says that the cluster gets nothing but what no other takes of what is there, which leavable is.
	withheld bool
	leavable int64
	// tie decides between clusters of which nothing else tells which comes first.
	tie uint32
	// seats are the replicas it gets.
	seats int64
}

// noUpper is the upper bound of a cluster that has none.
const noUpper = math.MaxInt32

// hashTie returns the tie of a cluster in the division of a workload, whose name is namespace/name.
func hashTie(cluster, workload string) uint32 {
	hash := fnv.New32()
	_, _ = hash.Write([]byte(cluster + workload)) // writing to a hash never fails
	return hash.Sum32()
}

// stays returns how many replicas a cluster has if what runs stays, as far as its own bounds let it.
func (s *share) stays() int64 { return max(s.lower, min(s.current, s.upper)) }

// describeBound returns which bound a cluster is at; nothing if at none.
func (s *share) describeBound() string {
	switch {
	case s.limit < noUpper && s.seats == s.limit && s.limit == s.upper:
		return fmt.Sprintf(", at %d, as no node takes more", s.limit)
	case s.upper < noUpper && s.seats == s.upper:
		return fmt.Sprintf(", at its maxReplicas %d", s.upper)
	case s.lower > 0 && s.seats == s.lower:
		return fmt.Sprintf(", at its minReplicas %d", s.lower)
	}
	return ""
}

// divideReplicas divides replicas by the method of Sainte-Laguë within the bounds, and returns how many find no place. With keep,
// what runs stays where it is: of more replicas only the additional ones are divided, and of fewer no cluster gets more than it
// has, except for its lower bound. The result does not depend on the order of the shares.
func divideReplicas(total int64, shares []share, keep bool) (left int64) {
	running := int64(0)
	for i := range shares {
		running += shares[i].stays()
	}
	lower := func(s *share) int64 { return s.lower }
	upper := func(s *share) int64 { return max(s.lower, s.upper) }
	switch {
	case keep && running <= total:
		lower = (*share).stays
	case keep:
		upper = (*share).stays
	}
	d := division{shares: make([]*seated, 0, len(shares)), left: total}
	for i := range shares {
		s := &shares[i]
		d.shares = append(d.shares, &seated{share: s, votes: s.votes, lower: lower(s), upper: min(upper(s), total)})
	}
	d.giveLowerBounds()
	d.giveByVotes()
	if keep && d.left > 0 {
		d.giveBack()
	}
	return d.left
}

// division is one division under way.
type division struct {
	shares []*seated
	// left are the replicas that no cluster has been given yet.
	left int64
}

// seated is a share in a division: with the votes and bounds that count in it.
type seated struct {
	*share
	votes, lower, upper int64
}

// giveLowerBounds gives every cluster its lower bound, as far as the replicas last: to those with most votes first, and
// of these to those that have it already.
func (d *division) giveLowerBounds() {
	slices.SortFunc(d.shares, func(a, b *seated) int {
		return cmp.Or(
			cmp.Compare(b.votes, a.votes), compareFalseFirst(a.current < a.lower, b.current < b.lower), cmp.Compare(b.current, a.current),
			cmp.Compare(a.tie, b.tie), cmp.Compare(a.cluster, b.cluster),
		)
	})
	for _, s := range d.shares {
		s.seats = min(s.lower, d.left)
		d.left -= s.seats
	}
}

// giveBack gives what is left to clusters without votes, as much as each has by now: it would be moved without need.
func (d *division) giveBack() {
	for _, s := range d.shares {
		s.upper = min(s.upper, s.stays())
		if s.votes == 0 {
			s.votes = s.upper
		} else {
			s.votes = 0
		}
	}
	d.giveByVotes()
}

// giveByVotes gives each further replica to the cluster with most votes for each half of twice its seats plus one.
func (d *division) giveByVotes() {
	if d.left > bisectAbove {
		d.giveAtOnce()
	}
	var line queue
	for _, s := range d.shares {
		if s.votes > 0 && s.seats < s.upper {
			line = append(line, s)
		}
	}
	heap.Init(&line)
	for ; d.left > 0 && len(line) > 0; d.left-- {
		first := line[0]
		if first.seats++; first.seats < first.upper {
			heap.Fix(&line, 0)
		} else {
			heap.Pop(&line)
		}
	}
}

// giveAtOnce gives all replicas whose turn comes before some quotient of votes, which is chosen so that as many as possible
// are given, and not more than there are. One by one, they would be given to the same clusters.
func (d *division) giveAtOnce() {
	votes := uint64(0)
	least := uint64(math.MaxUint64)
	most := uint64(0)
	for _, s := range d.shares {
		if s.votes > 0 {
			votes += uint64(s.votes)
			least = min(least, uint64(s.votes))
			most = max(most, uint64(s.upper))
		}
	}
	if votes == 0 {
		return
	}
	// A replica comes before the quotient unit/at. The unit is so small that little is left between two values of at.
	unit := max(1, votes/8)
	low := uint64(0)
	high := uint64(math.MaxInt64)
	if over, end := bits.Mul64(unit, 2*most+2); over == 0 && end/least < high {
		high = end/least + 1
	}
	for low < high {
		at := low + (high-low+1)/2
		if d.countGiven(unit, at) <= d.left {
			low = at
		} else {
			high = at - 1
		}
	}
	d.left -= d.countGiven(unit, low)
	for _, s := range d.shares {
		s.seats = s.seatsBefore(unit, low)
	}
}

// countGiven returns how many replicas come before the quotient unit/at.
func (d *division) countGiven(unit, at uint64) int64 {
	given := int64(0)
	for _, s := range d.shares {
		given += s.seatsBefore(unit, at) - s.seats
	}
	return given
}

// seatsBefore returns how many seats a cluster has after all replicas that come before the quotient unit/at.
func (s *seated) seatsBefore(unit, at uint64) int64 {
	high, low := bits.Mul64(uint64(s.votes), at)
	switch {
	case high == 0 && low == 0:
		return s.seats
	case high >= unit:
		return max(s.seats, s.upper)
	}
	low, borrow := bits.Sub64(low, 1, 0)
	quotient, _ := bits.Div64(high-borrow, low, unit)
	// Seat number i, from 0, comes before it if 2i+1 is not above the quotient.
	before := quotient/2 + quotient%2
	return max(s.seats, int64(min(before, uint64(s.upper))))
}

// queue has the cluster first that gets the next replica.
type queue []*seated

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Less compares quotients by multiplying crosswise. At the same quotient, the cluster with fewer seats comes first, then one that
// had more replicas than seats.
func (q queue) Less(i, j int) bool {
	a := q[i]
	b := q[j]
	one := uint64(a.votes) * uint64(2*b.seats+1)
	other := uint64(b.votes) * uint64(2*a.seats+1)
	if one != other {
		return one > other
	}
	return cmp.Or(
		cmp.Compare(a.seats, b.seats), compareFalseFirst(a.current <= a.seats, b.current <= b.seats), cmp.Compare(a.tie, b.tie),
		cmp.Compare(a.cluster, b.cluster),
	) < 0
}

// Push is never called: what has left the line does not come back.
func (q *queue) Push(any) {}

func (q *queue) Pop() any {
	last := len(*q) - 1
	popped := (*q)[last]
	*q = (*q)[:last]
	return popped
}
