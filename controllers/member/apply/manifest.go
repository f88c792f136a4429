package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// Manifest is one object of a Work, ready to be applied, or the reason why it cannot be applied.
type Manifest struct {
	// Identifier names the object. If the manifest could not be read, it has only the ordinal and
	// the fields that could be read.
	Identifier placementv1beta1.WorkResourceIdentifier
	// Object is the object without the fields that only a cluster may set. Nil if the manifest
	// could not be read.
	Object *unstructured.Unstructured
	// Hash is of the whole content of Object.
	Hash string
	// stated is the hash that the object on the cluster states of this very manifest, if it does. It stays then.
	stated string
	// foreign is KubeFleet's hash once it was asked for. Copies of the manifest share it.
	foreign *string
	// withNulls is KubeFleet's hash of a manifest that has nulls, as it is written; empty if it has none.
	withNulls string
	// Problem is set if the manifest is not to be applied.
	Problem *Problem
}

// Kind returns the group and kind of the manifest's object.
func (m Manifest) Kind() schema.GroupKind { return KindOf(m.Identifier) }

// KindOf returns the group and kind of an identifier.
func KindOf(id placementv1beta1.WorkResourceIdentifier) schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// Key identifies an object of a cluster. The version is not part of it: an object is the same in
// every version.
type Key struct{ Group, Kind, Namespace, Name string }

// KeyOf returns the key of an identifier.
func KeyOf(id placementv1beta1.WorkResourceIdentifier) Key {
	return Key{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// GroupKind returns the kind of the object.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// String renders the key for messages.
func (k Key) String() string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + k.Name
	}
	return k.GroupKind().String() + " " + name
}

// Decode reads the manifests of a Work. It returns one result per manifest, in their order; the
// second and later manifests of the same object are marked as duplicates.
func Decode(manifests []placementv1beta1.Manifest) []Manifest {
	out := make([]Manifest, 0, len(manifests))
	seen := map[Key]int{}
	for ordinal, raw := range manifests {
		m := decodeManifest(ordinal, raw)
		if m.Problem == nil {
			if earlier, ok := seen[KeyOf(m.Identifier)]; ok {
				m.Problem = &Problem{
					Reason:  placementv1beta1.ReasonDuplicated,
					Message: fmt.Sprintf("The manifest is a duplicate: manifest %d is %s as well", earlier, KeyOf(m.Identifier)),
				}
			} else {
				seen[KeyOf(m.Identifier)] = ordinal
			}
		}
		out = append(out, m)
	}
	return out
}

func decodeManifest(ordinal int, raw placementv1beta1.Manifest) Manifest {
	m := Manifest{Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal}}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		if runtime.IsMissingKind(err) {
			err = errors.New("it has no kind") // the error repeats the manifest, which may be of a Secret
		}
		m.Problem = &Problem{Reason: placementv1beta1.ReasonDecodingErred, Message: fmt.Sprintf("Failed to read the manifest: %v", err)}
		return m
	}
	gvk := object.GroupVersionKind()
	m.Identifier.Group = gvk.Group
	m.Identifier.Version = gvk.Version
	m.Identifier.Kind = gvk.Kind
	m.Identifier.Namespace = object.GetNamespace()
	m.Identifier.Name = object.GetName()
	if object.IsList() {
		m.Problem = &Problem{Reason: placementv1beta1.ReasonDecodingErred, Message: "The manifest is a list; a manifest must be a single object"}
		return m
	}
	if object.GetName() == "" {
		m.Problem = namelessProblem(object)
		return m
	}
	encodeSecret(object)
	asSaid := object.Object
	if hasNull(asSaid) {
		asSaid = runtime.DeepCopyJSON(asSaid)
	}
	sanitizeObject(object)
	hash, err := hashObject(object)
	if err != nil {
		m.Problem = &Problem{Reason: placementv1beta1.ReasonDecodingErred, Message: fmt.Sprintf("Failed to hash the manifest: %v", err)}
		return m
	}
	m.Object = object
	m.Hash = hash
	m.foreign = new(string)
	if hasNull(asSaid) {
		asSaid["metadata"] = object.Object["metadata"] // labels and annotations that have a null among them could not be read
		m.withNulls = kubeFleetHash(&unstructured.Unstructured{Object: asSaid})
	}
	return m
}

