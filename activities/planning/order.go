package planning

import (
	"slices"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// CompileOrder reads an order; without one, clusters go by name.
func CompileOrder(given *placementv1beta1.ClusterOrder) rollout.Order {
	var order rollout.Order
	if given == nil {
		return order
	}
	if len(given.Scatter) > 0 {
		order.Scatter = given.Scatter[0].Key
	}
	if given.Priority == nil {
		return order
	}
	for _, w := range given.Priority.Weights {
		order.Weights = append(order.Weights, rollout.Weight{Weight: int(w.Weight), Match: matchesTerms(w.ClusterSelector.ClusterSelectorTerms)})
	}
	for _, label := range given.Priority.Labels {
		order.Labels = append(order.Labels, rollout.OrderLabel{Key: label.Key, Ascending: label.Order == placementv1beta1.Ascending})
	}
	return order
}

// MaxInFlightPerValue returns how many clusters with one value of the label that an order scatters by may be
// updated at the same time; 0 if it does not say.
func MaxInFlightPerValue(given *placementv1beta1.ClusterOrder) int {
	if given == nil || len(given.Scatter) == 0 || given.Scatter[0].MaxInFlight == nil {
		return 0
	}
	return int(*given.Scatter[0].MaxInFlight)
}

// matchesTerms matches the clusters that one of the terms matches; without terms, all. A term whose selector is invalid matches
// none.
func matchesTerms(terms []placementv1beta1.ClusterLabelTerm) func(rollout.Member) bool {
	var matchers []func(string, map[string]string) bool
	for _, term := range terms {
		if matches, err := rules.TermMatcher(term); err == nil {
			matchers = append(matchers, matches)
		}
	}
	return func(m rollout.Member) bool {
		return len(terms) == 0 || slices.ContainsFunc(matchers, func(matches func(string, map[string]string) bool) bool {
			return matches(m.Name,
				m.Labels)
		})
	}
}
