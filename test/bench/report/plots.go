package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// drawing says what one plot shows, without how it is drawn.
type drawing struct {
	// file is its name without a folder, title stands above it.
	file, title string
	x, y        axis
	series      []series
	// limits are lines across the plot.
	limits []limit
	// absent says why there is nothing to draw, and how it is measured.
	absent string
}

// axis has a label, and the categories that stand at 0, 1 and so on if it counts nothing.
type axis struct {
	label      string
	logarithm  bool
	categories []string
}

// series are points that belong together. Those of another commit or machine than the page's, or of others' reports, are hollow.
type series struct {
	name   string
	colour int
	hollow bool
	line   bool
	// below has the labels below the points, where others are above.
	below  bool
	points []point
}

type point struct {
	x, y  float64
	label string
}

type limit struct {
	at   float64
	name string
}

// colours of what is drawn, as places in the palette.
const (
	ours = iota
	bare
	theirs
	further
)

var (
	runsAtOnce = regexp.MustCompile(`^(\d+) run\(s\) of (\d+) clusters, (creating|changing): (p90|all over|memory of the hub agent|time of all against the ceiling|CPU time of everything against the ceiling)$`)
	atRest     = regexp.MustCompile(`^restart with (\d+) bindings at rest: (ready|memory of the hub agent|memory of the hub's API server|a placement that is created as soon as it is ready is scheduled)$`)
	grown      = regexp.MustCompile(`^growth, (\d+) clusters, (one run|a rolling update|idle|a restart): (.+)$`)
	bareClient = regexp.MustCompile(`^the ceiling, \d+ writes of a bare client per cluster: time a cluster$`)
)

const (
	// milliseconds are those of a second.
	milliseconds = 1000
	// hundred is how many clusters the runs have that are compared with KubeFleet's.
	hundred = 100
)

// drawings returns the five plots of a page. The first group is the page's own, whose points are filled.
func drawings(found []group) []drawing {
	return []drawing{against(found), growth(found), restarts(found), memory(found), many(found)}
}

// ran is a figure of runs, taken apart.
type ran struct {
	summary

	runs, clusters int
	kind, what     string
}

func (r ran) title() string {
	if r.runs == 1 {
		return fmt.Sprintf("1 run, %s", r.kind)
	}
	return fmt.Sprintf("%d runs at once, %s", r.runs, r.kind)
}

// runsOf returns the figures of runs, few runs first and creating before changing.
func runsOf(g group, what ...string) []ran {
	var all []ran
	for _, s := range summarize(g.results) {
		parts := runsAtOnce.FindStringSubmatch(s.figure)
		size, matches := numbers(runsAtOnce, s.figure)
		if matches && slices.Contains(what, parts[4]) {
			all = append(all, ran{summary: s, runs: size[0], clusters: size[1], kind: parts[3], what: parts[4]})
		}
	}
	slices.SortStableFunc(all, func(a, b ran) int {
		return cmp.Or(cmp.Compare(a.runs, b.runs), cmp.Compare(b.kind, a.kind), cmp.Compare(a.clusters, b.clusters))
	})
	return all
}

// against shows how long runs take beside a bare client and beside KubeFleet.
func against(found []group) drawing {
	d := drawing{
		file: "figures-against", title: "Time of staged runs of 100 clusters: a bare client, fleetflow, KubeFleet",
		x: axis{label: "seconds, nine of ten runs", logarithm: true},
	}
	client := series{name: "bare client, the same writes", colour: bare, below: true}
	product := series{name: "fleetflow", colour: ours}
	reference := series{name: "KubeFleet, measured beside it", colour: theirs}
	measured := found[0]
	for _, r := range slices.Backward(runsOf(measured, "p90")) {
		if r.clusters != hundred || r.unit != "s" {
			continue
		}
		at := float64(len(d.y.categories))
		d.y.categories = append(d.y.categories, r.title())
		product.points = append(product.points, point{r.median, at, amount(r.median, "s")})
		if took := ceilingOf(measured, r); took > 0 {
			client.points = append(client.points, point{took, at, amount(took, "s")})
		}
		if took := beside[r.figure].seconds; took > 0 {
			reference.points = append(reference.points, point{took, at, amount(took, "s")})
		}
	}
	return d.with(`make bench TESTFLAGS='-run "TestStagedOne$|TestStagedTwenty$"'`, client, product, reference)
}

