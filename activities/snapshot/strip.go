package snapshot

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
)

// strippers remove what only some kinds have. They may change the object itself, and
// what is in it through inner. The annotations are all that it had.
var strippers = map[schema.GroupKind]func(object, annotations map[string]any){
	{Kind: "Service"}:               stripService,
	{Kind: "ServiceAccount"}:        stripServiceAccount,
	{Kind: "PersistentVolume"}:      stripVolume,
	{Kind: "PersistentVolumeClaim"}: stripClaim,
	{Group: "batch", Kind: "Job"}:   stripJob,

	{Group: "apps.kruise.io", Kind: "CloneSet"}: stripCloneSet,
}

// Strip returns an object without everything that is true on the hub only: server
// metadata, status, allocated addresses, ports and volumes, what controllers write and
// their bookkeeping. The original stays as it is; what is not removed is shared with it.
func Strip(object *unstructured.Unstructured) *unstructured.Unstructured {
	stripped := maps.Clone(object.Object)
	if governed := clusterowned.Governed(object); len(governed) > 0 {
		stripped = runtime.DeepCopyJSON(object.Object)
		clusterowned.Remove(stripped, governed)
	}
	delete(stripped, "status")
	metadata := cloneMapAt(stripped, "metadata")
	for _, field := range clusterowned.Metadata {
		delete(metadata, field)
	}
	// A finalizer is an agreement with a controller of the cluster on which it was set, as an owner is: on a member that lacks
	// the controller, the object could never be removed. Who wants one there writes it into an envelope.
	delete(metadata, "finalizers")
	annotations, _ := metadata["annotations"].(map[string]any)
	withoutKeys(metadata, "annotations", clusterowned.Bookkeeping)
	if strip, ok := strippers[object.GroupVersionKind().GroupKind()]; ok {
		strip(stripped, annotations)
	}
	return &unstructured.Unstructured{Object: stripped}
}

// cloneMapAt replaces the map at a field by a copy that may be changed, and returns it. If
// there is none, the copy is empty and not part of the object.
func cloneMapAt(object map[string]any, path ...string) map[string]any {
	for _, field := range path {
		value, ok := object[field].(map[string]any)
		if !ok {
			return map[string]any{}
		}
		value = maps.Clone(value)
		object[field] = value
		object = value
	}
	return object
}

// withoutKeys removes keys from a map at a field, and the field when nothing is left.
func withoutKeys(object map[string]any, field string, keys []string) {
	values, ok := object[field].(map[string]any)
	if !ok {
		return
	}
	kept := maps.Clone(values)
	for _, key := range keys {
		delete(kept, key)
	}
	object[field] = kept
	if len(kept) == 0 {
		delete(object, field)
	}
}

// withoutItems removes items from a list at a field, and the field when nothing is left.
func withoutItems(object map[string]any, field string, unwanted func(item any) bool) {
	items, ok := object[field].([]any)
	if !ok {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(items), unwanted)
	object[field] = kept
	if len(kept) == 0 {
		delete(object, field)
	}
}

func stripService(service, _ map[string]any) {
	spec := cloneMapAt(service, "spec")
	// "None" is a wish of the user, an address is an allocation of the hub.
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	ports = slices.Clone(ports)
	for i := range ports {
		if port, ok := ports[i].(map[string]any); ok {
			port = maps.Clone(port)
			delete(port, "nodePort")
			ports[i] = port
		}
	}
	if len(ports) > 0 {
		spec["ports"] = ports
	}
}

// stripServiceAccount removes the tokens that the hub has made for the account; they
// are not placed either.
func stripServiceAccount(account, _ map[string]any) {
	metadata, _ := account["metadata"].(map[string]any)
	prefix, _ := metadata["name"].(string)
	withoutItems(account, "secrets", func(item any) bool {
		secret, _ := item.(map[string]any)
		name, _ := secret["name"].(string)
		return strings.HasPrefix(name, prefix+"-token-")
	})
}

// stripVolume removes the claim that the hub has bound to a volume, and of one that the
// user has reserved it for, which claim of that name it was.
func stripVolume(volume, annotations map[string]any) {
	if annotations[clusterowned.BoundByController] == "yes" {
		delete(cloneMapAt(volume, "spec"), "claimRef")
		return
	}
	claim := cloneMapAt(volume, "spec", "claimRef")
	delete(claim, "uid")
	delete(claim, "resourceVersion")
}

// stripClaim removes the volume that the hub, not the user, has chosen for a claim.
func stripClaim(claim, annotations map[string]any) {
	if annotations[clusterowned.BoundByController] == "yes" {
		delete(cloneMapAt(claim, "spec"), "volumeName")
	}
}

// stripCloneSet removes the names of pods to delete: pods have names of their own on every member, and the
// controller there would clear the list that the hub keeps setting.
func stripCloneSet(set, _ map[string]any) {
	delete(cloneMapAt(set, "spec", "scaleStrategy"), "podsToDelete")
}

func stripJob(job, _ map[string]any) {
	spec := cloneMapAt(job, "spec")
	if spec["manualSelector"] == true {
		return
	}
	delete(spec, "selector")
	withoutKeys(cloneMapAt(spec, "template", "metadata"), "labels", clusterowned.JobLabels)
	withoutKeys(cloneMapAt(job, "metadata"), "labels", clusterowned.JobLabels)
}
