package membership

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// WatchPods starts the cache of pods with the manager, so that the first report does not have to
// wait for it.
func WatchPods(mgr ctrl.Manager) error {
	if _, err := mgr.GetCache().GetInformer(context.Background(), &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

// StripNode keeps only the fields of a node that usage and location are computed from.
func StripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Node{
		ObjectMeta: keepIdentity(node.ObjectMeta),
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, ProviderID: providerOf(node.Spec.ProviderID)},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone} {
		if value, has := node.Labels[key]; has {
			metav1.SetMetaDataLabel(&slim.ObjectMeta, key, value)
		}
	}
	return slim, nil
}

// StripPod keeps only the fields of a pod that usage is computed from.
func StripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Pod{
		ObjectMeta: keepIdentity(pod.ObjectMeta),
		Spec: corev1.PodSpec{
			NodeName:       pod.Spec.NodeName,
			Containers:     keepRequests(pod.Spec.Containers),
			InitContainers: keepRequests(pod.Spec.InitContainers),
			Overhead:       pod.Spec.Overhead,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if whole := pod.Spec.Resources; whole != nil {
		slim.Spec.Resources = &corev1.ResourceRequirements{Requests: whole.Requests}
	}
	return slim, nil
}

func keepIdentity(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
	}
}

func keepRequests(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		out = append(out, corev1.Container{
			RestartPolicy: containers[i].RestartPolicy,
			Resources:     corev1.ResourceRequirements{Requests: containers[i].Resources.Requests},
		})
	}
	return out
}
