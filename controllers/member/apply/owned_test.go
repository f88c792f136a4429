package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestOwnedFieldsAreTheBaseWhereNoAnnotationIs(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"labels":      map[string]any{"ours": "1", "theirs": "1", "both": "1"},
			"annotations": map[string]any{placementv1beta1.ManifestHashAnnotation: "h"},
			"finalizers":  []any{"example.com/ours", "example.com/theirs"},
		},
		"spec": map[string]any{"replicas": int64(2), "paused": true, "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "sidecar", "image": "s"},
			map[string]any{"name": "c", "image": "i", "args": []any{"a"}, "ports": []any{map[string]any{"containerPort": int64(53), "protocol": "UDP", "name": "dns"}}},
		}}}},
	}}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry(FieldManager, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:finalizers":{"v:\"example.com/ours\"":{}},"f:labels":{"f:ours":{},"f:both":{},"f:gone":{}}},
			"f:spec":{"f:paused":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:args":{},
			"f:ports":{"k:{\"containerPort\":53,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:name":{}}}},"k:{\"name\":\"away\"}":{".":{},"f:name":{}}}}}}}`),
		entry(FieldManager, metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{}},"f:metadata":{"f:annotations":{"f:kubernetes-fleet.io/manifest-hash":{}}}}`),
		entry("others", metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:both":{},"f:theirs":{}}}}`),
	})
	base := ownedFields(object)
	unstructured.RemoveNestedField(base, "metadata", "annotations")
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"ours": "1"}, "finalizers": []any{"example.com/ours"}},
		"spec": map[string]any{"paused": true, "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "args": []any{"a"}, "ports": []any{map[string]any{"containerPort": int64(53), "protocol": "UDP", "name": "dns"}}},
		}}}},
	}, base)
}

// TestTheBaseSurvivesEveryWayOfApplying removes a key in the version after each switch of ways.
func TestTheBaseSurvivesEveryWayOfApplying(t *testing.T) {
	small := func(keys ...string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{%s}}`, strings.Join(keys, ","))
	}
	const keep, gone = `"keep":"1"`, `"gone":"1"`
	large := `"large":"` + strings.Repeat("x", maxAnnotations) + `"`
	force := placementv1beta1.ApplyStrategy{Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	clients := placementv1beta1.ApplyStrategy{Type: clientSide}
	type step struct {
		manifest string
		strategy placementv1beta1.ApplyStrategy
	}
	for name, steps := range map[string][]step{
		"client-side":                            {{small(keep, gone), clients}, {small(keep), clients}},
		"server-side":                            {{small(keep, gone), force}, {small(keep), force}},
		"client-side to server-side":             {{small(keep, gone), clients}, {small(keep), force}},
		"server-side to client-side":             {{small(keep, gone), force}, {small(keep), clients}},
		"large to small":                         {{small(keep, gone, large), clients}, {small(keep), clients}},
		"small to large":                         {{small(keep, gone), clients}, {small(keep, large), clients}, {small(keep), clients}},
		"large, small and large":                 {{small(keep, large), clients}, {small(keep, gone), clients}, {small(keep, large), clients}, {small(keep), clients}},
		"client-side, server-side, client-side":  {{small(keep, gone), clients}, {small(keep, gone), force}, {small(keep), clients}},
		"server-side, client-side, server-side":  {{small(keep, gone), force}, {small(keep, gone), clients}, {small(keep), force}},
		"server-side of a large one, then small": {{small(keep, gone, large), force}, {small(keep), clients}},
	} {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil)
			for _, s := range steps {
				mustApply(t, e, requestWith(s.manifest, s.strategy))
			}
			assert.Equal(t, map[string]string{"keep": "1"}, storedConfigMap(t, e).Data)
			*writes = 0
			mustApply(t, e, requestWith(steps[len(steps)-1].manifest, steps[len(steps)-1].strategy))
			assert.Zero(t, *writes)
		})
	}
}

// TestTheBaseSurvivesATakeoverFromEveryTool takes over what a tool has applied, and removes a key in the next version. What only the
// tool has set stays.
func TestTheBaseSurvivesATakeoverFromEveryTool(t *testing.T) {
	const applied = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"keep":"1","gone":"1","theirs":"1"}}`
	copied := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied}
	update := func(manager string, annotations map[string]string) func(*testing.T, client.Client) error {
		return func(t *testing.T, c client.Client) error {
			object := Decode(raw(applied))[0].Object.DeepCopy()
			object.SetAnnotations(annotations)
			return c.Create(t.Context(), object, client.FieldOwner(manager))
		}
	}
	apply := func(manager string, annotations map[string]string) func(*testing.T, client.Client) error {
		return func(t *testing.T, c client.Client) error {
			object := Decode(raw(applied))[0].Object.DeepCopy()
			object.SetAnnotations(annotations)
			return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership)
		}
	}
	for tool, create := range map[string]func(*testing.T, client.Client) error{
		"kubectl, with kustomize": update("kubectl-client-side-apply", copied),
		"kubectl --server-side":   apply("kubectl", nil),
		"Helm":                    update("helm", map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}),
		"Helm, server-side":       apply("helm", map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "n"}),
		"Flux":                    apply("kustomize-controller", nil),
		"Argo CD":                 update("argocd-controller", copied),
		"Argo CD, server-side":    apply("argocd-controller", map[string]string{"argocd.argoproj.io/tracking-id": "a:/ConfigMap:n/a"}),
		"kpt":                     apply("kpt", map[string]string{"config.k8s.io/owning-inventory": "i"}),
		"a client without a name": update("unknown", nil),
	} {
		t.Run(tool, func(t *testing.T) {
			e, writes := newEngine(nil)
			require.NoError(t, create(t, e.Client))
			mustApply(t, e, request(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"keep":"2","gone":"1"}}`))
			last := request(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"keep":"2"}}`)
			mustApply(t, e, last)
			assert.Equal(t, map[string]string{"keep": "2", "theirs": "1"}, storedConfigMap(t, e).Data)
			*writes = 0
			mustApply(t, e, last)
			assert.Zero(t, *writes)
		})
	}
}

