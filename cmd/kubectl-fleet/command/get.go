package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/overview"
)

// getOptions are what `get` was asked for.
type getOptions struct {
	viewing
	// kinds to show, names to show only.
	kinds []hub.Kind
	names []string
	// allNamespaces takes no notice of the namespace that is named.
	allNamespaces bool
}

// NewGet returns `kubectl fleet get`.
func NewGet(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &getOptions{viewing: viewing{factory: f, streams: streams}}
	cmd := &cobra.Command{
		Use:   "get [members|placements|runs|replicas|holds] [NAME ...]",
		Short: "Show the fleet at a glance: members, placements, runs",
		Long: `Show the fleet at a glance: its members with the health of their agents, its placements with how many of their
clusters have and run what is placed, and its staged update runs with what each waits for.

A member whose agent has missed three heartbeats has a '!' behind the age of the last one. Namespaced placements
and runs are shown for all namespaces, with -n for one.

Replicas are shown for placements that are named and divide them: for every workload and cluster, how many the cluster
was assigned, how many the hub asks it for now, and how many are ready there.

Holds are what has stopped the line, with what waits for them: see kubectl fleet hold.`,
		Example: `  # Everything
  kubectl fleet get

  # Only the members, with versions and taints
  kubectl fleet get members -o wide

  # Two runs
  kubectl fleet get runs web-17 web-18

  # How the replicas of a placement are divided over its clusters, and why
  kubectl fleet get replicas web -o wide

  # The names of members that have not joined, for a script
  kubectl fleet get members -o json | jq -r '.items[] | select(any(.status.conditions[]?; .type=="Joined" and .status=="True") | not) | .metadata.name'`,
		ValidArgsFunction: completeGet(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == replicasWord {
				return o.runReplicas(cmd.Context(), args[1:])
			}
			if len(args) > 0 && args[0] == holdsWord {
				return o.runHolds(cmd.Context(), args[1:])
			}
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show what is in all namespaces, and what is in none, whatever -n says.")
	return cmd
}

// kindsByName are the words for what `get` shows.
var kindsByName = map[string]hub.Kind{
	"members": hub.KindMember, "member": hub.KindMember, "membercluster": hub.KindMember, "memberclusters": hub.KindMember, "mc": hub.KindMember, "clusters": hub.KindMember,
	"placements": hub.KindPlacement, "placement": hub.KindPlacement, "crp": hub.KindPlacement, "rp": hub.KindPlacement,
	"runs": hub.KindRun, "run": hub.KindRun, "csur": hub.KindRun, "crsur": hub.KindRun, "sur": hub.KindRun,
}

func (o *getOptions) complete(args []string) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o.kinds = []hub.Kind{hub.KindMember, hub.KindPlacement, hub.KindRun}
	if len(args) == 0 || args[0] == "all" {
		return nil
	}
	o.kinds, o.names = nil, args[1:]
	for word := range strings.SplitSeq(args[0], ",") {
		kind, ok := kindsByName[strings.ToLower(word)]
		if !ok {
			return fmt.Errorf("%q is not something to get: use members, placements, runs, replicas or holds", word)
		}
		o.kinds = append(o.kinds, kind)
	}
	return nil
}

// fleet is what `get` has read.
type fleet struct {
	members    []clusterv1beta1.MemberCluster
	placements []hub.Placement
	runs       []hub.Run
}

func (o *getOptions) run(ctx context.Context) error {
	reader, err := newReader(o.factory)
	if err != nil {
		return err
	}
	if o.allNamespaces {
		reader.Namespace = ""
	}
	read := &fleet{}
	if err := o.factory.Patiently(o.streams, "reading the fleet", func() error { return o.read(ctx, reader, read) }); err != nil {
		return err
	}
	if len(read.members)+len(read.placements)+len(read.runs) == 0 {
		if err := reader.CheckHub(ctx); err != nil {
			return err
		}
	}
	if err := o.filter(read); err != nil {
		return err
	}
	if o.Structured() {
		return o.Encode(o.streams.Out, read.list(o.kinds))
	}
	return o.print(read)
}

func (o *getOptions) wants(kind hub.Kind) bool { return slices.Contains(o.kinds, kind) }

func (o *getOptions) read(ctx context.Context, reader hub.Reader, into *fleet) (err error) {
	if o.wants(hub.KindMember) {
		into.members, err = reader.Members(ctx)
		if apierrors.IsForbidden(err) && reader.Namespace != "" && len(o.kinds) > 1 {
			o.kinds = slices.DeleteFunc(o.kinds, func(kind hub.Kind) bool { return kind == hub.KindMember })
			cli.Printf(o.streams.ErrOut, "Members are not shown: you may not read them. The role hub-agent-viewer lets you; an administrator of the hub can bind it\n")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if o.wants(hub.KindPlacement) {
		if into.placements, err = reader.Placements(ctx); err != nil {
			return err
		}
	}
	// What a placement is at may be up to a run.
	if o.wants(hub.KindRun) || o.wants(hub.KindPlacement) {
		into.runs, err = reader.Runs(ctx)
	}
	return err
}

// filter keeps what is named, and misses what is not there.
func (o *getOptions) filter(read *fleet) error {
	if len(o.names) == 0 {
		return nil
	}
	found := map[string]bool{}
	drop := func(kind hub.Kind, name string) bool {
		found[name] = found[name] || o.wants(kind) && slices.Contains(o.names, name)
		return !slices.Contains(o.names, name)
	}
	read.members = slices.DeleteFunc(read.members, func(m clusterv1beta1.MemberCluster) bool { return drop(hub.KindMember, m.Name) })
	read.placements = slices.DeleteFunc(read.placements, func(p hub.Placement) bool { return drop(hub.KindPlacement, p.Name) })
	if o.wants(hub.KindRun) {
		read.runs = slices.DeleteFunc(read.runs, func(r hub.Run) bool { return drop(hub.KindRun, r.Name) })
	}
	for _, name := range o.names {
		if !found[name] {
			return fmt.Errorf("there is no %s named %q; kubectl fleet get lists what there is", joinKinds(o.kinds), name)
		}
	}
	return nil
}

func joinKinds(kinds []hub.Kind) string {
	words := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		words = append(words, string(kind))
	}
	return strings.Join(words, " or ")
}

// list is a Kubernetes list of what was read.
func (f *fleet) list(kinds []hub.Kind) map[string]any {
	items := []client.Object{}
	for i := range f.members {
		f.members[i].SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberCluster"))
		items = append(items, &f.members[i])
	}
	for _, p := range f.placements {
		items = append(items, p.Object)
	}
	if slices.Contains(kinds, hub.KindRun) {
		for _, r := range f.runs {
			items = append(items, r.Object)
		}
	}
	for _, item := range items {
		item.SetManagedFields(nil)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": metav1.ListMeta{}, "items": items}
}

func (o *getOptions) print(read *fleet) error {
	now := o.factory.Clock.Now()
	parts := map[hub.Kind]func() error{
		hub.KindMember:    func() error { return o.printMembers(overview.Members(read.members, now)) },
		hub.KindPlacement: func() error { return o.printPlacements(overview.Placements(read.placements, read.runs, now)) },
		hub.KindRun:       func() error { return o.printRuns(overview.Runs(read.runs, now)) },
	}
	for i, kind := range o.kinds {
		if len(o.kinds) > 1 {
			if i > 0 {
				cli.Printf(o.streams.Out, "\n")
			}
			cli.Printf(o.streams.Out, "%sS\n", strings.ToUpper(string(kind)))
		}
		if err := parts[kind](); err != nil {
			return err
		}
	}
	return nil
}

// none says that there is nothing of a kind; the overview has it in its place, a single table on the side.
func (o *getOptions) none(what string) error {
	out := io.Writer(o.streams.ErrOut)
	if len(o.kinds) > 1 {
		out = o.streams.Out
	}
	cli.Printf(out, "No %s.\n", what)
	return nil
}

func (o *getOptions) printMembers(rows []overview.Member) error {
	if len(rows) == 0 {
		return o.none("members")
	}
	columns := []cli.Column{
		{Name: "Name"}, {Name: "Joined"}, {Name: "Healthy"}, {Name: "Heartbeat"}, {Name: "Nodes"}, {Name: "CPU"}, {Name: "Memory"}, {Name: "Age"},
		{Name: "Version", Wide: true}, {Name: "Taints", Wide: true},
	}
	cells := make([][]string, 0, len(rows))
	for _, row := range rows {
		heartbeat := row.Heartbeat
		if row.Late {
			heartbeat += " !"
		}
		cells = append(cells, []string{row.Name, row.Joined, row.Healthy, heartbeat, row.Nodes, row.CPU, row.Memory, row.Age, row.Version, strings.Join(row.Taints, ",")})
	}
	return o.PrintTable(o.streams.Out, columns, cells)
}

func (o *getOptions) printPlacements(rows []overview.Placement) error {
	if len(rows) == 0 {
		return o.none("placements")
	}
	columns := []cli.Column{
		{Name: "Name"}, {Name: "Policy"}, {Name: "Selected"}, {Name: "Applied"}, {Name: "Available"}, {Name: "Rollout"}, {Name: "Age"},
		{Name: "Snapshot", Wide: true}, {Name: "Resources", Wide: true}, {Name: "Message", Wide: true},
	}
	cells := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, []string{qualified(row.Namespace, row.Name), row.Policy, row.Selected, row.Applied, row.Available, row.Rollout, row.Age, row.Snapshot, row.Resources, row.Message})
	}
	return o.PrintTable(o.streams.Out, columns, cells)
}

func (o *getOptions) printRuns(rows []overview.Run) error {
	if len(rows) == 0 {
		return o.none("runs")
	}
	columns := []cli.Column{
		{Name: "Name"}, {Name: "Placement"}, {Name: "Snapshot"}, {Name: "State"}, {Name: "Stage"}, {Name: "Clusters"}, {Name: "Waiting For"}, {Name: "Age"},
		{Name: "Strategy", Wide: true}, {Name: "Message", Wide: true},
	}
	cells := make([][]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, []string{qualified(row.Namespace, row.Name), row.Placement, row.Snapshot, row.State, row.Stage, row.Progress, row.WaitingFor, row.Age, row.Strategy, row.Message})
	}
	return o.PrintTable(o.streams.Out, columns, cells)
}

