package picture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// breadth is how many units a line of time is long.
const breadth = 1000

// Timeline is a run over time: what was, what is, and what is to come at the earliest.
type Timeline struct {
	// Start and End are those of the axis.
	Start, End time.Time
	// Marks are what is written at it, each at the left of what it begins, and Lines where those are that are drawn.
	Marks []time.Time
	Lines []int
	// Now is where on the axis it is now; -1 if the run is over.
	Now  int
	Rows []Row
	// Ends is when the run has ended, or ends at the earliest; zero if that is not known, and Unsure says why. Without either, nothing but
	// its clusters keeps it from ending.
	Ends   time.Time
	Over   bool
	Unsure string
}

// Row is the line of a stage.
type Row struct {
	ID, Title string
	Phase     updaterun.Phase
	Bars      []Bar
	// Text says what is drawn.
	Text string
}

// Bar is a span of time on a line.
type Bar struct {
	// Kind is clusters, gate, soak or held, and Planned says that it is to come.
	Kind    string
	Planned bool
	X, W    int
	Text    string
}

// Bars are the kinds of bars, with their words.
var Bars = map[string]string{"clusters": "clusters are updated", "gate": "waits, or is measured", "soak": "soaks", "held": "held"}

// span is a bar before the axis is known.
type span struct {
	kind, text string
	// planned is to come, and goesOn has not ended.
	planned, goesOn bool
	from, to        time.Time
}

// Held is why a run stands still, and since when.
type Held struct {
	Since time.Time
	Text  string
}

// TimelineOf draws a run over time. Ahead is its plan, with what is still to come; held is what it stands still for, if it does.
func TimelineOf(run updaterun.State, created, ended time.Time, ahead plan.Plan, held *Held, now time.Time) Timeline {
	t := Timeline{Now: -1, Over: run.Phase.Over()}
	until := now
	if t.Over && !ended.IsZero() {
		until = ended
		t.Ends = ended
	}
	rows := make([][]span, len(run.Stages))
	for i, stage := range run.Stages {
		rows[i] = spansOf(stage, until)
		if !t.Over && i < len(ahead.Stages) && !stage.Deletion {
			rows[i] = append(rows[i], spansAhead(stage, ahead.Stages[i])...)
		}
	}
	if !t.Over {
		t.Ends, t.Unsure = endOf(run, ahead)
		if !t.Ends.After(now) {
			t.Ends = time.Time{}
		}
	}
	last := latest(until, t.Ends, rows)
	if !t.Over {
		last = last.Add(last.Sub(created) / breadth) // so that the line of now is on the axis, not at its end
	}
	t.setAxis(created, last)
	for _, tick := range t.Marks[1:] {
		t.Lines = append(t.Lines, t.at(tick))
	}
	if !t.Over {
		t.Now = t.at(now) / blink * blink
	}
	for i, stage := range run.Stages {
		t.Rows = append(t.Rows, t.row(fmt.Sprintf("line%d", i), stage.Title(), stage.Phase, rows[i]))
	}
	if held != nil && !t.Over {
		t.Rows = append(t.Rows, t.row("lineheld", "Stands still", updaterun.PhaseWaiting, []span{{kind: "held", text: held.Text, goesOn: true, from: held.Since, to: until}}))
	}
	return t
}

// latest returns the last of some instants and of the ends of spans.
func latest(one, other time.Time, rows [][]span) time.Time {
	last := one
	if other.After(last) {
		last = other
	}
	for _, spans := range rows {
		for _, of := range spans {
			if of.to.After(last) {
				last = of.to
			}
		}
	}
	return last
}

// endOf returns when a run ends at the earliest by its plan, or why time alone does not tell.
func endOf(run updaterun.State, ahead plan.Plan) (ends time.Time, unsure string) {
	if len(ahead.Stages) == 0 {
		return time.Time{}, "it has no plan that can be seen"
	}
	for i, stage := range ahead.Stages {
		if i < len(run.Stages) && run.Stages[i].Phase.Over() {
			continue
		}
		if stage.Earliest.Ends.IsZero() {
			for _, opening := range stage.Openings {
				if opening.Opens == nil {
					return time.Time{}, fmt.Sprintf("time alone does not open stage %s: %s", stage.Name, opening.For)
				}
			}
			if len(ahead.Notes) > 0 {
				return time.Time{}, ahead.Notes[0]
			}
			return time.Time{}, "what is before stage " + stage.Name + " does not end by time alone"
		}
		ends = stage.Earliest.Ends
	}
	return ends, ""
}

