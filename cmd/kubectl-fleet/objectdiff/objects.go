package objectdiff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Ways in which an object can differ.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Change is an object that is not the same in both sets.
type Change struct {
	// Object names it: Deployment.apps shop/web.
	Object string `json:"object"`
	// Change is added, removed or changed.
	Change string `json:"change"`
	// Lines that differ; for an added object, all of it.
	Lines []string `json:"lines,omitempty"`
}

// key tells objects apart, whatever their version.
type key struct{ group, kind, namespace, name string }

func keyOf(object *unstructured.Unstructured) key {
	gvk := schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind())
	return key{gvk.Group, gvk.Kind, object.GetNamespace(), object.GetName()}
}

func (k key) String() string {
	text := k.kind
	if k.group != "" {
		text += "." + k.group
	}
	if k.namespace != "" {
		return text + " " + k.namespace + "/" + k.name
	}
	return text + " " + k.name
}

// Objects compares two sets of objects.
func Objects(before, after []unstructured.Unstructured) ([]Change, error) {
	left := indexByKey(before)
	right := indexByKey(after)
	keys := maps.Clone(left)
	maps.Copy(keys, right)
	order := slices.SortedFunc(maps.Keys(keys), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name),
			cmp.Compare(a.group, b.group))
	})
	var changes []Change
	for _, k := range order {
		change, err := compareObject(k, left[k], right[k])
		if err != nil {
			return nil, err
		}
		if change != nil {
			changes = append(changes, *change)
		}
	}
	return changes, nil
}

func indexByKey(objects []unstructured.Unstructured) map[key]*unstructured.Unstructured {
	found := make(map[key]*unstructured.Unstructured, len(objects))
	for i := range objects {
		found[keyOf(&objects[i])] = &objects[i]
	}
	return found
}

func compareObject(k key, before, after *unstructured.Unstructured) (*Change, error) {
	before, after = maskSecret(before, after)
	left, err := textOf(before)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", k, err)
	}
	right, err := textOf(after)
	if err != nil {
		return nil, fmt.Errorf("comparing %s: %w", k, err)
	}
	change := &Change{Object: k.String(), Change: Changed, Lines: Lines(left, right)}
	switch {
	case before == nil:
		change.Change = Added
	case after == nil:
		change.Change = Removed
		change.Lines = nil
	case len(change.Lines) == 0:
		return nil, nil
	}
	return change, nil
}

func textOf(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	data, err := yaml.Marshal(object.Object)
	return string(data), err
}

// Masks stand for values that are not to be seen.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// lastApplied is where kubectl keeps whole manifests, those of Secrets too.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// maskSecret replaces the values of a Secret, so that it still shows which of them differ, and returns other objects as they
// are.
func maskSecret(before, after *unstructured.Unstructured) (maskedOld, maskedNew *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return before, after
	}
	before = copyOf(before)
	after = copyOf(after)
	for _, field := range []string{"data", "stringData"} {
		left := valuesOf(before, field)
		right := valuesOf(after, field)
		for name := range unionKeys(left, right) {
			old, has := left[name]
			now, hasNow := right[name]
			oldMask := masked
			newMask := masked
			if has && hasNow && old != now {
				oldMask = maskedBefore
				newMask = maskedAfter
			}
			if has {
				left[name] = oldMask
			}
			if hasNow {
				right[name] = newMask
			}
		}
	}
	return before, after
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GetKind() == "Secret" && object.GetAPIVersion() == "v1"
}

func copyOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	annotations := object.GetAnnotations()
	delete(annotations, lastApplied)
	if len(annotations) == 0 {
		annotations = nil // an empty map would show as a difference
	}
	object.SetAnnotations(annotations)
	return object
}

// valuesOf returns a map of an object itself: what is written to it is in the object.
func valuesOf(object *unstructured.Unstructured, field string) map[string]any {
	if object == nil {
		return nil
	}
	values, ok := object.Object[field].(map[string]any)
	if !ok {
		if object.Object[field] != nil {
			object.Object[field] = masked // whatever it is, it is in a Secret
		}
		return nil
	}
	return values
}

func unionKeys(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}
