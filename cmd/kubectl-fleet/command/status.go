package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/live"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// statusOptions are what `status` was asked for.
type statusOptions struct {
	base.Viewing
	status.Options
	// web shows it in a browser instead.
	watch, web bool
	timeout    time.Duration
	// until is what the user watches for, as written; goal is that.
	until string
	goal  goal
}

// NewStatus returns `kubectl fleet status`.
func NewStatus(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &statusOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "status (run/NAME | placement/NAME | NAME)",
		Short: "Show a run or a placement as a tree of stages, clusters and what fails",
		Long: `Show a staged update run or a placement as a tree: stages, their clusters and gates, and on each cluster that is not
done what holds it up, down to the object that fails.

Beside a placement those overrides are shown that have no effect and look as if they were meant for it, such as one whose
reference to a placement is misspelt.

Of a stage or placement with many clusters only those are shown that something is to be said of; --all shows every
one. If no hub agent works, a warning says for how long: what is shown is what the hub knew then.

With --watch the picture stays up to date, by one watch a kind, until the rollout is over. The command then exits with
0 if it went well, with 1 if it failed, and with 124 if --timeout has passed before. A placement counts as failed if it
will not get better before a user corrects something: invalid selectors, an override or manifest that cannot be applied,
an object that is too large or a Job that has failed for good, too few clusters that fit. It is not over while removals
are held until a user accepts them, nor while its selectors name something that the hub does not have. Where the output
is no terminal, a line is written for every change, and with -o json the whole tree in a line.

With --until the command watches a run until it waits for an approval, has a stage behind it, or is done, and exits with
0 then. If the run cannot come there before a user acts, the command says so and exits: with 3 if the run waits for an
approval, with 4 if it is stopped.`,
		Example: `  # How far is run web-17?
  kubectl fleet status run/web-17

  # Watch it to its end, in a terminal or in a pipeline
  kubectl fleet status web-17 --watch --timeout 30m

  # In a pipeline: until stage canary is updated and its tasks are done
  kubectl fleet status web-17 --until stage=canary --timeout 1h

  # Have a person asked as soon as the run waits for an approval
  kubectl fleet status web-17 --until approval && echo 'web-17 waits for you'

  # What is wrong with a placement, for a program
  kubectl fleet status crp/web -o json

  # Every cluster of a large placement
  kubectl fleet status placement/web --all

  # In a browser
  kubectl fleet status run/web-17 --web

  # A run of a namespaced placement
  kubectl fleet status run/nightly -n shop`,
		Args:              base.ExactlyOne("a run or placement", "kubectl fleet status run/web-17"),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindRun, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			if o.web {
				return o.openDashboard(cmd.Context(), args[0])
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.web, "web", false, "Start kubectl fleet dashboard, and print the link of the page about it.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Keep the picture up to date until the rollout is over.")
	cmd.Flags().BoolVar(&o.All, "all", false, "Show every cluster, however many there are.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "With --watch: give up after this time, with exit code 124. 0 never does.")
	cmd.Flags().StringVar(&o.until, "until", "", "Watch a run until approval, stage=NAME or done, or until it cannot come there before a user acts.")
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.FixedCompletions([]string{goalDone, goalApproval, goalStage + "="}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

// complete reads the flags.
func (o *statusOptions) complete() (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.goal, err = parseGoal(o.until); err != nil {
		return err
	}
	o.watch = o.watch || o.until != ""
	if o.watch && o.Structured() && o.Format != cli.FormatJSON {
		return cli.Usagef("--watch shows a tree, or with --output json the tree in a line for every change: --output %s has no lines", o.Format)
	}
	return nil
}

func (o *statusOptions) run(ctx context.Context, arg string) error {
	c, found, err := o.FindOne(ctx, arg, hub.KindRun, hub.KindPlacement)
	if err != nil {
		return err
	}
	if o.until != "" && found.Run == nil && o.goal.word != goalDone {
		return cli.Usagef("--until %s is for runs: %s is a placement; kubectl fleet get runs lists the runs", o.until, found.Ref())
	}
	if found.Run != nil {
		if err := o.goal.refuseImpossible(ctx, c, *found.Run); err != nil {
			return err
		}
	}
	sources := sourcesOf(found)
	if o.watch {
		return o.followRollout(ctx, c, found, sources)
	}
	var objects []client.Object
	err = o.Factory.Patiently(o.Streams, "reading the clusters", func() (err error) {
		objects, err = hub.Load(ctx, c, sources)
		return err
	})
	if err != nil {
		return err
	}
	picture := o.makePicture(found, objects)
	if o.Structured() {
		return o.Encode(o.Streams.Out, picture.Root)
	}
	o.SayStandstill(ctx, c)
	return o.printTree(picture.Root)
}

// openDashboard shows the object in a browser.
func (o *statusOptions) openDashboard(ctx context.Context, arg string) error {
	_, found, err := o.FindOne(ctx, arg, hub.KindRun, hub.KindPlacement)
	if err != nil {
		return err
	}
	d := &dashboard{factory: o.Factory, streams: o.Streams, address: anyPort}
	return d.run(ctx, found.Ref().Path())
}

func sourcesOf(found hub.Found) []hub.Source {
	if found.Run != nil {
		return hub.RunSources(*found.Run)
	}
	return hub.PlacementSources(*found.Placement)
}

func (o *statusOptions) printTree(root tree.Node) error {
	width, _ := cli.Size(o.Streams.Out)
	if o.Wide() {
		width = 0
	}
	for _, line := range tree.Lines(root, tree.Style{Now: o.Factory.Clock.Now(), Width: width, Colours: o.Factory.Colours(o.Streams.Out)}) {
		cli.PrintStyled(o.Streams.Out, line)
	}
	return nil
}

// makePicture makes the tree of what there is now. An object that is gone is shown as it was last, and as the end.
func (o *statusOptions) makePicture(found hub.Found, objects []client.Object) live.Picture {
	facts := status.Sort(objects)
	facts.Gates.Now = o.Factory.Clock.Now()
	if found.Run != nil {
		return o.runPicture(*found.Run, facts)
	}
	if facts.Placement == nil {
		return live.Picture{Root: tree.Node{Kind: string(hub.KindPlacement), Name: found.Ref().String(), State: tree.StateAbandoned,
			Detail: "deleted"}, Over: true}
	}
	root := status.Placement(*facts.Placement, facts, o.Options)
	return live.Picture{Root: root, Over: root.State == updaterun.PhaseSucceeded || root.State == updaterun.PhaseFailed}
}

func (o *statusOptions) runPicture(run hub.Run, facts status.Facts) live.Picture {
	for _, one := range facts.Runs {
		if one.Ref == run.Ref && one.Object.GetUID() == run.Object.GetUID() {
			root := status.Run(one, facts, o.Options)
			return live.Picture{Root: root, Over: root.State.Over()}
		}
	}
	return live.Picture{Root: tree.Node{Kind: string(hub.KindRun), Name: run.String(), State: tree.StateAbandoned, Detail: "deleted"},
		Over: true}
}

// followRollout shows the tree until the rollout is over.
func (o *statusOptions) followRollout(ctx context.Context, c client.WithWatch, found hub.Found, sources []hub.Source) error {
	if o.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		ctx = limited
	}
	feed, err := o.Follow(ctx, c, sources, "reading the clusters")
	if err != nil {
		return o.explainEnd(err, found, "")
	}
	var last live.Picture
	var come bool
	var came error
	loop := &live.Loop{Clock: o.Factory.Clock, Changed: feed.Changed(), Show: o.newDisplay(), Picture: func() live.Picture {
		objects := feed.Objects()
		last = o.makePicture(found, objects)
		if come, came = o.goal.isOver(found, objects); come {
			last.Over = true
		}
		last.Note = feed.Trouble()
		return last
	}}
	if err := loop.Run(ctx); err != nil {
		return o.explainEnd(err, found, string(last.Root.State))
	}
	if come {
		return came
	}
	if last.Root.State != updaterun.PhaseSucceeded {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	return nil
}

// explainEnd explains why watching ended early.
func (o *statusOptions) explainEnd(err error, found hub.Found, state string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &cli.Exit{Code: cli.CodeTimeout, Err: fmt.Errorf("%s is not %s after %s (--timeout): it is %s", found.Ref(), o.goal,
			o.timeout, state)}
	}
	return err
}

func (o *statusOptions) newDisplay() func(live.Picture) error {
	now := o.Factory.Clock.Now
	if o.Structured() {
		return showWithNotes(&o.Viewing, o.asJSONLines())
	}
	if !cli.IsTerminal(o.Streams.Out) {
		return live.AsLines(o.Streams.Out, now)
	}
	screen := &live.Screen{Out: o.Streams.Out, Size: func() (int, int) { return cli.Size(o.Streams.Out) }}
	return live.OnScreen(screen, now, o.Factory.Colours(o.Streams.Out))
}

// asJSONLines writes the tree in a line whenever it has changed.
func (o *statusOptions) asJSONLines() func(live.Picture) error {
	encode := cli.LineEncoder(o.Streams.Out)
	return func(p live.Picture) error { return encode(p.Root) }
}
