package command

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/live"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// mostEvents is how many events are printed if the user does not say.
const mostEvents = 200

// eventsOptions are what `events` was asked for.
type eventsOptions struct {
	base.Viewing
	watch   bool
	limit   int
	members []string
}

// NewEvents returns `kubectl fleet events`.
func NewEvents(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &eventsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "events placement/NAME",
		Short: "Show what has happened with a placement on the hub and on its members",
		Long: `Show what has happened with a placement, the oldest first: of each object on each member when it was applied, became
available, failed, or was changed there, as the agents of the members report it in Works; and the events of the hub
about the placement, its runs, bindings, approval requests and evictions.

Of an object on a member the hub knows when it came to be as it is, not what was before, and it forgets its own events
after an hour by default. With --watch each further event gets a line when it is seen: also that an object was
configured once more, as kpt live apply says it, or is no longer placed. The command then goes on until the placement is
deleted or you end it.

Events of a placement that was deleted before this one was made with its name are left out; those of an earlier
binding or run of the placement say so.

The latest 200 are printed; --limit says how many. What you may not read is left out, and a warning says so.`,
		Example: `  # What has happened with placement web?
  kubectl fleet events placement/web

  # Follow a rollout in a second terminal
  kubectl fleet events web --watch

  # All that has happened on a member, for a program
  kubectl fleet events web --member member-3 --limit 0 -o json`,
		Args:              base.ExactlyOne("a placement", "kubectl fleet events placement/web"),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindPlacement),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print further events as they happen.")
	cmd.Flags().IntVar(&o.limit, "limit", mostEvents, "Print so many of the events there are, the latest. 0 prints all.")
	cmd.Flags().StringSliceVar(&o.members, "member", nil, "Show what has happened on these members only.")
	_ = cmd.RegisterFlagCompletionFunc("member", base.CompleteNames(f, hub.KindMember)) // fails only for a flag that is not there
	return cmd
}

func (o *eventsOptions) validate() error {
	switch {
	case o.limit < 0:
		return cli.Usagef("--limit %d is no number of events: use 0 to print all", o.limit)
	case o.watch && o.Structured() && o.Format != cli.FormatJSON:
		return cli.Usagef("--watch prints a line for each event, with --output json as JSON: --output %s has no lines", o.Format)
	}
	return o.Validate()
}

func (o *eventsOptions) run(ctx context.Context, arg string) error {
	c, found, err := o.FindOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	sources := hub.EventSources(*found.Placement)
	reader := hub.Reader{Reader: c}
	for _, source := range sources[:2] {
		if !reader.MayRead(ctx, source) {
			cli.Printf(o.Streams.ErrOut, "Warning: %s left out: you may not read that\n", source.What())
		}
	}
	if o.watch {
		return o.followEvents(ctx, c, *found.Placement, sources)
	}
	var objects []client.Object
	err = o.Factory.Patiently(o.Streams, "reading what has happened", func() (err error) {
		objects, err = hub.Load(ctx, reader, sources)
		return err
	})
	if err != nil {
		return err
	}
	events := o.keepLatest(o.chooseMembers(fleetview.Events(*found.Placement, objects)))
	return base.Show(&o.Viewing, events, fleetview.EventColumns, events, "nothing has happened that the hub still knows of")
}

// chooseMembers returns the events of the members that were asked for.
func (o *eventsOptions) chooseMembers(events []fleetview.Event) []fleetview.Event {
	return slices.DeleteFunc(events, func(e fleetview.Event) bool { return len(o.members) > 0 && !slices.Contains(o.members, e.Member) })
}

// keepLatest returns the latest events, and tells people how many are left out.
func (o *eventsOptions) keepLatest(events []fleetview.Event) []fleetview.Event {
	more := len(events) - o.limit
	if o.limit == 0 || more <= 0 {
		return events
	}
	cli.Printf(o.Streams.ErrOut, "%s before these left out: --limit 0 prints all\n", tree.Plural(more, "event"))
	return events[more:]
}

// followEvents prints events as they happen until the placement is gone.
func (o *eventsOptions) followEvents(ctx context.Context, c client.WithWatch, placement hub.Placement, sources []hub.Source) error {
	feed, err := o.Follow(ctx, c, sources, "reading what has happened")
	if err != nil {
		return err
	}
	log := &fleetview.EventLog{}
	say := o.newPrinter()
	note := ""
	for began := false; ; began = true {
		objects := feed.Objects()
		news := log.News(o.chooseMembers(fleetview.Events(placement, objects)), fleetview.ReportsAreComplete(objects), o.Factory.Clock.Now())
		if !began {
			news = o.keepLatest(news)
		}
		if trouble := feed.Trouble(); trouble != note {
			note = trouble
			cli.Printf(o.Streams.ErrOut, "%s\n", cmp.Or(note, upToDateAgain))
		}
		if err := say(news); err != nil || !isThere(placement, objects) {
			return err
		}
		if err := o.awaitChange(ctx, feed); err != nil {
			return err
		}
	}
}

// isThere reports whether a placement is among objects.
func isThere(placement hub.Placement, objects []client.Object) bool {
	return slices.ContainsFunc(objects, func(object client.Object) bool { return object.GetUID() == placement.Object.GetUID() })
}

// awaitChange waits until something has changed, and long enough for what changes with it.
func (o *eventsOptions) awaitChange(ctx context.Context, feed *hub.Feed) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-feed.Changed():
	}
	frame := o.Factory.Clock.NewTimer(live.Frame)
	defer frame.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-frame.C():
		return nil
	}
}

// newPrinter prints events, for people below the heading that the first have.
func (o *eventsOptions) newPrinter() func([]fleetview.Event) error {
	if o.Structured() {
		encode := cli.LineEncoder(o.Streams.Out)
		return func(events []fleetview.Event) error {
			for _, event := range events {
				if err := encode(event); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var widths []int
	return func(events []fleetview.Event) error {
		made := base.TableOf("", fleetview.EventColumns, events)
		if widths == nil && len(events) > 0 {
			widths = made.Widths(o.Wide())
			return o.PrintTable(o.Streams.Out, made.Columns, made.Rows)
		}
		for i := range made.Rows {
			cli.Printf(o.Streams.Out, "%s\n", made.Line(i, widths, o.Wide(), false))
		}
		return nil
	}
}
