package v1alpha1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxDeliveries is of how many destinations the status of a record tells.
const MaxDeliveries = 64

// ReasonTooManyDestinations is that of the condition Ready of a sink, or of a rule, of which the records wait: there are older destinations, as many
// as are served.
const ReasonTooManyDestinations = "TooManyDestinations"

// TooManyDestinations says what ReasonTooManyDestinations means.
func TooManyDestinations() string {
	return fmt.Sprintf("Records go to the %d oldest destinations, each a sink or a rule with one of its channels, and there are more", MaxDeliveries)
}

// AuditSubjectLabel has, on a record, the UID of its subject.
const AuditSubjectLabel = GroupName + "/audit-subject-uid"

// AuditTypeLabel has, on a record, spec.type.
const AuditTypeLabel = GroupName + "/audit-type"

// AuditKindLabel has, on a record of another object than an update run, spec.subjectRef.kind: by it the hub agent finds records of objects
// that are gone.
const AuditKindLabel = GroupName + "/audit-kind"

// AuditGenerationAnnotation has, on such a record, the latest generation of the object of which it or one before it tells what was asked for.
const AuditGenerationAnnotation = GroupName + "/audit-generation"

// AuditSequenceAnnotation has, on a record, spec.sequence: who keeps only the metadata of records in memory deletes the first ones first.
const AuditSequenceAnnotation = GroupName + "/audit-sequence"

// AuditIDAnnotation has, on a record, spec.id: who keeps only the metadata of records in memory knows by it which facts are recorded.
const AuditIDAnnotation = GroupName + "/audit-id"

// RecordID returns the ID of a fact about a subject; which tells it from others of its type.
func RecordID(subject string, kind AuditRecordType, which ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{subject, string(kind)}, which...), "|")))
	return hex.EncodeToString(sum[:])
}

// RecordNameOf returns the name of the record of a fact that was written before records were named by their place in a chain.
func RecordNameOf(id string) string { return "r-" + id[:min(len(id), 32)] }

// RecordName returns the name of the record at one place in the chain of a subject. As no two objects have one name, two agents that write
// at the same time cannot both take the place.
func RecordName(subject string, sequence int64) string {
	return fmt.Sprintf("r-%s-%04d", strings.ToLower(subject), sequence)
}

