package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ClusterStagedUpdateStrategy divides clusters into stages that are updated one after the
// other. Any number of runs can use it; each works with a copy taken when it starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Stages",type=string,JSONPath=`.spec.stages[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the stages.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.stages.all(s, !has(s.afterStageTasks) || s.afterStageTasks.all(t, !has(t.waitTime) || !t.waitTime.matches("ms|^0$")))`,message="waitTime is written with the units h, m and s only: write 0.5s for 500ms, and 0s for 0"
	Spec UpdateStrategySpec `json:"spec"`
}

// UpdateStrategySpec has the stages of an update, in their order.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.unassignedClusters) || self.unassignedClusters != "Last" || size(self.stages) <= 30`,message="unassignedClusters Last adds a stage: use at most 30 stages, or set unassignedClusters to Fail or Ignore",reason=FieldValueInvalid,fieldPath=".unassignedClusters"
// +kubebuilder:validation:XValidation:rule=`!has(self.unassignedClusters) || self.unassignedClusters != "Last" || self.stages.all(s, s.name != "unassigned")`,message="unassignedClusters Last adds a stage called unassigned: rename the stage of that name, or set unassignedClusters to Fail or Ignore",reason=FieldValueInvalid,fieldPath=".stages"
type UpdateStrategySpec struct {
	// Stages are updated one after the other. Every picked cluster has to be in exactly one,
	// unless unassignedClusters says otherwise.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=31
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(t, t.name == s.name))`,message="the names of stages must be unique: rename the repeated stage"
	Stages []StageConfig `json:"stages"`

	// OnMembershipChange says what becomes of a run when the clusters that the placement picks
	// change while it is on its way. Abort ends the run; create another for what is picked
	// then. Continue goes on with the clusters there were when it started: those that leave are
	// skipped and reported, those that join are ignored until another run. A change of
	// the placement's policy counts the same.
	// An addition of fleetflow; without it, Abort, which is what KubeFleet does.
	// +kubebuilder:validation:Enum=Abort;Continue
	// +optional
	OnMembershipChange MembershipChangeAction `json:"onMembershipChange,omitempty"`

	// UnassignedClusters says what to do with picked clusters that are in no stage. Fail
	// refuses the run. Ignore leaves them as they are and names them in the condition
	// Initialized. Last updates them after the last stage, in a stage called unassigned, with
	// the maxConcurrency, clusterDeadlineSeconds, minReadySeconds, failureBudget and windows of the last stage and without
	// tasks.
	// An addition of fleetflow; without it, Fail, which is what KubeFleet does.
	// +kubebuilder:validation:Enum=Fail;Ignore;Last
	// +optional
	UnassignedClusters UnassignedClustersPolicy `json:"unassignedClusters,omitempty"`

	// RollbackApprovals says what becomes of the approvals when another run takes the clusters
	// of a run with this strategy back (rollbackOf). Keep asks for them before and after the
	// same stages. Skip goes back without. A rollback after more failures than a failureBudget
	// with onExceeded Rollback allows never asks.
	// An addition of fleetflow; without it, Keep.
	// +kubebuilder:validation:Enum=Keep;Skip
	// +optional
	RollbackApprovals RollbackApprovalsPolicy `json:"rollbackApprovals,omitempty"`

	// HeldClusters says what a stage does while a RolloutHold or a RolloutWindow keeps clusters
	// from starting. Skip goes on with the next clusters in its order; those that were held have
	// their turn once they may start. Wait keeps the order: clusters behind one that is held wait
	// with it. A stage ends when all of its clusters are updated, as usual.
	// An addition of fleetflow; without it, Wait.
	// +kubebuilder:validation:Enum=Skip;Wait
	// +optional
	HeldClusters HeldClustersPolicy `json:"heldClusters,omitempty"`

	// VerifyBase has a cluster updated only while it has what it had when the plan was made. If another run or user has changed that, the
	// cluster is held as PlanOutdated until it is retried or skipped with clusterActions.
	// An addition of fleetflow.
	// +optional
	VerifyBase bool `json:"verifyBase,omitempty"`
}

// RollbackApprovalsPolicy says whether a rollback asks for the approvals of a strategy.
type RollbackApprovalsPolicy string

const (
	// RollbackApprovalsKeep asks for them.
	RollbackApprovalsKeep RollbackApprovalsPolicy = "Keep"
	// RollbackApprovalsSkip goes back without.
	RollbackApprovalsSkip RollbackApprovalsPolicy = "Skip"
)

// UnassignedStageName is the name of the stage that UnassignedClustersLast adds.
const UnassignedStageName = "unassigned"

// MembershipChangeAction says whether a run goes on when other clusters are picked.
type MembershipChangeAction string

const (
	// MembershipChangeAbort ends a run when other clusters are picked.
	MembershipChangeAbort MembershipChangeAction = "Abort"
	// MembershipChangeContinue goes on with the clusters the run started with.
	MembershipChangeContinue MembershipChangeAction = "Continue"
)

// HeldClustersPolicy says whether clusters that may start wait for those before them that are held.
type HeldClustersPolicy string

const (
	// HeldClustersSkip goes on with the next clusters.
	HeldClustersSkip HeldClustersPolicy = "Skip"
	// HeldClustersWait keeps the order.
	HeldClustersWait HeldClustersPolicy = "Wait"
)

// UnassignedClustersPolicy says what to do with clusters in no stage.
type UnassignedClustersPolicy string

const (
	// UnassignedClustersFail refuses a run that has some.
	UnassignedClustersFail UnassignedClustersPolicy = "Fail"
	// UnassignedClustersIgnore leaves them as they are.
	UnassignedClustersIgnore UnassignedClustersPolicy = "Ignore"
	// UnassignedClustersLast updates them after the last stage.
	UnassignedClustersLast UnassignedClustersPolicy = "Last"
)

// StageConfig is one stage: which clusters, how many at a time, and what has to happen
// before and after.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.order) || !has(self.sortingLabelKey)`,message="order and sortingLabelKey exclude each other in a stage: remove sortingLabelKey, order.priority.labels with order Ascending does the same",reason=FieldValueForbidden,fieldPath=".sortingLabelKey"
// +kubebuilder:validation:XValidation:rule=`!has(self.minReadySeconds) || !has(self.clusterDeadlineSeconds) || self.minReadySeconds < self.clusterDeadlineSeconds`,message="minReadySeconds must be less than clusterDeadlineSeconds, of which it is a part: make the deadline longer, or minReadySeconds less",reason=FieldValueInvalid,fieldPath=".minReadySeconds"
type StageConfig struct {
	// Name of the stage, unique within the strategy.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]+$"
	Name string `json:"name"`

	// LabelSelector picks the clusters of the stage among those the placement picked.
	// Without one, the stage has all of them.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Sample has the stage take only some of these clusters, drawn by their names and a seed: the same at every run, as far as the
	// placement picks the same clusters. A cluster that is in an earlier stage is not drawn, and one that is drawn is in no later stage,
	// whatever that one selects.
	// An addition of fleetflow; without it, the stage has all clusters that it selects.
	// +optional
	Sample *ClusterSample `json:"sample,omitempty"`

	// SortingLabelKey is a cluster label with a whole number; clusters with lower numbers
	// are updated first. Without it, and among equal numbers, the order is by name.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches("^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")`,message="sortingLabelKey must be the key of a cluster label"
	// +optional
	SortingLabelKey *string `json:"sortingLabelKey,omitempty"`

	// Order is the order in which the clusters of the stage are updated, in place of
	// sortingLabelKey.
	// An addition of fleetflow.
	// +kubebuilder:validation:XValidation:rule=`!has(self.scatter) || self.scatter.all(s, !has(s.maxInFlight))`,message="maxInFlight is for rolling updates: remove it, maxConcurrency bounds the clusters of a stage",reason=FieldValueForbidden,fieldPath=".scatter"
	// +optional
	Order *ClusterOrder `json:"order,omitempty"`

	// MaxConcurrency is how many clusters are updated at the same time: a number, or a
	// percentage of the stage's clusters rounded down, at least one.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9][0-9]?)%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="maxConcurrency must be at least 1"
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// AfterStageTasks all have to be done, once the clusters are updated, before the next
	// stage starts: at most one TimedWait, one Approval and one Analysis.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime) || t.waitTime in ['0', '0s'])",message="AfterStageTaskType is Approval, waitTime is not allowed: remove waitTime, or set type to TimedWait"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait' || has(t.waitTime))",message="AfterStageTaskType is TimedWait, waitTime is required: add waitTime, for example 1h"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.type in ['Rehearsal', 'PrePull']))",message="a Rehearsal or PrePull comes before a stage: move it to beforeStageTasks"
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.type == t.type))",message="afterStageTasks can have at most one task of each type: remove one, or give the other type"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.startsAfter) || t.startsAfter.all(s, self.exists(u, u.type == s)))",message="startsAfter of afterStageTasks names a type that no other task of the stage has: add that task, or remove the type"
	// +optional
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`

	// DuringStageTasks are done while the clusters of the stage are updated, from the first to the last: one Analysis at
	// most. It acts as soon as it fails. Its templates measure until the stage is updated, whatever their count and
	// consecutiveSuccessLimit are.
	// An addition of fleetflow.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type == 'Analysis')",message="duringStageTasks can have one task of type Analysis only: move the others to beforeStageTasks or afterStageTasks"
	// +optional
	DuringStageTasks []StageTask `json:"duringStageTasks,omitempty"`

	// BeforeStageTasks have to be done before the stage starts: at most one Approval, Analysis, Rehearsal and PrePull.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.type == t.type))",message="beforeStageTasks can have at most one task of each type: remove one, or give the other type"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait')",message="BeforeStageTaskType cannot be TimedWait: use type Approval, or a TimedWait after the stage before"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'Approval' || !has(t.waitTime) || t.waitTime in ['0', '0s'])",message="BeforeStageTaskType is Approval, waitTime is not allowed: remove waitTime"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'PrePull' || !has(t.waitTime) || duration(t.waitTime) >= duration('10s') && duration(t.waitTime) <= duration('2h'))",message="waitTime of a PrePull must be 10s to 2h"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.startsAfter) || t.startsAfter.all(s, self.exists(u, u.type == s)))",message="startsAfter of beforeStageTasks names a type that no other task of the stage has: add that task, or remove the type"
	// +optional
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`

	// ClusterDeadlineSeconds is how long a cluster may take from when its update starts until it is
	// available. A run that waits longer is called stuck (reason
	// UpdateRunStuck) and waits on; with a failureBudget, the cluster counts as failed.
	// An addition of fleetflow; without it, 300, which is KubeFleet's threshold.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ClusterDeadlineSeconds *int32 `json:"clusterDeadlineSeconds,omitempty"`

	// MinReadySeconds is for how long a cluster has to be available without a break, in seconds, until its update
	// counts as done. Until then it takes a place of maxConcurrency. A cluster that becomes unavailable begins anew.
	// Its time is a part of clusterDeadlineSeconds; without clusterDeadlineSeconds it is added to the 300 seconds after
	// which the run is called stuck.
	// An addition of fleetflow; without it, or with 0, a cluster is done as soon as it is available.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// FailureBudget lets the stage go on without some of its clusters, and says what to do
	// when more fail than that.
	// An addition of fleetflow; without it, no cluster counts as failed and the run waits for
	// each, which is what KubeFleet does.
	// +optional
	FailureBudget *FailureBudget `json:"failureBudget,omitempty"`

	// Windows are names of RolloutWindows that count for the stage, in addition to those that count for it
	// by what they select: of scope Stage, without placementSelector. A run that names one that is
	// not there is not initialized; while one is gone later, nothing starts in the stage.
	// An addition of fleetflow.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.all(w, w.matches("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))`,message="windows needs names of RolloutWindows, such as eu-nights"
	// +listType=set
	// +optional
	Windows []string `json:"windows,omitempty"`
}

