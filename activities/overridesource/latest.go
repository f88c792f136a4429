package overridesource

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// UnsettledError says that an override was changed a moment ago, and its snapshot does
// not show that yet.
type UnsettledError struct{ Override string }

// Error names the override.
func (e *UnsettledError) Error() string {
	return "the latest change of " + e.Override + " is not in a snapshot yet"
}

// Latest lists the snapshots that are in force and makes sure, with the overrides
// themselves, that nothing is missing in them that was changed before and can concern the
// placement; an UnsettledError says that it is. Read live, it answers for
// everything that was written before.
func Latest(ctx context.Context, live client.Reader, placement override.Placement) (Snapshots, error) {
	var overrides []placementv1beta1.OverrideObject
	for _, list := range placementv1beta1.OverrideLists() {
		if err := live.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing overrides: %w", err)
		}
		overrides = append(overrides, list.Objects()...)
	}
	inForce, err := InForce(ctx, live)
	if err != nil {
		return nil, err
	}
	snapshots := map[types.NamespacedName]placementv1beta1.OverrideSnapshotObject{}
	for _, snapshot := range inForce {
		snapshots[overrideOf(snapshot)] = snapshot
	}
	leaving := map[types.NamespacedName]bool{}
	for _, o := range overrides {
		key := client.ObjectKeyFromObject(o)
		leaving[key] = !o.GetDeletionTimestamp().IsZero()
		if leaving[key] || !override.Concerns(o.GetOverridePlacement(), o.GetNamespace(), placement) {
			continue
		}
		if err := checkSettled(o, snapshots[key]); err != nil {
			return nil, err
		}
	}
	// Snapshots of overrides that are being deleted are about to lose their effect.
	return slices.DeleteFunc(inForce, func(snapshot placementv1beta1.OverrideSnapshotObject) bool {
		return leaving[overrideOf(snapshot)]
	}), nil
}

// checkSettled says whether the snapshot in force, nil if there is none, shows an override as it is.
func checkSettled(o placementv1beta1.OverrideObject, inForce placementv1beta1.OverrideSnapshotObject) error {
	hash, err := override.Hash(o)
	if err != nil {
		return fmt.Errorf("hashing override %s: %w", o.GetName(), err)
	}
	shown := false
	if inForce != nil {
		if shown, err = override.IsSnapshotOf(inForce, hash); err != nil {
			return fmt.Errorf("hashing snapshot %s: %w", inForce.GetName(), err)
		}
	}
	valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
	switch {
	case valid == nil || valid.ObservedGeneration != o.GetGeneration():
	case valid.Status == metav1.ConditionFalse && valid.Reason != placementv1beta1.ReasonOverridePlacementNotFound:
		return nil // it has no effect, and its condition says why
	case shown:
		return nil
	}
	return &UnsettledError{Override: "override " + placementv1beta1.ScopeOf(o).String() + o.GetName()}
}

// Corrected reports whether an override that a rollout began with cannot be applied somewhere and was changed since. There is
// nothing to be gained by waiting for the next rollout with what cannot work, so the change counts at once.
func Corrected(inForce Snapshots, picked []string, bindings []placementv1beta1.BindingObject) bool {
	latest := inForce.shortForms()
	superseded := func(ref string) bool { return slices.Contains(picked, ref) && !slices.Contains(latest, ref) }
	return slices.ContainsFunc(bindings, func(binding placementv1beta1.BindingObject) bool {
		overridden := meta.FindStatusCondition(binding.GetConditions(), placementv1beta1.ConditionTypeOverridden)
		return overridden != nil && overridden.Status == metav1.ConditionFalse && overridden.ObservedGeneration == binding.GetGeneration() &&
			slices.ContainsFunc(RefsOf(*binding.GetBindingSpec()), superseded)
	})
}
