package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
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

// Empty reports whether the patch changes nothing.
func (p Patch) Empty() bool { return len(p.Data) == 0 }

// Desired returns the object for a client-side apply: the manifest with its hash and owners, and a copy of itself as the base of
// the next merge. The copy names the given AppliedWork as the only owner, so that it does not change with the others. Desired
// returns false if the object is to be applied server-side instead: the copy makes the annotations larger than the API server
// accepts, together with those that the live object has from others, or it would show the values of a Secret to all who read
// annotations. Live is nil if there is no object yet.
func Desired(m Manifest, me metav1.OwnerReference, live *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	owners := []metav1.OwnerReference{me}
	if live != nil {
		owners = live.GetOwnerReferences()
	}
	object := marked(m, me, m.markOf(true))
	base, err := object.MarshalJSON() // as KubeFleet does, with a newline at the end
	if err != nil {
		return nil, false, fmt.Errorf("encoding the manifest of %s: %w", KeyOf(m.Identifier), err)
	}
	object.SetOwnerReferences(owners)
	annotations := object.GetAnnotations()
	annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(base)
	object.SetAnnotations(annotations)
	return object, !isSecret(object) && fitsWith(live, annotations), nil
}

// Marked returns the manifest's object with its hash, owned by the given AppliedWork, as it is applied without a base of the next
// merge: server-side.
func Marked(m Manifest, me metav1.OwnerReference) *unstructured.Unstructured {
	return asAppliedServerSide(marked(m, me, m.markOf(false)))
}

// asAppliedServerSide returns an object as it is sent server-side. It may change the object.
func asAppliedServerSide(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := withoutNulls(object)
	if gvk := out.GroupVersionKind(); scheme.Scheme.Recognizes(gvk) {
		removeBlankProtocols(out.Object, gvk == serviceKind)
	}
	return out
}

var serviceKind = corev1.SchemeGroupVersion.WithKind("Service")

// removeBlankProtocols takes empty protocols off the ports of containers, and of a Service. To the API server each is a missing one
// that it fills in. A server-side apply tells ports apart by their protocol: an empty one would be another port than the one that
// has been made of it.
func removeBlankProtocols(value any, ofService bool) {
	switch v := value.(type) {
	case map[string]any:
		_, ofContainer := v["containerPort"]
		_, hasPort := v["port"]
		if v["protocol"] == "" && (ofContainer || ofService && hasPort) {
			delete(v, "protocol")
		}
		for _, field := range v {
			removeBlankProtocols(field, ofService)
		}
	case []any:
		for _, item := range v {
			removeBlankProtocols(item, ofService)
		}
	}
}

func marked(m Manifest, me metav1.OwnerReference, hash string) *unstructured.Unstructured {
	object := m.Object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.ManifestHashAnnotation] = hash
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{me})
	return object
}

// fitsWith reports whether an object may have the wanted annotations in addition to those that others have set. What an earlier
// manifest has set is looked up only if that matters.
func fitsWith(live *unstructured.Unstructured, wanted map[string]string) bool {
	all := map[string]string{}
	if live != nil {
		all = maps.Clone(live.GetAnnotations())
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	if annotationsSize(all) <= maxAnnotations || live == nil {
		return annotationsSize(all) <= maxAnnotations
	}
	before, _, _ := unstructured.NestedMap(mergeBase(live), "metadata", "annotations")
	for key := range before {
		if _, stays := wanted[key]; !stays {
			delete(all, key)
		}
	}
	return annotationsSize(all) <= maxAnnotations
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
	base := mergeBase(live)
	return threeWayPatch(base, live, keepOtherMetadata(base, live, desired))
}

// threeWayPatch computes a patch that leaves fields alone that are in neither the base nor the
// desired object.
func threeWayPatch(base map[string]any, live, desired *unstructured.Unstructured) (Patch, error) {
	var patch Patch
	typed, err := scheme.Scheme.New(desired.GroupVersionKind())
	switch {
	case runtime.IsNotRegisteredError(err):
		patch, err = jsonThreeWay(base, live, desired)
	case err == nil:
		patch, err = builtInThreeWay(typed, base, live, desired)
	}
	if err != nil {
		return Patch{}, fmt.Errorf("merging: %w", err)
	}
	// A patch may ask for an order of list items that they already have.
	if compare.Same(patch.Result.Object, live.Object) || isEquivalent(typed, patch.Result.Object, live.Object) {
		patch.Data = nil
	}
	return patch, nil
}

// jsonThreeWay merges custom resources, whose lists are replaced as a whole.
func jsonThreeWay(base map[string]any, live, desired *unstructured.Unstructured) (Patch, error) {
	m := exactMerge{keepNulls: live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation] != desired.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]}
	result := m.mergeMaps(nil, base, live.Object, desired.Object)
	changes, exact := mergePatchOf(live.Object, result)
	if !exact {
		return exactPatch(live, result)
	}
	data, err := json.Marshal(changes)
	return Patch{Type: types.MergePatchType, Data: data, Result: &unstructured.Unstructured{Object: result}}, err
}

