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
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func desired(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	m := Decode(raw(manifest))[0]
	require.Nil(t, m.Problem)
	object, fits, err := Desired(m, me, nil)
	require.NoError(t, err)
	require.True(t, fits)
	return object
}

// live is an object to which a manifest was applied, changed by another client afterwards.
func live(t *testing.T, manifest string, change func(object map[string]any)) *unstructured.Unstructured {
	t.Helper()
	object := desired(t, manifest)
	object.SetResourceVersion("7")
	object.SetUID("uid-object")
	if change != nil {
		change(object.Object)
	}
	return object
}

func TestThreeWay(t *testing.T) {
	const (
		configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":"2"}}`
		withoutY  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1"}}`
		widget    = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"list":[{"name":"p"}],"size":1}}`
		pods      = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	)
	containers := []string{"spec", "template", "spec", "containers"}
	tests := map[string]struct {
		manifest string
		live     *unstructured.Unstructured
		kind     types.PatchType
		want     string // "" if nothing is to be written; annotations left out
	}{
		"nothing is written if nothing differs": {configMap, live(t, configMap, nil), types.StrategicMergePatchType, ""},
		"a field that somebody added is left alone": {
			configMap, live(t, configMap, func(o map[string]any) { o["data"].(map[string]any)["z"] = "3" }), types.StrategicMergePatchType, "",
		},
		"a field that somebody changed is set back": {
			configMap, live(t, configMap, func(o map[string]any) { o["data"].(map[string]any)["x"] = "9" }), types.StrategicMergePatchType, `{"data":{"x":"1"}}`,
		},
		"a field that somebody removed comes back": {
			configMap, live(t, configMap, func(o map[string]any) { delete(o["data"].(map[string]any), "x") }), types.StrategicMergePatchType, `{"data":{"x":"1"}}`,
		},
		"a field that left the manifest is removed": {withoutY, live(t, configMap, nil), types.StrategicMergePatchType, `{"data":{"y":null}}`},
		"without a base nothing is removed": {
			withoutY, live(t, configMap, func(o map[string]any) { unstructured.RemoveNestedField(o, "metadata", "annotations") }), types.StrategicMergePatchType, `{}`,
		},
		"labels that all left the manifest go, and those of others stay": {
			configMap, live(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"ours":"1"}},"data":{"x":"1","y":"2"}}`,
				func(o map[string]any) { _ = unstructured.SetNestedField(o, "1", "metadata", "labels", "theirs") }),
			types.StrategicMergePatchType, `{"metadata":{"labels":{"ours":null}}}`,
		},
		"a quantity that the API server writes in another way is the same": {
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"e","value":""}],"resources":{"limits":{"cpu":"1000m"}}}]}}}}`,
			live(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"e","value":""}],"resources":{"limits":{"cpu":"1000m"}}}]}}}}`, func(o map[string]any) {
				_ = unstructured.SetNestedSlice(o, []any{map[string]any{
					"name": "c", "env": []any{map[string]any{"name": "e"}},
					"resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
				}}, containers...)
			}), types.StrategicMergePatchType, "",
		},
		"a text that looks like one is not": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1000m"}}`,
			live(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1000m"}}`, func(o map[string]any) {
				_ = unstructured.SetNestedField(o, "1", "data", "x")
			}), types.StrategicMergePatchType, `{"data":{"x":"1000m"}}`,
		},
		"status is not compared": {
			configMap, live(t, configMap, func(o map[string]any) { o["status"] = map[string]any{"a": "b"} }), types.StrategicMergePatchType, "",
		},
		"containers are merged by name, so that one somebody injected stays": {
			pods, live(t, pods, func(o map[string]any) {
				list, _, _ := unstructured.NestedSlice(o, containers...)
				_ = unstructured.SetNestedSlice(o, append(list, map[string]any{"name": "sidecar", "image": "s"}), containers...)
			}), types.StrategicMergePatchType, "",
		},
		"lists of custom resources are replaced as a whole": {
			widget, live(t, widget, func(o map[string]any) {
				_ = unstructured.SetNestedSlice(o, []any{map[string]any{"name": "p"}, map[string]any{"name": "q"}}, "spec", "list")
			}), types.MergePatchType, `{"spec":{"list":[{"name":"p"}]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			patch, err := ThreeWay(tc.live, desired(t, tc.manifest))
			require.NoError(t, err)
			assert.Equal(t, tc.kind, patch.Type)
			if tc.want == "" {
				assert.True(t, patch.Empty(), "got %s", patch.Data)
				return
			}
			var got map[string]any
			require.NoError(t, json.Unmarshal(patch.Data, &got))
			unstructured.RemoveNestedField(got, "metadata", "annotations")
			if metadata, _ := got["metadata"].(map[string]any); len(metadata) == 0 {
				delete(got, "metadata")
			}
			data, err := json.Marshal(got)
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(data))
		})
	}
}

func TestWhatLeavesAManifestLeavesTheObjectAlsoIfItWasTooLargeForABase(t *testing.T) {
	long := strings.Repeat("x", 200*1024)
	const cronJob = `{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a","annotations":{%s}},"spec":{"schedule":"@daily","jobTemplate":{"spec":{
		"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}}}`
	there := live(t, fmt.Sprintf(cronJob, ""), nil)
	large := Request{Manifest: Decode(raw(fmt.Sprintf(cronJob, `"example.com/large":"`+long+`"`)))[0], Owner: me}
	_, fits, err := Desired(large.Manifest, me, there)
	require.NoError(t, err)
	require.False(t, fits, "the base has no room")

	patch, err := ThreeWay(there, withBase(large, Marked(large.Manifest, me), there))
	require.NoError(t, err)
	there = patch.Result
	require.Contains(t, there.GetAnnotations(), "example.com/large")
	again, err := ThreeWay(there, withBase(large, Marked(large.Manifest, me), there))
	require.NoError(t, err)
	require.True(t, again.Empty(), "%s", again.Data)

	patch, err = ThreeWay(there, desired(t, fmt.Sprintf(cronJob, "")))
	require.NoError(t, err)
	_, stays := patch.Result.GetAnnotations()["example.com/large"]
	require.False(t, stays)

	var many []string
	for i := range 250 {
		many = append(many, fmt.Sprintf(`"example.com/%d":"%s"`, i, strings.Repeat("x", 1000)))
	}
	full := Request{Manifest: Decode(raw(fmt.Sprintf(cronJob, strings.Join(many, ","))))[0], Owner: me}
	patch, err = ThreeWay(there, withBase(full, Marked(full.Manifest, me), there))
	require.NoError(t, err)
	base, is := patch.Result.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]
	require.True(t, is && base == "", "one of an earlier manifest would have others' fields removed, and ours stay")

	secret := Request{Manifest: Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":"b"}}`))[0], Owner: me}
	require.NotContains(t, withBase(secret, Marked(secret.Manifest, me), there).GetAnnotations(), placementv1beta1.LastAppliedConfigAnnotation)
}

func TestANullOfABuiltInKindIsAMissingField(t *testing.T) {
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"externalIPs":null,"ports":[
		{"name":"tcp","port":53,"protocol":null},{"name":"udp","port":53,"protocol":"UDP"}]}}`
	const oneEach = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"name":"tcp","port":53,"protocol":null}]}}`
	for name, manifest := range map[string]string{"a port listed twice": service, "each port once": oneEach} {
		there := live(t, manifest, func(o map[string]any) {
			ports, _, _ := unstructured.NestedSlice(o, "spec", "ports")
			ports[0].(map[string]any)["protocol"] = "TCP"
			_ = unstructured.SetNestedSlice(o, ports, "spec", "ports")
			unstructured.RemoveNestedField(o, "spec", "externalIPs")
		})
		patch, err := ThreeWay(there, desired(t, manifest))
		require.NoError(t, err, name)
		assert.True(t, patch.Empty(), "%s: %s", name, patch.Data)
		m := Decode(raw(manifest))[0]
		assert.False(t, hasNull(Marked(m, me).Object), "%s: a server-side apply would take the null for a key of its own", name)
		assert.True(t, hasNull(m.Object.Object), "%s: the manifest stays", name)
	}
	custom := Decode(raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":null}}`))[0]
	assert.True(t, hasNull(Marked(custom, me).Object), "a custom resource may have one")
}

