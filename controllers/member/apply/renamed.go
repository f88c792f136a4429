package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// renamed are the names that fields of built-in kinds have in the versions that are served.
var renamed = map[schema.GroupKind][][][]string{
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {
		{{"spec", "targetCPUUtilizationPercentage"}, {"spec", "metrics"}, {"metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"}},
		{{"spec", "behavior"}, {"metadata", "annotations", "autoscaling.alpha.kubernetes.io/behavior"}},
	},
}

// addRenamed adds to a base from another version the fields of an object that have another name there: neither a merge nor a server-side
// apply finds them, and what leaves a manifest of a new version would stay. What another manager has under any of the names is left alone.
func addRenamed(base map[string]any, live *unstructured.Unstructured) (added [][]string) {
	names := renamed[live.GroupVersionKind().GroupKind()]
	if len(names) == 0 || versionBefore(base, live) == live.GetAPIVersion() {
		return nil
	}
	sets := fieldSetsOf(live)
	for _, field := range names {
		if !slices.ContainsFunc(field, func(name []string) bool { return hasAt(base, name) || hasAny(sets.applied, pathOf(name)) }) ||
			slices.ContainsFunc(field, func(name []string) bool { return hasAny(sets.others, pathOf(name)) }) {
			continue
		}
		for _, name := range field {
			there, found, _ := unstructured.NestedFieldNoCopy(live.Object, name...)
			if found && unstructured.SetNestedField(base, runtime.DeepCopyJSONValue(there), name...) == nil {
				added = append(added, name)
			}
		}
	}
	return added
}

// leavesRenamed reports whether a field leaves a manifest that has another name in the version of the manifest before.
func leavesRenamed(live, wanted *unstructured.Unstructured) bool {
	isKnown := len(renamed[live.GroupVersionKind().GroupKind()]) > 0
	return isKnown && slices.ContainsFunc(addRenamed(mergeBase(live), live), func(name []string) bool { return !hasAt(wanted.Object, name) })
}

// versionBefore returns the version of the manifest as last applied, or in which this agent has applied fields; that of the object if
// neither tells.
func versionBefore(base map[string]any, live *unstructured.Unstructured) string {
	if version, ok := base["apiVersion"].(string); ok {
		return version
	}
	if i := slices.IndexFunc(live.GetManagedFields(), isAppliedByUs); i >= 0 {
		return live.GetManagedFields()[i].APIVersion
	}
	return live.GetAPIVersion()
}

func hasAt(object map[string]any, name []string) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(object, name...)
	return found
}

func pathOf(name []string) fieldpath.Path {
	var path fieldpath.Path
	for _, field := range name {
		path = append(path, fieldpath.FieldNameElement(field))
	}
	return path
}