// ceilingOf is how many seconds a bare client needs for the writes of some runs, 0 if that was not measured. It is measured before each
// scale, so the last one before a figure among the results is the one of that figure.
func ceilingOf(g group, r ran) float64 {
	var last *result
	var measured []result
	for i, one := range g.results {
		switch {
		case bareClient.MatchString(one.Figure) && one.Unit == "ms":
			last = &g.results[i]
		case one.Figure == r.figure && last != nil:
			measured = append(measured, *last)
		}
	}
	if len(measured) == 0 {
		return 0
	}
	return summarize(measured)[0].median * float64(r.runs*r.clusters) / milliseconds
}

// growth shows what a cluster costs in fleets of different sizes.
func growth(found []group) drawing {
	d := drawing{
		file: "figures-growth", title: "Growth: time of one staged run and one rolling update, per cluster",
		x: axis{label: "clusters", logarithm: true}, y: axis{label: "milliseconds a cluster"},
	}
	var all []series
	for i, g := range found {
		run := mark(series{name: "one run, creating", colour: ours, line: true}, found, i)
		for _, r := range runsOf(g, "p90", "all over") {
			if r.runs == 1 && r.kind == "creating" && r.unit == "s" {
				run.points = append(run.points, perCluster(r.clusters, r.median*milliseconds/float64(r.clusters)))
			}
		}
		update := mark(series{name: "rolling update", colour: bare, line: true, below: true}, found, i)
		for _, s := range summarize(g.results) {
			parts := grown.FindStringSubmatch(s.figure)
			size, matches := numbers(grown, s.figure)
			if !matches || parts[3] != "time a cluster" || s.unit != "ms" {
				continue
			}
			switch parts[2] {
			case "one run":
				run.points = replacePoint(run.points, perCluster(size[0], s.median))
			case "a rolling update":
				update.points = append(update.points, perCluster(size[0], s.median))
			}
		}
		all = append(all, run, update)
	}
	return d.with(`make bench TESTFLAGS='-run "TestGrowth$"'`, all...)
}

func perCluster(clusters int, took float64) point {
	return point{float64(clusters), took, amount(took, "ms")}
}

// replacePoint adds a point, in the place of one that stands at the same x.
func replacePoint(points []point, p point) []point {
	return append(slices.DeleteFunc(points, func(other point) bool { return other.x == p.x }), p)
}

// restarts shows how soon a hub agent works again.
func restarts(found []group) drawing {
	d := drawing{
		file: "figures-restart", title: "Restart of the hub agent, everything at rest: time after it was killed",
		x: axis{label: "bindings", logarithm: true}, y: axis{label: "seconds", logarithm: true},
	}
	var all []series
	for i, g := range found {
		ready := mark(series{name: "ready", colour: ours, line: true, below: true}, found, i)
		ready.points = restPoints(g, "ready", "s")
		placed := mark(series{name: "a new placement is scheduled", colour: bare, line: true}, found, i)
		placed.points = restPoints(g, "a placement that is created as soon as it is ready is scheduled", "s")
		all = append(all, ready, placed)
	}
	d = d.with(`make bench TESTFLAGS='-run "TestRestart$|TestRestartThousands$"'`, all...)
	if d.absent == "" {
		d.series = append(d.series, series{name: "KubeFleet, published for larger machines", colour: theirs, hollow: true, points: []point{
			{publishedBindings, publishedRestart, amount(publishedRestart, "s")},
		}})
	}
	return d
}

