package placement

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namedHeld is how many clusters the condition names.
const namedHeld = 10

// heldCondition says which removals wait until a user accepts them.
func heldCondition(placement placementv1beta1.PlacementObject, held *placementv1beta1.HeldRemovals) metav1.Condition {
	var named []string
	for _, removal := range held.Removals[:min(len(held.Removals), namedHeld)] {
		named = append(named, removal.Cluster+" ("+removal.Why+")")
	}
	if more := held.Total - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonUnexplainedRemovals,
		Message: fmt.Sprintf("The hub agent would take the placement off %d cluster(s), and no change of the placement and no deletion explains it: %s. "+
			"Nothing is removed, and no cluster is picked, until this is accepted: kubectl fleet migrate accept %s",
			held.Total, strings.Join(named, ", "), placement.GetName()),
	}
}

// emitHeldEvent tells of removals that have begun to be held.
func (r *Reconciler) emitHeldEvent(ctx context.Context, placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus) {
	after := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	before := meta.FindStatusCondition(placement.GetPlacementStatus().Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	if after == nil || before != nil && before.Message == after.Message {
		return
	}
	log.FromContext(ctx).Info("Holding removals that nothing explains: " + after.Message)
	r.events.Eventf(placement, nil, "Warning", "RemovalsHeld", "Schedule", "%s", workmodel.CutMessage(after.Message, maxNote))
}