func namelessProblem(object *unstructured.Unstructured) *Problem {
	if object.GetGenerateName() != "" {
		return &Problem{
			Reason:  placementv1beta1.ReasonFoundGenerateName,
			Message: "The manifest has a generateName instead of a name, so the object could not be found again once created; give it a name",
		}
	}
	return &Problem{Reason: placementv1beta1.ReasonDecodingErred, Message: "The manifest has no name"}
}

// sanitizeObject removes the fields that the hub must not set: status, what the cluster itself sets,
// and our own annotations, which an object has if another fleet placed it on the hub.
func sanitizeObject(object *unstructured.Unstructured) {
	settleNulls(object)
	unstructured.RemoveNestedField(object.Object, "status")
	clusterowned.Remove(object.Object, clusterowned.Governed(object))
	for _, field := range clusterowned.Metadata {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := object.GetAnnotations()
	delete(annotations, placementv1beta1.LastAppliedConfigAnnotation)
	delete(annotations, placementv1beta1.ManifestHashAnnotation)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		return
	}
	object.SetAnnotations(annotations)
}

// settleNulls replaces the nulls of a manifest of which it is known what the API server makes of them.
func settleNulls(object *unstructured.Unstructured) {
	if !hasNull(object.Object) {
		return
	}
	fillNulls(typeOf(object), object.Object)
	if metadata, ok := object.Object["metadata"].(map[string]any); ok { // of every kind, a null there is a missing field
		maps.DeleteFunc(metadata, func(_ string, value any) bool { return value == nil })
	}
	// Serialised Go structs have a null here that would make every merge look like a change.
	if stamp, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "metadata", "creationTimestamp"); found &&
		stamp == nil {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "creationTimestamp")
	}
}

// typeOf returns the Go type of an object, of its metadata only if it is a custom resource.
func typeOf(object *unstructured.Unstructured) reflect.Type {
	if typed, err := scheme.Scheme.New(object.GroupVersionKind()); err == nil {
		return reflect.TypeOf(typed)
	}
	return reflect.TypeFor[metav1.PartialObjectMetadata]()
}

// fillNulls writes, in place of nulls in maps of which users choose the keys, what the API server makes of them with an object that is
// created: an empty text, no bytes, or the quantity zero. Otherwise such a null is a missing key to a patch, and the ways to apply it
// would not agree: a selector, or the limits of a Pod.
func fillNulls(of reflect.Type, value any) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			at := quantity.FieldType(of, key)
			switch {
			case at == nil:
			case inner == nil && of.Kind() == reflect.Map:
				if zero, known := zeroOf(at); known {
					v[key] = zero
				}
			default:
				fillNulls(at, inner)
			}
		}
	case []any:
		for _, item := range v {
			if of.Kind() == reflect.Slice {
				fillNulls(of.Elem(), item)
			}
		}
	}
}

// zeroOf returns how the API server writes the zero of a type, if it is a text in JSON.
func zeroOf(of reflect.Type) (zero string, known bool) {
	if of == reflect.TypeFor[resource.Quantity]() {
		return "0", true
	}
	return "", of.Kind() == reflect.String || of == reflect.TypeFor[[]byte]()
}

// encodeSecret moves the plain values of a Secret to its encoded ones, as the API server does. The
// API server never returns the plain field, so it would always differ.
func encodeSecret(object *unstructured.Unstructured) {
	if object.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}
	clear, ok := object.Object["stringData"].(map[string]any)
	if !ok || slices.ContainsFunc(slices.Collect(maps.Values(clear)), isNoText) {
		return // the API server refuses it with a message
	}
	if data, found, _ := unstructured.NestedFieldNoCopy(object.Object, "data"); found && data == nil {
		unstructured.RemoveNestedField(object.Object, "data")
	}
	for key, value := range clear {
		text, _ := value.(string) // the API server reads a null as an empty text
		if unstructured.SetNestedField(object.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key) != nil {
			return
		}
	}
	unstructured.RemoveNestedField(object.Object, "stringData")
}

// isNoText reports whether a value is neither a text nor a null.
func isNoText(value any) bool {
	_, isText := value.(string)
	return !isText && value != nil
}

// hashObject relies on encoding/json, which writes maps with sorted keys.
func hashObject(object *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
