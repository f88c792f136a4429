package apply

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// withWebhook makes the cluster of an engine set a key of every ConfigMap that is created or changed.
func withWebhook(e *Engine, key, value string) {
	mutate := func(ctx context.Context, c client.WithWatch, o client.Object) error {
		object, ok := o.(*unstructured.Unstructured)
		if !ok || object.GetKind() != "ConfigMap" {
			return nil
		}
		if data, _, _ := unstructured.NestedStringMap(object.Object, "data"); data[key] == value {
			return nil
		}
		if err := unstructured.SetNestedField(object.Object, value, "data", key); err != nil {
			return err
		}
		return c.Update(ctx, object, client.FieldOwner(FieldManager)) // as admission does, in the name of the writer
	}
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := c.Create(ctx, o, opts...); err != nil {
				return err
			}
			return mutate(ctx, c, o)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			return mutate(ctx, c, o)
		},
	})
}

func TestWhatTheClusterMakesOfAManifestIsSaidAndNotWrittenAgain(t *testing.T) {
	for _, kind := range []placementv1beta1.ApplyStrategyType{clientSide, serverSide} {
		t.Run(string(kind), func(t *testing.T) {
			e, writes := newEngine(nil)
			withWebhook(e, "x", "theirs")
			req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{
				Type: kind, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true},
			})
			result, problem, err := e.Apply(t.Context(), req)
			require.NoError(t, err)
			require.Nil(t, problem)
			assert.Equal(t, "/data/x", result.Differences.Details[0].Path)
			assert.Contains(t, result.Differences.Message, `/data/x is "theirs" and not "1", by the cluster's admission or definitions`)

			result, _, err = e.Apply(t.Context(), req)
			require.NoError(t, err)
			require.NotEmpty(t, result.Answered)
			*writes = 0
			req.Answered = result.Answered
			result, _, err = e.Apply(t.Context(), req)
			require.NoError(t, err)
			assert.Zero(t, *writes, "the same would come of it")
			assert.Len(t, result.Differences.Details, 1)

			object := storedConfigMap(t, e)
			object.Data["x"] = "somebody's"
			require.NoError(t, e.Client.Update(t.Context(), object))
			_, _, err = e.Apply(t.Context(), req)
			require.NoError(t, err)
			assert.Equal(t, "theirs", storedConfigMap(t, e).Data["x"], "what differs in another way is written")
		})
	}
}

func TestAWebhookThatChangesItsMindEachTimeIsNotWrittenAgainst(t *testing.T) {
	e, writes := newEngine(nil)
	said := 0
	plain := e.Client.(client.WithWatch)
	withMood := func() {
		said++
		e.Client = plain
		withWebhook(e, "x", fmt.Sprintf("theirs-%d", said))
	}
	req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{})
	withMood()
	result, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.Nil(t, problem)
	for range 3 { // as often as something happens to the object
		withMood()
		req.Answered = result.Answered
		result, problem, err = e.Apply(t.Context(), req)
		require.NoError(t, err)
		require.Nil(t, problem)
		assert.Equal(t, "/data/x", result.Differences.Details[0].Path)
	}
	assert.Equal(t, 2, *writes, "the object is made, and corrected once; from then on it is known that a write brings nothing")
}

func TestWhoHoldsAFieldIsTold(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": "2", "y": "1"}, "metadata": map[string]any{"labels": map[string]any{"example.com/a": "b"}},
	}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "editor", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:x":{}},"f:metadata":{"f:labels":{"f:example.com/a":{}}}}`)},
		{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:x":{},"f:y":{}}}`)},
	})
	assert.Equal(t, []string{"editor"}, holdersOf(object, "/data/x"))
	assert.Equal(t, []string{"editor"}, holdersOf(object, "/metadata/labels/example.com~1a"))
	assert.Empty(t, holdersOf(object, "/data/y"))
	assert.Empty(t, holdersOf(object, "/data/z"))
}

