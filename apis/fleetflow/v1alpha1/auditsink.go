package v1alpha1

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditSinkLabel has, on a Secret, the name of the one AuditSink that may use it.
const AuditSinkLabel = GroupName + "/audit-sink"

// AuditSinkURLAnnotation has, on a Secret with a credential, the url of the server that it is for, or what that begins with: the
// user who writes the Secret says who gets it, and not one who writes an AuditSink of the name.
const AuditSinkURLAnnotation = GroupName + "/audit-sink-url"

// Reasons of the condition Ready of an AuditSink, beside those of a MetricSource.
const (
	ReasonSinkReady   = "SinkReady" // it takes records, or nothing was to be delivered yet
	ReasonSinkRefused = "Refused"   // it refuses records, and is not called until its spec or a Secret changes
	ReasonNoFolder    = "NoFolder"  // the hub agent has no folder for files
	// ReasonFileTaken is that an older sink has the file.
	ReasonFileTaken = "FileTaken"
	// ReasonSinkNotChecked is that what it needs could not be read from the hub, and is tried again.
	ReasonSinkNotChecked = "NotChecked"
)

// PlacementOf returns the labels of the placement of a record, as GateLabels has them, and whether it is there: of one that is gone
// only its name and its namespace are known. An error says that it is not known whether it is there.
//
// +kubebuilder:object:generate=false
type PlacementOf func(record *AuditRecord) (labels map[string]string, isThere bool, err error)

// Wants reports whether a record is for the sink: one that was written since there is the sink, of a type that the filter names and of a placement
// that it selects. An error says that it is not known.
func (s *AuditSink) Wants(record *AuditRecord, of PlacementOf) (bool, error) {
	switch filter := s.Spec.Filter; {
	case record.CreationTimestamp.Time.Before(s.CreationTimestamp.Truncate(time.Second)):
		return false, nil
	case filter == nil:
		return true, nil
	case !MatchesType(filter.Types, record.Spec.Type):
		return false, nil
	default:
		return filter.selects(record, of)
	}
}

// selects reports whether the filter selects the placement of a record. One that is gone is not selected by labels that are not known any more: the
// records of another team are not for the sink.
func (f *AuditSinkFilter) selects(record *AuditRecord, of PlacementOf) (bool, error) {
	selector := f.PlacementSelector
	if selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return true, nil
	}
	if record.Spec.PlacementName == "" {
		return false, nil
	}
	seen, isThere, err := of(record)
	if err != nil {
		return false, err
	}
	return (isThere || !asksForMore(selector)) && selects(selector, seen), nil
}

// asksForMore reports whether a selector asks for labels that are not known of a placement that is gone.
func asksForMore(selector *metav1.LabelSelector) bool {
	isUnknown := func(key string) bool { return key != PlacementNameLabel && key != PlacementNamespaceLabel }
	for key := range selector.MatchLabels {
		if isUnknown(key) {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return isUnknown(e.Key) })
}

// MatchesType reports whether a type of a record is among those that are named, as approval.given, or approval.* for all that begin so. None
// name all.
func MatchesType(named []string, of AuditRecordType) bool {
	return len(named) == 0 || slices.ContainsFunc(named, func(pattern string) bool {
		group, all := strings.CutSuffix(pattern, "*")
		return pattern == string(of) || all && strings.HasPrefix(string(of), group)
	})
}

// AuditSinkKind is what a delivery to an AuditSink has as its kind.
const AuditSinkKind = "AuditSink"

// Delivery returns the delivery to a destination that is over; nil if it is not.
func (r *AuditRecord) Delivery(kind, name string) *AuditDelivery {
	for i := range r.Status.Deliveries {
		if d := &r.Status.Deliveries[i]; d.Kind == kind && d.Name == name {
			return d
		}
	}
	return nil
}