func TestDesiredKeepsItselfAsTheBaseOfTheNextMerge(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}`))[0]
	object, fits, err := Desired(m, me, ownedBy(foreign, me))
	require.NoError(t, err)
	assert.True(t, fits)
	assert.Equal(t, []metav1.OwnerReference{foreign, me}, object.GetOwnerReferences())
	assert.Equal(t, kubeFleetHash(m.Object), object.GetAnnotations()[placementv1beta1.ManifestHashAnnotation])
	base := &unstructured.Unstructured{}
	require.NoError(t, base.UnmarshalJSON([]byte(object.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation])))
	assert.Equal(t, map[string]any{"x": "1"}, base.Object["data"])
	assert.Equal(t, []metav1.OwnerReference{me}, base.GetOwnerReferences(), "other owners come and go without a write")
}

func ownedBy(refs ...metav1.OwnerReference) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetOwnerReferences(refs)
	return object
}

func TestTheAnnotationsOfOthersCount(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"` + strings.Repeat("x", maxAnnotations/2) + `"}}`))[0]
	object, fits, err := Desired(m, me, nil)
	require.NoError(t, err)
	require.True(t, fits)
	annotations := object.GetAnnotations()
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("x", maxAnnotations/2)
	object.SetAnnotations(annotations)
	_, fits, err = Desired(m, me, object)
	require.NoError(t, err)
	assert.False(t, fits)

	others := map[string]string{}
	for key := range annotations {
		others[key] = strings.Repeat("x", maxAnnotations/4)
	}
	object.SetAnnotations(others)
	_, fits, err = Desired(m, me, object)
	require.NoError(t, err)
	assert.True(t, fits, "an annotation of ours is replaced")
}