// Digest sums up the record, as the next record of its subject has it.
func (r *AuditRecord) Digest() string {
	spec := r.Spec
	spec.Time.Time = spec.Time.UTC()
	text, err := json.Marshal(spec)
	if err != nil {
		return "" // it has nothing but texts, a number and a time
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// CloudEvent is an event of CloudEvents 1.0, as JSON.
//
// +kubebuilder:object:generate=false
type CloudEvent struct {
	// SpecVersion is 1.0.
	// +required
	// +kubebuilder:validation:MaxLength=8
	SpecVersion string `json:"specversion"`
	// ID is that of the record: a receiver drops an event whose ID it has.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// Source names the object that the record is about.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Source string `json:"source"`
	// Type is io.fleetflow. and the type of the record.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type"`
	// Subject is the UID of the object.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Subject string `json:"subject"`
	// Time of the fact.
	// +required
	Time metav1.Time `json:"time"`
	// DataContentType is that of data.
	// +required
	// +kubebuilder:validation:MaxLength=64
	DataContentType string `json:"datacontenttype"`
	// Data is the record.
	// +required
	Data AuditRecordSpec `json:"data"`
}

// CloudEvent returns the event of a record: its ID, and so the event's, is the same however often it is sent.
func (s *AuditRecordSpec) CloudEvent() CloudEvent {
	source := []string{"", s.SubjectRef.APIVersion, s.SubjectRef.Kind}
	if s.SubjectRef.Namespace != "" {
		source = append(source, s.SubjectRef.Namespace)
	}
	return CloudEvent{
		SpecVersion: "1.0", ID: s.ID, Source: strings.Join(append(source, s.SubjectRef.Name), "/"), Type: "io.fleetflow." + string(s.Type),
		Subject: s.SubjectRef.UID, Time: s.Time, DataContentType: "application/json", Data: *s,
	}
}

// AuditedFleet stands for the name of a user in what the fleet has done by itself.
const AuditedFleet = "fleet"

// Actor names who has done what a record tells, for people.
func (r *AuditRecord) Actor() string {
	switch actor := r.Spec.Actor; {
	case actor == nil:
		return AuditedFleet
	case actor.Username == "":
		return Unverified
	case !actor.Verified:
		return actor.Username + " (not verified)"
	default:
		return actor.Username
	}
}

// SortRecords orders records of one subject as they were written.
func SortRecords(records []AuditRecord) {
	slices.SortFunc(records, func(a, b AuditRecord) int {
		return cmp.Or(cmp.Compare(a.Spec.Sequence, b.Spec.Sequence), strings.Compare(a.Name, b.Name))
	})
}

// AuditChain is what a look at all records of one subject has found.
//
// +kubebuilder:object:generate=false
type AuditChain struct {
	// Subject is the object that they are about.
	// +required
	Subject AuditSubjectReference `json:"subject"`
	// Records is how many there are.
	// +required
	Records int64 `json:"records"`
	// First is the sequence of the first one. Records before it were deleted after their time.
	// +required
	First int64 `json:"first"`
	// Last is the sequence of the last one.
	// +required
	Last int64 `json:"last"`
	// Digest is that of the last record. Kept elsewhere, it shows later whether the last records were changed or are missing.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
	// Breaks say what is wrong; there are none in a chain that is whole.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20000
	// +kubebuilder:validation:items:MaxLength=1024
	Breaks []string `json:"breaks,omitempty"`
}

// VerifyRecords looks for records of one subject that are missing, were changed or were added: records says in which order they
// stand. What is before the first record, and what was behind the last, it cannot know.
func VerifyRecords(records []AuditRecord) AuditChain {
	if len(records) == 0 {
		return AuditChain{}
	}
	records = slices.Clone(records)
	SortRecords(records)
	first := &records[0]
	last := &records[len(records)-1]
	chain := AuditChain{
		Subject: last.Spec.SubjectRef, Records: int64(len(records)), First: first.Spec.Sequence, Last: last.Spec.Sequence, Digest: last.Digest(),
	}
	for i := range records {
		record := &records[i]
		if named := RecordName(record.Spec.SubjectRef.UID, record.Spec.Sequence); record.Name != named && record.Name != RecordNameOf(record.Spec.ID) {
			chain.breaks("record %d (%s) has the name of another: its own is %s", record.Spec.Sequence, record.Name, named)
		}
		if i == 0 {
			if record.Spec.Sequence == 1 && record.Spec.Previous != "" {
				chain.breaks("record 1 (%s) is the first, and names one before it", record.Name)
			}
			continue
		}
		chain.follow(&records[i-1], record)
	}
	return chain
}

// follow compares a record with the one before it.
func (c *AuditChain) follow(before, record *AuditRecord) {
	switch at := record.Spec.Sequence; {
	case at == before.Spec.Sequence:
		c.breaks("there are two records %d: %s and %s", at, before.Name, record.Name)
	case at > before.Spec.Sequence+2:
		c.breaks("records %d to %d are missing", before.Spec.Sequence+1, at-1)
	case at > before.Spec.Sequence+1:
		c.breaks("record %d is missing", at-1)
	case record.Spec.Previous != before.Digest():
		c.breaks("record %d (%s) is not as it was when record %d was written", before.Spec.Sequence, before.Name, at)
	}
}

func (c *AuditChain) breaks(format string, args ...any) {
	c.Breaks = append(c.Breaks, fmt.Sprintf(format, args...))
}

// PlacementScopeKey is what the data of a record has where the placement is not in the namespace of the subject: Cluster, of an override in a
// namespace for a ClusterResourcePlacement.
const PlacementScopeKey = "placementScope"

// PlacementNamespace returns the namespace of the record's placement; none for a ClusterResourcePlacement.
func (r *AuditRecord) PlacementNamespace() string {
	if r.Spec.Data[PlacementScopeKey] != "" {
		return ""
	}
	return r.Spec.SubjectRef.Namespace
}
