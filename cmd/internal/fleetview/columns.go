package fleetview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Column is a column of rows of one kind. One entry in a table below brings it to all places that it names.
type Column[R any] struct {
	// Name is its heading in the tables of the plugin, Page that in the lists of the dashboard, File that in files that the dashboard
	// writes. A place whose heading is empty does not show the column.
	Name, Page, File string
	// Wide columns need wide tables.
	Wide bool
	// Spare gives columns up on a terminal that is too narrow: 1 goes first, 0 stays.
	Spare int
	// Text writes a cell as text, and Cell as pages show it. One of the two may be left out.
	Text func(R) string
	Cell func(R) Cell
	// Compare sorts rows by the column; without it, what its cells show does.
	Compare func(a, b R) int
}

// Cell is a cell of a page.
type Cell struct {
	Text string
	// Path is where the text links to; Button makes it look like one.
	Path   string
	Button bool
	// State, At, Words and Comment are shown in the forms of pages: a mark, a time, a word after the other, a quotation.
	State   updaterun.Phase
	At      *time.Time
	Words   []string
	Comment string
	// Bad stands out behind the text, Detail does the opposite.
	Bad, Detail string
}

// TextOf writes the cell of a row as text.
func (c Column[R]) TextOf(row R) string {
	if c.Text != nil {
		return c.Text(row)
	}
	return c.Cell(row).Text
}

// CellOf writes the cell of a row for a page.
func (c Column[R]) CellOf(row R) Cell {
	if c.Cell != nil {
		return c.Cell(row)
	}
	return Cell{Text: c.Text(row)}
}

// CellsOf writes the headings and the cells of rows for a page.
func CellsOf[R any](columns []Column[R], rows []R) (headings []string, cells [][]Cell) {
	cells = make([][]Cell, len(rows))
	for _, column := range columns {
		if column.Page == "" {
			continue
		}
		headings = append(headings, column.Page)
		for i, row := range rows {
			cells[i] = append(cells[i], column.CellOf(row))
		}
	}
	return headings, cells
}

// Heartbeat names the column that changes with every heartbeat, which is no change to report.
const Heartbeat = "Heartbeat"

// MemberColumns are those of members.
var MemberColumns = []Column[Member]{
	{Name: "Name", Page: "Cluster", Cell: func(m Member) Cell { return Cell{Text: m.Name, Path: "/clusters/" + m.Name} }},
	{Name: "Joined", Page: "Joined", Text: func(m Member) string { return m.Joined }},
	{Name: "Healthy", Page: "Healthy", Text: func(m Member) string { return m.Healthy }},
	{
		Name: Heartbeat, Page: "Heartbeat",
		Text:    func(m Member) string { return m.Heartbeat + latenessWord(m, " !") },
		Cell:    func(m Member) Cell { return Cell{Text: m.Heartbeat, Bad: latenessWord(m, "late")} },
		Compare: func(a, b Member) int { return b.heard.Compare(a.heard) }, // by age, as it is shown
	},
	{Name: "Nodes", Page: "Nodes", Spare: 2, Text: func(m Member) string { return m.Nodes }},
	{
		Name: "CPU", Page: "CPU", Spare: 4, Text: func(m Member) string { return m.CPU },
		Compare: func(a, b Member) int { return compareQuantities(a.CPU, b.CPU) },
	},
	{
		Name: "Memory", Page: "Memory", Spare: 3, Text: func(m Member) string { return m.Memory },
		Compare: func(a, b Member) int { return compareQuantities(a.Memory, b.Memory) },
	},
	{Name: "Age", Spare: 1, Text: func(m Member) string { return m.Age }},
	{Name: "Version", Wide: true, Text: func(m Member) string { return m.Version }},
	{
		Name: "Taints", Page: "Taints", Wide: true,
		Text: func(m Member) string { return strings.Join(m.Taints, ",") }, Cell: func(m Member) Cell { return Cell{Words: m.Taints} },
	},
}

// latenessWord returns a word for a member that is late.
func latenessWord(m Member, word string) string {
	if m.Late {
		return word
	}
	return ""
}

// PlacementColumns are those of placements.
var PlacementColumns = []Column[Placement]{
	{Name: "Name", Page: "Placement", Text: Placement.Qualified, Cell: func(p Placement) Cell { return linkTo(p.Ref) }},
	{Page: "State", Cell: func(p Placement) Cell { return Cell{State: p.Phase} }},
	{Name: "Policy", Page: "Policy", Spare: 2, Text: func(p Placement) string { return p.Policy }},
	{Name: "Selected", Spare: 4, Text: func(p Placement) string { return p.Selected }},
	{Name: "Applied", Spare: 3, Text: func(p Placement) string { return p.Applied }},
	{Name: "Available", Page: "Available", Text: func(p Placement) string { return p.Available }},
	{Name: "Rollout", Page: "Rollout", Cell: func(p Placement) Cell { return Cell{Text: p.Rollout, Detail: p.Message} }},
	{Name: "Age", Spare: 1, Text: func(p Placement) string { return p.Age }},
	{Name: "Snapshot", Page: "Snapshot", Wide: true, Text: func(p Placement) string { return p.Snapshot }},
	{Name: "Resources", Wide: true, Text: func(p Placement) string { return p.Resources }},
	{Name: "Message", Wide: true, Text: func(p Placement) string { return p.Message }},
}

