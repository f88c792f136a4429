package main

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// reference is everything to be written.
type reference struct {
	kinds []*kind
	// parts are the schemas of the common parts by title, as far as there are any.
	parts  map[string]*apiextensionsv1.JSONSchemaProps
	tables map[string][]*table
	// linked are the anchors that something links to.
	linked map[string]bool
}

func newReference(kinds []*kind) *reference {
	r := &reference{
		kinds: kinds, parts: map[string]*apiextensionsv1.JSONSchemaProps{},
		tables: map[string][]*table{}, linked: map[string]bool{},
	}
	known := homes{}
	for _, k := range kinds {
		r.findParts(known, k.root)
	}
	for _, k := range kinds {
		r.tables[k.name()] = known.tables(k.name(), k.root)
	}
	for _, title := range r.titles() {
		r.tables[title] = known.tables(title, r.parts[title])
	}
	for _, tables := range r.tables {
		for _, t := range tables {
			for _, f := range t.fields {
				if f.like != nil {
					r.linked[f.like.anchor()] = true
				}
			}
		}
	}
	return r
}

func (r *reference) titles() []string { return slices.Sorted(maps.Keys(r.parts)) }

// findParts gives the common parts at and below a schema their home.
func (r *reference) findParts(known homes, schema *apiextensionsv1.JSONSchemaProps) {
	inner, _ := content(schema)
	fields := slices.Sorted(maps.Keys(inner.Properties))
	for title, have := range common() {
		if slices.Equal(fields, have) {
			known[key(inner)] = place{owner: title}
			r.parts[title] = inner
			return
		}
	}
	for _, name := range fields {
		property := inner.Properties[name]
		r.findParts(known, &property)
	}
}
