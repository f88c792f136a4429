package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// FleetPrefix starts the labels, annotations and finalizers that KubeFleet defines.
const FleetPrefix = "kubernetes-fleet.io/"

// OwnPrefix starts those that fleetflow adds.
const OwnPrefix = clusterv1beta1.OwnPrefix

// Labels.
const (
	// ParentPlacementLabel has the name of the placement an object was made for.
	ParentPlacementLabel = FleetPrefix + "parent-CRP"
	// IsLatestSnapshotLabel is "true" on the newest snapshot of a placement.
	IsLatestSnapshotLabel = FleetPrefix + "is-latest-snapshot"
	// ResourceIndexLabel has the index of a resource snapshot; all its parts share it.
	ResourceIndexLabel = FleetPrefix + "resource-index"
	// PolicyIndexLabel has the index of a policy snapshot.
	PolicyIndexLabel = FleetPrefix + "policy-index"
	// OverrideIndexLabel has the index of an override snapshot.
	OverrideIndexLabel = FleetPrefix + "override-index"
	// ParentOverrideLabel has the name of the override a snapshot was taken of.
	ParentOverrideLabel = FleetPrefix + "parent-resource-override"
	// FleetResourceLabel marks objects the fleet made for itself; they are never placed.
	FleetResourceLabel = clusterv1beta1.FleetResourceLabel
	// ParentResourceSnapshotIndexLabel has, on a Work, the index of the snapshot in it.
	ParentResourceSnapshotIndexLabel = FleetPrefix + "parent-resource-snapshot-index"
	// ParentBindingLabel has, on a Work, the name of the binding it was made for.
	ParentBindingLabel = FleetPrefix + "parent-resource-binding"
	// ParentNamespaceLabel has the namespace of the placement an object was made for, if
	// the placement is namespaced.
	ParentNamespaceLabel = FleetPrefix + "parent-placement-namespace"
	// EnvelopeTypeLabel has, on a Work made of an envelope, the kind of the envelope.
	EnvelopeTypeLabel = FleetPrefix + "envelope-work"
	// EnvelopeNamespaceLabel has the namespace of that envelope.
	EnvelopeNamespaceLabel = FleetPrefix + "envelope-namespace"
	// EnvelopeNameLabel has the name of that envelope, cut if it is too long for a label.
	EnvelopeNameLabel = FleetPrefix + "envelope-name"
	// TargetUpdateRunLabel has, on an approval request, the name of the run.
	TargetUpdateRunLabel = FleetPrefix + "targetUpdateRun"
	// TargetUpdateRunLowercaseLabel is the older spelling of TargetUpdateRunLabel; approval
	// requests carry both, so that selectors with either find them.
	TargetUpdateRunLowercaseLabel = FleetPrefix + "targetupdaterun"
	// TargetUpdatingStageLabel has, on an approval request, the name of the stage.
	TargetUpdatingStageLabel = FleetPrefix + "targetUpdatingStage"
	// IsLatestUpdateRunApprovalLabel is "true" on the newest approval request of a run.
	IsLatestUpdateRunApprovalLabel = FleetPrefix + "isLatestUpdateRunApproval"
	// LifecycleStateLabel has, on a binding that has waited for a hook, where the cluster stands; see
	// LifecycleState.
	LifecycleStateLabel = OwnPrefix + "lifecycle-state"
	// TaskTypeLabel says whether an approval request is for before or after its stage.
	TaskTypeLabel = FleetPrefix + "taskType"
)

// Values of labels.
const (
	// LabelValueTrue is the value of IsLatestSnapshotLabel and IsLatestUpdateRunApprovalLabel
	// on the newest object.
	LabelValueTrue = "true"
	// LabelValueFalse is their value on the others.
	LabelValueFalse = "false"
	// TaskTypeBeforeStage is the value of TaskTypeLabel for a task before the stage.
	TaskTypeBeforeStage = "beforeStage"
	// TaskTypeAfterStage is the value of TaskTypeLabel for a task after the stage.
	TaskTypeAfterStage = "afterStage"
	// TaskTypeDuringStage names tasks during the stage, in metrics.
	TaskTypeDuringStage = "duringStage"
)

