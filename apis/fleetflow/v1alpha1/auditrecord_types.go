package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditRecord keeps one fact about an update run: that it was created, by whom, with which plan; that a stage began or ended; who
// approved it, when and why; what an analysis has found; how the run ended. Or about a placement, a member cluster, a hold, an eviction
// or an override. The hub agent writes it once, and it stays when the object, approval requests and Temporal's history are
// gone. Each record of an object has the digest of the one before, so that one that is changed or missing shows.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=arec,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:selectablefield:JSONPath=`.spec.updateRunName`
// +kubebuilder:selectablefield:JSONPath=`.status.complete`
// +kubebuilder:printcolumn:name="Time",type=string,JSONPath=`.spec.time`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Namespace",type=string,priority=1,JSONPath=`.spec.subjectRef.namespace`
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.updateRunName`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stageName`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.actor.username`
// +kubebuilder:printcolumn:name="Verified",type=boolean,priority=1,JSONPath=`.spec.actor.verified`
// +kubebuilder:printcolumn:name="Sequence",type=integer,JSONPath=`.spec.sequence`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type AuditRecord struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the fact. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,message="a record cannot be changed",reason=FieldValueForbidden
	Spec AuditRecordSpec `json:"spec"`

	// Status says where the record was delivered to. Without an AuditSink or a channel there is none.
	// +optional
	Status AuditRecordStatus `json:"status,omitzero"`
}

// AuditRecordSpec is a fact.
type AuditRecordSpec struct {
	// ID is the SHA-256 of what makes the fact this one: the UID of the subject, the type, and which of several it is. The same fact has
	// the same ID, whichever agent notices it and however often. The name of the record is r-, the UID of the subject, and the sequence.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ID string `json:"id"`

	// Type of the fact, such as approval.given.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z]*[.][a-z][A-Za-z]*$`
	Type AuditRecordType `json:"type"`

	// Time of the fact, as it stands on the object: not that of the record.
	// +required
	Time metav1.Time `json:"time"`

	// SubjectRef is the object that the fact is about.
	// +required
	SubjectRef AuditSubjectReference `json:"subjectRef"`

	// PlacementName is the placement of the subject.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PlacementName string `json:"placementName,omitempty"`

	// UpdateRunName is the update run, of a fact about one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UpdateRunName string `json:"updateRunName,omitempty"`

	// StageName is the stage of the update run, of a fact about a stage.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	StageName string `json:"stageName,omitempty"`

	// Actor is who has done it. Left out, that is the fleet itself.
	// +optional
	Actor *AuditActor `json:"actor,omitempty"`

	// Comment is what the actor has said to it.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Comment string `json:"comment,omitempty"`

	// Message says what has happened, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// PlanHash is that of the plan of the update run; of an approval, that of the plan that was approved, as far as that is known; of the
	// creation of a run, that of spec.expectedPlanHash.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	PlanHash string `json:"planHash,omitempty"`

	// Data are further facts, such as the index of the resource snapshot. There are never manifests in it, nor what Secrets hold.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Data map[string]AuditValue `json:"data,omitempty"`

	// Sequence counts the records of the subject, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`

	// Previous is the digest of the record of the subject before this one: sha256: and the SHA-256 of its spec as JSON. The first record
	// has none.
	// +optional
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64})?$`
	// +kubebuilder:validation:MaxLength=71
	Previous string `json:"previous,omitempty"`
}

// AuditRecordStatus says where a record was delivered to.
type AuditRecordStatus struct {
	// Deliveries are those that are over. One that is still tried is not among them.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Deliveries []AuditDelivery `json:"deliveries,omitempty"`

	// Complete tells that nothing is to be delivered any more.
	// +optional
	Complete bool `json:"complete,omitempty"`
}

// AuditDelivery tells that a record was delivered, or was given up.
type AuditDelivery struct {
	// Kind of the object that asks for the record, such as AuditSink.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of that object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Time at which it was delivered, or given up.
	// +required
	Time metav1.Time `json:"time"`

	// Attempts is how often it was tried, as far as the agent that has delivered it knows.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`

	// Error says why it was given up. Left out, the record was delivered.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Error string `json:"error,omitempty"`

	// Reminders is how often the channel was reminded of it, while the approval that it asks for waits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reminders int32 `json:"reminders,omitempty"`

	// LastReminderTime is when the channel was reminded last.
	// +optional
	LastReminderTime *metav1.Time `json:"lastReminderTime,omitempty"`
}

// AuditValue is a value of a record's data.
//
// +kubebuilder:validation:MaxLength=1024
type AuditValue string

