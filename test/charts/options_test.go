package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// with renders a chart with values beside the required ones; maps are merged.
func with(t *testing.T, name string, additional map[string]any) ([]runtime.Object, error) {
	t.Helper()
	values := required()[name]
	merge(values, additional)
	rendered, err := render(t, name, values)
	if err != nil {
		return nil, err
	}
	return objects(t, rendered), nil
}

func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isMap := value.(map[string]any)
		existing, wasMap := into[key].(map[string]any)
		if isMap && wasMap {
			merge(existing, inner)
			continue
		}
		into[key] = value
	}
}

func must(t *testing.T, name string, additional map[string]any) []runtime.Object {
	t.Helper()
	all, err := with(t, name, additional)
	require.NoError(t, err)
	return all
}

// ofKind names the objects of a kind.
func ofKind(t *testing.T, all []runtime.Object, kind string) []string {
	t.Helper()
	var names []string
	for _, object := range all {
		gvks, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil { // not one of Kubernetes itself
			gvks = append(gvks, object.GetObjectKind().GroupVersionKind())
		}
		if gvks[0].Kind == kind {
			accessor, err := meta.Accessor(object)
			require.NoError(t, err)
			names = append(names, accessor.GetName())
		}
	}
	return names
}

// deployment returns the Deployment of a name.
func deployment(t *testing.T, all []runtime.Object, name string) *appsv1.Deployment {
	t.Helper()
	for _, object := range all {
		if d, ok := object.(*appsv1.Deployment); ok && d.Name == name {
			return d
		}
	}
	require.Fail(t, "no Deployment "+name)
	return nil
}

func args(t *testing.T, all []runtime.Object, name string) []string {
	t.Helper()
	return deployment(t, all, name).Spec.Template.Spec.Containers[0].Args
}

type values = map[string]any

func TestPodsAreRestricted(t *testing.T) {
	for name, additional := range map[string]values{
		"hub-agent":    {"temporal": values{"address": ""}},
		"member-agent": nil,
	} {
		for _, object := range must(t, name, additional) {
			d, ok := object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			t.Run(d.Name, func(t *testing.T) {
				pod := d.Spec.Template.Spec
				assert.True(t, *pod.SecurityContext.RunAsNonRoot)
				assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
					assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
					assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
					assert.NotNil(t, c.LivenessProbe)
					assert.NotEmpty(t, c.Resources.Requests)
				}
				for _, c := range pod.Containers {
					assert.NotNil(t, c.ReadinessProbe)
				}
				for _, v := range pod.Volumes {
					assert.Nil(t, v.HostPath)
				}
			})
		}
	}
}

func TestHubAgentFindsTemporal(t *testing.T) {
	const tls, key = "/var/run/fleet/temporal-tls", "/var/run/fleet/temporal-api-key"
	for sentence, test := range map[string]struct {
		temporal values
		want     []string
		never    string
		volumes  map[string]string // Secrets by volume
	}{
		"in plain text by default": {nil, []string{"--temporal-address=temporal.example.com:7233", "--temporal-namespace=fleetflow", "--temporal-approvals=verified"}, "--temporal-tls", nil},
		"in a namespace":           {values{"namespace": "fleet"}, []string{"--temporal-namespace=fleet"}, "--temporal-tls", nil},
		"by the system's CAs":      {values{"tls": values{"enabled": true}}, []string{"--temporal-tls=true"}, "file=", nil},
		"by mutual TLS": {
			values{"tls": values{"enabled": true, "secretName": "s", "serverName": "temporal.internal"}},
			[]string{"--temporal-tls=true", "--temporal-tls-ca-file=" + tls + "/ca.crt", "--temporal-tls-cert-file=" + tls + "/tls.crt", "--temporal-tls-key-file=" + tls + "/tls.key", "--temporal-tls-server-name=temporal.internal"},
			"--temporal-api-key", map[string]string{"temporal-tls": "s"},
		},
		"by a CA alone": {
			values{"tls": values{"enabled": true, "secretName": "s", "caKey": "root.pem", "certKey": "", "keyKey": ""}},
			[]string{"--temporal-tls-ca-file=" + tls + "/root.pem"}, "--temporal-tls-cert-file", map[string]string{"temporal-tls": "s"},
		},
		"with an API key": {
			values{"apiKey": values{"secretName": "cloud"}}, []string{"--temporal-api-key-file=" + key + "/api-key"}, "--temporal-tls-", map[string]string{"temporal-api-key": "cloud"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			all := must(t, "hub-agent", values{"temporal": test.temporal})
			given := args(t, all, release)
			assert.Subset(t, given, test.want)
			assert.NotContains(t, strings.Join(given, "\n"), test.never)
			pod := deployment(t, all, release).Spec.Template.Spec
			volumes := map[string]string{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = v.Secret.SecretName
			}
			assert.Equal(t, len(test.volumes), len(pod.Containers[0].VolumeMounts))
			for name, secret := range test.volumes {
				assert.Equal(t, secret, volumes[name])
			}
		})
	}
}

func TestTheVocabularyIsThatOfTheValues(t *testing.T) {
	for want, given := range map[string]values{"--vocabulary=documentation": {}, "--vocabulary=kubefleet": {"vocabulary": "kubefleet"}} {
		given["workers"] = values{"enabled": true}
		all := must(t, "hub-agent", given)
		assert.Contains(t, args(t, all, "agent"), want)
		assert.Contains(t, args(t, all, "agent-workers"), want)
	}
}

