package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// keptSelections is how many lists of selected resources are kept in memory.
const keptSelections = 256

// selectionCache has the identifiers of the resources in snapshots. The content is read once, past the cache:
// snapshots never change, and only the identifiers are kept.
type selectionCache struct {
	live  client.Reader
	byUID *lru.Cache
}

func newSelectionCache(live client.Reader) *selectionCache {
	return &selectionCache{live: live, byUID: lru.New(keptSelections)}
}

// listSelected lists the resources in a snapshot; none if it has been deleted.
func (s *selectionCache) listSelected(ctx context.Context, placement placementv1beta1.PlacementObject, snapshot Snapshot) ([]placementv1beta1.ResourceIdentifier, error) {
	if snapshot.Name == "" || snapshot.UID == "" {
		return nil, nil
	}
	if known, ok := s.byUID.Get(snapshot.UID); ok {
		return known.([]placementv1beta1.ResourceIdentifier), nil
	}
	var identifiers []placementv1beta1.ResourceIdentifier
	for sub := range snapshot.Parts {
		scope, name := placementv1beta1.ScopeOf(placement), placementv1beta1.ResourceSnapshotName(placement.GetName(), snapshot.Index, sub)
		part := scope.NewResourceSnapshot(name)
		if err := s.live.Get(ctx, scope.Key(name), part); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, nil // pruned meanwhile: the status will name another
			}
			return nil, fmt.Errorf("reading resource snapshot %s: %w", name, err)
		}
		for i := range part.GetResourceSnapshotSpec().SelectedResources {
			identifier, err := identifyManifest(part.GetResourceSnapshotSpec().SelectedResources[i].Raw)
			if err != nil {
				return nil, fmt.Errorf("reading resource %d of snapshot %s: %w", i, name, err)
			}
			identifiers = append(identifiers, identifier)
		}
	}
	s.byUID.Add(snapshot.UID, identifiers)
	return identifiers, nil
}

// identifyManifest reads the identifier of a resource from its manifest.
func identifyManifest(manifest []byte) (placementv1beta1.ResourceIdentifier, error) {
	var named struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(manifest, &named); err != nil {
		return placementv1beta1.ResourceIdentifier{}, fmt.Errorf("decoding the manifest: %w", err)
	}
	group, version, hasGroup := strings.Cut(named.APIVersion, "/")
	if !hasGroup {
		group, version = "", named.APIVersion
	}
	return placementv1beta1.ResourceIdentifier{
		Group: group, Version: version, Kind: named.Kind, Name: named.Metadata.Name, Namespace: named.Metadata.Namespace,
	}, nil
}