func TestDesiredSaysWhenTheBaseDoesNotFit(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"` + strings.Repeat("x", maxAnnotations) + `"}}`))[0]
	_, fits, err := Desired(m, me, nil)
	require.NoError(t, err)
	assert.False(t, fits)
}

func TestOnlyOurs(t *testing.T) {
	entry := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
	}
	tests := map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"nobody manages anything":           {nil, true},
		"we do":                             {[]metav1.ManagedFieldsEntry{entry(FieldManager, ""), entry(beforeFirstApply, "")}, true},
		"a controller that writes status":   {[]metav1.ManagedFieldsEntry{entry(FieldManager, ""), entry("kcm", "status")}, true},
		"somebody else manages some fields": {[]metav1.ManagedFieldsEntry{entry(FieldManager, ""), entry("kubectl", "")}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, onlyOurs(tc.fields)) })
	}
}

func TestAnEmptyProtocolIsNotSentServerSideWhereItTellsPortsApart(t *testing.T) {
	tests := map[string]struct{ manifest, want string }{
		"a port of a Service": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":53,"protocol":"UDP"},{"port":80,"protocol":""}]}}`,
			`{"ports":[{"port":53,"protocol":"UDP"},{"port":80}]}`,
		},
		"a port of a container": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"initContainers":[{"name":"c","ports":[{"containerPort":80,"protocol":""}]}]}}`,
			`{"initContainers":[{"name":"c","ports":[{"containerPort":80}]}]}`,
		},
		"one of a policy, which the API server refuses": {
			`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"a"},"spec":{"ingress":[{"ports":[{"port":80,"protocol":""}]}]}}`,
			`{"ingress":[{"ports":[{"port":80,"protocol":""}]}]}`,
		},
		"one of a custom resource": {
			`{"apiVersion":"example.com/v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"protocol":""}]}}`,
			`{"ports":[{"port":80,"protocol":""}]}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := Decode(raw(tc.manifest))[0]
			before := m.Object.DeepCopy()
			spec, err := json.Marshal(Marked(m, me).Object["spec"])
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(spec))
			assert.Equal(t, before, m.Object, "the manifest is left as it is")
		})
	}
}
