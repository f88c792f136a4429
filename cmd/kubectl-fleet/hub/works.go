package hub

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Works returns the Works of a placement for one member.
func (r Reader) Works(ctx context.Context, placement Ref, cluster string) ([]placementv1beta1.Work, error) {
	of := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.Name}
	if placement.Namespace != "" {
		of[placementv1beta1.ParentNamespaceLabel] = placement.Namespace
	}
	list := &placementv1beta1.WorkList{}
	err := r.list(ctx, "works of member "+cluster, list, of, client.InNamespace(placementv1beta1.MemberNamespace(cluster)))
	return list.Items, err
}

// Approvals returns the approval requests of runs in a namespace, or with none, of cluster-scoped runs.
func (r Reader) Approvals(ctx context.Context, namespace string) ([]Approval, error) {
	scope := placementv1beta1.Scope{Namespace: namespace}
	return listViews(ctx, r, "approval requests", scope.NewApprovalRequestList(), ApprovalOf, inScope(scope)...)
}

// AllEvictions returns the evictions of all placements.
func (r Reader) AllEvictions(ctx context.Context) ([]*placementv1beta1.ClusterResourcePlacementEviction, error) {
	list := &placementv1beta1.ClusterResourcePlacementEvictionList{}
	err := r.list(ctx, "evictions", list)
	found := make([]*placementv1beta1.ClusterResourcePlacementEviction, len(list.Items))
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacementEviction"))
		found[i] = &list.Items[i]
	}
	return found, err
}

// Evictions returns the evictions of a placement; namespaced placements have none.
func (r Reader) Evictions(ctx context.Context, placement Ref) ([]placementv1beta1.ClusterResourcePlacementEviction, error) {
	if placement.Namespace != "" {
		return nil, nil
	}
	all, err := r.AllEvictions(ctx)
	var found []placementv1beta1.ClusterResourcePlacementEviction
	for _, eviction := range all {
		if eviction.Spec.PlacementName == placement.Name {
			found = append(found, *eviction)
		}
	}
	return found, err
}