func TestItemsOfOthersInAListThatIsToBeEmptyAreTold(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"n"},"spec":{"ports":[]}}`))[0]
	there := m.Object.DeepCopy()
	require.NoError(t, unstructured.SetNestedSlice(there.Object, []any{map[string]any{"port": int64(80)}}, "spec", "ports"))
	there.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "editor", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`)},
	})
	assert.Equal(t, `The API server took the manifest, and the object differs from it: /spec/ports is "[{\"port\":80}]" and not "[]", held by editor`, judgeAnswer(m, there).Message)
	there.SetManagedFields(nil)
	assert.True(t, judgeAnswer(m, there).Empty(), "the cluster has added them")
}

func TestAServiceThatStaysHeadlessIsToldWithWhatToDo(t *testing.T) {
	service := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s", "namespace": "ns"}, "spec": spec,
		}}
	}
	m := Manifest{
		Object:     service(map[string]any{"selector": map[string]any{"app": "a"}}),
		Identifier: placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Service", Namespace: "ns", Name: "s"},
	}
	told := judgeAnswer(m, service(map[string]any{"selector": map[string]any{"app": "a"}, "clusterIP": "None"}))
	assert.Equal(t, `The API server took the manifest, and the object differs from it: /spec/clusterIP stays "None" although the manifest does not set it any more: `+
		"it cannot be changed once the object exists; set it on the hub, or delete the object on the cluster to have it created anew", told.Message)
	assert.Empty(t, judgeAnswer(m, service(map[string]any{"selector": map[string]any{"app": "a"}, "clusterIP": "10.0.0.1"})).Message)
}

func TestAnObjectToWhichTheAPIServerOnlyAddsFieldsIsNotMergedAfterItsCreation(t *testing.T) {
	deployment := func(spec string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"spec":` + spec + `}`
	}
	policy := func(port string) string {
		return `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a","namespace":"n"},"spec":{"podSelector":{},"ingress":[{"ports":[` + port + `]}]}}`
	}
	widget := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"n"},"spec":` + spec + `}`
	}
	for name, tc := range map[string]struct {
		manifest, answer string
		filledIn, merges bool
	}{
		"the same": {manifestX1, manifestX1, true, false},
		"fields with a default, also in items that have keys": {
			deployment(`{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}`),
			deployment(`{"replicas":1,"template":{"spec":{"dnsPolicy":"ClusterFirst","containers":[{"name":"c","image":"i","imagePullPolicy":"Always"}]}}}`), true, false,
		},
		"a field with a default in a list without keys": {policy(`{"port":80}`), policy(`{"port":80,"protocol":"TCP"}`), false, true},
		"a field with a default of a custom resource":   {widget(`{"a":1}`), widget(`{"a":1,"b":2}`), true, false},
		"and in a list of one":                          {widget(`{"list":[{"a":1}]}`), widget(`{"list":[{"a":1,"b":2}]}`), false, true},
		"a value that was changed":                      {widget(`{"a":1}`), widget(`{"a":2}`), false, true},
		"a field that was dropped":                      {widget(`{"a":1,"b":{"c":1}}`), widget(`{"a":1}`), false, true},
		"an item that was added":                        {widget(`{"list":["a"]}`), widget(`{"list":["a","b"]}`), false, true},
		"a default inside of a volume": {
			deployment(`{"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"c"}}]}}}`),
			deployment(`{"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"c","defaultMode":420}}]}}}`), true, false,
		},
		"another source of a volume": {
			deployment(`{"template":{"spec":{"volumes":[{"name":"v"}]}}}`),
			deployment(`{"template":{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}}`), false, true,
		},
		"a field beside one that excludes it": {
			deployment(`{"strategy":{"type":"Recreate"}}`), deployment(`{"strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":1}}}`), false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := desired(t, tc.manifest)
			answer := desired(t, tc.answer)
			answer.SetAnnotations(sent.GetAnnotations())
			assert.Equal(t, tc.filledIn, isFilledIn(sent, answer))
			patch, err := ThreeWay(answer, sent)
			require.NoError(t, err)
			assert.Equal(t, tc.merges, !patch.Empty(), string(patch.Data))
		})
	}
	sent := desired(t, manifestX1)
	answer := desired(t, manifestX1)
	answer.SetAnnotations(nil)
	assert.False(t, isFilledIn(sent, answer), "a webhook takes our mark off")
}
