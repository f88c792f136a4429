package hubread

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PlacementOf returns how the labels of a record's placement are found by a reader. One that cannot be read is gone.
func PlacementOf(ctx context.Context, from client.Reader) fleetflowv1alpha1.PlacementOf {
	return func(record *fleetflowv1alpha1.AuditRecord) (labels map[string]string, isThere bool) {
		scope := placementv1beta1.Scope{Namespace: record.PlacementNamespace()}
		placement := scope.NewPlacement(record.Spec.PlacementName)
		placement.SetNamespace(scope.Namespace)
		err := from.Get(ctx, scope.Key(record.Spec.PlacementName), placement, client.UnsafeDisableDeepCopy)
		if err != nil {
			placement = scope.NewPlacement(record.Spec.PlacementName)
			placement.SetNamespace(scope.Namespace)
		}
		return fleetflowv1alpha1.GateLabels(placement), err == nil
	}
}
