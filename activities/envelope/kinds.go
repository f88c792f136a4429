package envelope

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// KindsIn iterates over the kinds and names of what clusters get of the manifests of a snapshot: in place of an envelope, of what is
// within it. What cannot be read is passed over, and whether a hub lets an envelope hold it is not looked at.
func KindsIn(manifests [][]byte) iter.Seq2[schema.GroupVersionKind, string] {
	return func(yield func(schema.GroupVersionKind, string) bool) {
		for _, raw := range manifests {
			for _, object := range open(raw) {
				if kind := object.GroupVersionKind(); kind.Kind != "" && !yield(kind, object.GetName()) {
					return
				}
			}
		}
	}
}

// open returns what a manifest is, or has within it.
func open(manifest []byte) []unstructured.Unstructured {
	id, is := Identify(manifest)
	if !is {
		var object map[string]any
		if json.Unmarshal(manifest, &object) != nil {
			return nil
		}
		return []unstructured.Unstructured{{Object: object}}
	}
	data, _ := readEntries(manifest, id)
	var objects []unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(data)) {
		value := data[key]
		if text, is := value.(string); is && id.Type == placementv1beta1.ConfigMapEnvelopeType {
			value, _ = parseDocument(text)
		}
		if content, is := value.(map[string]any); is {
			objects = append(objects, unstructured.Unstructured{Object: content})
		}
	}
	return objects
}