// ClusterSample says which share of clusters is drawn.
type ClusterSample struct {
	// Percent of the clusters that the stage selects and that are in no earlier one; rounded down, at least one.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`

	// Seed decides which clusters are drawn: change it to draw others.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Seed string `json:"seed,omitempty"`
}

// FailureBudget says without how many clusters a stage goes on, and what to do beyond that.
// A cluster counts as failed when it is not available after the clusterDeadlineSeconds of its stage, or before, as failOn says.
// Within the budget, a failed cluster no longer counts as being updated: another takes its
// place in maxConcurrency. Its condition Succeeded is False, with the reason
// ClusterUpdatingFailed, and turns True if it becomes available before the stage ends.
// Clusters that are skipped do not count.
type FailureBudget struct {
	// MaxFailures is without how many clusters the stage goes on: a number, or a percentage of
	// the stage's clusters rounded down. Without it, none.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9]?[0-9])%$"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxFailures must be at least 0"
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// OnExceeded says what to do when more clusters fail. Wait calls the run stuck and waits
	// for them, as KubeFleet does. Pause sets the run's state to Stop; skip or retry the
	// clusters, then set it to Run. Abort ends the run. Rollback ends the run and creates
	// another, called <run>-rollback, that takes every cluster the run has updated back to what
	// it had before. Without it, Wait.
	// +kubebuilder:validation:Enum=Wait;Pause;Abort;Rollback
	// +optional
	OnExceeded FailureBudgetAction `json:"onExceeded,omitempty"`

	// FailOn has what a cluster fails for before its deadline. Stalled: an object of it says itself that it makes no
	// progress, by the condition Stalled, as a Deployment past its progressDeadlineSeconds, or as a Job that has failed for
	// good. Without it, or with [], nothing.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:Enum=Stalled
	// +listType=set
	// +optional
	FailOn []ClusterFailure `json:"failOn,omitempty"`
}

