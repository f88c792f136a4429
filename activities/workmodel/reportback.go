package workmodel

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReportBack is what the Works of a placement say about reporting the status of objects;
// nil if it is not reported. It is no part of a revision: what runs is the same.
func ReportBack(placement *placementv1beta1.ClusterResourcePlacement) *placementv1beta1.ReportBackStrategy {
	strategy := placement.Spec.Strategy
	if strategy == nil || strategy.ReportBackStrategy == nil || strategy.ReportBackStrategy.Type != placementv1beta1.ReportBackStrategyTypeMirror {
		return nil
	}
	return strategy.ReportBackStrategy.DeepCopy()
}
