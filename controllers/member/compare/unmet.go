package compare

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fleetflow/fleetflow/apis/quantity"
)

// maxMatched is up to how many items of a list are looked for at another place of the list than in the manifest.
const maxMatched = 500

// repacked are kinds whose content the API server puts into an order and a grouping of its own.
var repacked = map[schema.GroupKind]bool{{Kind: "Endpoints"}: true}

// Unmet judges the API server's answer to a write: it lists the fields that the manifest sets and that the object does not have
// like that, and those that it does not set and that the API server keeps from before. Whatever the cluster adds is allowed, as
// defaults and admission do: fields, and items of lists among those of the manifest. So is another way to write the same, such as a
// quantity, a time, or an empty field that is left out. A list that is to be empty has no items of other clients: isTheirs, which
// may be nil, tells whether another client holds something of the list at a path. It changes neither object.
func Unmet(manifest, object *unstructured.Unstructured, isTheirs func(path string) bool) Report {
	if repacked[manifest.GroupVersionKind().GroupKind()] {
		return Report{}
	}
	if hasAll(manifest.Object, object.Object) {
		d := differ{secret: isSecret(manifest)}
		d.addKept(manifest, object)
		return d.report
	}
	return judgeFields(manifest, object, isTheirs)
}

// hasAll reports whether a value has all that is wanted, where it is wanted and written as it is wanted. That is so of nearly every
// answer, and is found out without a copy.
func hasAll(wanted, there any) bool {
	switch w := wanted.(type) {
	case nil:
		return true // the manifest leaves it to the cluster
	case map[string]any:
		t, ok := there.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range w {
			if !hasAll(value, t[key]) {
				return false
			}
		}
		return true
	case []any:
		t, ok := there.([]any)
		return ok && slices.EqualFunc(w, t, hasAll)
	default:
		return equalScalars(wanted, there)
	}
}

// judgeFields compares field by field, without those that do not count.
func judgeFields(manifest, object *unstructured.Unstructured, isTheirs func(path string) bool) Report {
	wanted := relevantFields(manifest, manifest)
	there := relevantFields(manifest, object)
	typed, err := scheme.Scheme.New(manifest.GroupVersionKind())
	j := judge{differ: differ{secret: isSecret(manifest)}, builtIn: err == nil, isTheirs: isTheirs}
	quick := j
	if quick.judgeMaps("", wanted, wanted, there); quick.report.Empty() {
		j.addKept(manifest, object)
		return j.report
	}
	canonical := wanted
	if j.builtIn {
		canonical = canonicalForm(typed, wanted)
		wanted = withoutIdleZeros(wanted, canonical, canonicalForm(reflect.New(reflect.TypeOf(typed).Elem()).Interface().(runtime.Object),
			withoutZeros(wanted)))
	}
	j.judgeMaps("", wanted, canonical, there)
	j.addKept(manifest, object)
	return j.report
}

// canonicalForm returns an object of a built-in kind as its Go type writes it, as far as the type knows it.
func canonicalForm(typed runtime.Object, object map[string]any) map[string]any {
	if quantity.CheckContent(reflect.TypeOf(typed).Elem(), object) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed) != nil {
		return object
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return object
	}
	return out
}

// withoutZeros returns a copy of an object without fields that are an empty text, zero or false.
func withoutZeros(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for key, value := range object {
		if !isZeroScalar(value) {
			out[key] = eachMap(value, func(_ int, inner map[string]any) map[string]any { return withoutZeros(inner) })
		}
	}
	return out
}

// withoutIdleZeros returns a copy of an object of a built-in kind without the zeros that mean the same as a missing field, so that
// the cluster may fill them in: those that the type leaves out, and those that it writes for a missing field, too. Blank is the
// canonical form of the object without zeros.
func withoutIdleZeros(wanted, canonical, blank map[string]any) map[string]any {
	out := make(map[string]any, len(wanted))
	for key, value := range wanted {
		if _, always := blank[key]; isZeroScalar(value) && (canonical[key] == nil || always) {
			continue
		}
		out[key] = eachMap(value, func(i int, inner map[string]any) map[string]any {
			return withoutIdleZeros(inner, mapAt(canonical[key], i), mapAt(blank[key], i))
		})
	}
	return out
}

