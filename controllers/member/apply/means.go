package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/apis/quantity"
)

// isEquivalent reports whether two objects of a built-in kind are the same although they are written
// differently: the API server writes quantities in its own way and omits empty fields. Writing such
// an object again would change nothing, over and over.
//
// The types known here may be older than the cluster's, so fields that they lack must not differ at
// all.
func isEquivalent(typed runtime.Object, a, b map[string]any) bool {
	if typed == nil || !isSameInOtherStyle(a, b) {
		return false
	}
	of := reflect.TypeOf(typed).Elem()
	if quantity.CheckContent(of, a) != nil || quantity.CheckContent(of, b) != nil {
		return false
	}
	x := reflect.New(of)
	y := reflect.New(of)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(a, x.Interface()) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(b, y.Interface()) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(x.Interface(), y.Interface())
}

// isSameInOtherStyle reports whether two values differ only in how quantities are written, and in
// empty values that only one of them has.
func isSameInOtherStyle(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && areMapsSameInOtherStyle(x, y)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !isSameInOtherStyle(x[i], y[i]) {
				return false
			}
		}
		return true
	case string:
		y, ok := b.(string)
		return ok && (x == y || sameQuantity(x, y))
	default:
		return equality.Semantic.DeepEqual(a, b)
	}
}

func areMapsSameInOtherStyle(a, b map[string]any) bool {
	for key, value := range a {
		other, found := b[key]
		if !found && !isEmpty(value) || found && !isSameInOtherStyle(value, other) {
			return false
		}
	}
	for key, value := range b {
		if _, found := a[key]; !found && !isEmpty(value) {
			return false
		}
	}
	return true
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

func sameQuantity(a, b string) bool {
	x, err := quantity.Parse(a)
	if err != nil {
		return false
	}
	y, err := quantity.Parse(b)
	return err == nil && x.Cmp(y) == 0
}
