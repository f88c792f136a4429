package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewReschedule returns `kubectl fleet reschedule`.
func NewReschedule(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return steeringVerb(f, streams, hub.KindPlacement, &cobra.Command{
		Use:   "reschedule PLACEMENT",
		Short: "Pick the clusters of a placement afresh, and divide its replicas afresh",
		Long: `Pick the clusters of a placement and divide its replicas as if nothing had been placed yet, once: a placement stays
otherwise with the clusters, the affinity group and the replicas that it has while these fit. What it moves, moves as after
a change of the policy: within maxUnavailable and maxSurge, or with the next update run under External. Clusters that the
placement names (PickFixed) stay.

The time goes into the annotation fleetflow.io/reschedule-at of the placement.`,
		Example: `  kubectl fleet reschedule web`,
		Args:    exactlyOne("a placement", "kubectl fleet reschedule web"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, _ []string) error {
		return s.reschedule(ctx, c, *found.Placement, s.factory.Clock.Now())
	})
}

// reschedule asks for it by a time later than that of any request before, whatever the clocks say.
func (s *steering) reschedule(ctx context.Context, c client.WithWatch, p hub.Placement, now time.Time) error {
	if err := s.Ask(s.streams, fmt.Sprintf("Pick the clusters of %s and divide its replicas afresh? What runs may move to other clusters.",
		p.Ref)); err != nil {
		return err
	}
	if s.Sends() {
		err := changeSpec(ctx, s.writer(c), p.Object, func(object placementv1beta1.PlacementObject) ([]fence.Op, error) {
			at := now.UTC().Truncate(time.Second)
			if before, err := placementv1beta1.RescheduleAt(object); err == nil && !at.After(before) {
				at = before.Add(time.Second)
			}
			return fence.Annotate(object.GetAnnotations(), placementv1beta1.RescheduleAtAnnotation, at.Format(time.RFC3339)), nil
		})
		if err != nil {
			return fmt.Errorf("changing %s: %w", p.Ref, err)
		}
	}
	s.Done(s.streams, "%s is scheduled afresh: kubectl fleet status %s shows what moves", p.Ref, p.Flags())
	return nil
}