func TestConfigMapsHoldClusterScopedObjectsOnlyBehindTheGuardRail(t *testing.T) {
	for sentence, test := range map[string]struct {
		values values
		want   string
	}{
		"with guard rails they hold anything":               {nil, "--configmap-envelopes=any"},
		"or, if the values say so, namespaced objects only": {values{"configMapEnvelopes": "namespaced"}, "--configmap-envelopes=namespaced"},
		"without guard rails that is so in any case":        {values{"configMapEnvelopes": "any", "enableGuardRail": false}, "--configmap-envelopes=namespaced"},
	} {
		t.Run(sentence, func(t *testing.T) {
			given := values{"workers": values{"enabled": true}}
			merge(given, test.values)
			all := must(t, "hub-agent", given)
			assert.Contains(t, args(t, all, "agent"), test.want)
			assert.Contains(t, args(t, all, "agent-workers"), test.want)
		})
	}
}

func TestRecordsAreKeptOnlyIfTheValuesSaySo(t *testing.T) {
	writes := func(all []runtime.Object) (verbs []string) {
		for _, rule := range named[*rbacv1.ClusterRole](t, all, release).Rules {
			if slices.Contains(rule.Resources, "auditrecords") {
				verbs = append(verbs, rule.Verbs...)
			}
		}
		return verbs
	}
	off := must(t, "hub-agent", nil)
	assert.NotContains(t, strings.Join(args(t, off, release), " "), "--records")
	assert.Empty(t, writes(off))
	on := must(t, "hub-agent", values{"records": values{"enabled": true, "keep": "2160h", "max": 50000, "files": "/var/log/fleetflow"}})
	assert.Subset(t, args(t, on, release), []string{"--records=true", "--records-keep=2160h", "--records-max=50000", "--records-files=/var/log/fleetflow"})
	assert.Equal(t, []string{"create", "delete"}, writes(on))
}

func TestAnalysesReachWhatTheValuesSay(t *testing.T) {
	given := values{"analysis": values{
		"hubKinds": []any{"Deployment.apps", "web/ConfigMap"}, "jobNamespaces": []any{"checks"},
		"allowedCIDRs": []any{"10.0.0.0/8"}, "extraDeniedCIDRs": []any{"10.9.0.0/16", "fd00::/8"},
	}}
	rendered := must(t, "hub-agent", given)
	assert.Subset(t, args(t, rendered, release), []string{
		"--analysis-works=true", "--analysis-hub-kinds=Deployment.apps,web/ConfigMap", "--analysis-job-namespaces=checks",
		"--metric-source-allowed-cidrs=10.0.0.0/8", "--metric-source-denied-cidrs=10.9.0.0/16,fd00::/8",
	})
	role := named[*rbacv1.Role](t, rendered, release+"-analysis-jobs")
	assert.Equal(t, "checks", role.Namespace)
	assert.Equal(t, []string{"jobs"}, role.Rules[0].Resources)
	assert.Equal(t, []string{"get", "create", "delete"}, role.Rules[0].Verbs)

	unguarded := args(t, must(t, "hub-agent", values{"enableGuardRail": false, "analysis": given["analysis"]}), release)
	assert.Contains(t, unguarded, "--analysis-works=false", "who writes a template may not so read what is placed")
	assert.NotContains(t, strings.Join(unguarded, " "), "--analysis-hub-kinds")
	for _, arg := range args(t, must(t, "hub-agent", nil), release) {
		assert.NotContains(t, arg, "--analysis-hub")
		assert.NotContains(t, arg, "--analysis-job")
		assert.NotContains(t, arg, "cidrs")
	}
	for _, wrong := range []values{{"hubKinds": []any{"deployments"}}, {"allowedCIDRs": []any{"everywhere"}}, {"jobNamespaces": []any{"A"}}} {
		_, err := with(t, "hub-agent", values{"analysis": wrong})
		assert.Error(t, err)
	}
}

func TestTemporalIsBesideTheAgentUnlessItIsNamed(t *testing.T) {
	all := must(t, "hub-agent", values{"temporal": values{"address": ""}})
	agent := args(t, all, release)
	assert.Subset(t, agent, []string{"--temporal-mode=Bundled", "--temporal-address=127.0.0.1:7233", "--temporal-approvals=off"})
	pod := deployment(t, all, release).Spec.Template.Spec
	require.Len(t, pod.InitContainers, 1)
	server := pod.InitContainers[0]
	assert.Equal(t, corev1.ContainerRestartPolicyAlways, *server.RestartPolicy, "it ends after the agent")
	assert.Nil(t, server.StartupProbe, "the agent starts without it")
	assert.Equal(t, "384Mi", server.Resources.Requests.Memory().String())
	assert.Equal(t, "768Mi", server.Resources.Limits.Memory().String())
	assert.Contains(t, server.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "650MiB"})
	assert.Contains(t, server.Env, corev1.EnvVar{Name: "GOGC", Value: "50"})
	assert.Empty(t, server.Ports, "nobody else reaches it")
	for _, mount := range server.VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		require.NotEqual(t, -1, at, mount.Name)
		require.NotNil(t, pod.Volumes[at].EmptyDir)
		assert.Nil(t, pod.Volumes[at].EmptyDir.SizeLimit, "one that is exceeded evicts the agent")
	}
	assert.Contains(t, agent, "--temporal-data=/var/run/fleet/temporal-data")
	assert.Contains(t, pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "temporal-data", MountPath: "/var/run/fleet/temporal-data", ReadOnly: true}, "the agent looks at its size")
	assert.Equal(t, []string{release}, ofKind(t, all, "Deployment"))
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		at := slices.IndexFunc(pod.Tolerations, func(have corev1.Toleration) bool { return have.Key == taint })
		require.NotEqual(t, -1, at, taint)
		assert.EqualValues(t, 30, *pod.Tolerations[at].TolerationSeconds, "with one Pod, rollouts stand still until it is on another node")
	}
	assert.NotContains(t, strings.Join(agent, " "), "--temporal-patience", "no other could lead")
	three := must(t, "hub-agent", values{"replicaCount": 3, "temporal": values{"address": "", "mode": "Bundled", "approvals": "any"}})
	assert.Subset(t, args(t, three, release), []string{"--temporal-patience=2m", "--temporal-approvals=any"})

	external := must(t, "hub-agent", nil)
	assert.Subset(t, args(t, external, release), []string{"--temporal-mode=External", "--temporal-approvals=verified"})
	assert.Empty(t, deployment(t, external, release).Spec.Template.Spec.InitContainers)
	assert.NotContains(t, strings.Join(args(t, external, release), " "), "--temporal-data")
	assert.NotContains(t, strings.Join(args(t, external, release), " "), "--temporal-worker-versions")
	versioned := must(t, "hub-agent", values{"temporal": values{"workerVersions": true}})
	assert.Contains(t, args(t, versioned, release), "--temporal-worker-versions=true")
	mine := must(t, "hub-agent", values{"temporal": values{"address": ""}, "initContainers": []any{values{"name": "mine", "image": "mine"}}})
	assert.Len(t, deployment(t, mine, release).Spec.Template.Spec.InitContainers, 2)
}

