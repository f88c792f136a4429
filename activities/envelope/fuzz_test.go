package envelope_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/envelope"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// FuzzUnpack opens envelopes with anything in them: as a ConfigMap's text, and as the
// object of an envelope if it is JSON.
func FuzzUnpack(f *testing.F) {
	for _, text := range []string{
		cm, role, "", "---\n---\n", "a: &a [*a]", "- 1", "!!binary aGk=", "kind: ConfigMap\n metadata: {",
		clusterEnvelope("{}"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"kubernetes-fleet.io/envelope-configmap":"true"}}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"app"}}`, `{"apiVersion":"a/b/c","kind":"X","metadata":{"name":"x","namespace":3}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"app"}}`, `{"items":[]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{"ConfigMap", "ResourceEnvelope", "ClusterResourceEnvelope"} {
			if raw := wrapped(kind, text); raw != nil {
				requireSound(t, raw)
			}
		}
	})
}

// wrapped is an envelope with a text in it; nil if it cannot be put into one.
func wrapped(kind, text string) []byte {
	metadata := map[string]any{"name": "e", "namespace": "app"}
	object := map[string]any{"kind": kind, "metadata": metadata, "data": map[string]any{"a": json.RawMessage(text), "b": json.RawMessage(cm2)}}
	switch kind {
	case "ConfigMap":
		object["apiVersion"] = "v1"
		metadata["annotations"] = map[string]any{placementv1beta1.EnvelopeConfigMapAnnotation: "true"}
		object["data"] = map[string]any{"a": text, "b": cm2}
	case "ClusterResourceEnvelope":
		delete(metadata, "namespace")
		object["data"] = map[string]any{"a": json.RawMessage(text)}
		fallthrough
	default:
		object["apiVersion"] = "placement.kubernetes-fleet.io/v1beta1"
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return raw
}

// anything is what a hub allows that guards who writes ConfigMap envelopes.
var anything = envelope.Rules{ClusterScopedInConfigMaps: true}

const cm2 = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"}}`

// requireSound asserts what holds of whatever comes out of an envelope.
func requireSound(t *testing.T, raw []byte) {
	t.Helper()
	id, entries, err := envelope.Unpack(raw, anything)
	_, again, errAgain := envelope.Unpack(raw, anything)
	if err != nil {
		require.Empty(t, entries)
		require.EqualError(t, errAgain, err.Error(), "the same envelope fails the same way")
		return
	}
	require.Equal(t, entries, again, "the same envelope has the same objects in the same order")
	for _, entry := range entries {
		object := entry.Object
		content, err := json.Marshal(object.Object)
		require.NoError(t, err)
		_, nested := envelope.Identify(content)
		require.False(t, nested, "an envelope in an envelope: %s", content)
		require.NotEmpty(t, object.GetAPIVersion())
		require.NotEmpty(t, object.GetKind())
		require.NotEmpty(t, object.GetName())
		switch id.Type {
		case placementv1beta1.ResourceEnvelopeType:
			require.Equal(t, "app", object.GetNamespace())
		case placementv1beta1.ClusterResourceEnvelopeType:
			require.Empty(t, object.GetNamespace())
		case placementv1beta1.ConfigMapEnvelopeType:
			require.Contains(t, []string{"", "app"}, object.GetNamespace())
		}
	}
}
