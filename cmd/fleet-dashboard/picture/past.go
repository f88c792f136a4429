package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// maxLanes is how many placements have a lane: those that something has happened to last.
const maxLanes = 30

// Past is what has happened in a fleet over time: a lane for the fleet, one for its clusters, and one for each placement.
type Past struct {
	// Start and End are those of the axis; the others are as those of a line of time.
	Start, End time.Time
	Marks      []time.Time
	Lines      []string
	Scale      string
	// Until is where on the axis what is told ends.
	Until string
	Lanes []Lane
	// More is how many placements are not drawn.
	More int
}

// Shapes are what is drawn, for a legend.
func (Past) Shapes() []Shape { return Shapes }

// Lane is what has happened to one of them.
type Lane struct {
	ID, Title, Path string
	// Stretches are its runs, and Spots what has happened at an instant.
	Stretches []Stretch
	Spots     []Spot
	// Text says what is drawn.
	Text string
}

// Stretch is a run on the axis.
type Stretch struct {
	X, W  string
	Phase updaterun.Phase
	Text  string
}

// Spot is one or more happenings of a kind that are too near to be drawn apart.
type Spot struct {
	// X and Y are where it is: what happens in a run is on its stretch, all else below.
	X    string
	Y    int
	Kind string
	Text string

	at    int
	texts []string
}

// Shape is how a kind of happening is drawn, around the point where it is.
type Shape struct{ Kind, Word, Path string }

