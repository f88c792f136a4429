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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// errOvertaken says that another attempt wrote first.
var errOvertaken = errors.New("another attempt was faster")

// hashPolicy hashes what tells policies apart. The number of clusters does not count:
// picking more or fewer clusters by the same policy moves nothing that is placed. Nor does
// whether a placement goes back to an earlier affinity group, and when, for how long it tolerates a taint, nor do the rules for
// replicas, which move replicas and no clusters, nor what is about how and when the policy is carried out. No policy is the same as picking
// all clusters.
func hashPolicy(policy *placementv1beta1.PlacementPolicy) ([]byte, error) {
	counted := policy.DeepCopy()
	if counted == nil {
		counted = &placementv1beta1.PlacementPolicy{}
	}
	counted.PlacementType = cmp.Or(counted.PlacementType, placementv1beta1.PickAllPlacementType)
	rules.CopyChangeable(counted, nil)
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
func (a *Activities) ensurePolicySnapshot(ctx context.Context, placement placementv1beta1.PlacementObject,
	existing []placementv1beta1.PolicySnapshotObject) (placementv1beta1.PolicySnapshotObject, error) {
	hash, err := hashPolicy(placement.GetPlacementSpec().Policy)
	if err != nil {
		return nil, err
	}
	latest := newestPolicy(existing)
	same, err := holdsPolicy(latest, hash)
	if err != nil {
		return nil, err
	}
	if waits, err := postponePolicy(ctx, a.Client, placement, latest, same); err != nil || waits {
		return latest, err
	}
	if !same {
		index := 0
		if len(existing) > 0 {
			index = policyIndex(existing[len(existing)-1]) + 1
		}
		if latest, err = a.createPolicySnapshot(ctx, placement, index, hash, latest); err != nil {
			return nil, err
		}
	} else if latest, err = a.refreshPolicySnapshot(ctx, placement, latest); err != nil {
		return nil, err
	}
	for _, old := range existing {
		if old.GetName() == latest.GetName() || !rules.IsLatestSnapshot(old) {
			continue
		}
		err := patchPolicyMetadata(ctx, a.Client, old, func() {
			old.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueFalse
		})
		if err != nil {
			return nil, err
		}
	}
	return latest, nil
}

// noteWaiting notes that the policy of a placement waits for a resource snapshot, if it does, and returns since which one.
func noteWaiting(ctx context.Context, a *Activities, placement placementv1beta1.PlacementObject) (since int, waits bool, err error) {
	if !rules.IsLazy(placement) {
		return 0, false, nil
	}
	policies, _, err := a.listPolicySnapshots(ctx, placement)
	latest := newestPolicy(policies)
	if err != nil || latest == nil {
		return 0, false, err // the first policy acts at once
	}
	hash, err := hashPolicy(placement.GetPlacementSpec().Policy)
	if err != nil {
		return 0, false, err
	}
	same, err := holdsPolicy(latest, hash)
	if err != nil {
		return 0, false, err
	}
	if _, err := postponePolicy(ctx, a.Client, placement, latest, same); err != nil {
		return 0, false, err
	}
	since, waits = rules.PolicyWaits(latest)
	return since, waits, nil
}

// postponePolicy reports whether a policy that the latest snapshot does not hold waits for the next resource snapshot, and notes
// on the latest policy snapshot, which may be nil, since when.
func postponePolicy(ctx context.Context, c client.Client, placement placementv1beta1.PlacementObject,
	latest placementv1beta1.PolicySnapshotObject, same bool) (bool, error) {
	if latest == nil {
		return false, nil
	}
	// What was selected last stands on the placement; what cannot be read is nothing that was placed.
	selected, _ := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	since, waits := rules.PolicyWaits(latest)
	if !waits {
		since = selected.Index
	}
	switch {
	case same:
		return false, noteOnPolicy(ctx, c, latest, map[string]string{placementv1beta1.PolicyWaitsAnnotation: ""})
	case rules.IsLazy(placement) && selected.Snapshot != "" && selected.Index <= since:
		return true, noteOnPolicy(ctx, c, latest, map[string]string{placementv1beta1.PolicyWaitsAnnotation: strconv.Itoa(since)})
	}
	return false, nil // the note stays with the snapshot that is the latest no longer
}

// holdsPolicy reports whether a snapshot, which may be nil, holds the policy with a hash. That of another author states
// another hash of the same policy.
func holdsPolicy(latest placementv1beta1.PolicySnapshotObject, hash []byte) (bool, error) {
	if latest == nil {
		return false, nil
	}
	spec := latest.GetPolicySnapshotSpec()
	if string(spec.PolicyHash) == string(hash) {
		return true, nil
	}
	held, err := hashPolicy(spec.Policy)
	return string(held) == string(hash), err
}

// listPolicySnapshots reads live the policy snapshots of a placement, by index, and
// returns the revision of the hub's store they were read at. Those that were made before
// the placement got its UID are adopted.
func (a *Activities) listPolicySnapshots(ctx context.Context,
	placement placementv1beta1.PlacementObject) ([]placementv1beta1.PolicySnapshotObject, string, error) {
	list := placementv1beta1.ScopeOf(placement).NewPolicySnapshotList()
	err := a.Live.List(ctx, list, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	if err != nil {
		return nil, "", fmt.Errorf("listing policy snapshots of placement %s: %w", placement.GetName(), err)
	}
	var own []placementv1beta1.PolicySnapshotObject
	owner := rules.PlacementOwner(placement)
	for _, policy := range list.Objects() {
		switch rules.KinshipOf(policy, owner) {
		case rules.KinshipDisputed:
			continue
		case rules.KinshipInherited:
			if err := adoptPolicySnapshot(ctx, a.Client, policy, owner); err != nil {
				return nil, "", err
			}
		case rules.KinshipOwn:
		}
		own = append(own, policy)
	}
	slices.SortFunc(own, func(x, y placementv1beta1.PolicySnapshotObject) int {
		return cmp.Compare(policyIndex(x), policyIndex(y))
	})
	return own, list.GetResourceVersion(), nil
}

// adoptPolicySnapshot makes a placement, as it is now, the owner of a policy snapshot.
func adoptPolicySnapshot(ctx context.Context, c client.Client, policy placementv1beta1.PolicySnapshotObject,
	owner metav1.OwnerReference) error {
	patch, err := fence.Patch(policy.GetUID(), fence.Add("/metadata/ownerReferences", rules.InheritedBy(policy, owner)))
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, policy, patch); err != nil {
		return fmt.Errorf("adopting policy snapshot %s: %w", policy.GetName(), err)
	}
	return nil
}

func policyIndex(policy placementv1beta1.PolicySnapshotObject) int {
	return rules.IndexOf(policy, placementv1beta1.PolicyIndexLabel)
}

// newestPolicy returns the latest of the snapshots, which are in the order of their indexes, by
// its label, or else the last of all; nil if there are none.
func newestPolicy(existing []placementv1beta1.PolicySnapshotObject) placementv1beta1.PolicySnapshotObject {
	if latest := rules.LatestSnapshot(existing, placementv1beta1.PolicyIndexLabel); latest != nil {
		return latest
	}
	if len(existing) == 0 {
		return nil
	}
	return existing[len(existing)-1]
}

// createPolicySnapshot stores the policy that a placement has now. The snapshot before it, which may be nil, hands on which request to
// reschedule was carried out last.
func (a *Activities) createPolicySnapshot(ctx context.Context, placement placementv1beta1.PlacementObject,
	index int, hash []byte, before placementv1beta1.PolicySnapshotObject) (placementv1beta1.PolicySnapshotObject, error) {
	created := placementv1beta1.ScopeOf(placement).NewPolicySnapshot(placementv1beta1.PolicySnapshotName(placement.GetName(), index))
	created.SetLabels(map[string]string{
		placementv1beta1.ParentPlacementLabel:  placement.GetName(),
		placementv1beta1.IsLatestSnapshotLabel: placementv1beta1.LabelValueTrue,
		placementv1beta1.PolicyIndexLabel:      strconv.Itoa(index),
	})
	annotations := policyAnnotations(placement)
	if before != nil && before.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation] != "" {
		annotations[placementv1beta1.RescheduleAtAnnotation] = before.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
	}
	created.SetAnnotations(annotations)
	created.SetOwnerReferences([]metav1.OwnerReference{rules.PlacementOwner(placement)})
	spec := created.GetPolicySnapshotSpec()
	spec.Policy = placement.GetPlacementSpec().Policy.DeepCopy()
	spec.PolicyHash = hash
	if spec.Policy != nil {
		rules.CopyChangeable(spec.Policy, nil) // the number is an annotation; the rest is read from the placement
	}
	err := a.Client.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("writing policy snapshot %s: %w", created.GetName(), errOvertaken)
	}
	if err != nil {
		return nil, fmt.Errorf("writing policy snapshot %s: %w", created.GetName(), err)
	}
	return created, nil
}