// Annotations.
const (
	// ResourceGroupHashAnnotation has, on a master resource snapshot, the hash over the
	// resources of all its parts.
	ResourceGroupHashAnnotation = FleetPrefix + "resource-hash"
	// NumberOfEnvelopedObjectsAnnotation has, on a master resource snapshot, the number of
	// envelopes in it.
	NumberOfEnvelopedObjectsAnnotation = FleetPrefix + "number-of-enveloped-object"
	// EnvelopeConfigMapAnnotation is "true" on a ConfigMap that is an envelope: the older kind
	// of envelope, whose values are objects written as YAML or JSON text.
	EnvelopeConfigMapAnnotation = FleetPrefix + "envelope-configmap"
	// NumberOfResourceSnapshotsAnnotation has, on a master resource snapshot, the number of
	// parts, itself included.
	NumberOfResourceSnapshotsAnnotation = FleetPrefix + "number-of-resource-snapshots"
	// SubindexOfResourceSnapshotAnnotation has, on every other part, its number from 1.
	SubindexOfResourceSnapshotAnnotation = FleetPrefix + "subindex-of-resource-snapshot"
	// NextResourceSnapshotCandidateDetectionTimeAnnotation is on the latest snapshot when
	// it was first seen that something else is selected by now, while a new snapshot has to wait.
	NextResourceSnapshotCandidateDetectionTimeAnnotation = FleetPrefix + "next-resource-snapshot-candidate-detection-time"
	// NumberOfClustersAnnotation has, on a policy snapshot, the number PickN asks for.
	NumberOfClustersAnnotation = FleetPrefix + "number-of-clusters"
	// AffinityGroupsFitSinceAnnotation has, on a policy snapshot, since when groups before the one that
	// the placement is in have had enough clusters: times by name, as JSON.
	AffinityGroupsFitSinceAnnotation = OwnPrefix + "affinity-groups-fit-since"
	// ReplicaDemandAnnotation has, on a policy snapshot, the hash of what the workloads asked for whose replicas were divided last.
	ReplicaDemandAnnotation = OwnPrefix + "replica-demand"
	// KindsToServeAnnotation has, on a policy snapshot, the kinds that clusters had to serve to be picked, those within envelopes
	// included: <kind>.<version>.<group>, separated by commas.
	KindsToServeAnnotation = OwnPrefix + "kinds-to-serve"
	// ReplicaRequestsAnnotation has, on a policy snapshot, what the pods of workloads request of which it counts how many more the
	// clusters have room for: each of the different requests, as JSON.
	ReplicaRequestsAnnotation = OwnPrefix + "replica-requests"
	// ReplicaCountsAnnotation has, on a master resource snapshot, how many replicas the workloads ask for that are divided: a change of
	// that is no other content.
	ReplicaCountsAnnotation = OwnPrefix + "replica-counts"
	// CRPGenerationAnnotation has, on a policy snapshot, the generation of the placement.
	CRPGenerationAnnotation = FleetPrefix + "CRP-generation"
	// FailedOverAnnotation has, on an unscheduled binding, since when (RFC 3339) it is not picked because the placement has left the
	// cluster for another.
	FailedOverAnnotation = OwnPrefix + "failed-over"
	// FailedOverBecauseAnnotation has, on such a binding, Application if what is placed there was not available.
	FailedOverBecauseAnnotation = OwnPrefix + "failed-over-because"
	// SupersededAnnotation has, on such a binding, since when (RFC 3339) what is placed there stays until it is evicted.
	SupersededAnnotation = OwnPrefix + "superseded"
	// ReplacedByAnnotation has, on an unscheduled binding, the cluster whose copy takes the place of this one: until that is available,
	// this one stays.
	ReplacedByAnnotation = OwnPrefix + "replaced-by"
	// ReplacementAskedAnnotation has, on such a binding, which cluster a user has asked for in its place: if the user does so no more, the
	// cluster takes its place again. Without it, the binding goes because its cluster has taken that of another, which is picked again.
	ReplacementAskedAnnotation = OwnPrefix + "replacement-asked"
	// TakesPlaceOfAnnotation has, on a binding that was made to replace a cluster, which one that is.
	TakesPlaceOfAnnotation = OwnPrefix + "takes-place-of"
	// TookOverFromAnnotation has, on the binding of that cluster, which cluster's copy has gone since for it.
	TookOverFromAnnotation = OwnPrefix + "took-over-from"
	// PreservedStateAnnotation has, on a binding that replaces one that the placement has left, which labels the objects get there, as
	// JSON; see PreservedState.
	PreservedStateAnnotation = OwnPrefix + "preserved-state"
	// OverdueAnnotation has, on a policy snapshot, which clusters were to be left when clusters were picked last because of the
	// health of what is placed there, and which had recovered; see ApplicationFailover.Overdue.
	OverdueAnnotation = OwnPrefix + "overdue"
	// BarredAnnotation has, on a policy snapshot, the clusters that the placement has left because what is placed there was not
	// available, as JSON: they are not picked again as long as that counts.
	BarredAnnotation = OwnPrefix + "barred"
	// LeaveAtAnnotation has, on a policy snapshot, when (RFC 3339) the placement is to leave a cluster for another if nothing changes.
	LeaveAtAnnotation = OwnPrefix + "leave-at"
	// PreviousBindingStateAnnotation has, on an unscheduled binding, the state it had before.
	PreviousBindingStateAnnotation = FleetPrefix + "previous-binding-state"
	// ParentResourceSnapshotNameAnnotation has, on a Work, the snapshot part in it.
	ParentResourceSnapshotNameAnnotation = FleetPrefix + "parent-resource-snapshot-name"
	// ParentResourceOverrideSnapshotHashAnnotation has, on a Work of KubeFleet's, the hash of
	// the names of the ResourceOverride snapshots that went into it.
	ParentResourceOverrideSnapshotHashAnnotation = FleetPrefix + "parent-resource-override-snapshot-hash"
	// ParentClusterResourceOverrideSnapshotHashAnnotation has, on a Work of KubeFleet's, the hash
	// of the names of the ClusterResourceOverride snapshots that went into it.
	ParentClusterResourceOverrideSnapshotHashAnnotation = FleetPrefix + "parent-cluster-resource-override-snapshot-hash"
	// ManifestHashAnnotation has, on an applied object, the hash of its manifest.
	ManifestHashAnnotation = FleetPrefix + "spec-hash"
	// LastAppliedConfigAnnotation has, on an applied object, the manifest as last applied:
	// the base of the next three-way merge.
	LastAppliedConfigAnnotation = FleetPrefix + "last-applied-configuration"
)