// eachMap returns a value with what a function makes of it, if it is a map, or of each map in it, if it is a list.
func eachMap(value any, of func(i int, inner map[string]any) map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		return of(-1, v)
	case []any:
		out := slices.Clone(v)
		for i, item := range v {
			if inner, ok := item.(map[string]any); ok {
				out[i] = of(i, inner)
			}
		}
		return out
	default:
		return value
	}
}

// mapAt returns a map, or the item of a list that is one.
func mapAt(value any, i int) map[string]any {
	if list, ok := value.([]any); ok && i >= 0 && i < len(list) {
		value = list[i]
	}
	found, _ := value.(map[string]any)
	return found
}

func isZeroScalar(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case bool:
		return !v
	default:
		return false
	}
}

// judge walks the wanted value, its canonical form and the value that is there in parallel, and collects what is not as wanted.
type judge struct {
	differ
	// builtIn is whether the kind is one of Kubernetes, of which the API server leaves empty fields out.
	builtIn bool
	// isTheirs tells whether another client holds something of the list at a path.
	isTheirs func(path string) bool
}

// isMet reports whether a value is as wanted, wherever it is.
func (j *judge) isMet(wanted, canonical, there any) bool {
	probe := judge{builtIn: j.builtIn}
	probe.judgeValues("", wanted, canonical, there)
	return probe.report.Empty()
}

func (j *judge) judgeValues(path string, wanted, canonical, there any) {
	switch w := wanted.(type) {
	case nil:
		return // the manifest leaves it to the cluster
	case map[string]any:
		if t, ok := there.(map[string]any); ok {
			c, _ := canonical.(map[string]any)
			j.judgeMaps(path, w, c, t)
			return
		}
	case []any:
		if t, ok := there.([]any); ok {
			c, _ := canonical.([]any)
			j.judgeLists(path, w, c, t)
			return
		}
	default:
		if equalScalars(wanted, there) || canonical != nil && equalScalars(canonical, there) {
			return
		}
	}
	if there == nil && j.builtIn && isEmptyValue(wanted) {
		return
	}
	j.addDetail(path, wanted, there)
}

func (j *judge) judgeMaps(path string, wanted, canonical, there map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		j.judgeValues(path+"/"+escapeKey(key), wanted[key], canonical[key], there[key])
	}
}

// judgeLists finds the wanted items in their order, with others among them.
func (j *judge) judgeLists(path string, wanted, canonical, there []any) {
	at := func(list []any, i int) any {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	if len(wanted) == 0 && len(there) > 0 && j.isTheirs != nil && j.isTheirs(path) {
		j.addDetail(path, wanted, there)
		return
	}
	next := 0
	for i, want := range wanted {
		found := next
		if len(there) <= maxMatched {
			for found < len(there) && !j.isMet(want, at(canonical, i), there[found]) {
				found++
			}
		}
		if found >= len(there) {
			found = j.closest(want, there, next)
		}
		j.judgeValues(path+"/"+strconv.Itoa(i), want, at(canonical, i), at(there, found))
		next = found + 1
	}
}

// closest returns where to look for an item that is not as wanted: at the item of the same name, or at the next.
func (j *judge) closest(want any, there []any, next int) int {
	fields, ok := want.(map[string]any)
	if ok && fields["name"] != nil {
		for i := next; i < len(there); i++ {
			if item, isMap := there[i].(map[string]any); isMap && item["name"] == fields["name"] {
				return i
			}
		}
	}
	return next
}

// isEmptyValue reports whether a built-in kind leaves a value out.
func isEmptyValue(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(item any) bool { return !isEmptyValue(item) })
	case []any:
		return len(v) == 0
	default:
		return reflect.ValueOf(v).IsZero()
	}
}
