package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

// placed is a node as the agent caches it.
func placed(t *testing.T, provider, region, zone string) corev1.Node {
	t.Helper()
	stripped, err := StripNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone, "other": "x"}},
		Spec:       corev1.NodeSpec{ProviderID: provider + ":///instance/0815"},
	})
	require.NoError(t, err)
	node, is := stripped.(*corev1.Node)
	require.True(t, is)
	assert.NotContains(t, node.Labels, "other", "the cache has only what is reported")
	return *node
}

func TestWhereTheNodesAre(t *testing.T) {
	where := locationOf([]corev1.Node{placed(t, "aws", "eu-1", "b"), placed(t, "aws", "eu-1", "a"), placed(t, "aws", "eu-1", "a"), {}})
	assert.Equal(t, map[clusterv1beta1.PropertyName]string{
		"fleetflow.io/provider": "aws", "fleetflow.io/region": "eu-1", "fleetflow.io/zones": "a,b", "fleetflow.io/zone-count": "2",
	}, where)

	where = locationOf([]corev1.Node{placed(t, "aws", "eu-1", "a"), placed(t, "gce", "us-1", "a")})
	assert.Empty(t, where["fleetflow.io/provider"], "it has several")
	assert.Empty(t, where["fleetflow.io/region"], "it is in several")

	var nodes []corev1.Node
	for i := range 300 {
		nodes = append(nodes, placed(t, "aws", "eu-1", fmt.Sprintf("z%03d", i)))
	}
	where = locationOf(nodes)
	assert.Len(t, strings.Split(where["fleetflow.io/zones"], ","), clusterv1beta1.MaxReportedZones)
	assert.Equal(t, "300", where["fleetflow.io/zone-count"])

	reported := Report(Progress{}, Survey{Location: locationOf([]corev1.Node{{}})}, clusterv1beta1.InternalMemberClusterStatus{}, 1, metav1.Now())
	for name := range reported.Properties {
		assert.NotContains(t, []string{"fleetflow.io/provider", "fleetflow.io/region", "fleetflow.io/zones", "fleetflow.io/zone-count"}, string(name), "what is not known is not reported")
	}
}

func TestTheLargestPodThatFits(t *testing.T) {
	named := func(name string, n corev1.Node) corev1.Node {
		n.Name = name
		return n
	}
	half := pod(corev1.PodRunning, "a", containerRequesting(list("cpu", "2")))
	a := named("a", node(nil, list("cpu", "4", "memory", "2Gi", "pods", "10")))
	b := named("b", node(nil, list("cpu", "3", "memory", "8Gi", "pods", "1", "nvidia.com/gpu", "1")))
	equal := func(want, got corev1.ResourceList) {
		t.Helper()
		require.Len(t, got, len(want))
		for name, amount := range want {
			assert.Zero(t, amount.Cmp(got[name]), "%s: %v", name, got[name])
		}
	}
	equal(list("cpu", "3", "memory", "8Gi", "nvidia.com/gpu", "1"), LargestPod([]corev1.Node{a, b}, []corev1.Pod{half}))
	equal(list("cpu", "2", "memory", "2Gi"), LargestPod([]corev1.Node{a, b}, []corev1.Pod{half, pod(corev1.PodRunning, "b")}))
	cordoned := a
	cordoned.Spec.Unschedulable = true
	equal(list(), LargestPod([]corev1.Node{cordoned}, nil))

	reported := Report(Progress{}, Survey{LargestPod: list("cpu", "3", "nvidia.com/gpu", "1")}, clusterv1beta1.InternalMemberClusterStatus{}, 1, metav1.Now())
	assert.Equal(t, "3", reported.Properties["fleetflow.io/largest-pod-cpu"].Value)
	assert.Equal(t, "1", reported.Properties["fleetflow.io/largest-pod-nvidia.com.gpu"].Value)

	s := Survey{LargestPod: list("cpu", "3")}
	s.applyResponse(&propertyprovider.PropertyCollectionResponse{Resources: clusterv1beta1.ResourceUsage{Available: corev1.ResourceList{"cpu": resource.MustParse("99")}}})
	assert.Nil(t, s.LargestPod, "a provider may count on nodes that are still to come")
}