// Annotations that fleetflow adds to KubeFleet's.
const (
	// RevisionAnnotation has, on a Work, the hash of what its binding wanted when the Work
	// was written: snapshot, overrides and apply strategy.
	RevisionAnnotation = OwnPrefix + "revision"
	// BindingUIDAnnotation has, on a Work, the UID of its binding.
	BindingUIDAnnotation = OwnPrefix + "binding-uid"
	// BindingGenerationAnnotation has, on a Work, the generation of its binding.
	BindingGenerationAnnotation = OwnPrefix + "binding-generation"
	// WorkCountAnnotation has, on a Work, how many Works its binding needs in all.
	WorkCountAnnotation = OwnPrefix + "work-count"
	// TraceParentAnnotation has, on a Work that was written in a trace that is recorded, the
	// W3C traceparent of the span that wrote it.
	TraceParentAnnotation = OwnPrefix + "traceparent"
	// DeletePropagationAnnotation says, on a Work that is being deleted, "Abandon" if what it
	// has brought is to stay on the member and to belong to the fleet no more.
	DeletePropagationAnnotation = OwnPrefix + "delete-propagation"
	// SpecifiedDeleteLabel, with the value "true", marks a binding that is to be replaced by one to
	// another cluster, or to go first when fewer clusters are wanted.
	SpecifiedDeleteLabel = OwnPrefix + "specified-delete"
	// ClusterDeletionCostAnnotation has, on a binding or a MemberCluster, an integer: of the clusters of
	// a placement that wants fewer, those with the lowest go first.
	ClusterDeletionCostAnnotation = OwnPrefix + "cluster-deletion-cost"
	// RemovedResourcesAnnotation says, on a binding and its Works, "Abandon" if resources that leave
	// them are to stay on the member and to belong to the fleet no more.
	RemovedResourcesAnnotation = OwnPrefix + "removed-resources"
	// PruneAnnotation has, on a Work, what its placement says of how objects are removed; see rules.PruningOfWork.
	PruneAnnotation = OwnPrefix + "prune"
	// PriorityAnnotation and PreemptionAnnotation have, on a Work, what its placement says of which placement has an object that
	// several select; see rules.RankOfWork.
	PriorityAnnotation   = OwnPrefix + "placement-priority"
	PreemptionAnnotation = OwnPrefix + "placement-preemption"
	// OverrideInputsAnnotation has, on a binding that names overrides, a fingerprint of their
	// content and of the labels of the cluster that their variables stand for.
	OverrideInputsAnnotation = OwnPrefix + "override-inputs"
	// EnvelopeNameAnnotation has, on a Work made of an envelope, the name of the envelope in
	// full.
	EnvelopeNameAnnotation = EnvelopeNameLabel
	// UpdateRunAnnotation has, on a binding, the run that last started the cluster.
	UpdateRunAnnotation = OwnPrefix + "update-run"
	// UpdateRunUIDAnnotation has, on a binding, the UID of that run.
	UpdateRunUIDAnnotation = OwnPrefix + "update-run-uid"
	// UpdateRunCreatedAnnotation has, on a binding, when that run was created (RFC 3339):
	// of two runs on one cluster, the later one wins.
	UpdateRunCreatedAnnotation = OwnPrefix + "update-run-created"
	// PreviousResourceSnapshotAnnotation has, on a binding, the snapshot the cluster ran
	// before that run, to roll back to.
	PreviousResourceSnapshotAnnotation = OwnPrefix + "previous-resource-snapshot"
	// RollbackOfUIDAnnotation has, on a run that the fleet has created to roll another back,
	// the UID of that other run.
	RollbackOfUIDAnnotation = OwnPrefix + "rollback-of-uid"
	// CreatorAnnotation has, on a run, the user who has created it, as the API server knows the
	// user.
	CreatorAnnotation = OwnPrefix + "creator"
	// ChangedByAnnotation has, on an object of which there are records, who has changed its spec, as the API server knows the user: users
	// cannot write it. rules.ChangedBy reads it.
	ChangedByAnnotation = OwnPrefix + "changed-by"
	// ReasonAnnotation has why a user wanted what an object asks for, or what was done to it: on a run that rolls another back, an
	// eviction, a run of which clusters are skipped, and a run or a hold that is deleted. CheckReason says what it may be.
	ReasonAnnotation = OwnPrefix + "reason"
	// RolledBackByAnnotation has, on a run, the name of the one that rolls it back: it ends
	// then, if it has not ended before.
	RolledBackByAnnotation = OwnPrefix + "rolled-back-by"
	// RemoveContentAnnotation on a Namespace or a CustomResourceDefinition says "true" to let what the cluster has in it, or of
	// its kind, go with it when its placement ends. Otherwise it stays until nothing of others is left.
	RemoveContentAnnotation = OwnPrefix + "remove-content"
	// RetainReplicasAnnotation on a workload says "true" to let the clusters decide on its
	// replicas once it is there, though the hub sets them: something scales it there.
	RetainReplicasAnnotation = OwnPrefix + "retain-replicas"
	// SupersededByAnnotation has, on a run that the fleet has created for a resource snapshot, the index of a later snapshot:
	// it ends then, if it has not ended before.
	SupersededByAnnotation = OwnPrefix + "superseded-by"
	// TriggeredByAnnotation has, on a run that the fleet has created for a resource snapshot, the UID of the placement.
	TriggeredByAnnotation = OwnPrefix + "triggered-by"
	// TriggeredRunAnnotation has, on a master resource snapshot, the update run that was created for it: another is never
	// created, also when that one is deleted.
	TriggeredRunAnnotation = OwnPrefix + "triggered-run"
	// RolloutClaimAnnotation has, on a placement, which clusters the rollout was about to
	// write to last.
	RolloutClaimAnnotation = OwnPrefix + "rollout-claim"
	// RefusedWritesAnnotation has, on a placement, the clusters whose bindings a rolling update or an eviction could not write, as the
	// API server refuses that; see rules.RefusedWrites.
	RefusedWritesAnnotation = OwnPrefix + "refused-writes"
	// RolloutEpochAnnotation has, on a binding, the epoch of the claim under which it was
	// written last.
	RolloutEpochAnnotation = OwnPrefix + "rollout-epoch"
	// SelectionVerdictAnnotation has, on a placement, what the last selection of resources
	// came to, so that a restarted hub knows whether anything changed.
	SelectionVerdictAnnotation = OwnPrefix + "selection-verdict"
	// RemovalsHeldAnnotation has, on a placement, the bindings that the hub agent would let go
	// without knowing why; see HeldRemovals.
	RemovalsHeldAnnotation = OwnPrefix + "removals-held"
	// RescheduleAtAnnotation has, on a placement, when (RFC 3339) a user has asked for its clusters to be picked and its replicas
	// to be divided afresh; on a policy snapshot, which of these requests was carried out last.
	RescheduleAtAnnotation = OwnPrefix + "reschedule-at"
	// PolicyWaitsAnnotation is on a policy snapshot while the placement has another policy that waits for the next resource
	// snapshot: it has the index of the latest one when that policy was seen first.
	PolicyWaitsAnnotation = OwnPrefix + "policy-waits-since-resource-index"
	// ClustersNotFoundAnnotation has, on a policy snapshot of another scheduler, the clusters that it has picked and that nothing can
	// be placed on, with a comma between them.
	ClustersNotFoundAnnotation = OwnPrefix + "clusters-not-found"
	// RemovalsAcceptedAnnotation lets those bindings go: it has what HeldRemovals.Token returns.
	RemovalsAcceptedAnnotation = OwnPrefix + "removals-accepted"
	// SelectionLossAcceptedAnnotation lets objects go that a placement selects no more and the hub agent holds.
	SelectionLossAcceptedAnnotation = OwnPrefix + "selection-loss-accepted"
	// AcceptRemovalsAnnotation says "true" on a placement whose objects are removed from the clusters as soon as they are no
	// longer selected, whatever their number, as KubeFleet does.
	AcceptRemovalsAnnotation = OwnPrefix + "accept-removals"
	// LifecycleSinceAnnotation has, on a binding, since when (RFC 3339) LifecycleStateLabel has its value.
	LifecycleSinceAnnotation = OwnPrefix + "lifecycle-since"
	// PlanHashAnnotation has, on an approval request, the hash of the plan of its run as it is now, as long as the request waits.
	PlanHashAnnotation = OwnPrefix + "plan-hash"
	// ExpectedPlanAnnotation has, on a run with expectedPlanHash, the outline of the plan that was reviewed. It is for the message that
	// says what has changed, and decides nothing.
	ExpectedPlanAnnotation = OwnPrefix + "expected-plan"
	// ApprovalRunUIDAnnotation has, on an approval request, the UID of the run it was made
	// for: an approval left over from an earlier run of the same name does not count.
	ApprovalRunUIDAnnotation = UpdateRunUIDAnnotation
)