// ClusterFailure is what a cluster fails for before its deadline.
type ClusterFailure string

// ClusterFailureStalled is an object that says itself that it makes no progress or has failed for good.
const ClusterFailureStalled ClusterFailure = "Stalled"

// FailureBudgetAction says what to do when more clusters of a stage fail than its budget
// allows.
type FailureBudgetAction string

const (
	// FailureBudgetWait waits for the clusters.
	FailureBudgetWait FailureBudgetAction = "Wait"
	// FailureBudgetPause stops the run until a user resumes it.
	FailureBudgetPause FailureBudgetAction = "Pause"
	// FailureBudgetAbort ends the run.
	FailureBudgetAbort FailureBudgetAction = "Abort"
	// FailureBudgetRollback ends the run and takes its clusters back.
	FailureBudgetRollback FailureBudgetAction = "Rollback"
)

// StageTaskType says what a run waits for before or after a stage.
type StageTaskType string

const (
	// StageTaskTypeTimedWait waits for an amount of time.
	StageTaskTypeTimedWait StageTaskType = "TimedWait"
	// StageTaskTypeApproval waits until a user approves.
	StageTaskTypeApproval StageTaskType = "Approval"
	// StageTaskTypeAnalysis measures, and waits until what it has measured is good.
	StageTaskTypeAnalysis StageTaskType = "Analysis"
	// StageTaskTypeRehearsal asks the clusters of a stage what the run would do there.
	StageTaskTypeRehearsal StageTaskType = "Rehearsal"
	// StageTaskTypePrePull has the clusters of a stage pull the images of what the run would place.
	StageTaskTypePrePull StageTaskType = "PrePull"
)

