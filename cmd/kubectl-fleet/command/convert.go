package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/convert"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/manifest"
)

// convertOptions are what `convert` was asked for.
type convertOptions struct {
	convert.Options
	streams   genericiooptions.IOStreams
	output    cli.Output
	files     []string
	recursive bool
	strict    bool
}

// codeUnsupported is the exit code of `convert --strict` if something has no counterpart.
const codeUnsupported = 2

// NewConvert returns `kubectl fleet convert`.
func NewConvert(_ *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &convertOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "convert --filename FILE",
		Short: "Make fleetflow's manifests of KubeFed's or Karmada's",
		Long: `Make manifests for fleetflow of those of KubeFed (federated objects, FederatedTypeConfig, ReplicaSchedulingPreference,
KubeFedCluster, KubeFedConfig) or Karmada (PropagationPolicy, ClusterPropagationPolicy, OverridePolicy,
ClusterOverridePolicy, Cluster). It reads files only, no cluster; other objects pass through as they are. Give it all
manifests at once: what is placed together is found by looking at all of them.

What acts otherwise here is named above each object and on standard error, as FILE: kind/name: field: CLASS: text:
  changed      it acts otherwise here
  ignored      it had no effect there either
  unsupported  there is no counterpart

Both systems write to all clusters at once, so the placements do, too; --safe-rollout leaves batches of 25%. The steps of
handing over stand at the end of the output. With --strict the exit status is 2 if anything is unsupported.`,
		Example: `  # Everything in a folder
  kubectl fleet convert -f manifests/ -R > fleet.yaml

  # First only report what would change on the members
  kubectl fleet convert -f karmada.yaml --report-diff | kubectl apply -f -

  # What runs in a KubeFed control plane
  kubectl get federateddeployments,federatednamespaces -A -o yaml | kubectl fleet convert -f -`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return o.run() },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files or folders of manifests; - is the standard input.")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "Read folders within folders, too.")
	flags.StringVar(&o.From, "from", convert.FromAuto, "System to convert from: auto, kubefed or karmada; manifests of the other are an error.")
	flags.StringVarP(&o.output.Format, "output", "o", cli.FormatYAML, "Format: yaml or json. Only yaml has the notes and steps as comments.")
	flags.BoolVar(&o.strict, "strict", false, "Exit with status 2 if anything has no counterpart.")
	flags.BoolVar(&o.ReportDiff, "report-diff", false, "Have placements report what they would change instead of changing it.")
	flags.BoolVar(&o.SafeRollout, "safe-rollout", false, "Roll changes out in batches of 25% instead of to all clusters at once.")
	flags.BoolVar(&o.KeepTemplateMetadata, "keep-template-metadata", false,
		"Keep annotations and finalizers of KubeFed's templates, which never reached a member.")
	flags.BoolVar(&o.PickFixed, "pick-fixed", false, "Make Karmada's clusterNames the clusters to place on, not candidates.")
	flags.StringVar(&o.RegionLabel, "region-label", "topology.kubernetes.io/region", "Label of MemberClusters that has the region.")
	flags.StringVar(&o.ZoneLabel, "zone-label", "topology.kubernetes.io/zone", "Label of MemberClusters that has the zone, if there is one.")
	flags.StringVar(&o.ProviderLabel, "provider-label", "fleetflow.io/provider", "Label of MemberClusters that has the provider.")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(convertSystems, cobra.ShellCompDirectiveNoFileComp))                             // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{cli.FormatYAML, cli.FormatJSON}, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	return cmd
}

var convertSystems = []string{convert.FromAuto, convert.FromKubeFed, convert.FromKarmada}

func (o *convertOptions) run() error {
	switch {
	case len(o.files) == 0:
		return cli.Usagef("kubectl fleet convert needs manifests: --filename names files or folders, - is the standard input")
	case !slices.Contains(convertSystems, o.From):
		return fmt.Errorf("--from %q is not known: use auto, kubefed or karmada", o.From)
	case !o.output.Structured():
		return fmt.Errorf("--output %q is not a format of manifests: use yaml or json", o.output.Format)
	}
	inputs, err := o.readManifests()
	if err != nil {
		return err
	}
	result, err := convert.Convert(inputs, o.Options)
	if err != nil {
		return err
	}
	unsupported := 0
	for _, note := range result.Notes {
		cli.Printf(o.streams.ErrOut, "%s\n", note)
		if note.Class == convert.Unsupported {
			unsupported++
		}
	}
	print := result.PrintYAML
	if o.output.Format == cli.FormatJSON {
		print = result.PrintJSON
	}
	if err := print(o.streams.Out); err != nil {
		return err
	}
	if o.strict && unsupported > 0 {
		return &cli.Exit{Code: codeUnsupported, Err: fmt.Errorf("%d fields or objects have no counterpart: see the notes marked %s", unsupported,
			convert.Unsupported)}
	}
	return nil
}

// readManifests reads the manifests, those of lists one by one.
func (o *convertOptions) readManifests() ([]convert.Input, error) {
	found, err := manifest.Read(o.streams.In, o.files, o.recursive)
	if err != nil {
		return nil, err
	}
	inputs := make([]convert.Input, 0, len(found))
	for _, one := range found {
		inputs = append(inputs, convert.Input{Source: one.Source, Object: one.Object})
	}
	return inputs, nil
}