// Finalizers.
const (
	// PlacementCleanupFinalizer holds a placement until what it made is gone.
	PlacementCleanupFinalizer = FleetPrefix + "crp-cleanup"
	// WorkFinalizer holds a binding until its Works are gone, and a Work until the member
	// has removed what it brought.
	WorkFinalizer = FleetPrefix + "work-cleanup"
	// OverrideCleanupFinalizer holds an override until its snapshots are gone.
	OverrideCleanupFinalizer = FleetPrefix + "override-cleanup"
	// UpdateRunFinalizer holds a run until its workflow and approval requests are gone.
	UpdateRunFinalizer = FleetPrefix + "stagedupdaterun-finalizer"
)

// Finalizers of KubeFleet's scheduler. They stay on what it has put them on, and go when the object does: nothing else would
// take them off.
const (
	// SchedulerCleanupFinalizer is on placements.
	SchedulerCleanupFinalizer = FleetPrefix + "scheduler-cleanup"
	// SchedulerBindingFinalizer is on bindings.
	SchedulerBindingFinalizer = FleetPrefix + "scheduler-crb-cleanup"
	// PlacementStatusFinalizer is on placements whose status KubeFleet copies into a namespace.
	PlacementStatusFinalizer = FleetPrefix + "cluster-resource-placement-status-cleanup"
)

