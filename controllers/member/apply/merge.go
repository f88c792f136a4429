package apply

import (
	"encoding/json"
	"fmt"

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

// Patch is what brings an object to what the hub wants.
type Patch struct {
	// Type says how Data is to be read.
	Type types.PatchType
	// Data is the patch; empty if nothing is to be written.
	Data []byte
}

// Empty tells whether the patch changes nothing.
func (p Patch) Empty() bool { return len(p.Data) == 0 }

// Desired returns the object as it shall stand on the member, for a client-side apply: the
// manifest with its hash and owners, and a copy of itself as the base of the next merge. The
// copy names us as the only owner, so that it does not change with the others. Desired
// returns false if the copy makes the annotations larger than the API server takes.
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
	return object, sizeOf(annotations) <= maxAnnotations, nil
}

// Marked returns the manifest's object with its hash, owned by us.
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

func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}

// ThreeWay computes what is to be written so that the live object becomes the desired one:
// fields the manifest names are set, fields it named at the last apply and names no longer
// are removed, all others are left alone. Kinds of Kubernetes itself are merged by their
// merge keys, custom resources as plain JSON.
func ThreeWay(live, desired *unstructured.Unstructured) (Patch, error) {
	current, err := json.Marshal(live.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the live object: %w", err)
	}
	modified, err := json.Marshal(desired.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the desired object: %w", err)
	}
	original := []byte(live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation])
	if !json.Valid(original) {
		// Lost or spoilt by hand: without a base nothing is removed, which is the safe side.
		original = nil
	}

	patch := Patch{}
	typed, err := scheme.Scheme.New(desired.GroupVersionKind())
	switch {
	case runtime.IsNotRegisteredError(err):
		patch.Type = types.MergePatchType
		patch.Data, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	case err == nil:
		patch.Type = types.StrategicMergePatchType
		patch.Data, err = strategicThreeWay(typed, original, modified, current)
	}
	if err != nil {
		return Patch{}, fmt.Errorf("merging: %w", err)
	}
	if string(patch.Data) == "{}" {
		patch.Data = nil
	}
	return patch, nil
}

func strategicThreeWay(typed runtime.Object, original, modified, current []byte) ([]byte, error) {
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
}
