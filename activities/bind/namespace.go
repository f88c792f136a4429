package bind

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// EndsWithNamespace reports whether a placement ends because the namespace that it is in does, and not because a user has deleted the
// placement: that happens before the namespace is deleted. Within one second the order is unknown.
func EndsWithNamespace(placement placementv1beta1.PlacementObject, namespace metav1.Object) bool {
	ended := namespace.GetDeletionTimestamp()
	return ended != nil && !placement.GetDeletionTimestamp().Before(ended)
}

// HoldsWithNamespace reports whether what a placement has placed stays on the clusters although the namespace that it is in is being
// deleted on the hub, and the placement with it: until a user accepts, unless the placement opts out. The namespace is read past
// the cache.
func HoldsWithNamespace(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject) (bool, error) {
	name := placement.GetNamespace()
	if name == "" || placement.GetAnnotations()[placementv1beta1.AcceptRemovalsAnnotation] == placementv1beta1.LabelValueTrue {
		return false, nil
	}
	if held := rules.HeldRemovalsOf(placement); held != nil && held.IsAccepted(placement) {
		return false, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return EndsWithNamespace(placement, namespace), nil
}
