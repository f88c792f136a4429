package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// keptShort and keptLong are how many lists of selected resources are kept in memory: short ones of as many placements as a
	// fleet may have, and few long ones.
	keptShort, keptLong = 4096, 64
	// maxShort is how many resources a short list has at most.
	maxShort = 100
)

// selectionCache has the identifiers of the resources in snapshots. The content is read once, past the cache:
// snapshots never change, and only the identifiers are kept.
type selectionCache struct {
	live client.Reader
	// shortLists and longLists are the lists by the UID of their snapshot.
	shortLists, longLists *lru.Cache
	// seen are the placements whose stored list was taken already, by their UIDs.
	seen *lastReports
}

func newSelectionCache(live client.Reader) *selectionCache {
	return &selectionCache{live: live, shortLists: lru.New(keptShort), longLists: lru.New(keptLong), seen: newLastReports()}
}

// keepList keeps the list of a snapshot.
func (s *selectionCache) keepList(snapshot Snapshot, list []placementv1beta1.ResourceIdentifier) {
	if len(list) > maxShort {
		s.longLists.Add(snapshot.UID, list)
		return
	}
	s.shortLists.Add(snapshot.UID, list)
}

// findList returns the list of a snapshot that is kept, if there is one.
func (s *selectionCache) findList(snapshot Snapshot) (list []placementv1beta1.ResourceIdentifier, known bool) {
	for _, lists := range []*lru.Cache{s.shortLists, s.longLists} {
		if list, ok := lists.Get(snapshot.UID); ok {
			return list.([]placementv1beta1.ResourceIdentifier), true
		}
	}
	return nil, false
}

// learnStored takes the list of a snapshot from the status of its placement, the first time that a process sees the placement:
// the process before has stored it there, and after a restart it would be read once for each placement. A snapshot that
// is made again under its name while the process runs is read; one that was made again while no process ran is shown with the list of
// the one before until the next snapshot. A long list may have been shortened to fit, and is read, too.
func (s *selectionCache) learnStored(placement placementv1beta1.PlacementObject, snapshot Snapshot) {
	if !s.seen.recordIfChanged(keyOf(placement), string(placement.GetUID())) {
		return
	}
	status := placement.GetPlacementStatus()
	if snapshot.UID != "" && status.ObservedResourceIndex == strconv.Itoa(snapshot.Index) && len(status.SelectedResources) > 0 &&
		len(status.SelectedResources) <= maxShort {
		s.keepList(snapshot, slices.Clone(status.SelectedResources))
	}
}

// forgetPlacement forgets that a placement was seen.
func (s *selectionCache) forgetPlacement(placement placementv1beta1.PlacementObject) {
	s.seen.recordIfChanged(keyOf(placement), "")
}

// listSelected lists the resources in a snapshot; none if it has been deleted.
func (s *selectionCache) listSelected(ctx context.Context, placement placementv1beta1.PlacementObject,
	snapshot Snapshot) ([]placementv1beta1.ResourceIdentifier, error) {
	if snapshot.Name == "" || snapshot.UID == "" {
		return nil, nil
	}
	s.learnStored(placement, snapshot)
	if list, known := s.findList(snapshot); known {
		return list, nil
	}
	var identifiers []placementv1beta1.ResourceIdentifier
	for sub := range snapshot.Parts {
		scope := placementv1beta1.ScopeOf(placement)
		name := placementv1beta1.ResourceSnapshotName(placement.GetName(), snapshot.Index, sub)
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
	s.keepList(snapshot, identifiers)
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
		group = ""
		version = named.APIVersion
	}
	return placementv1beta1.ResourceIdentifier{
		Group: group, Version: version, Kind: named.Kind, Name: named.Metadata.Name, Namespace: named.Metadata.Namespace,
	}, nil
}
