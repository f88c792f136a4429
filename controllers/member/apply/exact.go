package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// exactMerge merges three versions of an object into the object as it is to be. Unlike a strategic merge patch it tells the items
// of a list apart that have the same merge key, such as the ports 53/TCP and 53/UDP of a Service, or a variable that is set twice.
type exactMerge struct {
	// keepNulls is whether a null of the manifest is to be there as a null. Otherwise it is as if the field were missing.
	keepNulls bool
}

// mergeMaps returns the live map with the fields that the desired one sets, and without those that only the base sets. Without a
// lookup, lists are replaced as a whole.
func (m exactMerge) mergeMaps(lookup strategicpatch.LookupPatchMeta, base, live, desired map[string]any) map[string]any {
	out := maps.Clone(live)
	if out == nil {
		out = map[string]any{}
	}
	for key := range base {
		if _, wanted := desired[key]; !wanted {
			delete(out, key)
		}
	}
	for key, want := range desired {
		if want == nil && !m.keepNulls {
			if _, before := base[key]; before && base[key] != nil {
				delete(out, key)
			}
			continue
		}
		out[key] = m.mergeField(lookup, key, base[key], live[key], want)
	}
	return out
}

// mergeField returns the value of a field as it is to be.
func (m exactMerge) mergeField(lookup strategicpatch.LookupPatchMeta, key string, base, live, want any) any {
	switch wanted := want.(type) {
	case map[string]any:
		there, isMap := live.(map[string]any)
		was, _ := base.(map[string]any)
		of, strategies := fieldMeta(lookup, key)
		if !isMap || slices.Contains(strategies, "replace") {
			return runtime.DeepCopyJSONValue(want)
		}
		if slices.Contains(strategies, "retainKeys") {
			there = keepKeys(there, wanted)
		}
		return m.mergeMaps(of, was, there, wanted)
	case []any:
		there, isList := live.([]any)
		was, _ := base.([]any)
		of, how := listMeta(lookup, key)
		switch {
		case !isList || !slices.Contains(how.GetPatchStrategies(), "merge"):
			return runtime.DeepCopyJSONValue(want)
		case how.GetPatchMergeKey() == "":
			return mergeScalars(was, there, wanted)
		default:
			retain := slices.Contains(how.GetPatchStrategies(), "retainKeys")
			return m.mergeItems(of, how.GetPatchMergeKey(), retain, was, there, wanted)
		}
	default:
		return want
	}
}

// fieldMeta finds what is known of a field that is a map; nothing of the fields of custom resources and of maps with free keys.
func fieldMeta(lookup strategicpatch.LookupPatchMeta, key string) (strategicpatch.LookupPatchMeta, []string) {
	if lookup == nil {
		return nil, nil
	}
	of, how, err := lookup.LookupPatchMetadataForStruct(key)
	if err != nil {
		return nil, nil
	}
	return of, how.GetPatchStrategies()
}

// listMeta finds what is known of a field that is a list.
func listMeta(lookup strategicpatch.LookupPatchMeta, key string) (strategicpatch.LookupPatchMeta, strategicpatch.PatchMeta) {
	if lookup == nil {
		return nil, strategicpatch.PatchMeta{}
	}
	of, how, err := lookup.LookupPatchMetadataForSlice(key)
	if err != nil {
		return nil, strategicpatch.PatchMeta{}
	}
	return of, how
}

func keepKeys(object, of map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		if _, found := of[key]; found {
			out[key] = value
		}
	}
	return out
}

// mergeScalars adds the wanted items to those of others.
func mergeScalars(base, live, want []any) []any {
	var out []any
	for _, item := range live {
		if slices.Contains(want, item) || !slices.Contains(base, item) {
			out = append(out, item)
		}
	}
	for _, item := range want {
		if !slices.Contains(out, item) {
			out = append(out, item)
		}
	}
	return out
}

// mergeItems merges lists of maps item by item. The wanted items keep their order; items of others stay.
func (m exactMerge) mergeItems(lookup strategicpatch.LookupPatchMeta, mergeKey string, retain bool, base, live, want []any) []any {
	wantedIDs := identify(want, mergeKey)
	liveIDs := identify(live, mergeKey)
	was := itemsByID(base, identify(base, mergeKey))
	there := itemsByID(live, liveIDs)
	merged := map[string]any{}
	for i, item := range want {
		id := wantedIDs[i]
		wanted, before := item.(map[string]any)
		now, exists := there[id].(map[string]any)
		if !before || !exists {
			merged[id] = runtime.DeepCopyJSONValue(item)
			continue
		}
		if retain {
			now = keepKeys(now, wanted)
		}
		earlier, _ := was[id].(map[string]any)
		merged[id] = m.mergeMaps(lookup, earlier, now, wanted)
	}
	var order, common []string
	for _, id := range liveIDs {
		_, wanted := merged[id]
		_, before := was[id]
		switch {
		case wanted:
			order = append(order, id)
			common = append(common, id)
		case !before:
			merged[id] = there[id]
			order = append(order, id)
		}
	}
	if !slices.Equal(common, wantedIDs) {
		others := slices.DeleteFunc(order, func(id string) bool { return slices.Contains(wantedIDs, id) })
		order = append(slices.Clone(wantedIDs), others...)
	}
	out := make([]any, 0, len(order))
	for _, id := range order {
		out = append(out, merged[id])
	}
	return out
}

