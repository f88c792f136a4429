package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Selected is what a placement selects, by kind.
type Selected struct {
	Kinds []KindGroup
	Total int
}

// KindGroup is the objects of a kind.
type KindGroup struct {
	ID, Kind string
	Total    int
	// Bad is how many of them are not as they should be on some cluster: these are shown first.
	Bad     int
	Objects []Object
	// More is how many are not shown.
	More int
}

// Object is one that is placed, with on which clusters it is not as it should be.
type Object struct {
	Name     string
	Findings []Finding
}

// Finding is what is wrong with an object, and on which clusters.
type Finding struct {
	How      string
	Phase    updaterun.Phase
	Clusters string

	clusters []string
}

// maxObjects is how many objects of a kind are shown.
const maxObjects = 20

// hows are what can be wrong with an object, the worst first.
var hows = []Finding{
	{How: "failed", Phase: updaterun.PhaseFailed}, {How: fleetview.Drifted, Phase: updaterun.PhaseWaiting}, {How: fleetview.Differs, Phase: updaterun.PhaseWaiting},
}

// unlisted is the group of objects that are not as they should be and that the status does not list: they are not selected any more, or the
// list is cut.
const unlisted = "not among those listed"

// SelectedBy draws what a placement selects, and how that is on its clusters. What is found of an object in an envelope is shown at the
// envelope, which is what is selected.
func SelectedBy(selected []placementv1beta1.ResourceIdentifier, entries map[string]placementv1beta1.PerClusterPlacementStatus) Selected {
	found := findingsOf(entries)
	groups := map[string]*KindGroup{}
	for _, id := range selected {
		kind := strings.TrimSuffix(id.Kind+"."+id.Group, ".")
		if groups[kind] == nil {
			groups[kind] = &KindGroup{Kind: kind}
		}
		one := Object{Name: placementv1beta1.Scope{Namespace: id.Namespace}.String() + id.Name}
		if of := found[keyOf(id)]; of != nil {
			one.Findings = of.findings()
			delete(found, keyOf(id))
		}
		groups[kind].add(one)
	}
	drawn := Selected{Total: len(selected)}
	for _, kind := range namesOf(groups) {
		drawn.add(groups[kind])
	}
	if len(found) > 0 {
		group := &KindGroup{Kind: unlisted}
		for _, key := range namesOf(found) {
			group.add(Object{Name: status.ObjectName(found[key].id), Findings: found[key].findings()})
		}
		drawn.add(group)
	}
	return drawn
}

// add draws the first objects of a group.
func (s *Selected) add(group *KindGroup) {
	group.ID = "kind" + strconv.Itoa(len(s.Kinds))
	slices.SortStableFunc(group.Objects, func(a, b Object) int { return cmp.Compare(len(b.Findings), len(a.Findings)) })
	group.More = max(0, len(group.Objects)-maxObjects)
	group.Objects = group.Objects[:len(group.Objects)-group.More]
	s.Kinds = append(s.Kinds, *group)
}

// foundObject is what is found of an object, or in an envelope.
type foundObject struct {
	id placementv1beta1.ResourceIdentifier
	// own and inside are in the order of hows.
	own, inside []Finding
}

// findingsOf returns what is wrong with which objects, by their names: those in an envelope are found by its name.
func findingsOf(entries map[string]placementv1beta1.PerClusterPlacementStatus) map[string]*foundObject {
	found := map[string]*foundObject{}
	for _, cluster := range namesOf(entries) {
		entry := entries[cluster]
		note := func(id placementv1beta1.ResourceIdentifier, how int) {
			envelope := id.Envelope != nil
			if envelope {
				id = envelopeOf(*id.Envelope)
			}
			name := keyOf(id)
			if found[name] == nil {
				found[name] = &foundObject{id: id, own: slices.Clone(hows), inside: slices.Clone(hows)}
			}
			of := &found[name].own[how]
			if envelope {
				of = &found[name].inside[how]
			}
			if last := len(of.clusters) - 1; last < 0 || of.clusters[last] != cluster { // one cluster comes after the other
				of.clusters = append(of.clusters, cluster)
			}
		}
		for i := range entry.FailedPlacements {
			note(entry.FailedPlacements[i].ResourceIdentifier, 0)
		}
		for i := range entry.DriftedPlacements {
			note(entry.DriftedPlacements[i].ResourceIdentifier, 1)
		}
		for i := range entry.DiffedPlacements {
			note(entry.DiffedPlacements[i].ResourceIdentifier, 2) //nolint:mnd // the third of hows
		}
	}
	return found
}