func TestAKeyIsRemovedAlthoughTheAnnotationIsLost(t *testing.T) {
	e, _ := newEngine(nil)
	mustApply(t, e, request(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"gone":"1"}},"data":{"x":"1","y":"2"}}`))
	object := storedConfigMap(t, e)
	object.Annotations = nil
	object.Data["theirs"] = "3"
	require.NoError(t, e.Client.Update(t.Context(), object, client.FieldOwner("others")))
	mustApply(t, e, request(manifestX1))
	assert.Equal(t, map[string]string{"x": "1", "theirs": "3"}, storedConfigMap(t, e).Data)
	assert.Empty(t, storedConfigMap(t, e).Labels)
}

// holdBase lets another client hold the annotation with the manifest as last applied, as one does that applies what was exported.
func holdBase(t *testing.T, e *Engine) {
	t.Helper()
	held := &unstructured.Unstructured{}
	held.SetAPIVersion("v1")
	held.SetKind("ConfigMap")
	held.SetNamespace("n")
	held.SetName("a")
	key := placementv1beta1.LastAppliedConfigAnnotation
	held.SetAnnotations(map[string]string{key: storedConfigMap(t, e).Annotations[key]})
	require.NoError(t, e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(held), client.FieldOwner("flux"), client.ForceOwnership))
}

func TestTheBaseLeavesWithAServerSideApplyAlthoughAnotherClientHoldsIt(t *testing.T) {
	force := placementv1beta1.ApplyStrategy{Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	t.Run("a label of a reserved domain that has left does not have the manifest sent each time", func(t *testing.T) {
		e, writes := newEngine(nil)
		mustApply(t, e, request(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"app.kubernetes.io/part-of":"p"}},"data":{"x":"1"}}`))
		holdBase(t, e)
		last := requestWith(manifestX1, force)
		mustApply(t, e, last)
		assert.Empty(t, storedConfigMap(t, e).Labels)
		*writes = 0
		assert.False(t, mustApply(t, e, last).Wrote)
		assert.Zero(t, *writes)
	})
	t.Run("a key that came with the server-side apply leaves with the next client-side one", func(t *testing.T) {
		e, _ := newEngine(nil)
		mustApply(t, e, request(manifestX1))
		holdBase(t, e)
		mustApply(t, e, requestWith(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":"2"}}`, force))
		mustApply(t, e, request(manifestX1))
		assert.Equal(t, map[string]string{"x": "1"}, storedConfigMap(t, e).Data)
	})
}

func TestFieldsOfSeveralVersionsAreClaimed(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	const apply = metav1.ManagedFieldsOperationApply
	entry := func(manager, version string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, APIVersion: "example.com/" + version, Operation: operation}
	}
	for name, tc := range map[string]struct {
		base    string // the version of the manifest as last applied
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"server-side in another":                        {"", []metav1.ManagedFieldsEntry{entry(FieldManager, "v1", apply)}, false},
		"server-side in another, with an owner since":   {"", []metav1.ManagedFieldsEntry{entry(FieldManager, "v1", apply), entry(FieldManager, "v2", update)}, false},
		"server-side in another, and client-side since": {"v2", []metav1.ManagedFieldsEntry{entry(FieldManager, "v1", apply), entry(FieldManager, "v2", update)}, true},
		"client-side in this version, by others before": {"v2", []metav1.ManagedFieldsEntry{entry("helm", "v1", update), entry(FieldManager, "v2", update)}, false},
		"client-side in two":                            {"v2", []metav1.ManagedFieldsEntry{entry(FieldManager, "v1", update), entry(FieldManager, "v2", update)}, true},
		"client-side in two, and in the first again":    {"v1", []metav1.ManagedFieldsEntry{entry(FieldManager, "v1", update), entry(FieldManager, "v2", update)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("example.com/v2")
			object.SetKind("Widget")
			object.SetManagedFields(tc.entries)
			if tc.base != "" {
				object.SetAnnotations(map[string]string{placementv1beta1.LastAppliedConfigAnnotation: `{"apiVersion":"example.com/` + tc.base + `"}`})
			}
			assert.Equal(t, tc.want, isAppliedInVersions(object))
		})
	}
}

