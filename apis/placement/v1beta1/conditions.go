package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of bindings, of placements per cluster, of Works and of manifests. On a
// placement as a whole they carry a prefix; see Scope.PlacementConditionType.
const (
	// ConditionTypeScheduled tells whether the clusters asked for were found.
	ConditionTypeScheduled = "Scheduled"
	// ConditionTypeRolloutStarted tells whether the latest resources have had their turn.
	ConditionTypeRolloutStarted = "RolloutStarted"
	// ConditionTypeOverridden tells whether the overrides could be applied.
	ConditionTypeOverridden = "Overridden"
	// ConditionTypeWorkSynchronized tells whether the Works are written.
	ConditionTypeWorkSynchronized = "WorkSynchronized"
	// ConditionTypeApplied tells whether the resources are applied on the cluster.
	ConditionTypeApplied = "Applied"
	// ConditionTypeAvailable tells whether the resources are up on the cluster.
	ConditionTypeAvailable = "Available"
	// ConditionTypeStalled is True on a manifest while its object says itself that it makes no progress: it says why. It may
	// still become available.
	ConditionTypeStalled = "Stalled"
	// ConditionTypeFailing is True on a manifest while its object is not available and the cluster tells why: its pods, events about them,
	// or the object's own conditions. Its reason is the cause.
	ConditionTypeFailing = "Failing"
	// ConditionTypeDiffReported tells whether the differences are reported.
	ConditionTypeDiffReported = "DiffReported"
	// ConditionTypeServing tells, on the binding of a placement with a hook that marks clusters, whether
	// traffic may be sent to the cluster.
	ConditionTypeServing = "Serving"
	// ConditionTypeStatusTrimmed tells that a Work's status was cut to fit.
	ConditionTypeStatusTrimmed = "StatusTrimmed"
	// ConditionTypeStatusSynced tells whether the copy of a placement's status in the selected
	// namespace is kept in step; it is there if the placement asks for one.
	ConditionTypeStatusSynced = "StatusSynced"
	// ConditionTypeDeleting is True on a placement whose deletion takes a
	// while: it names the clusters that are not clean yet.
	ConditionTypeDeleting = "Deleting"
	// ConditionTypeClustersLeaving is True while clusters that are no longer
	// selected are cleaned up: it names them.
	ConditionTypeClustersLeaving = "ClustersLeaving"
	// ConditionTypeRemovalsHeld is True while the hub agent holds removals
	// back that nothing explains: it names the clusters, and how to let them go.
	ConditionTypeRemovalsHeld = "RemovalsHeld"
	// ConditionTypeChangesHeld is True while changes of what a placement
	// selects wait longer than usual because they take so many bytes to write: it says until
	// when.
	ConditionTypeChangesHeld = "ChangesHeld"
	// ConditionTypeKindsHeld is True while the propagation of kinds is disabled
	// that a placement selects: it names them.
	ConditionTypeKindsHeld = "KindsHeld"
	// ConditionTypeDependenciesMissing is True while what the selected objects name
	// is not placed with them although the placement asks for it: it says what and why.
	ConditionTypeDependenciesMissing = "DependenciesMissing"
	// ConditionTypeResourcesMissing is True while objects that the selectors name do not exist on the hub, or
	// nothing at all matches the selectors: it names them.
	ConditionTypeResourcesMissing = "ResourcesMissing"
	// ConditionTypeResourcesLeftOut is True while objects that are selected are not placed as they are: because
	// they are too large, or because another placement has them, of those with a priority. It names the objects, and what to do.
	ConditionTypeResourcesLeftOut = "ResourcesLeftOut"
	// ConditionTypeRemovalPending is True while something that is not wanted any more is still on a member and
	// its removal waits or is refused: it names the objects, and says why they are there and what to do.
	ConditionTypeRemovalPending = "RemovalPending"
	// ConditionTypeUpdateRunHeld is True while the update run that the fleet is
	// to create for the latest resource snapshot waits: it says what for.
	ConditionTypeUpdateRunHeld = "UpdateRunHeld"
	// ConditionTypeEngineReachable is False while the workflow engine
	// cannot be reached and something waits for it.
	ConditionTypeEngineReachable = "EngineReachable"
)

