// Package refused has the objects that the API server refuses, with the field, the reason and the message that it gives, for every
// engine that is asked: the API server's own code, and a real API server.
package refused

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Table has the ways in which objects like the base are refused. The base itself is admitted.
type Table struct {
	About string         `json:"about"`
	Base  map[string]any `json:"base"`
	// Created may not be created, Updated not be made of what is stored, and Status not be the status of a stored base.
	Created []Case `json:"created"`
	Updated []Case `json:"updated"`
	Status  []Case `json:"status"`
}

// Case is a small edit, a merge patch of the base, that makes it wrong, and the answer.
type Case struct {
	// It is the rule, as a sentence.
	It string `json:"it"`
	// Before is an edit of the base that makes the stored object.
	Before map[string]any `json:"before"`
	Edit   map[string]any `json:"edit"`
	// Fine is the nearest edit that is right; where it is empty, the base or what is stored.
	Fine    map[string]any `json:"fine"`
	Refusal Refusal        `json:"refusal"`
	// Lenient does not ask for unknown fields to be refused, as kubectl does with --validate=ignore.
	Lenient bool `json:"lenient"`
	// Most is how many reasons the API server gives at most, one if it is 0.
	Most int `json:"most"`
}

// Refusal is the answer to what is wrong.
type Refusal struct {
	// Field and Reason are those of the answer, such as spec.state and FieldValueInvalid. What only a whole API server refuses, because it
	// does not know a field, or by an admission policy, has none.
	Field  string `json:"field"`
	Reason string `json:"reason"`
	// Message is a part of the text.
	Message string `json:"message"`
}

// Tables reads all tables.
func Tables() ([]Table, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	var all []Table
	for _, name := range names {
		tables, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		all = append(all, tables...)
	}
	return all, nil
}

// read reads the tables of a file. In it, {{repeat 3 "a"}} stands for aaa, and {{many 3 "{name: n#}"}} for the items of a list, in which
// each # is the number of the item, from 0.
func read(name string) ([]Table, error) {
	text, err := template.New(name).Funcs(template.FuncMap{
		"repeat": func(n int, text string) string { return strings.Repeat(text, n) }, "many": many,
	}).ParseFS(files, name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := text.Execute(&out, nil); err != nil {
		return nil, err
	}
	var tables []Table
	if err := yaml.UnmarshalStrict(out.Bytes(), &tables); err != nil {
		return nil, err
	}
	content, err := yaml.YAMLToJSON(out.Bytes())
	if err != nil {
		return nil, err
	}
	// The first reader knows the fields; this one keeps whole numbers whole.
	tables = nil
	if err := json.Unmarshal(content, &tables); err != nil {
		return nil, err
	}
	return tables, nil
}

func many(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "#", strconv.Itoa(i))
	}
	return strings.Join(items, ", ")
}

// Merge returns an object with a merge patch applied: maps are merged, null deletes, the rest replaces.
func Merge(object, patch map[string]any) map[string]any {
	merged := runtime.DeepCopyJSON(object)
	merge(merged, runtime.DeepCopyJSON(patch))
	return merged
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		wanted, isMap := value.(map[string]any)
		existing, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(existing, wanted)
		default:
			into[key] = value
		}
	}
}
