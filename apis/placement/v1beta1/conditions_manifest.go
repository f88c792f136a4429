package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Applied on manifests.
const (
	// ReasonDecodingErred means the manifest is not an object the cluster knows.
	ReasonDecodingErred = "DecodingErred"
	// ReasonFoundGenerateName means the manifest has no name of its own.
	ReasonFoundGenerateName = "FoundGenerateName"
	// ReasonDuplicated means the Work has the same object more than once.
	ReasonDuplicated = "Duplicated"
	// ReasonFailedToFindObjInMemberCluster means the object could not be read.
	ReasonFailedToFindObjInMemberCluster = "FailedToFindObjInMemberCluster"
	// ReasonFailedToTakeOver means the object exists and may not be taken over as it is.
	ReasonFailedToTakeOver = "FailedToTakeOver"
	// ReasonNotTakenOver means the object exists and is to be left alone.
	ReasonNotTakenOver = "NotTakenOver"
	// ReasonRefusedByMember means the owner of the cluster does not let the fleet place the object.
	ReasonRefusedByMember = "RefusedByMember"
	// ReasonReservedForKubernetes means the object is a role or a binding that Kubernetes keeps for itself.
	ReasonReservedForKubernetes = "ReservedForKubernetes"
	// ReasonApplyConflictBetweenPlacements means another placement has the object.
	ReasonApplyConflictBetweenPlacements = "ApplyConflictBetweenPlacements"
	// ReasonApplyConflictWithOtherApplier means that another applier owns the same fields
	// server-side.
	ReasonApplyConflictWithOtherApplier = "ApplyConflictWithOtherApplier"
	// ReasonFailedToRunDriftDetection means it could not be told whether the object drifted.
	ReasonFailedToRunDriftDetection = "FailedToRunDriftDetection"
	// ReasonFoundDrifts means the object drifted and is left alone.
	ReasonFoundDrifts = "FoundDrifts"
	// ReasonFoundDriftsInDegradedMode means the same, found without the API
	// server: it refuses the object as it is to be.
	ReasonFoundDriftsInDegradedMode = "FoundDriftsInDegradedMode"
	// ReasonManifestApplyFailed means the API server refused the object.
	ReasonManifestApplyFailed = "ManifestApplyFailed"
	// ReasonApplied means the object is applied.
	ReasonApplied = "Applied"
	// ReasonAppliedWithDifference means the API server took the object, and made it something else
	// than the manifest says. The status is True: another attempt would change nothing.
	ReasonAppliedWithDifference = "AppliedWithDifference"
)

// Reasons of the condition RemovalPending.
const (
	// ReasonRemovalRefused means the API server of the member refuses the removal.
	ReasonRemovalRefused = "RemovalRefused"
	// ReasonInUse means others have objects that would be removed with it.
	ReasonInUse = "InUse"
	// ReasonWaitingForFinalizers means finalizers keep an object that is being deleted.
	ReasonWaitingForFinalizers = "WaitingForFinalizers"
	// ReasonWaitingForHandover means another Work wants the object and has not taken it over yet.
	ReasonWaitingForHandover = "WaitingForHandover"
	// ReasonRemovalHeldBack means nothing is removed while another manifest of the same Work fails.
	ReasonRemovalHeldBack = "RemovalHeldBack"
)

// Reasons of the condition Available on manifests.
const (
	// ReasonAvailable means the object is up.
	ReasonAvailable = "Available"
	// ReasonManifestNotAvailableYet means the object is not up yet.
	ReasonManifestNotAvailableYet = "ManifestNotAvailableYet"
	// ReasonManifestFailed means the object has failed for good, as its own status says.
	ReasonManifestFailed = "ManifestFailed"
	// ReasonNotTrackable means it is unknown; the object counts as up.
	ReasonNotTrackable = "NotTrackable"
	// ReasonFailed means looking at the object failed.
	ReasonFailed = "Failed"
)

// ReasonStalled is that of the condition Stalled on manifests.
const ReasonStalled = "Stalled"

// Reasons of the condition Failing on manifests.
const (
	// ReasonImageNotPulled means that the image of a container cannot be pulled.
	ReasonImageNotPulled = "ImageNotPulled"
	// ReasonOutOfMemory means that a container was killed because it took more memory than it may.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonCrashLoop means that a container exits, again and again if it is started again.
	ReasonCrashLoop = "CrashLoop"
	// ReasonCannotStart means that a container cannot be created or started, for example because a ConfigMap is missing.
	ReasonCannotStart = "CannotStart"
	// ReasonUnschedulable means that no node takes a pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonQuotaExceeded means that a quota does not let pods be created.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPodsRefused means that the API server does not let pods be created for another reason.
	ReasonPodsRefused = "PodsRefused"
	// ReasonMountFails means that a volume cannot be attached or mounted.
	ReasonMountFails = "MountFails"
	// ReasonEvicted means that a node has ended a pod.
	ReasonEvicted = "Evicted"
	// ReasonProbeFails means that a pod runs and its probes fail.
	ReasonProbeFails = "ProbeFails"
	// ReasonNoAddress means that no load balancer has given a Service an address.
	ReasonNoAddress = "NoAddress"
	// ReasonNoVolume means that no volume is bound to a claim.
	ReasonNoVolume = "NoVolume"
	// ReasonNotReady means that a condition of the object itself says why.
	ReasonNotReady = "NotReady"
	// ReasonCauseUnknown means that the agent could not look.
	ReasonCauseUnknown = "CauseUnknown"
)

// Reasons of the condition DiffReported on manifests.
const (
	// ReasonFailedToReportDiff means the comparison failed.
	ReasonFailedToReportDiff = "FailedToReportDiff"
	// ReasonFoundDiff means hub and cluster differ.
	ReasonFoundDiff = "FoundDiff"
	// ReasonFoundDiffInDegradedMode means the same, found without the API server: it
	// refuses the object as it is to be.
	ReasonFoundDiffInDegradedMode = "FoundDiffInDegradedMode"
	// ReasonNoDiffFound means hub and cluster agree.
	ReasonNoDiffFound = "NoDiffFound"
)

// IsFinal reports whether an object has failed and will not become available before its manifest changes, as a Job that is over: one that
// is only not available yet has not.
func (f *FailedResourcePlacement) IsFinal() bool {
	return f.Condition.Type != ConditionTypeAvailable || f.Condition.Reason == ReasonManifestFailed
}

// Stall returns the condition by which an object says that it makes no progress or has failed for good; nil if none says so.
func (m *ManifestCondition) Stall() *metav1.Condition {
	if said := FindTrue(m.Conditions, ConditionTypeStalled); said != nil {
		return said
	}
	said := meta.FindStatusCondition(m.Conditions, ConditionTypeAvailable)
	if said != nil && said.Status == metav1.ConditionFalse && said.Reason == ReasonManifestFailed {
		return said
	}
	return nil
}
