package compare

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Changes lists the fields in which an object would differ from what it is: what leaves it counts as well, and what the fleet and the API
// server note of a write does not. It changes neither object.
func Changes(after, before *unstructured.Unstructured) Report {
	d := differ{secret: isSecret(after)}
	d.compareMaps("", contentOf(after), contentOf(before))
	return d.report
}

// contentOf returns a copy of an object without its status, what only a cluster sets, and the marks of the fleet.
func contentOf(object *unstructured.Unstructured) map[string]any {
	out := runtime.DeepCopyJSON(object.Object)
	delete(out, "status")
	for _, field := range slices.Concat(clusterowned.Metadata, []string{"generateName"}) {
		unstructured.RemoveNestedField(out, "metadata", field)
	}
	clusterowned.Remove(out, clusterowned.Governed(object))
	for _, key := range []string{placementv1beta1.LastAppliedConfigAnnotation, placementv1beta1.ManifestHashAnnotation} {
		unstructured.RemoveNestedField(out, "metadata", "annotations", key)
	}
	return ensureMaps(removeNulls(out), "labels", "annotations")
}
