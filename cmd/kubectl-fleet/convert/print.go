package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// PrintYAML writes the documents, the notes above each, and the steps of handing over at the end.
func (r *Result) PrintYAML(out io.Writer) error {
	text := &strings.Builder{}
	for i, document := range r.Documents {
		if i > 0 {
			text.WriteString("---\n")
		}
		writeComments(text, document.Comments)
		data, err := yaml.Marshal(document.Object.Object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", nameOf(document.Object), err)
		}
		text.Write(data)
	}
	if len(r.Steps) > 0 {
		if len(r.Documents) > 0 {
			text.WriteString("---\n")
		}
		writeComments(text, append([]string{"To hand over:"}, r.Steps...))
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// writeComments writes lines as comments; a line break within one would end it.
func writeComments(text *strings.Builder, lines []string) {
	for _, line := range lines {
		text.WriteString("# " + strings.NewReplacer("\n", " ", "\r", " ").Replace(line) + "\n")
	}
}

// PrintJSON writes the documents as one List.
func (r *Result) PrintJSON(out io.Writer) error {
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	items := []any{}
	for _, document := range r.Documents {
		items = append(items, document.Object.Object)
	}
	list["items"] = items
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "    ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(list); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return nil
}

// toManifest returns an object as a user would write it.
func toManifest(object client.Object, kind string, apiVersion string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind, object.GetName(), err)
	}
	delete(content, "status")
	if metadata, is := content["metadata"].(map[string]any); is {
		delete(metadata, "creationTimestamp")
	}
	made := &unstructured.Unstructured{Object: content}
	made.SetKind(kind)
	made.SetAPIVersion(apiVersion)
	return made, nil
}
