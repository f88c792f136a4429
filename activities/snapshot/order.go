package snapshot

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kindOrder lists kinds in the order in which they can depend on each other.
// Kinds that are not listed come after all others.
var kindOrder = rank(
	"PriorityClass", "Namespace", "CustomResourceDefinition",
	"NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap",
	"StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"Service", "EndpointSlice",
	"DaemonSet", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob",
	"IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)

func rank(kinds ...string) map[string]int {
	ranks := make(map[string]int, len(kinds))
	for i, kind := range kinds {
		ranks[kind] = i
	}
	return ranks
}

// Sort brings objects into the order in which they are stored: by kind as
// dependencies ask for, then by namespace and name. The same objects always come
// out in the same order, whatever order they were listed in.
func Sort(objects []*unstructured.Unstructured) {
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			cmp.Compare(rankOf(a.GetKind()), rankOf(b.GetKind())),
			cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}

func rankOf(kind string) int {
	if rank, ok := kindOrder[kind]; ok {
		return rank
	}
	return len(kindOrder)
}
