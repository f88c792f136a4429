package v1beta1

// Reasons on update runs.
const (
	// ReasonUpdateRunInitializedSuccessfully means the plan is frozen in the status.
	ReasonUpdateRunInitializedSuccessfully = "UpdateRunInitializedSuccessfully"
	// ReasonUpdateRunInitializedFailed means there can be no plan; the run is over.
	ReasonUpdateRunInitializedFailed = "UpdateRunInitializedFailed"
	// ReasonUpdateRunStarted means the run moves on.
	ReasonUpdateRunStarted = "UpdateRunStarted"
	// ReasonUpdateRunProgressing means the same in the vocabulary KubeFleet.
	ReasonUpdateRunProgressing = "UpdateRunProgressing"
	// ReasonUpdateRunWaiting means the run waits for the one it rolls back to end; in the
	// vocabulary KubeFleet also that it waits for the tasks of a stage.
	ReasonUpdateRunWaiting = "UpdateRunWaiting"
	// ReasonUpdateRunStuck means a cluster takes longer than it should.
	ReasonUpdateRunStuck = "UpdateRunStuck"
	// ReasonUpdateRunStopping means clusters under way are being finished.
	ReasonUpdateRunStopping = "UpdateRunStopping"
	// ReasonUpdateRunStopped means nothing is under way; the run waits to be resumed.
	ReasonUpdateRunStopped = "UpdateRunStopped"
	// ReasonUpdateRunFailed means the run was abandoned.
	ReasonUpdateRunFailed = "UpdateRunFailed"
	// ReasonUpdateRunSucceeded means every stage is done.
	ReasonUpdateRunSucceeded = "UpdateRunSucceeded"
)

// Reasons on stages of an update run.
const (
	// ReasonStageUpdatingStarted means clusters are being updated.
	ReasonStageUpdatingStarted = "StageUpdatingStarted"
	// ReasonStageUpdatingWaiting means the stage waits for its tasks.
	ReasonStageUpdatingWaiting = "StageUpdatingWaiting"
	// ReasonStageUpdatingStopping means clusters under way are being finished.
	ReasonStageUpdatingStopping = "StageUpdatingStopping"
	// ReasonStageUpdatingStopped means nothing is under way; the stage waits to be resumed.
	ReasonStageUpdatingStopped = "StageUpdatingStopped"
	// ReasonStageUpdatingFailed means the stage was abandoned.
	ReasonStageUpdatingFailed = "StageUpdatingFailed"
	// ReasonStageUpdatingSucceeded means clusters and tasks are done.
	ReasonStageUpdatingSucceeded = "StageUpdatingSucceeded"
	// ReasonStageUpdatingSkippedNoClusters means the stage had no clusters; its tasks were
	// skipped too.
	ReasonStageUpdatingSkippedNoClusters = "StageUpdatingSkippedNoClusters"
)

// Reasons on clusters of an update run.
const (
	// ReasonClusterUpdatingStarted means the cluster has had its turn.
	ReasonClusterUpdatingStarted = "ClusterUpdatingStarted"
	// ReasonClusterUpdatingFailed means the cluster could not be updated.
	ReasonClusterUpdatingFailed = "ClusterUpdatingFailed"
	// ReasonClusterUpdatingSucceeded means the cluster runs the snapshot and is available.
	ReasonClusterUpdatingSucceeded = "ClusterUpdatingSucceeded"
	// ReasonClusterUpdatingSkipped means the run goes on, or has gone on, without the cluster.
	// It is one of fleetflow's own.
	ReasonClusterUpdatingSkipped = "ClusterUpdatingSkipped"
)

// Reasons on tasks of a stage. Tasks before and after a stage have words of their own.
const (
	// ReasonAfterStageTaskApprovalRequestCreated means the request was made.
	ReasonAfterStageTaskApprovalRequestCreated = "AfterStageTaskApprovalRequestCreated"
	// ReasonAfterStageTaskApprovalRequestApproved means the request was approved.
	ReasonAfterStageTaskApprovalRequestApproved = "AfterStageTaskApprovalRequestApproved"
	// ReasonAfterStageTaskWaitTimeElapsed means the wait is over.
	ReasonAfterStageTaskWaitTimeElapsed = "AfterStageTaskWaitTimeElapsed"
	// ReasonStageTaskApprovalRequestCreated means the request before a stage was made.
	ReasonStageTaskApprovalRequestCreated = "StageTaskApprovalRequestCreated"
	// ReasonStageTaskApprovalRequestApproved means the request before a stage was approved.
	ReasonStageTaskApprovalRequestApproved = "StageTaskApprovalRequestApproved"
)

