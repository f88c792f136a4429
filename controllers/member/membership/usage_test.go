package membership

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func node(capacity, allocatable corev1.ResourceList) corev1.Node {
	return corev1.Node{Status: corev1.NodeStatus{Capacity: capacity, Allocatable: allocatable}}
}

func containerRequesting(requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
}

func pod(phase corev1.PodPhase, nodeName string, containers ...corev1.Container) corev1.Pod {
	return corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: nodeName, Containers: containers},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestUsage(t *testing.T) {
	sidecar := containerRequesting(list("cpu", "1"))
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	withInit := pod(corev1.PodRunning, "n", containerRequesting(list("cpu", "2")))
	withInit.Spec.InitContainers = []corev1.Container{sidecar, containerRequesting(list("cpu", "4", "memory", "1Gi"))}
	withInit.Spec.Overhead = list("cpu", "500m")
	asWhole := pod(corev1.PodRunning, "n", containerRequesting(list("cpu", "1", "memory", "1Gi")))
	asWhole.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "3")}
	asWhole.Spec.Overhead = list("cpu", "500m")

	eight := node(list("cpu", "8", "memory", "8Gi"), list("cpu", "7", "memory", "7Gi"))
	tests := map[string]struct {
		nodes                            []corev1.Node
		pods                             []corev1.Pod
		capacity, allocatable, available corev1.ResourceList
	}{
		"a cluster without nodes has nothing": {capacity: list(), allocatable: list(), available: list()},
		"nodes add up, whatever they name": {
			nodes:    []corev1.Node{eight, node(list("cpu", "2", "example.com/gpu", "1"), list("cpu", "2", "example.com/gpu", "1"))},
			capacity: list("cpu", "10", "memory", "8Gi", "example.com/gpu", "1"), allocatable: list("cpu", "9", "memory", "7Gi", "example.com/gpu", "1"),
			available: list("cpu", "9", "memory", "7Gi", "example.com/gpu", "1"),
		},
		"pods take what their containers request": {
			nodes: []corev1.Node{eight}, pods: []corev1.Pod{
				pod(corev1.PodRunning, "n", containerRequesting(list("cpu", "1500m", "memory", "1Gi")), containerRequesting(list("cpu", "500m"))),
				pod(corev1.PodPending, "n", containerRequesting(list("cpu", "1"))),
			},
			capacity: list("cpu", "8", "memory", "8Gi"), allocatable: list("cpu", "7", "memory", "7Gi"),
			available: list("cpu", "4", "memory", "6Gi"),
		},
		"pods that have ended or have no node take nothing": {
			nodes: []corev1.Node{eight}, pods: []corev1.Pod{
				pod(corev1.PodSucceeded, "n", containerRequesting(list("cpu", "1"))), pod(corev1.PodFailed, "n", containerRequesting(list("cpu", "1"))),
				pod(corev1.PodPending, "", containerRequesting(list("cpu", "1"))),
			},
			capacity: list("cpu", "8", "memory", "8Gi"), allocatable: list("cpu", "7", "memory", "7Gi"),
			available: list("cpu", "7", "memory", "7Gi"),
		},
		"init containers count if they want more than the rest, sidecars and overhead always": {
			nodes: []corev1.Node{eight}, pods: []corev1.Pod{withInit},
			capacity: list("cpu", "8", "memory", "8Gi"), allocatable: list("cpu", "7", "memory", "7Gi"),
			available: list("cpu", "1500m", "memory", "6Gi"),
		},
		"what a pod requests as a whole counts instead of what its containers do": {
			nodes: []corev1.Node{eight}, pods: []corev1.Pod{strippedPod(t, asWhole)},
			capacity: list("cpu", "8", "memory", "8Gi"), allocatable: list("cpu", "7", "memory", "7Gi"),
			available: list("cpu", "3500m", "memory", "6Gi"),
		},
		"more requested than there is leaves nothing, not less": {
			nodes:    []corev1.Node{node(list("cpu", "1"), list("cpu", "1"))},
			pods:     []corev1.Pod{pod(corev1.PodRunning, "n", containerRequesting(list("cpu", "2", "memory", "1Gi")))},
			capacity: list("cpu", "1"), allocatable: list("cpu", "1"), available: list("cpu", "0"),
		},
		"each pod takes one of the places for pods": {
			nodes:    []corev1.Node{node(list("pods", "110"), list("pods", "110"))},
			pods:     []corev1.Pod{pod(corev1.PodRunning, "n"), pod(corev1.PodSucceeded, "n")},
			capacity: list("pods", "110"), allocatable: list("pods", "110"), available: list("pods", "109"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := metav1.Now()
			got := Usage(tc.nodes, tc.pods, now)
			equalResources(t, tc.capacity, got.Capacity)
			equalResources(t, tc.allocatable, got.Allocatable)
			equalResources(t, tc.available, got.Available)
			assert.Equal(t, now, got.ObservationTime)
		})
	}
}

// strippedPod is a pod as it is in the cache.
func strippedPod(t *testing.T, pod corev1.Pod) corev1.Pod {
	t.Helper()
	slim, err := StripPod(&pod)
	require.NoError(t, err)
	return *slim.(*corev1.Pod)
}

func equalResources(t *testing.T, want, got corev1.ResourceList) {
	t.Helper()
	assert.Len(t, got, len(want))
	for name, quantity := range want {
		have := got[name]
		assert.Zero(t, quantity.Cmp(have), "%s: want %s, have %s", name, quantity.String(), have.String())
	}
}