// qualified is namespace/name for namespaced objects.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// completionLimit is how long the shell may wait for names.
const completionLimit = 3 * time.Second

func completeGet(f *cli.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"members", "placements", "runs", replicasWord}, cobra.ShellCompDirectiveNoFileComp
		}
		if args[0] == replicasWord {
			return names(cmd.Context(), f, hub.KindPlacement), cobra.ShellCompDirectiveNoFileComp
		}
		return names(cmd.Context(), f, kindsByName[args[0]]), cobra.ShellCompDirectiveNoFileComp
	}
}

// names are the names of the objects of a kind, for completion: where they cannot be had there are none.
func names(ctx context.Context, f *cli.Factory, kind hub.Kind) []string {
	ctx, cancel := context.WithTimeout(ctx, completionLimit)
	defer cancel()
	reader, err := newReader(f)
	if err != nil {
		return nil
	}
	found, err := reader.Names(ctx, kind)
	if err != nil {
		return nil
	}
	return found
}

// newReader reads the hub, or what is in the namespace that the user has named.
func newReader(f *cli.Factory) (hub.Reader, error) {
	c, err := f.Client()
	if err != nil {
		return hub.Reader{}, err
	}
	namespace, named, err := f.Namespace()
	if !named {
		namespace = ""
	}
	return hub.Reader{Reader: c, Namespace: namespace}, err
}