// ConditionTypeHeld is True on placements and update runs while clusters wait to be started because something closes them.
const ConditionTypeHeld = "Held"

// ReasonResolved is the reason of a condition that once had something to tell, and has nothing any more.
const ReasonResolved = "Resolved"

// resolutions are what conditions say once there is nothing to tell any more. An object has none of them before there was, and keeps
// those that it has: kubectl wait for the opposite of what they told ends.
var resolutions = map[string]metav1.Condition{
	ConditionTypeHeld: {Status: metav1.ConditionFalse, Reason: ReasonResolved,
		Message: "No cluster waits because of a hold or a window"},
	ConditionTypeClustersLeaving: {Status: metav1.ConditionFalse, Reason: ReasonResolved,
		Message: "Clusters that are no longer selected are clean"},
	ConditionTypeRemovalsHeld: {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "No removal is held back"},
	ConditionTypeChangesHeld:  {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "No change is held back"},
	ConditionTypeKindsHeld: {Status: metav1.ConditionFalse, Reason: ReasonResolved,
		Message: "All kinds that are selected are propagated"},
	ConditionTypeDependenciesMissing: {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "No dependency is missing"},
	ConditionTypeResourcesMissing:    {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "What the selectors name exists"},
	ConditionTypeResourcesLeftOut:    {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "Nothing that is selected is left out"},
	ConditionTypeRemovalPending: {Status: metav1.ConditionFalse, Reason: ReasonResolved,
		Message: "What is not wanted any more is removed"},
	ConditionTypeUpdateRunHeld:   {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "No update run waits to be created"},
	ConditionTypeStatusTrimmed:   {Status: metav1.ConditionFalse, Reason: ReasonResolved, Message: "The status is complete"},
	ConditionTypeEngineReachable: {Status: metav1.ConditionTrue, Reason: ReasonResolved, Message: "Nothing waits for Temporal"},
	ConditionTypeBackInService: {Status: metav1.ConditionTrue, Reason: ReasonResolved,
		Message: "No cluster that the run does not update is out of service"},
	ConditionTypeServing: {Status: metav1.ConditionTrue, Reason: string(LifecycleNormal), Message: "No hook keeps traffic away"},
}

// Resolve has a condition say that there is nothing to tell any more, if the object has told of it.
func Resolve(conditions *[]metav1.Condition, conditionType string, generation int64, now metav1.Time) {
	said, known := resolutions[conditionType]
	if !known || meta.FindStatusCondition(*conditions, conditionType) == nil {
		return
	}
	said.Type = conditionType
	said.ObservedGeneration = generation
	said.LastTransitionTime = now
	meta.SetStatusCondition(conditions, said)
}

// WithResolved returns the wanted conditions and, after them, the old ones that are not wanted any more, which then say so.
func WithResolved(old, wanted []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	for i := range old {
		if _, known := resolutions[old[i].Type]; known && meta.FindStatusCondition(wanted, old[i].Type) == nil {
			wanted = append(wanted, old[i])
			Resolve(&wanted, old[i].Type, generation, now)
		}
	}
	return wanted
}

// FindTrue returns the condition of a type if it is True, else nil.
func FindTrue(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	if said := meta.FindStatusCondition(conditions, conditionType); said != nil && said.Status == metav1.ConditionTrue {
		return said
	}
	return nil
}

// PlacementConditionType returns the type that a condition has on a placement of the scope as a whole, such as
// ClusterResourcePlacementApplied or ResourcePlacementApplied for Applied.
func (s Scope) PlacementConditionType(conditionType string) string {
	return s.PlacementKind().Kind + conditionType
}

