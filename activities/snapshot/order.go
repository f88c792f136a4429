package snapshot

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kindOrder lists kinds in the order in which they can depend on each other.
// Kinds that are not listed come after all others.
var kindOrder = rankKinds(
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

func rankKinds(kinds ...string) map[string]int {
	ranks := make(map[string]int, len(kinds))
	for i, kind := range kinds {
		ranks[kind] = i
	}
	return ranks
}

// place is where an object belongs.
type place struct {
	rank                              int
	kind, apiVersion, namespace, name string
}

func placeOf(kind, apiVersion, namespace, name string) place {
	return place{rankOf(kind), kind, apiVersion, namespace, name}
}

func comparePlaces(a, b place) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank), cmp.Compare(a.kind, b.kind), cmp.Compare(a.apiVersion, b.apiVersion),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name),
	)
}

// Sort brings objects into the order in which they are stored: by kind as
// dependencies ask for, then by namespace and name. The same objects always come
// out in the same order, whatever order they were listed in.
func Sort(objects []*unstructured.Unstructured) {
	sortByPlace(objects, func(o **unstructured.Unstructured) place {
		return placeOf((*o).GetKind(), (*o).GetAPIVersion(), (*o).GetNamespace(), (*o).GetName())
	})
}

// sortByPlace asks for the place of each only once. What has the same place stays in its order.
func sortByPlace[T any](all []T, tell func(*T) place) {
	type placed struct {
		place
		value T
	}
	sorted := make([]placed, len(all))
	for i := range all {
		sorted[i] = placed{tell(&all[i]), all[i]}
	}
	slices.SortStableFunc(sorted, func(a, b placed) int { return comparePlaces(a.place, b.place) })
	for i := range sorted {
		all[i] = sorted[i].value
	}
}

func rankOf(kind string) int {
	if rank, ok := kindOrder[kind]; ok {
		return rank
	}
	return len(kindOrder)
}
