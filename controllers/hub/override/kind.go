package override

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// kind tells the two kinds of overrides apart.
type kind struct {
	name string
	// owner is the kind as owner references name it.
	owner string
	empty func() placementv1beta1.OverrideObject
	list  func() placementv1beta1.ObjectList[placementv1beta1.OverrideObject]
	// emptySnapshot and snapshots are an object and a list of its snapshots.
	emptySnapshot func() placementv1beta1.OverrideSnapshotObject
	snapshots     func() placementv1beta1.ObjectList[placementv1beta1.OverrideSnapshotObject]
}

func clusterKind() kind {
	return kind{
		name:  "clusterresourceoverride",
		owner: "ClusterResourceOverride",
		empty: func() placementv1beta1.OverrideObject { return &placementv1beta1.ClusterResourceOverride{} },
		list: func() placementv1beta1.ObjectList[placementv1beta1.OverrideObject] {
			return &placementv1beta1.ClusterResourceOverrideList{}
		},
		emptySnapshot: func() placementv1beta1.OverrideSnapshotObject {
			return &placementv1beta1.ClusterResourceOverrideSnapshot{}
		},
		snapshots: func() placementv1beta1.ObjectList[placementv1beta1.OverrideSnapshotObject] {
			return &placementv1beta1.ClusterResourceOverrideSnapshotList{}
		},
	}
}

func namespacedKind() kind {
	return kind{
		name:  "resourceoverride",
		owner: "ResourceOverride",
		empty: func() placementv1beta1.OverrideObject { return &placementv1beta1.ResourceOverride{} },
		list: func() placementv1beta1.ObjectList[placementv1beta1.OverrideObject] {
			return &placementv1beta1.ResourceOverrideList{}
		},
		emptySnapshot: func() placementv1beta1.OverrideSnapshotObject { return &placementv1beta1.ResourceOverrideSnapshot{} },
		snapshots: func() placementv1beta1.ObjectList[placementv1beta1.OverrideSnapshotObject] {
			return &placementv1beta1.ResourceOverrideSnapshotList{}
		},
	}
}

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

// take makes the snapshot of an override with an index. It is in force.
func (k kind) take(o placementv1beta1.OverrideObject, index int, hash []byte) client.Object {
	meta := metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: placementv1beta1.OverrideSnapshotName(o.GetName(), index),
		Labels:          labelsOf(o.GetName(), index, inForce),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, placementv1beta1.GroupVersion.WithKind(k.owner))},
	}
	switch o := o.(type) {
	case *placementv1beta1.ClusterResourceOverride:
		return &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: meta,
			Spec: placementv1beta1.ClusterResourceOverrideSnapshotSpec{OverrideSpec: *o.Spec.DeepCopy(), OverrideHash: hash}}
	case *placementv1beta1.ResourceOverride:
		return &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: meta,
			Spec: placementv1beta1.ResourceOverrideSnapshotSpec{OverrideSpec: *o.Spec.DeepCopy(), OverrideHash: hash}}
	}
	return nil
}

// labelsOf are the labels that tell what a snapshot is.
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
func markOf(labels map[string]string, name string, index int) mark {
	for _, m := range []mark{inForce, retired} {
		if hasLabels(labels, labelsOf(name, index, m)) {
			return m
		}
	}
	return unclear
}

func hasLabels(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
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