// Condition types of update runs, their stages, clusters and tasks, and of approval requests.
const (
	// ConditionTypeInitialized tells whether a run's plan was worked out.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeProgressing tells whether a run or stage moves on, and if not, why.
	ConditionTypeProgressing = "Progressing"
	// ConditionTypeSucceeded tells how a run, stage or cluster ended.
	ConditionTypeSucceeded = "Succeeded"
	// ConditionTypeStarted tells that a cluster has had its turn.
	ConditionTypeStarted = "Started"
	// ConditionTypeWritten is False while a run has started a cluster and its binding is not written. An addition of fleetflow.
	ConditionTypeWritten = "Written"
	// ConditionTypeBackInService is False on a run, and on clusters of it, while it could not put back into service what it has taken out
	// of service for a lifecycle hook and does not update any more. An addition of fleetflow.
	ConditionTypeBackInService = "BackInService"
	// ConditionTypeApprovalRequestCreated tells that the request for a task was made.
	ConditionTypeApprovalRequestCreated = "ApprovalRequestCreated"
	// ConditionTypeApprovalRequestApproved tells that the request for a task was approved.
	ConditionTypeApprovalRequestApproved = "ApprovalRequestApproved"
	// ConditionTypeWaitTimeElapsed tells that the wait of a task is over.
	ConditionTypeWaitTimeElapsed = "WaitTimeElapsed"
	// ConditionTypeAnalysisStarted tells that a task measures, or has measured.
	ConditionTypeAnalysisStarted = "AnalysisStarted"
	// ConditionTypeAnalysisSucceeded tells whether what a task has measured is good; Unknown until
	// that is known.
	ConditionTypeAnalysisSucceeded = "AnalysisSucceeded"
	// ConditionTypeRehearsed tells whether the clusters of a stage would take what a run would write; Unknown until that is known. An
	// addition of fleetflow.
	ConditionTypeRehearsed = "Rehearsed"
	// ConditionTypeImagesPulled is Unknown while the clusters of a stage pull images, and True once that has ended: its message says what was
	// not pulled. An addition of fleetflow.
	ConditionTypeImagesPulled = "ImagesPulled"
	// ConditionTypeApproved is set on an approval request by the user who approves.
	ConditionTypeApproved = "Approved"
	// ConditionTypeApprovalAccepted is set on an approval request by the hub.
	ConditionTypeApprovalAccepted = "ApprovalAccepted"
)

