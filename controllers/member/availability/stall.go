package availability

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// Stall returns why an object makes no progress, in the words of its own status; nothing if it does not say so. It may still become
// available. What may be said of an earlier generation counts for nothing.
func Stall(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind().GroupKind()
	isDeployment := kind == schema.GroupKind{Group: "apps", Kind: "Deployment"}
	if _, builtIn := checks[kind]; builtIn && !isDeployment {
		return ""
	}
	conditions, err := conditionsOf(object)
	if err != nil {
		return ""
	}
	said := conditions[string(status.ConditionStalled)]
	stalled := said.Status == corev1.ConditionTrue
	if isDeployment {
		said = conditions["Progressing"]
		stalled = said.Status == corev1.ConditionFalse && said.Reason == "ProgressDeadlineExceeded"
	}
	if !stalled || !said.isOf(object) {
		return ""
	}
	return cmp.Or(said.text(), string(status.ConditionStalled))
}

// isOf reports whether a condition is known to be about the present generation of an object.
func (c condition) isOf(object *unstructured.Unstructured) bool {
	observed, known, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil || known && observed < object.GetGeneration() {
		return false
	}
	if c.ObservedGeneration == nil {
		return known
	}
	return *c.ObservedGeneration >= object.GetGeneration()
}
