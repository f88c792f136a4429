package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// renderTemplate renders one template of a chart with the chart's own values. It knows the few functions of Helm that
// access rules use; another one is an error that names it.
func renderTemplate(chart, name string) ([]byte, error) {
	values, err := readValues(chart)
	if err != nil {
		return nil, err
	}
	set := template.New(filepath.Base(chart)).Option("missingkey=error")
	set.Funcs(functions(set))
	templates := filepath.Join(chart, "templates")
	if _, err := set.ParseGlob(filepath.Join(templates, "_*.tpl")); err != nil {
		return nil, fmt.Errorf("parsing the chart's named templates: %w", err)
	}
	if _, err := set.ParseFiles(filepath.Join(templates, name)); err != nil {
		return nil, fmt.Errorf("parsing a template: %w", err)
	}
	var out bytes.Buffer
	err = set.ExecuteTemplate(&out, name, map[string]any{
		"Release": map[string]any{"Name": filepath.Base(chart), "Namespace": SystemNamespace, "Service": fieldManager},
		"Chart":   map[string]any{"AppVersion": "local"},
		"Values":  values,
		// The fleet's API server serves everything that a chart asks for.
		"Capabilities": map[string]any{"APIVersions": everyVersion{}},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// readValues returns the values that a chart has unless told otherwise. A chart need not have any.
func readValues(chart string) (map[string]any, error) {
	values := map[string]any{}
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chart's values: %w", err)
	}
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("decoding the chart's values: %w", err)
	}
	return values, nil
}

// functions are those of Helm that access rules use, each with the order of arguments that it has there.
func functions(set *template.Template) template.FuncMap {
	return template.FuncMap{
		"quote":     strconv.Quote,
		"lower":     strings.ToLower,
		"fail":      func(why string) (string, error) { return "", errors.New(why) },
		"hasPrefix": func(prefix, text string) bool { return strings.HasPrefix(text, prefix) },
		"splitList": func(separator, text string) []string { return strings.Split(text, separator) },
		"list":      func(elements ...any) []any { return elements },
		"dict": func(pairs ...any) (map[string]any, error) {
			if len(pairs)%2 != 0 {
				return nil, fmt.Errorf("a dict of %d keys and values", len(pairs))
			}
			all := map[string]any{}
			for i := 0; i < len(pairs); i += 2 {
				all[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return all, nil
		},
		"toJson": func(value any) (string, error) {
			content, err := json.Marshal(value)
			return string(content), err
		},
		"nindent": func(spaces int, text string) string {
			margin := "\n" + strings.Repeat(" ", spaces)
			return margin + strings.ReplaceAll(text, "\n", margin)
		},
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := set.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	}
}

// everyVersion answers a chart that asks which API versions there are.
type everyVersion struct{}

// Has says that there is the one asked for.
func (everyVersion) Has(string) bool { return true }
