package v1alpha1

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NotificationRule says which AuditRecords are told to people, and in which NotificationChannels. Records that were there before the rule
// was are not told.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=nrule,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Channels",type=string,JSONPath=`.spec.channelRefs[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name has more than 63 characters, and the status of records has it with the name of a channel: choose a shorter name",reason=FieldValueInvalid,fieldPath=".metadata"
type NotificationRule struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is told, and where.
	// +required
	Spec NotificationRuleSpec `json:"spec"`

	// Status says whether the rule can be followed.
	// +optional
	Status NotificationRuleStatus `json:"status,omitempty"`
}

// NotificationRuleSpec says what is told, and where.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.remind) || self.types.exists(t, t in ["approval.requested", "approval.*"])`,message="remind is of approvals that wait: types needs approval.requested",reason=FieldValueInvalid,fieldPath=".remind"
type NotificationRuleSpec struct {
	// Types are those of the records that are told, such as approval.requested, or approval.* for all that begin so. A rule
	// with run.held or run.stopped tells run.released or run.resumed, too.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^(placement|snapshot|run|stage|cluster|budget|rollback|approval|analysis|hold|exemption|window|eviction|override|member|config)[.]([*]|[a-z][A-Za-z]*)$`
	Types []string `json:"types"`

	// PlacementSelector is matched against the labels of placements: records of those that match are told. Without it, and if it is empty,
	// those of every placement are. Every placement has fleetflow.io/placement-name and fleetflow.io/placement-namespace here, and one
	// that is gone has no others.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	PlacementSelector *metav1.LabelSelector `json:"placementSelector,omitempty"`

	// When is an expression in CEL about the record, such as record.stageName == "prod": records for which it is true are told. One for
	// which it gives an error is told, too. It sees the fields of the record's spec: type, time, placementName, updateRunName,
	// stageName, namespace, actor (username, verified, channel), comment, message, planHash, and data, all texts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	When string `json:"when,omitempty"`

	// ChannelRefs are the NotificationChannels in which they are told.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	ChannelRefs []NotificationChannelReference `json:"channelRefs"`

	// Group says what is told together.
	// +optional
	// +kubebuilder:default={}
	Group *NotificationGroup `json:"group,omitempty"`

	// Remind has the channels sent another message while an approval that they have got one about still waits. Without it, there is one message. The types of
	// the rule have to have approval.requested.
	// +optional
	Remind *NotificationReminder `json:"remind,omitempty"`

	// Template is the text for a record, as a template of Go (text/template) over what when sees, such as
	// {{ .placementName }}: {{ .message }}. Without it, the hub agent has a text for each type. More than 4 KiB of what it gives is
	// cut off. It has no loops, and no functions that make texts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Template string `json:"template,omitempty"`
}

