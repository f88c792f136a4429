//go:build integration

package admission

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"
)

// missing returns what is written and not stored, one line per field. What the server adds is fine; quantities, numbers
// and times count by what they mean, and an empty value may be left out.
func missing(written, stored any, path string) []string {
	if isEmpty(written) && isEmpty(stored) {
		return nil
	}
	switch written := written.(type) {
	case map[string]any:
		fields, ok := stored.(map[string]any)
		if !ok {
			break
		}
		var lines []string
		for key, value := range written {
			lines = append(lines, missing(value, fields[key], path+"."+key)...)
		}
		slices.Sort(lines)
		return lines
	case []any:
		items, ok := stored.([]any)
		if !ok || len(items) != len(written) {
			break
		}
		var lines []string
		for i, value := range written {
			lines = append(lines, missing(value, items[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return lines
	default:
		if sameValue(written, stored) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: written %#v, stored %#v", path, written, stored)}
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	if kind := v.Kind(); kind == reflect.Map || kind == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

func sameValue(written, stored any) bool {
	if reflect.DeepEqual(written, stored) || number(written) == number(stored) && number(written) != "" {
		return true
	}
	a, aIsText := written.(string)
	b, bIsText := stored.(string)
	return aIsText && bIsText && (sameQuantity(a, b) || sameTime(a, b))
}

// number returns a number as text, "" for anything else.
func number(value any) string {
	switch value.(type) {
	case int64, float64:
		return fmt.Sprint(value)
	}
	return ""
}

func sameQuantity(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

func sameTime(a, b string) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Equal(y)
}

func TestMissing(t *testing.T) {
	for sentence, tc := range map[string]struct {
		written, stored any
		want            []string
	}{
		"what the server adds is fine": {
			written: map[string]any{"a": int64(1)}, stored: map[string]any{"a": int64(1), "b": "default"}},
		"a field that was pruned is named": {
			written: map[string]any{"a": map[string]any{"b": "x"}}, stored: map[string]any{"a": map[string]any{}},
			want: []string{`.a.b: written "x", stored <nil>`}},
		"a changed value is named": {
			written: map[string]any{"a": []any{"x", true}}, stored: map[string]any{"a": []any{"y", true}},
			want: []string{`.a[0]: written "x", stored "y"`}},
		"a shorter list is named": {
			written: []any{"x", "y"}, stored: []any{"x"},
			want: []string{`: written []interface {}{"x", "y"}, stored []interface {}{"x"}`}},
		"quantities count by what they are": {written: "0.5", stored: "500m"},
		"times count by what they are":      {written: "2025-03-12T23:24:00Z", stored: "2025-03-12T23:24:00+00:00"},
		"a number is no text":               {written: int64(1), stored: "1", want: []string{`: written 1, stored "1"`}},
		"an empty map may be left out":      {written: map[string]any{"a": map[string]any{}}, stored: map[string]any{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, missing(tc.written, tc.stored, ""))
		})
	}
}
