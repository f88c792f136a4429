// Package placement is the hands of the placement workflow: it reads what a
// placement selects, writes snapshots, picks clusters and writes bindings. What to
// write is decided by the pure packages snapshot and scheduler; here is only
// reading, storing, and what makes both safe when attempts overlap or die.
package placement

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/throttle"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Activities are the activities of the placement workflow.
type Activities struct {
	// Client writes.
	Client client.Client
	// Live reads from the API server, past every cache.
	Live client.Reader
	// Selector resolves resource selectors.
	Selector *Selector
	// Clock stamps conditions.
	Clock clock.Clock
	// FleetReads bounds the copies of the fleet that this process holds at the same time.
	FleetReads throttle.Limit
}

// NewActivities puts the activities of the placement workflow together.
func NewActivities(c client.Client, live client.Reader, selector *Selector, clk clock.Clock) *Activities {
	return &Activities{Client: c, Live: live, Selector: selector, Clock: clk}
}

// placement reads a placement live. It is nil if the placement is gone, being
// deleted, or another one of the same name: all of which end the work for it.
func (a *Activities) placement(ctx context.Context, ref wf.Ref) (*placementv1beta1.ClusterResourcePlacement, error) {
	placement, err := readPlacement(ctx, a.Live, ref.Name)
	if err != nil || placement == nil {
		return nil, err
	}
	if placement.UID != types.UID(ref.UID) || placement.DeletionTimestamp != nil {
		return nil, nil
	}
	return placement, nil
}

// readPlacement returns nil if there is no such placement.
func readPlacement(ctx context.Context, live client.Reader, name string) (*placementv1beta1.ClusterResourcePlacement, error) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	err := live.Get(ctx, client.ObjectKey{Name: name}, placement)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading placement %s: %w", name, err)
	}
	return placement, nil
}
