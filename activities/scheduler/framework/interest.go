package framework

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Interest names something about clusters that a policy looks at. A placement whose
// policy has no interest in what changed about a cluster would decide as before.
type Interest string

const (
	// Standing is whether a cluster can take anything at all.
	Standing Interest = "standing"
	// Taints are those of a cluster, all together.
	Taints Interest = "taints"
	// Health is whether a cluster is healthy, as far as the hub knows: only placements that fail over are interested.
	Health Interest = "health"
	// Replacement is by which cluster a user wants a cluster replaced; it matters to those that have the cluster.
	Replacement Interest = "replacement"
	// Presence is which clusters are in the fleet; it matters where clusters are compared
	// with each other.
	Presence Interest = "presence"
	// Outage is whether a cluster ceases to be able to take anything: only a policy that counts for how
	// long a cluster could is interested.
	Outage Interest = "outage"
	// NamespaceReports is which clusters report their namespaces: while none does, every cluster is
	// taken to have them all.
	NamespaceReports Interest = "namespace-reports"
	// Room is for how many more pods a cluster has room, as far as its last report tells.
	Room Interest = "room"
)

// Label returns the interest in a label of the cluster that is to be picked.
func Label(key string) Interest { return Interest("label/" + key) }

// LabelsIn returns the interests in the labels that a selector, which may be nil, looks at.
func LabelsIn(selector *metav1.LabelSelector) []Interest {
	if selector == nil {
		return nil
	}
	var interests []Interest
	for key := range selector.MatchLabels {
		interests = append(interests, Label(key))
	}
	for _, expression := range selector.MatchExpressions {
		interests = append(interests, Label(expression.Key))
	}
	return interests
}

// Property returns the interest in a property of the cluster that is to be picked.
func Property(name string) Interest { return Interest("property/" + name) }

// Group returns the interest in a label of any cluster, for it makes groups of clusters.
func Group(key string) Interest { return Interest(groupPrefix + key) }

const groupPrefix = "group/"

// Namespace returns the interest in whether the cluster that is to be picked has a namespace.
func Namespace(name string) Interest { return Interest("namespace/" + name) }

// OfAny reports whether the interest is in any cluster, and not only in the one to be picked.
func (i Interest) OfAny() bool {
	return i == Presence || i == NamespaceReports || strings.HasPrefix(string(i), groupPrefix)
}

// Named returns the interest in one cluster by its name.
func Named(cluster string) Interest { return Interest("cluster/" + cluster) }
