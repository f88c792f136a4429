package placement

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// errOvertaken says that another attempt wrote first.
var errOvertaken = errors.New("another attempt was faster")

// policyHash tells policies apart. The number of clusters does not count: picking
// more or fewer clusters by the same policy moves nothing that is placed. No
// policy is the same as picking all clusters.
func policyHash(policy *placementv1beta1.PlacementPolicy) ([]byte, error) {
	counted := policy.DeepCopy()
	if counted == nil {
		counted = &placementv1beta1.PlacementPolicy{}
	}
	if counted.PlacementType == "" {
		counted.PlacementType = placementv1beta1.PickAllPlacementType
	}
	counted.NumberOfClusters = nil
	data, err := json.Marshal(counted)
	if err != nil {
		return nil, fmt.Errorf("encoding the scheduling policy: %w", err)
	}
	sum := sha256.Sum256(data)
	return []byte(hex.EncodeToString(sum[:])), nil
}

// ensurePolicySnapshot returns the latest policy snapshot, which holds the policy
// the placement has now, among those that exist. A new one carries the latest label
// from the start; only then it is taken from the one before.
func (a *Activities) ensurePolicySnapshot(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing []placementv1beta1.ClusterSchedulingPolicySnapshot) (*placementv1beta1.ClusterSchedulingPolicySnapshot, error) {
	hash, err := policyHash(placement.Spec.Policy)
	if err != nil {
		return nil, err
	}
	latest := latestPolicy(existing)
	if latest == nil || string(latest.Spec.PolicyHash) != string(hash) {
		index := 0
		if len(existing) > 0 {
			index = policyIndex(&existing[len(existing)-1]) + 1
		}
		if latest, err = a.createPolicySnapshot(ctx, placement, index, hash); err != nil {
			return nil, err
		}
	} else if latest, err = a.refreshPolicySnapshot(ctx, placement, latest); err != nil {
		return nil, err
	}
	for i := range existing {
		if old := &existing[i]; old.Name != latest.Name && placementv1beta1.IsLatestSnapshot(old) {
			if err := a.patchPolicy(ctx, old, func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
				p.Labels[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueFalse
			}); err != nil {
				return nil, err
			}
		}
	}
	return latest, nil
}

// policySnapshots reads live the policy snapshots of a placement, by index, and
// returns the revision of the hub's store they were read at. Those left over from an
// earlier placement of the same name are removed.
func (a *Activities) policySnapshots(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement) ([]placementv1beta1.ClusterSchedulingPolicySnapshot, string, error) {
	list := &placementv1beta1.ClusterSchedulingPolicySnapshotList{}
	if err := a.Live.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.Name}); err != nil {
		return nil, "", fmt.Errorf("listing policy snapshots of placement %s: %w", placement.Name, err)
	}
	var own []placementv1beta1.ClusterSchedulingPolicySnapshot
	for i := range list.Items {
		if item := &list.Items[i]; placementv1beta1.IsOwnedBy(item, placement.UID) {
			own = append(own, *item)
		} else if err := a.removePolicy(ctx, item); err != nil {
			return nil, "", err
		}
	}
	slices.SortFunc(own, func(x, y placementv1beta1.ClusterSchedulingPolicySnapshot) int {
		return cmp.Compare(policyIndex(&x), policyIndex(&y))
	})
	return own, list.ResourceVersion, nil
}

func policyIndex(policy *placementv1beta1.ClusterSchedulingPolicySnapshot) int {
	// A label that is no number was not written by us and ranks lowest.
	index, err := strconv.Atoi(policy.Labels[placementv1beta1.PolicyIndexLabel])
	if err != nil {
		return -1
	}
	return index
}

// latestPolicy is the newest of the snapshots, which are in the order of their
// indexes: of those that say so the highest, or else the highest of all.
func latestPolicy(existing []placementv1beta1.ClusterSchedulingPolicySnapshot) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	for i := len(existing) - 1; i >= 0; i-- {
		if placementv1beta1.IsLatestSnapshot(&existing[i]) {
			return &existing[i]
		}
	}
	if len(existing) == 0 {
		return nil
	}
	return &existing[len(existing)-1]
}

