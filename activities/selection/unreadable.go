package selection

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// refuseUnreadable refuses to select while an API group cannot be read of which the
// latest snapshot holds objects: they would seem to be deleted, and would be removed
// from the members.
func (s *Selector) refuseUnreadable(ctx context.Context, placement placementv1beta1.PlacementObject, latest *snapshotGroup,
	unreadable map[string]error) error {
	if len(unreadable) == 0 || latest == nil {
		return nil
	}
	for _, object := range latest.masterAndParts() {
		part := placementv1beta1.ScopeOf(placement).NewResourceSnapshot(object.Name)
		err := s.Live.Get(ctx, client.ObjectKeyFromObject(object), part)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading snapshot %s: %w", object.Name, err)
		}
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			group := apiGroupOf(resource.Raw)
			if cause, ok := unreadable[group]; ok {
				return fmt.Errorf("API group %s, of which objects are placed, cannot be read now: %w", group, cause)
			}
		}
	}
	return nil
}

// apiGroupOf returns the API group of a manifest.
func apiGroupOf(manifest []byte) string {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(manifest, &kind); err != nil {
		return "" // not written by the hub
	}
	return schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).Group
}