// Reasons on tasks of type Analysis, which are additions of fleetflow.
const (
	// ReasonStageTaskAnalysisStarted means that an attempt measures.
	ReasonStageTaskAnalysisStarted = "StageTaskAnalysisStarted"
	// ReasonStageTaskAnalysisSucceeded means that what was measured is good.
	ReasonStageTaskAnalysisSucceeded = "StageTaskAnalysisSucceeded"
	// ReasonStageTaskAnalysisDryRun means that the task passes, whatever was measured.
	ReasonStageTaskAnalysisDryRun = "StageTaskAnalysisDryRun"
	// ReasonStageTaskAnalysisWaived means that the task passes by a RolloutExemption.
	ReasonStageTaskAnalysisWaived = "StageTaskAnalysisWaived"
	// ReasonStageTaskAnalysisFailed means that too much of what was measured is bad.
	ReasonStageTaskAnalysisFailed = "StageTaskAnalysisFailed"
	// ReasonStageTaskAnalysisInconclusive means that too much of what was measured says neither.
	ReasonStageTaskAnalysisInconclusive = "StageTaskAnalysisInconclusive"
	// ReasonStageTaskAnalysisError means that it could not be measured.
	ReasonStageTaskAnalysisError = "StageTaskAnalysisError"
	// ReasonStageTaskAnalysisStopped means that the run has ended before the analysis has.
	ReasonStageTaskAnalysisStopped = "StageTaskAnalysisStopped"
)

// Reasons on tasks of type Rehearsal, which are additions of fleetflow.
const (
	// ReasonStageTaskRehearsalStarted means that the clusters of the stage are asked.
	ReasonStageTaskRehearsalStarted = "StageTaskRehearsalStarted"
	// ReasonStageTaskRehearsalRenewed means that they are asked once more, as their answers have become too old.
	ReasonStageTaskRehearsalRenewed = "StageTaskRehearsalRenewed"
	// ReasonStageTaskRehearsalPassed means that the clusters would take what the run would write.
	ReasonStageTaskRehearsalPassed = "StageTaskRehearsalPassed"
	// ReasonStageTaskRehearsalRefused means that too many clusters would refuse it.
	ReasonStageTaskRehearsalRefused = "StageTaskRehearsalRefused"
	// ReasonStageTaskRehearsalUnknown means that of too many clusters it is not known.
	ReasonStageTaskRehearsalUnknown = "StageTaskRehearsalUnknown"
	// ReasonStageTaskRehearsalOutdated means that the answers were too old twice before the stage started.
	ReasonStageTaskRehearsalOutdated = "StageTaskRehearsalOutdated"
	// ReasonStageTaskRehearsalStopped means that the run has ended before the clusters have answered.
	ReasonStageTaskRehearsalStopped = "StageTaskRehearsalStopped"
)

// Reasons on tasks of type PrePull, which are additions of fleetflow.
const (
	// ReasonStageTaskPrePullStarted means that the clusters of the stage pull images.
	ReasonStageTaskPrePullStarted = "StageTaskPrePullStarted"
	// ReasonStageTaskPrePullDelayed means that the clusters could not be asked yet, and that it is tried again.
	ReasonStageTaskPrePullDelayed = "StageTaskPrePullDelayed"
	// ReasonStageTaskPrePullPulled means that all of them have all images.
	ReasonStageTaskPrePullPulled = "StageTaskPrePullPulled"
	// ReasonStageTaskPrePullIncomplete means that the stage goes on although some images were not pulled, or are not known to be.
	ReasonStageTaskPrePullIncomplete = "StageTaskPrePullIncomplete"
	// ReasonStageTaskPrePullStopped means that the run has ended before the images were pulled.
	ReasonStageTaskPrePullStopped = "StageTaskPrePullStopped"
)

// ReasonApproverNotAllowed means that an approval was taken back by the hub, because who has
// given it may not approve the run.
const ReasonApproverNotAllowed = "ApproverNotAllowed"

// Reasons of approvals that the hub has taken back because of the plan that they are for.
const (
	// ReasonPlanChanged means that the run has another plan than the one that the approval names.
	ReasonPlanChanged = "PlanChanged"
	// ReasonPlanHashMissing means that the approval names no plan, and its task asks for it.
	ReasonPlanHashMissing = "PlanHashMissing"
)

// Reasons of approvals that are given for a time.
const (
	// ReasonVoteExpired means that a vote counts no longer, as the others have not come in time.
	ReasonVoteExpired = "Expired"
	// ReasonRequestExpired means that the stage was not approved in time, and that the run stops.
	ReasonRequestExpired = "RequestExpired"
	// ReasonApprovalAskedAgain means that another request asks for the approval.
	ReasonApprovalAskedAgain = "AskedAgain"
)

// Reasons of approval requests that take votes.
const (
	// ReasonVotesMissing means that more users have to vote for the stage.
	ReasonVotesMissing = "VotesMissing"
	// ReasonVotesComplete means that those who have to vote for the stage have done so.
	ReasonVotesComplete = "VotesComplete"
	// ReasonVoteRejected means that a user has voted against the stage, which has taken back all votes.
	ReasonVoteRejected = "VoteRejected"
	// ReasonCommentMissing means that a vote does not say why, and its task asks for it.
	ReasonCommentMissing = "CommentMissing"
)

// ReasonApprovalRequestApprovalAccepted means the hub has accepted an approval; it cannot be
// taken back.
const ReasonApprovalRequestApprovalAccepted = "ApprovalRequestApprovalAccepted"