// linkTo links to the page of an object.
func linkTo(ref hub.Ref) Cell { return Cell{Text: ref.String(), Path: ref.Path()} }

// RunColumns are those of staged update runs. What a run waits for is what people watch it for.
var RunColumns = []Column[Run]{
	{Name: "Name", Page: "Run", Text: Run.Qualified, Cell: func(r Run) Cell { return linkTo(r.Ref) }},
	{Page: "State", Cell: func(r Run) Cell { return Cell{State: r.Phase, Detail: withPrefix("waits for ", r.WaitingFor)} }},
	{Name: "Placement", Page: "Placement", Spare: 3, Text: func(r Run) string { return r.Placement }},
	{Name: "Snapshot", Page: "Snapshot", Spare: 2, Text: func(r Run) string { return r.Snapshot }},
	{Name: "State", Text: func(r Run) string { return r.State }},
	{Name: "Stage", Page: "Stage", Spare: 5, Text: func(r Run) string { return r.Stage }},
	{Name: "Clusters", Page: "Clusters", Spare: 4, Text: func(r Run) string { return r.Progress }},
	{Name: "Waiting For", Text: func(r Run) string { return r.WaitingFor }},
	{
		Name: "Age", Spare: 1, Page: "Created",
		Text: func(r Run) string { return r.Age }, Cell: func(r Run) Cell { return Cell{At: &r.Created} },
	},
	{Name: "Strategy", Wide: true, Text: func(r Run) string { return r.Strategy }},
	{Name: "Message", Wide: true, Text: func(r Run) string { return r.Message }},
}

func withPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// HoldColumns are those of holds.
var HoldColumns = []Column[Hold]{
	{Name: "Name", Page: "Hold", Text: func(h Hold) string { return h.Name }},
	{Name: "Holds", Page: "Covers", Text: func(h Hold) string { return h.Covers }},
	{Name: "State", Page: "State", Text: func(h Hold) string { return h.State }},
	{Name: "Runs", Text: func(h Hold) string { return fmt.Sprint(h.HeldRuns) }},
	{Name: "Placements", Text: func(h Hold) string { return fmt.Sprint(h.HeldPlacements) }},
	{Name: "In Flight", Text: func(h Hold) string { return fmt.Sprint(h.Flying) }},
	{Page: "Waiting", Text: func(h Hold) string {
		return fmt.Sprintf("%d runs, %d placements; %d under way", h.HeldRuns, h.HeldPlacements, h.Flying)
	}},
	{
		Name: "Expires", Page: "Expires",
		Text: func(h Hold) string { return formatTime(h.Expires) }, Cell: func(h Hold) Cell { return Cell{At: &h.Expires} },
	},
	{Name: "Message", Page: "Message", Text: func(h Hold) string { return h.Message }},
}

// formatTime writes a time for programs, and none as nothing.
func formatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// ExemptionColumns are those of exemptions.
var ExemptionColumns = []Column[Exemption]{
	{Name: "Name", Text: func(e Exemption) string { return e.Name }},
	{Name: "Lets Go", Text: func(e Exemption) string { return e.Target }},
	{Name: "Despite", Text: func(e Exemption) string { return e.From }},
	{Name: "By", Text: func(e Exemption) string { return e.By }},
	{Name: "State", Text: func(e Exemption) string { return e.State }},
	{Name: "Expires", Text: func(e Exemption) string { return formatTime(e.Expires) }},
	{Name: "Message", Text: func(e Exemption) string { return e.Message }},
	{Name: "Ticket", Text: func(e Exemption) string { return e.Ticket }},
}

// StrategyColumns are those of strategies of staged update runs.
var StrategyColumns = []Column[Strategy]{
	{Name: "Name", Text: func(s Strategy) string { return s.Name }},
	{Name: "Stages", Text: func(s Strategy) string { return strings.Join(s.Stages, ", ") }},
	{Name: "Age", Text: func(s Strategy) string { return s.Age }},
	{Name: "Selects", Wide: true, Text: func(s Strategy) string { return strings.Join(s.Selects, "; ") }},
}

// OverrideColumns are those of overrides.
var OverrideColumns = []Column[Override]{
	{Name: "Name", Text: func(o Override) string { return o.Name }},
	{Name: "Changes", Text: func(o Override) string { return strings.Join(o.Changes, ", ") }},
	{Name: "Placement", Text: func(o Override) string { return o.Placement }},
	{Name: "State", Text: func(o Override) string { return o.State }},
	{Name: "Age", Text: func(o Override) string { return o.Age }},
	{Name: "Rules", Wide: true, Text: func(o Override) string { return fmt.Sprint(o.Rules) }},
	{Name: "Message", Wide: true, Text: func(o Override) string { return o.Message }},
}

