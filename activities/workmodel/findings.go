package workmodel

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxFindings bounds each list of single resources in the status of a binding,
// as the API promises.
const maxFindings = 100

// listFindings lists what find returns for the manifests that Works report on, as far as there is room. What a Work says of
// an earlier spec is left out: it would name resources that may no longer be placed.
func listFindings[T any](works []placementv1beta1.Work, find func(*placementv1beta1.Work,
	*placementv1beta1.ManifestCondition) *T) (found []T, more int) {
	for i := range works {
		if !hasReported(&works[i]) {
			continue
		}
		for j := range works[i].Status.ManifestConditions {
			switch finding := find(&works[i], &works[i].Status.ManifestConditions[j]); {
			case finding == nil:
			case len(found) == maxFindings:
				more++
			default:
				found = append(found, *finding)
			}
		}
	}
	return found, more
}

// listHeld lists the objects that overrides could not be applied to, before what else has failed.
func listHeld(binding placementv1beta1.BindingObject, held *OverrideError, failed []placementv1beta1.FailedResourcePlacement,
	now metav1.Time) []placementv1beta1.FailedResourcePlacement {
	var all []placementv1beta1.FailedResourcePlacement
	for _, object := range held.Held {
		if len(all) == maxFindings {
			return all
		}
		condition := newCondition(placementv1beta1.ConditionTypeOverridden, metav1.ConditionFalse, placementv1beta1.ReasonOverriddenFailed,
			fmt.Sprintf("Failed to apply the override rules on the resource: %v", object.Cause))
		condition.ObservedGeneration = binding.GetGeneration()
		found := placementv1beta1.FailedResourcePlacement{ResourceIdentifier: object.ResourceIdentifier, Condition: condition}
		found.Condition.LastTransitionTime = sinceWhen(binding, found, now)
		all = append(all, found)
	}
	return slices.Concat(all, failed[:min(len(failed), maxFindings-len(all))])
}

// sinceWhen returns since when the binding has said so of a resource.
func sinceWhen(binding placementv1beta1.BindingObject, found placementv1beta1.FailedResourcePlacement, now metav1.Time) metav1.Time {
	for i := range binding.GetBindingStatus().FailedPlacements {
		said := &binding.GetBindingStatus().FailedPlacements[i]
		if apiequality.Semantic.DeepEqual(said.ResourceIdentifier, found.ResourceIdentifier) &&
			said.Condition.Type == found.Condition.Type && said.Condition.Status == found.Condition.Status {
			return said.Condition.LastTransitionTime
		}
	}
	return now
}

// findFailed returns a resource that could not be applied, is not available or could not be compared.
func findFailed(work *placementv1beta1.Work, manifest *placementv1beta1.ManifestCondition) *placementv1beta1.FailedResourcePlacement {
	condition := failedCondition(manifest.Conditions)
	if condition == nil {
		return nil
	}
	found := &placementv1beta1.FailedResourcePlacement{ResourceIdentifier: resourceIdentifier(work, manifest.Identifier),
		Condition: *condition}
	found.Condition.Message = CutMessage(found.Condition.Message, maxMessage)
	return found
}

// failedCondition returns the first condition of a manifest that is false.
func failedCondition(conditions []metav1.Condition) *metav1.Condition {
	for _, conditionType := range []string{
		placementv1beta1.ConditionTypeApplied,
		placementv1beta1.ConditionTypeAvailable,
		placementv1beta1.ConditionTypeDiffReported,
	} {
		if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil && condition.Status == metav1.ConditionFalse {
			return condition
		}
	}
	return nil
}

// DescribeFirstFailure names the first object of a cluster of which a condition is False, and says why; nothing if the binding names none.
func DescribeFirstFailure(binding placementv1beta1.BindingObject, conditionType string) string {
	for i := range binding.GetBindingStatus().FailedPlacements {
		said := &binding.GetBindingStatus().FailedPlacements[i]
		if said.Condition.Type == conditionType {
			return said.Kind + " " + placementv1beta1.Scope{Namespace: said.Namespace}.String() + said.Name + ": " + said.Condition.Message
		}
	}
	return ""
}

// findDrifted returns a resource that was changed on the cluster.
func findDrifted(work *placementv1beta1.Work, manifest *placementv1beta1.ManifestCondition) *placementv1beta1.DriftedResourcePlacement {
	details := manifest.DriftDetails
	if details == nil {
		return nil
	}
	return &placementv1beta1.DriftedResourcePlacement{
		ResourceIdentifier:              resourceIdentifier(work, manifest.Identifier),
		ObservationTime:                 details.ObservationTime,
		TargetClusterObservedGeneration: details.ObservedInMemberClusterGeneration,
		FirstDriftedObservedTime:        details.FirstDriftedObservedTime,
		ObservedDrifts:                  details.ObservedDrifts,
	}
}

// findDiffed returns a resource that differs from the hub's and was left alone.
func findDiffed(work *placementv1beta1.Work, manifest *placementv1beta1.ManifestCondition) *placementv1beta1.DiffedResourcePlacement {
	details := manifest.DiffDetails
	if details == nil {
		return nil
	}
	return &placementv1beta1.DiffedResourcePlacement{
		ResourceIdentifier:              resourceIdentifier(work, manifest.Identifier),
		ObservationTime:                 details.ObservationTime,
		TargetClusterObservedGeneration: details.ObservedInMemberClusterGeneration,
		FirstDiffedObservedTime:         details.FirstDiffedObservedTime,
		ObservedDiffs:                   details.ObservedDiffs,
	}
}

// tellOfMore adds to what is said last how many findings are not listed.
func tellOfMore(conditions []metav1.Condition, failed, drifted, diffed int) {
	var parts []string
	for _, kind := range []struct {
		name string
		more int
	}{{"failed", failed}, {"drifted", drifted}, {"diffed", diffed}} {
		if kind.more > 0 {
			parts = append(parts, fmt.Sprintf("%d more %s placement(s)", kind.more, kind.name))
		}
	}
	if len(parts) == 0 || len(conditions) == 0 {
		return
	}
	last := &conditions[len(conditions)-1]
	last.Message = CutMessage(last.Message+" ("+strings.Join(parts, ", ")+" are not listed; see the Works)", maxMessage)
}

func hasReported(work *placementv1beta1.Work) bool {
	return currentCondition(work, placementv1beta1.ConditionTypeApplied) != nil ||
		currentCondition(work, placementv1beta1.ConditionTypeDiffReported) != nil
}

// resourceIdentifier names a resource of a Work, with the envelope it was in.
func resourceIdentifier(work *placementv1beta1.Work, from placementv1beta1.WorkResourceIdentifier) placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{
		Group:     from.Group,
		Version:   from.Version,
		Kind:      from.Kind,
		Name:      from.Name,
		Namespace: from.Namespace,
		Envelope:  envelopeOf(work),
	}
}
