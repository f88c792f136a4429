//go:build integration

package admission

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/test/refused"
)

// parse decodes one manifest; whole numbers stay whole.
func parse(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parsePatch(t, manifest)}
}

func parsePatch(t testing.TB, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err, text)
	object := map[string]any{}
	require.NoError(t, json.Unmarshal(content, &object), text)
	return object
}

// split returns the documents of a file that hold something but comments.
func split(t testing.TB, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if object := parse(t, string(document)); len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// patched returns a copy of an object with a merge patch applied.
func patched(object *unstructured.Unstructured, patch map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: refused.Merge(object.Object, patch)}
}
