package v1beta1

import clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"

// The names that KubeFleet's Go packages have for what has another one here, so that programs need not be changed. Their values are the
// same. Formats of names are left out: names are made by the agents.

// ApprovalRequestConditionType is a condition of an approval request.
type ApprovalRequestConditionType string

// Conditions of an approval request.
const (
	ApprovalRequestConditionApprovalAccepted ApprovalRequestConditionType = "ApprovalAccepted"
	ApprovalRequestConditionApproved         ApprovalRequestConditionType = "Approved"
)

// ClusterResourcePlacementConditionType is a condition of a ClusterResourcePlacement.
type ClusterResourcePlacementConditionType string

// Conditions of a ClusterResourcePlacement.
const (
	ClusterResourcePlacementAppliedConditionType          ClusterResourcePlacementConditionType = "ClusterResourcePlacementApplied"
	ClusterResourcePlacementAvailableConditionType        ClusterResourcePlacementConditionType = "ClusterResourcePlacementAvailable"
	ClusterResourcePlacementDiffReportedConditionType     ClusterResourcePlacementConditionType = "ClusterResourcePlacementDiffReported"
	ClusterResourcePlacementOverriddenConditionType       ClusterResourcePlacementConditionType = "ClusterResourcePlacementOverridden"
	ClusterResourcePlacementRolloutStartedConditionType   ClusterResourcePlacementConditionType = "ClusterResourcePlacementRolloutStarted"
	ClusterResourcePlacementScheduledConditionType        ClusterResourcePlacementConditionType = "ClusterResourcePlacementScheduled"
	ClusterResourcePlacementStatusSyncedConditionType     ClusterResourcePlacementConditionType = "ClusterResourcePlacementStatusSynced"
	ClusterResourcePlacementWorkSynchronizedConditionType ClusterResourcePlacementConditionType = "ClusterResourcePlacementWorkSynchronized"
)

// ClusterUpdatingStatusConditionType is a condition of a cluster of an update run.
type ClusterUpdatingStatusConditionType string

// Conditions of a cluster of an update run.
const (
	ClusterUpdatingConditionStarted   ClusterUpdatingStatusConditionType = "Started"
	ClusterUpdatingConditionSucceeded ClusterUpdatingStatusConditionType = "Succeeded"
)

// PerClusterPlacementConditionType is a condition of a cluster in the status of a placement.
type PerClusterPlacementConditionType string

// Conditions of a cluster in the status of a placement.
const (
	PerClusterAppliedConditionType          PerClusterPlacementConditionType = "Applied"
	PerClusterAvailableConditionType        PerClusterPlacementConditionType = "Available"
	PerClusterDiffReportedConditionType     PerClusterPlacementConditionType = "DiffReported"
	PerClusterOverriddenConditionType       PerClusterPlacementConditionType = "Overridden"
	PerClusterRolloutStartedConditionType   PerClusterPlacementConditionType = "RolloutStarted"
	PerClusterScheduledConditionType        PerClusterPlacementConditionType = "Scheduled"
	PerClusterWorkSynchronizedConditionType PerClusterPlacementConditionType = "WorkSynchronized"
)

// PlacementEvictionConditionType is a condition of an eviction.
type PlacementEvictionConditionType string

// Conditions of an eviction.
const (
	PlacementEvictionConditionTypeExecuted PlacementEvictionConditionType = "Executed"
	PlacementEvictionConditionTypeValid    PlacementEvictionConditionType = "Valid"
)

// ResourceBindingConditionType is a condition of a binding.
type ResourceBindingConditionType string

// Conditions of a binding.
const (
	ResourceBindingApplied          ResourceBindingConditionType = "Applied"
	ResourceBindingAvailable        ResourceBindingConditionType = "Available"
	ResourceBindingDiffReported     ResourceBindingConditionType = "DiffReported"
	ResourceBindingOverridden       ResourceBindingConditionType = "Overridden"
	ResourceBindingRolloutStarted   ResourceBindingConditionType = "RolloutStarted"
	ResourceBindingWorkSynchronized ResourceBindingConditionType = "WorkSynchronized"
)

// ResourcePlacementConditionType is a condition of a ResourcePlacement.
type ResourcePlacementConditionType string

// Conditions of a ResourcePlacement.
const (
	ResourcePlacementAppliedConditionType          ResourcePlacementConditionType = "ResourcePlacementApplied"
	ResourcePlacementAvailableConditionType        ResourcePlacementConditionType = "ResourcePlacementAvailable"
	ResourcePlacementDiffReportedConditionType     ResourcePlacementConditionType = "ResourcePlacementDiffReported"
	ResourcePlacementOverriddenConditionType       ResourcePlacementConditionType = "ResourcePlacementOverridden"
	ResourcePlacementRolloutStartedConditionType   ResourcePlacementConditionType = "ResourcePlacementRolloutStarted"
	ResourcePlacementScheduledConditionType        ResourcePlacementConditionType = "ResourcePlacementScheduled"
	ResourcePlacementWorkSynchronizedConditionType ResourcePlacementConditionType = "ResourcePlacementWorkSynchronized"
)

