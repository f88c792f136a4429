package override

import (
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Placement is a placement as overrides refer to it.
type Placement struct {
	// Namespace of a ResourcePlacement; empty for a ClusterResourcePlacement.
	Namespace string
	Name      string
}

// PlacementOf returns a placement of either kind as overrides refer to it.
func PlacementOf(placement placementv1beta1.PlacementObject) Placement {
	return Placement{Namespace: placement.GetNamespace(), Name: placement.GetName()}
}

// Applicable are the override snapshots that apply to a placement on one cluster, in the
// order in which they are applied.
type Applicable struct {
	ClusterResourceOverrideSnapshots []string
	ResourceOverrideSnapshots        []placementv1beta1.NamespacedName
}

// Idle is a selector of an override that was made for the placement but selects nothing of
// what it places.
type Idle struct {
	Override Source
	// Selector is the position among the selectors of the override.
	Selector int
	// Resource is what the selector asks for.
	Resource placementv1beta1.ResourceIdentifier
}

// Matcher knows the overrides that select some of the resources of one placement.
type Matcher struct {
	overrides []match
	idle      []Idle
}

// match is an override with the clusters of each of its rules.
type match struct {
	source Source
	// made says that the override refers to a placement.
	made  bool
	rules []clusters
	// content is the hash of the override, asked is what its variables stand for.
	content []byte
	asked   []asked
}

// NewMatcher picks, of the latest snapshots of the overrides that are valid, those that concern the placement and select some of
// its resources. Resources are all that it places: what is placed with a Namespace and what is in envelopes, too.
func NewMatcher(
	placement Placement, resources []placementv1beta1.ResourceIdentifier,
	snapshots []placementv1beta1.OverrideSnapshotObject,
) *Matcher {
	var candidates []spec
	for _, candidate := range sortedSpecs(snapshots) {
		if Concerns(candidate.placement, candidate.source.Namespace, placement) {
			candidates = append(candidates, candidate)
		}
	}
	selected := selectedOf(candidates, resources)
	m := &Matcher{}
	for i, candidate := range candidates {
		if len(selected[i]) > 0 {
			m.overrides = append(m.overrides, newMatch(candidate))
		}
		if candidate.placement == nil {
			continue // it may be meant for others
		}
		for j, selector := range candidate.selectors {
			if !selected[i][j] {
				m.idle = append(m.idle, Idle{Override: candidate.source, Selector: j, Resource: selector.toIdentifier()})
			}
		}
	}
	return m
}

// SelectsSome reports whether an override selects some of these resources.
func SelectsSome(o placementv1beta1.OverrideObject, resources []placementv1beta1.ResourceIdentifier) bool {
	var s spec
	for _, selector := range o.GetOverrideSelectors() {
		s.selectors = append(s.selectors, resourceOf(selector))
	}
	return len(selectedOf([]spec{s}, resources)[0]) > 0
}

// selectedOf returns, for each override, which of its selectors select some resource.
func selectedOf(overrides []spec, resources []placementv1beta1.ResourceIdentifier) []map[int]bool {
	selected := make([]map[int]bool, len(overrides))
	found := newIndex(overrides)
	var mentions []mention
	for _, id := range resources {
		mentions = found.findMentions(mentions[:0], resourceOf(id))
		for _, m := range mentions {
			if selected[m.override] == nil {
				selected[m.override] = map[int]bool{}
			}
			selected[m.override][m.selector] = true
		}
	}
	return selected
}

func newMatch(s spec) match {
	m := match{source: s.source, made: s.placement != nil, content: s.content, asked: s.askedValues()}
	for _, rule := range s.rules {
		m.rules = append(m.rules, newClusters(rule.ClusterSelector))
	}
	return m
}

// Concerns reports whether an override, by the placement that it refers to and its namespace,
// is for a placement.
func Concerns(ref *placementv1beta1.PlacementRef, namespace string, placement Placement) bool {
	return ref == nil || Referred(ref, namespace) == placement
}

// Referred returns the placement that an override in a namespace, or in none, refers to. A reference that leaves out its
// scope is to a ClusterResourcePlacement; one from no namespace to a ResourcePlacement is to none.
func Referred(ref *placementv1beta1.PlacementRef, namespace string) Placement {
	switch {
	case ref.Scope != placementv1beta1.NamespaceScoped:
		return Placement{Name: ref.Name}
	case namespace == "":
		return Placement{}
	default:
		return Placement{Namespace: namespace, Name: ref.Name}
	}
}

// Applicable returns the snapshots that have a rule for the cluster.
func (m *Matcher) Applicable(cluster Cluster) Applicable {
	var applicable Applicable
	for i := range m.overrides {
		override := &m.overrides[i]
		switch {
		case !override.hasRuleFor(cluster):
		case override.source.Kind == clusterKind:
			applicable.ClusterResourceOverrideSnapshots = append(applicable.ClusterResourceOverrideSnapshots, override.source.Name)
		default:
			applicable.ResourceOverrideSnapshots = append(applicable.ResourceOverrideSnapshots,
				placementv1beta1.NamespacedName{Namespace: override.source.Namespace, Name: override.source.Name})
		}
	}
	return applicable
}

func (m *match) hasRuleFor(cluster Cluster) bool {
	return slices.ContainsFunc(m.rules, func(rule clusters) bool { return rule.includesCluster(cluster) })
}

// Idle returns the selectors, of overrides that refer to the placement, that select nothing
// of it: misspelt, or too early.
func (m *Matcher) Idle() []Idle { return m.idle }
