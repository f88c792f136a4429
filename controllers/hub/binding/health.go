package binding

import (
	"context"
	"time"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// projectHealth adds to the status of a binding since when what is placed is not available, if its placement leaves clusters
// for that reason. What a silent member has reported is not known to hold any more.
func (r *Reconciler) projectHealth(ctx context.Context, binding placementv1beta1.BindingObject, works []placementv1beta1.Work,
	status *placementv1beta1.ResourceBindingStatus, silent bool, now time.Time) error {
	placement, err := r.reader.readPlacement(ctx, binding)
	revision := workmodel.Revision(binding)
	if err != nil || placement == nil || revision == "" || rules.ApplicationFailoverOf(placement) == nil {
		return err
	}
	seen := workmodel.Observe(binding, works)
	if silent {
		seen = rules.ObservedNothing
	}
	status.Health = rules.HealthAfter(binding.GetBindingStatus().Health, seen, revision, rules.UnavailablePeriod(placement), now)
	return nil
}
