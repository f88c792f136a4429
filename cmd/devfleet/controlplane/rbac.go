package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// accessKinds are the kinds of a chart's access rules that concern a user; its ServiceAccount does not.
var accessKinds = map[string]schema.GroupVersionResource{
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"Role":               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	"RoleBinding":        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// grant gives a user what an agent's chart gives the agent, so that a rule that is missing there is missed here.
func grant(ctx context.Context, client dynamic.Interface, chart, userName string) error {
	objects, err := accessRules(chart, userName)
	if err != nil {
		return fmt.Errorf("reading the access rules of %s: %w", filepath.Base(chart), err)
	}
	for _, object := range objects {
		if err := apply(ctx, client, accessKinds[object.GetKind()], object); err != nil {
			return err
		}
	}
	return nil
}

// accessRules returns the roles and bindings of a chart, bound to a user instead of the chart's service account.
func accessRules(chart, userName string) ([]*unstructured.Unstructured, error) {
	content, err := renderTemplate(chart, "rbac.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting the rules: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding a rule: %w", err)
		}
		if _, concerns := accessKinds[object.GetKind()]; !concerns {
			continue
		}
		if _, isBinding := object.Object["subjects"]; isBinding {
			object.Object["subjects"] = []any{map[string]any{
				"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": userName,
			}}
		}
		objects = append(objects, object)
	}
}

// renderTemplate renders one template of a chart. It knows the few functions of Helm that access rules use; another
// one is an error that names it.
func renderTemplate(chart, name string) ([]byte, error) {
	set := template.New(filepath.Base(chart)).Option("missingkey=error")
	set.Funcs(template.FuncMap{
		"quote": strconv.Quote,
		"nindent": func(spaces int, text string) string {
			margin := "\n" + strings.Repeat(" ", spaces)
			return margin + strings.ReplaceAll(text, "\n", margin)
		},
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := set.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	})
	templates := filepath.Join(chart, "templates")
	if _, err := set.ParseGlob(filepath.Join(templates, "_*.tpl")); err != nil {
		return nil, fmt.Errorf("parsing the chart's named templates: %w", err)
	}
	if _, err := set.ParseFiles(filepath.Join(templates, name)); err != nil {
		return nil, fmt.Errorf("parsing a template: %w", err)
	}
	var out bytes.Buffer
	err := set.ExecuteTemplate(&out, name, map[string]any{
		"Release": map[string]any{"Name": filepath.Base(chart), "Namespace": SystemNamespace, "Service": fieldManager},
		"Chart":   map[string]any{"AppVersion": "local"},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}
