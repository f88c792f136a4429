package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// claimMakers are the kinds that make claims from volumeClaimTemplates without owning them.
var claimMakers = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps.kruise.io", Version: "v1beta1", Resource: "statefulsets"},
}

// leaveOutClaims leaves out the claims that StatefulSets of the hub make, or would make: the sets of the members make their own,
// and theirs have the data.
func leaveOutClaims(ctx context.Context, reader dynamic.Interface, catalog *snapshot.Catalog, selected *selectedObjects,
	revision string) error {
	namespaces := map[string]bool{}
	for i := range selected.items {
		if selected.items[i].IsClaim() {
			namespaces[selected.items[i].Namespace] = true
		}
	}
	var makers []snapshot.ClaimMaker
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		for _, resource := range claimMakers {
			if !catalog.Serves(resource.GroupResource()) {
				continue
			}
			sets, err := reader.Resource(resource).Namespace(namespace).List(ctx, hubread.NotOlderThan(revision))
			if err != nil {
				return fmt.Errorf("listing the %s of namespace %s, whose claims are not placed: %w", resource.GroupResource(), namespace, err)
			}
			for i := range sets.Items {
				makers = append(makers, snapshot.NewClaimMaker(&sets.Items[i]))
			}
		}
	}
	for i := range selected.items {
		item := &selected.items[i]
		if item.IsClaim() && slices.ContainsFunc(makers, func(m snapshot.ClaimMaker) bool { return m.Makes(*item) }) {
			item.LeaveOut()
		}
	}
	return nil
}
