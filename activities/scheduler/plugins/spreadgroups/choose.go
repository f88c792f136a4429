package spreadgroups

import (
	"cmp"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
)

// group are the clusters with one value of the label.
type group struct {
	name string
	// size is how many there are, stays how many of them must not be let go, placed how many have the placement from
	// an earlier policy.
	size, stays, placed int
	// taints is the sum of the scores by taints, score what ranks the group.
	taints, score int
}

func (g *group) addCandidate(candidate framework.Candidate) {
	g.size++
	g.placed += int(candidate.Score.Placed)
	g.taints += int(candidate.Score.Taints)
	if candidate.Stays {
		g.stays++
	}
}

// wanted is what the chosen groups have to have together.
type wanted struct {
	groups bounds
	// size is how many clusters they have, at least.
	size int
	// bounded says that groups may have to be left out; else all are chosen.
	bounded bool
}

// choose chooses groups; nil if there is no choice that has what is wanted. What stays is in it. What has the placement from an
// earlier policy is, too, unless there is no such choice.
func (w wanted) choose(all []*group) []*group {
	if len(all) < w.groups.least {
		return nil
	}
	if !w.bounded {
		if sumOf(all) < w.size {
			return nil
		}
		return all
	}
	ranked := slices.Clone(all)
	slices.SortFunc(ranked, func(a, b *group) int {
		return cmp.Or(cmp.Compare(min(b.stays, 1), min(a.stays, 1)), cmp.Compare(b.placed, a.placed), compareRank(a, b))
	})
	staying := 0
	held := 0
	for _, g := range ranked {
		if g.stays > 0 {
			staying++
		}
		if g.stays > 0 || g.placed > 0 {
			held++
		}
	}
	if staying > w.groups.most {
		return nil
	}
	if found := w.extend(ranked, min(held, w.groups.most)); found != nil {
		return found
	}
	return w.extend(ranked, staying)
}

// compareRank ranks the better group first.
func compareRank(a, b *group) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
}

func sumOf(groups []*group) int {
	size := 0
	for _, g := range groups {
		size += g.size
	}
	return size
}

// extend adds to the first of the groups, of which there are count, the best of the others, as far as more is wanted.
func (w wanted) extend(ranked []*group, count int) []*group {
	chosen := slices.Clone(ranked[:count])
	others := slices.Clone(ranked[count:])
	rest := wanted{groups: bounds{max(w.groups.least-count, 0), min(w.groups.most, len(ranked)) - count}, size: max(w.size-sumOf(chosen), 0)}
	if rest.groups.least == 0 && rest.size == 0 {
		return chosen
	}
	added := rest.search(others)
	if added == nil {
		return nil
	}
	slices.SortFunc(added, compareRank)
	for len(added) > rest.groups.least && sumOf(added[:len(added)-1]) >= rest.size {
		added = added[:len(added)-1]
	}
	return append(chosen, added...)
}

// partial is the best way to choose a number of groups with a number of clusters.
type partial struct {
	score, size int
	// names is greater for names that come first, of which the first counts most.
	names  int
	last   *group
	before *partial
}

// isBetter compares by score, then by clusters, then by names.
func (p partial) isBetter(other *partial) bool {
	return other == nil || cmp.Or(cmp.Compare(p.score, other.score), cmp.Compare(p.size, other.size), cmp.Compare(p.names, other.names)) > 0
}

// worthOfName is what the first of all names counts.
const worthOfName = 1 << 40

// search finds the best groups by dynamic programming: of all ways to choose a number of groups with a number of clusters, as far as
// these count, only the best can be part of the best choice. What has enough is not extended. The cost is that of the groups times the
// number of groups wanted, times the number of clusters wanted.
func (w wanted) search(groups []*group) []*group {
	groups = w.prune(groups)
	most := min(w.groups.most, len(groups))
	if most < 0 || most < w.groups.least {
		return nil
	}
	byName := slices.Clone(groups)
	slices.SortFunc(byName, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	ranks := make(map[*group]int, len(byName))
	for rank, g := range byName {
		ranks[g] = rank
	}
	best := make(partials, most+1)
	for k := range best {
		best[k] = make([]*partial, w.size+1)
	}
	best[0][0] = &partial{}
	for i, g := range groups {
		w.extendBy(g, worthOfName/(ranks[g]+1), best[:min(i+2, most+1)])
	}
	var found *partial
	for k := w.groups.least; k <= most; k++ {
		if final := best[k][w.size]; final != nil && final.isBetter(found) {
			found = final
		}
	}
	var chosen []*group
	for ; found != nil && found.last != nil; found = found.before {
		chosen = append(chosen, found.last)
	}
	return chosen
}

// partials are the best by the number of groups, and of clusters up to what is wanted.
type partials [][]*partial

// extendBy adds a group to all partials that have not enough.
func (w wanted) extendBy(g *group, worth int, best partials) {
	for k := len(best) - 2; k >= 0; k-- {
		for size, before := range best[k] {
			if before == nil || k >= w.groups.least && size >= w.size {
				continue
			}
			next := &best[k+1][min(size+g.size, w.size)]
			extended := partial{before.score + g.score, before.size + g.size, before.names + worth, g, before}
			if extended.isBetter(*next) {
				taken := extended // so that only what is taken is allocated
				*next = &taken
			}
		}
	}
}

// prune sorts the groups, the small ones first, and leaves out those that cannot be chosen: of groups that are alike except for
// their names, no more than may be chosen are of any use.
func (w wanted) prune(groups []*group) []*group {
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Or(cmp.Compare(a.size, b.size), compareRank(a, b)) })
	alike := 0
	var kept []*group
	for i, g := range groups {
		if alike++; i == 0 || groups[i-1].size != g.size || groups[i-1].score != g.score {
			alike = 1
		}
		if alike <= w.groups.most {
			kept = append(kept, g)
		}
	}
	return kept
}
