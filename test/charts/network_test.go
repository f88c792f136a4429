package charts

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// stranger is a Pod that has nothing to do with the release, monitoring one that may read figures.
var (
	stranger   = map[string]string{"app": "stranger"}
	monitoring = map[string]string{"app": "prometheus"}
)

// selects says whether a selector takes in a Pod.
func selects(t *testing.T, selector *metav1.LabelSelector, pod map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	return s.Matches(labels.Set(pod))
}

// portOf is the number that a name or a number means in a Pod.
func portOf(t *testing.T, pod corev1.PodSpec, port intstr.IntOrString) int32 {
	t.Helper()
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range pod.Containers[0].Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	require.Fail(t, "no port "+port.StrVal)
	return 0
}

// policyOf is the one policy that holds for the Pods of a Deployment.
func policyOf(t *testing.T, all []runtime.Object, d *appsv1.Deployment) networkingv1.NetworkPolicySpec {
	t.Helper()
	var found []networkingv1.NetworkPolicySpec
	for _, object := range all {
		if p, ok := object.(*networkingv1.NetworkPolicy); ok && selects(t, &p.Spec.PodSelector, d.Spec.Template.Labels) {
			found = append(found, p.Spec)
		}
	}
	require.Len(t, found, 1, d.Name)
	assert.ElementsMatch(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, found[0].PolicyTypes)
	return found[0]
}

// takesPort says whether a rule's ports take one in; no ports mean all.
func takesPort(t *testing.T, ports []networkingv1.NetworkPolicyPort, pod corev1.PodSpec, port int32) bool {
	t.Helper()
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return portOf(t, pod, *p.Port) == port })
}

// takesPeer says whether a rule's peers take one in; no peers mean all.
func takesPeer(t *testing.T, peers []networkingv1.NetworkPolicyPeer, peer map[string]string) bool {
	t.Helper()
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool { return selects(t, p.PodSelector, peer) })
}

// letsIn says whether a Pod may be reached on a port by another one.
func letsIn(t *testing.T, all []runtime.Object, d *appsv1.Deployment, port int32, from map[string]string) bool {
	t.Helper()
	return slices.ContainsFunc(policyOf(t, all, d).Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return takesPort(t, r.Ports, d.Spec.Template.Spec, port) && takesPeer(t, r.From, from)
	})
}

// letsOut says whether a Pod may reach a port of another one.
func letsOut(t *testing.T, all []runtime.Object, d *appsv1.Deployment, port int32, to map[string]string) bool {
	t.Helper()
	return slices.ContainsFunc(policyOf(t, all, d).Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
		return takesPort(t, r.Ports, d.Spec.Template.Spec, port) && takesPeer(t, r.To, to)
	})
}

// flagOf is the value of a flag in the arguments of a Deployment.
func flagOf(d *appsv1.Deployment, name string) string {
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// number is the port of an address.
func number(t *testing.T, address string) int32 {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	return int32(n)
}

// dialled are the ports that an agent dials, by what its Deployment says.
func dialled(t *testing.T, d *appsv1.Deployment) map[string]int32 {
	t.Helper()
	ports := map[string]int32{"names": 53, "the API server by its Service": 443, "the API server itself": 6443}
	for _, flag := range []string{"temporal-address", "otlp-endpoint"} {
		if address := flagOf(d, flag); address != "" && !strings.HasPrefix(address, "127.0.0.1:") {
			ports[flag] = number(t, address)
		}
	}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		if e.Name == "HUB_SERVER_URL" {
			u, err := url.Parse(e.Value)
			require.NoError(t, err)
			if u.Port() != "" {
				ports["the hub"] = number(t, u.Host)
			}
		}
	}
	return ports
}

func TestNetworkPoliciesAgreeWithWhatIsListenedOnAndDialled(t *testing.T) {
	allowed := values{"enabled": true, "metricsFrom": []any{values{"podSelector": values{"matchLabels": values{"app": "prometheus"}}}}}
	traced := values{"endpoint": "collector.monitoring:4318"}
	for sentence, test := range map[string]struct {
		chart  string
		values values
	}{
		"a hub":                                    {"hub-agent", nil},
		"a hub with workers of their own":          {"hub-agent", values{"workers": values{"enabled": true}, "tracing": traced}},
		"a hub with Temporal on another port":      {"hub-agent", values{"temporal": values{"address": "temporal:17233"}}},
		"a hub with the bundled Temporal":          {"hub-agent", values{"temporal": values{"address": ""}}},
		"a member":                                 {"member-agent", values{"tracing": traced}},
		"a member whose hub has another port":      {"member-agent", values{"config": values{"hubURL": "https://hub.example.com:16443"}}},
		"a member whose hub is at an IPv6 address": {"member-agent", values{"config": values{"hubURL": "https://[fd00::1]:16443"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			additional := values{"networkPolicy": allowed}
			merge(additional, test.values)
			all := must(t, test.chart, additional)
			agents := 0
			for _, object := range all {
				d, ok := object.(*appsv1.Deployment)
				if !ok {
					continue
				}
				agents++
				for what, port := range dialled(t, d) {
					assert.True(t, letsOut(t, all, d, port, stranger), "%s has to reach %s on %d", d.Name, what, port)
				}
				assert.False(t, letsOut(t, all, d, 22, stranger))
				metrics := number(t, flagOf(d, "metrics-bind-address"))
				health := number(t, flagOf(d, "health-probe-bind-address"))
				assert.Equal(t, metrics, portOf(t, d.Spec.Template.Spec, intstr.FromString("metrics")))
				assert.Equal(t, health, portOf(t, d.Spec.Template.Spec, intstr.FromString("health")))
				assert.True(t, letsIn(t, all, d, metrics, monitoring))
				assert.False(t, letsIn(t, all, d, metrics, stranger), "only who is named reads figures")
				assert.False(t, letsIn(t, all, d, health, monitoring), "probes come from the node")
			}
			assert.Positive(t, agents)
		})
	}
}
