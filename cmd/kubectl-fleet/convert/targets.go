package convert

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Limits of the API.
const (
	maxNames     = 100
	maxTerms     = 10
	maxSelectors = 100
	maxRules     = 20
	maxPatches   = 20
	maxDivisions = 20
	maxName      = 63
	// maxStateRules is of how many values of a status a failover has labels.
	maxStateRules = 10
)

// targets are the clusters that KubeFed places an object on: those of the names, if there are any, that all selectors match.
type targets struct {
	byName    bool
	names     []string
	selectors []metav1.LabelSelector
}

// nowhere is an object without a placement.
var nowhere = targets{byName: true}

func (t targets) isNowhere() bool { return t.byName && len(t.names) == 0 }

func (t targets) isEverywhere() bool { return !t.byName && len(t.selectors) == 0 }

// equal reports whether both are the same clusters.
func (t targets) equal(other targets) bool {
	return t.byName == other.byName && slices.Equal(t.names, other.names) &&
		slices.EqualFunc(t.selectors, other.selectors, func(a, b metav1.LabelSelector) bool { return reflect.DeepEqual(a, b) })
}

// intersect returns the clusters of both.
func (t targets) intersect(other targets) targets {
	both := targets{byName: t.byName || other.byName}
	switch {
	case t.byName && other.byName:
		both.names = slices.DeleteFunc(slices.Clone(t.names), func(name string) bool { return !slices.Contains(other.names, name) })
	case t.byName:
		both.names = t.names
	default:
		both.names = other.names
	}
	for _, selector := range slices.Concat(t.selectors, other.selectors) {
		if !slices.ContainsFunc(both.selectors, func(s metav1.LabelSelector) bool { return reflect.DeepEqual(s, selector) }) {
			both.selectors = append(both.selectors, selector)
		}
	}
	if both.isNowhere() {
		return nowhere
	}
	return both
}

// policy picks the clusters. It fails to if there are more names than it can have.
func (t targets) policy() (*placementv1beta1.PlacementPolicy, bool) {
	switch {
	case t.isNowhere():
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: ptr.To[int32](0)}, true
	case t.byName && len(t.selectors) == 0 && len(t.names) <= maxNames:
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: t.names}, true
	case t.isEverywhere():
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}, true
	}
	var terms []placementv1beta1.ClusterSelectorTerm
	names := [][]string{nil}
	if t.byName {
		names = slices.Collect(slices.Chunk(t.names, maxNames))
	}
	for _, some := range names {
		selectors := t.selectors
		if t.byName {
			selectors = append(slices.Clip(selectors), *clusterv1beta1.SelectNames(some...))
		}
		terms = append(terms, placementv1beta1.ClusterSelectorTerm{LabelSelector: mergeSelectors(selectors)})
	}
	return requireTerms(terms), len(terms) <= maxTerms
}

// requireTerms picks all clusters that one of the terms matches.
func requireTerms(terms []placementv1beta1.ClusterSelectorTerm) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAllPlacementType,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms},
		}},
	}
}

// mergeSelectors returns the selector of what all of them match. Labels of which two want different values become expressions.
func mergeSelectors(selectors []metav1.LabelSelector) *metav1.LabelSelector {
	merged := &metav1.LabelSelector{}
	for _, selector := range selectors {
		for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
			value := selector.MatchLabels[key]
			if other, there := merged.MatchLabels[key]; there && other != value {
				merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value},
				})
				continue
			}
			if merged.MatchLabels == nil {
				merged.MatchLabels = map[string]string{}
			}
			merged.MatchLabels[key] = value
		}
		merged.MatchExpressions = append(merged.MatchExpressions, selector.MatchExpressions...)
	}
	return merged
}

// namedClusters selects clusters by name, in terms of as many names as one may have.
func namedClusters(names []string) placementv1beta1.ClusterSelector {
	var terms []placementv1beta1.ClusterSelectorTerm
	for some := range slices.Chunk(names, maxNames) {
		terms = append(terms, placementv1beta1.ClusterSelectorTerm{LabelSelector: clusterv1beta1.SelectNames(some...)})
	}
	return placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms}
}

// maxShareTerms is how many terms an entry of a division can have.
const maxShareTerms = 2

// sharesFor returns the entries that give clusters a share: as many as their terms need.
func sharesFor(terms []placementv1beta1.ClusterSelectorTerm, share placementv1beta1.ClusterReplicas) []placementv1beta1.ClusterReplicas {
	if len(terms) == 0 || matchesAll(terms) {
		share.ClusterSelector.ClusterSelectorTerms = []placementv1beta1.ClusterLabelTerm{}
		return []placementv1beta1.ClusterReplicas{share}
	}
	var shares []placementv1beta1.ClusterReplicas
	for some := range slices.Chunk(terms, maxShareTerms) {
		one := share
		for _, term := range some {
			one.ClusterSelector.ClusterSelectorTerms = append(one.ClusterSelector.ClusterSelectorTerms, shareTerm(term))
		}
		shares = append(shares, one)
	}
	return shares
}

// shareTerm returns the term of an entry of a division, which has a field of its own for names.
func shareTerm(term placementv1beta1.ClusterSelectorTerm) placementv1beta1.ClusterLabelTerm {
	if names := namesIn([]placementv1beta1.ClusterSelectorTerm{term}); names != nil {
		return placementv1beta1.ClusterLabelTerm{ClusterNameFilter: placementv1beta1.ClusterNameFilter{ClusterNames: names}}
	}
	return placementv1beta1.ClusterLabelTerm{LabelSelector: term.LabelSelector}
}

// contentKey tells values apart by their content.
func contentKey(values ...any) string {
	data, err := json.Marshal(values)
	if err != nil {
		return err.Error() // of values that were decoded from JSON there is none
	}
	return string(data)
}

// joinedName joins a kind and a name to the name of an object, no longer than names may be.
func joinedName(kind, name string) string {
	text := strings.NewReplacer(".", "-", ":", "-").Replace(strings.ToLower(kind + "-" + name))
	if text = strings.Trim(text, "-"); len(text) <= maxName {
		return text
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text)) // never fails
	return fmt.Sprintf("%s-%08x", strings.TrimRight(text[:maxName-9], "-"), hash.Sum32())
}
