package picture

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

const (
	// maxPlaces is up to how many clusters a map shows each; of more it shows those that stand out, and counts the others.
	maxPlaces = 300
	// placesOfGroup is how many of those it shows of each group.
	placesOfGroup = 20
	// maxGroups is how many groups a map has: those of the rarest values are one.
	maxGroups = 40
)

// Member is a cluster with what goes on there.
type Member struct {
	fleetview.Member
	// Placements is how many it has, -1 if not all of them are seen, and Changing are the runs that change it now.
	Placements int
	Changing   []string
}

// Map is a fleet by a label.
type Map struct {
	// By is the label, and Labels are those that it can be.
	By     string
	Labels []string
	Groups []Group
	// Total is how many clusters there are.
	Total int
}

// Group is the clusters with one value of the label.
type Group struct {
	ID, Name string
	// Path shows it alone; empty for one that cannot be.
	Path   string
	Total  int
	Counts []Count
	Places []Place
	// More is how many are not shown each.
	More int

	members []Member
}

// Count is how many clusters are in a state, with how that is drawn.
type Count struct {
	Word   string
	Phase  updaterun.Phase
	Number int
}

// Place is a cluster on a map.
type Place struct {
	ID string
	Member
	Word  string
	Phase updaterun.Phase
}

// healths are the states of members that stand out, most first, with the states of clusters in runs that are drawn alike.
var healths = []Count{{Word: "unhealthy", Phase: updaterun.PhaseFailed}, {Word: "late", Phase: updaterun.PhaseWaiting}, {Word: "leaving", Phase: updaterun.PhaseSkipped}}

// healthy is the state of all others.
var healthy = Count{Word: "healthy", Phase: updaterun.PhaseSucceeded}

func healthOf(m Member) Count {
	word := m.Health()
	for _, one := range healths {
		if one.Word == word {
			return one
		}
	}
	if word == healthy.Word {
		return healthy
	}
	return Count{Word: word, Phase: updaterun.PhasePending}
}

// MapOf draws members by a label; without one, by the label that tells the fleet apart best. With only set, it draws the group of that
// value alone.
func MapOf(members []Member, by string, only *string) Map {
	m := Map{By: by, Labels: labelsOf(members), Total: len(members)}
	if by == "" && len(m.Labels) > 0 {
		m.By = m.Labels[0]
	}
	groups := map[string]*Group{}
	for _, one := range members {
		value := one.Labels[m.By]
		if only != nil && value != *only {
			continue
		}
		if groups[value] == nil {
			groups[value] = &Group{Name: value, Path: "/map?" + url.Values{"by": {m.By}, "is": {value}}.Encode()}
		}
		groups[value].members = append(groups[value].members, one)
	}
	shown := 0
	for _, group := range groups {
		m.Groups = append(m.Groups, *group)
		shown += len(group.members)
	}
	m.gatherRest()
	slices.SortFunc(m.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	for i := range m.Groups {
		m.Groups[i].draw(fmt.Sprintf("group%d", i), shown > maxPlaces)
	}
	return m
}

// gatherRest makes one group of those that are too many.
func (m *Map) gatherRest() {
	if len(m.Groups) <= maxGroups {
		return
	}
	slices.SortFunc(m.Groups, func(a, b Group) int {
		return cmp.Or(len(b.members)-len(a.members), strings.Compare(a.Name, b.Name))
	})
	rest := Group{Name: fmt.Sprintf("%d other values", len(m.Groups)-maxGroups+1)}
	for _, group := range m.Groups[maxGroups-1:] {
		rest.members = append(rest.members, group.members...)
	}
	m.Groups = append(m.Groups[:maxGroups-1:maxGroups-1], rest)
}

// draw draws the clusters of a group, each or only those that stand out.
func (g *Group) draw(id string, many bool) {
	g.ID = id
	g.Total = len(g.members)
	counts := map[Count]int{}
	for i, one := range g.members {
		health := healthOf(one)
		counts[health]++
		if !many || health != healthy || len(one.Changing) > 0 {
			g.Places = append(g.Places, Place{ID: fmt.Sprintf("%sm%d", id, i), Member: one, Word: health.Word, Phase: health.Phase})
		}
	}
	if many {
		slices.SortStableFunc(g.Places, func(a, b Place) int { return a.urgency() - b.urgency() })
		g.Places = g.Places[:min(len(g.Places), placesOfGroup)]
	}
	g.More = g.Total - len(g.Places)
	for _, health := range append([]Count{healthy}, healths...) {
		if number := counts[health]; number > 0 {
			health.Number = number
			g.Counts = append(g.Counts, health)
		}
	}
	g.members = nil
}

// urgency sorts the clusters that stand out, most first.
func (p Place) urgency() int {
	if i := slices.IndexFunc(healths, func(c Count) bool { return c.Word == p.Word }); i >= 0 {
		return i
	}
	return len(healths)
}

// usual are labels by which fleets are told apart, as far as they have them.
var usual = []string{"region", "topology.kubernetes.io/region", "environment", "env", "stage", "tier"}

// labelsOf returns the labels that tell members apart: those that people use for that first.
func labelsOf(members []Member) []string {
	values := map[string]map[string]bool{}
	for _, one := range members {
		for name, value := range one.Labels {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
		}
	}
	var names []string
	for name, of := range values {
		if len(of) > 1 && len(of) <= max(maxGroups, len(members)/2) {
			names = append(names, name)
		}
	}
	rank := func(name string) int {
		if i := slices.Index(usual, name); i >= 0 {
			return i
		}
		return len(usual)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a, b)) })
	const offered = 30
	return names[:min(len(names), offered)]
}

