package work

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// takenOver tells whether an object differs from its manifest though it is ours: that is a drift.
// Anything else is a difference.
func (o outcome) takenOver() bool {
	return o.problem == nil ||
		o.problem.Reason == placementv1beta1.ReasonFoundDrifts ||
		o.problem.Reason == placementv1beta1.ReasonFoundDriftsInDegradedMode
}

// driftDetails tells what somebody changed on an object; nil if nothing was. Last is what was said
// before: it has since when.
func driftDetails(o outcome, last *placementv1beta1.DriftDetails, now metav1.Time) *placementv1beta1.DriftDetails {
	if o.findings.Empty() {
		return nil
	}
	details := &placementv1beta1.DriftDetails{
		ObservationTime: now, FirstDriftedObservedTime: now,
		ObservedInMemberClusterGeneration: o.generation, ObservedDrifts: o.findings.Details,
	}
	if last == nil {
		return details
	}
	details.FirstDriftedObservedTime = last.FirstDriftedObservedTime
	if last.ObservedInMemberClusterGeneration == o.generation && continues(o.findings.Details, last.ObservedDrifts) {
		details.ObservationTime = last.ObservationTime
	}
	return details
}

// diffDetails tells how an object that is left alone differs; nil if it does not.
func diffDetails(o outcome, last *placementv1beta1.DiffDetails, now metav1.Time) *placementv1beta1.DiffDetails {
	if o.findings.Empty() {
		return nil
	}
	details := &placementv1beta1.DiffDetails{
		ObservationTime: now, FirstDiffedObservedTime: now, ObservedDiffs: o.findings.Details,
	}
	if o.seen != (sighting{}) {
		details.ObservedInMemberClusterGeneration = new(o.generation)
	}
	if last == nil {
		return details
	}
	details.FirstDiffedObservedTime = last.FirstDiffedObservedTime
	if equal(last.ObservedInMemberClusterGeneration, details.ObservedInMemberClusterGeneration) && continues(o.findings.Details, last.ObservedDiffs) {
		details.ObservationTime = last.ObservationTime
	}
	return details
}

// continues tells whether the same was said before, so that a report that has nothing new to say
// is not written again for its time. Of what was said before the end may have been cut off.
func continues(details, last []placementv1beta1.PatchDetail) bool {
	return len(last) == len(details) && slices.Equal(details, last) ||
		len(last) == keptDetails && len(details) > keptDetails && slices.Equal(details[:keptDetails], last)
}

func equal(a, b *int64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