// findings returns what is found.
func (o *foundObject) findings() []Finding {
	var all []Finding
	for i, finding := range slices.Concat(o.own, o.inside) {
		if len(finding.clusters) == 0 {
			continue
		}
		if i >= len(o.own) {
			finding.How += " in it"
		}
		finding.Clusters = updaterun.ListNames(finding.clusters)
		all = append(all, finding)
	}
	return all
}

// envelopeOf returns the envelope as it is selected. One without a type is a ConfigMap.
func envelopeOf(of placementv1beta1.EnvelopeIdentifier) placementv1beta1.ResourceIdentifier {
	id := placementv1beta1.ResourceIdentifier{
		Group: placementv1beta1.GroupVersion.Group, Kind: string(of.Type), Namespace: of.Namespace, Name: of.Name,
	}
	if of.Type == "" || of.Type == placementv1beta1.ConfigMapEnvelopeType {
		id.Group = ""
		id.Kind = string(placementv1beta1.ConfigMapEnvelopeType)
	}
	return id
}

// keyOf names an object of whatever version.
func keyOf(id placementv1beta1.ResourceIdentifier) string {
	return id.Group + "|" + id.Kind + "|" + id.Namespace + "|" + id.Name
}

func namesOf[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (g *KindGroup) add(one Object) {
	g.Total++
	if len(one.Findings) > 0 {
		g.Bad++
	}
	g.Objects = append(g.Objects, one)
}

// Branch is a cluster of a placement: the snapshot that it is to have, and how far that is.
type Branch struct {
	ID string
	tree.Node
	// Snapshot is the index, and Age how old it is; both are empty if that is not known.
	Snapshot, Age string
	Ladder        []Rungs
	// Text says what the ladder shows.
	Text string
}

// Rungs are steps that follow one another in the same state.
type Rungs struct {
	Phase updaterun.Phase
	Steps []string
}

// BranchesOf draws clusters of a placement, which are nodes of its tree.
func BranchesOf(nodes []tree.Node, entries map[string]placementv1beta1.PerClusterPlacementStatus, placed Placed) []Branch {
	branches := make([]Branch, 0, len(nodes))
	for i, node := range nodes {
		branch := Branch{ID: "on" + strconv.Itoa(i), Node: node}
		if index, has := placed.Has[node.Name]; has {
			branch.Snapshot = strconv.Itoa(index)
			branch.Age = ageOf(index, placed.Latest)
		}
		var texts []string
		for _, step := range status.StepsOn(entries[node.Name]) {
			if last := len(branch.Ladder) - 1; last >= 0 && branch.Ladder[last].Phase == step.State {
				branch.Ladder[last].Steps = append(branch.Ladder[last].Steps, step.Name)
			} else {
				branch.Ladder = append(branch.Ladder, Rungs{step.State, []string{step.Name}})
			}
			texts = append(texts, step.Name+" "+strings.ToLower(string(step.State)))
		}
		branch.Text = strings.Join(texts, ", ")
		branches = append(branches, branch)
	}
	return branches
}

// ageOf returns how old a snapshot is.
func ageOf(index, latest int) string {
	switch {
	case index >= latest:
		return Ages[0]
	case index == latest-1:
		return Ages[1]
	}
	return Ages[2]
}

// Snapshots is the line of the snapshots of a placement, the oldest first.
type Snapshots struct {
	Stops []Stop
	// Older is how many are not shown: older ones that no cluster is to have.
	Older int
	// Unseen says that the user may not see which clusters are to have which.
	Unseen bool
	// Clusters is how many there are that are to have any.
	Clusters int
}

// Stop is a snapshot.
type Stop struct {
	ID    string
	Index int
	// Age is how old it is, as on a map.
	Age   string
	Taken time.Time
	// On is how many clusters are to have it, Named are these, and Width is their share of a hundred.
	On    int
	Named string
	Width int
	// Runs have rolled it out, or do.
	Runs []hub.Ref
	// Before is the index of the one that it is compared with; -1 if there is none.
	Before int
}

// maxStops is how many snapshots without clusters are shown: the latest of them.
const maxStops = 5

// SnapshotsOf draws the snapshots of a placement that its status names or a cluster is to have.
func SnapshotsOf(told []placementv1beta1.ResourceSnapshotSummary, placed Placed, runs []hub.Run) Snapshots {
	line := Snapshots{Unseen: placed.Unseen, Clusters: len(placed.Has)}
	stops := map[int]*Stop{}
	stopOf := func(index int) *Stop {
		if stops[index] == nil {
			stops[index] = &Stop{ID: "snapshot" + strconv.Itoa(index), Index: index, Before: -1, Age: ageOf(index, placed.Latest)}
		}
		return stops[index]
	}
	for _, summary := range told {
		if index, err := strconv.Atoi(summary.Index); err == nil {
			stopOf(index).Taken = summary.CreationTime.Time
		}
	}
	on := map[int][]string{}
	for _, cluster := range namesOf(placed.Has) {
		index := placed.Has[cluster]
		on[index] = append(on[index], cluster)
		stopOf(index)
	}
	if placed.Latest >= 0 {
		stopOf(placed.Latest)
	}
	for _, run := range runs {
		if index, err := strconv.Atoi(run.Status.ResourceSnapshotIndexUsed); err == nil && stops[index] != nil {
			stops[index].Runs = append(stops[index].Runs, run.Ref)
		}
	}
	indexes := make([]int, 0, len(stops))
	for index := range stops {
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	for i, index := range indexes {
		stop := stops[index]
		if i > 0 {
			stop.Before = indexes[i-1]
		}
		if len(on[index]) == 0 && i < len(indexes)-maxStops {
			line.Older++
			continue
		}
		stop.On = len(on[index])
		stop.Named = updaterun.ListNames(on[index])
		if line.Clusters > 0 {
			stop.Width = max(stop.On*100/line.Clusters, min(stop.On, 1)) //nolint:mnd // of a hundred
		}
		const shownRuns = 3
		stop.Runs = stop.Runs[:min(len(stop.Runs), shownRuns)]
		line.Stops = append(line.Stops, *stop)
	}
	return line
}

// Drift is how members differ from what is wanted, a row for each field.
type Drift struct {
	Rows []DriftRow
	// More is how many fields are not shown, and Clusters is how many clusters differ, of Total.
	More, Clusters, Total int
	// Unreported are those that have not said how they are.
	Unreported string
	// Cut are those of which the hub lists no more objects, though there may be more.
	Cut string
	// Unseen says that the user may not list bindings: the status of the placement tells no more than some of it.
	Unseen bool
	// Command shows all of it.
	Command string
}

// DriftRow is a field that differs on a member.
type DriftRow struct {
	Cluster string
	fleetview.DriftedObject
	Path string
	// Wanted and Found are the values, with the words that differ; nothing where the field does not exist.
	Wanted, Found []objectdiff.Word
}

const (
	// maxDrift is how many fields are shown.
	maxDrift = 50
	// maxValue cuts values.
	maxValue = 300
)

// DriftOf draws how members differ. For a user who may not list bindings, the report rests on the status of the placement, which leaves out
// clusters and findings where there are many: what it does not tell is not known.
func DriftOf(report fleetview.DriftReport, placement hub.Ref, unseen bool) Drift {
	drift := Drift{Clusters: len(report.Clusters), Total: report.Total, Unseen: unseen, Command: "kubectl fleet diff " + placement.Flags()}
	if !unseen {
		drift.Unreported = updaterun.ListNames(report.Unreported)
	}
	var cut []string
	for _, cluster := range report.Clusters {
		if cluster.More {
			cut = append(cut, cluster.Name)
		}
		for _, object := range cluster.Objects {
			fields := object.Fields
			if len(fields) == 0 {
				fields = []fleetview.DriftedField{{}}
			}
			object.Fields = nil
			for _, field := range fields {
				if len(drift.Rows) == maxDrift {
					drift.More++
					continue
				}
				row := DriftRow{Cluster: cluster.Name, DriftedObject: object, Path: field.Path}
				row.Wanted, row.Found = objectdiff.Words(tree.Cut(field.Hub, maxValue, true), tree.Cut(field.Member, maxValue, true))
				drift.Rows = append(drift.Rows, row)
			}
		}
	}
	drift.Cut = updaterun.ListNames(cut)
	return drift
}

// Listed is how many objects of a cluster the hub lists at most.
func (Drift) Listed() int { return fleetview.Listed }

// Summary says how many differ.
func (d Drift) Summary() string {
	switch {
	case d.Unseen && d.Clusters == 0:
		return "It names no cluster that differs, which does not say that none does."
	case d.Unseen:
		verb := "differ"
		if d.Clusters == 1 {
			verb += "s"
		}
		return fmt.Sprintf("At least %s %s from what is wanted.", tree.Plural(d.Clusters, "cluster"), verb)
	case d.Clusters == 0:
		return "No cluster has reported a difference."
	}
	return fmt.Sprintf("%d of %s differ from what is wanted.", d.Clusters, tree.Plural(d.Total, "cluster"))
}
