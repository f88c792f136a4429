package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverMetadata are the metadata fields only the hub's API server knows about.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields",
	"ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// bookkeeping are annotations of kubectl and of the Deployment controller about
// the object on the hub. On a member they would be wrong.
var bookkeeping = []string{corev1.LastAppliedConfigAnnotation, "deployment.kubernetes.io/revision"}

// jobLabels tie the pods of a Job to its uid or name; the member's API server
// sets them anew.
var jobLabels = []string{
	"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
}

// Strip returns a copy of an object without everything that is true on the hub
// only: server metadata, status, allocated addresses and ports, the bookkeeping of
// controllers.
func Strip(object *unstructured.Unstructured) *unstructured.Unstructured {
	stripped := object.DeepCopy()
	for _, field := range serverMetadata {
		unstructured.RemoveNestedField(stripped.Object, "metadata", field)
	}
	removeKeys(stripped.Object, bookkeeping, "metadata", "annotations")
	delete(stripped.Object, "status")

	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		stripService(stripped.Object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		stripJob(stripped.Object)
	}
	return stripped
}

// removeKeys removes keys from the map at path, and the map itself when nothing
// is left in it.
func removeKeys(object map[string]any, keys []string, path ...string) {
	values, found, err := unstructured.NestedMap(object, path...)
	if err != nil || !found {
		return
	}
	for _, key := range keys {
		delete(values, key)
	}
	if len(values) == 0 {
		unstructured.RemoveNestedField(object, path...)
		return
	}
	// The path exists, so setting it cannot fail.
	_ = unstructured.SetNestedMap(object, values, path...)
}

func stripService(service map[string]any) {
	// "None" is a wish of the user, an address is an allocation of the hub.
	if ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(service, "spec", "clusterIP")
		unstructured.RemoveNestedField(service, "spec", "clusterIPs")
	}
	unstructured.RemoveNestedField(service, "spec", "healthCheckNodePort")
	ports, found, err := unstructured.NestedSlice(service, "spec", "ports")
	if err != nil || !found {
		return
	}
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	_ = unstructured.SetNestedSlice(service, ports, "spec", "ports")
}

func stripJob(job map[string]any) {
	if manual, _, _ := unstructured.NestedBool(job, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job, "spec", "selector")
	removeKeys(job, jobLabels, "spec", "template", "metadata", "labels")
	removeKeys(job, jobLabels, "metadata", "labels")
}