// DeletionStageName is the name, in a run's status, of the stage that clears the clusters
// the placement no longer picks.
const DeletionStageName = FleetPrefix + "deleteStage"

const (
	// bindingNamePart is how much of the placement's and of the cluster's name goes into a
	// binding's name, so that the whole fits into a label value.
	bindingNamePart = 26
	// bindingNameHash is the number of hex digits that make a binding's name unique.
	bindingNameHash = 8
	// envelopeWorkNameHash is the number of hex digits that tell the envelopes of a placement
	// apart.
	envelopeWorkNameHash = 16
)

// BindingName returns the name of the binding of a placement to a cluster. It depends on the
// placement's UID, so that a placement created again never meets the bindings of its
// predecessor.
func BindingName(placement string, uid types.UID, cluster string) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + cluster))
	return fmt.Sprintf("%s-%s-%s", truncateNamePart(placement), truncateNamePart(cluster), hex.EncodeToString(sum[:])[:bindingNameHash])
}

// truncateNamePart cuts a name to its share of a binding's name, so that what remains ends with a
// letter or digit and the whole stays a valid object name.
func truncateNamePart(name string) string {
	if len(name) > bindingNamePart {
		name = name[:bindingNamePart]
	}
	return strings.TrimRight(name, "-.")
}

