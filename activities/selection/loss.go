package selection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/safetycatch"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// lossCatch asks the safety catch about what a selection has lost.
type lossCatch struct {
	live    client.Reader
	dynamic dynamic.Interface
}

// lossToHold are the objects that the latest snapshot has, that are selected no more though the selectors are the same, and that
// the safety catch holds; nil if there are none, or a user has accepted that they go.
func (c lossCatch) lossToHold(ctx context.Context, placement placementv1beta1.PlacementObject, latest *snapshotGroup,
	selected selectedObjects, content snapshot.Content) (*snapshot.Loss, error) {
	if latest == nil || !latest.isComplete() || latest.contentHash() == content.Hash || isRespecified(placement) {
		return nil, nil
	}
	former := formerObjects{live: c.live, placement: placement, latest: latest}
	if err := former.readOnce(ctx); err != nil {
		return nil, err
	}
	var before []snapshot.Identity
	for id := range former.manifests {
		before = append(before, id)
	}
	now := append([]snapshot.Identity(nil), selected.candidates...)
	for i := range selected.items {
		now = append(now, selected.items[i].Identity)
	}
	var problem error
	loss := safetycatch.HoldLoss(before, now, func(namespace string) bool {
		ended, err := c.isNamespaceEnded(ctx, namespace)
		if err != nil {
			problem = err
		}
		return ended
	})
	if problem != nil || loss == nil || loss.IsAccepted(placement, latest.index) {
		return nil, problem
	}
	return loss, nil
}

// isRespecified says that a user has changed what the placement selects since it was last selected, which explains a loss.
func isRespecified(placement placementv1beta1.PlacementObject) bool {
	last := lastVerdict(placement)
	if last.Selectors == "" { // a selection before these were noted
		return last.Generation != 0 && last.Generation != placement.GetGeneration()
	}
	return last.Selectors != snapshot.HashSelectors(placement)
}

// isNamespaceEnded says that a namespace is being deleted on the hub, or is gone.
func (c lossCatch) isNamespaceEnded(ctx context.Context, name string) (bool, error) {
	namespace, err := c.dynamic.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.GetDeletionTimestamp() != nil, nil
}
