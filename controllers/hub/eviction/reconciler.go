// Package eviction deletes evictions that were executed, some time after they were. What
// comes of evictions is decided in the workflow of their placement.
package eviction

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Reconciler deletes executed evictions.
type Reconciler struct {
	client client.Client
	clock  clock.PassiveClock
	ttl    time.Duration
	// BeforeEnd, if there is one, is called for an eviction before it is deleted. As long as it fails, the eviction stays.
	BeforeEnd func(ctx context.Context, eviction *placementv1beta1.ClusterResourcePlacementEviction) error
}

// NewReconciler makes a Reconciler that keeps executed evictions for so long.
func NewReconciler(c client.Client, clk clock.PassiveClock, ttl time.Duration) *Reconciler {
	return &Reconciler{client: c, clock: clk, ttl: ttl}
}

// Reconcile looks at one eviction.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &placementv1beta1.ClusterResourcePlacementEviction{}
	if err := r.client.Get(ctx, request.NamespacedName, e); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	executed := meta.FindStatusCondition(e.Status.Conditions, placementv1beta1.ConditionTypeExecuted)
	if executed == nil || executed.Status != metav1.ConditionTrue || !e.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := executed.LastTransitionTime.Add(r.ttl).Sub(r.clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if r.BeforeEnd != nil {
		if err := r.BeforeEnd(ctx, e); err != nil {
			return ctrl.Result{}, err
		}
	}
	err := r.client.Delete(ctx, e, client.Preconditions{UID: &e.UID})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting executed eviction %s: %w", e.Name, err)
	}
	return ctrl.Result{}, nil
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("eviction").For(&placementv1beta1.ClusterResourcePlacementEviction{}).Complete(r)
}
