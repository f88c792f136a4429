package rollingupdate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// callState is what the parts of one call of AdvancePlacement share.
type callState struct {
	acts      *Activities
	in        act.AdvanceRequest
	placement placementv1beta1.PlacementObject
	// claim is the one on the placement.
	claim    claim
	goal     goal
	flight   *flightLog
	bindings *clusterwait.BindingCache
}

// readBinding reads a binding live, nil if it is gone. A change that was refused must not
// be proposed again from a cache that lags behind.
func (s *callState) readBinding(ctx context.Context, name string) (placementv1beta1.BindingObject, error) {
	scope := placementv1beta1.ScopeOf(s.placement)
	binding := scope.NewBinding(name)
	err := s.acts.Live.Get(ctx, scope.Key(name), binding)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s: %w", name, err)
	}
	s.bindings.Record(binding)
	return binding, nil
}