// policyAnnotations returns what may change without a new policy snapshot.
func policyAnnotations(placement placementv1beta1.PlacementObject) map[string]string {
	annotations := map[string]string{
		placementv1beta1.CRPGenerationAnnotation: strconv.FormatInt(placement.GetGeneration(), 10),
	}
	if policy := placement.GetPlacementSpec().Policy; policy != nil && policy.NumberOfClusters != nil {
		annotations[placementv1beta1.NumberOfClustersAnnotation] = strconv.Itoa(int(*policy.NumberOfClusters))
	}
	return annotations
}

// noteOnPolicy notes something on a policy snapshot, as annotations; an empty value takes the note off.
func noteOnPolicy(ctx context.Context, c client.Client, policy placementv1beta1.PolicySnapshotObject, notes map[string]string) error {
	return patchPolicyMetadata(ctx, c, policy, func() {
		annotations := map[string]string{}
		maps.Copy(annotations, policy.GetAnnotations())
		for key, value := range notes {
			if delete(annotations, key); value != "" {
				annotations[key] = value
			}
		}
		policy.SetAnnotations(annotations)
	})
}

// refreshPolicySnapshot brings label and annotations of a snapshot up to date.
func (a *Activities) refreshPolicySnapshot(ctx context.Context, placement placementv1beta1.PlacementObject,
	policy placementv1beta1.PolicySnapshotObject) (placementv1beta1.PolicySnapshotObject, error) {
	refreshed := placementv1beta1.DeepCopyOf(policy)
	return refreshed, patchPolicyMetadata(ctx, a.Client, refreshed, func() {
		annotations := refreshed.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, policyAnnotations(placement))
		refreshed.SetAnnotations(annotations)
		refreshed.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] = placementv1beta1.LabelValueTrue
	})
}

