// Package tree draws a tree of what is going on: a line a node, with marks, bars and times. It is pure.
package tree

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
)

// StateAbandoned is the state of what was deleted while the user watched it.
const StateAbandoned updaterun.Phase = "Abandoned"

// Node is a node of a tree. Printed for programs, it is nested the same way.
type Node struct {
	// Kind is run, placement, stage, cluster, object, gate, step or more.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// State is what it is at; lines begin with a mark for it.
	State updaterun.Phase `json:"state,omitempty"`
	// Detail is what else there is to say.
	Detail string `json:"detail,omitempty"`
	// Command ends what it waits for. It is made of names alone, which a shell takes as they are; empty if there is none.
	Command string `json:"command,omitempty"`
	// Count is how far the clusters below are.
	Count *updaterun.Counts `json:"count,omitempty"`
	// Start and End are when it began and ended. Due is when it ends by itself.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Due   time.Time `json:"due,omitzero"`
	// Children in their order.
	Children []Node `json:"children,omitempty"`
}

// Style is how to draw.
type Style struct {
	// Now is what times are relative to.
	Now time.Time
	// Width cuts lines; 0 does not.
	Width int
	// Colours says whether to use any.
	Colours bool
}

// marks stand for states.
var marks = map[updaterun.Phase]string{
	updaterun.PhaseSucceeded: "✓", updaterun.PhaseSkipped: "–", updaterun.PhaseFailed: "✗", StateAbandoned: "✗", updaterun.PhaseStuck: "!",
	updaterun.PhaseRunning: "▶", updaterun.PhaseWaiting: "◷", updaterun.PhaseStopping: "‖", updaterun.PhaseStopped: "‖",
}

// colours of states, as the numbers of terminals.
var colours = map[updaterun.Phase]string{
	updaterun.PhaseSucceeded: "32", updaterun.PhaseFailed: "31", StateAbandoned: "31", updaterun.PhaseStuck: "31",
	updaterun.PhaseRunning: "36", updaterun.PhaseWaiting: "33", updaterun.PhaseStopping: "33", updaterun.PhaseStopped: "33",
	updaterun.PhasePending: "2", updaterun.PhaseSkipped: "2",
}

const (
	pendingMark = "·"
	// barWidth is the length of a bar.
	barWidth = 20
)

// Lines draws a tree.
func Lines(root Node, style Style) []string {
	lines := []string{style.nodeLine("", root)}
	return append(lines, style.childLines("", root.Children)...)
}

func (s Style) childLines(indent string, nodes []Node) []string {
	var lines []string
	columns := nameWidths(nodes)
	for i, node := range nodes {
		branch := "├─ "
		deeper := "│  "
		if i == len(nodes)-1 {
			branch = "└─ "
			deeper = "   "
		}
		node.Name = padTo(node.Name, columns[node.Kind])
		lines = append(lines, s.nodeLine(indent+branch, node))
		lines = append(lines, s.childLines(indent+deeper, node.Children)...)
	}
	return lines
}

// maxColumn bounds the width names are brought to.
const maxColumn = 32

// nameWidths returns how wide the names of each kind are among siblings.
func nameWidths(nodes []Node) map[string]int {
	columns := map[string]int{}
	for _, node := range nodes {
		columns[node.Kind] = min(max(columns[node.Kind], utf8.RuneCountInString(node.Name)), maxColumn)
	}
	return columns
}

func padTo(text string, width int) string {
	if missing := width - utf8.RuneCountInString(text); missing > 0 {
		return text + strings.Repeat(" ", missing)
	}
	return text
}

func (s Style) nodeLine(indent string, node Node) string {
	parts := []string{node.Name}
	if node.State != "" && node.Kind != "object" {
		parts = append(parts, padTo(string(node.State), len(updaterun.PhaseSucceeded)))
	}
	if bar := s.progressBar(node); bar != "" {
		parts = append(parts, bar)
	}
	if times := s.describeTimes(node); times != "" {
		parts = append(parts, times)
	}
	if node.Detail != "" {
		parts = append(parts, node.Detail)
	}
	mark := cmp.Or(marks[node.State], pendingMark)
	text := strings.TrimRight(strings.Join(parts, "  "), " ")
	return s.fitLine(indent, mark, text, node.State)
}

// fitLine cuts a line to the width, in characters, and colours its mark.
func (s Style) fitLine(indent, mark, text string, state updaterun.Phase) string {
	used := utf8.RuneCountInString(indent) + utf8.RuneCountInString(mark) + 1
	text = Cut(Printable(strings.NewReplacer("\n", " ", "\t", " ").Replace(text)), s.Width-used, s.Width > 0)
	if colour := colours[state]; s.Colours && colour != "" {
		mark = "\x1b[" + colour + "m" + mark + "\x1b[0m"
	}
	return indent + mark + " " + text
}

// Cut cuts a text to a width, if it is to.
func Cut(text string, width int, yes bool) string {
	if !yes || utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// progressBar shows how much of something is over: of the clusters, or of a wait.
func (s Style) progressBar(node Node) string {
	if node.Count != nil && node.Count.Total > 0 {
		over := node.Count.Over()
		return fmt.Sprintf("%s %d/%d%s", Bar(float64(over)/float64(node.Count.Total)), over, node.Count.Total, describeCounts(*node.Count))
	}
	if waits := node.Due.Sub(node.Start); !node.Due.IsZero() && waits > 0 && node.End.IsZero() {
		return Bar(float64(s.Now.Sub(node.Start)) / float64(waits))
	}
	return ""
}

func describeCounts(count updaterun.Counts) string {
	text := ""
	for _, remark := range []struct {
		number int
		what   string
	}{{count.InFlight, "under way"}, {count.Failed, "failed"}, {count.Skipped, "skipped"}} {
		if remark.number > 0 {
			text += fmt.Sprintf(", %d %s", remark.number, remark.what)
		}
	}
	return text
}

// Bar returns a bar of which a share is full.
func Bar(share float64) string {
	full := int(share * barWidth)
	full = min(max(full, 0), barWidth)
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// describeTimes say how long something took, or has taken, and how long it will.
func (s Style) describeTimes(node Node) string {
	switch {
	case node.Start.IsZero():
		return ""
	case !node.End.IsZero() && node.End.Sub(node.Start) < time.Second:
		return "took under 1s"
	case !node.End.IsZero():
		return "took " + Elapsed(node.End.Sub(node.Start))
	case !node.Due.IsZero() && s.Now.Before(node.Due):
		return Elapsed(s.Now.Sub(node.Start)) + " over, " + Elapsed(node.Due.Sub(s.Now)) + " left"
	case !node.Due.IsZero():
		return "due"
	default:
		return "for " + Elapsed(s.Now.Sub(node.Start))
	}
}

// Wait writes a duration as strategies do: 1m, 1h30m.
func Wait(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if short, ok := strings.CutSuffix(text, zero); ok {
			text = short + zero[:1]
		}
	}
	return text
}

// Elapsed writes a duration as kubectl writes ages.
func Elapsed(d time.Duration) string { return duration.HumanDuration(max(d, 0)) }

// Plural writes a number of things: 1 cluster, 2 clusters.
func Plural(number int, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}
