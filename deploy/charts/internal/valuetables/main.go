// Command valuetables writes what the comments of values.yaml say into the other two places where users look for it: the
// descriptions of values.schema.json, which editors show, and a table in the README. It is run in the folder of the charts.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// tableBegins and tableEnds are what the table in a README is between.
	tableBegins = "<!-- Written by make generate from the comments of values.yaml. -->\n"
	tableEnds   = "<!-- The end of what is written from values.yaml. -->\n"
)

func main() {
	for _, chart := range []string{"hub-agent", "member-agent", "fleet-dashboard"} {
		if err := write(chart); err != nil {
			fmt.Fprintf(os.Stderr, "valuetables: %v\n", err)
			os.Exit(1)
		}
	}
}

// row is values that stand together below one comment.
type row struct {
	// paths are the keys, from the outermost on.
	paths    [][]string
	defaults []string
	text     string
}

func write(chart string) error {
	values, err := parse(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	rows := rowsOf(values, nil, "")
	schemaFile := filepath.Join(chart, "values.schema.json")
	schema, err := parse(schemaFile)
	if err != nil {
		return err
	}
	describe(schema, values)
	var text bytes.Buffer
	if err := encode(&text, schema, ""); err != nil {
		return fmt.Errorf("writing %s: %w", schemaFile, err)
	}
	text.WriteString("\n")
	if err := os.WriteFile(schemaFile, text.Bytes(), 0o644); err != nil { //nolint:gosec // all users may read it
		return fmt.Errorf("writing the schema: %w", err)
	}
	return intoReadme(filepath.Join(chart, "README.md"), table(rows))
}

// parse reads YAML, of which JSON is a part, in its order.
func parse(file string) (*yaml.Node, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	document := &yaml.Node{}
	if err := yaml.Unmarshal(content, document); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return document.Content[0], nil
}

// pairs calls back with each key of a mapping and its value.
func pairs(mapping *yaml.Node, each func(key, value *yaml.Node)) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		each(mapping.Content[i], mapping.Content[i+1])
	}
}

// comment returns what stands above a key, as one line.
func comment(key *yaml.Node) string {
	var words []string
	for line := range strings.Lines(key.HeadComment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

// explained reports whether a value is a mapping whose keys have comments of their own.
func explained(value *yaml.Node) bool {
	found := false
	if value.Kind == yaml.MappingNode {
		pairs(value, func(key, inner *yaml.Node) { found = found || key.HeadComment != "" || explained(inner) })
	}
	return found
}

// rowsOf returns the rows of a mapping. Keys without a comment stand with those before them, or else below what is said of the mapping.
func rowsOf(mapping *yaml.Node, above []string, inherited string) []row {
	var rows []row
	joins := false
	pairs(mapping, func(key, value *yaml.Node) {
		at := append(append([]string{}, above...), key.Value)
		text := comment(key)
		if explained(value) {
			if text == "" && len(rows) == 0 {
				text = inherited
			}
			rows = append(rows, rowsOf(value, at, text)...)
			joins = false
			return
		}
		if text == "" && joins {
			last := &rows[len(rows)-1]
			last.paths, last.defaults = append(last.paths, at), append(last.defaults, shown(value))
			return
		}
		if text == "" {
			text = inherited
		}
		rows = append(rows, row{paths: [][]string{at}, defaults: []string{shown(value)}, text: text})
		joins = true
	})
	return rows
}

// shown returns a value on one line.
func shown(value *yaml.Node) string {
	var plain any
	if err := value.Decode(&plain); err != nil {
		return value.Value
	}
	if text, is := plain.(string); is && text != "" {
		return text
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain); err != nil {
		return value.Value
	}
	return strings.TrimSpace(line.String())
}

func table(rows []row) string {
	var text strings.Builder
	text.WriteString("| value | default | what it is for |\n|---|---|---|\n")
	for _, r := range rows {
		var keys, defaults []string
		for i, path := range r.paths {
			keys = append(keys, "`"+strings.Join(path, ".")+"`")
			defaults = append(defaults, "`"+cell(r.defaults[i])+"`")
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", strings.Join(keys, "<br>"), strings.Join(defaults, "<br>"), cell(placeholders(r.text)))
	}
	return text.String()
}

// cell returns a text as Markdown has it in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// placeholders keeps Markdown from taking <this> for a tag.
func placeholders(text string) string { return strings.ReplaceAll(text, "<", `\<`) }

func intoReadme(file, rows string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the README: %w", err)
	}
	before, rest, begins := strings.Cut(string(content), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the table: a line %q and a line %q", file, strings.TrimSpace(tableBegins),
			strings.TrimSpace(tableEnds))
	}
	if err := os.WriteFile(file, []byte(before+tableBegins+"\n"+rows+"\n"+tableEnds+after), 0o644); err != nil { //nolint:gosec // all users may read it
		return fmt.Errorf("writing the README: %w", err)
	}
	return nil
}

// entry returns the value of a key in a mapping; nil if there is none.
func entry(mapping *yaml.Node, name string) *yaml.Node {
	var found *yaml.Node
	if mapping != nil && mapping.Kind == yaml.MappingNode {
		pairs(mapping, func(key, value *yaml.Node) {
			if key.Value == name {
				found = value
			}
		})
	}
	return found
}

// describe sets the descriptions of a schema. What values.yaml does not have, such as values of KubeFleet's charts, keeps its own.
func describe(schema, values *yaml.Node) {
	properties := entry(schema, "properties")
	if properties == nil {
		return
	}
	before := ""
	pairs(values, func(key, value *yaml.Node) {
		property := entry(properties, key.Value)
		text := comment(key)
		if text == "" && !explained(value) {
			text = before
		}
		before = text
		if explained(value) {
			before = ""
		}
		if property == nil {
			return
		}
		if text != "" {
			set(property, "description", text)
		}
		if value.Kind == yaml.MappingNode {
			describe(property, value)
		}
	})
}

// set puts a text into a mapping, first if it is new.
func set(mapping *yaml.Node, name, text string) {
	if value := entry(mapping, name); value != nil {
		value.Value = text
		return
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
	mapping.Content = append([]*yaml.Node{key, {Kind: yaml.ScalarNode, Tag: "!!str", Value: text}}, mapping.Content...)
}

// encode writes a node as JSON, in its order.
func encode(out *bytes.Buffer, node *yaml.Node, indent string) error {
	switch {
	case node.Kind == yaml.MappingNode && len(node.Content) > 0:
		separator := "{\n"
		for i := 0; i+1 < len(node.Content); i += 2 {
			out.WriteString(separator + indent + "  ")
			if err := encode(out, node.Content[i], indent+"  "); err != nil {
				return err
			}
			out.WriteString(": ")
			if err := encode(out, node.Content[i+1], indent+"  "); err != nil {
				return err
			}
			separator = ",\n"
		}
		out.WriteString("\n" + indent + "}")
		return nil
	case node.Kind == yaml.SequenceNode && len(node.Content) > 0:
		separator := "[\n"
		for _, one := range node.Content {
			out.WriteString(separator + indent + "  ")
			if err := encode(out, one, indent+"  "); err != nil {
				return err
			}
			separator = ",\n"
		}
		out.WriteString("\n" + indent + "]")
		return nil
	}
	var plain any
	if err := node.Decode(&plain); err != nil {
		return err
	}
	var scalar bytes.Buffer
	encoder := json.NewEncoder(&scalar)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain); err != nil {
		return err
	}
	out.Write(bytes.TrimSpace(scalar.Bytes()))
	return nil
}
