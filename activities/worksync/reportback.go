package worksync

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// addReportBack lets Works say how the placement wants status reported as of now. If the
// placement changes its mind, or the cache does not know it yet, the hub's controller for
// reports makes up for it.
func (s *Syncer) addReportBack(ctx context.Context, binding *placementv1beta1.ClusterResourceBinding, wanted []placementv1beta1.Work) error {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	name := binding.Labels[placementv1beta1.ParentPlacementLabel]
	if err := s.client.Get(ctx, types.NamespacedName{Name: name}, placement); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading placement %s: %w", name, err)
	}
	for i := range wanted {
		wanted[i].Spec.ReportBackStrategy = workmodel.ReportBack(placement)
	}
	return nil
}
