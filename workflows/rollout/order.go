package rollout

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Order is an order of clusters by their labels. The zero Order is the order of names.
type Order struct {
	// Weights add up for the clusters that match; the highest sum comes first.
	Weights []Weight
	// Labels are looked at one after the other if there are no Weights.
	Labels []OrderLabel
	// Scatter is the key of the label over whose values clusters of equal priority are spread;
	// empty spreads nothing.
	Scatter string
}

// Weight is added up for the clusters that match.
type Weight struct {
	Weight int
	Match  func(Member) bool
}

// OrderLabel orders clusters by the integer at the end of a label's value.
type OrderLabel struct {
	Key       string
	Ascending bool
}

// Sort returns the names of clusters in the order in which they are to be updated.
func (o Order) Sort(clusters []Member) []string {
	all := make([]orderedMember, len(clusters))
	rows := make([]*orderedMember, len(clusters))
	for i, c := range clusters {
		all[i] = orderedMember{name: c.Name, value: c.Labels[o.Scatter]}
		rows[i] = &all[i]
		rows[i].group, rows[i].rank = o.priorityOf(c)
	}
	slices.SortFunc(rows, func(a, b *orderedMember) int { return compareFirst(a.comparePriority(b), a.name, b.name) })
	if o.Scatter != "" {
		for start := 0; start < len(rows); {
			end := start + 1
			for end < len(rows) && rows[start].comparePriority(rows[end]) == 0 {
				end++
			}
			scatterByValue(rows[start:end])
			start = end
		}
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.name
	}
	return names
}

// orderedMember is a cluster with what its place follows from: the lower group first, in one group
// the higher rank.
type orderedMember struct {
	name  string
	group int
	rank  int64
	// value is that of the label by which clusters are scattered. Of so many clusters with it, the
	// cluster is the at-th.
	value  string
	at, of int64
}

func (a *orderedMember) comparePriority(b *orderedMember) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.rank, a.rank))
}

// priorityOf returns the place of a cluster before it is scattered.
func (o Order) priorityOf(c Member) (group int, rank int64) {
	for _, w := range o.Weights {
		if w.Match(c) {
			rank += int64(w.Weight)
		}
	}
	if len(o.Weights) > 0 {
		return 0, rank
	}
	for i, label := range o.Labels {
		value, has := c.Labels[label.Key]
		if !has {
			continue
		}
		rank = integerAtEnd(value)
		if label.Ascending {
			rank = -rank
		}
		return i, rank
	}
	return len(o.Labels), 0
}

// integerAtEnd returns the number that a label's value ends with; 0 if it ends with none, the highest
// there is if it is too large.
func integerAtEnd(value string) int64 {
	n, _ := strconv.ParseInt(value[len(strings.TrimRight(value, "0123456789")):], 10, 64) // what is no number is 0
	return n
}

// scatterByValue puts the i-th of n clusters with one value at (i + 0.5)/n, so that each value is spread
// over the whole. Clusters at the same place go by name.
func scatterByValue(rows []*orderedMember) {
	count := map[string]int64{}
	for i := range rows {
		rows[i].at = count[rows[i].value]
		count[rows[i].value]++
	}
	for i := range rows {
		rows[i].of = count[rows[i].value]
	}
	slices.SortFunc(rows, func(a, b *orderedMember) int {
		return compareFirst(cmp.Compare((2*a.at+1)*b.of, (2*b.at+1)*a.of), a.name, b.name)
	})
}

// compareFirst returns what a comparison says; if it makes no difference, names do.
func compareFirst(compared int, a, b string) int {
	if compared != 0 {
		return compared
	}
	return strings.Compare(a, b)
}
