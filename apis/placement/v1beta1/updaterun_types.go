package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStagedUpdateRun rolls one resource snapshot of a placement out, stage by stage.
// The clusters the placement no longer picks are cleared at the end. Deleting a run
// abandons it; clusters keep what they have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName={csur,crsur},categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:selectablefield:JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot",type=string,JSONPath=`.status.resourceSnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Policy-Snapshot",type=string,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,priority=1,JSONPath=`.spec.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Policy-Snapshot-Index",type=string,priority=1,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.progress`
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.spec.state`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63: choose a shorter name"
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.rollbackOf) || self.spec.rollbackOf != self.metadata.name`,message="spec.rollbackOf names the run itself: name the run whose clusters are to go back",reason=FieldValueInvalid,fieldPath=".spec.rollbackOf"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, c.type == "Succeeded" && c.status != "Unknown") || (has(self.spec.clusterActions) ? self.spec.clusterActions : []) == (has(oldSelf.spec.clusterActions) ? oldSelf.spec.clusterActions : [])`,message="spec.clusterActions cannot change any more, the run has ended: create another run",reason=FieldValueForbidden,fieldPath=".spec.clusterActions"
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to roll out, to which placement and in which stages. Only state and
	// clusterActions can change later.
	// +required
	Spec UpdateRunSpec `json:"spec"`

	// Status says what was frozen when the run started and how far it is.
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}

// UpdateRunState says what a run is to do.
type UpdateRunState string

const (
	// StateInitialize works the stages out and waits.
	StateInitialize UpdateRunState = "Initialize"
	// StateRun rolls out; a run without a state does so too.
	StateRun UpdateRunState = "Run"
	// StateStop lets clusters that are being updated finish and starts no further ones.
	StateStop UpdateRunState = "Stop"
)

// UpdateRunSpec says what to roll out, to which placement and in which stages.
//
// +kubebuilder:validation:XValidation:rule="self.placementName == oldSelf.placementName",message="placementName is immutable: create another run for another placement"
// +kubebuilder:validation:XValidation:rule=`(has(self.resourceSnapshotIndex) ? self.resourceSnapshotIndex : "") == (has(oldSelf.resourceSnapshotIndex) ? oldSelf.resourceSnapshotIndex : "")`,message="resourceSnapshotIndex is immutable: create another run to roll out another snapshot"
// +kubebuilder:validation:XValidation:rule="self.stagedRolloutStrategyName == oldSelf.stagedRolloutStrategyName",message="stagedRolloutStrategyName is immutable: create another run to use another strategy"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.state) && oldSelf.state == 'Initialize' && has(self.state) && self.state == 'Stop')",message="invalid state transition: cannot transition from Initialize to Stop"
// +kubebuilder:validation:XValidation:rule="!((!has(oldSelf.state) || oldSelf.state == 'Run') && has(self.state) && self.state == 'Initialize')",message="invalid state transition: cannot transition from Run to Initialize"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.state) && oldSelf.state == 'Stop' && has(self.state) && self.state == 'Initialize')",message="invalid state transition: cannot transition from Stop to Initialize"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.state) || oldSelf.state == "Run" || has(self.state)`,message="state is missing, as in an update by a client that does not know the field, and without it the run rolls out: patch the run instead, or set state to Run",reason=FieldValueRequired,fieldPath=".state"
// +kubebuilder:validation:XValidation:rule=`(has(self.rollbackOf) ? self.rollbackOf : "") == (has(oldSelf.rollbackOf) ? oldSelf.rollbackOf : "")`,message="rollbackOf is immutable: create another run to roll back",reason=FieldValueInvalid,fieldPath=".rollbackOf"
// +kubebuilder:validation:XValidation:rule=`(has(self.expectedPlanHash) ? self.expectedPlanHash : "") == (has(oldSelf.expectedPlanHash) ? oldSelf.expectedPlanHash : "")`,message="expectedPlanHash is immutable: create another run",fieldPath=".expectedPlanHash"
// +kubebuilder:validation:XValidation:rule=`!has(self.rollbackOf) || !has(self.resourceSnapshotIndex) || self.resourceSnapshotIndex == ""`,message="rollbackOf takes each cluster back to a snapshot of its own: leave resourceSnapshotIndex out",reason=FieldValueForbidden,fieldPath=".resourceSnapshotIndex"
type UpdateRunSpec struct {
	// PlacementName is the placement to roll out. Its rollout strategy has to be External.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	PlacementName string `json:"placementName"`

	// ResourceSnapshotIndex is the resource snapshot to roll out. Without it, the run takes
	// the latest one when it starts.
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^(0|[1-9][0-9]*)$")`,messageExpression=`"invalid resource snapshot index " + self + " provided, expected an integer >= 0: use the label kubernetes-fleet.io/resource-index of a ClusterResourceSnapshot, or leave it out for the latest"`
	// +optional
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`

	// StagedUpdateStrategyName (stagedRolloutStrategyName in YAML) is the strategy that has the stages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	StagedUpdateStrategyName string `json:"stagedRolloutStrategyName"`

	// State is Initialize to only work the stages out, Run to roll out, Stop to pause.
	// Without it, the run rolls out. It may change from Initialize to Run, and between Run
	// and Stop.
	// +kubebuilder:validation:Enum=Initialize;Run;Stop
	// +optional
	State UpdateRunState `json:"state,omitempty"`

	// ClusterActions skip or retry single clusters until the run has ended. They are taken up
	// while the stage of their cluster is ahead or being updated; those of a run that stands
	// still, when it is resumed.
	// An addition of fleetflow; without it, the run waits for every cluster, as in KubeFleet.
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ClusterActions []ClusterAction `json:"clusterActions,omitempty"`

	// RollbackOf is another run of the same placement with the same strategy, which ends: each
	// cluster that it has updated goes back to the resource snapshot it had before, in the
	// reverse order of stages and without their tasks. Clusters that had nothing, or that yet
	// another run has updated since, are skipped. Overrides and apply strategy are those of today.
	// An addition of fleetflow; without it, every cluster gets the same snapshot, as in KubeFleet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	RollbackOf string `json:"rollbackOf,omitempty"`

	// ExpectedPlanHash is the planHash of kubectl fleet plan: the run begins only if its plan has that hash. An addition of fleetflow.
	// +kubebuilder:validation:Pattern="^sha256:[0-9a-f]{64}$"
	// +optional
	ExpectedPlanHash string `json:"expectedPlanHash,omitempty"`
}

// ClusterAction skips or retries one cluster of a run. An addition of fleetflow.
type ClusterAction struct {
	// Cluster is the name of the cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`

	// Action is Skip to go on without the cluster: one that waits for its turn is left as it
	// is, one that is being updated gives its place to another and keeps what was
	// written. It is Retry to see that a cluster is told what it is to have, and to count
	// its clusterDeadlineSeconds from then; a failed or skipped one waits for a place in
	// maxConcurrency first. Members retry by themselves, too. An updated cluster is left alone.
	// +kubebuilder:validation:Enum=Skip;Retry
	// +required
	Action ClusterActionType `json:"action"`

	// Attempt counts what was asked for: a higher number asks for another retry.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
}

