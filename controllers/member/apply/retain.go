package apply

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var replicasField = []string{"spec", "replicas"}

// mergeBase returns what was last applied to an object, without our marks and without fields that
// belong to the cluster once the hub no longer sets them: they are never removed. The API server
// keeps node ports as well, as long as no patch removes them. It is the manifest in the annotation, or else what the managers of the fields
// tell: an object that is too large for the annotation was applied without one. If neither is
// there, the base is empty: without a base nothing is removed, which is the safe side.
func mergeBase(live *unstructured.Unstructured) map[string]any {
	base := lastApplied(live)
	if len(base) == 0 {
		base = ownedFields(live)
	}
	addRenamed(base, live)
	unstructured.RemoveNestedField(base, "metadata", "ownerReferences")
	unstructured.RemoveNestedField(base, "metadata", "annotations", placementv1beta1.ManifestHashAnnotation)
	unstructured.RemoveNestedField(base, replicasField...)
	kind := live.GroupVersionKind().GroupKind()
	clusterowned.Remove(base, clusterowned.Filled(kind))
	clusterowned.Remove(base, clusterowned.Governed(live))
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

// lastApplied returns the manifest as last applied client-side, by the annotation. It returns nothing if that is another manifest than the
// object states: a server-side apply has come since, and what was to take the annotation off was not written. In place of nulls it has what
// the API server has made of them.
func lastApplied(live *unstructured.Unstructured) map[string]any {
	base := map[string]any{}
	annotations := live.GetAnnotations()
	if utiljson.Unmarshal([]byte(annotations[placementv1beta1.LastAppliedConfigAnnotation]), &base) != nil || base == nil {
		return map[string]any{}
	}
	hash, _, _ := unstructured.NestedString(base, "metadata", "annotations", placementv1beta1.ManifestHashAnnotation)
	if stated := annotations[placementv1beta1.ManifestHashAnnotation]; hash != "" && stated != "" && hash != stated {
		return map[string]any{}
	}
	settleNulls(&unstructured.Unstructured{Object: base})
	return base
}

// keepOtherMetadata makes a manifest that no longer has any labels or annotations remove only those
// it had before, and not all labels or annotations of the object.
func keepOtherMetadata(base map[string]any, live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := desired
	for _, field := range []string{"labels", "annotations"} {
		_, hadBefore, _ := unstructured.NestedFieldNoCopy(base, "metadata", field)
		_, hasNow, _ := unstructured.NestedFieldNoCopy(desired.Object, "metadata", field)
		_, onObject, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", field)
		if !hadBefore || hasNow || !onObject {
			continue
		}
		if out == desired {
			out = desired.DeepCopy()
		}
		_ = unstructured.SetNestedMap(out.Object, map[string]any{}, "metadata", field)
	}
	return out
}

// retainReplicas leaves the replicas of an object to the cluster if its annotation says so.
func retainReplicas(live, desired *unstructured.Unstructured) {
	if desired.GetAnnotations()[placementv1beta1.RetainReplicasAnnotation] != "true" {
		return
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(live.Object, replicasField...); found {
		unstructured.RemoveNestedField(desired.Object, replicasField...)
	}
}

// retainFinalizers adds the finalizers of other owners to those that the manifest sets: custom
// resources are merged as plain JSON, which replaces lists.
func retainFinalizers(live, desired *unstructured.Unstructured) {
	wanted := desired.GetFinalizers()
	if len(live.GetFinalizers())+len(wanted) == 0 {
		return
	}
	before, _, _ := unstructured.NestedStringSlice(lastApplied(live), "metadata", "finalizers")
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

// carryReplicas prevents the API server from resetting the replicas to their default when a
// manifest no longer sets them: as long as the agent alone owns the field, it keeps applying the
// current value. Once an autoscaler has written the field, the agent no longer owns it. The result
// tells whether the apply must be bound to the version that was read.
func carryReplicas(live, desired *unstructured.Unstructured) bool {
	if _, found, _ := unstructured.NestedFieldNoCopy(desired.Object, replicasField...); found {
		return false
	}
	value, found, err := unstructured.NestedFieldNoCopy(live.Object, replicasField...)
	if err != nil || !found || !ownsReplicas(live.GetManagedFields()) {
		return false
	}
	return unstructured.SetNestedField(desired.Object, value, replicasField...) == nil
}

func ownsReplicas(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		if !isAppliedByUs(entry) || entry.FieldsV1 == nil {
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

// isAppliedByUs reports whether this agent applied the fields server-side.
func isAppliedByUs(entry metav1.ManagedFieldsEntry) bool {
	return isOurEntry(entry) && entry.Operation == metav1.ManagedFieldsOperationApply
}
