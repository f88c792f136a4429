package placement

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Needing lists the placements that need an open workflow, for the audit. After a reconnect, when workflows may have
// been lost, it includes those whose rollout waits for its clusters; otherwise not, because a rollout that its limits
// hold back would be started again and again.
func (r *Reconciler) Needing(ctx context.Context, reconnected bool) ([]wf.Ref, error) {
	placements := r.scope.NewPlacementList()
	if err := r.client.List(ctx, placements, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing placements: %w", err)
	}
	var refs []wf.Ref
	for _, placement := range placements.Objects() {
		facts, err := Gather(ctx, r.client, placement, r.Gates)
		if err != nil {
			return nil, err
		}
		if need := NeedsWork(facts); need.Demand != "" || need.HasDeferredChanges || reconnected && need.Cause != "" {
			refs = append(refs, waker.PlacementRef(placement))
		}
	}
	orphans, err := r.listOrphanedEvictions(ctx, placements.Objects())
	return append(refs, orphans...), err
}
