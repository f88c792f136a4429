package override

import (
	"cmp"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	clusterKind    = "ClusterResourceOverrideSnapshot"
	namespacedKind = "ResourceOverrideSnapshot"
)

// Source is the override snapshot that something comes from.
type Source struct {
	// Kind is ClusterResourceOverrideSnapshot or ResourceOverrideSnapshot.
	Kind string
	// Namespace is empty for a ClusterResourceOverrideSnapshot.
	Namespace string
	Name      string
}

// String names the snapshot in a message.
func (s Source) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Cluster is what overrides know of a member cluster.
type Cluster struct {
	// Name of the MemberCluster.
	Name string
	// Labels of the MemberCluster.
	Labels map[string]string
}

// spec is what both kinds of override have in common.
type spec struct {
	source    Source
	placement *placementv1beta1.PlacementRef
	selectors []resource
	rules     []placementv1beta1.OverrideRule
	// content is the hash of the override.
	content []byte
}

// specs reads snapshots of both kinds and brings them into the order in which they are
// applied: ClusterResourceOverrides before ResourceOverrides, which so have the last word,
// and each kind by name.
func specs(clusterWide []placementv1beta1.ClusterResourceOverrideSnapshot, namespaced []placementv1beta1.ResourceOverrideSnapshot) []spec {
	all := make([]spec, 0, len(clusterWide)+len(namespaced))
	for i := range clusterWide {
		all = append(all, clusterSpec(&clusterWide[i]))
	}
	for i := range namespaced {
		all = append(all, namespacedSpec(&namespaced[i]))
	}
	slices.SortFunc(all, func(a, b spec) int {
		return cmp.Or(
			cmp.Compare(a.source.Kind, b.source.Kind), // Cluster… comes before Resource…
			cmp.Compare(a.source.Namespace, b.source.Namespace),
			cmp.Compare(a.source.Name, b.source.Name),
		)
	})
	return all
}

func clusterSpec(snapshot *placementv1beta1.ClusterResourceOverrideSnapshot) spec {
	from := &snapshot.Spec.OverrideSpec
	s := spec{
		source:    Source{Kind: clusterKind, Name: snapshot.Name},
		placement: from.Placement,
		rules:     from.Policy.OverrideRules,
		content:   snapshot.Spec.OverrideHash,
	}
	for _, selector := range from.ClusterResourceSelectors {
		s.selectors = append(s.selectors, resource{
			object:  object{group: selector.Group, kind: selector.Kind, name: selector.Name},
			version: selector.Version,
		})
	}
	return s
}

func namespacedSpec(snapshot *placementv1beta1.ResourceOverrideSnapshot) spec {
	from := &snapshot.Spec.OverrideSpec
	s := spec{
		source:    Source{Kind: namespacedKind, Namespace: snapshot.Namespace, Name: snapshot.Name},
		placement: from.Placement,
		rules:     from.Policy.OverrideRules,
		content:   snapshot.Spec.OverrideHash,
	}
	for _, selector := range from.ResourceSelectors {
		s.selectors = append(s.selectors, resource{
			object:  object{group: selector.Group, kind: selector.Kind, namespace: snapshot.Namespace, name: selector.Name},
			version: selector.Version,
		})
	}
	return s
}
