package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// renderTemplate renders one template of a chart with the chart's own values, of which change may change some, for an API server. It knows
// the functions of Helm that the charts use; another one is an error that names it.
func renderTemplate(chart, name string, server versions, change func(values map[string]any)) ([]byte, error) {
	values, err := readValues(chart)
	if err != nil {
		return nil, err
	}
	change(values)
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
		"Release":      map[string]any{"Name": filepath.Base(chart), "Namespace": SystemNamespace, "Service": fieldManager, "IsInstall": true},
		"Chart":        map[string]any{"AppVersion": "local"},
		"Values":       values,
		"Capabilities": map[string]any{"APIVersions": server},
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

// functions returns those of Helm: most are sprig's; the rest are Helm's own.
func functions(set *template.Template) template.FuncMap {
	all := sprig.TxtFuncMap()
	maps.Copy(all, template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := set.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"fromJsonArray": func(text string) ([]any, error) {
			var array []any
			err := json.Unmarshal([]byte(text), &array)
			return array, err
		},
		"toYaml": func(value any) (string, error) {
			text, err := yaml.Marshal(value)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		// What is rendered is for an empty cluster.
		"lookup": func(_, _, _, _ string) map[string]any { return map[string]any{} },
	})
	return all
}

// versions answers a chart that asks which API versions there are.
type versions interface {
	// Has says whether there is one, such as "apps/v1/Deployment".
	Has(version string) (bool, error)
}

// served are the versions that an API server serves.
type served struct{ mapper meta.RESTMapper }

// Has implements versions.
func (s served) Has(version string) (bool, error) {
	parts := strings.Split(version, "/")
	if len(parts) != 3 {
		return false, fmt.Errorf("asking for %s: want group/version/Kind", version)
	}
	_, err := s.mapper.RESTMapping(schema.GroupKind{Group: parts[0], Kind: parts[2]}, parts[1])
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether %s is served: %w", version, err)
	}
	return true, nil
}