func TestWhatDoesNotGoWithTheModeOfTemporalIsRefused(t *testing.T) {
	for sentence, test := range map[string]struct {
		values values
		want   string
	}{
		"the bundled one and an address":         {values{"temporal": values{"mode": "Bundled"}}, "temporal.address is that of an external Temporal"},
		"an external one without an address":     {values{"temporal": values{"mode": "External", "address": ""}}, "temporal.address is required"},
		"the bundled one and workers apart":      {values{"temporal": values{"address": ""}, "workers": values{"enabled": true}}, "need temporal.mode=External"},
		"the bundled one and another role":       {values{"temporal": values{"address": ""}, "role": "controllers"}, "need temporal.mode=External"},
		"the bundled one and TLS":                {values{"temporal": values{"address": "", "tls": values{"enabled": true}}}, "are for an external Temporal"},
		"the bundled one and verified approvals": {values{"temporal": values{"address": "", "approvals": "verified"}}, "temporal.approvals=verified takes no approval"},
		"the bundled one and worker versions":    {values{"temporal": values{"address": "", "workerVersions": true}}, "temporal.workerVersions is for an external Temporal"},
		"worker versions and workers apart":      {values{"temporal": values{"workerVersions": true}, "workers": values{"enabled": true}}, "leave out workers.enabled and role"},
		"a mode that is none":                    {values{"temporal": values{"mode": "Own"}}, "temporal/mode"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := with(t, "hub-agent", test.values)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestControllersAndWorkersCanBeApart(t *testing.T) {
	all := must(t, "hub-agent", values{"replicaCount": 2, "workers": values{"enabled": true, "replicaCount": 5}})
	assert.Contains(t, args(t, all, "agent"), "--role=controllers")
	assert.Contains(t, args(t, all, "agent-workers"), "--role=worker")
	controllers := deployment(t, all, "agent")
	workers := deployment(t, all, "agent-workers")
	assert.EqualValues(t, 2, *controllers.Spec.Replicas)
	assert.EqualValues(t, 5, *workers.Spec.Replicas)
	assert.Equal(t, controllers.Spec.Template.Spec.ServiceAccountName, workers.Spec.Template.Spec.ServiceAccountName)
	assert.NotEqual(t, controllers.Spec.Selector.MatchLabels, intersection(controllers.Spec.Selector.MatchLabels, workers.Spec.Template.Labels), "neither takes the other's Pods")
	assert.ElementsMatch(t, []string{"agent", "agent-workers"}, ofKind(t, all, "PodDisruptionBudget"))
	_, err := with(t, "hub-agent", values{"role": "worker", "workers": values{"enabled": true}})
	assert.ErrorContains(t, err, "leave role as it is")
}

func TestBudgetsAreThereForMoreThanOne(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, ofKind(t, must(t, name, nil), "PodDisruptionBudget"), "one alone would keep its node")
			all := must(t, name, values{"replicaCount": 3})
			budget := only[*policyv1.PodDisruptionBudget](t, all)
			assert.Equal(t, "1", budget.Spec.MaxUnavailable.String())
			pod := deployment(t, all, release).Spec.Template
			assert.Equal(t, budget.Spec.Selector.MatchLabels, intersection(budget.Spec.Selector.MatchLabels, pod.Labels))
			assert.Len(t, pod.Spec.TopologySpreadConstraints, 2)
			assert.Empty(t, ofKind(t, must(t, name, values{"replicaCount": 3, "podDisruptionBudget": values{"enabled": false}}), "PodDisruptionBudget"))
		})
	}
}

