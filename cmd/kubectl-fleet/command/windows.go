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
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// windowsOptions are what `windows` was asked for.
type windowsOptions struct {
	viewing
	next     int
	at, zone string
	files    []string
}

// NewWindows returns `kubectl fleet windows`.
func NewWindows(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{viewing: viewing{factory: f, streams: streams}}
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
		Args:              refuseUnknown,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.list(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	cmd.AddCommand(newWindowsShow(f, streams), newWindowsTest(f, streams))
	return cmd
}

func newWindowsShow(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{viewing: viewing{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the next openings of a rollout window",
		Example: `  # When does it open?
  kubectl fleet windows show eu-nights

  # When did it, or will it, around a clock change?
  kubectl fleet windows show eu-nights --at 2027-03-26T00:00Z`,
		Args:              exactlyOne("a rollout window", "kubectl fleet windows show eu-nights"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			windows, err := o.read(cmd.Context())
			if err != nil {
				return err
			}
			at := slices.IndexFunc(windows, func(w brake.Window) bool { return w.Name == args[0] })
			if at < 0 {
				return fmt.Errorf("there is no rollout window %q; kubectl fleet windows lists them all", args[0])
			}
			return o.show(windows[at : at+1])
		},
	}
	o.addTimes(cmd)
	return cmd
}

func newWindowsTest(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &windowsOptions{viewing: viewing{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "test -f FILE",
		Short: "Show when the rollout windows of a manifest would open, without the hub",
		Long: `Show when the rollout windows of a manifest would open. Nothing is sent to the hub. What its API server checks beside
the times, kubectl apply --dry-run=server tells.`,
		Example: `  # The next openings
  kubectl fleet windows test -f eu-nights.yaml

  # Three openings around a clock change, as people in New York see them
  kubectl fleet windows test -f eu-nights.yaml --at 2027-03-26T00:00Z --next 3 --zone America/New_York`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			windows, err := o.load()
			if err != nil {
				return err
			}
			return o.show(windows)
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

// read reads the windows of the hub.
func (o *windowsOptions) read(ctx context.Context) ([]brake.Window, error) {
	c, err := o.factory.Client()
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

// load reads the windows of manifests.
func (o *windowsOptions) load() ([]brake.Window, error) {
	if len(o.files) == 0 {
		return nil, cli.Usagef("kubectl fleet windows test needs manifests: --filename names files or folders, - is the standard input")
	}
	objects, err := manifestsOf[fleetflowv1alpha1.RolloutWindow](o.streams.In, o.files, "RolloutWindow")
	if err != nil {
		return nil, err
	}
	var windows []brake.Window
	for _, window := range objects {
		windows = append(windows, brake.CompileWindow(window))
	}
	return windows, nil
}

// list prints a table of the windows of the hub.
func (o *windowsOptions) list(ctx context.Context) error {
	windows, err := o.read(ctx)
	if err != nil {
		return err
	}
	matches, err := o.matches(ctx, windows)
	if err != nil {
		return err
	}
	now := o.factory.Clock.Now()
	views := make([]windowView, 0, len(windows))
	for i := range windows {
		view := viewOf(&windows[i], now, nil)
		view.Matches = matches[i]
		views = append(views, view)
	}
	if o.Structured() {
		return o.Encode(o.streams.Out, views)
	}
	if len(views) == 0 {
		cli.Printf(o.streams.ErrOut, "There are no rollout windows: rollouts start at any time.\n")
		return nil
	}
	columns := []cli.Column{{Name: "Name"}, {Name: "Type"}, {Name: "Scope"}, {Name: "State"}, {Name: "Next Change"}, {Name: "In"},
		{Name: "Matches"}, {Name: "Zone", Wide: true}, {Name: "Message", Wide: true}}
	var rows [][]string
	for _, v := range views {
		in := ""
		if v.Changes != nil {
			in = tree.Elapsed(v.Changes.Sub(now))
		}
		rows = append(rows, []string{v.Name, v.Type, v.Scope, v.State, withUTC(v.Changes), in, v.Matches, v.TimeZone, v.Message})
	}
	return o.PrintTable(o.streams.Out, columns, rows)
}

// show prints the next openings of windows.
func (o *windowsOptions) show(windows []brake.Window) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.next < 1 || o.next > 1000 {
		return cli.Usagef("--next %d is not a number of openings: use 1 to 1000", o.next)
	}
	now, err := o.from()
	if err != nil {
		return err
	}
	in, err := o.shownIn()
	if err != nil {
		return err
	}
	var views []windowView
	for i := range windows {
		view := viewOf(&windows[i], now, in)
		view.addOpenings(&windows[i], now, in, o.next)
		views = append(views, view)
	}
	if o.Structured() {
		if err := o.Encode(o.streams.Out, views); err != nil {
			return err
		}
		return refuseInvalid(views)
	}
	for i, v := range views {
		if i > 0 {
			cli.Printf(o.streams.Out, "\n")
		}
		if err := o.print(v, now); err != nil {
			return err
		}
	}
	return refuseInvalid(views)
}

// print prints one window and its openings.
func (o *windowsOptions) print(v windowView, now time.Time) error {
	cli.Printf(o.streams.Out, "%s: %s, scope %s, %s\n", v.Name, v.Type, v.Scope, v.TimeZone)
	if v.Message != "" {
		cli.Printf(o.streams.Out, "%s\n", tree.Printable(v.Message))
	}
	state := v.State
	if v.Changes != nil {
		state += fmt.Sprintf(" until %s, which is %s from then", withUTC(v.Changes), tree.Elapsed(v.Changes.Sub(now)))
	}
	cli.Printf(o.streams.Out, "%s: %s\n", withUTC(&now), state)
	if len(v.Openings) == 0 {
		return nil
	}
	cli.Printf(o.streams.Out, "\n")
	columns := []cli.Column{{Name: "Opens"}, {Name: "Last Start"}, {Name: "Closes"}, {Name: "Lasts"}}
	var rows [][]string
	for _, opening := range v.Openings {
		lasts := "for good"
		if opening.Closes != nil {
			lasts = tree.Elapsed(opening.Closes.Sub(opening.Opens))
		}
		lastStart := ""
		if opening.LastStart != nil && !opening.LastStart.Equal(*opening.Closes) {
			lastStart = withUTC(opening.LastStart)
		}
		rows = append(rows, []string{withUTC(&opening.Opens), lastStart, withUTC(opening.Closes), lasts})
	}
	return o.PrintTable(o.streams.Out, columns, rows)
}

// refuseInvalid fails if a window can not be followed.
func refuseInvalid(views []windowView) error {
	for _, v := range views {
		if v.Fault != "" {
			return fmt.Errorf("rollout window %s is not valid (%s): nothing starts where it counts", v.Name, v.Fault)
		}
	}
	return nil
}

// from is the time to look from.
func (o *windowsOptions) from() (time.Time, error) {
	if o.at == "" {
		return o.factory.Clock.Now().UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, o.at); err == nil {
			return at, nil
		}
	}
	return time.Time{}, cli.Usagef("--at %q is not a time: write one such as 2027-03-28T00:00Z or 2027-03-28T02:00+02:00", o.at)
}

// shownIn is the time zone to show times in; nil for that of each window.
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

// matches says what each window is about.
func (o *windowsOptions) matches(ctx context.Context, windows []brake.Window) ([]string, error) {
	reader, err := newReader(o.factory)
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
		texts[i] = matchesOf(&windows[i], members.Items, placements, namespaces)
	}
	return texts, nil
}

func matchesOf(w *brake.Window, members []clusterv1beta1.MemberCluster, placements []hub.Placement,
	namespaces map[string]map[string]string) string {
	switch w.Spec.Scope {
	case fleetflowv1alpha1.WindowStage:
		if len(w.Spec.Stages) == 0 {
			return "stages that name it"
		}
		return fmt.Sprintf("stage(s) %s", strings.Join(w.Spec.Stages, ", "))
	case fleetflowv1alpha1.WindowPlacement:
		n := 0
		for _, placement := range placements {
			if w.CoversPlacement(fleetflowv1alpha1.GateLabels(placement.Object), namespaces[placement.Namespace]) {
				n++
			}
		}
		return fmt.Sprintf("%d placement(s)", n)
	}
	n := 0
	for i := range members {
		if w.CoversCluster(members[i].Labels) {
			n++
		}
	}
	return fmt.Sprintf("%d cluster(s)", n)
}

// windowView is what is shown of a window.
type windowView struct {
	Name     string        `json:"name"`
	Type     string        `json:"type"`
	Scope    string        `json:"scope"`
	TimeZone string        `json:"timeZone"`
	Message  string        `json:"message,omitempty"`
	State    string        `json:"state"`
	Fault    string        `json:"fault,omitempty"`
	Changes  *time.Time    `json:"changes,omitempty"`
	Matches  string        `json:"matches,omitempty"`
	Openings []openingView `json:"openings,omitempty"`
}

type openingView struct {
	Opens     time.Time  `json:"opens"`
	LastStart *time.Time `json:"lastStart,omitempty"`
	Closes    *time.Time `json:"closes,omitempty"`
}

func viewOf(w *brake.Window, now time.Time, in *time.Location) windowView {
	v := windowView{
		Name: w.Name, Type: string(w.Spec.Type), Scope: string(w.Spec.Scope), TimeZone: w.Spec.TimeZone, Message: w.Spec.Message, State: "closed",
	}
	if w.IsOpen(now) {
		v.State = "open"
	}
	if w.Fault != nil {
		v.Fault = w.Fault.Reason + ": " + w.Fault.Message
		v.State = fmt.Sprintf("%s (not valid: %s)", v.State, w.Fault.Reason)
		return v
	}
	v.Changes = shown(w.Calendar.Changes(now), in)
	return v
}

func (v *windowView) addOpenings(w *brake.Window, now time.Time, in *time.Location, next int) {
	if w.Calendar == nil {
		return
	}
	for _, opening := range w.Calendar.Openings(now, next) {
		v.Openings = append(v.Openings, openingView{Opens: *shown(opening.Start, in), LastStart: shown(opening.Close, in),
			Closes: shown(opening.End, in)})
	}
}

// shown is a time in a time zone; nil if there is none.
func shown(at time.Time, in *time.Location) *time.Time {
	if at.IsZero() {
		return nil
	}
	if in != nil {
		at = at.In(in)
	}
	return &at
}

// withUTC writes a time with its zone, and in UTC unless that is its zone.
func withUTC(at *time.Time) string {
	if at == nil {
		return ""
	}
	text := at.Format("Mon 2006-01-02 15:04:05 -07:00")
	text = strings.Replace(text, ":00 ", " ", 1)
	if _, offset := at.Zone(); offset == 0 {
		return strings.Replace(text, "+00:00", "UTC", 1)
	}
	return fmt.Sprintf("%s (%s UTC)", text, at.UTC().Format("15:04"))
}
