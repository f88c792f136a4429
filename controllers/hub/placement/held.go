package placement

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namedHeld is how many clusters the condition names.
const namedHeld = 10

// heldCondition returns which removals wait until a user accepts them.
func heldCondition(placement placementv1beta1.PlacementObject, held *rules.HeldRemovals) metav1.Condition {
	var named []string
	for _, removal := range held.Removals[:min(len(held.Removals), namedHeld)] {
		named = append(named, removal.Cluster+" ("+removal.Why+")")
	}
	if more := held.Total - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	if held.Namespace != "" {
		return heldWithNamespace(placement, held)
	}
	if held.Failover {
		return metav1.Condition{
			Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonFailoverHeld,
			Message: fmt.Sprintf("The placement would leave %d cluster(s) at once for others: %s. It is more likely that the hub cannot reach them than that so many are ill. "+
				"Nothing is moved, and no cluster is picked, until they have recovered, or this is accepted: %s",
				held.Total, strings.Join(named, ", "), rules.AcceptCommand(placement)),
		}
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonUnexplainedRemovals,
		Message: fmt.Sprintf("The hub agent would take the placement off %d cluster(s), and no change of the placement and no deletion explains it: %s. "+
			"Nothing is removed, and no cluster is picked, until this is accepted: %s",
			held.Total, strings.Join(named, ", "), rules.AcceptCommand(placement)),
	}
}

// heldWithNamespace says that the placement would be removed from its clusters because its namespace is being deleted.
func heldWithNamespace(placement placementv1beta1.PlacementObject, held *rules.HeldRemovals) metav1.Condition {
	var clusters []string
	for _, removal := range held.Removals {
		clusters = append(clusters, removal.Cluster)
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonNamespaceDeleted,
		Message: fmt.Sprintf("Namespace %s is being deleted on the hub, and the placement with it, which would remove what is placed from %d cluster(s): %s. "+
			"Nothing is removed, and the namespace stays, until this is accepted: %s. To leave the objects on the clusters, first set deleteStrategy.propagationPolicy of the placement to Abandon",
			held.Namespace, held.Total, joinLimited(clusters), rules.AcceptCommand(placement)),
	}
}

// lossCondition returns which objects the clusters keep though they are no longer selected, until a user accepts that they go.
func lossCondition(placement placementv1beta1.PlacementObject, lost *snapshot.Loss) metav1.Condition {
	named := strings.Join(lost.Named, ", ")
	if more := lost.Total - len(lost.Named); more > 0 {
		named += fmt.Sprintf(", and %d more", more)
	}
	count := fmt.Sprintf("%d of %d objects are no longer selected, though no change of the resource selectors explains it: ", lost.Total,
		lost.Before)
	end := ". The clusters keep them, and no change is placed, until they are there again, or this is accepted: " +
		rules.AcceptCommand(placement)
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, Reason: lost.Reason,
		// Only the names are cut: without the command at its end, users would not know what to do.
		Message: count + workmodel.CutMessage(named, maxNote-len(count)-len(end)) + end,
	}
}

// changesHeldCondition returns until when changes wait that take very many bytes to write.
func changesHeldCondition(facts *Facts) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeChangesHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonTooManyBytes,
		Message: fmt.Sprintf("Changes of the selected resources wait until %s, and are then taken up together: %s",
			facts.Verdict.Due.UTC().Format(time.RFC3339), facts.Verdict.Excess),
	}
}

// kindsHeldCondition names the kinds whose propagation is disabled.
func kindsHeldCondition(facts *Facts) metav1.Condition {
	names := facts.Verdict.Held
	kinds := fmt.Sprintf("%d kinds", len(names))
	if len(names) == 1 {
		kinds = "1 kind"
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeKindsHeld, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonPropagationDisabled,
		Message: workmodel.CutMessage(fmt.Sprintf("%s held: %s. Members keep what they have of this; to let changes reach them: kubectl fleet enable %s",
			kinds, strings.Join(names, ", "), names[0]), maxNote),
	}
}

// dependenciesMissingCondition returns what the selected objects name that is not placed with them.
func dependenciesMissingCondition(facts *Facts) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeDependenciesMissing, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonDependenciesNotFound,
		Message: workmodel.CutMessage("Everything else is placed; create what is missing, and it follows by itself: "+
			facts.Verdict.MissingDependencies, maxNote),
	}
}

