package clusterowned_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
)

func TestWhatControllersWriteOnDemandIsTakenOff(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"the rules of a gathered role": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}}`,
		},
		"not the rules of another": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`,
		},
		"the certificates of webhooks that are injected": {
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: n/c}}, webhooks: [{name: x, clientConfig: {caBundle: eA==}}, {name: y}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: n/c}}, webhooks: [{name: x, clientConfig: {}}, {name: y}]}`,
		},
		"not one that a user has set": {
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {caBundle: eA==}}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {caBundle: eA==}}]}`,
		},
		"the certificate of a conversion webhook": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, spec: {conversion: {webhook: {clientConfig: {caBundle: eA==}}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, annotations: {service.beta.openshift.io/inject-cabundle: 'true'}}, spec: {conversion: {webhook: {clientConfig: {}}}}}`,
		},
		"the bundle that a label asks for": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {config.openshift.io/inject-trusted-cabundle: 'true'}}, data: {ca-bundle.crt: x, mine: x}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {config.openshift.io/inject-trusted-cabundle: 'true'}}, data: {mine: x}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := read(t, tc.object)
			want := read(t, tc.want)
			clusterowned.Remove(object.Object, clusterowned.Governed(object))
			assert.Equal(t, want, object)
		})
	}
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &out.Object))
	return out
}
