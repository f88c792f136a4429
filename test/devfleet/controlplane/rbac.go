package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readAhead is how much of rendered rules is looked at to tell YAML from JSON.
const readAhead = 4096

// accessTemplates match the templates of a chart that say who may do what, and who has done it. A chart need not have
// all.
var accessTemplates = []string{"rbac.yaml", "clusterroles.yaml", "approvals.yaml", "approval-records.yaml", "votes.yaml", "changed-by.yaml", "guardrails-*.yaml",
	"crossobject.yaml", "run-states.yaml", "warnings.yaml", "lost-fields.yaml"}

// accessKinds are the kinds of a chart's access rules that concern a user; its ServiceAccount does not.
var accessKinds = sets.New(
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
)

// Grant gives a user what an agent's chart gives the agent, so that a rule that is missing there is missed here. The
// policies of the chart come with it.
func Grant(ctx context.Context, c client.Client, chart, userName string) error {
	return grant(ctx, c, chart, userName, keepValues)
}

// keepValues leaves the values of a chart as they are.
func keepValues(map[string]any) {}

// grant is Grant for a chart of which some values are changed.
func grant(ctx context.Context, c client.Client, chart, userName string, change func(values map[string]any)) error {
	objects, err := accessRules(chart, userName, served{c.RESTMapper()}, change)
	if err != nil {
		return fmt.Errorf("reading the access rules of %s: %w", filepath.Base(chart), err)
	}
	for _, object := range objects {
		if err := apply(ctx, c, object); err != nil {
			return err
		}
	}
	return nil
}

// accessRules returns the roles, bindings and policies of a chart, about a user instead of the chart's service account.
func accessRules(chart, userName string, server versions, change func(values map[string]any)) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, pattern := range accessTemplates {
		files, err := filepath.Glob(filepath.Join(chart, "templates", pattern))
		if err != nil {
			return nil, fmt.Errorf("looking for templates: %w", err)
		}
		for _, file := range files {
			content, err := renderTemplate(chart, filepath.Base(file), server, change)
			if err != nil {
				return nil, err
			}
			account := fmt.Sprintf("system:serviceaccount:%s:%s", SystemNamespace, filepath.Base(chart))
			objects, err := readRules(bytes.ReplaceAll(content, []byte(account), []byte(userName)), userName)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// readRules decodes rendered rules and binds them to a user.
func readRules(content []byte, userName string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), readAhead)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding a rule: %w", err)
		}
		if !accessKinds.Has(object.GetKind()) {
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
