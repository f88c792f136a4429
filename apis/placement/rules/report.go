package rules

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReportBounds are how large what a member reports of the objects of a Work may be.
type ReportBounds struct {
	// Conditions of the Work, and of one object.
	Conditions int
	// Message is how many bytes of a message there may be.
	Message int
	// Details limits how many fields of one object are reported, Path and Value the bytes of each path and value.
	Details, Path, Value int
}

// StorableReport is what the definition of Works allows. It is generous: other agents than this
// one report values whole.
var StorableReport = ReportBounds{Conditions: 32, Message: clusterv1beta1.MaxReportedMessage, Details: 100, Path: 16384, Value: 1 << 20}

// Apply returns a report within the bounds. It changes nothing of the one given, and shares with
// it what is within them.
func (b ReportBounds) Apply(status placementv1beta1.WorkStatus) placementv1beta1.WorkStatus {
	status.Conditions = b.ApplyToConditions(status.Conditions)
	status.ManifestConditions = slices.Clone(status.ManifestConditions)
	for i := range status.ManifestConditions {
		manifest := &status.ManifestConditions[i]
		manifest.Conditions = b.ApplyToConditions(manifest.Conditions)
		if drift := manifest.DriftDetails; drift != nil {
			copied := *drift
			copied.ObservedDrifts = b.applyToDetails(drift.ObservedDrifts)
			manifest.DriftDetails = &copied
		}
		if diff := manifest.DiffDetails; diff != nil {
			copied := *diff
			copied.ObservedDiffs = b.applyToDetails(diff.ObservedDiffs)
			manifest.DiffDetails = &copied
		}
	}
	return status
}

// ApplyToConditions returns conditions within the bounds, whose messages no terminal acts on.
func (b ReportBounds) ApplyToConditions(conditions []metav1.Condition) []metav1.Condition {
	isOther := func(c metav1.Condition) bool { return showable(c.Message, b.Message) != c.Message }
	if len(conditions) <= b.Conditions && !slices.ContainsFunc(conditions, isOther) {
		return conditions
	}
	bounded := slices.Clone(conditions[:min(len(conditions), b.Conditions)])
	for i := range bounded {
		bounded[i].Message = showable(bounded[i].Message, b.Message)
	}
	return bounded
}

func (b ReportBounds) applyToDetails(details []placementv1beta1.PatchDetail) []placementv1beta1.PatchDetail {
	within := func(d placementv1beta1.PatchDetail) placementv1beta1.PatchDetail {
		d.Path, d.ValueInHub, d.ValueInMember = showable(d.Path, b.Path), showable(d.ValueInHub, b.Value), showable(d.ValueInMember, b.Value)
		return d
	}
	if len(details) <= b.Details && !slices.ContainsFunc(details, func(d placementv1beta1.PatchDetail) bool { return within(d) != d }) {
		return details
	}
	bounded := slices.Clone(details[:min(len(details), b.Details)])
	for i := range bounded {
		bounded[i] = within(bounded[i])
	}
	return bounded
}

// showable returns a text of at most that many bytes that no terminal acts on: members write reports, and kubectl shows them as
// they are.
func showable(text string, most int) string {
	return clusterv1beta1.CutText(clusterv1beta1.Printable(clusterv1beta1.CutText(text, most)), most)
}
