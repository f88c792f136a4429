package rules

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// PruningOf returns what the Works of a placement say of how objects are removed, as PruneAnnotation has it; empty if the member
// agents decide.
func PruningOf(placement placementv1beta1.PlacementObject) string {
	s := StrategyOf(placement).DeleteStrategy
	if s == nil || s.PrunePropagationPolicy == "" && s.ReconcileTimeoutSeconds == nil && s.PruneTimeoutSeconds == nil {
		return ""
	}
	said, err := json.Marshal(placementv1beta1.DeleteStrategy{PrunePropagationPolicy: s.PrunePropagationPolicy,
		ReconcileTimeoutSeconds: s.ReconcileTimeoutSeconds, PruneTimeoutSeconds: s.PruneTimeoutSeconds})
	if err != nil {
		return "" // of a text and numbers; it cannot fail
	}
	return string(said)
}

// PruningOfWork returns what a Work says of how its objects are removed. What is not said as PruningOf says it is left out.
func PruningOfWork(work metav1.Object) placementv1beta1.DeleteStrategy {
	said := placementv1beta1.DeleteStrategy{}
	if json.Unmarshal([]byte(work.GetAnnotations()[placementv1beta1.PruneAnnotation]), &said) != nil {
		return placementv1beta1.DeleteStrategy{}
	}
	switch said.PrunePropagationPolicy {
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		said.PrunePropagationPolicy = ""
	}
	for _, seconds := range []**int32{&said.ReconcileTimeoutSeconds, &said.PruneTimeoutSeconds} {
		if *seconds != nil && **seconds < 1 {
			*seconds = nil
		}
	}
	return said
}