// resourcesMissingCondition returns what the selectors name and the hub does not have. KubeFleet's conditions stay True then, as
// all that there is has been placed; this one tells a misspelt selector from a placement that is done.
func resourcesMissingCondition(facts *Facts) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeResourcesMissing, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonResourcesNotFound,
		Message: workmodel.CutMessage("Not all that the selectors name is placed: "+facts.Verdict.Note, maxNote),
	}
}

// leftOutCondition names the objects that are selected and not placed as they are: those that are too large, and those that other
// placements with a priority have.
func leftOutCondition(left snapshot.LeftOut, tooLarge string) metav1.Condition {
	said := metav1.Condition{
		Type: placementv1beta1.ConditionTypeResourcesLeftOut, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonHeldByAnotherPlacement,
	}
	var parts []string
	if tooLarge != "" {
		said.Reason = placementv1beta1.ReasonObjectTooLarge
		parts = append(parts, "What is selected is not placed as it is: "+tooLarge)
	}
	if left.Total > 0 {
		named := strings.Join(left.Named, ", ")
		if more := left.Total - len(left.Named); more > 0 {
			named += fmt.Sprintf(", and %d more", more)
		}
		parts = append(parts, fmt.Sprintf("%d of the selected resources are held by other placements and left out here: %s. "+
			"To place them here, have the other placement no longer select them, or set a higher spec.priority with spec.preemption Always",
			left.Total, named))
	}
	said.Message = workmodel.CutMessage(strings.Join(parts, ". "), maxNote)
	return said
}

// emitHeldEvents reports removals and changes that have begun to be held, and of dependencies that are missing.
func (a *announcer) emitHeldEvents(ctx context.Context, placement placementv1beta1.PlacementObject,
	status placementv1beta1.PlacementStatus) {
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeRemovalsHeld); note != "" {
		log.FromContext(ctx).Info("Holding removals", "cause", note)
		a.Eventf(placement, nil, "Warning", "RemovalsHeld", "Schedule", "%s", workmodel.CutMessage(note, maxNote))
	}
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeChangesHeld); note != "" {
		a.Eventf(placement, nil, "Warning", "ChangesHeld", "Select", "%s", workmodel.CutMessage(note, maxNote))
	}
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeUpdateRunHeld); note != "" {
		a.Eventf(placement, nil, "Normal", "UpdateRunHeld", "Rollout", "%s", workmodel.CutMessage(note, maxNote))
	}
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeKindsHeld); note != "" {
		a.Eventf(placement, nil, "Normal", "KindsHeld", "Select", "%s", note)
	}
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeDependenciesMissing); note != "" {
		a.Eventf(placement, nil, "Warning", "DependenciesMissing", "Select", "%s", note)
	}
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeResourcesMissing); note != "" {
		a.Eventf(placement, nil, "Warning", "ResourcesMissing", "Select", "%s", note)
	}
	a.emitRemoval(placement, status)
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeResourcesLeftOut); note != "" {
		kind := "Normal"
		if meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeResourcesLeftOut).Reason == placementv1beta1.ReasonObjectTooLarge {
			kind = "Warning"
		}
		a.Eventf(placement, nil, kind, "ResourcesLeftOut", "Select", "%s", note)
	} else if meta.IsStatusConditionTrue(placement.GetPlacementStatus().Conditions, placementv1beta1.ConditionTypeResourcesLeftOut) &&
		!meta.IsStatusConditionTrue(status.Conditions, placementv1beta1.ConditionTypeResourcesLeftOut) {
		a.Eventf(placement, nil, "Normal", "NoResourcesLeftOut", "Select", "Nothing that is selected is left out any more")
	}
}

// emitRemoval reports objects that are not wanted any more and still on a cluster.
func (a *announcer) emitRemoval(placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus) {
	if note := newlyTold(placement, status, placementv1beta1.ConditionTypeRemovalPending); note != "" {
		a.Eventf(placement, nil, "Warning", "RemovalPending", "Delete", "%s", note)
	}
}

// newlyTold returns the message of a condition, if it tells something and the placement did not have the same before.
func newlyTold(placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus, conditionType string) string {
	after := meta.FindStatusCondition(status.Conditions, conditionType)
	before := meta.FindStatusCondition(placement.GetPlacementStatus().Conditions, conditionType)
	if after == nil || after.Reason == placementv1beta1.ReasonResolved || before != nil && before.Message == after.Message {
		return ""
	}
	return after.Message
}
