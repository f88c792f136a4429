package rollingupdate

import (
	"context"
	"maps"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// callState is what the parts of one call of AdvancePlacement share.
type callState struct {
	acts      *Activities
	in        wf.AdvanceRequest
	placement placementv1beta1.PlacementObject
	// claim is the one on the placement.
	claim    claim
	goal     goal
	flight   *flightLog
	bindings *clusterwait.BindingCache
	// learned says that the call has read which refused writes the placement lists.
	learned bool
	// gates knows what closes clusters.
	gates *hubread.BrakeKeeper
	// replacement is what takes the place of clusters that the placement leaves.
	replacement bind.Replacement
}

// readGates reads, live, what closes clusters.
func (s *callState) readGates(ctx context.Context) error {
	return s.gates.Read(ctx, brake.SubjectOf(s.placement))
}

// lifecycleHooks has the hooks of the placement; nil if there are none.
func (s *callState) lifecycleHooks() *placementv1beta1.ClusterLifecycle {
	return rules.LifecycleOf(s.placement)
}

// readBinding reads a binding live, nil if it is gone. A change that was refused must not
// be proposed again from a cache that lags behind.
func (s *callState) readBinding(ctx context.Context, name string) (placementv1beta1.BindingObject, error) {
	binding, err := hubread.Existing(ctx, s.acts.Live, placementv1beta1.ScopeOf(s.placement).NewBinding(name), "binding")
	if binding != nil {
		s.bindings.Record(binding)
	}
	return binding, err
}

// annotated returns a placement with an annotation that was written, empty if it was removed. The rest stays what the call works for: the
// spec may have changed since, which a look at the plan is to see.
func annotated(placement placementv1beta1.PlacementObject, key, value string) placementv1beta1.PlacementObject {
	noted := placementv1beta1.DeepCopyOf(placement)
	annotations := map[string]string{}
	maps.Copy(annotations, noted.GetAnnotations())
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	noted.SetAnnotations(annotations)
	return noted
}
