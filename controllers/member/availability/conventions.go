package availability

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// condition is what all conditions have in common.
type condition struct {
	Type   string                 `json:"type"`
	Status corev1.ConditionStatus `json:"status"`
	Reason string                 `json:"reason"`
	// ObservedGeneration is what the condition is about; nil if it does not say.
	ObservedGeneration *int64 `json:"observedGeneration"`
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
	return byType(shape.Status.Conditions), nil
}

func byType(list []condition) map[string]condition {
	out := make(map[string]condition, len(list))
	for _, c := range list {
		out[c.Type] = c
	}
	return out
}

// telling are the condition types by which the conventions judge an object.
var telling = []string{"Ready", string(status.ConditionReconciling), string(status.ConditionStalled)}

// byConvention judges an object of a kind nothing else is known of by kstatus' conventions: the
// generation its controller has seen, and the conditions Ready, Reconciling and Stalled. The
// conventions take an object that has none of them to be fine; here nothing can be told then,
// nor of one that means something else by these words.
func byConvention(object *unstructured.Unstructured) (Status, error) {
	_, observed, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		return NotTrackable, nil //nolint:nilerr // not of the conventions' shape
	}
	conditions, err := conditionsOf(object)
	if err != nil {
		return NotTrackable, nil //nolint:nilerr // not of the conventions' shape
	}
	for _, name := range telling {
		c, ok := conditions[name]
		observed = observed || ok
		if c.ObservedGeneration != nil && *c.ObservedGeneration < object.GetGeneration() {
			return NotYet, nil // it is about an earlier manifest
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
