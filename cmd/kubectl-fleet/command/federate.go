package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/federation"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// federateOptions are what `federate` was asked for.
type federateOptions struct {
	base.Steering
	federation.Options
	file, strategy string
	contents       bool
	skip           []string
}

// NewFederate returns `kubectl fleet federate`.
func NewFederate(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &federateOptions{Steering: base.Steering{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "federate (TYPE NAME... | TYPE/NAME... | --filename FILE)",
		Short: "Make a placement of objects that are on the hub",
		Long: `Make a ClusterResourcePlacement of objects that are on the hub: of a namespace, with everything in it, of
cluster-scoped objects, or of some objects of one namespace, which are placed with the namespace and nothing else of it.

With --skip-api-resources the placement names the kinds that are in the namespace now, except those left out; other
kinds that come into it later are not placed. To keep a kind from being placed by any placement, use the hub agent's values
skippedPropagatingAPIs or allowedPropagatingAPIs.

With --filename nothing is created: the placement of the objects in the file is printed, for kubectl create -f -. Objects
of several namespaces are placed with everything in them, as one placement cannot name them.`,
		Example: `  # A namespace and everything in it, on every member
  kubectl fleet federate namespace web

  # On two members, rolled out in stages
  kubectl fleet federate ns web --clusters member-1,member-2 --strategy External

  # Without ConfigMaps and everything of the API group apps
  kubectl fleet federate ns web --skip-api-resources configmaps,apps

  # One ConfigMap, and the namespace that it lives in
  kubectl fleet federate configmap settings --namespace web

  # Cluster-scoped objects; only print the placement
  kubectl fleet federate clusterrole reader writer --name roles -o yaml

  # What a file has
  kubectl fleet federate --filename web.yaml`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddPrintingFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "", "Name of the placement. (default: that of the first object)")
	flags.StringSliceVar(&o.Clusters, "clusters", nil, "Place on these members only. (default: on all)")
	flags.StringVar(&o.strategy, "strategy", "", "How changes roll out: RollingUpdate, or External for staged runs. (default: RollingUpdate)")
	flags.BoolVar(&o.contents, "contents", true, "Place what is in a namespace, too; --contents=false places the bare namespace.")
	flags.StringSliceVar(&o.skip, "skip-api-resources", nil, "Leave these resources (configmaps) or API groups (apps) in the namespace out.")
	flags.StringVarP(&o.file, "filename", "f", "", "Print the placement of the objects in this file; - is the standard input.")
	flags.Lookup("output").Usage = "Print the placement as yaml or json instead of creating it."
	_ = cmd.RegisterFlagCompletionFunc("clusters", base.CompleteNames(f, hub.KindMember)) // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions([]string{
		string(placementv1beta1.RollingUpdateRolloutStrategyType), string(placementv1beta1.ExternalRolloutStrategyType),
	}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

// complete refuses what does not go together.
func (o *federateOptions) complete(args []string) error {
	if o.file != "" && !o.Shows() {
		o.Output.Format = cli.FormatYAML
	}
	if o.Shows() && !o.Dry() {
		o.DryRun = string(steer.DryRunClient)
	}
	if err := o.Consent.Validate(); err != nil {
		return err
	}
	o.Strategy = placementv1beta1.RolloutStrategyType(o.strategy)
	o.NamespaceOnly = !o.contents
	switch {
	case o.file != "" && len(args) > 0:
		return cli.Usagef("--filename names the objects: leave TYPE and NAME out")
	case o.file != "" && len(o.skip) > 0:
		return cli.Usagef("--skip-api-resources looks at what is in the namespace on the hub: it cannot be used with --filename")
	case o.file == "" && len(args) == 0:
		return cli.Usagef("kubectl fleet federate needs a type and a name, as in: kubectl fleet federate namespace web; or --filename")
	case len(o.skip) > 0 && !o.contents:
		return cli.Usagef("--contents=false leaves everything in the namespace out: there is nothing for --skip-api-resources to skip")
	}
	return o.Options.Validate()
}

func (o *federateOptions) run(ctx context.Context, args []string) error {
	if err := o.complete(args); err != nil {
		return err
	}
	finder, err := o.newFinder()
	if err != nil {
		return err
	}
	objects, err := o.findObjects(ctx, finder, args)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := federation.Check(object); err != nil {
			return err
		}
	}
	objects, notes := federation.Gather(objects)
	for _, note := range notes {
		cli.Printf(o.Streams.ErrOut, "Note: %s\n", note)
	}
	if len(o.skip) > 0 {
		if o.Inside, err = o.namespacedKinds(ctx, finder.Client, objects); err != nil {
			return err
		}
	}
	placement, err := federation.Placement(objects, o.Options)
	if err != nil {
		return err
	}
	return o.createPlacement(ctx, finder.Client, placement)
}