func (a *Activities) createPolicySnapshot(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, index int, hash []byte) (*placementv1beta1.ClusterSchedulingPolicySnapshot, error) {
	created := &placementv1beta1.ClusterSchedulingPolicySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.PolicySnapshotName(placement.Name, index),
			Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel:  placement.Name,
				placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue,
				placementv1beta1.PolicyIndexLabel:      strconv.Itoa(index),
			},
			Annotations:     policyAnnotations(placement),
			OwnerReferences: []metav1.OwnerReference{snapshot.Owner(placement)},
		},
		Spec: placementv1beta1.SchedulingPolicySnapshotSpec{Policy: placement.Spec.Policy.DeepCopy(), PolicyHash: hash},
	}
	if created.Spec.Policy != nil {
		created.Spec.Policy.NumberOfClusters = nil // an annotation, because it may change
	}
	err := a.Client.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("writing policy snapshot %s: %w", created.Name, errOvertaken)
	}
	if err != nil {
		return nil, fmt.Errorf("writing policy snapshot %s: %w", created.Name, err)
	}
	return created, nil
}

// policyAnnotations are what may change without a new policy snapshot.
func policyAnnotations(placement *placementv1beta1.ClusterResourcePlacement) map[string]string {
	annotations := map[string]string{
		placementv1beta1.CRPGenerationAnnotation: strconv.FormatInt(placement.Generation, 10),
	}
	if policy := placement.Spec.Policy; policy != nil && policy.NumberOfClusters != nil {
		annotations[placementv1beta1.NumberOfClustersAnnotation] = strconv.Itoa(int(*policy.NumberOfClusters))
	}
	return annotations
}

// refreshPolicySnapshot brings label and annotations of a snapshot up to date.
func (a *Activities) refreshPolicySnapshot(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, policy *placementv1beta1.ClusterSchedulingPolicySnapshot) (*placementv1beta1.ClusterSchedulingPolicySnapshot, error) {
	refreshed := policy.DeepCopy()
	return refreshed, a.patchPolicy(ctx, refreshed, func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		maps.Copy(p.Annotations, policyAnnotations(placement))
		p.Labels[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueTrue
	})
}

// patchPolicy writes labels and annotations if they changed.
func (a *Activities) patchPolicy(ctx context.Context, policy *placementv1beta1.ClusterSchedulingPolicySnapshot, change func(*placementv1beta1.ClusterSchedulingPolicySnapshot)) error {
	base := policy.DeepCopy()
	change(policy)
	if equality.Semantic.DeepEqual(base.ObjectMeta, policy.ObjectMeta) {
		return nil
	}
	if err := a.Client.Patch(ctx, policy, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching policy snapshot %s: %w", policy.Name, err)
	}
	return nil
}

// prunePolicies deletes the oldest policy snapshots beyond the history limit that
// nothing refers to.
func (a *Activities) prunePolicies(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing []placementv1beta1.ClusterSchedulingPolicySnapshot, latest, revision string) error {
	excess := len(existing) - selection.HistoryLimit(placement)
	if len(existing) == 0 || existing[len(existing)-1].Name != latest {
		excess++ // the latest has just been written
	}
	if excess <= 0 {
		return nil
	}
	refs, err := selection.ReadReferences(ctx, a.Live, placement.Name, revision)
	if err != nil {
		return err
	}
	for i := range existing {
		policy := &existing[i]
		if excess == 0 {
			return nil
		}
		if policy.Name == latest || refs.Policies[policy.Name] || refs.PolicyIndexes[strconv.Itoa(policyIndex(policy))] {
			continue
		}
		if err := a.removePolicy(ctx, policy); err != nil {
			return err
		}
		excess--
	}
	return nil
}

func (a *Activities) removePolicy(ctx context.Context, policy *placementv1beta1.ClusterSchedulingPolicySnapshot) error {
	uid := policy.UID
	err := a.Client.Delete(ctx, policy.DeepCopy(), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting policy snapshot %s: %w", policy.Name, err)
	}
	return nil
}
