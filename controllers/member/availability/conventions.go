package availability

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// condition has the fields that all conditions have in common.
type condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
	// ObservedGeneration is nil if the condition does not have one.
	ObservedGeneration *int64 `json:"observedGeneration"`
}

// text returns what a condition says, its reason before its message.
func (c condition) text() string {
	switch {
	case c.Message == "":
		return c.Reason
	case c.Reason == "":
		return c.Message
	}
	return c.Reason + ": " + c.Message
}

// conditionsOf returns the conditions of an object by their type.
func conditionsOf(object *unstructured.Unstructured) (map[string]condition, error) {
	var shape struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &shape); err != nil {
		return nil, fmt.Errorf("reading the conditions: %w", err)
	}
	return conditionsByType(shape.Status.Conditions), nil
}

func conditionsByType(list []condition) map[string]condition {
	out := make(map[string]condition, len(list))
	for _, c := range list {
		out[c.Type] = c
	}
	return out
}

// conventionConditions are the condition types by which the conventions judge an object.
var conventionConditions = []string{"Ready", string(status.ConditionReconciling), string(status.ConditionStalled)}

// checkByConvention judges an object by kstatus' conventions: the generation that its controller
// has observed, and the conditions Ready, Reconciling and Stalled. The conventions regard an object
// without any of them as current; here it is not trackable, and neither is an object whose status
// has another shape.
func checkByConvention(object *unstructured.Unstructured) (Status, error) {
	_, observed, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		return NotTrackable, nil //nolint:nilerr // not of the conventions' shape
	}
	conditions, err := conditionsOf(object)
	if err != nil {
		return NotTrackable, nil //nolint:nilerr // not of the conventions' shape
	}
	for _, name := range conventionConditions {
		c, ok := conditions[name]
		observed = observed || ok
		if c.ObservedGeneration != nil && *c.ObservedGeneration < object.GetGeneration() {
			return NotYet, nil // the condition is of an earlier generation
		}
	}
	if !observed {
		return NotTrackable, nil
	}
	result, err := status.Compute(object)
	if err != nil {
		return NotTrackable, nil //nolint:nilerr // not of the conventions' shape
	}
	return availableIf(result.Status == status.CurrentStatus), nil
}