// Shapes are all of them: each is another shape, not only another colour.
var Shapes = []Shape{
	{"bad", "gone wrong", "M-5 -5l10 10m0 -10l-10 10"},
	{"run", "run", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"},
	{"snapshot", "snapshot or policy", "M0 -6l6 6l-6 6l-6 -6z"},
	{"approval", "approval", "M-5 0l4 4l6 -8"},
	{"hold", "hold", "M-4 -5h3v10h-3zM1 -5h3v10h-3z"},
	{"exception", "exemption or eviction", "M0 -5l6 10h-12z"},
	{"cluster", "cluster or placement", "M-4 -4h8v8h-8z"},
}

// kinds are the shapes of happenings by what they are about.
var kinds = map[string]string{
	"placement": "cluster", "member": "cluster", "policy": "snapshot", "snapshot": "snapshot", "run": "run", "rehearsal": "run", "approval": "approval",
	"hold": "hold", "exemption": "exception", "eviction": "exception",
}

// KindOf returns the shape of a happening.
func KindOf(h fleetview.Happening) string {
	if h.Bad {
		return Shapes[0].Kind
	}
	return cmp.Or(kinds[h.What], "run")
}

// Ran is a run that was under way in a period.
type Ran struct {
	Run, Of hub.Ref
	Phase   updaterun.Phase
	// Ended is zero if it is not over.
	Began, Ended time.Time
}

// Chosen returns the runs that a user wants to see.
func Chosen(ran []Ran, choice fleetview.Choice) []Ran {
	if choice.By != "" || choice.What != "" && choice.What != "run" {
		return nil
	}
	text := strings.ToLower(choice.Text)
	return slices.DeleteFunc(slices.Clone(ran), func(r Ran) bool {
		return !strings.Contains(strings.ToLower(r.Run.String()+" "+r.Of.String()), text)
	})
}

// AxisOf returns what of the past is drawn of a period: whole steps that take it in.
func AxisOf(from, until time.Time) Past {
	axis := Timeline{}
	axis.setAxis(from, until)
	p := Past{Start: axis.Start, End: axis.End, Marks: axis.Marks, Scale: axis.Scale}
	for _, tick := range p.Marks[1:] {
		p.Lines = append(p.Lines, percent(axis.at(tick)))
	}
	p.Until = percent(axis.at(until))
	return p
}

// percent writes where on an axis something is.
func percent(at int) string { return fmt.Sprintf("%.1f%%", float64(at)*100/breadth) } //nolint:mnd // of a hundred

// Draw draws what has happened, the latest first, and the runs of that time.
func (p Past) Draw(all []fleetview.Happening, ran []Ran, until time.Time) Past {
	axis := Timeline{Start: p.Start, End: p.End}
	lanes := map[hub.Ref]*Lane{}
	var order []hub.Ref
	laneOf := func(of hub.Ref) *Lane {
		if of.Kind == hub.KindMember {
			of = hub.Ref{Kind: hub.KindMember} // all clusters are on one lane
		}
		if lanes[of] == nil {
			lanes[of] = newLane(of)
			order = append(order, of)
		}
		return lanes[of]
	}
	for _, h := range all {
		laneOf(h.Of).addHappening(axis.at(h.At), KindOf(h), h.Text, h)
	}
	for _, one := range ran {
		lane := laneOf(one.Of)
		ended := one.Ended
		if ended.IsZero() {
			ended = until
		}
		from := axis.at(one.Began)
		width := max(axis.at(ended)-from, thin)
		lane.Stretches = append(lane.Stretches, Stretch{percent(min(from, breadth-width)), percent(width), one.Phase, one.Run.String() + ": " + strings.ToLower(string(one.Phase))})
	}
	slices.SortStableFunc(order, func(a, b hub.Ref) int { return rankOf(a) - rankOf(b) })
	p.More = max(0, len(order)-maxLanes)
	order = order[:len(order)-p.More]
	// A lane stays where it is when something happens.
	slices.SortStableFunc(order, func(a, b hub.Ref) int { return cmp.Or(rankOf(a)-rankOf(b), cmp.Compare(a.String(), b.String())) })
	for _, of := range order {
		lane := lanes[of]
		lane.ID = "lane-" + fleetview.Digest(of.String())
		lane.writeTexts()
		p.Lanes = append(p.Lanes, *lane)
	}
	return p
}

func newLane(of hub.Ref) *Lane {
	switch of.Kind {
	case "":
		return &Lane{Title: "The fleet", Path: "/holds"}
	case hub.KindMember:
		return &Lane{Title: "Clusters", Path: "/clusters"}
	}
	return &Lane{Title: of.Qualified(), Path: of.Path()}
}

// rankOf sorts lanes: that of the fleet and that of the clusters come before those of placements.
func rankOf(of hub.Ref) int {
	switch of.Kind {
	case "":
		return 0
	case hub.KindMember:
		return 1
	}
	return 2 //nolint:mnd // after the others
}

const (
	// near is up to how far apart two spots of a kind are one.
	near = 8
	// maxTold is how many happenings a spot tells.
	maxTold = 3
)

// addHappening adds a happening, which is not later than those before it.
func (l *Lane) addHappening(at int, kind, text string, h fleetview.Happening) {
	text = fmt.Sprintf("%s %s %s: %s", h.At.UTC().Format(sameYear), h.What, h.Name, text)
	for i := len(l.Spots) - 1; i >= 0 && l.Spots[i].at-at <= near; i-- {
		if l.Spots[i].Kind == kind {
			l.Spots[i].texts = append(l.Spots[i].texts, text)
			return
		}
	}
	l.Spots = append(l.Spots, Spot{X: percent(at), Y: heightOf(kind), Kind: kind, at: at, texts: []string{text}})
}

// heightOf returns how far below the top of its lane a kind of happening is drawn.
func heightOf(kind string) int {
	const onStretch, belowStretch = 8, 24
	if kind == "run" {
		return onStretch
	}
	return belowStretch
}

// writeTexts writes the texts of a lane.
func (l *Lane) writeTexts() {
	counts := map[string]int{}
	for i := range l.Spots {
		spot := &l.Spots[i]
		counts[spot.Kind] += len(spot.texts)
		spot.Text = strings.Join(spot.texts[:min(len(spot.texts), maxTold)], "\n")
		if more := len(spot.texts) - maxTold; more > 0 {
			spot.Text += fmt.Sprintf("\nand %d more", more)
		}
	}
	var parts []string
	for _, shape := range Shapes {
		if number := counts[shape.Kind]; number > 0 {
			parts = append(parts, fmt.Sprintf("%d × %s", number, shape.Word))
		}
	}
	if len(l.Stretches) > 0 {
		parts = append(parts, tree.Plural(len(l.Stretches), "run")+" under way")
	}
	l.Text = l.Title + ": " + strings.Join(parts, ", ")
}