// EvictionColumns are those of evictions.
var EvictionColumns = []Column[Eviction]{
	{Name: "Name", Text: func(e Eviction) string { return e.Name }},
	{Name: "Placement", Text: func(e Eviction) string { return e.Placement }},
	{Name: "Cluster", Text: func(e Eviction) string { return e.Cluster }},
	{Name: "State", Text: func(e Eviction) string { return e.State }},
	{Name: "Age", Text: func(e Eviction) string { return e.Age }},
	{Name: "Message", Text: func(e Eviction) string { return e.Message }},
}

// ApprovalColumns are those of approval requests.
var ApprovalColumns = []Column[Approval]{
	{Name: "Name", Text: func(a Approval) string { return a.Name }},
	{Name: "Run", Text: func(a Approval) string { return a.Run }},
	{Name: "Stage", Text: func(a Approval) string { return a.Stage }},
	{Name: "Placement", Text: func(a Approval) string { return a.Placement }},
	{Name: "State", Text: func(a Approval) string { return a.State }},
	{Name: "Waits", Text: func(a Approval) string { return a.Age }},
	{Name: "Comment", Wide: true, Text: func(a Approval) string { return a.Comment }},
}

// ReplicaColumns are those of the shares of clusters in divided workloads.
var ReplicaColumns = []Column[hub.ReplicaShare]{
	{Name: "Workload", Text: func(s hub.ReplicaShare) string { return s.Workload }},
	{Name: "Cluster", Text: func(s hub.ReplicaShare) string { return s.Cluster }},
	{Name: "Wanted", Text: func(s hub.ReplicaShare) string {
		if s.Dropped {
			return fmt.Sprintf("%d (dropped)", s.Wanted)
		}
		return fmt.Sprint(s.Wanted)
	}},
	{Name: "In Force", Text: func(s hub.ReplicaShare) string { return formatCount(s.InForce) }},
	{Name: "Ready", Text: func(s hub.ReplicaShare) string { return formatCount(s.Ready) }},
	{Name: "Completions", Wide: true, Text: func(s hub.ReplicaShare) string { return formatCount(s.Completions) }},
	{Name: "Reason", Wide: true, Text: func(s hub.ReplicaShare) string { return s.Reason }},
}

// formatCount writes a number, and none as nothing.
func formatCount(number *int32) string {
	if number == nil {
		return ""
	}
	return strconv.Itoa(int(*number))
}

// HistoryColumns returns those of a history, as of a time.
func HistoryColumns(now time.Time) []Column[Entry] {
	return append([]Column[Entry]{
		{
			Name: "When", Page: "When", File: "at", Text: func(e Entry) string { return e.At.UTC().Format(time.RFC3339) },
			Cell: func(e Entry) Cell { return Cell{At: &e.At} },
		},
		{Name: "Age", Text: func(e Entry) string { return tree.Elapsed(now.Sub(e.At)) }},
	}, EntryColumns...)
}

// EntryColumns are those of a history that no clock changes.
var EntryColumns = []Column[Entry]{
	{Name: "What", Page: "What", File: "what", Text: func(e Entry) string { return e.What }},
	{Name: "Name", Page: "Name", File: "name", Text: func(e Entry) string { return e.Name }},
	{Name: "Happened", Page: "Happened", File: "happened", Text: func(e Entry) string { return e.Text }},
	{Name: "By", Page: "By", Text: senderText, Cell: func(e Entry) Cell { return Cell{Text: e.Sender(), Comment: e.Comment} }},
	{File: "by", Text: func(e Entry) string { return e.By }},
	{File: "channel", Text: func(e Entry) string { return string(e.Channel) }},
	{File: "verified", Text: func(e Entry) string { return strconv.FormatBool(e.Verified) }},
	{Name: "Comment", File: "comment", Wide: true, Text: func(e Entry) string { return e.Comment }},
	{Name: "Plan", Wide: true, Text: func(e Entry) string { return e.PlanHash }},
}

// senderText returns who did it; what was said stands for users whom the hub has not recorded.
func senderText(e Entry) string {
	if e.By == "" && e.Channel == "" && e.Comment != "" {
		return fmt.Sprintf("%q", e.Comment)
	}
	return e.Sender()
}

// AnswerColumns are those of what explains a decision of the scheduler.
var AnswerColumns = []Column[Answer]{
	{Name: "Cluster", Text: func(a Answer) string { return a.Cluster }},
	{Name: "Selected", Text: func(a Answer) string {
		if a.Selected {
			return "yes"
		}
		return "no"
	}},
	{Name: "Binding", Wide: true, Text: func(a Answer) string { return a.Binding }},
	{Name: "Score", Wide: true, Text: func(a Answer) string {
		if a.Score == nil {
			return ""
		}
		return a.Score.String()
	}},
	{Name: "Rank", Wide: true, Text: func(a Answer) string {
		if a.Rank == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d", a.Rank, a.InLine)
	}},
	{Name: "Reason", Text: func(a Answer) string { return a.Reason }},
}
