package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// of is a share without bounds and without replicas by now.
func of(cluster string, votes int64) share {
	return share{cluster: cluster, votes: votes, upper: noUpper}
}

func (s share) between(lower, upper int64) share {
	s.lower = lower
	s.upper = upper
	return s
}

func (s share) running(current int64) share { s.current = current; return s }

func seatsOf(shares []share) []int64 {
	seats := make([]int64, 0, len(shares))
	for _, s := range shares {
		seats = append(seats, s.seats)
	}
	return seats
}

const always, never = false, true

func TestTheReplicasOfAWorkloadAreDividedAs(t *testing.T) {
	const none = noUpper
	for id, test := range map[string]struct {
		total  int64
		keep   bool
		shares []share
		// key of the workload, which decides who gets a remainder.
		key  string
		want []int64
		left int64
	}{
		"K1 no preferences":                   {total: 9, shares: []share{of("A", 1), of("B", 1), of("C", 1)}, want: []int64{3, 3, 3}},
		"K2 one is not named":                 {total: 9, shares: []share{of("A", 1), of("B", 2), of("C", 0).between(0, 0)}, want: []int64{3, 6, 0}},
		"K3 bounds":                           {total: 9, shares: []share{of("A", 1).between(4, 6), of("B", 2).between(4, 8)}, want: []int64{4, 5}},
		"K3 bounds are no base":               {total: 10, shares: []share{of("A", 2).between(2, 6), of("B", 3).between(4, 8)}, want: []int64{4, 6}},
		"K4 all up":                           {total: 50, shares: []share{of("A", 1), of("B", 1), of("C", 1).between(0, 20)}, want: []int64{16, 17, 17}},
		"K4 B offline":                        {total: 50, shares: []share{of("A", 1), of("C", 1).between(0, 20)}, want: []int64{30, 20}},
		"K4 A and B offline":                  {total: 50, shares: []share{of("C", 1).between(0, 20)}, want: []int64{20}, left: 30},
		"K5 Never":                            {total: 50, keep: never, shares: []share{of("A", 1), of("B", 1), of("C", 1).running(30)}, want: []int64{10, 10, 30}},
		"K5 Always":                           {total: 50, shares: []share{of("A", 1), of("B", 1), of("C", 1).running(30)}, want: []int64{16, 17, 17}},
		"K6 upper bounds":                     {total: 71, shares: []share{of("A", 10000).between(0, 10), of("B", 1), of("C", 1).between(0, 21), of("D", 1).between(0, 10)}, want: []int64{10, 30, 21, 10}},
		"K6 with E":                           {total: 91, shares: []share{of("A", 10000).between(0, 10), of("B", 1), of("C", 1).between(0, 21), of("D", 1).between(0, 10), of("E", 1)}, want: []int64{10, 25, 21, 10, 25}},
		"K7 in a scale-down no cluster grows": {total: 50, keep: never, shares: []share{of("A", 1).running(10), of("B", 1).running(70)}, want: []int64{10, 40}},
		"K8 none set":                         {total: 4, shares: []share{of("A", 1), of("B", 1)}, want: []int64{2, 2}},
		"K8 two to one":                       {total: 6, shares: []share{of("A", 2), of("B", 1)}, want: []int64{4, 2}},
		"K8 minima":                           {total: 6, shares: []share{of("A", 2).between(3, none), of("B", 1).between(3, none)}, want: []int64{3, 3}},
		"K8 one cluster":                      {total: 6, shares: []share{of("A", 2).between(3, none)}, want: []int64{6}},
		"R1 12":                               {total: 12, shares: []share{of("A", 3), of("B", 2), of("C", 1)}, want: []int64{6, 4, 2}},
		"R1 13":                               {total: 13, shares: []share{of("A", 3), of("B", 2), of("C", 1)}, want: []int64{7, 4, 2}},
		"R1 14":                               {total: 14, shares: []share{of("A", 3), of("B", 2), of("C", 1)}, want: []int64{7, 5, 2}},
		"R1 9 at 1:3":                         {total: 9, shares: []share{of("A", 1), of("B", 3)}, want: []int64{2, 7}},
		"R1 2 at 2:1":                         {total: 2, shares: []share{of("A", 2), of("B", 1)}, want: []int64{1, 1}},

		"minima for which there is not enough":               {total: 5, shares: []share{of("A", 1).between(4, none), of("B", 2).between(4, none)}, want: []int64{1, 4}},
		"a minimum comes before what runs elsewhere":         {total: 10, keep: never, shares: []share{of("A", 2).running(10), of("B", 1).between(4, none)}, want: []int64{6, 4}},
		"what is above a lowered maximum goes elsewhere":     {total: 25, keep: never, shares: []share{of("A", 1).between(0, 10).running(20), of("B", 1).running(10)}, want: []int64{10, 15}},
		"a weight that became 0 moves nothing":               {total: 20, keep: never, shares: []share{of("A", 0).running(10), of("B", 1).running(10)}, want: []int64{10, 10}},
		"nor does it in a scale-down":                        {total: 15, keep: never, shares: []share{of("A", 0).running(10), of("B", 1).running(10)}, want: []int64{5, 10}},
		"a cluster that no entry matches any more loses all": {total: 20, keep: never, shares: []share{of("A", 0).between(0, 0).running(10), of("B", 1).running(10)}, want: []int64{0, 20}},
		"growth alone is divided":                            {total: 24, keep: never, shares: []share{of("A", 1).running(2), of("B", 1).running(10)}, want: []int64{12, 12}},
		"without clusters":                                   {total: 3, want: []int64{}, left: 3},
		"nothing":                                            {total: 0, shares: []share{of("A", 1).between(2, none)}, want: []int64{0}},
	} {
		t.Run(id, func(t *testing.T) {
			for i := range test.shares {
				test.shares[i].tie = hashTie(test.shares[i].cluster, test.key)
			}
			assert.Equal(t, test.left, divideReplicas(test.total, test.shares, test.keep))
			assert.Equal(t, test.want, seatsOf(test.shares))
		})
	}
}

