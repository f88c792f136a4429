package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// noValue stands in a column for a field that an object has not, as with kubectl.
const noValue = "<none>"

// readTemplate reads a JSONPath template.
func readTemplate(text string) (*jsonpath.JSONPath, error) {
	if text == "" {
		return nil, Usagef("--output jsonpath needs a template, as in: -o jsonpath='{.items[*].metadata.name}'")
	}
	template := jsonpath.New("output").AllowMissingKeys(true)
	if err := template.Parse(text); err != nil {
		return nil, Usagef("--output jsonpath=%s cannot be read: %v", text, err)
	}
	return template, nil
}

// fillTemplate fills a template with a value.
func fillTemplate(value []byte, text string) ([]byte, error) {
	template, err := readTemplate(text)
	if err != nil {
		return nil, err
	}
	var data any
	if err := json.Unmarshal(value, &data); err != nil {
		return nil, err
	}
	filled := &bytes.Buffer{}
	if err := template.Execute(filled, data); err != nil {
		return nil, err
	}
	return []byte(tree.Printable(filled.String())), nil
}

// itemsOf returns the objects of a list, or the one object.
func itemsOf(value []byte) ([]any, error) {
	var data any
	if err := json.Unmarshal(value, &data); err != nil {
		return nil, err
	}
	switch data := data.(type) {
	case []any:
		return data, nil
	case map[string]any:
		if items, isList := data["items"].([]any); isList {
			return items, nil
		}
	}
	return []any{data}, nil
}

// namesIn names objects as kubectl does with -o name.
func namesIn(value []byte) ([]byte, error) {
	items, err := itemsOf(value)
	if err != nil {
		return nil, err
	}
	lines := &bytes.Buffer{}
	for _, item := range items {
		object, _ := item.(map[string]any) // what is no object has no name, which the printer says
		if err := (&printers.NamePrinter{}).PrintObj(&unstructured.Unstructured{Object: object}, lines); err != nil {
			return nil, err
		}
	}
	return lines.Bytes(), nil
}

// customColumn is a column that the user describes.
type customColumn struct {
	name     string
	template *jsonpath.JSONPath
}

// relaxed is a path with or without the braces and the dot that JSONPath wants.
var relaxed = regexp.MustCompile(`^\{?\.?([^{}]+)\}?$`)

// readColumns reads columns such as NAME:.metadata.name,AGE:.metadata.creationTimestamp.
func readColumns(text string) ([]customColumn, error) {
	const example = "as in: -o custom-columns=NAME:.metadata.name,ZONE:.metadata.labels.zone"
	var columns []customColumn
	for part := range strings.SplitSeq(text, ",") {
		name, path, described := strings.Cut(part, ":")
		match := relaxed.FindStringSubmatch(path)
		if !described || name == "" || match == nil {
			return nil, Usagef("--output custom-columns needs columns of the form NAME:PATH, %s", example)
		}
		template := jsonpath.New(name).AllowMissingKeys(true)
		if err := template.Parse("{." + match[1] + "}"); err != nil {
			return nil, Usagef("the path %q of column %s cannot be read: %v, %s", path, name, err, example)
		}
		columns = append(columns, customColumn{name, template})
	}
	return columns, nil
}

// cellOf returns what a column has of an object.
func (c customColumn) cellOf(item any) (string, error) {
	found, err := c.template.FindResults(item)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, results := range found {
		for _, result := range results {
			texts = append(texts, cellText(result))
		}
	}
	if len(texts) == 0 {
		return noValue, nil
	}
	return strings.Join(texts, ","), nil
}

func cellText(value reflect.Value) string {
	if !value.IsValid() || !value.CanInterface() || value.Interface() == nil {
		return noValue
	}
	switch value := value.Interface().(type) {
	case map[string]any, []any:
		if encoded, err := json.Marshal(value); err == nil {
			return string(encoded)
		}
	}
	return fmt.Sprint(value.Interface())
}

// printColumns prints objects as a table of the columns that the user describes.
func (o *Output) printColumns(out io.Writer, value []byte, text string) error {
	columns, err := readColumns(text)
	if err != nil {
		return err
	}
	items, err := itemsOf(value)
	if err != nil {
		return fmt.Errorf("reading what is to be printed: %w", err)
	}
	headings := make([]Column, len(columns))
	rows := make([][]string, len(items))
	for i, column := range columns {
		headings[i] = Column{Name: column.name}
		for row, item := range items {
			cell, err := column.cellOf(item)
			if err != nil {
				return fmt.Errorf("finding column %s: %w", column.name, err)
			}
			rows[row] = append(rows[row], cell)
		}
	}
	return o.PrintTable(out, headings, rows)
}
