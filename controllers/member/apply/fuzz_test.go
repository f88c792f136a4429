package apply

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// fuzzedKinds are kinds whose lists are merged in different ways.
var fuzzedKinds = []struct{ apiVersion, kind string }{
	{"v1", "ConfigMap"}, {"v1", "Service"}, {"apps/v1", "Deployment"}, {"v1", "ServiceAccount"}, {"example.com/v1", "Widget"},
}

// fuzzed is an object of any content; nil if the text is none.
func fuzzed(text string, kind uint8) *unstructured.Unstructured {
	of := fuzzedKinds[int(kind)%len(fuzzedKinds)]
	var content map[string]any
	if json.Unmarshal([]byte(text), &content) != nil || content == nil {
		return nil
	}
	if _, ok := content["metadata"].(map[string]any); !ok {
		content["metadata"] = map[string]any{}
	}
	metadata := content["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} { // those of other shapes cannot be stored
		fields, _ := metadata[field].(map[string]any)
		kept := map[string]any{}
		for key, value := range fields {
			if text, ok := value.(string); ok {
				kept[key] = text
			}
		}
		metadata[field] = kept
	}
	for _, field := range append([]string{"finalizers"}, "ownerReferences", "managedFields", "deletionTimestamp") {
		delete(metadata, field)
	}
	content["apiVersion"], content["kind"] = of.apiVersion, of.kind
	metadata["name"], metadata["namespace"], metadata["resourceVersion"] = "a", "n", "7"
	data, err := json.Marshal(content)
	if err != nil {
		return nil
	}
	out := &unstructured.Unstructured{}
	if out.UnmarshalJSON(data) != nil {
		return nil
	}
	return out
}

func addFuzzed(f *testing.F) {
	f.Helper()
	f.Add(`{"data":{"x":"1","y":"2"}}`, `{"data":{"x":"1","z":"3"}}`, `{"data":{"x":"2"}}`, uint8(0))
	f.Add(`{"spec":{"ports":[{"port":53,"protocol":"TCP"}]}}`, `{"spec":{"ports":[{"port":53,"protocol":"TCP","nodePort":30053}]}}`,
		`{"spec":{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}]}}`, uint8(1))
	f.Add(`{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}`,
		`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]},{"name":"side"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"3"}]}]}}}}`, uint8(2))
	f.Add(`{"secrets":[{}]}`, `{"secrets":[{"name":"t"},{}]}`, `{"secrets":[{"name":"t"}],"imagePullSecrets":[{"name":"p"}]}`, uint8(3))
	f.Add(`{"spec":{"a":null,"b":[1,{"c":null}],"d":{}}}`, `{"spec":{"a":1,"b":[],"d":{"e":9007199254740993}}}`, `{"spec":{"a":null,"b":[{"c":null}],"d":null}}`, uint8(4))
	f.Add(`{}`, `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a/b":"~"}},"spec":null}`, uint8(4))
}

// FuzzMerge merges any three objects. A merge changes none of them, says what it will make of the object, sets what the manifest says
// and is done after one write.
func FuzzMerge(f *testing.F) {
	addFuzzed(f)
	f.Fuzz(func(t *testing.T, baseText, liveText, wantedText string, kind uint8) {
		base := fuzzed(baseText, kind)
		live := fuzzed(liveText, kind)
		wanted := fuzzed(wantedText, kind)
		if base == nil || live == nil || wanted == nil {
			return
		}
		before := [...]*unstructured.Unstructured{base.DeepCopy(), live.DeepCopy(), wanted.DeepCopy()}
		patch, err := threeWayPatch(base.Object, live, wanted)
		if diff := cmp.Diff(before[:], []*unstructured.Unstructured{base, live, wanted}); diff != "" {
			t.Fatalf("an object was changed: %s", diff)
		}
		if err != nil {
			return // the shape of a list or a map is not that of the kind
		}
		if patch.Empty() {
			return
		}
		if got := afterPatch(t, live, patch); !compare.Same(got, patch.Result.Object) {
			t.Fatalf("the patch %s makes\n%v\nand not\n%v", patch.Data, got, patch.Result.Object)
		}
		again, err := threeWayPatch(wanted.Object, patch.Result, wanted)
		if err == nil && !again.Empty() {
			t.Fatalf("after %s there is still to be written %s", patch.Data, again.Data)
		}
	})
}

// afterPatch is an object after a patch of JSON; of other patches the result is what the library says.
func afterPatch(t *testing.T, live *unstructured.Unstructured, patch Patch) map[string]any {
	t.Helper()
	data, err := live.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	switch patch.Type {
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch.Data)
		if err != nil {
			t.Fatal(err)
		}
		if data, err = operations.Apply(data); err != nil {
			t.Fatalf("the patch %s cannot be applied: %v", patch.Data, err)
		}
	case types.MergePatchType:
		if data, err = jsonpatch.MergePatch(data, patch.Data); err != nil {
			t.Fatalf("the patch %s cannot be applied: %v", patch.Data, err)
		}
	default:
		return patch.Result.Object
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return out.Object
}

// FuzzRetain asks any object what is left to its cluster. The live object stays as it is; replicas and finalizers that others have set
// stay, and the base of a merge never has what belongs to the cluster.
func FuzzRetain(f *testing.F) {
	addFuzzed(f)
	f.Fuzz(func(t *testing.T, baseText, liveText, wantedText string, kind uint8) {
		base := fuzzed(baseText, kind)
		live := fuzzed(liveText, kind)
		wanted := fuzzed(wantedText, kind)
		if base == nil || live == nil || wanted == nil {
			return
		}
		data, err := json.Marshal(base.Object)
		if err != nil {
			t.Fatal(err)
		}
		live.SetFinalizers([]string{"example.com/theirs"})
		wanted.SetFinalizers([]string{"example.com/ours"})
		annotations := live.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(data)
		live.SetAnnotations(annotations)
		before := live.DeepCopy()
		found := mergeBase(live)
		if _, has, _ := unstructured.NestedFieldNoCopy(found, replicasField...); has {
			t.Fatal("the base has replicas, and a merge would take them off")
		}
		retainReplicas(live, wanted)
		retainFinalizers(live, wanted)
		keepLastApplied(live, wanted)
		carryReplicas(live, wanted)
		keepOtherMetadata(found, live, wanted)
		if diff := cmp.Diff([]string{"example.com/theirs", "example.com/ours"}, wanted.GetFinalizers()); diff != "" {
			t.Fatalf("the finalizers are others: %s", diff)
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Fatalf("the live object was changed: %s", diff)
		}
		live.SetAnnotations(nil)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{},"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{}}}},"f:data":{"f:x":{}}}`),
		}})
		mergeBase(live)
	})
}