// randomShares are the clusters of a random fleet, and a total for them.
func randomShares(random *rand.Rand) (int64, []share) {
	shares := make([]share, 1+random.IntN(8))
	for i := range shares {
		shares[i] = of(fmt.Sprintf("member-%d", i), int64(random.IntN(5)))
		if random.IntN(3) == 0 {
			shares[i].lower = int64(random.IntN(8))
		}
		if random.IntN(3) == 0 {
			shares[i].upper = shares[i].lower + int64(random.IntN(12))
		}
		if random.IntN(2) == 0 {
			shares[i].current = int64(random.IntN(25))
		}
		shares[i].tie = hashTie(shares[i].cluster, "web/front")
	}
	return int64(random.IntN(80)), shares
}

func TestDivisionsOfRandomFleets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		total, shares := randomShares(random)
		keep := random.IntN(2) == 0
		said := fmt.Sprintf("total %d, keep %t, %+v", total, keep, shares)

		left := divideReplicas(total, shares, keep)
		checkDivision(t, said, total, shares, keep, left)

		again := slices.Clone(shares)
		random.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		require.Equal(t, left, divideReplicas(total, again, keep), said)
		slices.SortFunc(again, func(a, b share) int { return compareNames(a.cluster, b.cluster) })
		require.Equal(t, shares, again, "in another order: %s", said)

		for i := range again {
			again[i].current = again[i].seats
		}
		require.Equal(t, left, divideReplicas(total, again, keep), said)
		require.Equal(t, seatsOf(shares), seatsOf(again), "divided again, nothing moves: %s", said)
	}
}

func compareNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// checkDivision checks what every division promises.
func checkDivision(t *testing.T, said string, total int64, shares []share, keep bool, left int64) {
	t.Helper()
	given := int64(0)
	lower := int64(0)
	running := int64(0)
	for i := range shares {
		given += shares[i].seats
		lower += shares[i].lower
		running += shares[i].stays()
	}
	require.Equal(t, total, given+left, said)
	require.GreaterOrEqual(t, left, int64(0), said)
	for i := range shares {
		s := &shares[i]
		require.LessOrEqual(t, s.seats, s.upper, said)
		if lower <= total {
			require.GreaterOrEqual(t, s.seats, s.lower, said)
		}
		if keep && running <= total {
			require.GreaterOrEqual(t, s.seats, s.stays(), "nothing moves that runs: %s", said)
		}
		if keep && running > total {
			require.LessOrEqual(t, s.seats, s.stays(), "no cluster grows: %s", said)
			require.Zero(t, left, said)
		}
		if left > 0 && s.votes > 0 {
			require.Equal(t, s.upper, s.seats, "there is no room left: %s", said)
		}
		for j := range shares { // no replica is better placed elsewhere
			if other := &shares[j]; !keep && s.seats > s.lower && other.votes > 0 && other.seats < other.upper && lower <= total {
				require.GreaterOrEqual(t, s.votes*(2*other.seats+1), other.votes*(2*s.seats-1), said)
			}
		}
	}
}

func TestGivingManyAtOnceIsTheSameAsOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		total, shares := randomShares(random)
		for i := range shares {
			shares[i].votes *= int64(1 + random.IntN(250_000))
		}
		one := divisionOf(total, slices.Clone(shares))
		all := divisionOf(total, slices.Clone(shares))
		one.giveLowerBounds()
		one.giveByVotes()
		all.giveLowerBounds()
		all.giveAtOnce()
		rest := all.left
		all.giveByVotes()
		require.LessOrEqual(t, rest-all.left, int64(len(shares)+4), "what is left to give one by one is little: total %d, %+v", total, shares)
		require.Equal(t, one.left, all.left)
		for i := range one.shares {
			require.Equal(t, one.shares[i].seats, all.shares[i].seats, "total %d, %+v", total, shares)
		}
	}
}

func divisionOf(total int64, shares []share) *division {
	d := &division{left: total}
	for i := range shares {
		d.shares = append(d.shares, &seated{share: &shares[i], votes: shares[i].votes, lower: shares[i].lower, upper: min(max(shares[i].lower, shares[i].upper), total)})
	}
	return d
}

func TestTheLargestDivision(t *testing.T) {
	shares := make([]share, 5000)
	for i := range shares {
		shares[i] = of(fmt.Sprintf("member-%d", i), int64(1+i*200))
	}
	shares[0].votes = 1
	assert.Zero(t, divideReplicas(1<<31-1, shares, never))
	sum := int64(0)
	for i := range shares {
		sum += shares[i].seats
	}
	assert.EqualValues(t, 1<<31-1, sum)
}

func BenchmarkDivision(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	shares := make([]share, 5000)
	for i := range shares {
		shares[i] = of(fmt.Sprintf("member-%d", i), int64(1+random.IntN(1000)))
		shares[i].tie = hashTie(shares[i].cluster, "web/front")
	}
	for b.Loop() {
		divideReplicas(100_000, shares, always)
	}
}
