package override

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// overridesToKeep lists what decides about validity, of the overrides that are not being deleted: one that is being
// deleted keeps nothing.
func overridesToKeep(objects []placementv1beta1.OverrideObject) []Override {
	overrides := make([]Override, 0, len(objects))
	for _, o := range objects {
		if o.GetDeletionTimestamp().IsZero() {
			overrides = append(overrides, Override{
				NamespacedName: client.ObjectKeyFromObject(o),
				Created:        o.GetCreationTimestamp().Time,
				Selects:        fieldindex.Selected(o),
			})
		}
	}
	return overrides
}

// newSnapshot makes the snapshot of an override with an index. It is in force.
func newSnapshot(o placementv1beta1.OverrideObject, index int, hash []byte) client.Object {
	scope := placementv1beta1.ScopeOf(o)
	snapshot := scope.NewOverrideSnapshot(placementv1beta1.OverrideSnapshotName(o.GetName(), index))
	snapshot.SetLabels(labelsOf(o.GetName(), index, inForce))
	snapshot.SetOwnerReferences([]metav1.OwnerReference{ownerReference(o)})
	switch o := o.(type) {
	case *placementv1beta1.ClusterResourceOverride:
		snapshot.(*placementv1beta1.ClusterResourceOverrideSnapshot).Spec = placementv1beta1.ClusterResourceOverrideSnapshotSpec{
			OverrideSpec: *o.Spec.DeepCopy(), OverrideHash: hash,
		}
	case *placementv1beta1.ResourceOverride:
		snapshot.(*placementv1beta1.ResourceOverrideSnapshot).Spec = placementv1beta1.ResourceOverrideSnapshotSpec{
			OverrideSpec: *o.Spec.DeepCopy(), OverrideHash: hash,
		}
	}
	return snapshot
}

// ownerReference returns the reference to an override by which its snapshots name their owner.
func ownerReference(o placementv1beta1.OverrideObject) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, placementv1beta1.ScopeOf(o).OverrideKind())
}

// labelsOf returns the labels that tell what a snapshot is.
func labelsOf(name string, index int, m mark) map[string]string {
	latest := placementv1beta1.LabelValueFalse
	if m == inForce {
		latest = placementv1beta1.LabelValueTrue
	}
	return map[string]string{
		placementv1beta1.ParentOverrideLabel:   name,
		placementv1beta1.OverrideIndexLabel:    strconv.Itoa(index),
		placementv1beta1.IsLatestSnapshotLabel: latest,
	}
}

// markOf reads the labels of the snapshot of an override with an index.
func markOf(of map[string]string, name string, index int) mark {
	for _, m := range []mark{inForce, retired} {
		if labels.SelectorFromSet(labelsOf(name, index, m)).Matches(labels.Set(of)) {
			return m
		}
	}
	return unclear
}

// parseName splits the name of a snapshot into the name of its override and its index.
func parseName(name string) (string, int, bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", 0, false
	}
	index, err := strconv.Atoi(name[dash+1:])
	if err != nil || name != placementv1beta1.OverrideSnapshotName(name[:dash], index) {
		return "", 0, false
	}
	return name[:dash], index, true
}
