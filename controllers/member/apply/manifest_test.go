package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func raw(texts ...string) []placementv1beta1.Manifest {
	var out []placementv1beta1.Manifest
	for _, text := range texts {
		out = append(out, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return out
}

func TestDecodeFindsWhatCannotBeApplied(t *testing.T) {
	const good = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`
	tests := map[string]struct {
		manifests []placementv1beta1.Manifest
		want      []string // reasons by ordinal, empty for none
	}{
		"an object with a name is fine":           {raw(good), []string{""}},
		"text that is no JSON cannot be read":     {raw(`{`), []string{placementv1beta1.ReasonDecodingErred}},
		"an empty manifest cannot be read":        {raw(``), []string{placementv1beta1.ReasonDecodingErred}},
		"an object without a kind cannot be read": {raw(`{"metadata":{"name":"a"}}`), []string{placementv1beta1.ReasonDecodingErred}},
		"a list is not a single object": {
			raw(`{"apiVersion":"v1","kind":"ConfigMapList","items":[]}`), []string{placementv1beta1.ReasonDecodingErred},
		},
		"an object without a name cannot be found again": {
			raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n"}}`), []string{placementv1beta1.ReasonDecodingErred},
		},
		"nor can one with a generated name": {
			raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`), []string{placementv1beta1.ReasonFoundGenerateName},
		},
		"the second manifest of an object is a duplicate, whatever its version": {
			raw(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`, good,
				`{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"a"}}`),
			[]string{"", "", placementv1beta1.ReasonDuplicated},
		},
		"the same name in another namespace is another object": {
			raw(good, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"m"}}`), []string{"", ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decode(tc.manifests)
			require.Len(t, got, len(tc.want))
			for i, m := range got {
				assert.Equal(t, i, m.Identifier.Ordinal)
				if tc.want[i] == "" {
					assert.Nil(t, m.Problem)
					continue
				}
				require.NotNil(t, m.Problem)
				assert.Equal(t, tc.want[i], m.Problem.Reason)
				assert.NotEmpty(t, m.Problem.Message)
			}
		})
	}
}

func TestDecodeLeavesOutWhatIsForTheClusterToSay(t *testing.T) {
	got := Decode(raw(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","uid":"u",
		"resourceVersion":"1","creationTimestamp":null,"ownerReferences":[{"name":"x"}],"labels":{"l":"v"},
		"annotations":{"kubernetes-fleet.io/spec-hash":"old"}},
		"spec":{"template":{"metadata":{"creationTimestamp":null}}},"status":{"replicas":1}}`))[0]
	require.Nil(t, got.Problem)
	assert.Equal(t, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "a", "namespace": "n", "labels": map[string]any{"l": "v"}},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{}}},
	}, got.Object.Object)
}

func TestHashFollowsTheContent(t *testing.T) {
	hash := func(text string) string { return Decode(raw(text))[0].Hash }
	base := hash(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}`)
	assert.Equal(t, base, hash(`{"kind":"ConfigMap","apiVersion":"v1","data":{"y":"2","x":"1"},"metadata":{"name":"a","uid":"z"}}`),
		"neither the order of fields nor what the cluster sets is content")
	assert.NotEqual(t, base, hash(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"3"}}`))
}

func TestDecodeEncodesWhatASecretHasInClear(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"b2xk","l":"bA=="},"stringData":{"k":"new"}}`))[0]
	require.Nil(t, m.Problem)
	assert.Equal(t, map[string]any{"k": "bmV3", "l": "bA=="}, m.Object.Object["data"], "what is in clear counts")
	assert.NotContains(t, m.Object.Object, "stringData")
}

// The API server reads a null as an empty text, and refuses a number.
func TestAPlainValueOfASecretThatIsNullIsEmpty(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"k":"b2xk"},"stringData":{"k":null,"l":"new"}}`))[0]
	assert.Equal(t, map[string]any{"k": "", "l": "bmV3"}, m.Object.Object["data"])
	assert.NotContains(t, m.Object.Object, "stringData")
	m = Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":1,"l":null}}`))[0]
	assert.Contains(t, m.Object.Object, "stringData", "the API server says what is wrong")
}

func TestAManifestThatCannotBeReadIsNotRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"without a kind": `{"apiVersion":"v1","metadata":{"name":"s"},"data":{"token":"aHVzaA=="}}`,
		"broken":         `{"apiVersion":"v1","kind":"Secret","data":{"token":"aHVzaA=="}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := Decode(raw(text))[0]
			require.NotNil(t, m.Problem)
			assert.NotContains(t, m.Problem.Message, "aHVzaA==")
		})
	}
}

func TestANullInAMapOfFreeKeysIsWhatTheAPIServerMakesOfIt(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"a label": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":null,"b":"c"}},"data":{"x":null}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"a":"","b":"c"}},"data":{"x":""}}`,
		},
		"a label of a custom resource, of which nothing else is known": {
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"a":null}},"data":{"x":null}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":{"a":""}},"data":{"x":null}}`,
		},
		"a selector that cannot be changed": {
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":null}},"volumeName":null}}`,
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":""}},"volumeName":null}}`,
		},
		"bytes": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"x":null}}`,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"x":""}}`,
		},
		"a quantity in a list that is replaced as a whole": {
			`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[{"type":"Pod","max":{"cpu":null},"min":null}]}}`,
			`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"0"},"min":null}]}}`,
		},
		"in an item of a list, but not the map itself, which the metadata does not have then": {
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a","labels":null},"spec":{"volumeClaimTemplates":[{"metadata":{"labels":{"a":null}},"spec":{"resources":{"requests":{"storage":null}}}}]}}`,
			`{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"volumeClaimTemplates":[{"metadata":{"labels":{"a":""}},"spec":{"resources":{"requests":{"storage":"0"}}}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Decode(raw(tc.manifest))[0].Object.MarshalJSON()
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(data))
		})
	}
}
