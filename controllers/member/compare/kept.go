package compare

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// addresses are the fields of a Service by which a manifest asks for no address, or for a certain one.
var addresses = [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}}

// addKept adds what the API server silently keeps of an object although the manifest says otherwise by leaving it out: a headless
// Service gets no address any more. Other fields that are left out are refused if they cannot change, or are the cluster's to fill.
func (d *differ) addKept(manifest, object *unstructured.Unstructured) {
	if (manifest.GroupVersionKind().GroupKind() != schema.GroupKind{Kind: "Service"}) {
		return
	}
	for _, field := range addresses {
		if hasField(manifest.Object, field) {
			return
		}
	}
	kind, _, _ := unstructured.NestedString(manifest.Object, "spec", "type")
	address, _, _ := unstructured.NestedString(object.Object, addresses[0]...)
	if kind != string(corev1.ServiceTypeExternalName) && address == corev1.ClusterIPNone {
		d.addDetail("/spec/clusterIP", nil, address)
	}
}

// IsKept reports whether a field of an object is one that the API server keeps whatever is written, until the object is deleted.
func IsKept(kind schema.GroupKind, path string) bool {
	return kind == schema.GroupKind{Kind: "Service"} && path == "/spec/clusterIP"
}