// builtInThreeWay merges an object of a built-in kind as the API server's strategic merge patch does. Where the items of a list
// cannot be distinguished by its merge key, such a patch mixes them up, and the lists are merged here instead.
func builtInThreeWay(typed runtime.Object, base map[string]any, live, wanted *unstructured.Unstructured) (Patch, error) {
	lookup, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return Patch{}, err
	}
	if hasNull(base) {
		base = removeNulls(base).(map[string]any)
	}
	desired := withoutNulls(wanted).Object
	base = withAlias(base, live.Object, desired)
	if wanted.GroupVersionKind() == controllerKind {
		base = withDefaultSelector(base, live.Object, desired)
	}
	if isAmbiguous(lookup, base) || isAmbiguous(lookup, live.Object) || isAmbiguous(lookup, desired) {
		return exactPatch(live, exactMerge{}.mergeMaps(lookup, base, live.Object, desired))
	}
	merged := withoutManagers(live.Object)
	var documents [3][]byte
	for i, content := range []map[string]any{base, desired, merged} {
		if documents[i], err = json.Marshal(content); err != nil {
			return Patch{}, err
		}
	}
	patch := Patch{Type: types.StrategicMergePatchType, Result: live}
	patch.Data, err = strategicpatch.CreateThreeWayMergePatch(documents[0], documents[1], documents[2], lookup, true)
	if err != nil || string(patch.Data) == "{}" {
		return patch, err
	}
	changes := strategicpatch.JSONMap{}
	if err := utiljson.Unmarshal(patch.Data, &changes); err != nil {
		return Patch{}, err
	}
	result, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(runtime.DeepCopyJSON(merged), changes, lookup)
	if err != nil {
		return Patch{}, err
	}
	patch.Result = &unstructured.Unstructured{Object: withManagersOf(live.Object, result)}
	return patch, nil
}

// withoutManagers returns the content of an object without its managedFields, which may be most of it and are no part of a merge. What is
// below the metadata is that of the object.
func withoutManagers(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	content := maps.Clone(object)
	content["metadata"] = metadata
	return content
}

// withManagersOf gives a merged object the managedFields of the one that it was merged with.
func withManagersOf(object, merged map[string]any) map[string]any {
	from, _ := object["metadata"].(map[string]any)
	metadata, ok := merged["metadata"].(map[string]any)
	if managers, found := from["managedFields"]; ok && found {
		metadata["managedFields"] = managers
	}
	return merged
}

// withoutNulls returns an object of a built-in kind without its nulls, also those in items of lists: to the API server such a null is
// a missing field. A null that is sent would take off what the API server writes in its place, such as the protocol of a port.
func withoutNulls(object *unstructured.Unstructured) *unstructured.Unstructured {
	if !scheme.Scheme.Recognizes(object.GroupVersionKind()) || !hasNull(object.Object) {
		return object
	}
	return &unstructured.Unstructured{Object: removeNulls(object.Object).(map[string]any)}
}

// withAlias returns a base which says that the old name of the account of a pod leaves the manifest together with the new one. The API
// server writes both, and takes the one that is there for the other.
func withAlias(base, live, desired map[string]any) map[string]any {
	for _, at := range compare.PodSpecs {
		spec := func(of map[string]any, field string) any {
			value, _, _ := unstructured.NestedFieldNoCopy(of, append(slices.Clone(at), field)...)
			return value
		}
		before := spec(base, accountName)
		isNamed := !isEmpty(spec(desired, accountName)) || !isEmpty(spec(desired, accountAlias))
		if before == nil || isNamed || spec(live, accountAlias) == nil {
			continue
		}
		out := runtime.DeepCopyJSON(base)
		if unstructured.SetNestedField(out, before, append(slices.Clone(at), accountAlias)...) == nil {
			return out
		}
	}
	return base
}

// controllerKind is the only kind whose selector the API server takes from the labels of the template.
var controllerKind = corev1.SchemeGroupVersion.WithKind("ReplicationController")

// withDefaultSelector returns a base with the selector that an object without one has been given. A merge would keep the keys of it that a
// manifest does not select by.
func withDefaultSelector(base, live, desired map[string]any) map[string]any {
	selectorOf := func(object map[string]any) map[string]any {
		selector, _, _ := unstructured.NestedMap(object, "spec", "selector")
		return selector
	}
	if len(selectorOf(desired)) == 0 || len(selectorOf(base)) > 0 {
		return base
	}
	out := map[string]any{}
	if base != nil {
		out = runtime.DeepCopyJSON(base)
	}
	_ = unstructured.SetNestedMap(out, selectorOf(live), "spec", "selector")
	return out
}

const (
	accountName  = "serviceAccountName"
	accountAlias = "serviceAccount"
)

// removeNulls returns a copy of a value without the fields that are null.
func removeNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			if field != nil {
				out[key] = removeNulls(field)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			there := removeNulls(item)
			if fields, ok := item.(map[string]any); ok && hasNullName(fields) {
				there.(map[string]any)["name"] = "" // a server-side apply takes no item without a name
			}
			out = append(out, there)
		}
		return out
	default:
		return value
	}
}

func hasNullName(fields map[string]any) bool {
	name, found := fields["name"]
	return found && name == nil
}

// atVersion binds the patch to the version of the live object that was read.
func (p Patch) atVersion(live *unstructured.Unstructured) ([]byte, error) {
	if p.Type == types.JSONPatchType {
		return p.Data, nil // it is bound already
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(p.Data, &content); err != nil && !p.Empty() {
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
