package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// firstKinds are applied before all others, in this order: objects that others live in or refer to
// come first. It is kpt's order.
var firstKinds = []schema.GroupKind{
	{Group: "", Kind: "Namespace"},
	{Group: "", Kind: "ResourceQuota"},
	{Group: "storage.k8s.io", Kind: "StorageClass"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "", Kind: "ServiceAccount"},
	{Group: "policy", Kind: "PodSecurityPolicy"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "", Kind: "ConfigMap"},
	{Group: "", Kind: "Secret"},
	{Group: "", Kind: "Service"},
	{Group: "", Kind: "LimitRange"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "CronJob"},
	{Group: "policy", Kind: "PodDisruptionBudget"},
}

// lastKinds are applied after all others, because they can block them.
var lastKinds = []schema.GroupKind{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
}

// Rank returns the position of a kind in the order of applying: lower comes first. Kinds in neither list
// share one rank, between those that come first and those that come last.
func Rank(kind schema.GroupKind) int {
	if i := slices.Index(firstKinds, kind); i >= 0 {
		return i
	}
	if i := slices.Index(lastKinds, kind); i >= 0 {
		return len(firstKinds) + 1 + i
	}
	return len(firstKinds)
}

// Waves groups items by the rank of their kind, lowest first; within a wave they keep their order.
// The items of a wave do not depend on each other and may be handled in parallel.
func Waves[T any](items []T, kindOf func(T) schema.GroupKind) [][]T {
	byRank := map[int][]T{}
	var ranks []int
	for _, item := range items {
		rank := Rank(kindOf(item))
		if _, ok := byRank[rank]; !ok {
			ranks = append(ranks, rank)
		}
		byRank[rank] = append(byRank[rank], item)
	}
	slices.Sort(ranks)
	waves := make([][]T, 0, len(ranks))
	for _, rank := range ranks {
		waves = append(waves, byRank[rank])
	}
	return waves
}

// ReversedWaves is Waves for removals: objects that were applied last are removed first.
func ReversedWaves[T any](items []T, kindOf func(T) schema.GroupKind) [][]T {
	waves := Waves(items, kindOf)
	slices.Reverse(waves)
	for _, wave := range waves {
		slices.Reverse(wave)
	}
	return waves
}
