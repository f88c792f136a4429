package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// limitFields are those of a limit, such as "<=" and "5"; its unit follows.
const limitFields = 2

// result is one figure of one run of the benches: a line of JSON, as test/bench writes it.
type result struct {
	// Figure says what was measured, and Target what it should be.
	Figure string `json:"figure"`
	Target string `json:"target"`
	// Value is what was measured, in Unit: "s", "MiB", "%", "x" and others; none for a plain number.
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Load is that of the machine in the minute before, as the kernel counts it.
	Load string `json:"load"`
	// Commit, Machine and Command say of what, where and how it was measured, Time when.
	Commit  string    `json:"commit"`
	Machine string    `json:"machine"`
	Command string    `json:"command"`
	Time    time.Time `json:"time"`
}

// readResults returns the results of a file, one a line.
func readResults(in io.Reader) ([]result, error) {
	var all []result
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d is no result: %w", n, err)
		}
		if r.Figure == "" {
			return nil, fmt.Errorf("line %d is no result: it has no figure", n)
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

// summary is what several measurements of one figure come to.
type summary struct {
	figure, target, unit  string
	rounds                int
	median, least, most   float64
	commit, command, load string
}

// summarize returns a summary of each figure, in the order in which the figures come first.
func summarize(all []result) []summary {
	var names []string
	measured := map[string][]result{}
	for _, r := range all {
		if measured[r.Figure] == nil {
			names = append(names, r.Figure)
		}
		measured[r.Figure] = append(measured[r.Figure], r)
	}
	summaries := make([]summary, 0, len(names))
	for _, name := range names {
		rounds := measured[name]
		last := rounds[len(rounds)-1]
		slices.SortFunc(rounds, func(a, b result) int { return cmp.Compare(a.Value, b.Value) })
		summaries = append(summaries, summary{
			figure: name, target: last.Target, unit: last.Unit, rounds: len(rounds),
			median: median(rounds), least: rounds[0].Value, most: rounds[len(rounds)-1].Value,
			commit: last.Commit, command: last.Command, load: last.Load,
		})
	}
	return summaries
}

// group is what was measured at one commit on one machine: what can be compared.
type group struct {
	commit, machine string
	results         []result
}

// groups returns the results by commit and machine, that with most results first. Of two with as many the one that comes first in
// the results is first.
func groups(all []result) []group {
	var found []group
	for _, r := range all {
		i := slices.IndexFunc(found, func(g group) bool { return g.commit == r.Commit && g.machine == r.Machine })
		if i < 0 {
			i = len(found)
			found = append(found, group{commit: r.Commit, machine: r.Machine})
		}
		found[i].results = append(found[i].results, r)
	}
	slices.SortStableFunc(found, func(a, b group) int { return cmp.Compare(len(b.results), len(a.results)) })
	return found
}

// days returns on which day or days a group was measured.
func (g group) days() string {
	first := g.results[0].Time
	last := first
	for _, r := range g.results {
		if r.Time.Before(first) {
			first = r.Time
		}
		if r.Time.After(last) {
			last = r.Time
		}
	}
	from := first.Format(time.DateOnly)
	if to := last.Format(time.DateOnly); from != to {
		return from + " to " + to
	}
	return from
}

// median expects results in the order of their values, and at least one.
func median(ordered []result) float64 {
	middle := len(ordered) / 2
	if len(ordered)%2 == 1 {
		return ordered[middle].Value
	}
	return (ordered[middle-1].Value + ordered[middle].Value) / 2
}

// amount prints a value with its unit, with three digits or all of a whole number.
func amount(value float64, unit string) string {
	digits := strconv.FormatFloat(value, 'f', decimals(value), 64)
	if unit == "" {
		return digits
	}
	return digits + " " + unit
}

func decimals(value float64) int {
	switch {
	case value == float64(int64(value)), value >= 100:
		return 0
	case value >= 10:
		return 1
	}
	return 2
}

// goal prints the target, with a mark if the median misses it.
func (s summary) goal() string {
	if s.misses() {
		return s.target + " **missed**"
	}
	return s.target
}

// misses reports whether the median is beyond the target. A target without an amount, or in another unit, is missed by nothing.
func (s summary) misses() bool {
	sign, most, found := s.limit()
	return found && (sign == "<=" && s.median > most || sign == "<" && s.median >= most)
}

// limit returns the amount of the target, and the sign before it, if the target has an amount in the unit of the figure.
func (s summary) limit() (sign string, most float64, found bool) {
	fields := strings.Fields(s.target)
	if len(fields) < limitFields || strings.Join(fields[limitFields:], " ") != s.unit {
		return "", 0, false
	}
	most, err := strconv.ParseFloat(fields[1], 64)
	return fields[0], most, err == nil
}

// used prints how many times the target the median is, "-" where there is none.
func (s summary) used() string {
	if _, most, found := s.limit(); found && most > 0 {
		return fmt.Sprintf("%.2f x", s.median/most)
	}
	return "-"
}

// spread prints the least and the most of a figure that was measured more than once.
func (s summary) spread() string {
	if s.rounds == 1 {
		return "once"
	}
	return fmt.Sprintf("%s to %s in %d", amount(s.least, ""), amount(s.most, ""), s.rounds)
}
