package membership

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Usage sums up the nodes' resources and subtracts the requests of their pods, for every resource
// of any node. Pods that have ended, or are not on a node yet, use nothing.
func Usage(nodes []corev1.Node, pods []corev1.Pod, now metav1.Time) clusterv1beta1.ResourceUsage {
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range nodes {
		addResources(capacity, nodes[i].Status.Capacity)
		addResources(allocatable, nodes[i].Status.Allocatable)
	}
	requested := corev1.ResourceList{}
	for i := range pods {
		if occupiesNode(&pods[i]) {
			addResources(requested, requestsOf(&pods[i].Spec))
		}
	}
	available := corev1.ResourceList{}
	for name, quantity := range allocatable {
		left := quantity.DeepCopy()
		left.Sub(requested[name])
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, quantity.Format)
		}
		available[name] = left
	}
	// Each pod takes one of the pods that a node can run, although it does not request that
	// resource.
	if slots, ok := available[corev1.ResourcePods]; ok {
		available[corev1.ResourcePods] = subtractPods(slots, pods)
	}
	return clusterv1beta1.ResourceUsage{
		Capacity: capacity, Allocatable: allocatable, Available: available, ObservationTime: now,
	}
}

func addResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

func occupiesNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func subtractPods(slots resource.Quantity, pods []corev1.Pod) resource.Quantity {
	left := slots.DeepCopy()
	for i := range pods {
		if occupiesNode(&pods[i]) {
			left.Sub(*resource.NewQuantity(1, resource.DecimalSI))
		}
	}
	if left.Sign() < 0 {
		return *resource.NewQuantity(0, slots.Format)
	}
	return left
}

// requestsOf is what the scheduler reserves for a pod: the sum of its containers and sidecars, or
// the most demanding init container if that needs more, plus the overhead.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		addResources(total, spec.Containers[i].Resources.Requests)
	}
	sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		needs := corev1.ResourceList{}
		addResources(needs, sidecars)
		addResources(needs, c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addResources(sidecars, c.Resources.Requests)
		}
		raiseResources(peak, needs)
	}
	addResources(total, sidecars)
	raiseResources(total, peak)
	if spec.Resources != nil {
		maps.Copy(total, spec.Resources.Requests) // requests of the pod as a whole take precedence
	}
	addResources(total, spec.Overhead)
	return total
}

// raiseResources raises each quantity to at least the other's.
func raiseResources(list, atLeast corev1.ResourceList) {
	for name, quantity := range atLeast {
		if current, ok := list[name]; !ok || quantity.Cmp(current) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
