package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// dieAfter returns an engine whose process dies after so many writes, on the cluster of another.
func dieAfter(e *Engine, writes int) *Engine {
	dying := *e
	dying.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := client.PatchOptions{}
			if options.ApplyOptions(opts); len(options.DryRun) == 0 {
				if writes == 0 {
					return context.Canceled
				}
				writes--
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	return &dying
}

// keyed returns a manifest with these keys; a key in capitals has another value.
func keyed(keys ...string) string {
	var data []string
	for _, key := range keys {
		value := map[bool]string{true: "2", false: "1"}[strings.ToUpper(key) == key]
		data = append(data, fmt.Sprintf(`%q:%q`, strings.ToLower(key), value))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{%s}}`, strings.Join(data, ","))
}

// TestAnInterruptedApplyIsRightAtEveryPoint ends the process after each write of a server-side apply, and goes on in either way, at once
// or with another manifest. What only another client has set stays.
func TestAnInterruptedApplyIsRightAtEveryPoint(t *testing.T) {
	force := placementv1beta1.ApplyStrategy{Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	clients := placementv1beta1.ApplyStrategy{Type: clientSide}
	forget := func(t *testing.T, e *Engine) {
		t.Helper()
		object := storedConfigMap(t, e)
		require.NoError(t, e.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))))
		require.Empty(t, storedConfigMap(t, e).ManagedFields)
	}
	add := func(t *testing.T, e *Engine) {
		t.Helper()
		editConfigMap(t, e, func(o *corev1.ConfigMap) { o.Data["theirs"] = "1" })
	}
	for name, tc := range map[string]struct {
		before      string
		meanwhile   []func(*testing.T, *Engine)
		interrupted string
	}{
		"a change of the way":                          {keyed("keep", "gone"), []func(*testing.T, *Engine){add}, keyed("keep", "gone")},
		"a change of the way, and a further key":       {keyed("keep", "gone"), []func(*testing.T, *Engine){add}, keyed("keep", "gone", "more")},
		"a change of the way, and a key less":          {keyed("keep", "gone", "more"), []func(*testing.T, *Engine){add}, keyed("keep", "gone")},
		"the base is held by another client":           {keyed("keep", "gone"), []func(*testing.T, *Engine){add, holdBase}, keyed("keep", "more")},
		"nobody knows any more whose fields are whose": {keyed("keep", "gone"), []func(*testing.T, *Engine){add, forget}, keyed("KEEP", "gone", "more")},
		"nobody knows, and another has written since":  {keyed("keep", "gone"), []func(*testing.T, *Engine){forget, add}, keyed("KEEP", "gone", "more")},
		"nobody knows, and the base is held":           {keyed("keep", "gone"), []func(*testing.T, *Engine){add, forget, holdBase}, keyed("KEEP", "gone", "more")},
	} {
		for after, next := range map[string][]Request{
			"client-side":                      {request(keyed("keep"))},
			"server-side":                      {requestWith(keyed("keep"), force)},
			"the same, then client-side":       {requestWith(tc.interrupted, force), request(keyed("keep"))},
			"the same, then server-side":       {requestWith(tc.interrupted, force), requestWith(keyed("keep"), force)},
			"the one before, then server-side": {requestWith(tc.before, clients), requestWith(keyed("keep"), force)},
			"without a field and all again":    {request(keyed("keep")), requestWith(tc.interrupted, force), request(keyed("keep"))},
		} {
			for writes := range 4 {
				t.Run(fmt.Sprintf("%s; after %d writes; %s", name, writes, after), func(t *testing.T) {
					e, sent := newEngine(nil)
					mustApply(t, e, requestWith(tc.before, clients))
					for _, happen := range tc.meanwhile {
						happen(t, e)
					}
					_, _, _ = dieAfter(e, writes).Apply(t.Context(), requestWith(tc.interrupted, force))
					for _, req := range next {
						mustApply(t, e, req)
					}
					got := storedConfigMap(t, e).Data
					assert.Equal(t, []string{"keep", "theirs"}, slices.Sorted(maps.Keys(got)))
					assert.Equal(t, "1", got["keep"])
					*sent = 0
					assert.False(t, mustApply(t, e, next[len(next)-1]).Wrote)
					assert.Zero(t, *sent)
				})
			}
		}
	}
}

// TestAClaimKnowsItsManifestThoughNoBaseHasIt ends the process after a write that follows a restore, of objects of which no annotation has
// the manifest, and goes on with another manifest.
func TestAClaimKnowsItsManifestThoughNoBaseHasIt(t *testing.T) {
	force := placementv1beta1.ApplyStrategy{Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	clients := placementv1beta1.ApplyStrategy{Type: clientSide}
	secret := func(keys ...string) string {
		data := map[string]string{}
		for _, key := range keys {
			data[key] = "MQ=="
		}
		return manifestWithData(t, "Secret", data)
	}
	// What is in each of so many keys is short, so that no base has room for it.
	large := func(keys ...string) string {
		data := map[string]string{}
		for _, key := range keys {
			data[key] = "1"
		}
		for i := range 300 {
			data[fmt.Sprint("large-", i)] = strings.Repeat("x", maxBaseText)
		}
		return manifestWithData(t, "ConfigMap", data)
	}
	patch := func(t *testing.T, e *Engine, kind, data string) {
		t.Helper()
		require.NoError(t, e.Client.Patch(t.Context(), storedOfKind(t, e, kind), client.RawPatch(types.MergePatchType, []byte(data))))
	}
	otherOwner := `{"metadata":{"ownerReferences":[{"apiVersion":"` + me.APIVersion + `","kind":"AppliedWork","name":"a","uid":"before"}]}}`
	for name, tc := range map[string]struct {
		kind        string
		of          func(keys ...string) string
		strategy    placementv1beta1.ApplyStrategy
		owner       string
		interrupted []string
	}{
		"a Secret as restored":                    {"Secret", secret, clients, `{}`, []string{"keep", "gone"}},
		"a Secret with another key":               {"Secret", secret, clients, `{}`, []string{"keep", "gone", "more"}},
		"a Secret of another owner":               {"Secret", secret, clients, otherOwner, []string{"keep", "gone"}},
		"a Secret with another key, server-side":  {"Secret", secret, force, `{}`, []string{"keep", "gone", "more"}},
		"too large for a base, as restored":       {"ConfigMap", large, clients, `{}`, []string{"keep", "gone"}},
		"too large for a base, with another key":  {"ConfigMap", large, clients, `{}`, []string{"keep", "gone", "more"}},
		"too large for a base, and another owner": {"ConfigMap", large, clients, otherOwner, []string{"keep", "gone", "more"}},
	} {
		first := 1
		if tc.owner == otherOwner {
			first = 2 // after that of the owner
		}
		for writes := first; writes < first+3; writes++ {
			t.Run(fmt.Sprintf("%s; after %d writes", name, writes), func(t *testing.T) {
				e, sent := newEngine(nil)
				mustApply(t, e, requestWith(tc.of("keep", "gone"), tc.strategy))
				patch(t, e, tc.kind, `{"metadata":{"managedFields":[{}]}}`)
				require.Empty(t, storedOfKind(t, e, tc.kind).GetManagedFields())
				patch(t, e, tc.kind, tc.owner)
				patch(t, e, tc.kind, `{"data":{"theirs":"MQ=="}}`)
				_, _, _ = dieAfter(e, writes).Apply(t.Context(), requestWith(tc.of(tc.interrupted...), tc.strategy))
				next := requestWith(tc.of("keep"), tc.strategy)
				mustApply(t, e, next)
				data, _, err := unstructured.NestedStringMap(storedOfKind(t, e, tc.kind).Object, "data")
				require.NoError(t, err)
				maps.DeleteFunc(data, func(key, _ string) bool { return strings.HasPrefix(key, "large-") })
				assert.Equal(t, []string{"keep", "theirs"}, slices.Sorted(maps.Keys(data)))
				*sent = 0
				assert.False(t, mustApply(t, e, next).Wrote)
				assert.Zero(t, *sent)
			})
		}
	}
}

// manifestWithData returns the manifest of an object of the core group with data.
func manifestWithData(t *testing.T, kind string, data map[string]string) string {
	t.Helper()
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "n"}, "data": data})
	require.NoError(t, err)
	return string(manifest)
}

// storedOfKind reads the object of a kind of the core group.
func storedOfKind(t *testing.T, e *Engine, kind string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind(kind)
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, object))
	return object
}
