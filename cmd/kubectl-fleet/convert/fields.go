package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields are the fields of an input that nothing has been made of yet. What is taken is gone from them, so that the rest is known
// in the end. The first field of an input that cannot be read is kept as an error, and what is read after it is empty or without
// meaning: the reader of an input asks for the error once, at its end.
type fields struct {
	content map[string]any
	path    string
	failure *error
}

// fieldsOf returns the fields of a manifest that its user has written.
func fieldsOf(object *unstructured.Unstructured) fields {
	content := object.DeepCopy().Object
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, name)
	}
	return fields{content: content, failure: new(error)}
}

// err returns why a field of the input could not be read, or nil.
func (f fields) err() error { return *f.failure }

// fail keeps the error of a field, unless there was one before.
func (f fields) fail(path string, err error) {
	if *f.failure == nil {
		*f.failure = fmt.Errorf("%s: %w", path, err)
	}
}

func (f fields) pathOf(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// has reports whether a field is there and not null.
func (f fields) has(name string) bool { return f.content[name] != nil }

// take takes a field.
func (f fields) take(name string) any {
	value := f.content[name]
	delete(f.content, name)
	return value
}

// takeAs takes a field as a value of a type, which has to know all that is in the field; the zero value if it is absent or null.
func takeAs[T any](f fields, name string) T {
	var zero, into T
	value := f.take(name)
	if value == nil {
		return zero
	}
	data, err := json.Marshal(value)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&into)
	}
	if err != nil {
		f.fail(f.pathOf(name), err)
		return zero
	}
	return into
}

// text takes a string.
func (f fields) text(name string) string { return takeAs[string](f, name) }

// flag takes a boolean.
func (f fields) flag(name string) bool { return takeAs[bool](f, name) }

// sub returns the fields below one of them.
func (f fields) sub(name string) fields {
	below := fields{path: f.pathOf(name), failure: f.failure}
	switch value := f.content[name].(type) {
	case nil:
	case map[string]any:
		below.content = value
	default:
		f.fail(below.path, fmt.Errorf("must be an object, not %T", value))
	}
	return below
}

// list returns the fields of the items of a list.
func (f fields) list(name string) []fields {
	if f.content[name] == nil {
		return nil
	}
	items, is := f.content[name].([]any)
	if !is {
		f.fail(f.pathOf(name), fmt.Errorf("must be a list, not %T", f.content[name]))
	}
	var all []fields
	for i, item := range items {
		below := fields{path: f.pathOf(name) + "[" + strconv.Itoa(i) + "]", failure: f.failure}
		if below.content, is = item.(map[string]any); !is {
			f.fail(below.path, fmt.Errorf("must be an object, not %T", item))
		}
		all = append(all, below)
	}
	return all
}

// rest returns the paths of what is left, in order. Empty objects and lists count as nothing.
func (f fields) rest() []string {
	var paths []string
	for name, value := range f.content {
		paths = append(paths, pathsIn(f.pathOf(name), value)...)
	}
	slices.Sort(paths)
	return paths
}

func pathsIn(path string, value any) []string {
	var paths []string
	switch value := value.(type) {
	case nil:
	case map[string]any:
		paths = fields{content: value, path: path}.rest()
	case []any:
		for i, item := range value {
			paths = append(paths, pathsIn(path+"["+strconv.Itoa(i)+"]", item)...)
		}
	default:
		paths = []string{path}
	}
	return paths
}
