package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A hub may hold what other authors have made: KubeFleet, or fleetflow before the hub was restored from a backup, after which
// the same objects have other UIDs. The rules by which such objects are recognised are here. They are taken over where they
// are: what names an owner is by labels, as it is for KubeFleet, and not by UIDs.

// Kinship is what an object made for another one, by its labels, is to the object of that name that there is now.
type Kinship int

const (
	// KinshipOwn says that the object names it as its owner.
	KinshipOwn Kinship = iota
	// KinshipInherited says that the object names no owner, or one of the same name with another UID: the owner was created
	// again, or restored from a backup.
	KinshipInherited
	// KinshipDisputed says that the object names an owner of another name. It is left alone.
	KinshipDisputed
)

// KinshipOf returns what an object is to an owner.
func KinshipOf(o metav1.Object, owner metav1.OwnerReference) Kinship {
	kinship := KinshipInherited
	for _, reference := range o.GetOwnerReferences() {
		switch {
		case reference.UID == owner.UID:
			if kinship != KinshipDisputed {
				kinship = KinshipOwn
			}
		case isTwinKind(reference, owner) && reference.Name != owner.Name:
			kinship = KinshipDisputed
		}
	}
	return kinship
}

// isTwinKind reports whether two owners are of one kind in any version, or of its twin in the other scope.
func isTwinKind(a, b metav1.OwnerReference) bool {
	groupA, errA := schema.ParseGroupVersion(a.APIVersion)
	groupB, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && groupA.Group == groupB.Group &&
		strings.TrimPrefix(a.Kind, "Cluster") == strings.TrimPrefix(b.Kind, "Cluster")
}

// InheritedBy returns the owner references of an object once it names its owner as it is now.
func InheritedBy(o metav1.Object, owner metav1.OwnerReference) []metav1.OwnerReference {
	kept := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(reference metav1.OwnerReference) bool {
		return isTwinKind(reference, owner) && reference.Name == owner.Name
	})
	return append(kept, owner)
}

// PlacementOwner returns the reference to a placement by which its snapshots name their owner.
func PlacementOwner(placement placementv1beta1.PlacementObject) metav1.OwnerReference {
	return *metav1.NewControllerRef(placement, placementv1beta1.ScopeOf(placement).PlacementKind())
}

// BindingOfCluster returns the one of a placement's bindings that is to hold a cluster; nil if there is none. Should there be
// several, the one that carries resources counts, then the one that was there first.
func BindingOfCluster(bindings []placementv1beta1.BindingObject, cluster string) placementv1beta1.BindingObject {
	var found placementv1beta1.BindingObject
	for _, binding := range bindings {
		if binding.GetBindingSpec().TargetCluster == cluster && (found == nil || CompareHolders(binding, found) < 0) {
			found = binding
		}
	}
	return found
}

// CompareHolders orders bindings of one placement and one cluster: the first is to hold it.
func CompareHolders(a, b placementv1beta1.BindingObject) int {
	created := a.GetCreationTimestamp()
	other := b.GetCreationTimestamp()
	return cmp.Or(
		cmp.Compare(rankHolder(b), rankHolder(a)), created.Compare(other.Time), cmp.Compare(a.GetName(), b.GetName()),
	)
}

func rankHolder(b placementv1beta1.BindingObject) int {
	switch {
	case IsDeleting(b):
		return 0
	case b.GetBindingSpec().State == placementv1beta1.BindingStateUnscheduled:
		return 1
	case b.GetBindingSpec().State == placementv1beta1.BindingStateBound:
		return 3
	}
	return 2
}

// PlacementNameOf returns the name of the placement that a binding is of: by its label or, if that is lost, by the policy
// snapshot that the binding names. It is empty if neither says it.
func PlacementNameOf(binding placementv1beta1.BindingObject) string {
	if name := binding.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
		return name
	}
	policy := binding.GetBindingSpec().SchedulingPolicySnapshotName
	at := strings.LastIndexByte(policy, '-')
	if at < 1 {
		return ""
	}
	index, err := strconv.Atoi(policy[at+1:])
	if err != nil || placementv1beta1.PolicySnapshotName(policy[:at], index) != policy {
		return ""
	}
	return policy[:at]
}

// IsSigned reports whether a Work says for which binding, and for which of its revisions, it was written. KubeFleet's Works do not.
func IsSigned(work metav1.Object) bool {
	return work.GetAnnotations()[placementv1beta1.BindingUIDAnnotation] != "" &&
		work.GetAnnotations()[placementv1beta1.RevisionAnnotation] != ""
}

// IsWorkOf reports whether a Work was made for a binding: by the UID it names or, if it is not signed, by the label that
// KubeFleet goes by.
func IsWorkOf(work metav1.Object, binding placementv1beta1.BindingObject) bool {
	if uid := work.GetAnnotations()[placementv1beta1.BindingUIDAnnotation]; uid != "" {
		return uid == string(binding.GetUID())
	}
	return work.GetLabels()[placementv1beta1.ParentBindingLabel] == binding.GetName() &&
		work.GetLabels()[placementv1beta1.ParentNamespaceLabel] == binding.GetNamespace()
}

// SaysWhatBindingWants says of a Work that is not signed whether it was made from what its binding names now, as far as
// KubeFleet's labels, annotations and the apply strategy tell: they say from which snapshot it was made and with which
// overrides.
func SaysWhatBindingWants(work *placementv1beta1.Work, binding placementv1beta1.BindingObject) bool {
	index, err := strconv.Atoi(work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])
	spec := binding.GetBindingSpec()
	return err == nil && placementv1beta1.ResourceSnapshotName(PlacementNameOf(binding), index, 0) == spec.ResourceSnapshotName &&
		work.Annotations[placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation] ==
			hashOfNames(spec.ClusterResourceOverrideSnapshots) &&
		work.Annotations[placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation] == hashOfNames(spec.ResourceOverrideSnapshots) &&
		equality.Semantic.DeepEqual(work.Spec.ApplyStrategy, spec.ApplyStrategy)
}

// hashOfNames is KubeFleet's hash of the names of override snapshots, in their order.
func hashOfNames[T any](names []T) string {
	data, err := json.Marshal(names) // of none it is the hash of null
	if err != nil {
		return "" // strings always encode
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
