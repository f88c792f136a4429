package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOrder lists kinds in KubeFleet's order, which goes into the hash of a snapshot. Kinds that are not listed come after all
// others. It says nothing of the order in which objects are applied.
var kindOrder = rankKinds(
	"PriorityClass", "Namespace",
	"NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap",
	"StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CustomResourceDefinition",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob",
	"IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)

// envelopeOrder is the order of the objects in an envelope, of which no hash is stated.
var envelopeOrder = rankKinds(
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

// place is where an object belongs: by its rank, then by texts.
type place struct {
	rank  int
	texts [4]string
}

// placeOf returns where KubeFleet puts an object. Kinds without a rank go by group and version before they go by kind.
func placeOf(kind, apiVersion, namespace, name string) place {
	rank, ranked := kindOrder[kind]
	if !ranked {
		rank = len(kindOrder)
		apiVersion = schema.FromAPIVersionAndKind(apiVersion, kind).String()
	}
	return place{rank, [4]string{apiVersion, namespace + "/" + name}}
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), slices.Compare(a.texts[:], b.texts[:]))
}

// Sort brings the objects of an envelope into the order in which they are stored: by kind as
// dependencies ask for, then by namespace and name. The same objects always come
// out in the same order, whatever order they were listed in.
func Sort(objects []*unstructured.Unstructured) {
	sortByPlace(objects, func(o **unstructured.Unstructured) place {
		rank, ranked := envelopeOrder[(*o).GetKind()]
		if !ranked {
			rank = len(envelopeOrder)
		}
		return place{rank, [4]string{(*o).GetKind(), (*o).GetAPIVersion(), (*o).GetNamespace(), (*o).GetName()}}
	})
}

// InOrder returns manifests in the order that they have as the content of a snapshot.
func InOrder(manifests [][]byte) ([][]byte, error) {
	type manifest struct {
		metav1.PartialObjectMetadata
		raw []byte
	}
	all := make([]manifest, len(manifests))
	for i, raw := range manifests {
		if err := json.Unmarshal(raw, &all[i].PartialObjectMetadata); err != nil {
			return nil, fmt.Errorf("decoding a stored object: %w", err)
		}
		all[i].raw = raw
	}
	sortByPlace(all, func(m *manifest) place { return placeOf(m.Kind, m.APIVersion, m.Namespace, m.Name) })
	ordered := make([][]byte, len(all))
	for i := range all {
		ordered[i] = all[i].raw
	}
	return ordered, nil
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