// StageTask is something a run waits for before or after a stage, or watches during it.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.approval) || self.type == "Approval"`,message="approval is only valid for tasks of type Approval: remove approval, or set type to Approval",reason=FieldValueForbidden,fieldPath=".approval"
// +kubebuilder:validation:XValidation:rule=`has(self.analysis) == (self.type == "Analysis")`,message="a task of type Analysis needs analysis, and no other task has it: add analysis, with templates, or remove it",reason=FieldValueInvalid,fieldPath=".analysis"
// +kubebuilder:validation:XValidation:rule=`!has(self.rehearsal) || self.type == "Rehearsal"`,message="rehearsal is only for tasks of type Rehearsal: remove it, or set that type",reason=FieldValueForbidden,fieldPath=".rehearsal"
// +kubebuilder:validation:XValidation:rule=`!has(self.startsAfter) || self.type == "Approval"`,message="startsAfter is only valid for tasks of type Approval: remove startsAfter, all others start at once",reason=FieldValueForbidden,fieldPath=".startsAfter"
// +kubebuilder:validation:XValidation:rule=`self.type != "Analysis" || !has(self.waitTime)`,message="a task of type Analysis has no waitTime: remove waitTime, its templates say how long they measure",reason=FieldValueForbidden,fieldPath=".waitTime"
type StageTask struct {
	// Type is TimedWait to wait for an amount of time, Approval to wait until a user
	// approves, Analysis to measure and wait until what is measured is good, Rehearsal to ask
	// clusters what the run would do, PrePull to have them pull images. The last three are additions of
	// fleetflow.
	// +kubebuilder:validation:Enum=TimedWait;Approval;Analysis;Rehearsal;PrePull
	// +required
	Type StageTaskType `json:"type"`

	// WaitTime is how long a TimedWait takes, such as 30s, 15m or 1h30m, counted from when
	// the last cluster of the stage is updated. An Approval has none; 0s counts as none.
	// For a PrePull, how long images are waited for at most: 10m without it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^(0|((0|[1-9][0-9]*)([.][0-9]+)?(ms|s|m|h))+)$") && (duration(self) == duration("0s") || duration(self) >= duration("1ms"))`,message="waitTime must be 0, or 1ms to 292 years: write it like 30s, 15m or 1h30m"
	// +optional
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`

	// Approval says which approvals count for an Approval.
	// An addition of fleetflow; without it, that of every user who may approve, as in
	// KubeFleet.
	// +optional
	Approval *ApprovalConfig `json:"approval,omitempty"`

	// StartsAfter has the types of other tasks on the same side of the stage, TimedWait, Analysis, Rehearsal and PrePull, that have to be done
	// before the approval is asked for: what has not passed them cannot be approved.
	// An addition of fleetflow; without it, the approval is asked for at once, as in KubeFleet.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=TimedWait;Analysis;Rehearsal;PrePull
	// +listType=set
	// +optional
	StartsAfter []StageTaskType `json:"startsAfter,omitempty"`

	// Analysis says what an Analysis measures, and what to do if that is not good.
	// An addition of fleetflow.
	// +optional
	Analysis *AnalysisConfig `json:"analysis,omitempty"`

	// Rehearsal says how much a Rehearsal lets pass; without it, nothing that is refused or not known.
	// An addition of fleetflow.
	// +optional
	Rehearsal *RehearsalConfig `json:"rehearsal,omitempty"`
}

// RehearsalConfig says how much a task of type Rehearsal lets pass. What it does not sets the run's state to Stop, before anything is
// written for the stage; setting it to Run asks once more.
type RehearsalConfig struct {
	// MaxRefused is how many clusters of the stage may refuse something, or have an object of another owner: a number or a percentage.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9]?[0-9])%$"
	// +optional
	MaxRefused *intstr.IntOrString `json:"maxRefused,omitempty"`

	// MaxUnknown is how many clusters of the stage may be unknown: a number or a percentage.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^(100|[1-9]?[0-9])%$"
	// +optional
	MaxUnknown *intstr.IntOrString `json:"maxUnknown,omitempty"`

	// ValidFor is how old the answers may be when the stage starts, such as 15m or 1h. If they are older, as an approval has taken its
	// time, the clusters are asked once more; if that becomes too old as well, the run stops.
	// +kubebuilder:default="15m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	// +optional
	ValidFor *metav1.Duration `json:"validFor,omitempty"`

	// Timeout is how long answers are waited for, such as 30s or 5m: a cluster that has not answered by then is unknown.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern="^([0-9]+(s|m|h))+$"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// AnalysisConfig says what a task of type Analysis measures, and what to do if that is not good.
type AnalysisConfig struct {
	// Templates are StageAnalyses of which all metrics are measured. The names of their metrics must be unique.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=name
	Templates []AnalysisTemplate `json:"templates"`

	// Args are the arguments of the templates.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Args []AnalysisArgument `json:"args,omitempty"`

	// OnFailure says what to do if too much of what is measured is bad: Pause, which is the
	// default, sets the run's state to Stop; setting it to Run measures once more. Abort ends the
	// run. Rollback ends it and creates another, called <run>-rollback, that takes every cluster
	// the run has updated back to what it had before.
	// +kubebuilder:validation:Enum=Pause;Abort;Rollback
	// +optional
	OnFailure AnalysisAction `json:"onFailure,omitempty"`

	// OnInconclusive says what to do if what is measured says neither, such as without data:
	// Pause, which is the default, Abort, Rollback or Proceed.
	// +kubebuilder:validation:Enum=Pause;Abort;Rollback;Proceed
	// +optional
	OnInconclusive AnalysisAction `json:"onInconclusive,omitempty"`

	// OnError says what to do if nothing can be measured, such as without an answer: Pause, which
	// is the default, Abort or Proceed. What cannot be measured takes nothing back.
	// +kubebuilder:validation:Enum=Pause;Abort;Proceed
	// +optional
	OnError AnalysisAction `json:"onError,omitempty"`

	// DryRun measures and shows what there is to see, and passes whatever that is.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// AnalysisTemplate names a StageAnalysis.
type AnalysisTemplate struct {
	// Name of the StageAnalysis.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// AnalysisArgument is the value of an argument of a template.
type AnalysisArgument struct {
	// Name of the argument.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z]([a-zA-Z0-9_]*[a-zA-Z0-9])?$"
	Name string `json:"name"`

	// Value of the argument. It has letters, digits, spaces and any of ._:/@- only.
	// +required
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9._:/@ -]*$"
	Value string `json:"value"`
}

// AnalysisAction says what to do after an analysis that has not passed.
type AnalysisAction string

const (
	// AnalysisPause stops the run until a user resumes it.
	AnalysisPause AnalysisAction = "Pause"
	// AnalysisAbort ends the run.
	AnalysisAbort AnalysisAction = "Abort"
	// AnalysisRollback ends the run and takes its clusters back.
	AnalysisRollback AnalysisAction = "Rollback"
	// AnalysisProceed passes.
	AnalysisProceed AnalysisAction = "Proceed"
)

// ApprovalConfig says which approvals count.
type ApprovalConfig struct {
	// ExcludedApprovers are those whose approvals do not count. With Creator, the user who has
	// created the run cannot approve it. Approvals then count with kubectl only: senders in
	// Temporal have names of their own.
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:Enum=Creator
	// +listType=set
	// +optional
	ExcludedApprovers []ExcludedApprover `json:"excludedApprovers,omitempty"`

	// PlanHash is WhenGiven, the default, or Required. With Required, approvals count only if they name the plan that they are for. With
	// either, one that names another plan than the run has by then does not count. An addition of fleetflow.
	// +kubebuilder:validation:Enum=WhenGiven;Required
	// +optional
	PlanHash PlanHashPolicy `json:"planHash,omitempty"`

	// Required is how many users have to approve, 1 if left out. An addition of fleetflow.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Required *int32 `json:"required,omitempty"`

	// Groups are those whose users may approve; all may if left out.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	Groups []string `json:"groups,omitempty"`

	// RequireGroups are those of each of which one user has to approve.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	RequireGroups []string `json:"requireGroups,omitempty"`

	// Comment is Required if users have to say why they approve, else Optional.
	// +kubebuilder:validation:Enum=Optional;Required
	// +optional
	Comment CommentPolicy `json:"comment,omitempty"`

	// ValidFor is how long a vote counts while others are missing, such as 24h; for as long as it takes if left out.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,6}(s|m|h))+$") && duration(self) >= duration("1m") && duration(self) <= duration("720h")`,message="validFor must be 1m to 720h: write it like 30m or 24h",reason=FieldValueInvalid
	// +optional
	ValidFor *metav1.Duration `json:"validFor,omitempty"`

	// StartsBy is how long the approval can be given, such as 72h; without a limit if left out. Then the request expires and the
	// run stops; setting its state to Run asks again.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,6}(s|m|h))+$") && duration(self) >= duration("1m") && duration(self) <= duration("720h")`,message="startsBy must be 1m to 720h: write it like 4h or 72h",reason=FieldValueInvalid
	// +optional
	StartsBy *metav1.Duration `json:"startsBy,omitempty"`
}

