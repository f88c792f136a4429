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
	for name, quantity := range allocatable {
		left := quantity.DeepCopy()
		left.Sub(requested[name])
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, quantity.Format)
		}
		available[name] = left
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