// spansOf returns what has happened, and happens, in a stage up to an instant.
func spansOf(stage updaterun.Stage, until time.Time) []span {
	var spans []span
	add := func(kind, text string, from, to time.Time) {
		if from.IsZero() {
			return
		}
		goesOn := to.IsZero()
		if goesOn {
			to = until
		}
		spans = append(spans, span{kind: kind, text: text, goesOn: goesOn, from: from, to: to})
	}
	for _, task := range stage.Before {
		add("gate", task.Title, task.WaitsSince, task.DoneAt)
	}
	add("clusters", stage.Sentence(), stage.Started, updatedAt(stage))
	for _, task := range stage.During {
		add("gate", task.Title, task.Begun, task.DoneAt)
	}
	for _, task := range stage.After {
		addAfter(task, add)
	}
	return spans
}

// addAfter adds what a stage waits for after its clusters. A soak that is not over is drawn to its end: that is known.
func addAfter(task stagetask.State, add func(kind, text string, from, to time.Time)) {
	if !task.Timed {
		add("gate", task.Title, task.WaitsSince, task.DoneAt)
		return
	}
	to := task.DoneAt
	if to.IsZero() {
		to = task.Due
	}
	add("soak", task.Title+" "+tree.Wait(task.Duration), task.WaitsSince, to)
}

// updatedAt returns when the last cluster of a stage was updated; zero while that is not so.
func updatedAt(stage updaterun.Stage) time.Time {
	if !stage.Passed() {
		return time.Time{}
	}
	last := time.Time{}
	for i := range stage.Clusters {
		if stage.Clusters[i].Ended.After(last) {
			last = stage.Clusters[i].Ended
		}
	}
	if last.Before(stage.Started) {
		return stage.Ended
	}
	return last
}

// spansAhead returns what is to come of a stage, as the plan has it.
func spansAhead(stage updaterun.Stage, ahead plan.Stage) []span {
	e := ahead.Earliest
	var spans []span
	add := func(kind, text string, from, to time.Time) {
		if to.After(from) {
			spans = append(spans, span{kind: kind, text: text, planned: true, from: from, to: to})
		}
	}
	if e.Begins.IsZero() || stage.Phase.Over() {
		return nil
	}
	for _, opening := range ahead.Openings {
		if opening.Opens != nil {
			add("held", opening.For, e.Begins, *opening.Opens)
		}
	}
	if !stage.Passed() {
		add("soak", "soak at the earliest", e.Opened, e.Ends)
	}
	return spans
}

// steps are what the axis is divided by.
var steps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// maxTicks is how many parts an axis has at most.
const maxTicks = 6

// setAxis takes in two instants, from and to whole steps: so the axis stays the same for a while, and with it all that is drawn.
func (t *Timeline) setAxis(from, to time.Time) {
	length := max(to.Sub(from), time.Second)
	step := steps[len(steps)-1]
	for _, one := range steps {
		if length <= (maxTicks-2)*one {
			step = one
			break
		}
	}
	for step*maxTicks < length {
		step *= 2
	}
	t.Start = from.Truncate(step)
	for t.End = t.Start; t.End.Before(to) || len(t.Marks) == 0; t.End = t.End.Add(step) {
		t.Marks = append(t.Marks, t.End)
	}
}

// at returns where on the axis an instant is. What is outside of it is at its ends.
func (t *Timeline) at(instant time.Time) int {
	whole := t.End.Sub(t.Start)
	return min(max(int(float64(instant.Sub(t.Start))/float64(whole)*breadth), 0), breadth)
}

// blink is how far what goes on has to go until it is drawn anew.
const blink = 5

// thin is how long what is short is drawn, so that it can be seen.
const thin = 4

func (t *Timeline) row(id, title string, phase updaterun.Phase, spans []span) Row {
	row := Row{ID: id, Title: title, Phase: phase}
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var texts []string
	for _, one := range spans {
		bar := Bar{Kind: one.kind, Planned: one.planned, X: t.at(one.from), Text: one.sentence()}
		end := t.at(one.to)
		if one.goesOn && t.Now >= 0 {
			end = t.Now
		}
		bar.W = max(end-bar.X, thin)
		bar.X = min(bar.X, breadth-bar.W)
		row.Bars = append(row.Bars, bar)
		texts = append(texts, bar.Text)
	}
	row.Text = title + ": " + strings.ToLower(string(phase))
	if len(texts) > 0 {
		row.Text += "; " + strings.Join(texts, "; ")
	}
	return row
}

// sentence says what a span is, for as long as it is that.
func (s span) sentence() string {
	if s.goesOn {
		return fmt.Sprintf("%s, since %s", s.text, clock(s.from))
	}
	if s.planned {
		return fmt.Sprintf("%s, from %s to %s at the earliest", s.text, clock(s.from), clock(s.to))
	}
	return fmt.Sprintf("%s, from %s to %s", s.text, clock(s.from), clock(s.to))
}

func clock(at time.Time) string { return at.UTC().Format("Jan 2 15:04:05 UTC") }
