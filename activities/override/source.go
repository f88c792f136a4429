package override

import (
	"cmp"
	"slices"
	"strings"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
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
func (s Source) String() string { return s.Kind + " " + s.Ref() }

// Cluster is what overrides know of a member cluster.
type Cluster struct {
	// Name of the MemberCluster.
	Name string
	// Labels of the MemberCluster.
	Labels map[string]string
	// Values are those annotations of the MemberCluster that are there for variables.
	Values map[string]string
	// Properties are what the cluster reports, without what changes all the time, and without how its API server is reached: who may write
	// overrides in a namespace need not be allowed to read that.
	Properties map[string]string
	// Gone says that there is no MemberCluster of the name.
	Gone bool
}

// ClusterOf returns what overrides know of a member cluster.
func ClusterOf(member *clusterv1beta1.MemberCluster) Cluster {
	c := Cluster{Name: member.Name, Labels: member.Labels, Values: map[string]string{}, Properties: map[string]string{}}
	for key, value := range member.Annotations {
		if strings.HasPrefix(key, clusterv1beta1.ValueAnnotationPrefix) {
			c.Values[key] = value
		}
	}
	for name, property := range member.Status.Properties {
		isAddress := name == clusterv1beta1.ClusterEntryPointProperty || name == clusterv1beta1.ClusterCertificateAuthorityProperty
		if clusterv1beta1.IsLasting(name) && !isAddress {
			c.Properties[string(name)] = property.Value
		}
	}
	return c
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

// sortedSpecs reads snapshots and brings them into the order in which they are applied:
// ClusterResourceOverrides before ResourceOverrides, which so have the last word, and
// each kind by name.
func sortedSpecs(snapshots []placementv1beta1.OverrideSnapshotObject) []spec {
	all := make([]spec, 0, len(snapshots))
	for _, snapshot := range snapshots {
		all = append(all, specOf(snapshot))
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

func specOf(snapshot placementv1beta1.OverrideSnapshotObject) spec {
	s := spec{
		source:    SourceOf(snapshot),
		placement: snapshot.GetOverridePlacement(),
		rules:     snapshot.GetOverridePolicy().OverrideRules,
		content:   snapshot.GetOverrideHash(),
	}
	for _, selector := range snapshot.GetOverrideSelectors() {
		s.selectors = append(s.selectors, resourceOf(selector))
	}
	return s
}

// SourceOf names a snapshot.
func SourceOf(snapshot placementv1beta1.OverrideSnapshotObject) Source {
	kind := placementv1beta1.ScopeOf(snapshot).OverrideSnapshotKind().Kind
	return Source{Kind: kind, Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}
}
