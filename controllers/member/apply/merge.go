package apply

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxAnnotations is the API server's limit for all annotations of an object together.
const maxAnnotations = 256 * 1024

// Patch turns an object into the desired one.
type Patch struct {
	Type types.PatchType
	// Data is empty if nothing is to be written.
	Data []byte
	// Result is the live object with the patch, as far as that is known without the API server.
	Result *unstructured.Unstructured
}

// Empty tells whether the patch changes nothing.
func (p Patch) Empty() bool { return len(p.Data) == 0 }

// Desired returns the object for a client-side apply: the manifest with its hash and owners, and a
// copy of itself as the base of the next merge. The copy names the given AppliedWork as the only
// owner, so that it does not change with the others. Desired returns false if the object is to be
// applied server-side instead: the copy makes the annotations larger than the API server accepts, or
// it would show the values of a Secret to everyone who reads annotations.
func Desired(m Manifest, me metav1.OwnerReference, owners []metav1.OwnerReference) (*unstructured.Unstructured, bool, error) {
	object := Marked(m, me)
	base, err := json.Marshal(object.Object)
	if err != nil {
		return nil, false, fmt.Errorf("encoding the manifest of %s: %w", KeyOf(m.Identifier), err)
	}
	object.SetOwnerReferences(owners)
	annotations := object.GetAnnotations()
	annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(base)
	object.SetAnnotations(annotations)
	return object, annotationsSize(annotations) <= maxAnnotations && !isSecret(object), nil
}

// Marked returns the manifest's object with its hash, owned by the given AppliedWork.
func Marked(m Manifest, me metav1.OwnerReference) *unstructured.Unstructured {
	object := m.Object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.ManifestHashAnnotation] = m.Hash
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{me})
	return object
}

func annotationsSize(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// ThreeWay computes the patch that turns the live object into the desired one: it sets the fields
// of the manifest, removes the fields that the manifest had at the last apply and has no longer,
// and leaves all others alone. Built-in kinds are merged by their merge keys, custom resources as
// plain JSON.
func ThreeWay(live, desired *unstructured.Unstructured) (Patch, error) {
	last := mergeBase(live)
	base, err := json.Marshal(last)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the object as last applied: %w", err)
	}
	return threeWayPatch(base, live, keepOtherMetadata(last, live, desired))
}

// threeWayPatch computes a patch that leaves fields alone that are in neither the original nor the
// desired object.
func threeWayPatch(original []byte, live, desired *unstructured.Unstructured) (Patch, error) {
	current, err := json.Marshal(live.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the live object: %w", err)
	}
	modified, err := json.Marshal(desired.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the desired object: %w", err)
	}
	patch := Patch{}
	var result []byte
	typed, err := scheme.Scheme.New(desired.GroupVersionKind())
	switch {
	case runtime.IsNotRegisteredError(err):
		patch.Type = types.MergePatchType
		patch.Data, result, err = jsonThreeWay(original, modified, current)
	case err == nil:
		patch.Type = types.StrategicMergePatchType
		patch.Data, result, err = strategicThreeWay(typed, original, modified, current)
	}
	if err != nil {
		return Patch{}, fmt.Errorf("merging: %w", err)
	}
	patch.Result = &unstructured.Unstructured{}
	if err := patch.Result.UnmarshalJSON(result); err != nil {
		return Patch{}, fmt.Errorf("reading the merged object: %w", err)
	}
	// A patch may ask for an order of list items that they already have.
	if equality.Semantic.DeepEqual(patch.Result.Object, live.Object) || isEquivalent(typed, patch.Result.Object, live.Object) {
		patch.Data = nil
	}
	return patch, nil
}

func jsonThreeWay(original, modified, current []byte) (patch, result []byte, err error) {
	patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return nil, nil, err
	}
	result, err = jsonpatch.MergePatch(current, patch)
	return patch, result, err
}

func strategicThreeWay(typed runtime.Object, original, modified, current []byte) (patch, result []byte, err error) {
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, nil, err
	}
	patch, err = strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
	if err != nil {
		return nil, nil, err
	}
	result, err = strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, lookup)
	return patch, result, err
}

// atVersion binds the patch to the version of the live object that was read.
func (p Patch) atVersion(live *unstructured.Unstructured) ([]byte, error) {
	content := map[string]any{}
	if err := json.Unmarshal(p.Data, &content); err != nil && !p.Empty() {
		return nil, fmt.Errorf("reading the patch: %w", err)
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["resourceVersion"] = live.GetResourceVersion()
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return data, nil
}
