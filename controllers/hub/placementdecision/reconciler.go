package placementdecision

import (
	"context"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// Reconciler keeps the decisions of placements.
type Reconciler struct {
	client client.Client
	// live reads past the cache.
	live      client.Reader
	namespace string
}

// NewReconciler makes a Reconciler that keeps decisions in a namespace. The client reads from a cache, which live reads past.
func NewReconciler(c client.Client, live client.Reader, namespace string) *Reconciler {
	return &Reconciler{client: c, live: live, namespace: namespace}
}

// Reconcile looks at the decisions of one placement.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope := placementv1beta1.Scope{Namespace: request.Namespace}
	there, err := r.listDecisions(ctx, KeyOf(scope, request.Name))
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted, err := r.wantedDecisions(ctx, scope, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	for i := range wanted {
		decision := &wanted[i]
		before := there[decision.Name]
		delete(there, decision.Name)
		if err := r.keepDecision(ctx, before, decision); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, stale := range there {
		err := r.client.Delete(ctx, stale, client.Preconditions{UID: &stale.UID})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting placement decision %s: %w", stale.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

// listDecisions returns the decisions of a placement that are there, by name. Those of others may have the same key, and are left alone.
func (r *Reconciler) listDecisions(ctx context.Context, key string) (map[string]*inventoryv1alpha1.PlacementDecision, error) {
	list := &inventoryv1alpha1.PlacementDecisionList{}
	err := r.client.List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{
		inventoryv1alpha1.DecisionKeyLabel: key, clusterv1beta1.FleetResourceLabel: clusterv1beta1.FleetResourceLabelValue,
	})
	if err != nil {
		return nil, fmt.Errorf("listing placement decisions %s: %w", key, err)
	}
	there := map[string]*inventoryv1alpha1.PlacementDecision{}
	for i := range list.Items {
		if list.Items[i].Annotations[PlacementAnnotation] != "" {
			there[list.Items[i].Name] = &list.Items[i]
		}
	}
	return there, nil
}

// wantedDecisions returns the decisions that a placement is to have; none if it is not there.
func (r *Reconciler) wantedDecisions(ctx context.Context, scope placementv1beta1.Scope, name string) ([]inventoryv1alpha1.PlacementDecision, error) {
	placement := scope.NewPlacement("")
	if err := r.client.Get(ctx, scope.Key(name), placement, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading placement %s: %w", scope.Key(name), err)
	}
	bindings := scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s: %w", scope.Key(name), err)
	}
	return Project(placement, bindings.Objects(), r.namespace), nil
}

// readOwn reads a decision that is there though the cache does not tell: it was created a moment ago, or has lost its labels. It returns nil for
// one of others or of another placement.
func (r *Reconciler) readOwn(ctx context.Context, wanted *inventoryv1alpha1.PlacementDecision) *inventoryv1alpha1.PlacementDecision {
	found := &inventoryv1alpha1.PlacementDecision{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if err != nil || found.Annotations[PlacementAnnotation] != wanted.Annotations[PlacementAnnotation] {
		return nil
	}
	return found
}

// keepDecision makes a decision say what it is to say. It writes nothing if it does.
func (r *Reconciler) keepDecision(ctx context.Context, before, wanted *inventoryv1alpha1.PlacementDecision) error {
	if before == nil {
		err := r.client.Create(ctx, wanted.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			before = r.readOwn(ctx, wanted)
		}
		if before == nil {
			if err != nil {
				return fmt.Errorf("creating placement decision %s/%s: %w", wanted.Namespace, wanted.Name, err)
			}
			return nil
		}
	}
	after := before.DeepCopy()
	after.Decisions = wanted.Decisions
	after.SchedulerName = wanted.SchedulerName
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, wanted.Labels)
	maps.Copy(after.Annotations, wanted.Annotations)
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if err := r.client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing placement decision %s: %w", wanted.Name, err)
	}
	return nil
}