func TestNetworkPoliciesLetThroughWhatAgentsNeed(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		assert.Equal(t, []string{release}, ofKind(t, must(t, name, nil), "NetworkPolicy"), "by default")
		assert.Empty(t, ofKind(t, must(t, name, values{"networkPolicy": values{"enabled": false}}), "NetworkPolicy"))
	}
	policy := only[*networkingv1.NetworkPolicy](t, must(t, "hub-agent", values{"networkPolicy": values{"enabled": true, "metricsFrom": []any{values{"namespaceSelector": values{}}}}}))
	assert.Equal(t, []string{"53/UDP 53/TCP", "443/TCP 6443/TCP 8443/TCP", "7233/TCP"}, outward(policy))
	require.Len(t, policy.Spec.Ingress, 1)
	assert.Equal(t, "metrics", policy.Spec.Ingress[0].Ports[0].Port.String())
	assert.Len(t, policy.Spec.Ingress[0].From, 1)

	policy = only[*networkingv1.NetworkPolicy](t, must(t, "member-agent", values{"networkPolicy": values{
		"enabled": true, "apiServerPorts": []any{8443}, "extraEgress": []any{values{"ports": []any{values{"port": 4317}}}},
	}}))
	assert.Equal(t, []string{"53/UDP 53/TCP", "8443/TCP", "4317/"}, outward(policy))

	traced := values{"networkPolicy": values{"enabled": true}, "tracing": values{"endpoint": "collector.monitoring:4317"}}
	for name, want := range map[string][]string{
		"hub-agent":    {"53/UDP 53/TCP", "443/TCP 6443/TCP 8443/TCP", "7233/TCP", "4317/TCP"},
		"member-agent": {"53/UDP 53/TCP", "443/TCP 6443/TCP 8443/TCP", "4317/TCP"},
	} {
		assert.Equal(t, want, outward(only[*networkingv1.NetworkPolicy](t, must(t, name, traced))), name)
	}

	policy = only[*networkingv1.NetworkPolicy](t, must(t, "hub-agent", values{"temporal": values{"address": ""}}))
	assert.Equal(t, []string{"53/UDP 53/TCP", "443/TCP 6443/TCP 8443/TCP"}, outward(policy), "the bundled Temporal is on the Pod's loopback")
}

// outward is what a policy lets out, a line for each rule.
func outward(policy *networkingv1.NetworkPolicy) []string {
	var rules []string
	for _, rule := range policy.Spec.Egress {
		var ports []string
		for _, p := range rule.Ports {
			protocol := ""
			if p.Protocol != nil {
				protocol = string(*p.Protocol)
			}
			ports = append(ports, fmt.Sprintf("%s/%s", p.Port.String(), protocol))
		}
		rules = append(rules, strings.Join(ports, " "))
	}
	return rules
}

func TestPrometheusFindsTheMetrics(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, nil)
			assert.Equal(t, []string{"agent-metrics"}, ofKind(t, all, "Service"))
			assert.Empty(t, ofKind(t, all, "ServiceMonitor"))
			assert.Empty(t, ofKind(t, must(t, name, values{"metrics": values{"service": values{"enabled": false}}}), "Service"))

			all = must(t, name, values{"metrics": values{"serviceMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}}}})
			assert.Equal(t, []string{release}, ofKind(t, all, "ServiceMonitor"))
			assert.Contains(t, monitored(t, all), "https", "the metrics are for those who may read them")
			assert.NotContains(t, monitored(t, must(t, name, values{"metrics": values{"secure": false, "serviceMonitor": values{"enabled": true}}})), "https")
			_, err := with(t, name, values{"metrics": values{"service": values{"enabled": false}, "serviceMonitor": values{"enabled": true}}})
			assert.ErrorContains(t, err, "needs metrics.service.enabled")
		})
	}
}

// monitored is how Prometheus is told to read the metrics.
func monitored(t *testing.T, all []runtime.Object) string {
	t.Helper()
	return fmt.Sprint(foreign(t, all, "ServiceMonitor").Object["spec"])
}

// foreign returns the object of a kind that is not one of Kubernetes.
func foreign(t *testing.T, all []runtime.Object, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range all {
		if u, ok := object.(*unstructured.Unstructured); ok && u.GetKind() == kind {
			return u
		}
	}
	require.Fail(t, "no "+kind)
	return nil
}

func TestPrometheusReadsPodsWithATokenThatItIsGiven(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			_, err := with(t, name, values{"metrics": values{"podMonitor": values{"enabled": true}}})
			assert.ErrorContains(t, err, "metrics.podMonitor.tokenSecret.name is required")
			all := must(t, name, values{"metrics": values{"podMonitor": values{"enabled": true, "labels": values{"release": "prometheus"}, "tokenSecret": values{"name": "prometheus-token"}}}})
			monitor := foreign(t, all, "PodMonitor")
			assert.Equal(t, "prometheus", monitor.GetLabels()["release"])
			selected, _, err := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			require.NoError(t, err)
			assert.Equal(t, selected, intersection(selected, deployment(t, all, release).Spec.Template.Labels))
			assert.Contains(t, fmt.Sprint(monitor.Object["spec"]), "map[credentials:map[key:token name:prometheus-token]]")
			open := foreign(t, must(t, name, values{"metrics": values{"secure": false, "podMonitor": values{"enabled": true}}}), "PodMonitor")
			assert.NotContains(t, fmt.Sprint(open.Object["spec"]), "https")
		})
	}
}

