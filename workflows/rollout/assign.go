package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Stage is what assigning clusters to a stage needs to know of it.
type Stage struct {
	Name string
	// Match says whether a cluster with these labels belongs to the stage.
	Match func(labels map[string]string) bool
	// Sample has the stage take only some of these; nil if it takes all.
	Sample *Sample
	// SortingLabelKey names the label whose integer value orders the clusters;
	// empty orders them by name.
	SortingLabelKey string
	// Order orders them in place of SortingLabelKey, if it is there.
	Order *Order
}

// Member is a cluster to be assigned.
type Member struct {
	Name   string
	Labels map[string]string
}

// AssignStages returns, for each stage, the names of its clusters in update
// order: that of the stage's Order or, without one, ascending by the sorting
// label's integer, those without the label last, ties by name. Every cluster must be in exactly one stage; the errors'
// texts are those that users of the API know (those of KubeFleet). Drawn is what DrawSamples has returned for all clusters that are selected.
func AssignStages(stages []Stage, clusters []Member, drawn map[string]int) ([][]string, error) {
	assigned := make(map[string]string, len(clusters))
	out := make([][]string, len(stages))
	for i, stage := range stages {
		var members []Member
		for _, c := range clusters {
			if !stage.takes(c, i, drawn) {
				continue
			}
			if other, twice := assigned[c.Name]; twice {
				return nil, fmt.Errorf("cluster `%s` appears in more than one stages: its labels match those of `%s` and of `%s`, narrow the labelSelector of one", c.Name, other, stage.Name)
			}
			assigned[c.Name] = stage.Name
			members = append(members, c)
		}
		if stage.Order != nil {
			out[i] = stage.Order.Sort(members)
			continue
		}
		names, err := sortMembers(members, stage.SortingLabelKey)
		if err != nil {
			return nil, err
		}
		out[i] = names
	}
	var left []string
	for _, c := range clusters {
		if _, ok := assigned[c.Name]; !ok {
			left = append(left, c.Name)
		}
	}
	sort.Strings(left)
	return out, UnassignedError(left)
}

// shownUnassigned bounds the names in the message about clusters in no stage.
const shownUnassigned = 10

// UnassignedError says that clusters are in no stage; nil if there are none.
func UnassignedError(left []string) error {
	if len(left) == 0 {
		return nil
	}
	shown := left[:min(len(left), shownUnassigned)]
	return fmt.Errorf("some clusters are not placed in any stage, total %d, showing up to %d: %s",
		len(left), shownUnassigned, strings.Join(shown, ", "))
}

func sortMembers(members []Member, key string) ([]string, error) {
	type ranked struct {
		name  string
		has   bool
		value int
	}
	rows := make([]ranked, 0, len(members))
	for _, m := range members {
		row := ranked{name: m.Name}
		if value, ok := m.Labels[key]; ok && key != "" {
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("the sorting label `%s:%s` on cluster `%s` is not valid: it must be an integer", key, value, m.Name)
			}
			row.has = true
			row.value = n
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b ranked) int {
		switch {
		case a.has != b.has && a.has:
			return -1
		case a.has != b.has:
			return 1
		case a.has && a.value != b.value:
			return cmp.Compare(a.value, b.value)
		}
		return strings.Compare(a.name, b.name)
	})
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	return names, nil
}

// Concurrency resolves a stage's maxConcurrency, a number or a percentage of
// its clusters: percentages are rounded down, and at least one cluster goes.
func Concurrency(value string, clusters int) (int, error) {
	percent, isPercent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(percent)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("maxConcurrency %q is neither a positive number nor a percentage", value)
	}
	if isPercent {
		n = n * clusters / 100
	}
	return max(n, 1), nil
}

// Window returns the indexes of clusters to start now, in order: those that
// were not started, while fewer than maxConcurrency are started and not done.
// A cluster at position p therefore starts only if p < done + maxConcurrency.
func Window(started, done []bool, maxConcurrency int) []int {
	inFlight := 0
	for i := range started {
		if started[i] && !done[i] {
			inFlight++
		}
	}
	var next []int
	for i := range started {
		if inFlight >= maxConcurrency {
			break
		}
		if started[i] || done[i] {
			continue
		}
		next = append(next, i)
		inFlight++
	}
	return next
}
