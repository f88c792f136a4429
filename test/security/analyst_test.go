//go:build integration

package security

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

func TestAnalyst(t *testing.T) {
	attempt(t, attacks{
		"an analyst deletes a source and creates another of its name, to which the credential would go": credentialStaysWithItsServer,
		"an author of templates labels one as another that a source allows":                             labelsMakeNoTemplate,
		"an author of templates measures at a source that is lent to others, with its credential":       sourceIsLentToOthers,
		"an author of templates has one of his own measure at a source that is lent to others":          templateMovesToAnotherSource,
		"an analyst has the hub agent call the API server by the address of its Service":                callsTheService,
		"an analyst has the hub agent call the API server by the address behind its Service":            callsTheEndpoint,
		"an analyst has the hub agent call what a cloud answers its machines only":                      addressRefused("168.63.129.16", "[fd20:ce::254]", "[64:ff9b::168.63.129.16]", "[fd00:ec2::23]"),
		"an analyst writes an address of the hub agent's own network as one of IPv6":                    addressRefused("[::169.254.169.254]", "[2002:a9fe:a9fe::]", "[::ffff:0:169.254.169.254]", "[fd00::5efe:169.254.169.254]"),
	})
}

// credentialStaysWithItsServer has an analyst put a source at his own port in the place of one with a credential.
func credentialStaysWithItsServer(s *spec) {
	s.create(`{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: central, labels: {fleetflow.io/metric-source: central},
		annotations: {fleetflow.io/metric-source-url: "https://prometheus.invalid:9090"}}, stringData: {token: ` + password + `}}`)
	source := func(url string) string {
		return `{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: central}, spec: {type: Prometheus, url: "` + url + `", allowPlainText: true,
			auth: {type: Bearer, secret: {name: central, key: token}}}}`
	}
	theirs, err := creates(source("https://prometheus.invalid:9090"))(s.Context(), s.hub)
	require.NoError(s, err)
	s.awaitSource("central", fleetflowv1alpha1.ReasonSourceReady, "")
	require.NoError(s, analyst.session(s).Delete(s.Context(), theirs))
	s.createAs(analyst.session(s), source("http://127.0.0.1:9"))
	s.awaitSource("central", fleetflowv1alpha1.ReasonSecretNotForURL, "is not for the server of this source")
}

// labelsMakeNoTemplate has an author use a source that is for another template.
func labelsMakeNoTemplate(s *spec) {
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: reserved}, spec: {type: Prometheus, url: "https://prometheus.invalid",
		allowedTemplates: {matchLabels: {fleetflow.io/template-name: canary}}}}`)
	s.createAs(author.session(s), `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: mine, labels: {fleetflow.io/template-name: canary}},
		spec: {metrics: [{name: up, success: "result > 0.0", prometheus: {sourceRef: {name: reserved}, query: up}}]}}`)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "mine"}, func(a *fleetflowv1alpha1.StageAnalysis) string {
		if a == nil {
			return "missing"
		}
		if valid := meta.FindStatusCondition(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted); valid == nil || !strings.Contains(valid.Message, "MetricSource reserved does not allow the template") {
			return fmt.Sprintf("it does not say that the source is not for it: %+v", a.Status.Conditions)
		}
		return ""
	})
	require.NoError(s, err)
}

const (
	lentTemplate = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: %s}, spec: {metrics: [{name: up, success: "result > 0.0", prometheus: {sourceRef: {name: %s}, query: up}}]}}`
	useRefused   = "its metrics are measured at MetricSource kept: it takes the verb use on that metricsources.fleetflow.io, which the user lacks"
)

func sourceIsLentToOthers(s *spec) {
	_, err := creates(fmt.Sprintf(lentTemplate, "drafted-at-kept", "kept"))(s.Context(), drafter.session(s))
	require.ErrorContains(s, err, useRefused)
}

func templateMovesToAnotherSource(s *spec) {
	s.createAs(drafter.session(s), fmt.Sprintf(lentTemplate, "drafted", "lent"))
	own := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "drafted"}}
	to := `{"spec": {"metrics": [{"name": "up", "success": "result > 0.0", "prometheus": {"sourceRef": {"name": "kept"}, "query": "up"}}]}}`
	err := drafter.session(s).Patch(s.Context(), own, client.RawPatch(types.MergePatchType, []byte(to)))
	require.ErrorContains(s, err, useRefused)
}

// kubernetesService is where the API server says how it is reached.
var kubernetesService = client.ObjectKey{Namespace: "default", Name: "kubernetes"}

func callsTheService(s *spec) {
	var service corev1.Service
	require.NoError(s, s.hub.Get(s.Context(), kubernetesService, &service))
	addressRefused(service.Spec.ClusterIP)(s)
}

// callsTheEndpoint has what an API server publishes where it answers; that of the fleet answers on this machine only, and publishes
// nothing.
func callsTheEndpoint(s *spec) {
	var slice discoveryv1.EndpointSlice
	require.NoError(s, s.hub.Get(s.Context(), kubernetesService, &slice))
	addressRefused(net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))(s)
}

// addressRefused has an analyst make sources at hosts, and asserts that none of them can be used.
func addressRefused(hosts ...string) func(*spec) {
	return func(s *spec) {
		for i, host := range hosts {
			name := fmt.Sprintf("refused-%d-%d", rounds.Add(1), i)
			s.createAs(analyst.session(s), `{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: `+name+`}, spec: {type: Prometheus, url: "https://`+host+`"}}`)
			s.awaitSource(name, fleetflowv1alpha1.ReasonAddressRefused, "is refused: ")
		}
	}
}

// awaitSource waits until a source says why it cannot be used.
func (s *spec) awaitSource(name, reason, sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(m *fleetflowv1alpha1.MetricSource) string {
		if m == nil {
			return "missing"
		}
		if ready := meta.FindStatusCondition(m.Status.Conditions, fleetflowv1alpha1.ConditionTypeReady); ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, sentence) {
			return fmt.Sprintf("it does not say %s: %+v", reason, m.Status.Conditions)
		}
		return ""
	})
	require.NoError(s, err)
}