func TestAlertsAndDashboardComeWithTheCharts(t *testing.T) {
	for name, alert := range map[string]string{"hub-agent": "FleetflowNoLeader", "member-agent": "FleetflowWorksFail"} {
		t.Run(name, func(t *testing.T) {
			assert.NotContains(t, ofKind(t, must(t, name, nil), "PrometheusRule"), release)
			rule := foreign(t, must(t, name, values{"metrics": values{"prometheusRule": values{"enabled": true, "labels": values{"role": "alert-rules"}}}}), "PrometheusRule")
			assert.Equal(t, "alert-rules", rule.GetLabels()["role"])
			content, err := os.ReadFile(path.Join(root, "deploy", "charts", name, "monitoring", "alerts.yaml"))
			require.NoError(t, err)
			file := map[string]any{}
			require.NoError(t, yaml.Unmarshal(content, &file))
			assert.Equal(t, file, rule.Object["spec"], "the rules as they are in the file, what Prometheus fills in included")
			assert.Contains(t, fmt.Sprint(rule.Object["spec"]), alert)
		})
	}
	board := named[*corev1.ConfigMap](t, must(t, "hub-agent", values{"metrics": values{"dashboard": values{"enabled": true}}}), release+"-dashboard")
	assert.Equal(t, "1", board.Labels["grafana_dashboard"])
	assert.True(t, json.Valid([]byte(board.Data["fleetflow.json"])))
}

func TestEverythingHasTheNameThatOverridesTheReleases(t *testing.T) {
	for name, additional := range map[string]values{
		"hub-agent":    {"temporal": values{"address": ""}},
		"member-agent": nil,
	} {
		t.Run(name, func(t *testing.T) {
			given := values{"fullnameOverride": "prod", "metrics": values{"serviceMonitor": values{"enabled": true}}}
			merge(given, additional)
			all := must(t, name, given)
			usual := values{"metrics": values{"serviceMonitor": values{"enabled": true}}}
			merge(usual, additional)
			assert.Len(t, all, len(must(t, name, usual)))
			for _, object := range all {
				accessor, err := meta.Accessor(object)
				require.NoError(t, err)
				if accessor.GetNamespace() != metav1.NamespacePublic {
					assert.True(t, strings.HasPrefix(accessor.GetName(), "prod"), "%T %s", object, accessor.GetName())
				}
				assert.Equal(t, release, accessor.GetLabels()["app.kubernetes.io/instance"], "the release stays what it is")
				text, err := json.Marshal(object)
				require.NoError(t, err)
				assert.NotContains(t, string(text), namespace+":"+release+`\"`, "the account has the other name, too: %s", accessor.GetName())
			}
			assert.Equal(t, "prod", deployment(t, all, "prod").Spec.Template.Spec.ServiceAccountName)
			assert.Equal(t, "prod", named[*rbacv1.ClusterRoleBinding](t, all, "prod").Subjects[0].Name)
			_, err := with(t, name, values{"fullnameOverride": "Prod_1"})
			assert.ErrorContains(t, err, "/fullnameOverride")
		})
	}
}

func TestFiguresAreForThoseWithTheRight(t *testing.T) {
	for name, sa := range map[string]bool{"hub-agent": true, "member-agent": false} {
		all := must(t, name, nil)
		assert.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, named[*rbacv1.ClusterRole](t, all, "agent-metrics-reader").Rules)
		assert.Equal(t, "true", flagOf(deployment(t, all, release), "metrics-secure"))
		asks := func(all []runtime.Object) bool {
			return slices.ContainsFunc(named[*rbacv1.ClusterRole](t, all, release).Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "tokenreviews") })
		}
		assert.Equal(t, sa, asks(all), "the member agent may create anything")
		open := must(t, name, values{"metrics": values{"secure": false}})
		assert.NotContains(t, ofKind(t, open, "ClusterRole"), "agent-metrics-reader")
		assert.Equal(t, "false", flagOf(deployment(t, open, release), "metrics-secure"))
		assert.False(t, asks(open))
	}
}

func TestImagesAreNamedByDigestIfThereIsOne(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a1", 32)
	for _, name := range []string{"hub-agent", "member-agent"} {
		image := func(additional values) string {
			return deployment(t, must(t, name, values{"image": additional}), release).Spec.Template.Spec.Containers[0].Image
		}
		assert.Equal(t, "r.example.com/x@"+digest, image(values{"repository": "r.example.com/x", "tag": "v1", "digest": digest}))
		assert.Equal(t, "r.example.com/x:v1", image(values{"repository": "r.example.com/x", "tag": "v1"}))
		_, err := with(t, name, values{"image": values{"digest": "sha256:12"}})
		assert.ErrorContains(t, err, "digest")
	}
}

// The values that KubeFleet's documentation sets when it installs its charts into the namespace default.
func printed(name string) values {
	all := values{
		"image": values{"pullPolicy": "Always", "repository": "registry.example.com/" + name, "tag": "v1"}, "logVerbosity": 2, "namespace": "fleet-system",
		"enableV1Alpha1APIs": false, "enableV1Beta1APIs": true,
	}
	if name == "hub-agent" {
		maps.Copy(all, values{"enableWebhook": true, "webhookClientConnectionType": "service"})
		return all
	}
	maps.Copy(all, values{
		"config":       values{"hubURL": "https://172.18.0.2:6443", "memberClusterName": "kind-member-1"},
		"refreshtoken": values{"repository": "registry.example.com/refresh-token", "tag": "v1", "pullPolicy": "Always"},
		"logVerbosity": 5,
	})
	return all
}

