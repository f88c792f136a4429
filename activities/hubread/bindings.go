package hubread

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ByCluster is the index of the hub's cache that finds bindings by the name of their cluster.
const ByCluster = "hub.cluster"

// ClusterOfBinding returns the keys of a binding in the index ByCluster.
func ClusterOfBinding(object client.Object) []string {
	if binding, ok := object.(placementv1beta1.BindingObject); ok {
		return []string{binding.GetBindingSpec().TargetCluster}
	}
	return nil
}

// IndexBindings registers the index ByCluster in a process without controllers: where there are some, theirs is registered already.
func IndexBindings(ctx context.Context, indexer client.FieldIndexer) error {
	for _, scope := range placementv1beta1.Scopes() {
		binding := scope.NewBinding("")
		if err := indexer.IndexField(ctx, binding, ByCluster, ClusterOfBinding); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", binding, ByCluster, err)
		}
	}
	return nil
}
