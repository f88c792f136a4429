package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// ReportBounds are how large what a member reports of the objects of a Work may be.
//
// +kubebuilder:object:generate=false
type ReportBounds struct {
	// Conditions of the Work, and of one object.
	Conditions int
	// Message is how many bytes of a message there may be.
	Message int
	// Details is how many fields of one object may be told of, Path and Value how many bytes of
	// where one is and of what it has.
	Details, Path, Value int
}

// StorableReport is what the definition of Works allows. It is generous: other agents than this
// one report values whole.
var StorableReport = ReportBounds{Conditions: 32, Message: clusterv1beta1.MaxReportedMessage, Details: 100, Path: 16384, Value: 1 << 20}

// Apply returns a report within the bounds. It changes nothing of the one given, and shares with
// it what is within them.
func (b ReportBounds) Apply(status WorkStatus) WorkStatus {
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

// ApplyToConditions returns conditions within the bounds.
func (b ReportBounds) ApplyToConditions(conditions []metav1.Condition) []metav1.Condition {
	isLong := func(c metav1.Condition) bool { return len(c.Message) > b.Message }
	if len(conditions) <= b.Conditions && !slices.ContainsFunc(conditions, isLong) {
		return conditions
	}
	bounded := slices.Clone(conditions[:min(len(conditions), b.Conditions)])
	for i := range bounded {
		bounded[i].Message = clusterv1beta1.CutText(bounded[i].Message, b.Message)
	}
	return bounded
}

func (b ReportBounds) applyToDetails(details []PatchDetail) []PatchDetail {
	isLong := func(d PatchDetail) bool {
		return len(d.Path) > b.Path || len(d.ValueInHub) > b.Value || len(d.ValueInMember) > b.Value
	}
	if len(details) <= b.Details && !slices.ContainsFunc(details, isLong) {
		return details
	}
	bounded := slices.Clone(details[:min(len(details), b.Details)])
	for i := range bounded {
		d := &bounded[i]
		d.Path, d.ValueInHub, d.ValueInMember = clusterv1beta1.CutText(d.Path, b.Path), clusterv1beta1.CutText(d.ValueInHub, b.Value), clusterv1beta1.CutText(d.ValueInMember, b.Value)
	}
	return bounded
}
