package selection

import (
	"context"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// formerObjects are what the latest snapshot of a placement holds, read live when it is needed.
type formerObjects struct {
	live      client.Reader
	placement placementv1beta1.PlacementObject
	latest    *snapshotGroup
	manifests map[snapshot.Identity][]byte
}

// keepTooLarge lets objects that are too large for a snapshot stay as the latest one has them,
// so that they keep nothing else back and are not removed from members.
func (f *formerObjects) keepTooLarge(ctx context.Context, selected *selectedObjects) error {
	return f.keepTooLargeOf(ctx, selected, selected.items)
}

// keepTooLargeOf does so for some of the items of the selection.
func (f *formerObjects) keepTooLargeOf(ctx context.Context, selected *selectedObjects, items []snapshot.Item) error {
	for i := range items {
		item := &items[i]
		if !item.IsTooLarge() {
			continue
		}
		if err := f.readOnce(ctx); err != nil {
			return err
		}
		key := snapshot.Identity{GroupKind: item.GroupKind, Namespace: item.Namespace, Name: item.Name}
		selected.tooLarge = append(selected.tooLarge, item.KeepFormer(f.manifests[key]))
	}
	return nil
}

// keepHeld lets the objects of the kinds whose propagation is disabled stay as the latest snapshot has them.
func (f *formerObjects) keepHeld(ctx context.Context, catalog *snapshot.Catalog, selection *snapshot.Selection,
	selected *selectedObjects) error {
	if !catalog.HoldsAny() {
		return nil
	}
	if err := f.readOnce(ctx); err != nil {
		return err
	}
	var err error
	selected.items, selected.held, err = snapshot.KeepHeld(catalog, selection, selected.items, f.manifests)
	return err
}

// readOnce reads which objects the latest snapshot holds.
func (f *formerObjects) readOnce(ctx context.Context) error {
	if f.manifests != nil {
		return nil
	}
	f.manifests = map[snapshot.Identity][]byte{}
	if f.latest == nil {
		return nil
	}
	manifests, err := readSnapshotManifests(ctx, f.live, f.placement, strconv.Itoa(f.latest.index))
	if err != nil {
		f.manifests = nil
		return err
	}
	for _, manifest := range manifests {
		var head metav1.PartialObjectMetadata
		if err := json.Unmarshal(manifest, &head); err != nil {
			continue // not written by the hub
		}
		f.manifests[snapshot.Identity{GroupKind: head.GroupVersionKind().GroupKind(), Namespace: head.Namespace, Name: head.Name}] = manifest
	}
	return nil
}
