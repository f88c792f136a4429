package work

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// isDrift reports whether the differences of an object are drifts: the AppliedWork owns the object.
// Without that they are diffs.
func (o outcome) isDrift() bool {
	return o.problem == nil ||
		o.problem.Reason == placementv1beta1.ReasonFoundDrifts ||
		o.problem.Reason == placementv1beta1.ReasonFoundDriftsInDegradedMode
}

// driftDetails describes which fields of an object other clients changed; nil if there are none.
// The last details say since when the object has drifted.
func driftDetails(o outcome, last *placementv1beta1.DriftDetails, now metav1.Time) *placementv1beta1.DriftDetails {
	drifts := o.findings.Details
	if len(drifts) == 0 {
		drifts = o.differences.Details // what the cluster made of it is no less of a drift
	}
	if len(drifts) == 0 {
		return nil
	}
	details := &placementv1beta1.DriftDetails{
		ObservationTime: now, FirstDriftedObservedTime: now,
		ObservedInMemberClusterGeneration: o.generation, ObservedDrifts: drifts,
	}
	if last == nil {
		return details
	}
	details.FirstDriftedObservedTime = last.FirstDriftedObservedTime
	if last.ObservedInMemberClusterGeneration == o.generation && isSameDetails(drifts, last.ObservedDrifts) {
		details.ObservationTime = last.ObservationTime
	}
	return details
}

// diffDetails describes how an object that is not applied differs from its manifest; nil if it does
// not.
func diffDetails(o outcome, last *placementv1beta1.DiffDetails, now metav1.Time) *placementv1beta1.DiffDetails {
	if o.findings.Empty() {
		return nil
	}
	details := &placementv1beta1.DiffDetails{
		ObservationTime: now, FirstDiffedObservedTime: now, ObservedDiffs: o.findings.Details,
	}
	if o.version != (objectVersion{}) {
		details.ObservedInMemberClusterGeneration = new(o.generation)
	}
	if last == nil {
		return details
	}
	details.FirstDiffedObservedTime = last.FirstDiffedObservedTime
	if ptr.Equal(last.ObservedInMemberClusterGeneration, details.ObservedInMemberClusterGeneration) &&
		isSameDetails(o.findings.Details, last.ObservedDiffs) {
		details.ObservationTime = last.ObservationTime
	}
	return details
}

// isSameDetails reports whether the last report had the same details, so that no status is written
// only for a new observation time. The last report may have been cut to its first details.
func isSameDetails(details, last []placementv1beta1.PatchDetail) bool {
	return len(last) == len(details) && slices.Equal(details, last) ||
		len(last) == maxKeptDetails && len(details) > maxKeptDetails && slices.Equal(details[:maxKeptDetails], last)
}
