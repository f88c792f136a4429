package envelope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/envelope"
)

func TestKindsOfManifestsAreThoseOfWhatClustersGet(t *testing.T) {
	manifests := [][]byte{
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"app"}}`), []byte(`no JSON`),
		manifest(t, resourceEnvelope(`{w: {apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}, text: no object}`)),
		manifest(t, clusterEnvelope(`{d: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.org}}}`)),
		manifest(t, configMap(t, map[string]string{
			"a.yaml": "# a comment\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n", "b.yaml": "no: [object",
			"c.yaml": "kind: 7", "d.yaml": "apiVersion: a/b/c\nkind: Odd\nmetadata: {name: o}\n",
		})),
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain","annotations":{"kubernetes-fleet.io/envelope-configmap":"no"}}}`),
	}
	type named struct {
		kind schema.GroupVersionKind
		name string
	}
	var found []named
	for kind, name := range envelope.KindsIn(manifests) {
		found = append(found, named{kind, name})
	}
	assert.Equal(t, []named{
		{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "app"},
		{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "w"},
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "gadgets.example.org"},
		{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "j"},
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "plain"},
	}, found)
	for range envelope.KindsIn(manifests) {
		break // whoever has seen enough may stop
	}
}