// maxColumns is how many columns a matrix has: of more clusters, each column is a group of them.
const maxColumns = 30

// Versions is which clusters have which snapshot of which placement.
type Versions struct {
	Columns []Column
	Rows    []VersionRow
	// Grouped says that each column is a group of clusters.
	Grouped bool
}

// Column is a cluster, or a group of clusters.
type Column struct {
	Name, Path string
	clusters   []string
}

// VersionRow is a placement on all columns.
type VersionRow struct {
	Name, Path string
	Latest     string
	Cells      []Cell
}

// Cell is the snapshots of a placement in a column.
type Cell struct {
	ID string
	// Text is the index, or how many clusters have which, the newest first; empty if none has any.
	Text string
	// Age is latest, behind, older, mixed, none or unseen.
	Age string
	// Changing says that a run changes it now.
	Changing bool
}

// Ages are how old snapshots can be, and Signs stand for them beside their colours.
var (
	Ages  = []string{"latest", "behind", "older", "mixed", "none", "unseen"}
	Signs = map[string]string{"latest": "●", "behind": "◐", "older": "○", "mixed": "◍", "none": "–", "unseen": "?"}
)

// Placed is a placement with the index of the snapshot that each cluster is to have.
type Placed struct {
	Name, Path string
	// Latest is the index of its latest snapshot; -1 if there is none.
	Latest int
	Has    map[string]int
	// Unseen says that the user may not see which clusters have which.
	Unseen bool
	// Changing are the clusters that its runs change now.
	Changing map[string]bool
}

// VersionsOf draws which clusters have which snapshot. Of many clusters, it draws the groups of a map.
func VersionsOf(placements []Placed, members []Member, by string) Versions {
	v := Versions{Grouped: len(members) > maxColumns}
	index := map[string]int{}
	if v.Grouped {
		members = slices.Clone(members)
		slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Labels[by], b.Labels[by]) })
	}
	for _, one := range members {
		column := Column{Name: one.Name, Path: "/clusters/" + one.Name}
		if v.Grouped {
			value := one.Labels[by]
			column = Column{Name: value, Path: "/map?" + url.Values{"by": {by}, "is": {value}}.Encode()}
		}
		at, is := index[column.Name]
		if !is {
			at = len(v.Columns)
			if at == maxColumns { // what is left has one column
				at--
				v.Columns[at].Name = "others"
				v.Columns[at].Path = ""
			} else {
				v.Columns = append(v.Columns, column)
			}
			index[column.Name] = at
		}
		v.Columns[at].clusters = append(v.Columns[at].clusters, one.Name)
	}
	for i, placed := range placements {
		row := VersionRow{Name: placed.Name, Path: placed.Path, Latest: "–"}
		if placed.Latest >= 0 {
			row.Latest = fmt.Sprint(placed.Latest)
		}
		for j, column := range v.Columns {
			row.Cells = append(row.Cells, cellOf(fmt.Sprintf("cell%dx%d", i, j), placed, column, v.Grouped))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

func cellOf(id string, placed Placed, column Column, grouped bool) Cell {
	cell := Cell{ID: id, Age: "none"}
	counts := map[int]int{}
	for _, name := range column.clusters {
		if index, has := placed.Has[name]; has {
			counts[index]++
		}
		cell.Changing = cell.Changing || placed.Changing[name]
	}
	indexes := make([]int, 0, len(counts))
	for index := range counts {
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	slices.Reverse(indexes)
	const shown = 3
	var texts []string
	for i, index := range indexes {
		switch {
		case i == shown:
			texts = append(texts, "…")
		case i < shown && grouped:
			texts = append(texts, fmt.Sprintf("%d: %d", index, counts[index]))
		case i < shown:
			texts = append(texts, fmt.Sprint(index))
		}
	}
	cell.Text = strings.Join(texts, ", ")
	switch {
	case placed.Unseen:
		cell.Age = "unseen"
	case len(indexes) > 1:
		cell.Age = "mixed"
	case len(indexes) == 0:
	default:
		cell.Age = ageOf(indexes[0], placed.Latest)
	}
	return cell
}