func TestAClaimTakesNoFieldOfAnotherWithoutForce(t *testing.T) {
	e, writes := newEngine(nil, configMap("1"))
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": "theirs"}}}
	object.SetNamespace("n")
	object.SetName("a")
	object.SetAnnotations(map[string]string{
		placementv1beta1.ManifestHashAnnotation: "h", placementv1beta1.LastAppliedConfigAnnotation: `{"apiVersion":"v1"}`,
	})
	entries := []metav1.ManagedFieldsEntry{
		{Manager: FieldManager, APIVersion: "v0", Operation: metav1.ManagedFieldsOperationUpdate},
		{Manager: FieldManager, APIVersion: "v1", Operation: metav1.ManagedFieldsOperationUpdate},
	}
	object.SetManagedFields(append(entries, metav1.ManagedFieldsEntry{Manager: "flux", APIVersion: "v1", Operation: metav1.ManagedFieldsOperationApply}))
	wanted := Marked(Decode(raw(manifestX1))[0], me)
	req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide})
	require.NoError(t, e.claimFields(t.Context(), req, object, wanted))
	assert.Zero(t, *writes)
	object.SetManagedFields(entries)
	_ = e.claimFields(t.Context(), req, object, wanted)
	assert.Equal(t, 1, *writes, "all fields are ours")
}

func TestAClaimLeavesWhatAnotherHasAsWell(t *testing.T) {
	base := map[string]any{
		"data":     map[string]any{"ours": "1", "shared": "1"},
		"metadata": map[string]any{"finalizers": []any{"a", "b"}},
		"spec":     map[string]any{"ports": []any{map[string]any{"port": int64(1), "name": "x"}, map[string]any{"port": int64(2)}}},
	}
	others := &fieldpath.Set{}
	require.NoError(t, others.FromJSON(strings.NewReader(
		`{"f:data":{"f:shared":{},"f:theirs":{}},"f:metadata":{"f:finalizers":{"v:\"b\"":{}}},"f:spec":{"f:ports":{"k:{\"port\":1}":{".":{},"f:port":{}}},"f:other":{"f:a":{}}}}`)))
	removeShared(base, others)
	assert.Equal(t, map[string]any{
		"data":     map[string]any{"ours": "1"},
		"metadata": map[string]any{"finalizers": []any{"a"}},
		"spec":     map[string]any{"ports": []any{map[string]any{"port": int64(2)}}},
	}, base)
}

func TestAnObjectThatWasClaimedIsApplied(t *testing.T) {
	for entry, want := range map[string]bool{
		`{"f:metadata":{"f:annotations":{"f:kubernetes-fleet.io/last-applied-configuration":{}}}}`:    true,
		`{"f:metadata":{"f:annotations":{"f:fleetflow.io/claimed":{}}}}`:                              true,
		`{"f:data":{"f:x":{}},"f:metadata":{"f:annotations":{"f:kubernetes-fleet.io/spec-hash":{}}}}`: false,
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(entry)}})
		assert.Equal(t, want, isClaimed(object), entry)
	}
}

func TestWhatOthersHaveInAMapThatWasAppliedEmptyIsNoneOfTheBase(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"theirs": "1"}}}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeSelector":{}}}`)},
		{Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeSelector":{"f:theirs":{}}}}`)},
	})
	assert.Empty(t, ownedFields(object)["spec"])
}

