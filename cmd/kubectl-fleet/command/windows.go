package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/manifest"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// windowsOptions are what `windows` was asked for.
type windowsOptions struct {
	base.Viewing
	next     int
	at, zone string
	files    []string
}

// NewWindows returns `kubectl fleet windows`.
func NewWindows(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "windows",
		Short: "Show when rollouts may start: the rollout windows, which are open, and when that changes",
		Long: `Show the rollout windows of the hub: which are open, when each opens or closes next, and what it is about.

An Allow lets clusters start while it is open; while a Deny is open none starts. Times are shown in the time zone of the
window, and in UTC.`,
		Example: `  # Which windows are open?
  kubectl fleet windows

  # When does one of them open?
  kubectl fleet windows show eu-nights --next 10

  # When would one open that is not created yet?
  kubectl fleet windows test -f eu-nights.yaml`,
		Args:              base.RefuseUnknown,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.printList(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	cmd.AddCommand(newWindowsShow(f, streams), newWindowsTest(f, streams))
	return cmd
}

func newWindowsShow(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the next openings of a rollout window",
		Example: `  # When does it open?
  kubectl fleet windows show eu-nights

  # When did it, or will it, around a clock change?
  kubectl fleet windows show eu-nights --at 2027-03-26T00:00Z`,
		Args:              base.ExactlyOne("a rollout window", "kubectl fleet windows show eu-nights"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			windows, err := o.readWindows(cmd.Context())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(windows, func(w brake.Window) bool { return w.Name == args[0] })
			if at < 0 {
				return fmt.Errorf("there is no rollout window %q; kubectl fleet windows lists them all", args[0])
			}
			return o.printOpenings(windows[at : at+1])
		},
	}
	o.addTimes(cmd)
	return cmd
}

func newWindowsTest(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "test -f FILE",
		Short: "Show when the rollout windows of a manifest would open, without the hub",
		Long: `Show when the rollout windows of a manifest would open. Nothing is sent to the hub. kubectl apply --dry-run=server
shows what the hub's API server checks in addition to the times.`,
		Example: `  # The next openings
  kubectl fleet windows test -f eu-nights.yaml

  # Three openings around a clock change, as people in New York see them
  kubectl fleet windows test -f eu-nights.yaml --at 2027-03-26T00:00Z --next 3 --zone America/New_York`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			windows, err := o.readManifests()
			if err != nil {
				return err
			}
			return o.printOpenings(windows)
		},
	}
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "Files or folders of manifests; - is the standard input.")
	o.addTimes(cmd)
	return cmd
}

// addTimes adds the flags of commands that show openings.
func (o *windowsOptions) addTimes(cmd *cobra.Command) {
	o.AddFlags(cmd)
	cmd.Flags().IntVar(&o.next, "next", 5, "How many openings to show.")
	cmd.Flags().StringVar(&o.at, "at", "", "The time to look from, such as 2027-03-28T00:00Z; without it, now.")
	cmd.Flags().StringVar(&o.zone, "zone", "", "The time zone to show times in, such as America/New_York; without it, that of the window.")
}

// readWindows reads the windows of the hub.
func (o *windowsOptions) readWindows(ctx context.Context) ([]brake.Window, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	var list fleetflowv1alpha1.RolloutWindowList
	err = c.List(ctx, &list)
	if meta.IsNoMatchError(err) {
		return nil, errors.New("the hub has no RolloutWindows: have its operator install the CustomResourceDefinitions of the hub agent's chart")
	}
	if err != nil {
		return nil, fmt.Errorf("listing the rollout windows: %w", err)
	}
	windows := brake.CompileWindows(list.Items)
	slices.SortFunc(windows, func(a, b brake.Window) int { return strings.Compare(a.Name, b.Name) })
	return windows, nil
}

// readManifests reads the windows of manifests.
func (o *windowsOptions) readManifests() ([]brake.Window, error) {
	if len(o.files) == 0 {
		return nil, cli.Usagef("kubectl fleet windows test needs manifests: --filename names files or folders, - is the standard input")
	}
	objects, err := manifest.Of[fleetflowv1alpha1.RolloutWindow](o.Streams.In, o.files, "RolloutWindow")
	if err != nil {
		return nil, err
	}
	var windows []brake.Window
	for _, window := range objects {
		windows = append(windows, brake.CompileWindow(window))
	}
	return windows, nil
}

// printList prints a table of the windows of the hub.
func (o *windowsOptions) printList(ctx context.Context) error {
	windows, err := o.readWindows(ctx)
	if err != nil {
		return err
	}
	now := o.Factory.Clock.Now()
	views, err := o.makeViews(ctx, windows, now)
	if err != nil {
		return err
	}
	return base.Show(&o.Viewing, views, fleetview.WindowColumns(now), views, noWindows)
}

