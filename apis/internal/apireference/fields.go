package main

import (
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// fewFields is up to how many fields are rather repeated than linked to.
	fewFields = 1
	// deepest and smallest are from which depth on, and above how many fields, a part gets a table of its own, so that
	// the names of fields stay short.
	deepest, smallest = 3, 3
)

// place is where a part is written out.
type place struct {
	owner, path string
}

// anchor returns the name that links to the place use.
func (p place) anchor() string {
	strip := strings.NewReplacer(".", "-", "[]", "", "{}", "", " ", "-")
	return strings.TrimSuffix(strings.ToLower(strip.Replace(p.owner+"-"+p.path)), "-")
}

// table is the fields of an object, or of a part of one.
type table struct {
	place
	schema *apiextensionsv1.JSONSchemaProps
	fields []field
}

// field is one row of a table.
type field struct {
	place
	// name is the path of the field as of the table.
	name     string
	schema   *apiextensionsv1.JSONSchemaProps
	required bool
	// like is where the fields below this one are written out, nil if they follow.
	like *place
}

// common are parts that occur all over the API, by their title and the fields they are known by.
func common() map[string][]string {
	return map[string][]string{
		"Condition":      {"lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"},
		"Label selector": {"matchExpressions", "matchLabels"},
	}
}

// homes is where the parts of all kinds are written out.
type homes map[string]place

// tables returns the tables that an object is written out in, the one with the topmost fields first.
func (h homes) tables(owner string, schema *apiextensionsv1.JSONSchemaProps) []*table {
	all := []*table{{place: place{owner: owner}, schema: schema}}
	for i := 0; i < len(all); i++ {
		all = append(all, h.fill(all[i], "", all[i].schema, 1)...)
	}
	return all
}

// fill adds the fields of a part to a table, and returns the tables that its deeper parts get.
func (h homes) fill(t *table, path string, schema *apiextensionsv1.JSONSchemaProps, depth int) (deeper []*table) {
	for _, name := range names(t.path+path, schema) {
		property := schema.Properties[name]
		inner, suffix := content(&property)
		f := field{name: join(path, name), schema: &property, required: slices.Contains(schema.Required, name)}
		f.place = place{t.owner, join(t.path, f.name)}
		home, known := h[key(inner)]
		switch size := rows(inner); {
		case size == 0:
			t.fields = append(t.fields, f)
		case known:
			f.like = &home
			t.fields = append(t.fields, f)
		case depth >= deepest && size > smallest:
			h[key(inner)] = f.place
			f.like = &f.place
			t.fields = append(t.fields, f)
			deeper = append(deeper, &table{place: place{t.owner, f.path + suffix}, schema: inner})
		default:
			if size > fewFields {
				h[key(inner)] = f.place
			}
			t.fields = append(t.fields, f)
			deeper = append(deeper, h.fill(t, f.name+suffix, inner, depth+1)...)
		}
	}
	return deeper
}

// content returns the schema whose fields a field shows: that of the entries of lists and maps. The suffix is what it
// adds to the path.
func content(schema *apiextensionsv1.JSONSchemaProps) (inner *apiextensionsv1.JSONSchemaProps, suffix string) {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		inner, suffix = content(schema.Items.Schema)
		return inner, "[]" + suffix
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		inner, suffix = content(schema.AdditionalProperties.Schema)
		return inner, "{}" + suffix
	}
	return schema, ""
}

// rows returns how many fields there are at all depths of a part; a whole Kubernetes object of any kind has none.
func rows(schema *apiextensionsv1.JSONSchemaProps) int {
	if schema.XEmbeddedResource {
		return 0
	}
	count := len(schema.Properties)
	for _, property := range schema.Properties {
		inner, _ := content(&property)
		count += rows(inner)
	}
	return count
}

// key is equal for two parts with the same fields, whatever is said about each part as a whole.
func key(schema *apiextensionsv1.JSONSchemaProps) string {
	text, err := json.Marshal([]any{schema.Properties, schema.Required})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(text)
}

// names returns the fields of a part by name; what every Kubernetes object has is left out.
func names(path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	for name := range schema.Properties {
		if path != "" || !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