func TestPrintedCommandsInstallIntoTheNamespaceTheyName(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			values := required()[name]
			merge(values, printed(name))
			rendered, err := renderInto(t, name, "default", values)
			require.NoError(t, err)
			all := objects(t, rendered)
			assert.Equal(t, []string{"fleet-system"}, ofKind(t, all, "Namespace"), "it is made with the release")
			for _, object := range all {
				accessor, err := meta.Accessor(object)
				require.NoError(t, err)
				if accessor.GetAnnotations()["helm.sh/hook"] == "pre-install,pre-upgrade" {
					assert.NotEqual(t, "fleet-system", accessor.GetNamespace(), "the namespace is not there yet")
					continue
				}
				if in := accessor.GetNamespace(); in != "" && accessor.GetName() != "fleetflow-placed" { // which is for every user to read
					assert.Equal(t, "fleet-system", in, "%T %s", object, accessor.GetName())
				}
			}
			assert.Contains(t, args(t, all, release), "--leader-election-namespace=fleet-system")
			assert.Equal(t, "registry.example.com/"+name+":v1", deployment(t, all, release).Spec.Template.Spec.Containers[0].Image)
			if name == "member-agent" {
				assert.Contains(t, args(t, all, release), "--hub-token-secret=default/hub-kubeconfig-secret", "kubectl made it in the namespace default")
			}
		})
	}
}

func TestMemberAgentMountsASecretOfItsOwnNamespace(t *testing.T) {
	all := must(t, "member-agent", values{"secret": values{"name": "mine"}})
	assert.Contains(t, args(t, all, release), "--hub-token-secret="+namespace+"/mine", "where a renewed token is written to")
	pod := deployment(t, all, release).Spec.Template.Spec
	assert.Equal(t, "mine", pod.Volumes[0].Secret.SecretName)
	assert.Equal(t, "CONFIG_PATH", pod.Containers[0].Env[2].Name)

	all = must(t, "member-agent", values{"secret": values{"name": "theirs", "namespace": "default"}})
	assert.Contains(t, args(t, all, release), "--hub-token-secret=default/theirs")
	assert.Empty(t, deployment(t, all, release).Spec.Template.Spec.Volumes)
}

func TestMistakesInValuesAreNamed(t *testing.T) {
	for sentence, test := range map[string]struct {
		chart  string
		values values
		want   string
	}{
		"a value that does not exist":     {"hub-agent", values{"replicas": 2}, "replicas"},
		"a word that is misspelt":         {"hub-agent", values{"temporal": values{"adress": "x:1"}}, "adress"},
		"an address that is a URL":        {"hub-agent", values{"temporal": values{"address": "https://temporal"}}, "/temporal/address"},
		"a duration without a unit":       {"hub-agent", values{"forceDeleteWaitTime": "15"}, "/forceDeleteWaitTime"},
		"approvals neither way":           {"hub-agent", values{"approvals": values{"unverified": "Maybe"}}, "/approvals/unverified"},
		"a state that is no default":      {"hub-agent", values{"updateRuns": values{"defaultState": "Stop"}}, "/updateRuns/defaultState"},
		"a role that does not exist":      {"hub-agent", values{"role": "leader"}, "/role"},
		"a number that is a word":         {"member-agent", values{"replicaCount": "two"}, "/replicaCount"},
		"a hub without a scheme":          {"member-agent", values{"config": values{"hubURL": "hub:6443"}}, "/config/hubURL"},
		"a hub without encryption":        {"member-agent", values{"config": values{"hubURL": "http://hub:6443"}}, "/config/hubURL"},
		"accounts in no namespace":        {"hub-agent", values{"accessNamespaces": []any{"Connect"}}, "/accessNamespaces/0"},
		"a collector by its URL":          {"hub-agent", values{"tracing": values{"endpoint": "http://collector:4317"}}, "/tracing/endpoint"},
		"more than all of the traces":     {"member-agent", values{"tracing": values{"sampleRatio": 2}}, "/tracing/sampleRatio"},
		"a propagation that is not there": {"member-agent", values{"prune": values{"propagationPolicy": "Sideways"}}, "/prune/propagationPolicy"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := with(t, test.chart, test.values)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestPlacingAndNamingPodsIsUpToTheOperator(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{
				"nodeSelector": values{"disk": "fast"}, "tolerations": []any{values{"operator": "Exists"}}, "priorityClassName": "high",
				"podLabels": values{"team": "a"}, "podAnnotations": values{"note": "b"}, "imagePullSecrets": []any{values{"name": "pull"}},
				"topologySpreadConstraints": []any{values{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}},
				"affinity":                  values{"nodeAffinity": values{}}, "extraArgs": []any{"--v=3"}, "serviceAccount": values{"annotations": values{"role": "c"}},
				"enablePprof": true, "logFormat": "console",
			})
			pod := deployment(t, all, release).Spec.Template
			assert.Equal(t, map[string]string{"disk": "fast"}, pod.Spec.NodeSelector)
			assert.Len(t, pod.Spec.Tolerations, 1)
			assert.Equal(t, "high", pod.Spec.PriorityClassName)
			assert.Equal(t, "a", pod.Labels["team"])
			assert.Equal(t, "b", pod.Annotations["note"])
			assert.Equal(t, "pull", pod.Spec.ImagePullSecrets[0].Name)
			assert.Equal(t, "rack", pod.Spec.TopologySpreadConstraints[0].TopologyKey)
			assert.NotNil(t, pod.Spec.Affinity.NodeAffinity)
			assert.Subset(t, args(t, all, release), []string{"--enable-pprof=true", "--log-format=console", "--v=3"})
			assert.Equal(t, "c", named[*corev1.ServiceAccount](t, all, release).Annotations["role"])
		})
	}
}