// NotificationChannelReference names a NotificationChannel.
type NotificationChannelReference struct {
	// Name of the channel.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// NotificationGroup says which records are told together.
type NotificationGroup struct {
	// By is Run, for a message with all that has happened with an update run within the window, or Record, for a message each.
	// +optional
	// +kubebuilder:default=Run
	// +kubebuilder:validation:Enum=Run;Record
	By NotificationGrouping `json:"by,omitempty"`

	// Window is for how long records are gathered from the first one on before they are told, 0s to 10m.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) <= duration("10m")`,message="window must be 0s to 10m: write it like 30s",reason=FieldValueInvalid
	Window *Duration `json:"window,omitempty"`

	// MaxMessages is how many messages a channel gets in a window: in place of more there is one that sums them up.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxMessages int32 `json:"maxMessages,omitempty"`
}

// NotificationGrouping says what makes one message.
type NotificationGrouping string

const (
	// GroupByRun makes one message of all records of an update run.
	GroupByRun NotificationGrouping = "Run"
	// GroupByRecord makes a message of each record.
	GroupByRecord NotificationGrouping = "Record"
)

// NotificationReminder says how often channels are reminded of an approval that waits.
type NotificationReminder struct {
	// Every is how long after the last message about it there is another one, 1m to 168h.
	// +optional
	// +kubebuilder:default="4h"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("1m") && duration(self) <= duration("168h")`,message="every must be 1m to 168h: write it like 4h",reason=FieldValueInvalid
	Every *Duration `json:"every,omitempty"`

	// AtMost is how many reminders there are of one approval.
	// +optional
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	AtMost int32 `json:"atMost,omitempty"`
}

// NotificationRuleStatus says whether a rule can be followed.
type NotificationRuleStatus struct {
	// Conditions: Accepted is False if an expression, the template, a type or the selector cannot be used: nothing is told by the rule
	// then. Ready is False then, too, and if a channel is missing, or waits for its place among 64 destinations; what the other channels
	// get does not depend on it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// SinceTime is from when on records are told by the rule as it is: when it was created, or has changed last.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
}

// NotificationRules is what NotificationRules are in URLs.
var NotificationRules = schema.GroupResource{Group: GroupName, Resource: "notificationrules"}

// Reasons of the conditions Accepted and Ready of a rule.
const (
	ReasonRuleReady       = "RuleReady"       // all its channels are there
	ReasonUnknownChannel  = "UnknownChannel"  // there is no such channel
	ReasonUnknownType     = "UnknownType"     // no record has a type of this name
	ReasonInvalidTemplate = "InvalidTemplate" // the template is none, or does what templates may not
)

// The grouping of a rule that does not say.
const (
	defaultWindow      = 30 * time.Second
	defaultMaxMessages = 20
)

// EffectiveGroup returns how the rule groups, with what it does not say.
func (r *NotificationRule) EffectiveGroup() NotificationGroup {
	group := NotificationGroup{}
	if r.Spec.Group != nil {
		group = *r.Spec.Group
	}
	group.By = cmp.Or(group.By, GroupByRun)
	group.MaxMessages = cmp.Or(group.MaxMessages, defaultMaxMessages)
	if group.Window == nil {
		group.Window = &Duration{Duration: defaultWindow}
	}
	return group
}

// The reminders of a rule that does not say.
const (
	defaultEvery  = 4 * time.Hour
	defaultAtMost = 6
)

// EffectiveReminder returns how the rule reminds, with what it does not say.
func (r *NotificationRule) EffectiveReminder() NotificationReminder {
	reminder := NotificationReminder{}
	if r.Spec.Remind != nil {
		reminder = *r.Spec.Remind
	}
	reminder.AtMost = cmp.Or(reminder.AtMost, defaultAtMost)
	if reminder.Every == nil {
		reminder.Every = &Duration{Duration: defaultEvery}
	}
	return reminder
}

// Due returns when a channel is to be reminded of what it was told; zero if never: it was not told, or has had all reminders.
func (r NotificationReminder) Due(told *AuditDelivery) time.Time {
	if told == nil || told.Error != "" || told.Reminders >= r.AtMost {
		return time.Time{}
	}
	last := told.Time.Time
	if told.LastReminderTime != nil {
		last = told.LastReminderTime.Time
	}
	return last.Add(r.Every.Duration)
}

// ChannelNames returns the names of the channels of the rule.
func (r *NotificationRule) ChannelNames() []string {
	names := make([]string, 0, len(r.Spec.ChannelRefs))
	for _, ref := range r.Spec.ChannelRefs {
		names = append(names, ref.Name)
	}
	return names
}

// anyOf ends what stands for all types of a kind.
const anyOf = "*"

// Tells reports whether the rule is about records of a type: one that it names, or the end of one that it names.
func (r *NotificationRule) Tells(kind AuditRecordType) bool {
	return slices.ContainsFunc(r.Spec.Types, func(named string) bool {
		if prefix, all := strings.CutSuffix(named, anyOf); all {
			return strings.HasPrefix(string(kind), prefix)
		}
		return AuditRecordType(named) == kind || EndOf(AuditRecordType(named)) == kind
	})
}

// NotificationRuleKind is what a delivery to a channel has as its kind: its name is that of the rule, a slash and that of the channel.
const NotificationRuleKind = "NotificationRule"

// MayTell reports whether the rule, as it is now, is about a record: all but its expression says so. An error says that it is not
// known.
func (r *NotificationRule) MayTell(record *AuditRecord, of PlacementOf) (bool, error) {
	since := r.CreationTimestamp
	if r.Status.SinceTime != nil {
		since = *r.Status.SinceTime
	}
	if record.CreationTimestamp.Before(&since) || !r.Tells(record.Spec.Type) {
		return false, nil
	}
	if r.Spec.PlacementSelector == nil {
		return true, nil
	}
	seen, _, err := of(record)
	return err == nil && selects(r.Spec.PlacementSelector, seen), err
}

// EndOf returns the type of the records that say that the trouble of a type is over; empty if there is none.
func EndOf(kind AuditRecordType) AuditRecordType {
	switch kind {
	case RecordRunHeld:
		return RecordRunReleased
	case RecordRunStopped:
		return RecordRunResumed
	case RecordMemberLost:
		return RecordMemberBack
	default:
		return ""
	}
}

// UnknownTypes returns the types that the rule names and that no record has.
func (r *NotificationRule) UnknownTypes() []string {
	known := RecordTypes()
	var unknown []string
	for _, named := range r.Spec.Types {
		prefix, all := strings.CutSuffix(named, anyOf)
		if !slices.ContainsFunc(known, func(kind AuditRecordType) bool {
			return string(kind) == named || all && strings.HasPrefix(string(kind), prefix)
		}) {
			unknown = append(unknown, named)
		}
	}
	return unknown
}

// RecordTypes returns the types of all facts.
func RecordTypes() []AuditRecordType {
	return []AuditRecordType{
		RecordRunCreated, RecordRunInitialized, RecordRunRefused, RecordRunHeld, RecordRunReleased, RecordRunStopped, RecordRunResumed,
		RecordRunStuck, RecordRunSucceeded, RecordRunFailed, RecordRunTakenOver, RecordRunAbandoned, RecordRunDeleted,
		RecordStageStarted, RecordStageSucceeded, RecordStageSkipped, RecordStageFailed,
		RecordApprovalRequested, RecordApprovalVoted, RecordApprovalRejected, RecordApprovalGiven, RecordApprovalVoided, RecordApprovalExpired,
		RecordClusterSkipped, RecordClusterRetried,
		RecordAnalysisStarted, RecordAnalysisPassed, RecordAnalysisFailed, RecordAnalysisInconclusive, RecordAnalysisError, RecordAnalysisWaived,
		RecordPlacementCreated, RecordPlacementFound, RecordPlacementChanged, RecordPlacementDeleted, RecordPlacementRolledOut, RecordPlacementFailed,
		RecordSnapshotCreated,
		RecordHoldSet, RecordHoldLifted, RecordHoldExpired,
		RecordEvictionAsked, RecordEvictionExecuted, RecordEvictionRefused,
		RecordOverrideChanged,
		RecordMemberJoined, RecordMemberLeft, RecordMemberForceRemoved, RecordMemberLost, RecordMemberBack,
		RecordConfigRecordsDropped,
	}
}
