// Package index names the field indexes of the hub's cache and registers them,
// so that what concerns a placement or a cluster is found without a rescan.
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// BindingsByPlacement finds the bindings of a placement by its name.
	BindingsByPlacement = "hub.placement"
	// BindingsByCluster finds the bindings to a cluster by its name.
	BindingsByCluster = "hub.cluster"
)

// Setup registers the indexes with a cache. Call it once, before the cache starts.
func Setup(ctx context.Context, indexer client.FieldIndexer) error {
	binding := &placementv1beta1.ClusterResourceBinding{}
	for field, extract := range Functions() {
		if err := indexer.IndexField(ctx, binding, field, extract); err != nil {
			return fmt.Errorf("indexing bindings by %s: %w", field, err)
		}
	}
	return nil
}

// Functions are the indexes of bindings by name; tests give them to a fake client.
func Functions() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		BindingsByPlacement: func(o client.Object) []string {
			return []string{o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
		},
		BindingsByCluster: func(o client.Object) []string {
			return []string{o.(*placementv1beta1.ClusterResourceBinding).Spec.TargetCluster}
		},
	}
}
