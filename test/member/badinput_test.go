//go:build integration

package member

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// definitionWithDefault is a definition of a kind of which a field and a field of items of a list have a default, if it is not empty.
func definitionWithDefault(group, byDefault string) *unstructured.Unstructured {
	text := map[string]any{"type": "string"}
	if byDefault != "" {
		text["default"] = byDefault
	}
	fields := map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}, "mode": text}}
	spec := map[string]any{"type": "object", "properties": map[string]any{
		"size": map[string]any{"type": "integer"}, "mode": text, "parts": map[string]any{"type": "array", "items": fields},
	}}
	out := definition(group)
	versions, _, _ := unstructured.NestedFieldNoCopy(out.Object, "spec", "versions")
	versions.([]any)[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": spec},
	}}
	return out
}

// awaitWidget waits until the widget of a spec is as wanted.
func (s *spec) awaitWidget(version string, missing func(spec map[string]any) string) *unstructured.Unstructured {
	s.Helper()
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(group(s.name) + "/" + version)
	live.SetKind("Widget")
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		require.NoError(c, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: "w"}, live))
		spec, _, _ := unstructured.NestedMap(live.Object, "spec")
		require.Empty(c, missing(spec))
	}, patience, pollEvery)
	return live
}

// lateDefault gives a kind a default when objects of it exist. The API server fills it in when it reads them, also in lists that are
// replaced as a whole.
func lateDefault(s *spec) {
	widget := s.manifest(group(s.name)+"/v1", "Widget", "w", map[string]any{
		"spec": map[string]any{"size": int64(1), "parts": []any{map[string]any{"size": int64(1)}}},
	})
	require.NoError(s, rig.Member.Create(s.ctx, definitionWithDefault(group(s.name), "")))
	work := s.place(widget)
	s.awaitAvailable(s.name)
	later := definitionWithDefault(group(s.name), "slow")
	before := definitionWithDefault(group(s.name), "")
	require.NoError(s, rig.Member.Patch(s.ctx, later, client.MergeFrom(before)))
	found := s.awaitWidget("v1", func(spec map[string]any) string {
		if spec["mode"] != "slow" {
			return fmt.Sprintf("its spec is %v", spec)
		}
		return ""
	})

	// Whatever else the Work does, the widget has no difference and is left alone.
	s.replaceManifests(work, widget, s.configMap("another", "v"))
	told := s.awaitAvailable(s.name)
	for _, m := range told.Status.ManifestConditions {
		c := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
		require.NotNil(s, c)
		assert.Equal(s, placementv1beta1.ReasonApplied, c.Reason, c.Message)
	}
	unchanged := s.awaitWidget("v1", func(map[string]any) string { return "" })
	assert.Equal(s, found.GetGeneration(), unchanged.GetGeneration())
	assert.Equal(s, found.GetResourceVersion(), unchanged.GetResourceVersion())

	// What the manifest says goes before the default.
	require.NoError(s, unstructured.SetNestedField(widget, "fast", "spec", "mode"))
	s.replaceManifests(work, widget, s.configMap("another", "v"))
	s.awaitWidget("v1", func(spec map[string]any) string {
		if spec["mode"] != "fast" {
			return fmt.Sprintf("its spec is %v", spec)
		}
		return ""
	})
	s.awaitAvailable(s.name)
}

// conversionAway has a kind of two versions and a webhook that cannot be reached to convert them.
func conversionAway(s *spec) {
	versions := definition(group(s.name))
	list, _, _ := unstructured.NestedSlice(versions.Object, "spec", "versions")
	second := definition(group(s.name))
	more, _, _ := unstructured.NestedSlice(second.Object, "spec", "versions")
	more[0].(map[string]any)["name"] = "v2"
	more[0].(map[string]any)["storage"] = false
	require.NoError(s, unstructured.SetNestedSlice(versions.Object, append(list, more...), "spec", "versions"))
	webhook := versions.DeepCopy()
	require.NoError(s, unstructured.SetNestedMap(webhook.Object, map[string]any{
		"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		},
	}, "spec", "conversion"))
	require.NoError(s, rig.Member.Create(s.ctx, webhook))
	widget := s.manifest(group(s.name)+"/v2", "Widget", "w", map[string]any{"spec": map[string]any{"a": "1"}})
	s.place(s.configMap("a", "v"), widget)
	s.awaitRefused(s.name, "w", "conversion webhook", "failed")
	s.awaitValue("a", "v")

	require.NoError(s, rig.Member.Patch(s.ctx, webhook, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))))
	s.awaitAvailable(s.name)
	s.awaitWidget("v2", func(spec map[string]any) string {
		if spec["a"] != "1" {
			return fmt.Sprintf("its spec is %v", spec)
		}
		return ""
	})
}

// largestObject places an object of 1.4 MB, as large as the hub takes a Work, and makes it small again.
func largestObject(s *spec) {
	require.NoError(s, rig.Member.Create(s.ctx, definition(group(s.name))))
	widget := func(spec map[string]any) map[string]any {
		return s.manifest(group(s.name)+"/v1", "Widget", "w", map[string]any{"spec": spec})
	}
	awaitSpec := func(size int, keys int) {
		s.Helper()
		s.awaitWidget("v1", func(spec map[string]any) string {
			if text, _ := spec["text"].(string); len(text) != size || len(spec) != keys {
				return fmt.Sprintf("it has %d fields, and a text of %d bytes", len(spec), len(text))
			}
			return ""
		})
	}
	work := s.place(widget(map[string]any{"text": strings.Repeat("x", 1_400_000), "gone": "1"}))
	told := s.awaitAvailable(s.name)
	assert.Equal(s, placementv1beta1.ReasonApplied, applied(told).Reason)
	awaitSpec(1_400_000, 2)
	s.replaceManifests(work, widget(map[string]any{"text": strings.Repeat("y", 1_400_000)}))
	s.awaitAvailable(s.name)
	awaitSpec(1_400_000, 1)
	s.replaceManifests(work, widget(map[string]any{"text": "z"}))
	s.awaitAvailable(s.name)
	awaitSpec(1, 1)
}

// forcedInTurn has another manager that applies server-side by force, as the Work does.
func forcedInTurn(s *spec) {
	work := onemember.Work(s.name, s.configMap("a", "v"))
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{
		Type:                  placementv1beta1.ApplyStrategyTypeServerSideApply,
		ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true},
	}
	require.NoError(s, rig.Hub.Create(s.ctx, work))
	s.awaitAvailable(s.name)
	force := func() {
		theirs := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":%q},"data":{"key":"theirs"}}`, s.name)
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "a"}}
		require.NoError(s, rig.Member.Patch(s.ctx, m, client.RawPatch("application/apply-patch+yaml", theirs), client.FieldOwner("their-controller"), client.ForceOwnership))
		s.awaitValue("a", "v")
	}
	for range 8 {
		force()
	}
	s.awaitDifference("keeps overwriting the object", `/data/key is "theirs" and not "v", held by their-controller`)
}
