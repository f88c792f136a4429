package picture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// farthest is how far ahead of now a line of time goes: what ends later, as a hold may that is to last until it is released, is drawn open.
const farthest = 10 * 365 * 24 * time.Hour

// breadth is how many units a line of time is long.
const breadth = 1000

// Timeline is a run over time: what was, what is, and what is to come at the earliest.
type Timeline struct {
	// Start and End are those of the axis.
	Start, End time.Time
	// Marks are what is written at it, each at the left of what it begins, and Lines where those are that are drawn.
	Marks []time.Time
	Lines []int
	// Scale is how marks are written so that each is another: clock, day or date.
	Scale string
	// Now is where on the axis it is now; -1 if the run is over.
	Now  int
	Rows []Row
	// Ends is when the run has ended, or ends at the earliest; zero if that is not known. Unsure says why time and its clusters alone do
	// not end it. Without either, nothing but its clusters keeps it from ending.
	Ends   time.Time
	Over   bool
	Unsure string
	// Open says that something ends later than what is drawn.
	Open bool
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

// HeldBy returns what a run stands still for by its condition; nil if it does not.
func HeldBy(held *metav1.Condition) *Held {
	if held == nil || held.Status != metav1.ConditionTrue {
		return nil
	}
	return &Held{Since: held.LastTransitionTime.Time, Text: held.Message}
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
	t.setEnd(run, ahead, held, now)
	last := t.latest(until, rows)
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

// setEnd says when a run that is not over ends, as far as that is known.
func (t *Timeline) setEnd(run updaterun.State, ahead plan.Plan, held *Held, now time.Time) {
	if t.Over {
		return
	}
	t.Ends, t.Unsure = endOf(run, ahead)
	if !t.Ends.After(now) {
		t.Ends = time.Time{}
	}
	if t.Unsure == "" && t.Ends.IsZero() && held != nil {
		t.Unsure = "it stands still: " + held.Text
	}
}

// latest returns up to when there is something to draw, and notes whether there is more.
func (t *Timeline) latest(until time.Time, rows [][]span) time.Time {
	last := until
	if t.Ends.After(last) {
		last = t.Ends
	}
	for _, spans := range rows {
		for _, of := range spans {
			if of.to.After(last) {
				last = of.to
			}
		}
	}
	if limit := until.Add(farthest); last.After(limit) {
		t.Open = true
		return limit
	}
	return last
}

// endOf returns when a run ends at the earliest by its plan, and why time and its clusters alone do not end it, if that is so.
func endOf(run updaterun.State, ahead plan.Plan) (ends time.Time, unsure string) {
	if why := standsStill(run); why != "" {
		return time.Time{}, why
	}
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
	return ends, untimed(run)
}

// standsStill says why a run does not go on until a user does something; empty if it does go on.
func standsStill(run updaterun.State) string {
	switch run.Phase {
	case updaterun.PhaseStopping, updaterun.PhaseStopped:
		return "it is stopped, and goes on once a user resumes it"
	case updaterun.PhaseInitialized:
		return "it is not started, and begins once a user resumes it"
	case updaterun.PhaseStuck:
		return "it is stuck: " + run.Why
	case updaterun.PhaseDeleting:
		return "it is being deleted"
	}
	return ""
}

// untimed says how the first task of a run ends that is not done and does not end by time; empty if there is none.
func untimed(run updaterun.State) string {
	for _, stage := range run.Stages {
		if stage.Phase.Over() {
			continue
		}
		for _, task := range stage.Tasks() {
			switch {
			case task.Timed || task.Done():
			case task.Approvable:
				return fmt.Sprintf("the %s of stage %s ends when a user approves", task.Title, stage.Title())
			default:
				return fmt.Sprintf("the %s of stage %s ends by what it finds", task.Title, stage.Title())
			}
		}
	}
	return ""
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
	for step < length/maxTicks+1 {
		step *= 2 // it stays below half of what a Duration holds
	}
	t.Scale = "clock"
	switch {
	case step >= 28*24*time.Hour:
		t.Scale = "date"
	case step >= 12*time.Hour:
		t.Scale = "day"
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
		if one.to.After(t.End) {
			bar.Text += ", which is later than what is drawn"
		}
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
		return fmt.Sprintf("%s, since %s", s.text, s.from.UTC().Format(sameYear))
	}
	layout := sameYear
	if s.from.UTC().Year() != s.to.UTC().Year() {
		layout = anyYear
	}
	text := fmt.Sprintf("%s, from %s to %s", s.text, s.from.UTC().Format(layout), s.to.UTC().Format(layout))
	if s.planned {
		text += " at the earliest"
	}
	return text
}

// sameYear is how instants of one year are written, and anyYear is how others are.
const sameYear, anyYear = "Jan 2 15:04:05 UTC", "Jan 2 2006 15:04:05 UTC"
