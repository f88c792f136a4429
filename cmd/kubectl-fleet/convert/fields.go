package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields are the fields of an input that nothing has been made of yet. What is taken is gone from them, so that in the end the
// rest can be told.
type fields struct {
	content map[string]any
	path    string
}

// fieldsOf are the fields of a manifest that its user has written.
func fieldsOf(object *unstructured.Unstructured) fields {
	content := object.DeepCopy().Object
	for _, name := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, name)
	}
	return fields{content: content}
}

func (f fields) pathOf(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// has says whether a field is there and not null.
func (f fields) has(name string) bool { return f.content[name] != nil }

// take takes a field.
func (f fields) take(name string) any {
	value := f.content[name]
	delete(f.content, name)
	return value
}

// text takes a string.
func (f fields) text(name string) (text string, err error) {
	_, err = f.decode(name, &text)
	return text, err
}

// flag takes a boolean.
func (f fields) flag(name string) (is bool, err error) {
	_, err = f.decode(name, &is)
	return is, err
}

// decode takes a field into a value of its own type, which has to know all that is in it.
func (f fields) decode(name string, into any) (found bool, err error) {
	value := f.take(name)
	if value == nil {
		return false, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.pathOf(name), err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return false, fmt.Errorf("%s: %w", f.pathOf(name), err)
	}
	return true, nil
}

// sub are the fields below one of them.
func (f fields) sub(name string) (fields, error) {
	switch value := f.content[name].(type) {
	case nil:
		return fields{path: f.pathOf(name)}, nil
	case map[string]any:
		return fields{content: value, path: f.pathOf(name)}, nil
	default:
		return fields{}, fmt.Errorf("%s: must be an object, not %T", f.pathOf(name), value)
	}
}

// list are the fields of the items of a list.
func (f fields) list(name string) ([]fields, error) {
	if f.content[name] == nil {
		return nil, nil
	}
	items, is := f.content[name].([]any)
	if !is {
		return nil, fmt.Errorf("%s: must be a list, not %T", f.pathOf(name), f.content[name])
	}
	var all []fields
	for i, item := range items {
		path := f.pathOf(name) + "[" + strconv.Itoa(i) + "]"
		content, is := item.(map[string]any)
		if !is {
			return nil, fmt.Errorf("%s: must be an object, not %T", path, item)
		}
		all = append(all, fields{content: content, path: path})
	}
	return all, nil
}

// rest are the paths of what is left, in order. Empty objects and lists count as nothing.
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
