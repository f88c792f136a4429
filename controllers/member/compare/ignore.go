package compare

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// clusters are the fields that only the cluster an object lives in may set.
var clusters = [][]string{
	{"status"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "generation"},
	{"metadata", "generateName"},
	{"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"},
	{"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "managedFields"},
	{"metadata", "ownerReferences"},
	{"metadata", "finalizers"},
	{"metadata", "selfLink"},
}

// given are fields that the cluster fills in, with values no hub can know. They count if the
// manifest sets them.
var given = map[schema.GroupKind][][]string{
	{Kind: "Namespace"}:      {{"spec", "finalizers"}},
	{Kind: "ServiceAccount"}: {{"secrets"}},
	{Kind: "Service"}: {
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"},
		{"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"},
	},
	{Kind: "PersistentVolumeClaim"}: {{"spec", "volumeName"}},
	{Group: "batch", Kind: "Job"}: {
		{"spec", "selector"},
		{"metadata", "labels", "controller-uid"},
		{"metadata", "labels", "job-name"},
		{"spec", "template", "metadata", "labels", "controller-uid"},
		{"spec", "template", "metadata", "labels", "job-name"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
		{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"},
	},
}

// domains are those under which Kubernetes and the fleet itself keep labels and annotations.
var domains = []string{"kubernetes.io", "k8s.io", strings.TrimSuffix(placementv1beta1.FleetPrefix, "/")}

// bookkeeping are annotations that say what somebody wrote, and nothing of their own. They hold
// whole objects, of Secrets too.
var bookkeeping = []string{
	placementv1beta1.LastAppliedConfigAnnotation, placementv1beta1.ManifestHashAnnotation,
	"kubectl.kubernetes.io/last-applied-configuration",
}

// relevant returns a copy of an object with what counts.
func relevant(manifest, object *unstructured.Unstructured) map[string]any {
	out := copyOf(object.Object)
	for _, field := range clusters {
		unstructured.RemoveNestedField(out, field...)
	}
	for _, field := range given[manifest.GroupVersionKind().GroupKind()] {
		if !has(manifest.Object, field) {
			remove(manifest.Object, out, field)
		}
	}
	if (manifest.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Service"}) {
		withoutNodePorts(manifest.Object, out)
	}
	if manifest.GetAnnotations()[placementv1beta1.RetainReplicasAnnotation] == "true" {
		unstructured.RemoveNestedField(out, "spec", "replicas")
	}
	withoutForeignKeys(manifest.Object, out, "labels")
	withoutForeignKeys(manifest.Object, out, "annotations")
	return withoutNulls(out)
}

// remove removes a field, and what it was the only one in.
func remove(manifest, object map[string]any, field []string) {
	unstructured.RemoveNestedField(object, field...)
	for at := len(field) - 1; at > 0 && !has(manifest, field[:at]); at-- {
		parent, found, err := unstructured.NestedFieldNoCopy(object, field[:at]...)
		if rest, ok := parent.(map[string]any); err != nil || !found || !ok || len(rest) > 0 {
			return
		}
		unstructured.RemoveNestedField(object, field[:at]...)
	}
}

func copyOf(object map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: object}).DeepCopy().Object
}

func has(object map[string]any, field []string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object, field...)
	return found && err == nil && value != nil
}

// withoutNodePorts removes the node ports that the manifest leaves to the cluster.
func withoutNodePorts(manifest, object map[string]any) {
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

// withoutForeignKeys removes the labels or annotations that belong to Kubernetes or to the fleet,
// unless the manifest sets them.
func withoutForeignKeys(manifest, object map[string]any, field string) {
	value, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", field)
	all, ok := value.(map[string]any)
	if !ok {
		return
	}
	for key := range all {
		if isBookkeeping(key) || isReserved(key) && !has(manifest, []string{"metadata", field, key}) {
			delete(all, key)
		}
	}
	if len(all) == 0 {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
}

func isBookkeeping(key string) bool { return slices.Contains(bookkeeping, key) }

func isReserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc(domains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// withoutNulls removes fields that are null, which is the same as not being there.
func withoutNulls(object map[string]any) map[string]any {
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			withoutNulls(v)
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					withoutNulls(m)
				}
			}
		}
	}
	return object
}
