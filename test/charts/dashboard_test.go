package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const dashboardChart = "fleet-dashboard"

// signedIn are values with which users log in at a provider.
func signedIn() values {
	return values{"tokens": values{"enabled": false}, "oidc": values{
		"issuerURL": "https://id.example.com:8443/realm", "clientID": "fleet", "clientSecret": values{"name": "client"}, "ca": values{"configMap": "cas"},
		"groups": []any{"platform", "team-web"}, "usernameClaim": "email",
	}}
}

// mayDo are the rules of a ClusterRole of the dashboard, flattened to verb and resource.
func mayDo(t *testing.T, all []runtime.Object, name string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, rule := range named[*rbacv1.ClusterRole](t, all, name).Rules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				found[verb+" "+resource] = rule.ResourceNames
			}
		}
	}
	return found
}

func TestTheAccountOfTheDashboardReadsWithoutContentAndWritesNothing(t *testing.T) {
	all := must(t, dashboardChart, signedIn())
	for deed := range mayDo(t, all, release) {
		verb, resource, _ := strings.Cut(deed, " ")
		if deed == "create subjectaccessreviews" {
			continue
		}
		assert.Contains(t, []string{"get", "list", "watch"}, verb, deed)
		for _, secret := range []string{"*", "secrets", "works", "clusterresourcesnapshots", "resourcesnapshots", "clusterresourceenvelopes", "resourceenvelopes"} {
			assert.NotEqual(t, secret, resource)
		}
	}
}

// A dashboard that may not read them would show what a hub agent that is gone has left as if it were so.
func TestTheDashboardMayReadWhetherAHubAgentWorks(t *testing.T) {
	rules := mayDo(t, must(t, dashboardChart, signedIn()), release)
	assert.ElementsMatch(t, agentLeases, rules["list leases"])
}

func TestTheDashboardActsOnlyAsTheGroupsThatAreNamedAndOnlyInItsWays(t *testing.T) {
	constrained := signedIn()
	constrained["impersonation"] = "constrained"
	rules := mayDo(t, must(t, dashboardChart, constrained), "agent-users")
	assert.Equal(t, []string{"platform", "team-web"}, rules["impersonate:user-info groups"])
	assert.Equal(t, []string{"Dashboard"}, rules["impersonate:user-info userextras/fleetflow.io/channel"])
	for rule := range rules {
		assert.NotContains(t, rule, "impersonate ", "not in any way but those that are named")
	}
	for deed, want := range map[string]bool{
		"patch clusterapprovalrequests/status": true, "patch clusterstagedupdateruns": true, "create rolloutholds": true, "patch rolloutholds": true, "delete rolloutholds": true,
		"create clusterstagedupdateruns": true, "delete stagedupdateruns": true, "create rolloutexemptions": true, "delete rolloutexemptions": false,
		"create clusterresourceplacementevictions": true, "list *": true, "create selfsubjectreviews": true,
		"patch clusterresourceplacements": false, "delete memberclusters": false, "patch *": false, "create *": false, "delete *": false,
	} {
		_, may := rules["impersonate-on:user-info:"+deed]
		assert.Equal(t, want, may, deed)
	}

	legacy := signedIn()
	legacy["impersonation"] = "legacy"
	rules = mayDo(t, must(t, dashboardChart, legacy), "agent-users")
	assert.Equal(t, []string{"platform", "team-web"}, rules["impersonate groups"])
	assert.Equal(t, []string{"Dashboard"}, rules["impersonate userextras/fleetflow.io/channel"])
	assert.Len(t, rules, 3)

	none := signedIn()
	none["oidc"].(values)["groups"] = []any{}
	none["impersonation"] = "constrained"
	_, any := mayDo(t, must(t, dashboardChart, none), "agent-users")["impersonate:user-info groups"]
	assert.False(t, any, "a rule without names would be one for all groups")
	assert.Contains(t, args(t, must(t, dashboardChart, none), release), "--oidc-keep-groups=(none)")

	tokens := must(t, dashboardChart, nil)
	assert.NotContains(t, ofKind(t, tokens, "ClusterRole"), "agent-users", "with tokens no user is impersonated")
	guest := must(t, dashboardChart, values{"tokens": values{"enabled": false}, "anonymousReadOnly": values{"user": "guest"}, "impersonation": "constrained"})
	rules = mayDo(t, guest, "agent-users")
	assert.Equal(t, []string{"guest"}, rules["impersonate:user-info users"])
	for rule := range rules {
		assert.NotRegexp(t, "on:user-info:(create|patch|update|delete)", rule)
	}
	assert.Empty(t, ofKind(t, guest, "Secret"))
	assert.Empty(t, only[*appsv1.Deployment](t, guest).Spec.Template.Spec.Volumes)
}