func TestFieldsOfAnotherVersionAreOfTheBase(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v2", "kind": "Widget", "metadata": map[string]any{"labels": map[string]any{"ours": "1", "theirs": "1"}},
		"spec": map[string]any{"ours": "1", "now": "1", "list": []any{"a"}},
	}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.com/v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:ours":{}}},"f:spec":{"f:ours":{},"f:before":{},"f:list":{"k:{\"name\":\"a\"}":{"f:name":{}}}}}`),
	}})
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"ours": "1"}}, "spec": map[string]any{"ours": "1"},
	}, ownedFields(object), "what the other version has besides is left alone")
}

func TestANullThatTellsItemsApartIsTakenForItsDefault(t *testing.T) {
	manifest := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion":"example.com/v1","kind":"W","spec":{
		"map":[{"kind":null,"name":"b","value":null},{"kind":"K","name":"a"}],"free":[{"kind":null}]}}`), &manifest.Object))
	answer := manifest.DeepCopy()
	setFields := func(keys string) {
		answer.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.com/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:free":{},"f:map":{"k:` + keys + `":{".":{},"f:kind":{},"f:name":{},"f:value":{}}}}}`),
		}})
	}
	setFields(`{\"kind\":\"Any\",\"name\":\"b\"}`)
	assert.False(t, removeNullKeys(manifest, answer), "the item has a key")

	setFields(`{\"kind\":null,\"name\":\"b\"}`)
	require.True(t, removeNullKeys(manifest, answer))
	assert.Equal(t, map[string]any{
		"map":  []any{map[string]any{"name": "b", "value": nil}, map[string]any{"kind": "K", "name": "a"}},
		"free": []any{map[string]any{"kind": nil}},
	}, manifest.Object["spec"], "other nulls stay")
	assert.False(t, removeNullKeys(manifest, answer), "it is applied once more only once")
}

// API servers note the items of a list that have the same keys as one field without any below it.
func TestItemsWithTheSameKeysAreOfTheBaseTogetherOrNotAtAll(t *testing.T) {
	item := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"env": []any{item("A", "1"), item("A", "2"), item("B", "1"), item("B", "2"), item("C", "1")}}}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:env":{"k:{\"name\":\"A\"}":{},"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"C\"}":{".":{},"f:name":{},"f:value":{}}}}}`),
	}})
	assert.Equal(t, []any{item("A", "1"), item("A", "2"), item("C", "1")}, ownedFields(object)["spec"].(map[string]any)["env"])
}

func TestAllFieldsThatWereUpdatedAreAdopted(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	const apply = metav1.ManagedFieldsOperationApply
	entry := func(manager, version string, operation metav1.ManagedFieldsOperationType, field string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, APIVersion: "example.com/" + version, Operation: operation, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + field + `":{}}}`),
		}
	}
	status := entry(FieldManager, "v1", update, "s")
	status.Subresource = "status"
	theirs := entry("kubectl", "v1", update, "theirs")
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		version string // of the only entry that is ours afterwards
		fields  string
	}{
		"none":                         {[]metav1.ManagedFieldsEntry{theirs, status}, "", ""},
		"applied only":                 {[]metav1.ManagedFieldsEntry{entry(FieldManager, "v1", apply, "a"), theirs}, "", ""},
		"updated":                      {[]metav1.ManagedFieldsEntry{theirs, entry(FieldManager, "v2", update, "a"), status}, "v2", `{"f:data":{"f:a":{}}}`},
		"updated in another version":   {[]metav1.ManagedFieldsEntry{entry(FieldManager, "v1", apply, "a"), entry(FieldManager, "v2", update, "b"), theirs}, "v1", `{"f:data":{"f:a":{},"f:b":{}}}`},
		"updated in several, this one": {[]metav1.ManagedFieldsEntry{entry(FieldManager, "v1", update, "a"), theirs, entry(FieldManager, "v2", update, "b")}, "v2", `{"f:data":{"f:a":{},"f:b":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("example.com/v2")
			object.SetManagedFields(tc.entries)
			got, changed := adoptedEntries(object)
			assert.Equal(t, tc.fields != "", changed)
			if !changed {
				return
			}
			var others []metav1.ManagedFieldsEntry
			for _, e := range got {
				if !isOurEntry(e) {
					others = append(others, e)
					continue
				}
				assert.Equal(t, "example.com/"+tc.version, e.APIVersion)
				assert.Equal(t, apply, e.Operation)
				assert.JSONEq(t, tc.fields, e.FieldsV1.GetRawString())
			}
			assert.Len(t, others, len(got)-1)
			for _, e := range tc.entries {
				if !isOurEntry(e) {
					assert.Contains(t, others, e)
				}
			}
		})
	}
}
