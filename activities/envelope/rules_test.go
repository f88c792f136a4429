package envelope_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// served is a hub that serves a cluster-scoped and a namespaced kind of a group that is not Kubernetes' own.
func served() *snapshot.Catalog {
	return snapshot.NewCatalog(nil, []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "policies", Kind: "Policy"}, {Name: "widgets", Kind: "Widget", Namespaced: true},
	}}}, nil, snapshot.Filter{})
}

func TestAnEnvelopeNeverHoldsMoreThanItsAuthorMayPlace(t *testing.T) {
	filter := func(o snapshot.FilterOptions) envelope.Rules {
		f, err := snapshot.NewFilter(o)
		require.NoError(t, err)
		return envelope.Rules{Filter: f, ClusterScopedInConfigMaps: true}
	}
	policy := "{apiVersion: example.com/v1, kind: Policy, metadata: {name: p, namespace: app}}"
	crb := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}}"
	text := func(value string) string { return configMap(t, map[string]string{"crb": value}) }
	for sentence, tc := range map[string]struct {
		envelope string
		rules    envelope.Rules
		want     []string // in the message
	}{
		"a ConfigMap whose writer need not be trusted holds no ClusterRoleBinding": {
			text(crb), envelope.Rules{}, []string{"ClusterRoleBinding x is cluster-scoped, and on this hub a ConfigMap holds namespaced objects only", "ClusterResourceEnvelope"}},
		"nor an object of an unknown kind without a namespace": {
			text(fmt.Sprintf(widget, "")), envelope.Rules{}, []string{"Widget w has no namespace", `set metadata.namespace to "app"`}},
		"nor an object of another namespace": {
			text("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: other}}"), envelope.Rules{}, []string{"Secret other/s is not in the namespace of the envelope"}},
		"a ResourceEnvelope holds no cluster-scoped object of a kind that the hub serves and that names a namespace": {
			resourceEnvelope("{p: " + policy + "}"), envelope.Rules{Scope: envelope.Served(served())}, []string{"Policy app/p is cluster-scoped and has a namespace"}},
		"a ConfigMap neither": {
			text(policy), envelope.Rules{Scope: envelope.Served(served())}, []string{"Policy app/p is cluster-scoped and has a namespace"}},
		"a ClusterResourceEnvelope holds no namespaced object of a kind that the hub serves": {
			clusterEnvelope("{w: " + fmt.Sprintf(widget, "") + "}"), envelope.Rules{Scope: envelope.Served(served())}, []string{"Widget w is namespaced"}},
		"no envelope holds an object of a skipped API": {
			text(crb), filter(snapshot.FilterOptions{SkippedAPIs: "rbac.authorization.k8s.io"}),
			[]string{"ClusterRoleBinding x is of a kind that the hub agent's flag --skipped-propagating-apis names", "have the flag changed"}},
		"nor of one that is not allowed": {
			resourceEnvelope("{cm: " + cm + "}"), filter(snapshot.FilterOptions{AllowedAPIs: "apps"}),
			[]string{"ConfigMap app/config is of a kind that the hub agent's flag --allowed-propagating-apis does not name"}},
		"nor a skipped namespace": {
			clusterEnvelope("{ns: {apiVersion: v1, kind: Namespace, metadata: {name: secret}}}"), filter(snapshot.FilterOptions{SkippedNamespaces: "secret"}),
			[]string{"Namespace secret is a namespace that the hub agent's flag --skipped-propagating-namespaces names"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, entries, err := envelope.Unpack(manifest(t, tc.envelope), tc.rules)
			assert.Empty(t, entries)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestWhatTheRulesAllowIsUnpacked(t *testing.T) {
	claim, err := snapshot.NewFilter(snapshot.FilterOptions{Workload: true})
	require.NoError(t, err)
	for sentence, tc := range map[string]struct {
		envelope string
		rules    envelope.Rules
		want     []string
	}{
		"namespaced objects in a ConfigMap": {
			configMap(t, map[string]string{"cm": cm}), envelope.Rules{}, []string{"cm: ConfigMap app/config"}},
		"a namespaced object of a kind the hub serves gets the namespace of its envelope": {
			resourceEnvelope("{w: " + fmt.Sprintf(widget, "") + "}"), envelope.Rules{Scope: envelope.Served(served())}, []string{"w: Widget app/w"}},
		"a kind of Kubernetes that the hub does not serve": {
			clusterEnvelope("{r: " + role + "}"), envelope.Rules{Scope: envelope.Served(served())}, []string{"r: ClusterRole pod-reader"}},
		"a claim in an envelope is not one that workloads of the hub made": {
			resourceEnvelope("{c: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}}}"), envelope.Rules{Filter: claim}, []string{"c: PersistentVolumeClaim app/c"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, entries, err := envelope.Unpack(manifest(t, tc.envelope), tc.rules)
			require.NoError(t, err)
			assert.Equal(t, tc.want, keys(entries))
		})
	}
}
