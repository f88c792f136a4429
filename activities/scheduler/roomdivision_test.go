package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// having is a share of a cluster that runs some replicas and has room for more.
func having(cluster string, current, free int64) share {
	s := of(cluster, 0).running(current)
	s.free = free
	s.limit = noUpper
	return s
}

func inTier(tier int, s share) share {
	s.tier = tier
	return s
}

func TestTheReplicasOfAWorkloadAreDividedByRoomAs(t *testing.T) {
	abc := func(free ...int64) []share {
		var shares []share
		for i, one := range free {
			shares = append(shares, having(string(rune('A'+i)), 0, one))
		}
		return shares
	}
	const aggregate = true
	for id, test := range map[string]struct {
		total        int64
		keep         bool
		aggregate    bool
		shares       []share
		want         []int64
		missing, fit int64
	}{
		"R2 18:12:6":           {total: 12, keep: never, shares: abc(18, 12, 6), want: []int64{6, 4, 2}},
		"R2 20:12:6":           {total: 12, keep: never, shares: abc(20, 12, 6), want: []int64{6, 4, 2}},
		"R2 6:12:6":            {total: 12, keep: never, shares: abc(6, 12, 6), want: []int64{3, 6, 3}},
		"R2 6:12:18":           {total: 12, keep: never, shares: abc(6, 12, 18), want: []int64{2, 4, 6}},
		"R2 6:8:10":            {total: 12, keep: never, shares: abc(6, 8, 10), want: []int64{3, 4, 5}},
		"R3 to 6":              {total: 6, keep: never, shares: []share{having("A", 2, 0), having("B", 4, 0), having("C", 6, 0)}, want: []int64{1, 2, 3}},
		"R3 to 24":             {total: 24, keep: never, shares: []share{having("A", 2, 10), having("B", 4, 10), having("C", 6, 10)}, want: []int64{6, 8, 10}},
		"R3 to 24, too many":   {total: 24, keep: never, shares: []share{having("A", 2, 1), having("B", 4, 1), having("C", 6, 1)}, want: []int64{2, 4, 6}, missing: 12, fit: 3},
		"R4 6:8:10":            {total: 12, keep: never, aggregate: aggregate, shares: abc(6, 8, 10), want: []int64{0, 5, 7}},
		"R4 12:8:10":           {total: 12, keep: never, aggregate: aggregate, shares: abc(12, 8, 10), want: []int64{12, 0, 0}},
		"R4 to 24":             {total: 24, keep: never, aggregate: aggregate, shares: []share{having("A", 4, 4), having("B", 8, 6), having("C", 0, 8)}, want: []int64{7, 12, 5}},
		"R4 to 24 of holders":  {total: 24, keep: never, aggregate: aggregate, shares: []share{having("A", 4, 6), having("B", 8, 6), having("C", 0, 20)}, want: []int64{10, 14, 0}},
		"R4 to 8":              {total: 8, keep: never, aggregate: aggregate, shares: []share{having("A", 4, 9), having("B", 8, 9)}, want: []int64{0, 8}},
		"R5 a cluster is gone": {total: 12, keep: never, shares: []share{having("A", 6, 3), having("B", 0, 3)}, want: []int64{9, 3}},

		"R6 the first tier is full":        {total: 5, keep: never, shares: []share{having("A", 0, 2), inTier(1, having("B", 0, 10))}, want: []int64{2, 3}},
		"R6 what runs stays, and fills up": {total: 8, keep: never, shares: []share{having("A", 3, 2), inTier(1, having("B", 0, 10))}, want: []int64{5, 3}},
		"the last tier shrinks first":      {total: 4, keep: never, shares: []share{having("A", 3, 2), inTier(1, having("B", 3, 10))}, want: []int64{3, 1}},
		"with Always a tier takes back":    {total: 8, shares: []share{having("A", 3, 4), inTier(1, having("B", 5, 10))}, want: []int64{7, 1}},
		"tiers together have no room":      {total: 8, keep: never, shares: []share{having("A", 0, 2), inTier(1, having("B", 0, 3))}, want: []int64{0, 0}, missing: 8, fit: 5},
		"a lower bound of a later tier":    {total: 5, keep: never, shares: []share{having("A", 0, 9), inTier(1, having("B", 0, 9).between(2, noUpper))}, want: []int64{3, 2}},
		"a tier is aggregated":             {total: 9, keep: never, aggregate: aggregate, shares: []share{having("A", 0, 3), inTier(1, having("B", 0, 9)), inTier(1, having("C", 0, 8))}, want: []int64{3, 6, 0}},

		"what runs is kept":                        {total: 12, keep: never, shares: []share{having("A", 12, 0), having("B", 0, 90)}, want: []int64{12, 0}},
		"with Always it moves":                     {total: 12, shares: []share{having("A", 12, 0), having("B", 0, 12)}, want: []int64{6, 6}},
		"with Always there may be no room":         {total: 30, shares: []share{having("A", 12, 0), having("B", 0, 12)}, want: []int64{12, 0}, missing: 18, fit: 12},
		"upper bounds hold":                        {total: 12, keep: never, shares: []share{having("A", 0, 90).between(0, 3), having("B", 0, 10)}, want: []int64{3, 9}},
		"lower bounds come first":                  {total: 4, keep: never, shares: []share{having("A", 0, 90), having("B", 0, 9).between(3, noUpper)}, want: []int64{1, 3}},
		"a lower bound needs room":                 {total: 4, keep: never, shares: []share{having("A", 0, 90), having("B", 0, 2).between(3, noUpper)}, want: []int64{2, 2}},
		"an aggregation keeps lower bounds":        {total: 10, keep: never, aggregate: aggregate, shares: []share{having("A", 0, 90), having("B", 0, 9).between(3, noUpper)}, want: []int64{7, 3}},
		"a cluster that no entry matches":          {total: 10, keep: never, shares: []share{having("A", 0, 90), having("B", 5, 9).between(0, 0)}, want: []int64{10, 0}},
		"what no node takes goes elsewhere":        {total: 20, keep: never, shares: []share{having("A", 15, 0).between(0, 10), having("B", 5, 9)}, want: []int64{10, 10}},
		"or stays, if there is no room":            {total: 20, keep: never, shares: []share{having("A", 15, 0).between(0, 10), having("B", 5, 2)}, want: []int64{15, 5}, missing: 5, fit: 2},
		"but a smaller total is kept to":           {total: 16, keep: never, shares: []share{having("A", 15, 0).between(0, 10), having("B", 5, 0)}, want: []int64{12, 4}, missing: 1, fit: 0},
		"nothing runs, and there is no room":       {total: 5, keep: never, shares: abc(0, 2), want: []int64{0, 0}, missing: 5, fit: 2},
		"none are wanted":                          {total: 0, keep: never, shares: []share{having("A", 4, 4)}, want: []int64{0}},
		"with Always an aggregation stays its own": {total: 12, aggregate: aggregate, shares: []share{having("A", 12, 3), having("B", 0, 90)}, want: []int64{12, 0}},
	} {
		t.Run(id, func(t *testing.T) {
			for i := range test.shares {
				test.shares[i].tie = hashTie(test.shares[i].cluster, "web/front")
			}
			d := roomDivision{total: test.total, shares: test.shares, keep: test.keep, aggregate: test.aggregate}
			missing, fit := d.divide()
			assert.Equal(t, []int64{test.missing, test.fit}, []int64{missing, fit})
			assert.Equal(t, test.want, seatsOf(test.shares))
		})
	}
}

func TestDivisionsOfRandomFleetsByRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 10_000 {
		total, shares := randomShares(random)
		for i := range shares {
			shares[i].free = int64(random.IntN(30))
			shares[i].limit = noUpper
			shares[i].tier = random.IntN(3)
			if random.IntN(4) == 0 {
				shares[i].limit = int64(random.IntN(20))
				shares[i].upper = min(shares[i].upper, shares[i].limit)
			}
		}
		d := roomDivision{total: total, shares: shares, keep: random.IntN(2) == 0, aggregate: random.IntN(2) == 0}
		said := fmt.Sprintf("total %d, keep %t, aggregate %t, %+v", total, d.keep, d.aggregate, shares)
		missing, fit := d.divide()
		checkRoomDivision(t, said, &d, missing, fit)

		again := roomDivision{total: total, shares: slices.Clone(shares), keep: d.keep, aggregate: d.aggregate}
		random.Shuffle(len(again.shares), func(i, j int) { again.shares[i], again.shares[j] = again.shares[j], again.shares[i] })
		missingAgain, fitAgain := again.divide()
		require.Equal(t, []int64{missing, fit}, []int64{missingAgain, fitAgain}, said)
		slices.SortFunc(again.shares, func(a, b share) int { return compareNames(a.cluster, b.cluster) })
		require.Equal(t, shares, again.shares, "in another order: %s", said)

		for i := range again.shares { // the pods run, so that there is as much less room
			s := &again.shares[i]
			s.current, s.free = s.seats, max(0, s.free+s.current-s.seats)
		}
		if missing == 0 && (d.keep || !d.aggregate) {
			again.divide()
			require.Equal(t, seatsOf(shares), seatsOf(again.shares), "divided again, nothing moves: %s", said)
		}
	}
}

// checkRoomDivision checks what every division by room promises.
func checkRoomDivision(t *testing.T, said string, d *roomDivision, missing, fit int64) {
	t.Helper()
	given := int64(0)
	before := int64(0)
	running := int64(0)
	for i := range d.shares {
		given += d.shares[i].seats
		before += d.shares[i].current
		running += d.shares[i].holds()
	}
	require.LessOrEqual(t, given, d.total, said)
	require.GreaterOrEqual(t, missing, fit, said)
	require.GreaterOrEqual(t, fit, int64(0), said)
	if missing == 0 {
		require.Equal(t, d.total, given, said)
	} else {
		require.Equal(t, min(before, d.total), given, "what there is stays: %s", said)
	}
	for i := range d.shares {
		s := &d.shares[i]
		require.LessOrEqual(t, s.seats, s.current+s.free, "there is room: %s", said)
		if missing > 0 {
			require.LessOrEqual(t, s.seats, s.current, "nothing is added unless all find a place: %s", said)
			continue
		}
		require.LessOrEqual(t, s.seats, s.upper, said)
		if d.keep && running <= d.total {
			require.GreaterOrEqual(t, s.seats, s.holds(), "nothing moves that runs: %s", said)
		}
		if d.keep && running > d.total {
			require.LessOrEqual(t, s.seats, s.holds(), "no cluster grows: %s", said)
		}
	}
}

func BenchmarkDivisionByRoom(b *testing.B) {
	random := rand.New(rand.NewPCG(9, 10))
	shares := make([]share, 5000)
	for i := range shares {
		shares[i] = having(fmt.Sprintf("member-%d", i), 0, int64(20+random.IntN(1000)))
		shares[i].tie = hashTie(shares[i].cluster, "web/front")
	}
	for name, aggregate := range map[string]bool{"in proportion": false, "aggregated": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d := roomDivision{total: 100_000, shares: shares, keep: never, aggregate: aggregate}
				d.divide()
			}
		})
	}
}
