package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
