package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const introduction = `# API reference

Generated from the CRDs by ` + "`make generate`" + `; the comments to change are those of the Go types in ` + "`apis`" + `.

Every version of a kind has the same fields, so it does not matter which one you read or write through; ` + "`v1beta1`" + ` is
the stored one. Fields are optional unless it says *required*. A *Rule* quotes what the API server answers to those who
break it; … stands for something of the object. In paths, ` + "`[]`" + ` stands for the entries of a list and ` + "`{}`" + ` for those of
a map. Every kind has ` + "`metadata`" + ` as well.

`

func (r *reference) write(out *bytes.Buffer) {
	out.WriteString(introduction)
	r.writeContents(out)
	last := ""
	for _, k := range r.kinds {
		if k.topic.title != last {
			last = k.topic.title
			fmt.Fprintf(out, "## %s\n\n%s\n\n", last, k.topic.intro)
		}
		writeHead(out, k)
		r.writeTables(out, r.tables[k.name()])
	}
	out.WriteString("## Common parts\n\nWhat many kinds have.\n\n")
	for _, title := range r.titles() {
		fmt.Fprintf(out, "### %s\n\n", title)
		r.writeTables(out, r.tables[title])
	}
	out.Truncate(out.Len() - 1) // the empty line after the last table
}

func (r *reference) writeContents(out *bytes.Buffer) {
	out.WriteString("| Kind | Short | Versions | Scope | |\n|---|---|---|---|---|\n")
	for _, k := range r.kinds {
		summary, _, _ := strings.Cut(prose(k.root.Description), ". ")
		fmt.Fprintf(out, "| [%s](#%s) | %s | %s | %s | %s. |\n", k.name(), strings.ToLower(k.name()),
			codes(k.crd.Spec.Names.ShortNames), strings.Join(k.versions(), ", "), k.scope(), strings.TrimSuffix(summary, "."))
	}
	out.WriteString("\n")
}

// writeHead writes what is to be said of a kind before its fields.
func writeHead(out *bytes.Buffer, k *kind) {
	spec := k.crd.Spec
	fmt.Fprintf(out, "### %s\n\n%s\n\n", k.name(), prose(k.root.Description))
	var apiVersions []string
	for _, version := range k.versions() {
		apiVersions = append(apiVersions, spec.Group+"/"+version)
	}
	fmt.Fprintf(out, "- apiVersion: %s\n- scope: %s\n", codes(apiVersions), k.scope())
	fmt.Fprintf(out, "- `kubectl get`: %s; with others of the fleet: %s\n",
		codes(append([]string{spec.Names.Plural}, spec.Names.ShortNames...)), codes(spec.Names.Categories))
	narrow, wide := k.columns()
	fmt.Fprintf(out, "- columns: %s", strings.Join(narrow, ", "))
	if len(wide) > 0 {
		fmt.Fprintf(out, "; with `-o wide` also %s", strings.Join(wide, ", "))
	}
	out.WriteString("\n")
	for _, rule := range rulesOf(k.root) {
		fmt.Fprintf(out, "- %s\n", rule)
	}
	out.WriteString("\n")
}

func (r *reference) writeTables(out *bytes.Buffer, tables []*table) {
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintf(out, "<a id=\"%s\"></a>\n%s of %s:\n\n", t.anchor(), code(t.path), t.owner)
		}
		out.WriteString("| Field | Type | |\n|---|---|---|\n")
		for _, f := range t.fields {
			r.writeField(out, f)
		}
		out.WriteString("\n")
	}
}

func (r *reference) writeField(out *bytes.Buffer, f field) {
	name, kind := code(f.name), typeOf(f.schema)
	hasTable := f.like != nil && *f.like == f.place
	if r.linked[f.anchor()] && !hasTable {
		name = fmt.Sprintf("<a id=\"%s\"></a>", f.anchor()) + name
	}
	switch {
	case f.schema.Default != nil:
		kind += ", default " + code(strings.Trim(string(f.schema.Default.Raw), `"`))
	case f.required:
		kind += ", required"
	}
	cell := []string{prose(f.schema.Description)}
	switch {
	case hasTable:
		cell = append(cell, fmt.Sprintf("Fields: [below](#%s).", f.anchor()))
	case f.like != nil:
		cell = append(cell, "Fields: see "+f.like.link(f.owner)+".")
	}
	fmt.Fprintf(out, "| %s | %s | %s |\n", name, kind, strings.Join(append(cell, limitsOf(f.schema)...), "<br>"))
}

// link returns a link to a place, as seen from some kind.
func (p place) link(from string) string {
	text := code(p.path)
	switch {
	case p.path == "":
		text = p.owner
	case p.owner != from:
		text += " of " + p.owner
	}
	return fmt.Sprintf("[%s](#%s)", text, p.anchor())
}

func (k *kind) versions() []string {
	var all []string
	for _, version := range k.crd.Spec.Versions {
		all = append(all, version.Name)
	}
	return all
}

func (k *kind) columns() (narrow, wide []string) {
	for _, column := range k.crd.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	return narrow, wide
}

func (k *kind) scope() string {
	if k.crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return "namespace"
	}
	return "cluster"
}

// prose returns a description as one line of Markdown that means nothing but its words.
func prose(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, paragraph := range paragraphs {
		paragraphs[i] = escape(strings.Join(strings.Fields(paragraph), " "))
	}
	return strings.Join(paragraphs, "<br>")
}

func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "[", `\[`, "~", `\~`).Replace(text)
}

// code returns text as code that may stand in a table.
func code(text string) string {
	quote := "`"
	if strings.Contains(text, quote) {
		quote = "``"
	}
	return quote + strings.ReplaceAll(text, "|", `\|`) + quote
}

func codes(texts []string) string {
	all := slices.Clone(texts)
	for i := range all {
		all[i] = code(all[i])
	}
	return strings.Join(all, ", ")
}
