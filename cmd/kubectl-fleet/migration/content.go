package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// AddHashes reads the content of the latest resource snapshots, one after the other, and keeps the hashes that KubeFleet would
// compute of them: by these it decides whether what is selected has changed.
func (s *State) AddHashes(ctx context.Context, c client.Client) error {
	s.Hashes = map[string]string{}
	for i := range s.Resources {
		master := &s.Resources[i]
		if master.Annotations[placementv1beta1.ResourceGroupHashAnnotation] == "" || !rules.IsLatestSnapshot(master) {
			continue
		}
		hash, err := hashContent(ctx, c, s.partsOf(master))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading resource snapshot %s: %w", keyOf(master), err)
		}
		if err == nil {
			s.Hashes[keyOf(master).String()] = hash
		}
	}
	return nil
}

// partsOf returns the objects of the resource snapshot that a master begins, in the order of their content.
func (s *State) partsOf(master *metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
	index := func(o metav1.Object) string { return o.GetLabels()[placementv1beta1.ResourceIndexLabel] }
	parts := []*metav1.PartialObjectMetadata{master}
	for i := range s.Resources {
		part := &s.Resources[i]
		if part.Name != master.Name && parentOf(part) == parentOf(master) && index(part) == index(master) {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts[1:], func(a, b *metav1.PartialObjectMetadata) int { return cmp.Compare(subindexOf(a), subindexOf(b)) })
	return parts
}

func subindexOf(part metav1.Object) int {
	at, err := strconv.Atoi(part.GetAnnotations()[placementv1beta1.SubindexOfResourceSnapshotAnnotation])
	if err != nil {
		return -1 // the check of snapshots says so
	}
	return at
}

// hashContent is KubeFleet's hash of what the parts of a resource snapshot hold: the SHA-256 of one spec that has all of it, in
// KubeFleet's order.
func hashContent(ctx context.Context, c client.Client, parts []*metav1.PartialObjectMetadata) (string, error) {
	var manifests [][]byte
	for _, of := range parts {
		part := placementv1beta1.ScopeOf(of).NewResourceSnapshot(of.Name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return "", err
		}
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			manifest, err := json.Marshal(resource)
			if err != nil {
				return "", err
			}
			manifests = append(manifests, manifest)
		}
	}
	ordered, err := snapshot.InOrder(manifests)
	return snapshot.Hash(ordered), err
}