// AuditSubjectReference names the object that a record is about.
type AuditSubjectReference struct {
	// APIVersion of the object.
	// +required
	// +kubebuilder:validation:MaxLength=128
	APIVersion string `json:"apiVersion"`

	// Kind of the object, such as ClusterStagedUpdateRun.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Namespace of the object, if it is in one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID of the object: another object that gets its name later is another subject.
	// +required
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`
}

// AuditActor says who has done something, and how far that is known.
type AuditActor struct {
	// Username is the user, as far as it is known; empty if it is not.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Username string `json:"username,omitempty"`

	// Verified tells whether the hub's API server has said so, or Temporal where it vouches for who sends an approval.
	// +optional
	Verified bool `json:"verified,omitempty"`

	// Channel is how it came: Kubectl, Dashboard, TemporalSignal or TemporalUpdate.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel,omitempty"`

	// Groups of the user that counted for it, such as those that a stage asks votes of; not all that the user is in.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
}

// AuditRecordType is the type of a fact.
type AuditRecordType string

// The types of facts.
const (
	RecordRunCreated     AuditRecordType = "run.created"
	RecordRunInitialized AuditRecordType = "run.initialized" // the plan is frozen
	RecordRunRefused     AuditRecordType = "run.refused"     // there can be no plan
	RecordRunHeld        AuditRecordType = "run.held"        // a hold, a window or another brake closes clusters
	RecordRunReleased    AuditRecordType = "run.released"    // and does not any more
	RecordRunStopped     AuditRecordType = "run.stopped"
	RecordRunResumed     AuditRecordType = "run.resumed"
	RecordRunStuck       AuditRecordType = "run.stuck" // a cluster takes longer than it should
	RecordRunSucceeded   AuditRecordType = "run.succeeded"
	RecordRunFailed      AuditRecordType = "run.failed"
	RecordRunTakenOver   AuditRecordType = "run.takenOver" // another run rolls it back, or was made for a later snapshot
	RecordRunAbandoned   AuditRecordType = "run.abandoned" // deleted before it had ended
	RecordRunDeleted     AuditRecordType = "run.deleted"   // deleted after it had ended

	RecordStageStarted   AuditRecordType = "stage.started"
	RecordStageSucceeded AuditRecordType = "stage.succeeded"
	RecordStageSkipped   AuditRecordType = "stage.skipped" // it has no clusters
	RecordStageFailed    AuditRecordType = "stage.failed"

	RecordClusterSkipped AuditRecordType = "cluster.skipped" // a user has asked a run to go on without the cluster
	RecordClusterRetried AuditRecordType = "cluster.retried" // a user has asked a run to write to it once more

	RecordApprovalRequested AuditRecordType = "approval.requested"
	RecordApprovalVoted     AuditRecordType = "approval.voted"    // of a stage that takes votes, one that counts
	RecordApprovalRejected  AuditRecordType = "approval.rejected" // of a stage that takes votes, one that takes back all others
	RecordApprovalGiven     AuditRecordType = "approval.given"
	RecordApprovalVoided    AuditRecordType = "approval.voided"  // the hub agent has taken an approval back that does not count
	RecordApprovalExpired   AuditRecordType = "approval.expired" // it was not given in time, and the run stops

	RecordAnalysisStarted      AuditRecordType = "analysis.started"
	RecordAnalysisPassed       AuditRecordType = "analysis.passed"
	RecordAnalysisFailed       AuditRecordType = "analysis.failed"
	RecordAnalysisInconclusive AuditRecordType = "analysis.inconclusive"
	RecordAnalysisError        AuditRecordType = "analysis.error"
	RecordAnalysisWaived       AuditRecordType = "analysis.waived"

	RecordPlacementCreated   AuditRecordType = "placement.created"
	RecordPlacementFound     AuditRecordType = "placement.found"   // it was there before records were kept
	RecordPlacementChanged   AuditRecordType = "placement.changed" // its spec
	RecordPlacementDeleted   AuditRecordType = "placement.deleted"
	RecordPlacementRolledOut AuditRecordType = "placement.rolledOut" // a snapshot is on all its clusters, and available
	RecordPlacementFailed    AuditRecordType = "placement.failed"    // a snapshot could not be applied somewhere
	RecordSnapshotCreated    AuditRecordType = "snapshot.created"    // of the resources of a placement

	RecordHoldSet     AuditRecordType = "hold.set"
	RecordHoldLifted  AuditRecordType = "hold.lifted" // deleted before its time
	RecordHoldExpired AuditRecordType = "hold.expired"

	RecordEvictionAsked    AuditRecordType = "eviction.asked"
	RecordEvictionExecuted AuditRecordType = "eviction.executed"
	RecordEvictionRefused  AuditRecordType = "eviction.refused"

	RecordOverrideChanged AuditRecordType = "override.changed" // it was created, changed or deleted, which its data tells

	RecordMemberJoined         AuditRecordType = "member.joined"
	RecordMemberLeft           AuditRecordType = "member.left"
	RecordMemberForceRemoved   AuditRecordType = "member.forceRemoved" // it was let go before its agent had left
	RecordMemberLost           AuditRecordType = "member.lost"         // its agent does not report, or does not reach the cluster
	RecordMemberBack           AuditRecordType = "member.back"
	RecordConfigRecordsDropped AuditRecordType = "config.recordsDropped" // records were deleted before they were delivered
)