func TestTheDashboardIsReachedAndReachesWhatItNeeds(t *testing.T) {
	given := signedIn()
	given["ingress"] = values{"enabled": true, "className": "public", "tlsSecretName": "fleet-tls"}
	given["httpRoute"] = values{"enabled": true, "parentRefs": []any{values{"name": "public"}}}
	given["networkPolicy"] = values{"metricsFrom": []any{values{"namespaceSelector": values{}}}}
	all := must(t, dashboardChart, given)
	d := deployment(t, all, release)
	assert.Subset(t, d.Spec.Template.Spec.Containers[0].Args, []string{
		"--url=https://fleet.example.com", "--oidc-issuer-url=https://id.example.com:8443/realm", "--oidc-client-secret-file=/var/run/fleet/oidc/client-secret",
		"--oidc-ca-file=/var/run/fleet/oidc-ca/ca.crt", "--oidc-keep-groups=platform,team-web", "--session-secret=fleet-system/agent-session",
	})
	var mounted []string
	for _, volume := range d.Spec.Template.Spec.Volumes {
		mounted = append(mounted, volume.Name)
	}
	assert.Equal(t, []string{"oidc", "oidc-ca"}, mounted)
	assert.Empty(t, only[*corev1.Secret](t, all).Data, "the dashboard makes the key")
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update"}, ResourceNames: []string{"agent-session"}}},
		only[*rbacv1.Role](t, all).Rules)
	ingress := only[*networkingv1.Ingress](t, all)
	assert.Equal(t, "fleet.example.com", ingress.Spec.Rules[0].Host)
	assert.Equal(t, []networkingv1.IngressTLS{{Hosts: []string{"fleet.example.com"}, SecretName: "fleet-tls"}}, ingress.Spec.TLS)
	assert.Equal(t, []string{release}, ofKind(t, all, "HTTPRoute"))
	policy := only[*networkingv1.NetworkPolicy](t, all)
	assert.Equal(t, []string{"53/UDP 53/TCP", "443/TCP 6443/TCP 8443/TCP 8443/TCP"}, outward(policy))
	require.Len(t, policy.Spec.Ingress, 2)
	assert.True(t, slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return rule.Ports[0].Port.String() == "health" && len(rule.From) == 1
	}))

	ready := must(t, dashboardChart, values{"session": values{"existingSecret": "keys"}})
	assert.Empty(t, ofKind(t, ready, "Secret"))
	assert.Empty(t, ofKind(t, ready, "Role"), "it reads no Secret")
	assert.Contains(t, args(t, ready, release), "--session-keys=/var/run/fleet/session")
	assert.Equal(t, "keys", deployment(t, ready, release).Spec.Template.Spec.Volumes[0].Secret.SecretName)
}

func TestTheMetricsOfTheDashboardAreReadByPrometheus(t *testing.T) {
	all := must(t, dashboardChart, values{"metrics": values{"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}}}})
	service := named[*corev1.Service](t, all, release+"-metrics")
	assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)
	assert.Equal(t, int32(8081), service.Spec.Ports[0].Port)
	monitor := named[*unstructured.Unstructured](t, all, release)
	assert.Equal(t, "ServiceMonitor", monitor.GetKind())
	assert.Equal(t, "prometheus", monitor.GetLabels()["release"])
	assert.Contains(t, notes(t, dashboardChart, nil), "fleet.example.com")
	assert.Empty(t, ofKind(t, must(t, dashboardChart, nil), "ServiceMonitor"))
}

func TestADashboardThatCouldWriteForUsersItDoesNotKnowIsNotInstalled(t *testing.T) {
	for sentence, test := range map[string]struct {
		values values
		want   string
	}{
		"no way in":             {values{"tokens": values{"enabled": false}}, "say how users log in"},
		"everyone and tokens":   {values{"anonymousReadOnly": values{"user": "guest"}}, "lets all clients in without a login"},
		"plain http":            {values{"url": "http://fleet.example.com"}, "insecureCookies for a trial"},
		"a URL with a path":     {values{"url": "https://example.com/fleet"}, "/url"},
		"no client":             {values{"oidc": values{"issuerURL": "https://id.example.com"}}, "oidc.clientID is required"},
		"the masters":           {values{"oidc": values{"groups": []any{"system:masters"}}}, "/oidc/groups/0"},
		"a guest of the hub":    {values{"anonymousReadOnly": values{"user": "system:admin"}}, "/anonymousReadOnly/user"},
		"a route to no Gateway": {values{"httpRoute": values{"enabled": true}}, "httpRoute.parentRefs is required"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := with(t, dashboardChart, test.values)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestThePodsOfTheDashboardAreRestricted(t *testing.T) {
	pod := deployment(t, must(t, dashboardChart, signedIn()), release).Spec.Template.Spec
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	c := pod.Containers[0]
	assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	assert.NotEmpty(t, c.Resources.Requests)
	assert.Contains(t, notes(t, dashboardChart, signedIn()), "https://fleet.example.com/oidc/callback")
}
