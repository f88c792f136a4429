package spreadgroups

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// of makes a group as the examples write it: a name, how many clusters it has, its score.
func of(name string, size, score int) *group { return &group{name: name, size: size, score: score} }

func stays(g *group) *group {
	g.stays = g.size
	return g
}

func placed(g *group) *group {
	g.placed = g.size
	return g
}

// between bounds the number of groups.
func between(least, most, size int) wanted {
	return wanted{groups: bounds{least, most}, size: size, bounded: true}
}

func namesOf(groups []*group) []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	slices.Sort(names)
	return names
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted wanted
		groups []*group
		want   []string
	}{
		"R8": {
			between(1, 3, 6), []*group{of("R1", 1, 60), of("R2", 1, 50), of("R3", 1, 40), of("R4", 3, 30), of("R5", 3, 20), of("R6", 3, 10)}, []string{"R1", "R4", "R5"},
		},
		"R9": {
			between(2, 6, 5), []*group{of("R1", 1, 80), of("R2", 4, 40), of("R3", 1, 30), of("R4", 3, 30), of("R5", 3, 20), of("R6", 5, 10)}, []string{"R1", "R2"},
		},
		"R10, two groups": {
			between(1, 2, 5), []*group{of("R1", 1, 60), of("R2", 2, 50), of("R3", 3, 40), of("R4", 4, 30)}, []string{"R1", "R4"},
		},
		"R10, three groups": {
			between(1, 3, 10), []*group{of("R1", 1, 80), of("R3", 1, 80), of("R2", 1, 60), of("R5", 2, 60), of("R4", 5, 50), of("R6", 3, 50)}, []string{"R4", "R5", "R6"},
		},
		"too few groups":                   {between(3, 4, 0), []*group{of("a", 5, 1), of("b", 5, 1)}, nil},
		"too few clusters":                 {between(1, 2, 4), []*group{of("a", 1, 9), of("b", 2, 1), of("c", 1, 1)}, nil},
		"no more groups than are needed":   {between(1, 3, 1), []*group{of("a", 1, 1), of("b", 2, 3), of("c", 1, 2)}, []string{"b"}},
		"of equal groups the first names":  {between(2, 2, 0), []*group{of("c", 1, 1), of("a", 1, 1), of("b", 1, 1)}, []string{"a", "b"}},
		"what stays is chosen":             {between(1, 2, 3), []*group{stays(of("a", 1, 1)), of("b", 1, 9), of("c", 2, 5)}, []string{"a", "c"}},
		"what is placed comes first":       {between(1, 2, 0), []*group{placed(of("a", 1, 1)), of("b", 1, 9), placed(of("c", 1, 1))}, []string{"a", "c"}},
		"unless that does not do":          {between(1, 2, 10), []*group{placed(of("a", 1, 1)), of("b", 5, 9), of("c", 5, 1), placed(of("d", 1, 1))}, []string{"b", "c"}},
		"of too many that are placed most": {between(1, 1, 0), []*group{placed(of("a", 1, 9)), placed(of("b", 2, 1))}, []string{"b"}},
		"more stay than there may be":      {between(1, 1, 0), []*group{stays(of("a", 1, 1)), stays(of("b", 1, 1))}, nil},
		"without a limit all":              {wanted{groups: bounds{2, math.MaxInt}}, []*group{of("a", 1, 1), of("b", 1, 1), of("c", 1, 1)}, []string{"a", "b", "c"}},
		"all have to be enough":            {wanted{groups: bounds{2, math.MaxInt}, size: 4}, []*group{of("a", 1, 1), of("b", 1, 1), of("c", 1, 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, namesOf(tc.wanted.choose(tc.groups)))
		})
	}
}

// exhaustively looks at all sets of groups: is there one that has what is wanted?
func exhaustively(w wanted, groups []*group) bool {
	for set := range 1 << len(groups) {
		count := 0
		size := 0
		staying := true
		for i, g := range groups {
			if set>>i&1 == 1 {
				count = count + 1
				size = size + g.size
			} else if g.stays > 0 {
				staying = false
			}
		}
		if staying && count >= w.groups.least && count <= w.groups.most && size >= w.size {
			return true
		}
	}
	return false
}

func TestWhateverTheGroupsAChoiceIsFoundIfThereIsOneAndKeepsTheBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20_000 {
		var groups []*group
		for i := range random.IntN(8) {
			g := of(fmt.Sprint("g", i), 1+random.IntN(4), random.IntN(4))
			switch random.IntN(8) {
			case 0:
				stays(g)
			case 1:
				placed(g)
			}
			groups = append(groups, g)
		}
		least := 1 + random.IntN(3)
		w := between(least, least+random.IntN(3), random.IntN(12))
		chosen := w.choose(groups)
		names := namesOf(chosen)
		require.Equal(t, exhaustively(w, groups), chosen != nil, "round %d", round)
		random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		require.Equal(t, names, namesOf(w.choose(groups)), "round %d: the order of groups matters", round)
		if chosen == nil {
			continue
		}
		require.GreaterOrEqual(t, len(chosen), w.groups.least, "round %d", round)
		require.LessOrEqual(t, len(chosen), w.groups.most, "round %d", round)
		require.GreaterOrEqual(t, sumOf(chosen), w.size, "round %d", round)
		for _, g := range groups {
			require.True(t, g.stays == 0 || slices.Contains(names, g.name), "round %d: %s stays", round, g.name)
		}
	}
}
