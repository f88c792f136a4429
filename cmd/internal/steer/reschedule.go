package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Reschedule picks the clusters of a placement afresh.
func Reschedule() Verb {
	return onPlacement(Verb{
		Name: "reschedule", Asks: true,
		Short: "Pick the clusters of a placement afresh, and divide its replicas afresh",
		Long: `Pick the clusters of a placement and divide its replicas as if nothing had been placed yet, once: a placement stays
otherwise with the clusters, the affinity group and the replicas that it has while these fit. What it moves, moves as after
a change of the policy: within maxUnavailable and maxSurge, or with the next update run under External. Clusters that the
placement names (PickFixed) stay.

The time goes into the annotation fleetflow.io/reschedule-at of the placement.`,
	}, func(call *Call, p hub.Placement) (Deed, error) {
		return Deed{
			Question: fmt.Sprintf("Pick the clusters of %s and divide its replicas afresh? What runs may move to other clusters.", p.Ref),
			Do:       func(ctx context.Context) (Result, error) { return requestReschedule(ctx, call, p, call.Clock.Now()) },
		}, nil
	})
}

// requestReschedule asks for it by a time later than that of any request before, whatever the clocks say.
func requestReschedule(ctx context.Context, call *Call, p hub.Placement, now time.Time) (Result, error) {
	if call.Sends() {
		err := ChangeSpec(ctx, call.Writer(), p.Object, func(object placementv1beta1.PlacementObject) ([]fence.Op, error) {
			at := now.UTC().Truncate(time.Second)
			if before, err := rules.RescheduleAt(object); err == nil && !at.After(before) {
				at = before.Add(time.Second)
			}
			return fence.Annotate(object.GetAnnotations(), placementv1beta1.RescheduleAtAnnotation, at.Format(time.RFC3339)), nil
		})
		if err != nil {
			return Result{}, fmt.Errorf("changing %s: %w", p.Ref, err)
		}
	}
	return resultSaying("%s is scheduled afresh: kubectl fleet status %s shows what moves", p.Ref, p.Flags()), nil
}
