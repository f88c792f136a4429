package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// offer reads what a word can be, for completion. What cannot be read offers nothing.
type offer func(ctx context.Context, f *cli.Factory, args []string) ([]string, error)

// completed completes a word with what an offer reads.
func completed(f *cli.Factory, read offer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		found, err := read(ctx, f, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// thenClusters completes the arguments after the first one with the clusters of the placement or run that it names.
func thenClusters(f *cli.Factory, first cobra.CompletionFunc, kind hub.Kind) cobra.CompletionFunc {
	clusters := completed(f, func(ctx context.Context, f *cli.Factory, args []string) ([]string, error) {
		c, err := f.Client()
		if err != nil {
			return nil, err
		}
		found, err := find(ctx, f, c, args[0], kind)
		if err != nil {
			return nil, err
		}
		all, err := clustersOf(ctx, c, found)
		return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(args[1:], name) }), err
	})
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(cmd, args, word)
		}
		return clusters(cmd, args, word)
	}
}

// clustersOf are the clusters of a placement, or of a run.
func clustersOf(ctx context.Context, c client.Reader, found hub.Found) ([]string, error) {
	var names []string
	if found.Run != nil {
		for _, stage := range updaterun.Read(found.Run.Object).Stages {
			for _, cluster := range stage.Clusters {
				names = append(names, cluster.Name)
			}
		}
		return names, nil
	}
	bindings, err := hub.Reader{Reader: c}.BindingsOf(ctx, found.Ref())
	for _, binding := range bindings {
		names = append(names, binding.Spec.TargetCluster)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// completeRuns completes the first argument with the runs of which something holds.
func completeRuns(f *cli.Factory, holds func(hub.Run) bool) cobra.CompletionFunc {
	runs := completed(f, func(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
		reader, err := newReader(f)
		if err != nil {
			return nil, err
		}
		all, err := reader.Runs(ctx)
		var names []string
		for _, run := range all {
			if holds(run) {
				names = append(names, string(hub.KindRun)+"/"+run.Name)
			}
		}
		return names, err
	})
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return runs(cmd, args, word)
	}
}

// isUnderWay says that a run has not ended.
func isUnderWay(run hub.Run) bool { return run.Outcome() == "" }

// waitsForApproval says that a run waits for an approval now.
func waitsForApproval(run hub.Run) bool {
	return isUnderWay(run) && slices.ContainsFunc(gates(run), func(g gate) bool { return g.begun && !g.approved })
}

// waitingStages are the stages at which the run that is named waits for an approval.
func waitingStages(ctx context.Context, f *cli.Factory, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, f, c, args[0], hub.KindRun)
	if err != nil {
		return nil, err
	}
	var stages []string
	for _, gate := range gates(*found.Run) {
		if gate.begun && !gate.approved {
			stages = append(stages, gate.stage)
		}
	}
	return stages, nil
}

// strategies are the strategies that runs can have: those without a namespace, or those of the one that is named.
func strategies(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
	reader, err := newReader(f)
	if err != nil {
		return nil, err
	}
	scope := placementv1beta1.Scope{Namespace: reader.Namespace}
	return namesIn(ctx, reader, scope.NewUpdateStrategyList(), client.InNamespace(scope.Namespace))
}

// namesOfHolds are the names of the holds there are.
func namesOfHolds(ctx context.Context, f *cli.Factory, args []string) ([]string, error) {
	if len(args) > 0 {
		return nil, nil
	}
	reader, err := newReader(f)
	if err != nil {
		return nil, err
	}
	return namesIn(ctx, reader, &fleetflowv1alpha1.RolloutHoldList{})
}

// kubeContexts are the contexts of the kubeconfig.
func kubeContexts(_ context.Context, f *cli.Factory, _ []string) ([]string, error) {
	config, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

// namesIn are the names of the objects of a list.
func namesIn(ctx context.Context, c client.Reader, list client.ObjectList, options ...client.ListOption) ([]string, error) {
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	var names []string
	for _, object := range objects {
		if named, is := object.(metav1.Object); is {
			names = append(names, named.GetName())
		}
	}
	return names, err
}