// CommentPolicy says whether users have to say why they approve.
type CommentPolicy string

const (
	// CommentOptional takes approvals without a comment.
	CommentOptional CommentPolicy = "Optional"
	// CommentRequired takes only approvals with a comment.
	CommentRequired CommentPolicy = "Required"
)

// PlanHashPolicy says whether approvals have to name the plan that they are for.
type PlanHashPolicy string

const (
	// PlanHashWhenGiven takes approvals that name no plan.
	PlanHashWhenGiven PlanHashPolicy = "WhenGiven"
	// PlanHashRequired takes only approvals that name the plan.
	PlanHashRequired PlanHashPolicy = "Required"
)

// ExcludedApprover is who may not approve.
type ExcludedApprover string

// ExcludedApproverCreator is the creator of the run.
const ExcludedApproverCreator ExcludedApprover = "Creator"

// StagedUpdateStrategy divides clusters into stages that are updated one after the other.
// Any number of runs in its namespace can use it; each works with a copy taken when it starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
// +kubebuilder:resource:scope=Namespaced,shortName=sus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Stages",type=string,JSONPath=`.spec.stages[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec has the stages.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.stages.all(s, !has(s.afterStageTasks) || s.afterStageTasks.all(t, !has(t.waitTime) || !t.waitTime.matches("ms|^0$")))`,message="waitTime is written with the units h, m and s only: write 0.5s for 500ms, and 0s for 0"
	Spec UpdateStrategySpec `json:"spec"`
}

// MinReady returns for how long a cluster of the stage has to be available until its update is done.
func (c *StageConfig) MinReady() time.Duration {
	if c.MinReadySeconds == nil {
		return 0
	}
	return time.Duration(*c.MinReadySeconds) * time.Second
}