// patchPolicyMetadata writes labels and annotations if change makes them differ.
func patchPolicyMetadata(ctx context.Context, c client.Client, policy placementv1beta1.PolicySnapshotObject, change func()) error {
	base := placementv1beta1.DeepCopyOf(policy)
	change()
	if maps.Equal(base.GetLabels(), policy.GetLabels()) && maps.Equal(base.GetAnnotations(), policy.GetAnnotations()) {
		return nil
	}
	if err := c.Patch(ctx, policy, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching policy snapshot %s: %w", policy.GetName(), err)
	}
	return nil
}

// prunePolicies deletes the oldest policy snapshots beyond the history limit that
// nothing refers to.
func (a *Activities) prunePolicies(ctx context.Context, placement placementv1beta1.PlacementObject,
	existing []placementv1beta1.PolicySnapshotObject, latest, revision string) error {
	excess := len(existing) - selection.HistoryLimit(placement)
	if len(existing) == 0 || existing[len(existing)-1].GetName() != latest {
		excess++ // the latest has just been written
	}
	if excess <= 0 {
		return nil
	}
	refs, err := selection.ReadReferences(ctx, a.Live, placement, revision)
	if err != nil {
		return err
	}
	for _, policy := range existing {
		if excess == 0 {
			return nil
		}
		if policy.GetName() == latest || refs.Policies[policy.GetName()] || refs.PolicyIndexes[strconv.Itoa(policyIndex(policy))] {
			continue
		}
		if err := a.deletePolicySnapshot(ctx, policy); err != nil {
			return err
		}
		excess--
	}
	return nil
}

func (a *Activities) deletePolicySnapshot(ctx context.Context, policy placementv1beta1.PolicySnapshotObject) error {
	uid := policy.GetUID()
	err := a.Client.Delete(ctx, placementv1beta1.DeepCopyOf(policy), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting policy snapshot %s: %w", policy.GetName(), err)
	}
	return nil
}