// noWindows is what is said of a hub without rollout windows.
const noWindows = "There are no rollout windows: rollouts start at any time."

// makeViews returns what is shown of windows, as of a time.
func (o *windowsOptions) makeViews(ctx context.Context, windows []brake.Window, now time.Time) ([]fleetview.Window, error) {
	matches, err := o.describeMatches(ctx, windows)
	if err != nil {
		return nil, err
	}
	views := make([]fleetview.Window, 0, len(windows))
	for i := range windows {
		view := fleetview.WindowOf(&windows[i], now, nil)
		view.Matches = matches[i]
		views = append(views, view)
	}
	return views, nil
}

// printOpenings prints the next openings of windows.
func (o *windowsOptions) printOpenings(windows []brake.Window) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.next < 1 || o.next > 1000 {
		return cli.Usagef("--next %d is not a number of openings: use 1 to 1000", o.next)
	}
	now, err := o.startTime()
	if err != nil {
		return err
	}
	in, err := o.shownIn()
	if err != nil {
		return err
	}
	var views []fleetview.Window
	for i := range windows {
		view := fleetview.WindowOf(&windows[i], now, in)
		view.AddOpenings(&windows[i], now, in, o.next)
		views = append(views, view)
	}
	if o.Structured() {
		if err := o.Encode(o.Streams.Out, views); err != nil {
			return err
		}
		return refuseInvalid(views)
	}
	for i, v := range views {
		if i > 0 {
			cli.Printf(o.Streams.Out, "\n")
		}
		if err := o.printWindow(v, now); err != nil {
			return err
		}
	}
	return refuseInvalid(views)
}

// printWindow prints one window and its openings.
func (o *windowsOptions) printWindow(v fleetview.Window, now time.Time) error {
	cli.Printf(o.Streams.Out, "%s: %s, scope %s, %s\n", v.Name, v.Type, v.Scope, v.TimeZone)
	if v.Message != "" {
		cli.Printf(o.Streams.Out, "%s\n", tree.Printable(v.Message))
	}
	state := v.State
	if v.Changes != nil {
		state += fmt.Sprintf(" until %s, which is %s from then", fleetview.WithUTC(v.Changes), tree.Elapsed(v.Changes.Sub(now)))
	}
	cli.Printf(o.Streams.Out, "%s: %s\n", fleetview.WithUTC(&now), state)
	if len(v.Openings) == 0 {
		return nil
	}
	cli.Printf(o.Streams.Out, "\n")
	return base.PrintRows(&o.Viewing, fleetview.OpeningColumns, v.Openings)
}

// refuseInvalid fails if a window can not be followed.
func refuseInvalid(views []fleetview.Window) error {
	for _, v := range views {
		if v.Fault != "" {
			return fmt.Errorf("rollout window %s is not valid (%s): nothing starts where it counts", v.Name, v.Fault)
		}
	}
	return nil
}

// startTime returns the time to look from.
func (o *windowsOptions) startTime() (time.Time, error) {
	if o.at == "" {
		return o.Factory.Clock.Now().UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, o.at); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("--at %q is not a time: write one such as 2027-03-28T00:00Z or 2027-03-28T02:00+02:00", o.at)
}

// shownIn returns the time zone to show times in; nil for that of each window.
func (o *windowsOptions) shownIn() (*time.Location, error) {
	if o.zone == "" {
		return nil, nil
	}
	location, err := time.LoadLocation(o.zone)
	if err != nil {
		return nil, cli.Usagef("--zone %q is not a time zone: name one such as America/New_York, or UTC", o.zone)
	}
	return location, nil
}

// describeMatches returns what each window is about.
func (o *windowsOptions) describeMatches(ctx context.Context, windows []brake.Window) ([]string, error) {
	reader, err := base.NewReader(o.Factory)
	if err != nil {
		return nil, err
	}
	reader.Namespace = ""
	var members clusterv1beta1.MemberClusterList
	if err := reader.List(ctx, &members); err != nil {
		return nil, fmt.Errorf("listing the member clusters: %w", err)
	}
	placements, err := reader.Placements(ctx)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]map[string]string{}
	if slices.ContainsFunc(windows, func(w brake.Window) bool { return w.Spec.NamespaceSelector != nil }) {
		if namespaces, err = reader.NamespaceLabels(ctx); err != nil {
			return nil, err
		}
	}
	texts := make([]string, len(windows))
	for i := range windows {
		texts[i] = fleetview.WindowMatches(&windows[i], members.Items, placements, namespaces)
	}
	return texts, nil
}
