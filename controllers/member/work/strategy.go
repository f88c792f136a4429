package work

import (
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

const (
	diffUnsupported       = "Reporting differences (apply strategy ReportDiff) is not supported by this version of the member agent; nothing was written"
	driftUnsupported      = "Detecting drifts (whenToApply IfNotDrifted) is not supported by this version of the member agent; the manifest was not applied"
	comparisonUnsupported = "Comparing all fields (comparisonOption FullComparison) is not supported by this version of the member agent; the manifest was not applied"
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

// unsupported returns why a strategy cannot be followed, nil if it can. Refusing is better
// than overwriting what the strategy is meant to protect.
func unsupported(s placementv1beta1.ApplyStrategy) *apply.Problem {
	switch {
	case s.Type == placementv1beta1.ApplyStrategyTypeReportDiff:
		return &apply.Problem{Reason: placementv1beta1.ReasonFailedToReportDiff, Message: diffUnsupported}
	case s.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted:
		return &apply.Problem{Reason: placementv1beta1.ReasonFailedToRunDriftDetection, Message: driftUnsupported}
	case s.ComparisonOption == placementv1beta1.ComparisonOptionTypeFullComparison:
		return &apply.Problem{Reason: placementv1beta1.ReasonFailedToRunDriftDetection, Message: comparisonUnsupported}
	default:
		return nil
	}
}
