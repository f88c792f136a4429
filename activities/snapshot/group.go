package snapshot

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PartOfAnnotation has, on every part but the master, the hash over the whole
// group. Parts of two attempts that saw different content are told apart by it. On the master that
// another author has made, it is the hash that would be stated here of the same content.
const PartOfAnnotation = placementv1beta1.OwnPrefix + "resource-group-hash"

// Group builds the snapshot objects that hold the content under an index: the
// master first, then the further parts.
func Group(placement placementv1beta1.PlacementObject, index int, content Content) []placementv1beta1.ResourceSnapshotObject {
	parts := Split(content.Manifests, PartLimit)
	group := make([]placementv1beta1.ResourceSnapshotObject, len(parts))
	for sub, manifests := range parts {
		name := placementv1beta1.ResourceSnapshotName(placement.GetName(), index, sub)
		part := placementv1beta1.ScopeOf(placement).NewResourceSnapshot(name)
		labels := map[string]string{
			placementv1beta1.ParentPlacementLabel: placement.GetName(),
			placementv1beta1.ResourceIndexLabel:   strconv.Itoa(index),
		}
		if sub == 0 {
			labels[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueTrue
			part.SetAnnotations(map[string]string{
				placementv1beta1.ResourceGroupHashAnnotation:         content.Hash,
				placementv1beta1.NumberOfResourceSnapshotsAnnotation: strconv.Itoa(len(parts)),
				placementv1beta1.NumberOfEnvelopedObjectsAnnotation:  strconv.Itoa(content.Envelopes),
			})
			if content.Replicas != "" {
				part.GetAnnotations()[placementv1beta1.ReplicaCountsAnnotation] = content.Replicas
			}
		} else {
			part.SetAnnotations(map[string]string{
				placementv1beta1.SubindexOfResourceSnapshotAnnotation: strconv.Itoa(sub),
				PartOfAnnotation: content.Hash,
			})
		}
		part.SetLabels(labels)
		part.SetOwnerReferences([]metav1.OwnerReference{rules.PlacementOwner(placement)})
		part.GetResourceSnapshotSpec().SelectedResources = toContents(manifests)
		group[sub] = part
	}
	return group
}

func toContents(manifests [][]byte) []placementv1beta1.ResourceContent {
	// Not nil: a selection without resources is stored as an empty list.
	resources := make([]placementv1beta1.ResourceContent, 0, len(manifests))
	for _, manifest := range manifests {
		resources = append(resources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: manifest}})
	}
	return resources
}
