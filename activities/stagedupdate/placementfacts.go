package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// readPlacementFacts reads the placement and its latest policy snapshot live.
func (p *planner) readPlacementFacts(ctx context.Context, name, usedIndex string) (*facts, error) {
	return p.readPlacementFactsFrom(ctx, p.acts.Live, name, usedIndex)
}

// readPlacementFactsFrom does so from the cache or live. The
// snapshot that a run has used is asked for by name: as long as it is the
// latest, that spares a list, for which the API server first makes sure that
// its cache is as new as the store.
func (p *planner) readPlacementFactsFrom(ctx context.Context, from client.Reader, name, usedIndex string) (*facts, error) {
	f := &facts{}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		f.placement, err = hubread.Placement(gctx, from, p.scope, name)
		return err
	})
	g.Go(func() (err error) {
		f.policy, err = p.readPolicy(gctx, from, name, usedIndex)
		return err
	})
	return f, g.Wait()
}

// readPolicy reads the latest policy snapshot of a placement; nil when there is none.
func (p *planner) readPolicy(ctx context.Context, from client.Reader, placement,
	usedIndex string) (placementv1beta1.PolicySnapshotObject, error) {
	if index, err := strconv.Atoi(usedIndex); err == nil {
		used := p.scope.NewPolicySnapshot(placementv1beta1.PolicySnapshotName(placement, index))
		err := from.Get(ctx, client.ObjectKeyFromObject(used), used)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading policy snapshot %d of placement %s: %w", index, placement, err)
		}
		if err == nil && rules.IsLatestSnapshot(used) {
			return used, nil
		}
	}
	list := p.scope.NewPolicySnapshotList()
	err := from.List(ctx, list, client.InNamespace(p.scope.Namespace), client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue})
	if err != nil {
		return nil, fmt.Errorf("listing the policy snapshots of placement %s: %w", placement, err)
	}
	return rules.LatestSnapshot(list.Objects(), placementv1beta1.PolicyIndexLabel), nil
}

func (p *planner) readBindings(ctx context.Context, f *facts) error {
	list := p.scope.NewBindingList()
	if err := p.acts.Live.List(ctx, list, client.InNamespace(p.scope.Namespace),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: f.placement.GetName()}); err != nil {
		return fmt.Errorf("listing the bindings of placement %s: %w", f.placement.GetName(), err)
	}
	f.bindings = list.Objects()
	return nil
}

// readMemberClusters reads the names and labels of the clusters of the fleet.
func (p *planner) readMemberClusters(ctx context.Context, f *facts) error {
	release, err := attempt.Acquire(ctx, p.acts.FleetReads)
	if err != nil {
		return err
	}
	defer release()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberClusterList"))
	if err := p.acts.Live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing member clusters: %w", err)
	}
	f.clusters = make([]clusterv1beta1.MemberCluster, len(list.Items))
	for i := range list.Items {
		f.clusters[i].Name = list.Items[i].Name
		f.clusters[i].Labels = list.Items[i].Labels
	}
	return nil
}

// readOverrides picks the overrides that concern a snapshot of a placement. A run without those that the placement requires is refused.
func (p *planner) readOverrides(ctx context.Context, placement placementv1beta1.PlacementObject, index string) (*override.Matcher, error) {
	overrides, err := p.acts.Snapshots.Overrides(ctx, placement, index)
	if lacking, is := errors.AsType[*override.LackingError](err); is {
		return nil, refuse("%v", lacking)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the overrides of placement %s: %w", placement.GetName(), err)
	}
	return overrides, nil
}

// readOtherRuns reads all runs from the cache, not live: their statuses are large, and admission has
// checked them before.
func (p *planner) readOtherRuns(ctx context.Context, f *facts) error {
	list := p.scope.NewUpdateRunList()
	if err := p.acts.Client.List(ctx, list, client.InNamespace(p.scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing update runs: %w", err)
	}
	f.runs = list.Objects()
	return nil
}
