package work

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// strategyOf returns how a Work is applied, with the API's defaults filled in.
func strategyOf(work *placementv1beta1.Work) placementv1beta1.ApplyStrategy {
	s := placementv1beta1.ApplyStrategy{}
	if work.Spec.ApplyStrategy != nil {
		s = *work.Spec.ApplyStrategy
	}
	if s.Type == "" {
		s.Type = placementv1beta1.ApplyStrategyTypeClientSideApply
	}
	if s.WhenToApply == "" {
		s.WhenToApply = placementv1beta1.WhenToApplyTypeAlways
	}
	if s.WhenToTakeOver == "" {
		s.WhenToTakeOver = placementv1beta1.WhenToTakeOverTypeAlways
	}
	if s.ComparisonOption == "" {
		s.ComparisonOption = placementv1beta1.ComparisonOptionTypePartialComparison
	}
	return s
}