// findObjects returns those that the arguments or the file name.
func (o *federateOptions) findObjects(ctx context.Context, finder *federation.Finder, args []string) ([]federation.Object, error) {
	if o.file == "" {
		return finder.Named(ctx, args)
	}
	found, err := finder.InFile(o.file, o.Streams.In)
	if err != nil {
		return nil, err
	}
	if gathered, _ := federation.Gather(found); federation.Together(gathered) == nil {
		return found, nil
	}
	lifted, notes := federation.Lift(found)
	for _, note := range notes {
		cli.Printf(o.Streams.ErrOut, "Note: %s\n", note)
	}
	return lifted, nil
}

func (o *federateOptions) createPlacement(ctx context.Context, c client.WithWatch, placement *placementv1beta1.ClusterResourcePlacement) error {
	ref := hub.Ref{Kind: hub.KindPlacement, Name: placement.Name}
	if o.Sends() {
		switch err := o.Writer(c).Create(ctx, placement); {
		case apierrors.IsAlreadyExists(err):
			return fmt.Errorf("%s is there already: choose another name with --name, or see kubectl fleet status %s", ref, ref)
		case err != nil:
			return fmt.Errorf("creating %s: %w", ref, err)
		}
	}
	if o.Shows() {
		return nil
	}
	where := "all members"
	if len(o.Clusters) > 0 {
		where = strings.Join(o.Clusters, ", ")
	}
	o.Done(o.Streams, "%s created: %s on %s", ref, describeSelection(placement), where)
	return nil
}

// describeSelection returns what a placement selects, in words.
func describeSelection(placement *placementv1beta1.ClusterResourcePlacement) string {
	var words []string
	for _, term := range placement.Spec.ResourceSelectors {
		word := strings.ToLower(term.Kind)
		if term.Name != "" {
			word += "/" + term.Name
		} else {
			word = "its " + term.Kind + "s"
		}
		words = append(words, word)
	}
	return strings.Join(slices.Compact(words), ", ")
}

func (o *federateOptions) newFinder() (*federation.Finder, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	mapper, err := o.Factory.Mapper()
	if err != nil {
		return nil, fmt.Errorf("asking the hub for the kinds it serves: %w", err)
	}
	namespace, _, err := o.Factory.Namespace()
	return &federation.Finder{Client: c, Mapper: mapper, Namespace: namespace}, err
}

// namespacedKinds returns the kinds that are in a namespace, except for those that are skipped.
func (o *federateOptions) namespacedKinds(ctx context.Context, c client.WithWatch, objects []federation.Object) ([]schema.GroupVersionKind, error) {
	if len(objects) != 1 || objects[0].GroupKind() != snapshot.NamespaceKind {
		return nil, cli.Usagef("--skip-api-resources is about what is in a namespace: name one namespace and nothing else")
	}
	groups, lists, err := o.Factory.Discover()
	if err != nil {
		return nil, err
	}
	kinds, idle := federation.Skip(snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}).Contents(), o.skip)
	for _, entry := range idle {
		cli.Printf(o.Streams.ErrOut, "Note: --skip-api-resources %s skips nothing: no kind or API group that could be placed is called so\n", entry)
	}
	found := []schema.GroupVersionKind{}
	for _, kind := range kinds {
		any, err := federation.Holds(ctx, c, objects[0].Name, kind)
		if err != nil {
			return nil, err
		}
		if any {
			found = append(found, kind.GroupVersionKind)
		}
	}
	return found, nil
}
