package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// lossCatch asks the safety catch about what a selection has lost.
type lossCatch struct {
	live    client.Reader
	dynamic dynamic.Interface
}

// lossToHold returns the objects that the latest snapshot has, that the placement asks for as the snapshot has them, that are no
// longer selected, and that the safety catch holds; nil if there are none, or a user has accepted that they go. What the
// selectors have left out since the snapshot goes, for the user asks for that.
func (c lossCatch) lossToHold(ctx context.Context, placement placementv1beta1.PlacementObject, latest *snapshotGroup,
	selected selectedObjects, content snapshot.Content) (*snapshot.Loss, error) {
	if latest == nil || !latest.isComplete() || latest.contentHash() == content.Hash {
		return nil, nil
	}
	former := formerObjects{live: c.live, placement: placement, latest: latest}
	if err := former.readOnce(ctx); err != nil {
		return nil, err
	}
	before := slices.Collect(maps.Keys(former.manifests))
	if isRespecified(placement) {
		var err error
		if before, err = selected.by.AskedFor(former.manifests, placement.GetPlacementSpec().PropagateDeps); err != nil {
			return nil, err
		}
	}
	// An earlier version has placed what controllers of the hub make.
	before = slices.DeleteFunc(before, func(id snapshot.Identity) bool { return rules.HasByProductName(id.GroupKind, id.Name) })
	for _, id := range slices.Clone(before) {
		before = append(before, snapshot.EntriesOf(id, former.manifests[id])...)
	}
	var problem error
	loss := bind.HoldLoss(before, former.still(selected), heldLoss(placement, latest), func(namespace string) bool {
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

// still returns the objects that are selected now, and those that are left to other placements, with what is in envelopes.
func (f *formerObjects) still(selected selectedObjects) []snapshot.Identity {
	var now []snapshot.Identity
	placed := make(map[snapshot.Identity]bool, len(selected.items))
	for i := range selected.items {
		item := &selected.items[i]
		placed[bareOf(item.Identity)] = true
		now = append(append(now, item.Identity), snapshot.EntriesOf(item.Identity, item.Manifest)...)
	}
	for _, id := range selected.candidates {
		if id = bareOf(id); !placed[id] {
			now = append(append(now, id), snapshot.EntriesOf(id, f.manifests[id])...)
		}
	}
	return now
}

// bareOf returns an object whichever UID and version it has.
func bareOf(id snapshot.Identity) snapshot.Identity {
	return snapshot.Identity{GroupKind: id.GroupKind, Namespace: id.Namespace, Name: id.Name}
}

// heldLoss returns what was held of the latest snapshot when it was last looked at and no user has accepted since; nil if nothing was.
func heldLoss(placement placementv1beta1.PlacementObject, latest *snapshotGroup) *snapshot.Loss {
	lost, index := snapshot.LossOf(placement)
	if lost == nil || latest == nil || index != latest.index || lost.IsAccepted(placement, index) {
		return nil
	}
	return lost
}

// isRespecified reports whether a user has changed what the placement asks to select since the latest snapshot was made.
func isRespecified(placement placementv1beta1.PlacementObject) bool {
	last := lastVerdict(placement)
	if last.Selectors == "" { // a selection before these were noted
		return last.Generation != 0 && last.Generation != placement.GetGeneration()
	}
	return last.Selectors != snapshot.HashSelectors(placement)
}

// isNamespaceEnded reports whether a namespace is being deleted on the hub, or is gone.
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