// furtherKeys are the fields that distinguish items in addition to the merge key, with what the API server fills in.
var furtherKeys = map[string]struct{ field, byDefault string }{
	"port":          {"protocol", "TCP"},
	"containerPort": {"protocol", "TCP"},
	"topologyKey":   {"whenUnsatisfiable", ""},
}

// identify returns a name for each item, by its keys and by how many items before it have the same.
func identify(items []any, mergeKey string) []string {
	out := make([]string, 0, len(items))
	seen := map[string]int{}
	for _, item := range items {
		id := keysOf(item, mergeKey)
		seen[id]++
		out = append(out, id+"#"+strconv.Itoa(seen[id]))
	}
	return out
}

func keysOf(item any, mergeKey string) string {
	fields, ok := item.(map[string]any)
	if !ok {
		return fmt.Sprint(item)
	}
	id := ""
	if key := fields[mergeKey]; key != nil { // an empty name is left out
		id = fmt.Sprint(key)
	}
	if further, ok := furtherKeys[mergeKey]; ok {
		value, _ := fields[further.field].(string)
		if value == "" {
			value = further.byDefault
		}
		id += "/" + value
	}
	return id
}

func itemsByID(items []any, ids []string) map[string]any {
	out := make(map[string]any, len(items))
	for i, id := range ids {
		out[id] = items[i]
	}
	return out
}

// isAmbiguous reports whether an object has a list that is merged by a key which does not tell its items apart.
func isAmbiguous(lookup strategicpatch.LookupPatchMeta, object map[string]any) bool {
	for key, value := range object {
		switch v := value.(type) {
		case map[string]any:
			if of, _ := fieldMeta(lookup, key); of != nil && isAmbiguous(of, v) {
				return true
			}
		case []any:
			of, how := listMeta(lookup, key)
			if of != nil && isAmbiguousList(of, how, v) {
				return true
			}
		}
	}
	return false
}

func isAmbiguousList(lookup strategicpatch.LookupPatchMeta, how strategicpatch.PatchMeta, items []any) bool {
	mergeKey := how.GetPatchMergeKey()
	if !slices.Contains(how.GetPatchStrategies(), "merge") {
		return false // it is replaced as a whole
	}
	seen := map[any]bool{}
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok || mergeKey == "" {
			continue
		}
		id := fmt.Sprint(fields[mergeKey])
		if fields[mergeKey] == nil || seen[id] || isAmbiguous(lookup, fields) {
			return true
		}
		seen[id] = true
	}
	return false
}

// mergePatchOf returns the JSON merge patch from one object to another. It returns false if there is none, as such a patch cannot
// set a null.
func mergePatchOf(from, to map[string]any) (map[string]any, bool) {
	out := map[string]any{}
	for key := range from {
		if _, found := to[key]; !found {
			out[key] = nil
		}
	}
	for key, value := range to {
		before, found := from[key]
		if found && compare.Same(before, value) {
			continue
		}
		if hasNull(value) {
			return nil, false
		}
		fields, isMap := value.(map[string]any)
		earlier, wasMap := before.(map[string]any)
		if !isMap || !wasMap {
			out[key] = value
			continue
		}
		changes, ok := mergePatchOf(earlier, fields)
		if !ok {
			return nil, false
		}
		out[key] = changes
	}
	return out, true
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, field := range v {
			if hasNull(field) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, hasNull)
	default:
		return false
	}
}

// exactPatch returns the JSON patch from an object to a result. It replaces lists as a whole, so it is bound to the version that
// was read.
func exactPatch(live *unstructured.Unstructured, result map[string]any) (Patch, error) {
	operations := appendOperations(nil, "", live.Object, result)
	operations = append([]map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}},
		operations...)
	data, err := json.Marshal(operations)
	return Patch{Type: types.JSONPatchType, Data: data, Result: &unstructured.Unstructured{Object: result}}, err
}

func appendOperations(operations []map[string]any, path string, from, to map[string]any) []map[string]any {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, found := to[key]; !found {
			operations = append(operations, map[string]any{"op": "remove", "path": path + "/" + escapePointer(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		value := to[key]
		at := path + "/" + escapePointer(key)
		before, found := from[key]
		if found && compare.Same(before, value) {
			continue
		}
		fields, isMap := value.(map[string]any)
		earlier, wasMap := before.(map[string]any)
		if isMap && wasMap {
			operations = appendOperations(operations, at, earlier, fields)
			continue
		}
		operations = append(operations, map[string]any{"op": "add", "path": at, "value": value})
	}
	return operations
}

func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