func TestPodsGetWhatAnOperatorAddsToThem(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{
				"extraEnv":           []any{values{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}},
				"extraVolumes":       []any{values{"name": "cas", "configMap": values{"name": "cas"}}},
				"extraVolumeMounts":  []any{values{"name": "cas", "mountPath": "/etc/ssl/certs"}},
				"podSecurityContext": values{"runAsUser": nil, "runAsGroup": nil, "fsGroup": nil},
			})
			pod := deployment(t, all, release).Spec.Template.Spec
			assert.Contains(t, pod.Containers[0].Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"})
			assert.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "cas", MountPath: "/etc/ssl/certs"})
			assert.Equal(t, "cas", pod.Volumes[0].ConfigMap.Name)
			assert.Equal(t, &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}, pod.SecurityContext, "OpenShift chooses the users")
		})
	}
}

// TestAContainerThatIsStartedAgainIsWhoItWas has containers of agents know their Pod by its UID: a name may come again.
func TestAContainerThatIsStartedAgainIsWhoItWas(t *testing.T) {
	for name, count := range map[string]int{"hub-agent": 2, "member-agent": 1} {
		t.Run(name, func(t *testing.T) {
			additional := values{"extraEnv": []any{values{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}}}
			if name == "hub-agent" {
				additional["workers"] = values{"enabled": true}
			}
			deployments := 0
			for _, object := range must(t, name, additional) {
				if found, is := object.(*appsv1.Deployment); is {
					deployments++
					assert.Contains(t, found.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{
						Name: "POD_UID", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}},
					})
				}
			}
			assert.GreaterOrEqual(t, deployments, count)
		})
	}
}

// TestPodsTakeWhatOtherChartsTake sets in each chart what operators know from others, by the same names.
func TestPodsTakeWhatOtherChartsTake(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{
				"deploymentAnnotations":     values{"reloader": "yes"},
				"updateStrategy":            values{"type": "RollingUpdate", "rollingUpdate": values{"maxUnavailable": 0}},
				"revisionHistoryLimit":      0,
				"envFrom":                   []any{values{"secretRef": values{"name": "proxy"}}},
				"initContainers":            []any{values{"name": "first", "image": "first"}},
				"hostAliases":               []any{values{"ip": "10.0.0.1", "hostnames": []any{"hub.example.com"}}},
				"dnsPolicy":                 "None",
				"dnsConfig":                 values{"nameservers": []any{"10.0.0.2"}},
				"containerSecurityContext":  values{"capabilities": values{"add": []any{"NET_BIND_SERVICE"}}},
				"topologySpreadConstraints": []any{values{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}},
				"extraVolumes":              []any{values{"name": "cas", "configMap": values{"name": "cas"}}},
				"extraVolumeMounts":         []any{values{"name": "cas", "mountPath": "/etc/ssl/certs"}},
			})
			d := deployment(t, all, release)
			assert.Equal(t, "yes", d.Annotations["reloader"])
			assert.Equal(t, 0, d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue())
			assert.Equal(t, int32(0), *d.Spec.RevisionHistoryLimit)
			pod := d.Spec.Template.Spec
			assert.Equal(t, "proxy", pod.Containers[0].EnvFrom[0].SecretRef.Name)
			assert.Equal(t, "first", pod.InitContainers[0].Name)
			assert.Equal(t, "10.0.0.1", pod.HostAliases[0].IP)
			assert.Equal(t, corev1.DNSNone, pod.DNSPolicy)
			assert.Equal(t, []string{"10.0.0.2"}, pod.DNSConfig.Nameservers)
			security := pod.Containers[0].SecurityContext
			assert.Equal(t, []corev1.Capability{"NET_BIND_SERVICE"}, security.Capabilities.Add)
			assert.True(t, *security.ReadOnlyRootFilesystem, "what is not named stays")
			require.Len(t, pod.TopologySpreadConstraints, 1)
			assert.Equal(t, "rack", pod.TopologySpreadConstraints[0].TopologyKey)
			assert.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "cas", MountPath: "/etc/ssl/certs"})
			assert.Equal(t, "cas", pod.Volumes[0].ConfigMap.Name)
		})
	}
}

// TestPodsRunAsAnAccountThatIsThere has every right, and every guard rail, belong to the account that is named.
func TestPodsRunAsAnAccountThatIsThere(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{"serviceAccount": values{"create": false, "name": "given"}})
			assert.NotContains(t, ofKind(t, all, "ServiceAccount"), release)
			assert.NotContains(t, ofKind(t, all, "ServiceAccount"), "given")
			assert.Equal(t, "given", deployment(t, all, release).Spec.Template.Spec.ServiceAccountName)
			for _, object := range all {
				if binding, is := object.(*rbacv1.ClusterRoleBinding); is && binding.Annotations["helm.sh/hook"] == "" {
					assert.Equal(t, "given", binding.Subjects[0].Name, binding.Name)
				}
				if binding, is := object.(*rbacv1.RoleBinding); is && binding.Subjects[0].Kind == rbacv1.ServiceAccountKind {
					assert.Equal(t, "given", binding.Subjects[0].Name, binding.Name)
				}
				if policy, is := object.(*admissionv1.ValidatingAdmissionPolicy); is {
					assert.NotContains(t, policy.String(), "system:serviceaccount:"+namespace+":"+release, policy.Name)
				}
			}
			named := must(t, name, values{"serviceAccount": values{"name": "other"}})
			assert.Contains(t, ofKind(t, named, "ServiceAccount"), "other")
			_, err := with(t, name, values{"serviceAccount": values{"create": false}})
			assert.ErrorContains(t, err, "serviceAccount.name is required")
		})
	}
}

