// Package planprint prints what a staged update run would do.
package planprint

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Print prints a plan; diff says that what changes on the clusters is shown, too.
func Print(out io.Writer, p plan.Plan, paint func(colour, text string) string, diff bool) {
	which := ""
	if p.Snapshot == p.Latest {
		which = " (the latest)"
	}
	what := fmt.Sprintf("Roll snapshot %d%s of %s out to", p.Snapshot, which, p.Placement)
	if p.Snapshot < 0 {
		what = fmt.Sprintf("Roll the first snapshot of %s, which there is not yet, out to", p.Placement)
	}
	if p.RollbackOf != "" {
		what = fmt.Sprintf("Take back what run %s has done to %s on", p.RollbackOf, p.Placement)
	}
	cli.Printf(out, "%s %s in %s by strategy %s.\n", what, tree.Plural(len(p.Clusters()), "cluster"), tree.Plural(len(p.Stages), "stage"), p.Strategy)
	for _, problem := range p.Problems {
		cli.PrintStyled(out, paint(cli.Red, "✗ The run would be refused: "+problem))
	}
	for _, note := range p.Notes {
		cli.Printf(out, "! %s\n", note)
	}
	for i, stage := range p.Stages {
		printStage(out, i+1, stage)
	}
	if len(p.Removed) > 0 {
		fate := "is removed from"
		if p.RemovedStay {
			fate = "is given up, and stays, on"
		}
		cli.Printf(out, "\n%d. deletion: what is placed %s %s, no longer picked: %s\n", len(p.Stages)+1, fate, tree.Plural(len(p.Removed), "cluster"),
			strings.Join(p.Removed, ", "))
	}
	if p.EarliestEnd != nil {
		cli.Printf(out, "\nIt ends at the earliest at %s: that is windows, holds and soak times alone.\n", fleetview.WithUTC(p.EarliestEnd))
	}
	printShares(out, p)
	if diff {
		for _, group := range p.Changes {
			printGroup(out, group, paint)
		}
	}
}

// maxShares is how many shares of divided workloads a plan prints.
const maxShares = 20

// printShares prints how replicas are divided over the clusters.
func printShares(out io.Writer, p plan.Plan) {
	if len(p.Replicas) == 0 {
		return
	}
	cli.Printf(out, "\nReplicas are divided, whether or not the run has come to a cluster:\n")
	for _, share := range p.Replicas[:min(len(p.Replicas), maxShares)] {
		cli.Printf(out, "  %s  %s  %s\n", share.Cluster, share.Workload, share)
	}
	if more := len(p.Replicas) - maxShares; more > 0 {
		cli.Printf(out, "  and %d more: kubectl fleet get replicas\n", more)
	}
}

func printStage(out io.Writer, number int, stage plan.Stage) {
	total := len(slices.Concat(stage.Waves...))
	cli.Printf(out, "\n%d. %s: %s", number, stage.Name, tree.Plural(total, "cluster"))
	if total == 0 {
		cli.Printf(out, ", so it is skipped\n")
		return
	}
	cli.Printf(out, ", %d at a time", stage.AtOnce)
	if stage.SkipsHeld {
		cli.Printf(out, ", those that are closed once they open")
	}
	cli.Printf(out, "\n")
	if len(stage.Windows) > 0 {
		cli.Printf(out, "   windows %s\n", strings.Join(stage.Windows, ", "))
	}
	for _, gate := range stage.Before {
		cli.Printf(out, "   before  %s\n", gate)
	}
	for i, wave := range stage.Waves {
		described := make([]string, 0, len(wave))
		for _, cluster := range wave {
			described = append(described, clusterText(cluster))
		}
		cli.Printf(out, "   wave %-2d %s\n", i+1, strings.Join(described, ", "))
		for _, opening := range stage.Openings {
			if opening.Wave == i+1 {
				cli.Printf(out, "   opens   %s\n", tree.Printable(openingText(opening)))
			}
		}
	}
	for _, task := range stage.During {
		cli.Printf(out, "   during  %s\n", task)
	}
	for _, gate := range stage.After {
		cli.Printf(out, "   after   %s\n", gate)
	}
	if stage.Failures != "" {
		cli.Printf(out, "   limits  %s\n", stage.Failures)
	}
}

// openingText returns when a wave opens, and what it waits for.
func openingText(opening plan.Opening) string {
	when := "never by itself"
	if opening.Opens != nil {
		when = fleetview.WithUTC(opening.Opens)
	}
	return fmt.Sprintf("%s: %s waits for %s", when, opening.Cluster, opening.For)
}

func clusterText(cluster plan.Cluster) string {
	text := cluster.Name
	switch cluster.From {
	case "":
		text += " (new)"
	case cluster.To:
		text += " (has it)"
	default:
		text += fmt.Sprintf(" (%s → %s)", cluster.From, cluster.To)
	}
	if cluster.Health != "" {
		text += " !" + cluster.Health
	}
	return text
}

// shownClusters bounds the clusters named above a difference.
const shownClusters = 5

func printGroup(out io.Writer, group plan.Group, paint func(colour, text string) string) {
	named := strings.Join(group.Clusters[:min(len(group.Clusters), shownClusters)], ", ")
	if left := len(group.Clusters) - shownClusters; left > 0 {
		named += fmt.Sprintf(" and %d more", left)
	}
	from := "nothing"
	if group.From != "" {
		from = "snapshot " + group.From
	}
	cli.Printf(out, "\nOn %s, from %s to snapshot %s", named, from, group.To)
	if len(group.Overrides) > 0 {
		cli.Printf(out, " with overrides %s", strings.Join(group.Overrides, ", "))
	}
	switch {
	case group.Problem != "":
		cli.PrintStyled(out, ": "+paint(cli.Red, group.Problem))
		return
	case len(group.Objects) == 0:
		cli.Printf(out, ": nothing changes.\n")
		return
	}
	cli.Printf(out, ":\n")
	for _, change := range group.Objects {
		mark := map[string]string{"added": "+", "removed": "-", "changed": "~"}[change.Change]
		colour := map[string]string{"added": cli.Green, "removed": cli.Red, "changed": cli.Cyan}[change.Change]
		cli.PrintStyled(out, paint(colour, "  "+mark+" "+change.Object))
		if change.Change == "added" && group.From == "" {
			continue // all of it is new there; the hub has it in full
		}
		for _, line := range change.Lines {
			cli.PrintStyled(out, "    "+paintLine(line, paint))
		}
	}
}

func paintLine(line string, paint func(colour, text string) string) string {
	switch line[:1] {
	case "+":
		return paint(cli.Green, line)
	case "-":
		return paint(cli.Red, line)
	case "@":
		return paint(cli.Cyan, line)
	default:
		return tree.Printable(line)
	}
}