// Reasons on placements as a whole and per cluster.
const (
	// ReasonUnexplainedRemovals is that of ConditionTypeRemovalsHeld, ReasonTooManyBytes that of
	// ConditionTypeChangesHeld, ReasonPropagationDisabled that of ConditionTypeKindsHeld.
	ReasonUnexplainedRemovals = "UnexplainedRemovals"
	// ReasonFailoverHeld is that of ConditionTypeRemovalsHeld if a placement would leave too many clusters at once.
	ReasonFailoverHeld = "FailoverHeld"
	// Reasons of ConditionTypeRemovalsHeld if objects are no longer selected, though no change of the selectors explains it: all of
	// them, those of a namespace that is being deleted, or more than the catch's share.
	ReasonSelectionEmptied    = "SelectionEmptied"
	ReasonNamespaceDeleted    = "NamespaceDeleted"
	ReasonSelectionShrunk     = "SelectionShrunk"
	ReasonTooManyBytes        = "TooManyBytes"
	ReasonPropagationDisabled = "PropagationDisabled"
	// ReasonDependenciesNotFound is that of ConditionTypeDependenciesMissing.
	ReasonDependenciesNotFound = "DependenciesNotFound"
	// ReasonResourcesNotFound is that of ConditionTypeResourcesMissing.
	ReasonResourcesNotFound = "ResourcesNotFound"
	// ReasonObjectTooLarge is that of ConditionTypeResourcesLeftOut if an object is larger than what can be placed.
	ReasonObjectTooLarge = "ObjectTooLarge"
	// ReasonHeldByAnotherPlacement is that of ConditionTypeResourcesLeftOut.
	ReasonHeldByAnotherPlacement = "HeldByAnotherPlacement"
	// ReasonEarlierRunUnderWay and ReasonUpdateStrategyNotFound are those of
	// ConditionTypeUpdateRunHeld.
	ReasonEarlierRunUnderWay          = "EarlierRunUnderWay"
	ReasonUpdateStrategyNotFound      = "UpdateStrategyNotFound"
	ReasonSchedulePending             = "SchedulePending"             // scheduling is not done
	ReasonWaitingForScheduler         = "WaitingForScheduler"         // another scheduler is to pick the clusters
	ReasonSchedulingPolicyUnfulfilled = "SchedulingPolicyUnfulfilled" // too few clusters fit
	ReasonSchedulingPolicyFulfilled   = "SchedulingPolicyFulfilled"   // every cluster was found
	ReasonReplicasUnplaced            = "ReplicasUnplaced"            // every cluster was found, but bounds leave replicas over
	ReasonInvalidResourceSelectors    = "InvalidResourceSelectors"    // nothing can be selected so
	ReasonSelectionTooLarge           = "SelectionTooLarge"           // more is selected than one placement may
	ReasonScheduled                   = "Scheduled"                   // this cluster was picked
	ReasonScheduleFailed              = "ScheduleFailed"              // no cluster for this slot

	ReasonRolloutStartedUnknown = "RolloutStartedUnknown" // not decided yet, or by a run
	ReasonRolloutNotStartedYet  = "RolloutNotStartedYet"  // held back by the strategy
	ReasonRolloutStarted        = "RolloutStarted"        // under way
	ReasonRolloutPaused         = "RolloutPaused"         // paused before all clusters were updated
	ReasonPartitionReached      = "PartitionReached"      // all but those that the partition holds back are updated
	ReasonHeldByPartition       = "HeldByPartition"       // this cluster stays on an older snapshot
	ReasonSuspended             = "Suspended"             // nothing is written for this cluster, or for all that are not updated
	ReasonWaitingForHook        = "WaitingForHook"        // this cluster waits for the answer to a lifecycle hook
	ReasonWaitingForNewCluster  = "WaitingForNewCluster"  // this cluster is replaced, and the copy on the new one is not available
	ReasonRefused               = "Refused"               // the API server refuses to write for this cluster, which is tried again
	// ReasonRolloutControlledByExternalController means, in the vocabulary KubeFleet, that update
	// runs decide.
	ReasonRolloutControlledByExternalController = "RolloutControlledByExternalController"

	ReasonOverriddenPending       = "OverriddenPending"       // overrides not looked at yet
	ReasonRequiredOverrideMissing = "RequiredOverrideMissing" // an override that the placement requires is not in force
	ReasonOverriddenFailed        = "OverriddenFailed"        // an override could not be applied
	ReasonOverriddenSucceeded     = "OverriddenSucceeded"     // overrides applied
	ReasonNoOverrideSpecified     = "NoOverrideSpecified"     // no override concerns the resources

	ReasonWorkSynchronizedUnknown = "WorkSynchronizedUnknown" // Works not looked at yet
	ReasonWorkNotSynchronizedYet  = "WorkNotSynchronizedYet"  // Works not all written
	ReasonWorkSynchronized        = "WorkSynchronized"        // Works written

	ReasonApplyPending   = "ApplyPending"   // members have not reported
	ReasonApplyFailed    = "ApplyFailed"    // a member could not apply
	ReasonApplySucceeded = "ApplySucceeded" // applied everywhere

	ReasonResourceAvailableUnknown = "ResourceAvailableUnknown" // members have not reported
	ReasonResourceNotAvailableYet  = "ResourceNotAvailableYet"  // not up everywhere
	ReasonResourceAvailable        = "ResourceAvailable"        // up everywhere

	ReasonDiffReportingPending            = "DiffReportingPending"            // members have not reported
	ReasonDiffReportingIncompleteOrFailed = "DiffReportingIncompleteOrFailed" // not reported everywhere
	ReasonDiffReportingCompleted          = "DiffReportingCompleted"          // reported everywhere

	// ReasonCleaningUp means that clusters are not clean yet that a placement no longer selects or that a deleted placement had,
	// ReasonWaitingForRolloutStrategy that the strategy does not let their clean-up start yet, ReasonWaitingForSilentClusters
	// that some do not report, ReasonSuperseded that what is placed there stays until it is evicted.
	ReasonCleaningUp                = "CleaningUp"
	ReasonWaitingForRolloutStrategy = "WaitingForRolloutStrategy"
	ReasonWaitingForSilentClusters  = "WaitingForSilentClusters"
	ReasonSuperseded                = "Superseded"

	ReasonStatusSyncSucceeded = "StatusSyncSucceeded" // the copy in the namespace is as the status
	ReasonStatusSyncFailed    = "StatusSyncFailed"    // the copy could not be written

	// ReasonTemporalUnreachable means that decisions wait for the workflow engine.
	ReasonTemporalUnreachable = "TemporalUnreachable"
)

