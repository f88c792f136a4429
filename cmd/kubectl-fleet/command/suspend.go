package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewSuspend returns `kubectl fleet suspend`.
func NewSuspend(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := steeringVerb(f, streams, hub.KindPlacement, &cobra.Command{
		Use:   "suspend PLACEMENT [CLUSTER ...]",
		Short: "Leave clusters of a placement as they are, whatever changes",
		Long: `Leave clusters of a placement as they are, by setting its spec.strategy.suspension: nothing is written for them any more, nor
removed from them. They keep their place, and their agents go on repairing drifts. Without a cluster, all are suspended, those
that are picked later included.

kubectl fleet unsuspend takes it back.`,
		Example: `  # Nothing of web changes on member-3 until further notice
  kubectl fleet suspend web member-3

  # On no cluster
  kubectl fleet suspend web`,
		Args: atLeastAPlacement("suspend"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, clusters []string) error {
		return s.suspend(ctx, c, *found.Placement, clusters)
	})
	cmd.ValidArgsFunction = thenClusters(f, completeRefs(f, hub.KindPlacement), hub.KindPlacement)
	return cmd
}

// NewUnsuspend returns `kubectl fleet unsuspend`.
func NewUnsuspend(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := steeringVerb(f, streams, hub.KindPlacement, &cobra.Command{
		Use:   "unsuspend PLACEMENT [CLUSTER ...]",
		Short: "Go on with clusters of a placement that were suspended",
		Long: `Go on with clusters of a placement that were suspended: what has changed meanwhile is rolled out to them by the strategy of
the placement. Without a cluster, all go on.`,
		Example: `  kubectl fleet unsuspend web member-3
  kubectl fleet unsuspend web`,
		Args: atLeastAPlacement("unsuspend"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, clusters []string) error {
		return s.unsuspend(ctx, c, *found.Placement, clusters)
	})
	cmd.ValidArgsFunction = thenClusters(f, completeRefs(f, hub.KindPlacement), hub.KindPlacement)
	return cmd
}

func atLeastAPlacement(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("kubectl fleet %[1]s needs a placement, as in: kubectl fleet %[1]s web member-3", verb)
		}
		return nil
	}
}

// suspend suspends clusters of a placement, or all. It is no harm to ask for what is the case.
func (s *steering) suspend(ctx context.Context, c client.WithWatch, p hub.Placement, clusters []string) error {
	suspension := suspensionOf(p.Object)
	if suspension.All || len(clusters) > 0 && containsAll(suspension.ClusterNames, clusters) {
		s.Done(s.streams, "%s is suspended already on %s", p.Ref, allOr(clusters))
		return nil
	}
	err := s.changeStrategy(ctx, c, p, "suspension", func(strategy *placementv1beta1.RolloutStrategy) any {
		wanted := placementv1beta1.Suspension{All: len(clusters) == 0}
		if !wanted.All {
			wanted.ClusterNames = slices.Concat(ptr.Deref(strategy.Suspension, placementv1beta1.Suspension{}).ClusterNames, clusters)
			slices.Sort(wanted.ClusterNames)
			wanted.ClusterNames = slices.Compact(wanted.ClusterNames)
		}
		strategy.Suspension = &wanted
		return wanted
	})
	if err != nil {
		return err
	}
	s.Done(s.streams, "%s suspended on %s", p.Ref, allOr(clusters))
	return nil
}

// unsuspend goes on with clusters of a placement, or with all.
func (s *steering) unsuspend(ctx context.Context, c client.WithWatch, p hub.Placement, clusters []string) error {
	suspension := suspensionOf(p.Object)
	isNone := !suspension.All && !slices.ContainsFunc(suspension.ClusterNames,
		func(name string) bool { return len(clusters) == 0 || slices.Contains(clusters, name) })
	switch {
	case isNone:
		s.Done(s.streams, "%s is not suspended on %s", p.Ref, allOr(clusters))
		return nil
	case suspension.All && len(clusters) > 0:
		return fmt.Errorf("%s is suspended on all clusters: %w", p.Ref, errAllSuspended)
	}
	err := s.changeStrategy(ctx, c, p, "suspension", func(strategy *placementv1beta1.RolloutStrategy) any {
		left := slices.DeleteFunc(slices.Clone(ptr.Deref(strategy.Suspension, placementv1beta1.Suspension{}).ClusterNames),
			func(name string) bool {
				return len(clusters) == 0 || slices.Contains(clusters, name)
			})
		strategy.Suspension = nil
		if len(left) == 0 {
			return nil
		}
		strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: left}
		return *strategy.Suspension
	})
	if err != nil {
		return err
	}
	s.Done(s.streams, "%s unsuspended on %s", p.Ref, allOr(clusters))
	return nil
}

// errAllSuspended says why single clusters cannot go on.
var errAllSuspended = errors.New("name those that stay suspended instead, with spec.strategy.suspension.clusterNames, or let all go on with kubectl fleet unsuspend and no cluster")

func suspensionOf(p placementv1beta1.PlacementObject) placementv1beta1.Suspension {
	return ptr.Deref(placementv1beta1.StrategyOf(p).Suspension, placementv1beta1.Suspension{})
}

func containsAll(list, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// allOr names clusters; none stand for all.
func allOr(clusters []string) string {
	if len(clusters) == 0 {
		return "all clusters"
	}
	return strings.Join(clusters, ", ")
}
