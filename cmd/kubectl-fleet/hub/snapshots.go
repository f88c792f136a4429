package hub

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PolicySnapshot is a ClusterSchedulingPolicySnapshot or a SchedulingPolicySnapshot.
type PolicySnapshot struct {
	metav1.Object
	// Index counts the policies of the placement.
	Index int
	// Spec and Status are those of the object.
	Spec   *placementv1beta1.SchedulingPolicySnapshotSpec
	Status *placementv1beta1.SchedulingPolicySnapshotStatus
}

// PolicySnapshots returns the policy snapshots by index.
func (r PlacementReader) PolicySnapshots(ctx context.Context) ([]PolicySnapshot, error) {
	list := r.Placement.scope().NewPolicySnapshotList()
	found, err := listViews(ctx, r.Reader, "policy snapshots", list, policySnapshot, r.inScope()...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b PolicySnapshot) int { return cmp.Compare(a.Index, b.Index) })
	return found, nil
}

func policySnapshot(o placementv1beta1.PolicySnapshotObject) PolicySnapshot {
	return PolicySnapshot{o, indexOf(o.GetLabels()[placementv1beta1.PolicyIndexLabel]), o.GetPolicySnapshotSpec(), o.GetPolicySnapshotStatus()}
}

// LatestPolicy returns the policy in force of policy snapshots in their order: the highest that says it is the latest, or the
// highest of all; nil if there is none.
func LatestPolicy(policies []PolicySnapshot) *PolicySnapshot {
	for i := len(policies) - 1; i >= 0; i-- {
		if rules.IsLatestSnapshot(policies[i]) {
			return &policies[i]
		}
	}
	if len(policies) == 0 {
		return nil
	}
	return &policies[len(policies)-1]
}

// LatestIndex returns the index of the latest of resource snapshots in their order; -1 if there is none.
func LatestIndex(snapshots []ResourceSnapshot) int {
	for _, snapshot := range slices.Backward(snapshots) {
		if rules.IsLatestSnapshot(snapshot) {
			return snapshot.Index
		}
	}
	if len(snapshots) == 0 {
		return -1
	}
	return snapshots[len(snapshots)-1].Index
}

// indexOf reads the index in a label; one that is none ranks lowest.
func indexOf(label string) int {
	index, err := strconv.Atoi(label)
	if err != nil {
		return -1
	}
	return index
}

// ResourceSnapshot is a part of a resource snapshot of either scope.
type ResourceSnapshot struct {
	metav1.Object
	// Index counts the snapshots of the placement; its parts share it.
	Index int
	// Sub is the number of the part; 0 is the master's.
	Sub int
	// Spec has the objects; nil if only the metadata was read.
	Spec *placementv1beta1.ResourceSnapshotSpec
}

// ResourceSnapshots returns the parts of one resource snapshot, in their order, with what is in them.
func (r PlacementReader) ResourceSnapshots(ctx context.Context, index int) ([]ResourceSnapshot, error) {
	found, err := listViews(ctx, r.Reader, "resource snapshots", r.Placement.scope().NewResourceSnapshotList(),
		func(o placementv1beta1.ResourceSnapshotObject) ResourceSnapshot {
			return resourceSnapshot(o, o.GetResourceSnapshotSpec())
		}, r.inScope(placementv1beta1.ResourceIndexLabel, strconv.Itoa(index))...)
	if err != nil {
		return nil, err
	}
	sortSnapshots(found)
	return found, nil
}

// ResourceSnapshotIndexes returns the metadata of all resource snapshots, by index; what is in them stays on the hub.
func (r PlacementReader) ResourceSnapshotIndexes(ctx context.Context) ([]ResourceSnapshot, error) {
	read := &metav1.PartialObjectMetadataList{}
	kind := r.Placement.scope().ResourceSnapshotKind()
	read.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := listServed(ctx, r.Reader, "resource snapshots", read, r.inScope()...); err != nil {
		return nil, err
	}
	var found []ResourceSnapshot
	for i := range read.Items {
		found = append(found, resourceSnapshot(&read.Items[i], nil))
	}
	sortSnapshots(found)
	return found, nil
}

// KnownSnapshots returns the resource snapshots by index, without what is in them. Who may not read snapshots, which hold Secrets,
// learns of them from the status of the placement.
func (r PlacementReader) KnownSnapshots(ctx context.Context, status *placementv1beta1.PlacementStatus) ([]ResourceSnapshot, error) {
	found, err := r.ResourceSnapshotIndexes(ctx)
	told := status.ResourceSnapshots
	if !apierrors.IsForbidden(err) || len(told) == 0 && status.ObservedResourceIndex != "" { // a hub agent before it told
		return found, err
	}
	return SnapshotsTold(r.Placement, told), nil
}

// SnapshotsTold returns the resource snapshots that the status of a placement names, by index, without what is in them.
func SnapshotsTold(placement Ref, told []placementv1beta1.ResourceSnapshotSummary) []ResourceSnapshot {
	found := make([]ResourceSnapshot, 0, len(told))
	for i, summary := range told {
		named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: placement.Namespace, Name: summary.Name, CreationTimestamp: summary.CreationTime,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement.Name, placementv1beta1.ResourceIndexLabel: summary.Index},
		}}
		if i == len(told)-1 {
			named.Labels[placementv1beta1.IsLatestSnapshotLabel] = strconv.FormatBool(true)
		}
		found = append(found, resourceSnapshot(named, nil))
	}
	return found
}

func resourceSnapshot(object metav1.Object, spec *placementv1beta1.ResourceSnapshotSpec) ResourceSnapshot {
	snapshot := ResourceSnapshot{Object: object, Index: indexOf(object.GetLabels()[placementv1beta1.ResourceIndexLabel]), Spec: spec}
	if sub, err := strconv.Atoi(object.GetAnnotations()[placementv1beta1.SubindexOfResourceSnapshotAnnotation]); err == nil {
		snapshot.Sub = sub
	}
	if object.GetAnnotations()[placementv1beta1.ResourceGroupHashAnnotation] != "" {
		snapshot.Sub = -1 // the master comes first, however its parts are counted
	}
	return snapshot
}

func sortSnapshots(found []ResourceSnapshot) {
	slices.SortFunc(found, func(a, b ResourceSnapshot) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Sub, b.Sub), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// Master reports whether the part is the one that the others belong to.
func (s ResourceSnapshot) Master() bool { return s.Sub < 0 }
