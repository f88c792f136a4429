package placementdecision

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterprofile"
)

const (
	// name is that of the controller, and of its log.
	name = "placement-decision"
	// workers is how many placements are looked at concurrently.
	workers = 4
	// forEver is longer than listing decisions can fail: that must not end the agent.
	forEver = 10 * 365 * 24 * time.Hour
)

// SetupWithManager starts keeping decisions once the hub serves their kind. Nothing else waits for that.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	// Runnables of this type run where the controllers do.
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !clusterprofile.AwaitKind(ctx, mgr, inventoryv1alpha1.GroupVersion.WithKind("PlacementDecision"), name) {
			return nil
		}
		return r.runController(ctx, mgr)
	}))
}

func (r *Reconciler) runController(ctx context.Context, mgr ctrl.Manager) error {
	c, err := controller.NewUnmanaged(name, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers, CacheSyncTimeout: forEver, Logger: mgr.GetLogger().WithName(name),
	})
	if err != nil {
		return fmt.Errorf("creating the placement decision controller: %w", err)
	}
	sources := []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &inventoryv1alpha1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(r.placementOfDecision)),
	}
	for _, scope := range placementv1beta1.Scopes() {
		sources = append(sources,
			source.Kind[client.Object](mgr.GetCache(), scope.NewPlacement(""), &handler.EnqueueRequestForObject{}, predicate.GenerationChangedPredicate{}),
			source.Kind[client.Object](mgr.GetCache(), scope.NewBinding(""), handler.EnqueueRequestsFromMapFunc(placementOfBinding), predicate.Funcs{UpdateFunc: decidesOtherwise}),
		)
	}
	for _, watched := range sources {
		if err := c.Watch(watched); err != nil {
			return fmt.Errorf("watching for placement decisions: %w", err)
		}
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("running the placement decision controller: %w", err)
	}
	return nil
}

// decidesOtherwise passes what changes where a placement goes, and why: rollouts change bindings for other reasons.
func decidesOtherwise(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(placementv1beta1.BindingObject)
	after, also := e.ObjectNew.(placementv1beta1.BindingObject)
	return ok && also && (rules.IsLiveBinding(before) != rules.IsLiveBinding(after) ||
		before.GetBindingSpec().ClusterDecision.Reason != after.GetBindingSpec().ClusterDecision.Reason)
}

func placementOfBinding(_ context.Context, binding client.Object) []reconcile.Request {
	return request(binding.GetNamespace(), binding.GetLabels()[placementv1beta1.ParentPlacementLabel])
}

// placementOfDecision finds the placement of a decision that was changed by hand, or that is of a placement which is gone.
func (r *Reconciler) placementOfDecision(_ context.Context, decision client.Object) []reconcile.Request {
	if decision.GetNamespace() != r.namespace {
		return nil
	}
	placement := decision.GetAnnotations()[PlacementAnnotation]
	if namespace, inNamespace, cut := strings.Cut(placement, "/"); cut {
		return request(namespace, inNamespace)
	}
	return request("", placement)
}

func request(namespace, placement string) []reconcile.Request {
	if placement == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: placement}}}
}
