package hubread

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PlacementOf returns how the labels of a record's placement are found by a reader. A record of no placement
// has one that is gone.
func PlacementOf(ctx context.Context, from client.Reader) fleetflowv1alpha1.PlacementOf {
	return func(record *fleetflowv1alpha1.AuditRecord) (labels map[string]string, isThere bool, err error) {
		scope := placementv1beta1.Scope{Namespace: record.PlacementNamespace()}
		placement := scope.NewPlacement(record.Spec.PlacementName)
		placement.SetNamespace(scope.Namespace)
		if record.Spec.PlacementName == "" {
			return fleetflowv1alpha1.GateLabels(placement), false, nil
		}
		err = from.Get(ctx, scope.Key(record.Spec.PlacementName), placement, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			placement = scope.NewPlacement(record.Spec.PlacementName)
			placement.SetNamespace(scope.Namespace)
			return fleetflowv1alpha1.GateLabels(placement), false, nil
		case err != nil:
			return nil, false, fmt.Errorf("reading placement %s of a record: %w", record.Spec.PlacementName, err)
		}
		return fleetflowv1alpha1.GateLabels(placement), true, nil
	}
}
