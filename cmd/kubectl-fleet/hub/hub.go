// Package hub reads what commands look at from a hub. Placements, runs and approval requests are the same to it in both
// scopes, and a kind that the hub does not serve is one it has no objects of: so commands work on every hub with
// KubeFleet's API, whatever part of it.
package hub

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Reader reads a hub.
type Reader struct {
	// Client reads.
	client.Reader
	// Namespace confines lists of namespaced kinds; empty for all namespaces.
	Namespace string
}

// listServed reads a list; of a kind the hub does not serve there is nothing.
func listServed(ctx context.Context, c client.Reader, what string, into client.ObjectList, options ...client.ListOption) error {
	if err := c.List(ctx, into, options...); err != nil && !Unserved(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

// Unserved reports whether a request failed because the hub does not serve the kind.
func Unserved(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		details := status.Status().Details
		return apierrors.IsNotFound(err) && (details == nil || details.Name == "")
	}
	failed := &apiutil.ErrResourceDiscoveryFailed{}
	if !errors.As(err, &failed) || len(*failed) == 0 {
		return false
	}
	for _, cause := range *failed {
		if !apierrors.IsNotFound(cause) {
			return false
		}
	}
	return true
}

// ErrNoHub means that a cluster serves nothing of KubeFleet's API.
var ErrNoHub = errors.New("this cluster is no hub, as it serves none of the fleet's kinds: choose the context of the hub with --context; kubectl config get-contexts lists what there is")

// CheckHub returns ErrNoHub for a cluster that does not know members.
func (r Reader) CheckHub(ctx context.Context) error {
	if err := r.List(ctx, &clusterv1beta1.MemberClusterList{}, client.Limit(1)); Unserved(err) {
		return ErrNoHub
	}
	return nil // a later read reports what else is wrong
}

// Members returns the clusters of the fleet.
func (r Reader) Members(ctx context.Context) ([]clusterv1beta1.MemberCluster, error) {
	members := &clusterv1beta1.MemberClusterList{}
	err := listServed(ctx, r, "member clusters", members)
	return members.Items, err
}

// Placements returns the placements of both scopes; with a namespace, only those in it.
func (r Reader) Placements(ctx context.Context) ([]Placement, error) {
	return listBoth[placementv1beta1.PlacementObject](ctx, r, "placements", &placementv1beta1.ClusterResourcePlacementList{},
		&placementv1beta1.ResourcePlacementList{}, PlacementOf)
}

// Runs returns the staged update runs of both scopes; with a namespace, only those in it.
func (r Reader) Runs(ctx context.Context) ([]Run, error) {
	return listBoth[placementv1beta1.UpdateRunObject](ctx, r, "staged update runs", &placementv1beta1.ClusterStagedUpdateRunList{},
		&placementv1beta1.StagedUpdateRunList{}, RunOf)
}

// AllApprovals returns the approval requests of both scopes; with a namespace, only those in it.
func (r Reader) AllApprovals(ctx context.Context) ([]Approval, error) {
	return listBoth[placementv1beta1.ApprovalRequestObject](ctx, r, "approval requests", &placementv1beta1.ClusterApprovalRequestList{},
		&placementv1beta1.ApprovalRequestList{}, ApprovalOf)
}

// Strategies returns the strategies of staged update runs of both scopes; with a namespace, only those in it.
func (r Reader) Strategies(ctx context.Context) ([]placementv1beta1.UpdateStrategyObject, error) {
	return listBoth[placementv1beta1.UpdateStrategyObject](ctx, r, "strategies", &placementv1beta1.ClusterStagedUpdateStrategyList{},
		&placementv1beta1.StagedUpdateStrategyList{}, kindSetter[placementv1beta1.UpdateStrategyObject](placementv1beta1.Scope.UpdateStrategyKind))
}

// Overrides returns the overrides of both scopes; with a namespace, only those in it.
func (r Reader) Overrides(ctx context.Context) ([]placementv1beta1.OverrideObject, error) {
	return listBoth[placementv1beta1.OverrideObject](ctx, r, "overrides", &placementv1beta1.ClusterResourceOverrideList{},
		&placementv1beta1.ResourceOverrideList{}, kindSetter[placementv1beta1.OverrideObject](overrideKind))
}

func overrideKind(scope placementv1beta1.Scope) schema.GroupVersionKind {
	if scope.Namespaced() {
		return placementv1beta1.GroupVersion.WithKind("ResourceOverride")
	}
	return placementv1beta1.GroupVersion.WithKind("ClusterResourceOverride")
}

// kindSetter returns what sets the kind of an object, which those of a list do not have.
func kindSetter[T placementv1beta1.Object](kindOf func(placementv1beta1.Scope) schema.GroupVersionKind) func(T) T {
	return func(object T) T {
		object.GetObjectKind().SetGroupVersionKind(kindOf(placementv1beta1.ScopeOf(object)))
		return object
	}
}

// Bindings returns the bindings of the placements of both scopes; with a namespace, only those in it.
func (r Reader) Bindings(ctx context.Context) ([]Binding, error) {
	return listBoth[placementv1beta1.BindingObject](ctx, r, "bindings", &placementv1beta1.ClusterResourceBindingList{},
		&placementv1beta1.ResourceBindingList{}, BindingOf)
}

// listBoth returns views of the objects of both scopes; with a namespace, only of those in it.
func listBoth[T placementv1beta1.Object, V any](ctx context.Context, r Reader, what string, clusterScoped,
	namespaced placementv1beta1.ObjectList[T], viewOf func(T) V) ([]V, error) {
	var found []V
	if r.Namespace == "" {
		var err error
		if found, err = listViews(ctx, r, what, clusterScoped, viewOf); err != nil {
			return nil, err
		}
	}
	more, err := listViews(ctx, r, "namespaced "+what, namespaced, viewOf, client.InNamespace(r.Namespace))
	return append(found, more...), err
}

// listViews returns views of the objects of a list that is read.
func listViews[T placementv1beta1.Object, V any](ctx context.Context, r Reader, what string, objects placementv1beta1.ObjectList[T],
	viewOf func(T) V, options ...client.ListOption) ([]V, error) {
	if err := listServed(ctx, r, what, objects, options...); err != nil {
		return nil, err
	}
	var found []V
	for _, object := range objects.Objects() {
		found = append(found, viewOf(object))
	}
	return found, nil
}

// inScope returns the options of a list in a scope.
func inScope(scope placementv1beta1.Scope, options ...client.ListOption) []client.ListOption {
	if scope.Namespaced() {
		options = append(options, client.InNamespace(scope.Namespace))
	}
	return options
}
