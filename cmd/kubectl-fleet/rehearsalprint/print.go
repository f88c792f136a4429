// Package rehearsalprint prints what clusters have said that a change would do there.
package rehearsalprint

import (
	"fmt"
	"io"
	"strings"

	"github.com/fleetflow/fleetflow/activities/rehearsal"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Shown is a rehearsal that is over, with its details if they were asked for.
type Shown struct {
	Rehearsal fleetflowv1alpha1.RehearsalObject
	Details   []Detail
}

// Detail is what one cluster has answered. Its words are harmless.
type Detail struct {
	Cluster string                              `json:"cluster"`
	Objects []fleetflowv1alpha1.RehearsedObject `json:"objects"`
	// Omitted is how many objects the answer had no room for.
	Omitted int32 `json:"omitted,omitempty"`
	// Problem says why the answer cannot be read.
	Problem string `json:"problem,omitempty"`
}

// DetailOf reads what a cluster has answered.
func DetailOf(question *fleetflowv1alpha1.MemberQuestion) Detail {
	cluster, _ := clusterv1beta1.MemberOfNamespace(question.Namespace)
	detail := Detail{Cluster: cluster, Omitted: question.Status.Rehearsal.Omitted}
	objects, err := rehearsal.Objects(question.Status.Rehearsal)
	if err != nil {
		detail.Problem = "the answer cannot be read: " + err.Error()
		return detail
	}
	for _, object := range objects {
		object.Outcome = fleetflowv1alpha1.RehearsalOutcome(rehearsal.Clean(string(object.Outcome)))
		object.By = rehearsal.Clean(object.By)
		object.Message = rehearsal.Clean(object.Message)
		for i := range object.Fields {
			field := &object.Fields[i]
			field.Path = rehearsal.Clean(field.Path)
			field.From = rehearsal.Clean(field.From)
			field.To = rehearsal.Clean(field.To)
		}
		detail.Objects = append(detail.Objects, object)
	}
	return detail
}

// Ref names a rehearsal as kubectl does.
func Ref(made fleetflowv1alpha1.RehearsalObject) string {
	kind := strings.ToLower(fleetflowv1alpha1.RehearsalKind(made.GetNamespace()).Kind)
	if made.GetNamespace() == "" {
		return kind + "/" + made.GetName()
	}
	return fmt.Sprintf("%s/%s in namespace %s", kind, made.GetName(), made.GetNamespace())
}

// Value returns what is printed for programs: the rehearsal, and beside it the details if they were asked for.
func (s Shown) Value(details bool) any {
	if !details {
		return s.Rehearsal
	}
	return map[string]any{"rehearsal": s.Rehearsal, "details": s.Details}
}

// signs stand before the outcomes, as in the output of kubectl fleet check and plan.
var signs = map[fleetflowv1alpha1.RehearsalOutcome]string{
	fleetflowv1alpha1.RehearsalRefused: "✗", fleetflowv1alpha1.RehearsalConflicts: "✗", fleetflowv1alpha1.RehearsalUnknown: "?",
	fleetflowv1alpha1.RehearsalRemoves: "-", fleetflowv1alpha1.RehearsalCreates: "+", fleetflowv1alpha1.RehearsalChanges: "~",
	fleetflowv1alpha1.RehearsalSame: "=", fleetflowv1alpha1.RehearsalPulled: "✓",
}

// Print prints the summary, and the details behind it.
func (s Shown) Print(out io.Writer, paint func(colour, text string) string) {
	status := s.Rehearsal.GetRehearsalStatus()
	cli.Printf(out, "Snapshot %s of %s on %s: %s.\n", status.ResourceSnapshotIndex, s.Rehearsal.GetRehearsalSpec().PlacementName,
		tree.Plural(int(status.ClusterCount), "cluster"), rehearsal.DescribeCounts(status.Clusters))
	for i := range status.Groups {
		group := &status.Groups[i]
		line := tree.Printable(fmt.Sprintf("%s %s", signs[group.Outcome], describe(group, status.ClusterCount)))
		if group.Outcome == fleetflowv1alpha1.RehearsalRefused || group.Outcome == fleetflowv1alpha1.RehearsalConflicts {
			line = paint(cli.Red, line)
		}
		cli.PrintStyled(out, line)
		if names := namesOf(group); names != "" {
			cli.Printf(out, "    %s\n", names)
		}
	}
	if status.OmittedGroups > 0 {
		cli.Printf(out, "and %d more outcomes, which --details shows\n", status.OmittedGroups)
	}
	for _, detail := range s.Details {
		printDetail(out, detail)
	}
	cli.Printf(out, "It stays as %s for a day.\n", Ref(s.Rehearsal))
}

// describe returns what is alike on the clusters of a group.
func describe(group *fleetflowv1alpha1.RehearsalGroup, of int32) string {
	text := fmt.Sprintf("%s on %d of %d", group.Outcome, group.ClusterCount, of)
	about := group.Object
	if len(group.Fields) > 0 {
		about += " " + strings.Join(group.Fields, ", ")
	}
	for _, more := range []string{group.Message, about} {
		if more = strings.TrimSpace(more); more != "" {
			text += ": " + more
		}
	}
	if group.By != "" {
		text += " (by " + group.By + ")"
	}
	return text
}

func namesOf(group *fleetflowv1alpha1.RehearsalGroup) string {
	names := strings.Join(group.Clusters, ", ")
	if more := int(group.ClusterCount) - len(group.Clusters); more > 0 && names != "" {
		names += fmt.Sprintf(" and %d more", more)
	}
	return names
}

func printDetail(out io.Writer, detail Detail) {
	cli.Printf(out, "\n%s\n", detail.Cluster)
	if detail.Problem != "" {
		cli.Printf(out, "  ? %s\n", detail.Problem)
	}
	for _, object := range detail.Objects {
		id := object.Object
		name := id.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+id.Name, "/")
		line := fmt.Sprintf("  %s %-9s %s", signs[object.Outcome], object.Outcome, name)
		if object.Message != "" {
			line += ": " + object.Message
		}
		if object.By != "" {
			line += " (by " + object.By + ")"
		}
		cli.Printf(out, "%s\n", tree.Printable(line))
		for _, field := range object.Fields {
			cli.Printf(out, "      %s\n", tree.Printable(fmt.Sprintf("%s: %s → %s", field.Path, orNothing(field.From), orNothing(field.To))))
		}
		if object.OmittedFields > 0 {
			cli.Printf(out, "      and %d more fields\n", object.OmittedFields)
		}
		if len(object.Drifted) > 0 {
			cli.Printf(out, "      drifted, and put right: %s\n", tree.Printable(strings.Join(object.Drifted, ", ")))
		}
	}
	if detail.Omitted > 0 {
		cli.Printf(out, "  and %d more objects, of which the answer has no room to tell\n", detail.Omitted)
	}
}

func orNothing(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return value
}