// Reasons on bindings. Those for RolloutStarted and Overridden are shared with placements.
const (
	ReasonAllWorkSynced  = "AllWorkSynced"  // every Work is as the binding wants it
	ReasonSyncWorkFailed = "SyncWorkFailed" // a Work could not be written

	ReasonApplyInProgress           = "ApplyInProgress"           // no report for this revision yet
	ReasonNotAllWorkHaveBeenApplied = "NotAllWorkHaveBeenApplied" // a Work is not applied
	ReasonAllWorkHaveBeenApplied    = "AllWorkHaveBeenApplied"    // every Work is applied

	ReasonNotAllWorkAreAvailable = "NotAllWorkAreAvailable" // a Work is not available
	ReasonAllWorkAreAvailable    = "AllWorkAreAvailable"    // every Work is available
	// ReasonScalingOnly means that only replicas are missing whose number was changed, and that no fewer are ready than before
	// or, if there are to be fewer, than are asked for now.
	ReasonScalingOnly = "ScalingOnly"
	// ReasonNotAllWorkAreAvailabilityTrackable means every Work is applied, but of one it
	// is unknown whether it is up.
	ReasonNotAllWorkAreAvailabilityTrackable = "NotAllWorkAreAvailabilityTrackable"

	ReasonDiffReportInProgress       = "DiffReportInProgress"       // no report yet
	ReasonNotAllWorkHaveDiffReported = "NotAllWorkHaveDiffReported" // a Work has not reported
	ReasonAllWorkHaveDiffReported    = "AllWorkHaveDiffReported"    // every Work has reported
)

// Reasons on Works.
const (
	ReasonAllManifestsApplied        = "AllManifestsApplied"        // all applied
	ReasonSomeManifestsAreNotApplied = "SomeManifestsAreNotApplied" // not all applied

	ReasonAllManifestsAvailable        = "AllManifestsAvailable"        // all up
	ReasonSomeManifestsAreNotAvailable = "SomeManifestsAreNotAvailable" // not all up
	ReasonWorkNotTrackable             = "WorkNotTrackable"             // unknown of some

	ReasonAllManifestsDiffReported         = "AllManifestsDiffReported"         // all compared
	ReasonSomeManifestsHaveNotReportedDiff = "SomeManifestsHaveNotReportedDiff" // not all compared
)

// KeepTransitionTimes returns the wanted conditions, each with a last transition time: that of the
// old condition of its type if the status is the same, now otherwise.
func KeepTransitionTimes(old, wanted []metav1.Condition, now metav1.Time) []metav1.Condition {
	for i := range wanted {
		wanted[i].LastTransitionTime = now
		if before := meta.FindStatusCondition(old, wanted[i].Type); before != nil && before.Status == wanted[i].Status {
			wanted[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return wanted
}
