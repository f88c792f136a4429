// Package clusterwatch wakes the placements that would decide anew because a
// cluster joined, left, or became another one to their policies. A heartbeat that
// changes nothing wakes nobody.
package clusterwatch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/index"
	wfcontract "github.com/fleetflow/fleetflow/workflows/contract"
)

// Marker takes note that the workflow of a placement has to look again.
type Marker interface {
	Mark(ref wfcontract.Ref, poke wfcontract.Poke)
}

// Request asks to look at a cluster.
type Request struct {
	Cluster string
	// Figures says that only properties and resource usage have changed.
	Figures bool
}

// Reconciler finds out which placements care about a cluster.
type Reconciler struct {
	client client.Reader
	marker Marker
	clock  clock.PassiveClock
}

// NewReconciler returns a reconciler that reads from a cache with the hub's indexes.
func NewReconciler(cache client.Reader, marker Marker, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{client: cache, marker: marker, clock: clk}
}

// Reconcile wakes the placements that care about a cluster as it is now.
func (r *Reconciler) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	cluster, err := r.cluster(ctx, request.Cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	stakes, err := r.stakes(ctx, request.Cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	placements := &placementv1beta1.ClusterResourcePlacementList{}
	if err := r.client.List(ctx, placements, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing placements: %w", err)
	}
	for i := range placements.Items {
		placement := &placements.Items[i]
		if placement.DeletionTimestamp != nil || request.Figures && !selectsByFigures(placement.Spec.Policy) {
			continue
		}
		stake := stakes[placement.Name]
		stake.Policy = placement.Spec.Policy
		if stake.Picked, err = r.picked(ctx, placement); err != nil {
			return reconcile.Result{}, err
		}
		if Cares(stake, cluster, r.clock.Now()) {
			r.mark(placement)
		}
	}
	return reconcile.Result{}, nil
}

// cluster is nil if it is gone.
func (r *Reconciler) cluster(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	cluster := &clusterv1beta1.MemberCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return cluster, nil
}

// stakes tells by placement which bindings there are on a cluster.
func (r *Reconciler) stakes(ctx context.Context, cluster string) (map[string]Stake, error) {
	bindings := &placementv1beta1.ClusterResourceBindingList{}
	if err := r.client.List(ctx, bindings, client.MatchingFields{index.ByCluster: cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings of cluster %s: %w", cluster, err)
	}
	stakes := map[string]Stake{}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		name := binding.Labels[placementv1beta1.ParentPlacementLabel]
		stake := stakes[name]
		stake.Bound = stake.Bound || holds(binding)
		stake.Terminating = stake.Terminating || binding.DeletionTimestamp != nil
		stakes[name] = stake
	}
	return stakes, nil
}

// holds says whether a binding stands for a cluster that is picked.
func holds(binding *placementv1beta1.ClusterResourceBinding) bool {
	return binding.DeletionTimestamp == nil && binding.Spec.State != placementv1beta1.BindingStateUnscheduled
}

// picked counts the clusters of a placement, if its policy counts them.
func (r *Reconciler) picked(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement) (int, error) {
	policy := placement.Spec.Policy
	if policy == nil || policy.PlacementType != placementv1beta1.PickNPlacementType {
		return 0, nil
	}
	bindings := &placementv1beta1.ClusterResourceBindingList{}
	if err := r.client.List(ctx, bindings, client.MatchingFields{index.ByPlacement: placement.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing the bindings of placement %s: %w", placement.Name, err)
	}
	count := 0
	for i := range bindings.Items {
		if holds(&bindings.Items[i]) {
			count++
		}
	}
	return count, nil
}

func (r *Reconciler) mark(placement *placementv1beta1.ClusterResourcePlacement) {
	r.marker.Mark(
		wfcontract.Ref{Kind: wfcontract.KindClusterResourcePlacement, Name: placement.Name, UID: string(placement.UID)},
		wfcontract.Poke{UID: string(placement.UID), Generation: placement.Generation, Cause: wfcontract.CauseClusters},
	)
}
