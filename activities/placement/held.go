package placement

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// isRespecified reports whether a placement has changed since its clusters were last picked, or that clusters were never picked by the
// latest of its policies, which explains that some of them are no longer picked.
func isRespecified(placement placementv1beta1.PlacementObject, policies []placementv1beta1.PolicySnapshotObject,
	latest placementv1beta1.PolicySnapshotObject) bool {
	if len(policies) > 0 && latest.GetPolicySnapshotStatus().ObservedCRPGeneration == 0 {
		return true
	}
	for _, policy := range policies {
		if policy.GetPolicySnapshotStatus().ObservedCRPGeneration == placement.GetGeneration() {
			return false
		}
	}
	return len(policies) > 0
}

// holdRemovals reports whether a decision is not to be carried out, because it would let bindings go for no reason that a user has
// given, or would have the placement leave too many clusters at once. That stands on the placement then, for its status and for the user
// who accepts.
func (a *Activities) holdRemovals(ctx context.Context, placement placementv1beta1.PlacementObject, d decided) (bool, error) {
	uids := make(map[string]types.UID, len(d.unexplained))
	for _, binding := range d.bindings {
		uids[binding.GetName()] = binding.GetUID()
	}
	removals, err := a.Catch.HoldRemovals(ctx, placement, d.unexplained, uids)
	if err != nil {
		return false, err
	}
	if d.tooMany != nil {
		removals = d.tooMany
	}
	held := rules.NewHeldRemovals(placement, removals)
	held.Failover = d.tooMany != nil
	if held.Total > 0 && !held.IsAccepted(placement) {
		return true, writeHeld(ctx, a.Client, placement, held.Encode())
	}
	return false, nil
}

// writeHeld writes on a placement what is held. With nothing, once it is carried out, it takes away what was held and accepted.
func writeHeld(ctx context.Context, c client.Client, placement placementv1beta1.PlacementObject, value string) error {
	seen := placement.GetAnnotations()
	var operations []fence.Op
	switch before, stands := seen[placementv1beta1.RemovalsHeldAnnotation]; {
	case value != "" && before != value:
		operations = fence.Annotate(seen, placementv1beta1.RemovalsHeldAnnotation, value)
	case value == "" && stands:
		operations = append(operations, fence.Remove(fence.AnnotationPath(placementv1beta1.RemovalsHeldAnnotation)))
	}
	if _, stands := seen[placementv1beta1.RemovalsAcceptedAnnotation]; stands && value == "" {
		operations = append(operations, fence.Remove(fence.AnnotationPath(placementv1beta1.RemovalsAcceptedAnnotation)))
	}
	if len(operations) == 0 {
		return nil
	}
	patch, err := fence.Patch(placement.GetUID(), operations...)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, placementv1beta1.DeepCopyOf(placement), patch); err != nil {
		return fmt.Errorf("writing the held removals of placement %s: %w", placement.GetName(), err)
	}
	return nil
}