// PolicySnapshotName returns the name of a placement's policy snapshot.
func PolicySnapshotName(placement string, index int) string {
	return placement + "-" + strconv.Itoa(index)
}

// ResourceSnapshotName returns the name of a part of a placement's resource snapshot: sub 0
// is the master, further parts count from 1.
func ResourceSnapshotName(placement string, index, sub int) string {
	if sub == 0 {
		return fmt.Sprintf("%s-%d-snapshot", placement, index)
	}
	return fmt.Sprintf("%s-%d-%d", placement, index, sub)
}

// OverrideSnapshotName returns the name of a snapshot of an override of either kind.
func OverrideSnapshotName(override string, index int) string {
	return override + "-" + strconv.Itoa(index)
}

// WorkName returns the name of the Work that carries a part of a resource snapshot: sub 0 is
// the master's, further parts count from 1.
func WorkName(placement string, sub int) string {
	if sub == 0 {
		return placement + "-work"
	}
	return placement + "-" + strconv.Itoa(sub)
}

// EnvelopeWorkName returns the name of the Work that carries what is in an envelope. It does
// not depend on the part of the snapshot the envelope is in: when a snapshot is split anew,
// the objects stay in their Work.
func EnvelopeWorkName(placement string, envelope EnvelopeIdentifier) string {
	sum := sha256.Sum256([]byte(string(envelope.Type) + "/" + envelope.Namespace + "/" + envelope.Name))
	return WorkName(placement, 0) + "-envelope-" + hex.EncodeToString(sum[:])[:envelopeWorkNameHash]
}

// beforeStage and afterStage stand between run and stage in the names of requests.
const (
	beforeStage = "-before-"
	afterStage  = "-after-"
)

// AfterStageApprovalName returns the name of the request to approve that a stage is done, in the words of the run. A run
// whose own name ends like the beginning of such a name says -after- in any words: <run>-<stage> of run web-before would be
// what run web asks before that stage.
func AfterStageApprovalName(words Words, run, stage string) string {
	if hasAmbiguousEnd(run) {
		return run + afterStage + stage
	}
	return run + words.AfterStage + stage
}

// hasAmbiguousEnd reports whether the name of a run ends like the name of a request of another run, before its stage.
func hasAmbiguousEnd(run string) bool {
	return strings.HasSuffix(run+"-", beforeStage) || strings.HasSuffix(run+"-", afterStage)
}

// BeforeStageApprovalName returns the name of the request to approve that a stage starts.
func BeforeStageApprovalName(run, stage string) string { return run + beforeStage + stage }

const (
	// rollbackSuffix ends the name of a run that rolls another back.
	rollbackSuffix = "-rollback"
	// runNameLimit is how long the name of a run may be.
	runNameLimit = 63
)

// RollbackName returns the name of the run that is created to roll another back; one that is
// too long is cut, and made unique by the UID of that other run.
func RollbackName(run string, uid types.UID) string {
	if len(run)+len(rollbackSuffix) <= runNameLimit {
		return run + rollbackSuffix
	}
	return UniqueRollbackName(run, uid)
}

// UniqueRollbackName returns the name to take if the one of RollbackName is taken: that of a
// rollback of an earlier run of the same name.
func UniqueRollbackName(run string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	unique := "-" + hex.EncodeToString(sum[:])[:bindingNameHash] + rollbackSuffix
	return strings.TrimRight(run[:min(len(run), runNameLimit-len(unique))], "-.") + unique
}

// TriggeredRunNames returns the names that the run of a placement's resource snapshot may have, in the order in which they are
// tried. The second is for a placement whose first name is too long or taken.
func TriggeredRunNames(placement string, uid types.UID, index int) []string {
	short := fmt.Sprintf("%s-%d", placement, index)
	sum := sha256.Sum256([]byte(uid))
	end := fmt.Sprintf("-%s-%d", hex.EncodeToString(sum[:])[:bindingNameHash], index)
	unique := strings.TrimRight(placement[:min(len(placement), runNameLimit-len(end))], "-.") + end
	if len(short) > runNameLimit {
		return []string{unique}
	}
	return []string{short, unique}
}

// MemberNamespace returns the namespace on the hub that has a member's Works.
func MemberNamespace(cluster string) string { return clusterv1beta1.MemberNamespace(cluster) }
