package compare

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// otherMetadata are fields of the metadata that do not count, in addition to those that only a cluster sets: controllers of the
// cluster have finalizers of their own.
var otherMetadata = []string{"generateName", "finalizers"}

// reservedDomains are the domains of the labels and annotations that Kubernetes and the fleet
// itself set.
var reservedDomains = []string{"kubernetes.io", "k8s.io", strings.TrimSuffix(placementv1beta1.FleetPrefix, "/"),
	strings.TrimSuffix(placementv1beta1.OwnPrefix, "/")}

// bookkeepingKeys are annotations in which clients and controllers record what they did. Some contain whole
// objects, also Secrets.
var bookkeepingKeys = append([]string{placementv1beta1.LastAppliedConfigAnnotation, placementv1beta1.ManifestHashAnnotation},
	clusterowned.Bookkeeping...)

// relevantFields returns a copy of an object with the fields that count.
func relevantFields(manifest, object *unstructured.Unstructured) map[string]any {
	out := runtime.DeepCopyJSON(object.Object)
	delete(out, "status")
	for _, field := range append(slices.Clone(otherMetadata), clusterowned.Metadata...) {
		unstructured.RemoveNestedField(out, "metadata", field)
	}
	clusterowned.Remove(out, clusterowned.Governed(manifest))
	for _, field := range clusterowned.Filled(manifest.GroupVersionKind().GroupKind()) {
		if !hasField(manifest.Object, field) {
			removeField(manifest.Object, out, field)
		}
	}
	if (manifest.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Service"}) {
		removeNodePorts(manifest.Object, out)
	}
	if manifest.GetAnnotations()[placementv1beta1.RetainReplicasAnnotation] == "true" {
		unstructured.RemoveNestedField(out, "spec", "replicas")
	}
	removeForeignKeys(manifest.Object, out, "labels")
	removeForeignKeys(manifest.Object, out, "annotations")
	return ensureMaps(removeNulls(out), "labels", "annotations")
}

// removeField removes a field, and each parent that is empty then.
func removeField(manifest, object map[string]any, field []string) {
	unstructured.RemoveNestedField(object, field...)
	for at := len(field) - 1; at > 0 && !hasField(manifest, field[:at]); at-- {
		parent, found, err := unstructured.NestedFieldNoCopy(object, field[:at]...)
		if rest, ok := parent.(map[string]any); err != nil || !found || !ok || len(rest) > 0 {
			return
		}
		unstructured.RemoveNestedField(object, field[:at]...)
	}
}

func hasField(object map[string]any, field []string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object, field...)
	return found && err == nil && value != nil
}

// removeNodePorts removes the node ports that the manifest leaves to the cluster.
func removeNodePorts(manifest, object map[string]any) {
	wanted, _, _ := unstructured.NestedFieldNoCopy(manifest, "spec", "ports")
	wantedPorts, _ := wanted.([]any)
	set := map[string]bool{}
	for _, item := range wantedPorts {
		if port, ok := item.(map[string]any); ok && port["nodePort"] != nil {
			set[portKey(port)] = true
		}
	}
	ports, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "ports")
	list, _ := ports.([]any)
	for _, item := range list {
		if port, ok := item.(map[string]any); ok && !set[portKey(port)] {
			delete(port, "nodePort")
		}
	}
}

func portKey(port map[string]any) string {
	protocol, _ := port["protocol"].(string)
	if protocol == "" {
		protocol = "TCP"
	}
	number, _ := json.Marshal(port["port"])
	return protocol + string(number)
}

// removeForeignKeys removes the labels or annotations that belong to Kubernetes or to the fleet,
// unless the manifest sets them.
func removeForeignKeys(manifest, object map[string]any, field string) {
	value, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", field)
	all, ok := value.(map[string]any)
	if !ok {
		return
	}
	for key := range all {
		if slices.Contains(bookkeepingKeys, key) || isReserved(key) && !hasField(manifest, []string{"metadata", field, key}) {
			delete(all, key)
		}
	}
}

// ensureMaps adds an empty map for each of the fields of the metadata that is missing, so that what only one of two objects has
// in it is told key by key, as KubeFleet does.
func ensureMaps(object map[string]any, fields ...string) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	for _, field := range fields {
		if metadata != nil && metadata[field] == nil {
			metadata[field] = map[string]any{}
		}
	}
	return object
}

func isReserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc(reservedDomains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// removeNulls removes fields that are null, which means the same as a missing field.
func removeNulls(object map[string]any) map[string]any {
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			removeNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					removeNulls(m)
				}
			}
		}
	}
	return object
}