// ResourceScope is whether something is of the cluster or in a namespace.
type ResourceScope = PlacementScope

// SchedulingPolicySnapshotConditionType is a condition of a policy snapshot.
type SchedulingPolicySnapshotConditionType string

// Conditions of a policy snapshot.
const (
	PolicySnapshotScheduled SchedulingPolicySnapshotConditionType = "Scheduled"
)

// StageTaskConditionType is a condition of a task of a stage.
type StageTaskConditionType string

// Conditions of a task of a stage.
const (
	StageTaskConditionApprovalRequestApproved StageTaskConditionType = "ApprovalRequestApproved"
	StageTaskConditionApprovalRequestCreated  StageTaskConditionType = "ApprovalRequestCreated"
	StageTaskConditionWaitTimeElapsed         StageTaskConditionType = "WaitTimeElapsed"
)

// StageUpdatingConditionType is a condition of a stage of an update run.
type StageUpdatingConditionType string

// Conditions of a stage of an update run.
const (
	StageUpdatingConditionProgressing StageUpdatingConditionType = "Progressing"
	StageUpdatingConditionSucceeded   StageUpdatingConditionType = "Succeeded"
)

// StagedUpdateRunConditionType is a condition of an update run.
type StagedUpdateRunConditionType string

// Conditions of an update run.
const (
	StagedUpdateRunConditionInitialized StagedUpdateRunConditionType = "Initialized"
	StagedUpdateRunConditionProgressing StagedUpdateRunConditionType = "Progressing"
	StagedUpdateRunConditionSucceeded   StagedUpdateRunConditionType = "Succeeded"
)

// Kinds.
const (
	AppliedWorkKind                              = "AppliedWork"
	ApprovalRequestKind                          = "ApprovalRequest"
	ClusterApprovalRequestKind                   = "ClusterApprovalRequest"
	ClusterResourceBindingKind                   = "ClusterResourceBinding"
	ClusterResourceEnvelopeKind                  = "ClusterResourceEnvelope"
	ClusterResourcePlacementDisruptionBudgetKind = "ClusterResourcePlacementDisruptionBudget"
	ClusterResourcePlacementEvictionKind         = "ClusterResourcePlacementEviction"
	ClusterResourcePlacementKind                 = "ClusterResourcePlacement"
	ClusterResourcePlacementStatusKind           = "ClusterResourcePlacementStatus"
	ClusterResourceSnapshotKind                  = "ClusterResourceSnapshot"
	ClusterSchedulingPolicySnapshotKind          = "ClusterSchedulingPolicySnapshot"
	ClusterStagedUpdateRunKind                   = "ClusterStagedUpdateRun"
	ClusterStagedUpdateStrategyKind              = "ClusterStagedUpdateStrategy"
	ResourceBindingKind                          = "ResourceBinding"
	ResourceEnvelopeKind                         = "ResourceEnvelope"
	ResourcePlacementKind                        = "ResourcePlacement"
	ResourceSnapshotKind                         = "ResourceSnapshot"
	SchedulingPolicySnapshotKind                 = "SchedulingPolicySnapshot"
	StagedUpdateRunKind                          = "StagedUpdateRun"
	StagedUpdateStrategyKind                     = "StagedUpdateStrategy"
	WorkKind                                     = "Work"
)

// Kinds in URLs.
const (
	ClusterResourcePlacementResource = "clusterresourceplacements"
	ResourcePlacementResource        = "resourceplacements"
)

// Conditions of a Work.
const (
	WorkConditionTypeApplied       = "Applied"
	WorkConditionTypeAvailable     = "Available"
	WorkConditionTypeDiffReported  = "DiffReported"
	WorkConditionTypeStatusTrimmed = "StatusTrimmed"
)

// Labels, their values, finalizers, and the stage that clears clusters.
const (
	AfterStageTaskLabelValue                       = "afterStage"
	BeforeStageTaskLabelValue                      = "beforeStage"
	ClusterResourcePlacementStatusCleanupFinalizer = PlacementStatusFinalizer
	FleetResourceLabelKey                          = clusterv1beta1.FleetResourceLabel
	OverrideFinalizer                              = OverrideCleanupFinalizer
	OverrideTrackingLabel                          = ParentOverrideLabel
	PlacementTrackingLabel                         = ParentPlacementLabel
	ResourcePlacementCleanupFinalizer              = FleetPrefix + "rp-cleanup"
	SchedulerBindingCleanupFinalizer               = SchedulerBindingFinalizer
	TargetUpdatingStageNameLabel                   = TargetUpdatingStageLabel
	UpdateRunDeleteStageName                       = DeletionStageName
)
