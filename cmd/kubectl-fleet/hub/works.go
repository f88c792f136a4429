package hub

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PlacementReader reads what belongs to one placement.
type PlacementReader struct {
	Reader    Reader
	Placement Ref
}

// Of returns what reads what belongs to a placement.
func (r Reader) Of(placement Ref) PlacementReader { return PlacementReader{r, placement} }

// inScope returns the options of a list of what belongs to the placement and has some labels in addition.
func (r PlacementReader) inScope(labels ...string) []client.ListOption {
	of := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: r.Placement.Name}
	for i := 0; i+1 < len(labels); i += 2 {
		of[labels[i]] = labels[i+1]
	}
	return inScope(r.Placement.scope(), of)
}

// listWorks lists Works of the placement.
func (r PlacementReader) listWorks(ctx context.Context, whose string, options ...client.ListOption) ([]placementv1beta1.Work, error) {
	of := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: r.Placement.Name}
	if r.Placement.Namespace != "" {
		of[placementv1beta1.ParentNamespaceLabel] = r.Placement.Namespace
	}
	works := &placementv1beta1.WorkList{}
	err := listServed(ctx, r.Reader, "works of "+whose, works, append(options, of)...)
	return works.Items, err
}

// Works returns the Works for one member.
func (r PlacementReader) Works(ctx context.Context, cluster string) ([]placementv1beta1.Work, error) {
	return r.listWorks(ctx, "member "+cluster, client.InNamespace(placementv1beta1.MemberNamespace(cluster)))
}

// Bindings returns the bindings.
func (r PlacementReader) Bindings(ctx context.Context) ([]Binding, error) {
	return listViews(ctx, r.Reader, "bindings", r.Placement.scope().NewBindingList(), BindingOf, r.inScope()...)
}

// Approvals returns the approval requests of runs in a namespace, or with none, of cluster-scoped runs.
func (r Reader) Approvals(ctx context.Context, namespace string) ([]Approval, error) {
	scope := placementv1beta1.Scope{Namespace: namespace}
	return listViews(ctx, r, "approval requests", scope.NewApprovalRequestList(), ApprovalOf, inScope(scope)...)
}

// AllEvictions returns the evictions of all placements.
func (r Reader) AllEvictions(ctx context.Context) ([]*placementv1beta1.ClusterResourcePlacementEviction, error) {
	evictions := &placementv1beta1.ClusterResourcePlacementEvictionList{}
	err := listServed(ctx, r, "evictions", evictions)
	found := make([]*placementv1beta1.ClusterResourcePlacementEviction, len(evictions.Items))
	for i := range evictions.Items {
		evictions.Items[i].SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacementEviction"))
		found[i] = &evictions.Items[i]
	}
	return found, err
}

// Evictions returns the evictions; namespaced placements have none.
func (r PlacementReader) Evictions(ctx context.Context) ([]placementv1beta1.ClusterResourcePlacementEviction, error) {
	if r.Placement.Namespace != "" {
		return nil, nil
	}
	all, err := r.Reader.AllEvictions(ctx)
	var found []placementv1beta1.ClusterResourcePlacementEviction
	for _, eviction := range all {
		if eviction.Spec.PlacementName == r.Placement.Name {
			found = append(found, *eviction)
		}
	}
	return found, err
}
