package apply

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// retained are fields that controllers in the cluster take over once the hub no longer sets them.
// A manifest that stops to set them does not remove them. Node ports are kept by the API server
// as well, yet it is told nothing that says otherwise.
var retained = map[schema.GroupKind][][]string{
	{Kind: "Service"}:        {{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}},
	{Kind: "ServiceAccount"}: {{"secrets"}},
}

var replicas = []string{"spec", "replicas"}

// baseOf returns what was last applied to an object, without our marks and without what is never
// removed. Lost or spoilt by hand, it is empty: without a base nothing is removed, which is the
// safe side.
func baseOf(live *unstructured.Unstructured) map[string]any {
	base := lastApplied(live)
	unstructured.RemoveNestedField(base, "metadata", "ownerReferences")
	unstructured.RemoveNestedField(base, "metadata", "annotations", placementv1beta1.ManifestHashAnnotation)
	unstructured.RemoveNestedField(base, replicas...)
	kind := live.GroupVersionKind().GroupKind()
	for _, field := range retained[kind] {
		unstructured.RemoveNestedField(base, field...)
	}
	if (kind == schema.GroupKind{Kind: "Service"}) {
		ports, _, _ := unstructured.NestedFieldNoCopy(base, "spec", "ports")
		list, _ := ports.([]any)
		for _, item := range list {
			if port, ok := item.(map[string]any); ok {
				delete(port, "nodePort")
			}
		}
	}
	return base
}

func lastApplied(live *unstructured.Unstructured) map[string]any {
	base := map[string]any{}
	if json.Unmarshal([]byte(live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]), &base) != nil || base == nil {
		return map[string]any{}
	}
	return base
}

// keepOthers returns the desired object so that a manifest without any labels or annotations,
// which had some before, removes those and not all there are.
func keepOthers(base map[string]any, live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := desired
	for _, field := range []string{"labels", "annotations"} {
		_, before, _ := unstructured.NestedFieldNoCopy(base, "metadata", field)
		_, now, _ := unstructured.NestedFieldNoCopy(desired.Object, "metadata", field)
		_, there, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", field)
		if !before || now || !there {
			continue
		}
		if out == desired {
			out = desired.DeepCopy()
		}
		_ = unstructured.SetNestedMap(out.Object, map[string]any{}, "metadata", field)
	}
	return out
}

// retainReplicas leaves the replicas of an object to the cluster if it asks for that.
func retainReplicas(live, desired *unstructured.Unstructured) {
	if desired.GetAnnotations()[placementv1beta1.RetainReplicasAnnotation] != "true" {
		return
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(live.Object, replicas...); found {
		unstructured.RemoveNestedField(desired.Object, replicas...)
	}
}

// retainFinalizers adds the finalizers of others to those the manifest sets: custom resources
// are merged as plain JSON, which replaces lists.
func retainFinalizers(live, desired *unstructured.Unstructured) {
	before, _, _ := unstructured.NestedStringSlice(lastApplied(live), "metadata", "finalizers")
	wanted := desired.GetFinalizers()
	if len(before)+len(wanted) == 0 {
		return
	}
	var all []string
	for _, finalizer := range live.GetFinalizers() {
		if slices.Contains(wanted, finalizer) || !slices.Contains(before, finalizer) {
			all = append(all, finalizer)
		}
	}
	for _, finalizer := range wanted {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	desired.SetFinalizers(all)
}

// carryReplicas keeps the API server from setting the replicas to their default when a manifest
// no longer sets them: as long as the field is ours alone, we go on to say what stands there. Once
// an autoscaler has written it, it is no longer ours. It returns whether that holds for no other
// version of the object than the one read.
func carryReplicas(live, desired *unstructured.Unstructured) bool {
	if _, found, _ := unstructured.NestedFieldNoCopy(desired.Object, replicas...); found {
		return false
	}
	value, found, err := unstructured.NestedFieldNoCopy(live.Object, replicas...)
	if err != nil || !found || !ownsReplicas(live.GetManagedFields()) {
		return false
	}
	return unstructured.SetNestedField(desired.Object, value, replicas...) == nil
}

func ownsReplicas(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		if !isOurs(entry) || entry.FieldsV1 == nil {
			return false
		}
		var set struct {
			Spec map[string]any `json:"f:spec"`
		}
		if json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &set) != nil {
			return false
		}
		_, found := set.Spec["f:replicas"]
		return found
	})
}

// isOurs tells whether fields were applied server-side by us.
func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}
