package apply

import (
	"bytes"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fieldSets are the fields of an object that this agent has applied and those that it has updated, and those of others.
type fieldSets struct{ applied, updated, others *fieldpath.Set }

// fieldSetsOf reads the entries of managedFields. It takes a path of another version for one of this version: a field that is called
// otherwise there is not found, and stays.
func fieldSetsOf(live *unstructured.Unstructured) fieldSets {
	sets := fieldSets{applied: &fieldpath.Set{}, updated: &fieldpath.Set{}, others: &fieldpath.Set{}}
	for _, entry := range live.GetManagedFields() {
		set, ok := fieldsOf(entry)
		switch {
		case !ok || entry.Subresource != "" || entry.Manager == beforeFirstApply: // what that has is no client's
		case entry.Manager != FieldManager:
			sets.others = sets.others.Union(set)
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			sets.applied = sets.applied.Union(set)
		default:
			sets.updated = sets.updated.Union(set)
		}
	}
	return sets
}

// ownedFields returns the part of an object that this agent has set and no other manager has, by the entries of managedFields. It
// is the base of a merge where no annotation has the manifest as last applied.
func ownedFields(live *unstructured.Unstructured) map[string]any {
	sets := fieldSetsOf(live)
	base := sets.appliedAlone(live)
	sets.updated.Difference(sets.others).Leaves().Iterate(func(path fieldpath.Path) {
		if hasFreeKeys(path) {
			copyAt(base, live.Object, path)
		}
	})
	unstructured.RemoveNestedField(base, "metadata", "annotations", placementv1beta1.LastAppliedConfigAnnotation)
	return base
}

// adoptedEntries returns the entries of managedFields of an object with all that this agent has set in one entry of a server-side apply,
// and whether that is a change. The fields of all versions come together, as a field that no entry has would stay for ever.
func adoptedEntries(live *unstructured.Unstructured) (entries []metav1.ManagedFieldsEntry, changed bool) {
	var adopted *metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		if !isOurEntry(entry) {
			entries = append(entries, entry)
			continue
		}
		changed = changed || !isAppliedByUs(entry)
		if adopted == nil || isAppliedByUs(entry) || !isAppliedByUs(*adopted) && entry.APIVersion == live.GetAPIVersion() {
			adopted = entry.DeepCopy()
		}
	}
	if !changed {
		return live.GetManagedFields(), false
	}
	sets := fieldSetsOf(live)
	data, err := sets.applied.Union(sets.updated).ToJSON()
	if err != nil {
		return live.GetManagedFields(), false // they were read from JSON
	}
	adopted.Operation = metav1.ManagedFieldsOperationApply
	adopted.FieldsV1 = metav1.NewFieldsV1(string(data))
	return append(entries, *adopted), true
}

// appliedAlone returns the part of an object that this agent has applied server-side and no other manager has set.
func (s fieldSets) appliedAlone(live *unstructured.Unstructured) map[string]any {
	part := map[string]any{}
	s.applied.Difference(s.others).Leaves().Iterate(func(path fieldpath.Path) {
		// One that was applied without a key: what it has is of others.
		if !isMapOfFreeKeys(path) && leadTo(s.others, path).Empty() {
			copyAt(part, live.Object, path)
		}
	})
	return part
}

// removeShared takes off a base what others have set, too, so that a merge does not remove it: an item of a list as a whole.
func removeShared(base map[string]any, others *fieldpath.Set) {
	others.Leaves().Iterate(func(path fieldpath.Path) { removeAt(base, path) })
}

func removeAt(base map[string]any, path fieldpath.Path) {
	if len(path) == 0 || path[0].FieldName == nil {
		return
	}
	name := *path[0].FieldName
	if len(path) == 1 {
		delete(base, name)
		return
	}
	switch value := base[name].(type) {
	case map[string]any:
		removeAt(value, path[1:])
	case []any:
		base[name] = slices.DeleteFunc(value, func(item any) bool {
			fields, isMap := item.(map[string]any)
			if path[1].Value != nil {
				return reflect.DeepEqual((*path[1].Value).Unstructured(), item)
			}
			return isMap && itemWith([]any{fields}, path[1].Key) != nil
		})
	}
}

// freeKeys are the maps in which the API server fills in nothing.
var freeKeys = [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"data"}, {"binaryData"}}

