package membership

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Usage sums up the nodes' resources and subtracts what the scheduler reserves for their pods, for
// every resource of any node. Pods that have ended, or are not on a node yet, use nothing.
func Usage(nodes []corev1.Node, pods []corev1.Pod, now metav1.Time) clusterv1beta1.ResourceUsage {
	capacity := corev1.ResourceList{}
	allocatable := corev1.ResourceList{}
	for i := range nodes {
		addResources(capacity, nodes[i].Status.Capacity)
		addResources(allocatable, nodes[i].Status.Allocatable)
	}
	requested := corev1.ResourceList{}
	for i := range pods {
		if occupiesNode(&pods[i]) {
			addResources(requested, resourcehelper.PodRequests(&pods[i], resourcehelper.PodResourcesOptions{}))
			// Each pod takes one of the pods that a node can run, although it does not request that.
			addResources(requested, corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
		}
	}
	available := corev1.ResourceList{}
	for name := range allocatable {
		available[name] = leftOf(allocatable, requested, name)
	}
	return clusterv1beta1.ResourceUsage{
		Capacity: capacity, Allocatable: allocatable, Available: available, ObservationTime: now,
	}
}

// LargestPod returns how much of each resource a single pod can request at most so that it still fits on a node. Nodes that take no
// pods do not count; taints do not matter, as a pod may tolerate them.
func LargestPod(nodes []corev1.Node, pods []corev1.Pod) corev1.ResourceList {
	requested := map[string]corev1.ResourceList{}
	for i := range pods {
		if occupiesNode(&pods[i]) {
			on := pods[i].Spec.NodeName
			if requested[on] == nil {
				requested[on] = corev1.ResourceList{}
			}
			addResources(requested[on], resourcehelper.PodRequests(&pods[i], resourcehelper.PodResourcesOptions{}))
			addResources(requested[on], corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)})
		}
	}
	largest := corev1.ResourceList{}
	for i := range nodes {
		node := &nodes[i]
		places := leftOf(node.Status.Allocatable, requested[node.Name], corev1.ResourcePods)
		if _, limited := node.Status.Allocatable[corev1.ResourcePods]; node.Spec.Unschedulable || limited && places.Sign() == 0 {
			continue
		}
		for name := range node.Status.Allocatable {
			left := leftOf(node.Status.Allocatable, requested[node.Name], name)
			if known, has := largest[name]; !has || left.Cmp(known) > 0 {
				largest[name] = left
			}
		}
	}
	delete(largest, corev1.ResourcePods) // a pod requests none
	return largest
}

// leftOf returns what is left of a resource; zero if more of it is requested than there is.
func leftOf(allocatable, requested corev1.ResourceList, name corev1.ResourceName) resource.Quantity {
	has := allocatable[name]
	left := has.DeepCopy()
	left.Sub(requested[name])
	if left.Sign() < 0 {
		left = *resource.NewQuantity(0, has.Format)
	}
	return left
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
