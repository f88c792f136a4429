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

// spare refuses to select while an API group cannot be read of which the latest
// snapshot holds objects: they would seem to be deleted, and would be removed from
// the members.
func (s *Selector) spare(ctx context.Context, latest *snapshotGroup, unreadable map[string]error) error {
	if len(unreadable) == 0 || latest == nil {
		return nil
	}
	objects := []*metav1.PartialObjectMetadata{latest.master}
	for _, part := range latest.parts {
		objects = append(objects, part)
	}
	for _, object := range objects {
		part := &placementv1beta1.ClusterResourceSnapshot{}
		err := s.Live.Get(ctx, client.ObjectKeyFromObject(object), part)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading snapshot %s: %w", object.Name, err)
		}
		for i := range part.Spec.SelectedResources {
			group := groupOf(part.Spec.SelectedResources[i].Raw)
			if cause, ok := unreadable[group]; ok {
				return fmt.Errorf("API group %s, of which objects are placed, cannot be read now: %w", group, cause)
			}
		}
	}
	return nil
}

// groupOf is the API group of a manifest.
func groupOf(manifest []byte) string {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(manifest, &kind); err != nil {
		return "" // nothing the hub ever wrote
	}
	return schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).Group
}
