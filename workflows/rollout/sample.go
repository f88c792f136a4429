package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Sample is a share of clusters that is drawn.
type Sample struct {
	// Percent of the clusters, rounded down, at least one.
	Percent int
	// Seed decides which.
	Seed string
}

// DrawSamples returns by cluster the stage, by its place, that has drawn it. Clusters in an earlier stage are not drawn. Which clusters are
// drawn depends on seed and names alone, so that those which come or go change little.
func DrawSamples(stages []Stage, clusters []Member) map[string]int {
	drawn := map[string]int{}
	for i, stage := range stages {
		if stage.Sample == nil {
			continue
		}
		var from []string
		for _, c := range clusters {
			_, before := drawn[c.Name]
			if stage.Match(c.Labels) && !before && !slices.ContainsFunc(stages[:i], func(s Stage) bool { return s.Sample == nil && s.Match(c.Labels) }) {
				from = append(from, c.Name)
			}
		}
		slices.SortFunc(from, func(a, b string) int {
			return cmp.Or(cmp.Compare(stage.Sample.lotOf(a), stage.Sample.lotOf(b)), cmp.Compare(a, b))
		})
		for _, name := range from[:stage.Sample.size(len(from))] {
			drawn[name] = i
		}
	}
	return drawn
}

// takes reports whether a cluster is in the stage with this place, as far as selectors and samples say.
func (s *Stage) takes(c Member, place int, drawn map[string]int) bool {
	by, is := drawn[c.Name]
	switch {
	case !s.Match(c.Labels):
		return false
	case s.Sample != nil:
		return is && by == place
	}
	return !is || by > place
}

// size returns how many of so many clusters are drawn.
func (s *Sample) size(clusters int) int { return min(clusters, max(1, clusters*s.Percent/100)) }

// lotOf returns the lot of a cluster; the lowest are drawn.
func (s *Sample) lotOf(cluster string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.Seed + "/" + cluster)) // writing to a hash never fails
	return mix(hash.Sum64())
}

// mix spreads what a hash of short texts leaves alike over all bits: names that differ in their last digit would be drawn together.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
