package envelope_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/envelope"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// manifest is YAML as a snapshot holds it.
func manifest(t *testing.T, document string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(document))
	require.NoError(t, err)
	return raw
}

func clusterEnvelope(data string) string {
	return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: example}, data: " + data + "}"
}

func resourceEnvelope(data string) string {
	return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: example, namespace: app}, data: " + data + "}"
}

// configMap is an envelope whose values are the texts.
func configMap(t *testing.T, texts map[string]string) string {
	t.Helper()
	data, err := yaml.Marshal(texts)
	require.NoError(t, err)
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: example, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}\ndata:\n  " +
		strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n  ") + "\n"
}

// keys are the objects in their order, with their namespaces.
func keys(entries []envelope.Entry) []string {
	var out []string
	for _, entry := range entries {
		out = append(out, entry.Key+": "+envelope.KeyOf(entry.Object).String())
	}
	return out
}

const (
	cm     = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: app}, data: {foo: bar}}"
	role   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: pod-reader}}"
	widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w%s}}"
)

func TestUnpack(t *testing.T) {
	inApp := fmt.Sprintf(widget, ", namespace: app")
	nowhere := fmt.Sprintf(widget, "")
	cases := map[string]struct {
		envelope string
		want     []string
	}{
		"the cluster-scoped example of the documentation": {
			clusterEnvelope("{webhook.yaml: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}}, clusterrole.yaml: " + role + "}"),
			[]string{"clusterrole.yaml: ClusterRole pod-reader", "webhook.yaml: ValidatingWebhookConfiguration guard"}},
		"the namespaced example of the documentation": {
			resourceEnvelope("{deploy.yaml: {apiVersion: apps/v1, kind: Deployment, metadata: {name: ingress, namespace: app}}, cm.yaml: " + cm + "}"),
			[]string{"cm.yaml: ConfigMap app/config", "deploy.yaml: Deployment app/ingress"}},
		"a namespaced object without a namespace gets that of its envelope": {
			resourceEnvelope("{q: {apiVersion: v1, kind: ResourceQuota, metadata: {name: q}}}"), []string{"q: ResourceQuota app/q"}},
		"a kind the hub does not know is namespaced if it says so": {
			resourceEnvelope("{w: " + inApp + "}"), []string{"w: Widget app/w"}},
		"and cluster-scoped if it does not": {
			clusterEnvelope("{w: " + nowhere + "}"), []string{"w: Widget w"}},
		"a new kind of Kubernetes' own groups as well": {
			clusterEnvelope("{new: {apiVersion: apps/v9, kind: Novelty, metadata: {name: newest}}}"), []string{"new: Novelty newest"}},
		"a namespace that is not reserved": {
			clusterEnvelope("{ns: {apiVersion: v1, kind: Namespace, metadata: {name: app}}}"), []string{"ns: Namespace app"}},
		"a ConfigMap has objects of its namespace and cluster-scoped ones as text": {
			configMap(t, map[string]string{
				"deploy.yaml": "# a comment\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: nginx\n---\n",
				"role.json":   "{\n\t\"apiVersion\": \"rbac.authorization.k8s.io/v1\", \"kind\": \"ClusterRole\",\n\t\"metadata\": {\"name\": \"pod-reader\"}\n}",
				"widget":      nowhere, "config": cm,
			}),
			[]string{"config: ConfigMap app/config", "role.json: ClusterRole pod-reader", "deploy.yaml: Deployment app/nginx", "widget: Widget w"}},
		"an empty ConfigMap": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: example, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}}", nil},
		"objects of one name and different kinds": {
			resourceEnvelope("{a: {apiVersion: v1, kind: Secret, metadata: {name: config}}, b: " + cm + "}"),
			[]string{"a: Secret app/config", "b: ConfigMap app/config"}},
		"the same object twice, which the member tells apart": {
			resourceEnvelope("{b: " + cm + ", c: " + cm + ", a: " + cm + "}"),
			[]string{"a: ConfigMap app/config", "b: ConfigMap app/config", "c: ConfigMap app/config"}},
		"whatever the version": {
			resourceEnvelope("{a: {apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: d}}, b: {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: app}}}"),
			[]string{"b: Deployment app/d", "a: Deployment app/d"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, entries, err := envelope.Unpack(manifest(t, tc.envelope), anything)
			require.NoError(t, err)
			assert.Equal(t, tc.want, keys(entries))
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	text := func(value string) string { return configMap(t, map[string]string{"cm.yaml": value}) }
	cases := map[string]struct {
		envelope string
		want     []string // in the message
	}{
		"an object of another namespace": {
			resourceEnvelope("{cm.yaml: {apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: other}}}"),
			[]string{`ResourceEnvelope app/example: key "cm.yaml": `, "ConfigMap other/config is not in the namespace of the envelope", `set metadata.namespace to "app"`}},
		"a cluster-scoped object in a ResourceEnvelope": {
			resourceEnvelope("{r: " + role + "}"), []string{`key "r"`, "ClusterRole pod-reader is cluster-scoped", "put it into a ClusterResourceEnvelope"}},
		"an object of an unknown kind without a namespace in a ResourceEnvelope": {
			resourceEnvelope("{w: " + fmt.Sprintf(widget, "") + "}"), []string{"Widget w has no namespace", `set metadata.namespace to "app"`}},
		"a namespaced object in a ClusterResourceEnvelope": {
			clusterEnvelope("{cm.yaml: " + cm + "}"), []string{`ClusterResourceEnvelope example: key "cm.yaml": `, "ConfigMap app/config is namespaced", "put it into a ResourceEnvelope"}},
		"a namespaced object that does not say so": {
			clusterEnvelope("{d: {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}}"), []string{"Deployment d is namespaced"}},
		"an object of an unknown kind with a namespace in a ClusterResourceEnvelope": {
			clusterEnvelope("{w: " + fmt.Sprintf(widget, ", namespace: app") + "}"), []string{"Widget app/w is namespaced"}},
		"a cluster-scoped object with a namespace": {
			clusterEnvelope("{r: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r, namespace: app}}}"), []string{"has a namespace: remove metadata.namespace"}},
		"a ResourceEnvelope in an envelope": {
			resourceEnvelope("{e: " + resourceEnvelope("{}") + "}"), []string{"ResourceEnvelope app/example is an envelope itself", "cannot be nested"}},
		"a ClusterResourceEnvelope in an envelope": {
			clusterEnvelope("{e: " + clusterEnvelope("{}") + "}"), []string{"cannot be nested"}},
		"a ConfigMap that is an envelope in an envelope": {
			resourceEnvelope("{e: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {a: b, kubernetes-fleet.io/envelope-configmap: 'true'}}}}"), []string{"cannot be nested"}},
		"a kind of the fleet": {
			clusterEnvelope("{a: {apiVersion: placement.kubernetes-fleet.io/v1, kind: AppliedWork, metadata: {name: a}}}"), []string{"AppliedWork a is of the fleet's own API group", "never placed"}},
		"a reserved namespace": {
			clusterEnvelope("{ns: {apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}}"), []string{`namespace "kube-system" is reserved`}},
		"a list": {
			resourceEnvelope("{l: {apiVersion: v1, kind: List, metadata: {name: l, namespace: app}, items: []}}"), []string{"it is a list", "a key of its own"}},
		"no kind":                     {resourceEnvelope("{a: {apiVersion: v1, metadata: {name: a}}}"), []string{"kind is missing"}},
		"no apiVersion":               {resourceEnvelope("{a: {kind: ConfigMap, metadata: {name: a}}}"), []string{"apiVersion is missing"}},
		"no name":                     {resourceEnvelope("{a: {apiVersion: v1, kind: ConfigMap}}"), []string{"metadata.name is missing"}},
		"a generateName":              {resourceEnvelope("{a: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}}"), []string{"generateName does not work here"}},
		"a name that is none":         {resourceEnvelope("{a: {apiVersion: v1, kind: ConfigMap, metadata: {name: 3}}}"), []string{"no text", "name"}},
		"metadata that are none":      {resourceEnvelope("{a: {apiVersion: v1, kind: ConfigMap, metadata: [x]}}"), []string{"no text", "metadata"}},
		"annotations that are none":   {resourceEnvelope("{a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: x}}}"), []string{"annotations cannot be read"}},
		"an apiVersion that is none":  {resourceEnvelope("{a: {apiVersion: a/b/c, kind: ConfigMap, metadata: {name: a}}}"), []string{`apiVersion "a/b/c" cannot be read`}},
		"text in a ResourceEnvelope":  {resourceEnvelope("{a: 'kind: ConfigMap'}"), []string{`key "a": it is no object`}},
		"broken YAML":                 {text("kind: ConfigMap\n metadata: {"), []string{`ConfigMap app/example: key "cm.yaml": it is neither YAML nor JSON: `, "line"}},
		"YAML that has a field twice": {text("kind: ConfigMap\nkind: Secret\n"), []string{`key "kind" already set`}},
		"a text that is no object":    {text("just words"), []string{"it is no object"}},
		"several objects in a text":   {text(cm + "\n---\n" + role), []string{"more than one object"}},
		"a text of comments":          {text("# nothing\n---\n"), []string{"it is empty"}},
		"an empty text":               {text(""), []string{"it is empty"}},
		"an object of another namespace as text": {
			text("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: other}}"), []string{"Secret other/s is not in the namespace of the envelope"}},
		"binary data": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: example, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}, binaryData: {b: aGk=}}",
			[]string{`key "b": binaryData holds no objects`}},
		"everything that is wrong is told, in order": {
			resourceEnvelope("{c: {apiVersion: v1}, a: {}, b: " + cm + "}"), []string{`key "a": apiVersion is missing; key "c": kind is missing`}},
		"but not without end": {
			resourceEnvelope("{a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}}"), []string{`key "e": apiVersion is missing; and 2 more`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, entries, err := envelope.Unpack(manifest(t, tc.envelope), anything)
			var invalid *envelope.Error
			require.ErrorAs(t, err, &invalid)
			assert.Empty(t, entries, "an envelope is taken as a whole or not at all")
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	cases := map[string]struct {
		manifest string
		want     placementv1beta1.EnvelopeIdentifier
	}{
		"an envelope for cluster-scoped objects": {clusterEnvelope("{}"),
			placementv1beta1.EnvelopeIdentifier{Name: "example", Type: placementv1beta1.ClusterResourceEnvelopeType}},
		"an envelope in a namespace": {resourceEnvelope("{}"),
			placementv1beta1.EnvelopeIdentifier{Name: "example", Namespace: "app", Type: placementv1beta1.ResourceEnvelopeType}},
		"an annotated ConfigMap": {configMap(t, map[string]string{"a": "b"}),
			placementv1beta1.EnvelopeIdentifier{Name: "example", Namespace: "app", Type: placementv1beta1.ConfigMapEnvelopeType}},
		"any other ConfigMap":                 {cm, placementv1beta1.EnvelopeIdentifier{}},
		"a ConfigMap annotated otherwise":     {strings.Replace(configMap(t, map[string]string{"a": "b"}), "'true'", "'false'", 1), placementv1beta1.EnvelopeIdentifier{}},
		"a kind of that name, of other group": {strings.Replace(clusterEnvelope("{}"), "kubernetes-fleet", "example", 1), placementv1beta1.EnvelopeIdentifier{}},
		"a kind that only speaks of it":       {"{apiVersion: v1, kind: Secret, metadata: {name: Envelope}}", placementv1beta1.EnvelopeIdentifier{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := manifest(t, tc.manifest)
			id, is := envelope.Identify(raw)
			assert.Equal(t, tc.want, id)
			assert.Equal(t, tc.want.Name != "", is)
			if !is {
				_, _, err := envelope.Unpack(raw, anything)
				assert.Error(t, err)
			}
		})
	}
	_, is := envelope.Identify([]byte(`{"Envelope`))
	assert.False(t, is)
}

func TestNumbersAreKept(t *testing.T) {
	_, entries, err := envelope.Unpack(manifest(t, resourceEnvelope(
		"{s: {apiVersion: v1, kind: Secret, metadata: {name: s}, big: 9007199254740993, small: 0.5}}")), anything)
	require.NoError(t, err)
	assert.Equal(t, int64(9007199254740993), entries[0].Object.Object["big"])
	assert.InDelta(t, 0.5, entries[0].Object.Object["small"], 0)
}

func TestScopesAreAskedFor(t *testing.T) {
	namespaced := func(schema.GroupKind) envelope.Scope { return envelope.NamespaceScope }
	_, entries, err := envelope.Unpack(manifest(t, resourceEnvelope("{w: "+fmt.Sprintf(widget, "")+"}")), envelope.Rules{Scope: namespaced})
	require.NoError(t, err)
	assert.Equal(t, []string{"w: Widget app/w"}, keys(entries))
}