// imagesOf are the images of everything that a chart makes.
func imagesOf(all []runtime.Object) []string {
	var images []string
	for _, object := range all {
		pod := corev1.PodSpec{}
		switch object := object.(type) {
		case *appsv1.Deployment:
			pod = object.Spec.Template.Spec
		case *batchv1.Job:
			pod = object.Spec.Template.Spec
		case *corev1.Pod:
			pod = object.Spec
		}
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			images = append(images, container.Image)
		}
	}
	return images
}

func TestAllImagesComeFromOneRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for name, given := range map[string]values{
		"hub-agent": {"temporal": values{"address": ""}}, "member-agent": {}, "fleet-dashboard": {},
	} {
		t.Run(name, func(t *testing.T) {
			given["image"] = values{"digest": digest}
			for _, image := range imagesOf(must(t, name, given)) {
				assert.Regexp(t, "^ghcr.io/fleetflow/", image)
			}
			given["global"] = values{"imageRegistry": "mirror.example.com:5000/fleet"}
			images := imagesOf(must(t, name, given))
			assert.NotEmpty(t, images)
			for _, image := range images {
				assert.Regexp(t, "^mirror.example.com:5000/fleet/fleetflow/", image)
			}
			assert.Contains(t, images, "mirror.example.com:5000/fleet/fleetflow/"+name+"@"+digest)
		})
	}
}

// TestChartsSayAlikeWhatTheyShare compares the named templates that the charts have each for themselves: Helm packs a chart alone.
func TestChartsSayAlikeWhatTheyShare(t *testing.T) {
	for file, charts := range map[string][]string{
		"_pods.tpl": {"hub-agent", "member-agent", "fleet-dashboard"}, "_definitions.tpl": {"hub-agent", "member-agent"},
	} {
		texts := map[string]bool{}
		for _, name := range charts {
			content, err := os.ReadFile(path.Join(root, "deploy", "charts", name, "templates", file))
			require.NoError(t, err)
			texts[strings.ReplaceAll(string(content), `"`+name+`.`, `"`)] = true
		}
		assert.Len(t, texts, 1, "%s differs between the charts", file)
	}
}

func TestHelmTestAsksTheHubWithTheAccountOfTheAgent(t *testing.T) {
	all := must(t, "hub-agent", values{"test": values{"image": values{"tag": "v1"}}})
	pod := only[*corev1.Pod](t, all)
	assert.Equal(t, "test", pod.Annotations["helm.sh/hook"])
	assert.Equal(t, deployment(t, all, release).Spec.Template.Spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	assert.Equal(t, "ghcr.io/fleetflow/kubectl-fleet:v1", pod.Spec.Containers[0].Image)
	assert.Equal(t, []string{"get"}, pod.Spec.Containers[0].Args)
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.True(t, *pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	for _, object := range all {
		if policy, ok := object.(*networkingv1.NetworkPolicy); ok {
			assert.NotContains(t, policy.Spec.PodSelector.MatchExpressions[0].Values, pod.Labels["app.kubernetes.io/component"], "it reaches the API server")
		}
	}
}

// What helm test starts is of the chart's own image, has the account of its Pods and is behind none of its Services.
func TestHelmTestTriesAgentAndDashboard(t *testing.T) {
	for name, want := range map[string][]string{
		"member-agent":    {"--try", "--hub-token-secret=" + namespace + "/hub-kubeconfig-secret", "--tls-insecure=false"},
		"fleet-dashboard": {"--url=https://fleet.example.com", "--try=http://" + release + "." + namespace + ":80"},
	} {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{})
			pod := only[*corev1.Pod](t, all)
			own := deployment(t, all, release).Spec.Template
			assert.Equal(t, "test", pod.Annotations["helm.sh/hook"])
			assert.Equal(t, own.Spec.ServiceAccountName, pod.Spec.ServiceAccountName)
			assert.Equal(t, own.Spec.Containers[0].Image, pod.Spec.Containers[0].Image)
			assert.Equal(t, own.Spec.Containers[0].SecurityContext, pod.Spec.Containers[0].SecurityContext)
			assert.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
			assert.Equal(t, want, pod.Spec.Containers[0].Args)
			for _, object := range all {
				if service, is := object.(*corev1.Service); is {
					assert.False(t, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)), "Service %s selects it", service.Name)
				}
			}
		})
	}
	pod := only[*corev1.Pod](t, must(t, "fleet-dashboard", values{"tls": values{"secretName": "tls"}}))
	assert.Contains(t, pod.Spec.Containers[0].Args[1], "--try=https://")
}

// The page of a chart says what has changed, as artifacthub asks for.
func TestChartsTellWhatHasChanged(t *testing.T) {
	for name := range required() {
		content, err := os.ReadFile(path.Join(root, "deploy", "charts", name, "Chart.yaml"))
		require.NoError(t, err)
		var chart struct{ Annotations map[string]string }
		require.NoError(t, yaml.Unmarshal(content, &chart))
		var changes []struct{ Kind, Description string }
		require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/changes"]), &changes), name)
		require.NotEmpty(t, changes, name)
		for _, change := range changes {
			assert.Contains(t, []string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind, name)
			assert.NotEmpty(t, change.Description, name)
		}
	}
}

func TestEverythingHasTheCommonLabels(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			all := must(t, name, values{"commonLabels": values{"team": "platform"}})
			require.NotEmpty(t, all)
			for _, object := range all {
				accessor, err := meta.Accessor(object)
				require.NoError(t, err)
				assert.Equal(t, "platform", accessor.GetLabels()["team"], "%T %s", object, accessor.GetName())
			}
			assert.NotContains(t, deployment(t, all, release).Spec.Selector.MatchLabels, "team", "a selector cannot change")
		})
	}
}
