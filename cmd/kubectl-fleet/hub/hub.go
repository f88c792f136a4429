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
	"k8s.io/apimachinery/pkg/runtime"
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

// list reads a list; of a kind the hub does not serve there is nothing.
func (r Reader) list(ctx context.Context, what string, into client.ObjectList, options ...client.ListOption) error {
	if err := r.List(ctx, into, options...); err != nil && !Unserved(err) {
		return fmt.Errorf("listing %s: %w", what, err)
	}
	return nil
}

// Unserved says whether a request failed because the hub does not serve the kind.
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
	return nil // what else is wrong is told by who reads more
}

// Members returns the clusters of the fleet.
func (r Reader) Members(ctx context.Context) ([]clusterv1beta1.MemberCluster, error) {
	list := &clusterv1beta1.MemberClusterList{}
	err := r.list(ctx, "member clusters", list)
	return list.Items, err
}

// Placements returns the placements of both scopes; with a namespace, only those in it.
func (r Reader) Placements(ctx context.Context) ([]Placement, error) {
	var found []Placement
	if r.Namespace == "" {
		list := &placementv1beta1.ClusterResourcePlacementList{}
		if err := r.list(ctx, "placements", list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			found = append(found, ClusterPlacement(&list.Items[i]))
		}
	}
	list := &placementv1beta1.ResourcePlacementList{}
	if err := r.list(ctx, "namespaced placements", list, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		found = append(found, NamespacedPlacement(&list.Items[i]))
	}
	return found, nil
}

// Runs returns the staged update runs of both scopes; with a namespace, only those in it.
func (r Reader) Runs(ctx context.Context) ([]Run, error) {
	var found []Run
	if r.Namespace == "" {
		list := &placementv1beta1.ClusterStagedUpdateRunList{}
		if err := r.list(ctx, "staged update runs", list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			found = append(found, ClusterRun(&list.Items[i]))
		}
	}
	list := &placementv1beta1.StagedUpdateRunList{}
	if err := r.list(ctx, "namespaced staged update runs", list, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		found = append(found, NamespacedRun(&list.Items[i]))
	}
	return found, nil
}

// AllBindings returns the bindings of all placements, of the kind of the list.
func (r Reader) AllBindings(ctx context.Context, list client.ObjectList) ([]Binding, error) {
	if err := r.list(ctx, "bindings", list); err != nil {
		return nil, err
	}
	var found []Binding
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if binding, is := BindingOf(object.(client.Object)); is {
			found = append(found, binding)
		}
		return nil
	})
	return found, err
}
