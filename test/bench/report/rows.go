package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// sizes is how many numbers the title of a figure may begin with: of runs, of clusters.
const sizes = 2

// row is a figure that matters. Its pattern may leave open how many runs, clusters or bindings there were: benches take as many as
// fit, and fewer where they are to be quick.
type row struct {
	// what names the row where nothing was measured.
	what    string
	pattern *regexp.Regexp
}

// rows are the ten figures that matter, in the order in which a page shows them.
var rows = []row{
	{"one run of 100 clusters, creating: p90", regexp.MustCompile(`^1 run\(s\) of 100 clusters, creating: p90$`)},
	{"one run of 100 clusters, creating: time against the ceiling", regexp.MustCompile(`^1 run\(s\) of 100 clusters, creating: time of all against the ceiling$`)},
	{"one run of 100 clusters, changing: time against the ceiling", regexp.MustCompile(`^1 run\(s\) of 100 clusters, changing: time of all against the ceiling$`)},
	{"runs at once, changing: p90", atOnce("changing: p90")},
	{"runs at once, creating: time against the ceiling", atOnce("creating: time of all against the ceiling")},
	{"runs at once, changing: time against the ceiling", atOnce("changing: time of all against the ceiling")},
	{"runs at once, changing: writes per cluster", atOnce("changing: writes per cluster")},
	{"restart under way: all move again", regexp.MustCompile(`^restart with (\d+) runs of (\d+) clusters under way: all of them move again$`)},
	{"restart at rest: ready", regexp.MustCompile(`^restart with (\d+) bindings at rest: ready$`)},
	{"restart at rest: memory of the hub agent", regexp.MustCompile(`^restart with (\d+) bindings at rest: memory of the hub agent$`)},
}

// atOnce matches a figure of two runs or more.
func atOnce(figure string) *regexp.Regexp {
	return regexp.MustCompile(`^([2-9]|[1-9]\d+) run\(s\) of (\d+) clusters, ` + regexp.QuoteMeta(figure) + `$`)
}

// numbers returns those that a pattern leaves open, up to the first word that it leaves open, if a figure matches it.
func numbers(pattern *regexp.Regexp, figure string) (found [sizes]int, matches bool) {
	parts := pattern.FindStringSubmatch(figure)
	if parts == nil {
		return found, false
	}
	for i, part := range parts[1:min(len(parts), 1+sizes)] {
		n, err := strconv.Atoi(part)
		if err != nil {
			break // a word, or more digits than any fleet has
		}
		found[i] = n
	}
	return found, true
}

// chosen is a row with what was measured of it.
type chosen struct {
	row

	measured *summary
}

// choose returns the figure of each row, the largest where several match. A row that nothing was measured of has none.
func choose(measured []summary) []chosen {
	all := make([]chosen, 0, len(rows))
	for _, r := range rows {
		c := chosen{row: r}
		var largest [sizes]int
		for i := range measured {
			size, matches := numbers(r.pattern, measured[i].figure)
			if matches && (c.measured == nil || slices.Compare(size[:], largest[:]) > 0) {
				c.measured = &measured[i]
				largest = size
			}
		}
		all = append(all, c)
	}
	return all
}

// reference is what KubeFleet takes for the same: measured beside ours on two cores with simulated members, or published for a large
// set-up in its performance report of 2026-04-07. The page says more about both.
type reference struct {
	// text says both; seconds is the measured one, 0 where there is only a published one.
	text    string
	seconds float64
}

const (
	oneRun     = 96.5
	twentyRuns = 323
	// publishedRestart is how many seconds KubeFleet publishes for a restart with publishedBindings.
	publishedRestart  = 675
	publishedBindings = 100_000
)

// beside has it by figure.
var beside = map[string]reference{
	"1 run(s) of 100 clusters, creating: p90":     {"96.5 s measured, 96 s published", oneRun},
	"1 run(s) of 100 clusters, changing: p90":     {"96.5 s measured, 96 s published", oneRun},
	"20 run(s) of 100 clusters, creating: p90":    {"323 s measured", twentyRuns},
	"20 run(s) of 100 clusters, changing: p90":    {"323 s measured", twentyRuns},
	"100 run(s) of 100 clusters, creating: p90":   {"135 s published", 0},
	"restart with 10000 bindings at rest: ready":  {"675 s published, with 100,000 bindings", 0},
	"restart with 100000 bindings at rest: ready": {"675 s published", 0},
}

// faster prints how many times as long KubeFleet takes, "-" where that was not measured.
func (s summary) faster() string {
	if r := beside[s.figure]; r.seconds > 0 && s.unit == "s" && s.median > 0 {
		return fmt.Sprintf("%.1f x", r.seconds/s.median)
	}
	return "-"
}

// matters returns the table of the rows that matter, in Markdown.
func matters(measured []summary) string {
	var b strings.Builder
	b.WriteString("| figure | target | median | of the target | KubeFleet | takes |\n|---|---|---|---|---|---|\n")
	for _, c := range choose(measured) {
		if c.measured == nil {
			fmt.Fprintf(&b, "| %s | - | not measured at this commit | - | - | - |\n", c.what)
			continue
		}
		s := c.measured
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			s.figure, s.goal(), amount(s.median, s.unit), s.used(), cmp.Or(beside[s.figure].text, "-"), s.faster())
	}
	return b.String()
}

// errMissed is returned only where it was asked for.
var errMissed = errors.New("a target is missed")

// quick prints the rows that matter with their ratios, and which target is missed. Strict makes a missed target an error.
func quick(out io.Writer, all []result, strict bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tTARGET\tMEASURED\tOF THE TARGET\tKUBEFLEET TAKES\tLOAD")
	var missed, absent []string
	for _, c := range choose(summarize(all)) {
		if c.measured == nil {
			fmt.Fprintf(w, "%s\t-\tnot measured\t-\t-\t-\n", c.what)
			absent = append(absent, c.what)
			continue
		}
		s := c.measured
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.figure, s.target, amount(s.median, s.unit), s.used(), s.faster(), s.load)
		if s.misses() {
			missed = append(missed, fmt.Sprintf("%s: %s, target %s", s.figure, amount(s.median, s.unit), s.target))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the figures: %w", err)
	}
	fmt.Fprintln(out)
	for _, what := range missed {
		fmt.Fprintln(out, "MISSED", what)
	}
	for _, what := range absent {
		fmt.Fprintln(out, "NOT MEASURED", what)
	}
	if len(missed)+len(absent) == 0 {
		fmt.Fprintln(out, "no target is missed")
	}
	if strict && len(missed)+len(absent) > 0 {
		return errMissed
	}
	return nil
}
