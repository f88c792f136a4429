package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Suspend leaves clusters of a placement as they are.
func Suspend() Verb {
	return onClusters(Verb{
		Name:  "suspend",
		Short: "Leave clusters of a placement as they are, whatever changes",
		Long: `Leave clusters of a placement as they are, by setting its spec.strategy.suspension: nothing is written for them any more, nor
removed from them. They keep their place, and their agents go on repairing drifts. Without a cluster, all are suspended, those
that are picked later included.

kubectl fleet unsuspend takes it back.`,
		Example: `  # Nothing of web changes on member-3 until further notice
  kubectl fleet suspend web member-3

  # On no cluster
  kubectl fleet suspend web`,
	}, suspendClusters)
}

// Unsuspend goes on with clusters of a placement.
func Unsuspend() Verb {
	return onClusters(Verb{
		Name:  "unsuspend",
		Short: "Go on with clusters of a placement that were suspended",
		Long: `Go on with clusters of a placement that were suspended: what has changed meanwhile is rolled out to them by the strategy of
the placement. Without a cluster, all go on.`,
		Example: `  kubectl fleet unsuspend web member-3
  kubectl fleet unsuspend web`,
	}, unsuspendClusters)
}

// onClusters returns a verb about clusters of a placement, or about all of them.
func onClusters(verb Verb, prepare func(call *Call, p hub.Placement, clusters []string) (Deed, error)) Verb {
	verb.Takes = "PLACEMENT [CLUSTER ...]"
	verb.Group = GroupRollout
	verb.Kinds = []hub.Kind{hub.KindPlacement}
	verb.CheckArguments = func(args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("kubectl fleet %[1]s needs a placement, as in: kubectl fleet %[1]s web member-3", verb.Name)
		}
		return nil
	}
	verb.New = func() *Request {
		var clusters []string
		return &Request{
			Fields: []Field{{Name: "cluster", Argument: true, Into: &clusters, Complete: clustersOf}},
			Prepare: func(_ context.Context, call *Call, target hub.Found) (Deed, error) {
				return prepare(call, *target.Placement, clusters)
			},
		}
	}
	return verb
}

// suspendClusters suspends clusters of a placement, or all. It is no harm to ask for what is the case.
func suspendClusters(call *Call, p hub.Placement, clusters []string) (Deed, error) {
	suspension := suspensionOf(p.Object)
	if suspension.All || len(clusters) > 0 && containsAll(suspension.ClusterNames, clusters) {
		return nothingToDo("%s is suspended already on %s", p.Ref, allOr(clusters)), nil
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		err := call.ChangeStrategy(ctx, p, "suspension", func(strategy *placementv1beta1.RolloutStrategy) any {
			wanted := placementv1beta1.Suspension{All: len(clusters) == 0}
			if !wanted.All {
				wanted.ClusterNames = slices.Concat(ptr.Deref(strategy.Suspension, placementv1beta1.Suspension{}).ClusterNames, clusters)
				slices.Sort(wanted.ClusterNames)
				wanted.ClusterNames = slices.Compact(wanted.ClusterNames)
			}
			strategy.Suspension = &wanted
			return wanted
		})
		return resultSaying("%s suspended on %s", p.Ref, allOr(clusters)), err
	}}, nil
}

// unsuspendClusters goes on with clusters of a placement, or with all.
func unsuspendClusters(call *Call, p hub.Placement, clusters []string) (Deed, error) {
	suspension := suspensionOf(p.Object)
	isMeant := func(name string) bool { return len(clusters) == 0 || slices.Contains(clusters, name) }
	switch {
	case !suspension.All && !slices.ContainsFunc(suspension.ClusterNames, isMeant):
		return nothingToDo("%s is not suspended on %s", p.Ref, allOr(clusters)), nil
	case suspension.All && len(clusters) > 0:
		return Deed{}, fmt.Errorf("%s is suspended on all clusters: %w", p.Ref, errAllSuspended)
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		err := call.ChangeStrategy(ctx, p, "suspension", func(strategy *placementv1beta1.RolloutStrategy) any {
			left := slices.DeleteFunc(slices.Clone(ptr.Deref(strategy.Suspension, placementv1beta1.Suspension{}).ClusterNames), isMeant)
			strategy.Suspension = nil
			if len(left) == 0 {
				return nil
			}
			strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: left}
			return *strategy.Suspension
		})
		return resultSaying("%s unsuspended on %s", p.Ref, allOr(clusters)), err
	}}, nil
}

// errAllSuspended says why single clusters cannot go on.
var errAllSuspended = errors.New("name those that stay suspended instead, with spec.strategy.suspension.clusterNames, or let all go on with kubectl fleet unsuspend and no cluster")

func suspensionOf(p placementv1beta1.PlacementObject) placementv1beta1.Suspension {
	return ptr.Deref(rules.StrategyOf(p).Suspension, placementv1beta1.Suspension{})
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