// ClusterActionType says what to do with one cluster of a run.
type ClusterActionType string

const (
	// ClusterActionSkip goes on without the cluster.
	ClusterActionSkip ClusterActionType = "Skip"
	// ClusterActionRetry writes to the cluster once more.
	ClusterActionRetry ClusterActionType = "Retry"
)

// UpdateRunStatus says what was frozen when a run started and how far it is.
type UpdateRunStatus struct {
	// PolicySnapshotIndexUsed is the policy snapshot the clusters were picked for.
	// +optional
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`

	// PolicyObservedClusterCount is how many clusters were picked when the run started.
	// +optional
	PolicyObservedClusterCount int `json:"policyObservedClusterCount,omitempty"`

	// ResourceSnapshotIndexUsed is the resource snapshot the run rolls out.
	// +optional
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`

	// PlanHash sums up the plan as it was made when the run started. An addition of fleetflow.
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// RestoresSucceeded says that a run that rolls another back brings nothing but what a run forward that has succeeded had brought
	// there. Only such runs are exempt from holds and windows that exempt rollbacks. An addition of fleetflow.
	// +optional
	RestoresSucceeded bool `json:"restoresSucceeded,omitempty"`

	// ApplyStrategy (appliedStrategy in YAML) is the placement's apply strategy as it was when the run started.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`

	// Vocabulary is in which words this status is written, as the hub agent was told when the
	// run started: Documentation, also if it is missing, for those of KubeFleet's documentation, KubeFleet
	// for those of its releases. An addition of fleetflow.
	// +optional
	Vocabulary Vocabulary `json:"vocabulary,omitempty"`

	// UpdateStrategySnapshot (stagedUpdateStrategySnapshot in YAML) is the strategy as it was when the run started.
	// +optional
	UpdateStrategySnapshot *UpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`

	// Clusters counts the clusters of all stages, without those that the run takes the resources from. An addition of fleetflow.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`

	// StagesStatus has one entry per stage, in their order.
	// +optional
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`

	// DeletionStageStatus is about the clusters the placement no longer picks; they are
	// cleared after the last stage.
	// +optional
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`

	// Conditions: Initialized, Progressing, Succeeded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageUpdatingStatus says how far a stage is.
type StageUpdatingStatus struct {
	// StageName is the name of the stage.
	// +required
	StageName string `json:"stageName"`

	// Clusters of the stage, in the order they are updated in.
	// +optional
	Clusters []ClusterUpdatingStatus `json:"clusters,omitzero"`

	// BeforeStageTaskStatus has one entry per task before the stage.
	// +kubebuilder:validation:MaxItems=4
	// +optional
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`

	// DuringStageTaskStatus has one entry per task during the stage. An addition of fleetflow.
	// +kubebuilder:validation:MaxItems=1
	// +optional
	DuringStageTaskStatus []StageTaskStatus `json:"duringStageTaskStatus,omitempty"`

	// AfterStageTaskStatus has one entry per task after the stage.
	// +kubebuilder:validation:MaxItems=3
	// +optional
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`

	// StartTime is when the stage started; absent before.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// EndTime is when the stage was finished, tasks included; absent before.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// Conditions: Progressing, Succeeded. Absent before the stage starts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUpdatingStatus says how far a cluster is.
type ClusterUpdatingStatus struct {
	// ClusterName is the name of the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// ResourceOverrideSnapshots are the ResourceOverride snapshots that change what this
	// cluster gets, as they were when the run started.
	// +optional
	ResourceOverrideSnapshots []NamespacedName `json:"resourceOverrideSnapshots,omitempty"`

	// ClusterResourceOverrideSnapshots are the ClusterResourceOverride snapshots that change
	// what this cluster gets, as they were when the run started.
	// +optional
	ClusterResourceOverrideSnapshots []string `json:"clusterResourceOverrideSnapshots,omitempty"`

	// ResourceSnapshotIndex is the resource snapshot this cluster goes to, in a run with
	// rollbackOf; elsewhere all clusters go to resourceSnapshotIndexUsed. An addition of
	// fleetflow.
	// +optional
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`

	// Base is what the cluster had when the plan was made, or was retried: the resource snapshot and a revision, or none. Only with
	// verifyBase of the strategy. An addition of fleetflow.
	// +optional
	Base string `json:"base,omitempty"`

	// Attempt is that of the last of spec.clusterActions for this cluster that was carried
	// out. An addition of fleetflow.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// Conditions: Started, Succeeded. Absent before the cluster has its turn. fleetflow adds Written. It is
	// False while the cluster's binding is not written: the API server refuses that, which is tried again
	// (Refused), the placement suspends the cluster (Suspended), or it waits for a lifecycle
	// hook (WaitingForHook). Otherwise it is absent. BackInService is False while a cluster that a hook has
	// taken out of service, and that the run does not update any more, could not be put back (Refused).
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus says how far a task before, during or after a stage is.
type StageTaskStatus struct {
	// Type of the task, TimedWait, Approval, Analysis, Rehearsal or PrePull.
	// +kubebuilder:validation:Enum=TimedWait;Approval;Analysis;Rehearsal;PrePull
	// +required
	Type StageTaskType `json:"type"`

	// ApprovalRequestName is the approval request that was made for the task.
	// +optional
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`

	// ExpirationTime is until when an Approval with startsBy can be given. An addition of fleetflow.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// AnalysisRunName is the ClusterStageAnalysisRun, or the StageAnalysisRun in the namespace of the run, that shows what the task measures.
	// An addition of fleetflow.
	// +optional
	AnalysisRunName string `json:"analysisRunName,omitempty"`

	// Rehearsal is what clusters have said, with the fields of StageRehearsal.
	// An addition of fleetflow.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Rehearsal *StageRehearsal `json:"rehearsal,omitempty"`

	// Conditions: ApprovalRequestCreated, ApprovalRequestApproved, WaitTimeElapsed, AnalysisStarted,
	// AnalysisSucceeded, Rehearsed, ImagesPulled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageRehearsal is what the clusters of a stage have said that a run would do there, or, of a task of type PrePull, which images they
// have pulled.
type StageRehearsal struct {
	// Name of the ClusterRehearsal, or of the Rehearsal in the namespace of the run.
	// +required
	Name string `json:"name"`

	// Attempt counts how often the clusters were asked.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`

	// Renewed says that the attempt was made because the answers of the one before had become too old.
	// +optional
	Renewed bool `json:"renewed,omitempty"`

	// CompletionTime is when the last cluster has answered, or when the time was over.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Refused is how many clusters would refuse something, or have an object that belongs to another owner; of a PrePull, for how many a
	// registry has refused an image.
	// +optional
	Refused int32 `json:"refused,omitempty"`

	// Unknown is of how many clusters it is not known.
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// Others is how many other clusters there are: of a PrePull, those that have all images.
	// +optional
	Others int32 `json:"others,omitempty"`

	// RefusedClusters are the first ten, by name, of the clusters that would refuse something.
	// +optional
	// +listType=atomic
	RefusedClusters []string `json:"refusedClusters,omitempty"`

	// UnknownClusters are the first ten, by name, of the clusters of which it is not known.
	// +optional
	// +listType=atomic
	UnknownClusters []string `json:"unknownClusters,omitempty"`

	// RehearsalDigest is the digest of the rehearsal: with it, an approval can be bound to what was found.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	RehearsalDigest string `json:"rehearsalDigest,omitempty"`
}

// StagedUpdateRun rolls one resource snapshot of a ResourcePlacement in its namespace out,
// stage by stage. The clusters the placement no longer picks are cleared at the end. Deleting
// a run abandons it; clusters keep what they have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=sur,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.placementName`
// +kubebuilder:selectablefield:JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:selectablefield:JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot",type=string,JSONPath=`.status.resourceSnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Policy-Snapshot",type=string,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,priority=1,JSONPath=`.spec.resourceSnapshotIndex`
// +kubebuilder:printcolumn:name="Policy-Snapshot-Index",type=string,priority=1,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Updated",type=string,JSONPath=`.status.clusters.progress`
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.spec.state`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63: choose a shorter name"
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.rollbackOf) || self.spec.rollbackOf != self.metadata.name`,message="spec.rollbackOf names the run itself: name the run whose clusters are to go back",reason=FieldValueInvalid,fieldPath=".spec.rollbackOf"
// +kubebuilder:validation:XValidation:rule=`!has(oldSelf.status) || !has(oldSelf.status.conditions) || !oldSelf.status.conditions.exists(c, c.type == "Succeeded" && c.status != "Unknown") || (has(self.spec.clusterActions) ? self.spec.clusterActions : []) == (has(oldSelf.spec.clusterActions) ? oldSelf.spec.clusterActions : [])`,message="spec.clusterActions cannot change any more, the run has ended: create another run",reason=FieldValueForbidden,fieldPath=".spec.clusterActions"
type StagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what to roll out, to which placement and in which stages. Only state and
	// clusterActions can change later.
	// +required
	Spec UpdateRunSpec `json:"spec"`

	// Status says what was frozen when the run started and how far it is.
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}
