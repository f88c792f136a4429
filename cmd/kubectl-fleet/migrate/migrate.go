// Package migrate has the commands that check a move between KubeFleet and fleetflow, and accept what the hub agent holds.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// codeInTheWay is the exit code of a check that has found something in the way.
const codeInTheWay = 2

// New returns `kubectl fleet migrate`.
func New(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move a hub between KubeFleet and fleetflow",
		Long:  "Check a hub before and after it is moved from KubeFleet to fleetflow or back, and accept what the hub agent holds.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCheck(f, streams), newAccept(f, streams))
	return cmd
}

type check struct {
	base.Viewing
	to      string
	strict  bool
	members []string
	scripts []string
}

func newCheck(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &check{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what a move would make of this hub, and what stands in its way",
		Long: `Read a hub, run by KubeFleet or by fleetflow, and say what would be adopted, what is under way, what has no counterpart,
what would be written, and what stands in the way, KubeFleet's agents that still run included. Nothing is changed. Run it before
a move and after it; with --to kubefleet, before the way back.

With --member-context, members are looked at as well: whether a release of Helm there would delete the definition of what is
placed. That can be seen only on the member.

With --scripts, files are looked into for words of older releases, for which a script would wait for ever.

Exits with 0 if nothing stands in the way, with 1 if the hub could not be read, and with 2 if something stands in the way; with
--strict, also if something has no counterpart.`,
		Example: `  kubectl fleet migrate check
  kubectl fleet migrate check --member-context member-1 --member-context member-2
  kubectl fleet migrate check --scripts ./pipelines
  kubectl fleet migrate check --to kubefleet -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.to, "to", migration.ToFleetflow, "Where the hub is to be moved: fleetflow or kubefleet.")
	cmd.Flags().StringArrayVar(&o.members, "member-context", nil,
		"Context of the kubeconfig for a member that is to be looked at, too; may be given several times.")
	_ = cmd.RegisterFlagCompletionFunc("member-context", base.Completed(f, base.KubeContexts)) // fails only for a flag that is not there
	cmd.Flags().StringArrayVar(&o.scripts, "scripts", nil,
		"File or directory of scripts, manifests and rules in which to look for words of older releases; may be given several times.")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "Exit with 2 also if something has no counterpart.")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{migration.ToFleetflow, migration.ToKubeFleet}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

func (o *check) run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	judge := migration.Check
	switch o.to {
	case migration.ToFleetflow:
	case migration.ToKubeFleet:
		judge = migration.CheckBack
	default:
		return fmt.Errorf("--to %q is not known: use fleetflow or kubefleet", o.to)
	}
	state, err := o.read(ctx)
	if err != nil {
		return err
	}
	for _, member := range o.members {
		if err := o.lookAt(ctx, state, member); err != nil {
			return err
		}
	}
	report := judge(state, o.Factory.Clock.Now())
	if err := report.LookIntoScripts(o.scripts); err != nil {
		return err
	}
	if o.Structured() {
		err = o.Encode(o.Streams.Out, report)
	} else {
		err = o.print(report)
	}
	if err != nil {
		return err
	}
	if report.Has(migration.InTheWay) || o.strict && report.Has(migration.NoCounterpart) {
		return &cli.Exit{Code: codeInTheWay}
	}
	return nil
}

// lookAt adds to the state what only a member knows.
func (o *check) lookAt(ctx context.Context, state *migration.State, kubeContext string) error {
	member, err := o.Factory.ClientOf(kubeContext)
	if err != nil {
		return err
	}
	if err := state.AddReleases(ctx, member, kubeContext); err != nil {
		return fmt.Errorf("looking at %s: %w", kubeContext, err)
	}
	return nil
}

// read reads the state of the hub; what the contents of snapshots say is read for the way back only.
func (o *check) read(ctx context.Context) (*migration.State, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	if err := (hub.Reader{Reader: c}).CheckHub(ctx); err != nil {
		return nil, err
	}
	state, err := migration.Read(ctx, c)
	if err == nil && o.to == migration.ToKubeFleet {
		err = state.AddHashes(ctx, c)
	}
	return state, err
}

// print prints a report for people.
func (o *check) print(r *migration.Report) error {
	out := o.Streams.Out
	cli.Printf(out, "Hub agents: %s\n", describeAgents(r.Agents))
	cli.Printf(out, "Member agents: %s\n\n", describeMemberAgents(r.Agents))
	columns := []cli.Column{{Name: "Placement"}, {Name: "Adopted"}, {Name: "Strategy"}, {Name: "Clusters"}, {Name: "Available"},
		{Name: "Bindings"}, {Name: "Snapshots"}, {Name: "Works"}, {Name: "Runs"}}
	if r.To == migration.ToKubeFleet {
		columns = append(columns, cli.Column{Name: "Rolled out again"})
	}
	var rows [][]string
	for _, p := range append(r.Placements, r.Total) {
		adopted := "yes"
		switch {
		case p.Strategy == "":
			adopted = ""
		case !p.Adopted:
			adopted = "no"
		}
		rows = append(rows, []string{
			p.Object, adopted, p.Strategy, strconv.Itoa(p.Clusters), strconv.Itoa(p.Available), strconv.Itoa(p.Bindings),
			strconv.Itoa(p.Policies + p.Snapshots), strconv.Itoa(p.Works), strconv.Itoa(p.Runs), strconv.Itoa(p.RolledOutAgain),
		}[:len(columns)])
	}
	if err := o.PrintTable(out, columns, rows); err != nil {
		return err
	}
	var lines []string
	for _, u := range r.UnderWay {
		lines = append(lines, u.Object+": "+u.Where)
	}
	printSection(out, "Under way", lines)
	lines = nil
	title := "Would be written on the hub, and nothing on the members"
	for _, w := range r.Writes {
		lines = append(lines, fmt.Sprintf("%d %s(s): %s", w.Count, w.Kind, w.What))
		if w.On != "hub" {
			title = "Would be written on the hub and on the members"
		}
	}
	printSection(out, title, lines)
	printFindings(out, "Has no counterpart", r.Of(migration.NoCounterpart))
	printFindings(out, "Good to know", r.Of(migration.Note))
	printFindings(out, "Stands in the way", r.Of(migration.InTheWay))
	return nil
}

func describeAgents(a migration.Agents) string {
	var running []string
	if a.KubeFleet != "" {
		running = append(running, "KubeFleet's ("+a.KubeFleet+")")
	}
	if a.Fleetflow != "" {
		running = append(running, "fleetflow's ("+a.Fleetflow+")")
	}
	if len(running) == 0 {
		return "none holds a lease"
	}
	return strings.Join(running, ", ")
}

func describeMemberAgents(a migration.Agents) string {
	return fmt.Sprintf("%d of KubeFleet, %d of fleetflow, %d unknown", a.Members.KubeFleet, a.Members.Fleetflow, a.Members.Unknown)
}

// maxFindings is how many findings of one reason are printed; JSON and YAML have all.
const maxFindings = 20

func printFindings(out io.Writer, title string, findings []migration.Finding) {
	printed := map[string]int{}
	left := 0
	var lines []string
	for _, f := range findings {
		if printed[f.Reason]++; printed[f.Reason] > maxFindings {
			left++
			continue
		}
		line := f.Reason + ": " + f.Message
		if f.Object != "" {
			line = f.Object + ": " + line
		}
		lines = append(lines, line)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: -o json has all", left))
	}
	printSection(out, title, lines)
}

func printSection(out io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	cli.Printf(out, "\n%s:\n", title)
	for _, line := range lines {
		cli.Printf(out, "  %s\n", line)
	}
}

func newAccept(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &acceptance{base.Steering{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "accept [PLACEMENT]",
		Short: "Accept removals that the hub agent holds because nothing explains them",
		Long: `Accept removals that the hub agent holds. The condition RemovalsHeld of a placement lists them. Names them and asks first.

The agent holds bindings in three cases: after a start it would remove more than a handful that neither a change of a
placement nor a deletion explains; a placement would leave many clusters at once; or the namespace of a ResourcePlacement is
being deleted on the hub. If you accept, what they have placed is removed from the clusters that are still there.

It holds selected objects if a placement selects no objects, or far fewer, or if a namespace of it is being deleted on the
hub, although no change of its selectors explains it. If you accept, they are removed from all clusters of the placement. You
accept only what is held now: a later loss is held again.

With the name of a placement you accept what is held of that one; without a name, what is held of all placements, and the
bindings whose placement no longer exists are deleted, too.`,
		Example: `  kubectl fleet migrate accept web
  kubectl fleet migrate accept --dry-run`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.Validate(); err != nil {
				return err
			}
			return s.acceptRemovals(cmd.Context(), args)
		},
	}
	s.AddFlags(cmd)
	return cmd
}

// acceptance accepts what the hub agent holds.
type acceptance struct{ base.Steering }

// acceptRemovals accepts what is held of one placement or, without a name, of the whole hub.
func (s *acceptance) acceptRemovals(ctx context.Context, args []string) error {
	c, err := s.Factory.Client()
	if err != nil {
		return err
	}
	var placements []placementv1beta1.PlacementObject
	var orphans []placementv1beta1.BindingObject
	if len(args) == 1 {
		found, err := base.Find(ctx, s.Factory, c, args[0], hub.KindPlacement)
		if err != nil {
			return err
		}
		placements = append(placements, found.Placement.Object)
	} else {
		state, err := migration.Read(ctx, c)
		if err != nil {
			return err
		}
		placements = state.Placements
		orphans = migration.HeldBindings(state)
	}
	something := len(orphans) > 0
	for _, placement := range placements {
		if held := rules.HeldRemovalsOf(placement); held != nil {
			something = true
			if err := s.acceptHeld(ctx, c, placement, held); err != nil {
				return err
			}
		}
	}
	for _, placement := range placements {
		accepted, err := s.acceptLoss(ctx, c, placement)
		if err != nil {
			return err
		}
		something = something || accepted
	}
	if !something {
		cli.Printf(s.Streams.Out, "the hub agent holds nothing\n")
		return nil
	}
	return s.deleteOrphans(ctx, c, orphans)
}

// accepting is what the hub agent holds of a placement, and how it is told to let exactly that go.
type accepting struct {
	placement placementv1beta1.PlacementObject
	// named says what is held, of total.
	named []string
	total int
	// question is what the user is asked.
	question string
	// holds is the annotation that says what is held, accepted the one that lets token go.
	holds, accepted, token string
}

// acceptHeld tells the hub agent to let the bindings go that it holds.
func (s *acceptance) acceptHeld(ctx context.Context, c client.WithWatch, placement placementv1beta1.PlacementObject,
	held *rules.HeldRemovals) error {
	var named []string
	for _, removal := range held.Removals {
		named = append(named, fmt.Sprintf("binding %s on %s: %s", removal.Binding, removal.Cluster, removal.Why))
	}
	return s.accept(ctx, c, accepting{
		placement: placement, named: named, total: held.Total, holds: placementv1beta1.RemovalsHeldAnnotation,
		question: fmt.Sprintf("Take placement %s off these %d cluster(s)?", placement.GetName(), held.Total),
		accepted: placementv1beta1.RemovalsAcceptedAnnotation, token: held.Token(placement),
	})
}

// acceptLoss tells the hub agent to let the objects go that a placement selects no more. It says whether any are held.
func (s *acceptance) acceptLoss(ctx context.Context, c client.WithWatch, placement placementv1beta1.PlacementObject) (bool, error) {
	lost, index := snapshot.LossOf(placement)
	if lost == nil {
		return false, nil
	}
	var named []string
	for _, name := range lost.Named {
		named = append(named, name+" is no longer selected")
	}
	err := s.accept(ctx, c, accepting{
		placement: placement, named: named, total: lost.Total, holds: placementv1beta1.SelectionVerdictAnnotation,
		question: fmt.Sprintf("Remove these %d object(s) from the clusters of placement %s?", lost.Total, placement.GetName()),
		accepted: placementv1beta1.SelectionLossAcceptedAnnotation, token: lost.Token(placement, index),
	})
	return err == nil, err
}

// accept tells the hub agent, by an annotation on the placement, to let go what the user has seen, unless it holds something else by then.
func (s *acceptance) accept(ctx context.Context, c client.WithWatch, a accepting) error {
	name := a.placement.GetName()
	for _, one := range a.named {
		cli.Printf(s.Streams.Out, "%s: %s\n", name, one)
	}
	if more := a.total - len(a.named); more > 0 {
		cli.Printf(s.Streams.Out, "%s: and %d more\n", name, more)
	}
	if err := s.Ask(s.Streams, a.question); err != nil {
		return err
	}
	if s.Sends() {
		seen := a.placement.GetAnnotations()
		unchanged := fence.Test(fence.AnnotationPath(a.holds), seen[a.holds])
		patch, err := fence.Patch(a.placement.GetUID(), append([]fence.Op{unchanged}, fence.Annotate(seen, a.accepted, a.token)...)...)
		if err != nil {
			return err
		}
		if err := s.Writer(c).Patch(ctx, placementv1beta1.DeepCopyOf(a.placement), patch); err != nil {
			return fmt.Errorf("accepting the removals of placement %s: %w", name, err)
		}
	}
	s.Done(s.Streams, "%d removal(s) of placement %s accepted", a.total, name)
	return nil
}

// deleteOrphans deletes bindings whose placement is gone.
func (s *acceptance) deleteOrphans(ctx context.Context, c client.WithWatch, orphans []placementv1beta1.BindingObject) error {
	if len(orphans) == 0 {
		return nil
	}
	for _, binding := range orphans {
		cli.Printf(s.Streams.Out, "binding %s on %s: its placement is gone\n", binding.GetName(), binding.GetBindingSpec().TargetCluster)
	}
	if err := s.Ask(s.Streams, fmt.Sprintf("Delete these %d binding(s), and what they have placed?", len(orphans))); err != nil {
		return err
	}
	var problems []error
	for _, binding := range orphans {
		if s.Sends() {
			err := s.Writer(c).Delete(ctx, binding, client.Preconditions{UID: new(binding.GetUID())})
			if client.IgnoreNotFound(err) != nil {
				problems = append(problems, fmt.Errorf("deleting binding %s: %w", binding.GetName(), err))
				continue
			}
		}
		s.Done(s.Streams, "binding/%s deleted", binding.GetName())
	}
	return errors.Join(problems...)
}
