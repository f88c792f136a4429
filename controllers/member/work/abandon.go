package work

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// abandons tells whether a Work, if there is one, wants what it has brought to stay when it is
// deleted.
func abandons(work *placementv1beta1.Work) bool {
	return work != nil && work.Annotations[placementv1beta1.DeletePropagationAnnotation] == string(placementv1beta1.DeletePropagationPolicyAbandon)
}

// disown lets objects stay that belong to the fleet no more: nobody prunes them, whatever
// becomes of the AppliedWork or of the cluster's membership. It returns what could not be
// disowned.
func (r *Reconciler) disown(ctx context.Context, _ *placementv1beta1.Work, items []placementv1beta1.AppliedResourceMeta, owner metav1.OwnerReference) ([]placementv1beta1.AppliedResourceMeta, error) {
	return inWaves(items, func(item placementv1beta1.AppliedResourceMeta) (bool, error) {
		return r.engine.Disown(ctx, item.WorkResourceIdentifier, owner)
	})
}
