package snapshot

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PartOfAnnotation has, on every part but the master, the hash over the whole
// group. Parts of two attempts that saw different content are told apart by it.
const PartOfAnnotation = placementv1beta1.FleetPrefix + "resource-group-hash"

// Group builds the snapshot objects that hold the content under an index: the
// master first, then the further parts.
func Group(placement *placementv1beta1.ClusterResourcePlacement, index int, content Content) []placementv1beta1.ClusterResourceSnapshot {
	parts := Split(content.Manifests, PartLimit)
	group := make([]placementv1beta1.ClusterResourceSnapshot, len(parts))
	for sub, manifests := range parts {
		part := &group[sub]
		part.ObjectMeta = metav1.ObjectMeta{
			Name: placementv1beta1.ResourceSnapshotName(placement.Name, index, sub),
			Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel: placement.Name,
				placementv1beta1.ResourceIndexLabel:   strconv.Itoa(index),
			},
			OwnerReferences: []metav1.OwnerReference{Owner(placement)},
		}
		part.Spec.SelectedResources = contents(manifests)
		if sub > 0 {
			part.Annotations = map[string]string{
				placementv1beta1.SubindexOfResourceSnapshotAnnotation: strconv.Itoa(sub),
				PartOfAnnotation: content.Hash,
			}
		}
	}
	master := &group[0]
	master.Labels[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueTrue
	master.Annotations = map[string]string{
		placementv1beta1.ResourceGroupHashAnnotation:         content.Hash,
		placementv1beta1.NumberOfResourceSnapshotsAnnotation: strconv.Itoa(len(parts)),
		placementv1beta1.NumberOfEnvelopedObjectsAnnotation:  strconv.Itoa(content.Envelopes),
	}
	return group
}

func contents(manifests [][]byte) []placementv1beta1.ResourceContent {
	// Not nil: a selection without resources is stored as an empty list.
	resources := make([]placementv1beta1.ResourceContent, 0, len(manifests))
	for _, manifest := range manifests {
		resources = append(resources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: manifest}})
	}
	return resources
}

// Owner is the reference to a placement by which its snapshots name their owner.
func Owner(placement *placementv1beta1.ClusterResourcePlacement) metav1.OwnerReference {
	return *metav1.NewControllerRef(placement, placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"))
}
