package membership

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Usage sums up what the nodes have and what their pods leave of it, for every resource any
// node names. Pods that have ended, or that no node has taken in yet, use nothing.
func Usage(nodes []corev1.Node, pods []corev1.Pod, now metav1.Time) clusterv1beta1.ResourceUsage {
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range nodes {
		add(capacity, nodes[i].Status.Capacity)
		add(allocatable, nodes[i].Status.Allocatable)
	}
	requested := corev1.ResourceList{}
	for i := range pods {
		if occupies(&pods[i]) {
			add(requested, requestsOf(&pods[i].Spec))
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
	// Each pod takes one of the pods a node can have, though it requests nothing of the kind.
	if slots, ok := available[corev1.ResourcePods]; ok {
		available[corev1.ResourcePods] = lessPods(slots, pods)
	}
	return clusterv1beta1.ResourceUsage{
		Capacity: capacity, Allocatable: allocatable, Available: available, ObservationTime: now,
	}
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

func occupies(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func lessPods(slots resource.Quantity, pods []corev1.Pod) resource.Quantity {
	left := slots.DeepCopy()
	for i := range pods {
		if occupies(&pods[i]) {
			left.Sub(*resource.NewQuantity(1, resource.DecimalSI))
		}
	}
	if left.Sign() < 0 {
		return *resource.NewQuantity(0, slots.Format)
	}
	return left
}

// requestsOf is what the scheduler sets aside for a pod: the sum of its containers and
// sidecars, or the most demanding init container if that wants more, plus the overhead.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	total := corev1.ResourceList{}
	for i := range spec.Containers {
		add(total, spec.Containers[i].Resources.Requests)
	}
	sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		needs := corev1.ResourceList{}
		add(needs, sidecars)
		add(needs, c.Resources.Requests)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(sidecars, c.Resources.Requests)
		}
		raise(peak, needs)
	}
	add(total, sidecars)
	raise(total, peak)
	if spec.Resources != nil {
		maps.Copy(total, spec.Resources.Requests) // what the pod requests as a whole counts instead
	}
	add(total, spec.Overhead)
	return total
}

// raise lifts each quantity to at least the other's.
func raise(list, atLeast corev1.ResourceList) {
	for name, quantity := range atLeast {
		if current, ok := list[name]; !ok || quantity.Cmp(current) > 0 {
			list[name] = quantity.DeepCopy()
		}
	}
}