// restPoints are the points of a figure of restarts by the number of bindings.
func restPoints(g group, what, unit string) []point {
	var points []point
	for _, s := range summarize(g.results) {
		parts := atRest.FindStringSubmatch(s.figure)
		size, matches := numbers(atRest, s.figure)
		if matches && parts[2] == what && s.unit == unit {
			points = append(points, point{float64(size[0]), s.median, amount(s.median, unit)})
		}
	}
	return points
}

// memory shows what the hub agent and the API server take by the number of bindings.
func memory(found []group) drawing {
	d := drawing{
		file: "figures-memory", title: "Memory by bindings: hub agent and API server",
		x: axis{label: "bindings", logarithm: true}, y: axis{label: "MiB", logarithm: true},
	}
	var all []series
	for i, g := range found {
		busy := mark(series{name: "hub agent, the most within runs", colour: bare}, found, i)
		for _, r := range runsOf(g, "memory of the hub agent") {
			if r.kind == "creating" && r.unit == "MiB" {
				busy.points = append(busy.points, point{float64(r.runs * r.clusters), r.median, amount(r.median, "MiB")})
			}
		}
		rest := mark(series{name: "hub agent, after a restart", colour: ours, line: true, below: true}, found, i)
		rest.points = restPoints(g, "memory of the hub agent", "MiB")
		server := mark(series{name: "API server, after a restart", colour: further, line: true}, found, i)
		server.points = restPoints(g, "memory of the hub's API server", "MiB")
		all = append(all, busy, rest, server)
	}
	return d.with(`make bench TESTFLAGS='-run "TestStaged|TestRestart"'`, all...)
}

// many shows how far from the ceiling runs are that go at once.
func many(found []group) drawing {
	d := drawing{
		file: "figures-many", title: "Many runs at once: how many times what a bare client needs",
		x: axis{label: "times what a bare client needs for the same writes"}, limits: []limit{{1, "the ceiling"}},
	}
	took := series{name: "time", colour: ours}
	busy := series{name: "CPU time of everything", colour: bare, below: true}
	measured := runsOf(found[0], "time of all against the ceiling", "CPU time of everything against the ceiling")
	for _, r := range slices.Backward(measured) {
		if r.clusters != hundred || r.unit != "x" {
			continue
		}
		at := slices.Index(d.y.categories, r.title())
		if at < 0 {
			at = len(d.y.categories)
			d.y.categories = append(d.y.categories, r.title())
		}
		p := point{r.median, float64(at), amount(r.median, "x")}
		if r.what == "time of all against the ceiling" {
			took.points = append(took.points, p)
		} else {
			busy.points = append(busy.points, p)
		}
	}
	return d.with(`make bench TESTFLAGS='-run "TestStagedOne$|TestStagedTwenty$|TestStagedHundred$"'`, took, busy)
}

// mark makes the series of another group than the page's own hollow, and has its name say of which commit it is.
func mark(s series, found []group, i int) series {
	if i == 0 {
		return s
	}
	s.hollow = true
	s.name += ", commit " + found[i].commit
	if found[i].machine != found[0].machine {
		s.name += " on another machine"
	}
	return s
}

// with adds the series that have points, in the order of x where they are lines. If there is none, the drawing says what measures it.
func (d drawing) with(command string, all ...series) drawing {
	for _, s := range all {
		if len(s.points) == 0 {
			continue
		}
		if s.line {
			slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
		}
		d.series = append(d.series, s)
	}
	if len(d.series) == 0 {
		d.absent = "nothing of it is among the results; `" + command + "` measures it"
	}
	return d
}

// text says in words what a drawing shows, for those who do not see it.
func (d drawing) text() string {
	var b strings.Builder
	b.WriteString(d.title)
	for i, s := range d.series {
		b.WriteString(map[bool]string{true: ". ", false: "; "}[i == 0] + s.name + ":")
		for j, p := range s.points {
			where := amount(p.x, d.x.label)
			if d.y.categories != nil {
				where = d.y.categories[int(p.y)]
			}
			b.WriteString(map[bool]string{true: " ", false: ", "}[j == 0] + where + " " + p.label)
		}
	}
	return b.String() + "."
}