// isMapOfFreeKeys reports whether a path is that of a whole map in which the API server fills in nothing.
func isMapOfFreeKeys(path fieldpath.Path) bool {
	return slices.ContainsFunc(freeKeys, func(fields []string) bool {
		return slices.EqualFunc(path, fields, func(at fieldpath.PathElement, field string) bool {
			return at.FieldName != nil && *at.FieldName == field
		})
	})
}

// hasFreeKeys reports whether what a client-side write has set at a path was in its manifest: of other fields the API server notes its
// own defaults as written by the client.
func hasFreeKeys(path fieldpath.Path) bool {
	return slices.ContainsFunc(freeKeys, func(fields []string) bool {
		if len(path) <= len(fields) {
			return false
		}
		for i, field := range fields {
			if path[i].FieldName == nil || *path[i].FieldName != field {
				return false
			}
		}
		return true
	})
}

// fieldsOf reads the fields of an entry of managedFields.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return nil, false
	}
	return set, true
}

// removeNullKeys takes off a manifest the nulls by which items of a list are told apart in the API server's answer, and tells whether
// there are any. The API server fills in their default: without the second name, the item would stay when it leaves the manifest.
func removeNullKeys(manifest, answer *unstructured.Unstructured) bool {
	isRemoved := false
	for _, entry := range answer.GetManagedFields() {
		set, ok := fieldsOf(entry)
		if !ok || !isAppliedByUs(entry) || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(":null")) {
			continue
		}
		set.Iterate(func(path fieldpath.Path) {
			key := path[len(path)-1].Key
			if key == nil {
				return
			}
			for _, item := range itemsAt(manifest.Object, path[:len(path)-1]) {
				for _, field := range *key {
					fields, _ := item.(map[string]any)
					if value, found := fields[field.Name]; found && value == nil && field.Value.IsNull() {
						delete(fields, field.Name)
						isRemoved = true
					}
				}
			}
		})
	}
	return isRemoved
}

// itemsAt returns the items of the list at a path; none if the path leads elsewhere.
func itemsAt(value any, path fieldpath.Path) []any {
	for _, element := range path {
		switch v := value.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil
			}
			value = v[*element.FieldName]
		case []any:
			value = itemWith(v, element.Key)
		}
	}
	items, _ := value.([]any)
	return items
}

// copyAt copies what is at a path of an object to a base. A list in which the path names no item is copied as a whole.
func copyAt(base, object map[string]any, path fieldpath.Path) {
	if len(path) == 0 || path[0].FieldName == nil {
		return
	}
	name := *path[0].FieldName
	there, found := object[name]
	if !found {
		return
	}
	switch value := there.(type) {
	case map[string]any:
		if len(path) > 1 {
			inner, ok := base[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				base[name] = inner
			}
			copyAt(inner, value, path[1:])
			return
		}
	case []any:
		if len(path) > 1 && path[1].Index == nil {
			list, _ := base[name].([]any)
			if list = copyItem(list, value, path[1], path[2:]); len(list) > 0 {
				base[name] = list
			}
			return
		}
	}
	base[name] = runtime.DeepCopyJSONValue(there)
}

// copyItem copies what is at a path of an item to the same item of a list, which it returns.
func copyItem(base, items []any, which fieldpath.PathElement, path fieldpath.Path) []any {
	if which.Value != nil {
		return append(base, (*which.Value).Unstructured())
	}
	found := itemsWith(items, which.Key)
	if len(found) > 1 && len(path) == 0 { // they are one field together
		for _, item := range found {
			base = append(base, runtime.DeepCopyJSONValue(item))
		}
	}
	if len(found) != 1 {
		return base
	}
	copied := itemWith(base, which.Key)
	if copied == nil {
		copied = map[string]any{}
		for _, key := range *which.Key {
			copied[key.Name] = key.Value.Unstructured()
		}
		base = append(base, copied)
	}
	copyAt(copied, found[0], path)
	return base
}

// itemWith returns the item of a list that has these keys, nil if none has, or several have.
func itemWith(items []any, keys *value.FieldList) map[string]any {
	if found := itemsWith(items, keys); len(found) == 1 {
		return found[0]
	}
	return nil
}

// itemsWith returns the items of a list that have these keys.
func itemsWith(items []any, keys *value.FieldList) []map[string]any {
	if keys == nil {
		return nil
	}
	var found []map[string]any
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if ok && !slices.ContainsFunc(*keys, func(key value.Field) bool {
			return !value.Equals(value.NewValueInterface(fields[key.Name]), key.Value)
		}) {
			found = append(found, fields)
		}
	}
	return found
}
