package binding

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
)

// projectHealth adds to the status of a binding since when what is placed is not available, if its placement leaves clusters
// for that reason. What a silent member has reported is not known to hold any more.
func (r *Reconciler) projectHealth(ctx context.Context, binding placementv1beta1.BindingObject, works []placementv1beta1.Work, status *placementv1beta1.ResourceBindingStatus, now time.Time) error {
	placement, err := r.readPlacement(ctx, binding)
	revision := workmodel.Revision(binding)
	if err != nil || placement == nil || revision == "" || placementv1beta1.ApplicationFailoverOf(placement) == nil {
		return err
	}
	member := &clusterv1beta1.MemberCluster{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: binding.GetBindingSpec().TargetCluster}, member); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading member cluster %s: %w", binding.GetBindingSpec().TargetCluster, err)
	}
	seen := workmodel.Observe(binding, works)
	if membership.Silent(member) {
		seen = placementv1beta1.ObservedNothing
	}
	status.Health = binding.GetBindingStatus().Health.After(seen, revision, placementv1beta1.UnavailablePeriod(placement), now)
	return nil
}
