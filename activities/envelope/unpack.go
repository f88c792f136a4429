package envelope

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Entry is one object of an envelope.
type Entry struct {
	// Key the object has in the envelope.
	Key string
	// Object itself, in the namespace it belongs to.
	Object *unstructured.Unstructured
}

// marks are the words one of which every stored envelope contains.
var marks = [][]byte{[]byte("Envelope"), []byte(placementv1beta1.EnvelopeConfigMapAnnotation)}

// Identify returns which envelope a manifest of a snapshot is; false if it is none.
// To most manifests, which are none, it takes no more than a look.
func Identify(manifest []byte) (placementv1beta1.EnvelopeIdentifier, bool) {
	if !slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(manifest, mark) }) {
		return placementv1beta1.EnvelopeIdentifier{}, false
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest, &head); err != nil {
		return placementv1beta1.EnvelopeIdentifier{}, false
	}
	envelopeType, is := snapshot.EnvelopeType(head.GroupVersionKind().GroupKind(), head.Annotations)
	if !is {
		return placementv1beta1.EnvelopeIdentifier{}, false
	}
	return placementv1beta1.EnvelopeIdentifier{Name: head.Name, Namespace: head.Namespace, Type: envelopeType}, true
}

// Unpack takes the objects out of an envelope and brings them into the order in
// which they can depend on each other. A broken rule gives an *Error that names
// all of them, and no object. An object that is there twice comes out twice: the
// member applies the first and reports the other.
func Unpack(manifest []byte, rules Rules) (placementv1beta1.EnvelopeIdentifier, []Entry, error) {
	id, is := Identify(manifest)
	if !is {
		return id, nil, fmt.Errorf("unpacking a manifest: it is no envelope")
	}
	data, problems := readEntries(manifest, id)
	var entries []Entry
	for _, key := range slices.Sorted(maps.Keys(data)) {
		object, rule := openEntry(data[key], id, rules)
		if rule != "" {
			problems = append(problems, Problem{Key: key, Rule: rule})
			continue
		}
		entries = append(entries, Entry{Key: key, Object: object})
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
		return id, nil, &Error{Envelope: id, Problems: problems}
	}
	sortEntries(entries)
	return id, entries, nil
}

// readEntries returns what an envelope has under each key.
func readEntries(manifest []byte, id placementv1beta1.EnvelopeIdentifier) (map[string]any, []Problem) {
	var content struct {
		Data       map[string]any `json:"data"`
		BinaryData map[string]any `json:"binaryData"`
	}
	if err := json.Unmarshal(manifest, &content); err != nil {
		return nil, []Problem{{Rule: "its data cannot be read: " + err.Error()}}
	}
	if id.Type != placementv1beta1.ConfigMapEnvelopeType {
		return content.Data, nil
	}
	var problems []Problem
	for key := range content.BinaryData {
		problems = append(problems, Problem{Key: key, Rule: "binaryData holds no objects: write the object as text, under data"})
	}
	return content.Data, problems
}

// sortEntries puts entries into the order of a snapshot.
func sortEntries(entries []Entry) {
	objects := make([]*unstructured.Unstructured, 0, len(entries))
	keys := make(map[*unstructured.Unstructured]string, len(entries))
	for _, entry := range entries {
		objects = append(objects, entry.Object)
		keys[entry.Object] = entry.Key
	}
	snapshot.Sort(objects)
	for i, object := range objects {
		entries[i] = Entry{Key: keys[object], Object: object}
	}
}

// ObjectKey tells the objects of a cluster apart. The version is no part of it: it
// is one object in whatever version it is written.
type ObjectKey struct{ Group, Kind, Namespace, Name string }

// KeyOf returns the key of an object that says what it is.
func KeyOf(object interface {
	metav1.Object
	GroupVersionKind() schema.GroupVersionKind
}) ObjectKey {
	gk := object.GroupVersionKind().GroupKind()
	return ObjectKey{Group: gk.Group, Kind: gk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// String returns the object as users write it, such as "ConfigMap app/config".
func (k ObjectKey) String() string { return k.Kind + " " + qualifiedName(k.Namespace, k.Name) }
