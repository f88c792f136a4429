package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxFailureEvents bounds the events about failed clusters per status write: the
// status names them all.
const maxFailureEvents = 10

// announcer emits the events about placements.
type announcer struct {
	events.EventRecorder

	stuck *lastReports
	// rescheduled are the requests to reschedule of which an event was emitted, waiting the generations that are in force while a changed
	// policy waits.
	rescheduled, waiting *lastReports
}

func newAnnouncer(recorder events.EventRecorder) *announcer {
	return &announcer{EventRecorder: recorder, stuck: newLastReports(), rescheduled: newLastReports(), waiting: newLastReports()}
}

func (a *announcer) forgetPlacement(placement placementv1beta1.PlacementObject) {
	for _, reports := range []*lastReports{a.stuck, a.rescheduled, a.waiting} {
		reports.recordIfChanged(keyOf(placement), "")
	}
}

// emitEvents emits an event for every step of the rollout that has just been done, and for clusters that have just
// failed.
func (a *announcer) emitEvents(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject,
	status placementv1beta1.PlacementStatus) {
	done := func(conditions []metav1.Condition, step string) bool {
		return meta.IsStatusConditionTrue(conditions, placementv1beta1.ScopeOf(placement).PlacementConditionType(step))
	}
	for _, step := range append(rolloutSteps(false), &diffReportedStep) {
		if !done(status.Conditions, step.step) || done(placement.GetPlacementStatus().Conditions, step.step) {
			continue
		}
		a.Eventf(placement, nil, "Normal", step.eventReason, step.step, "%s", step.eventNote)
		if step.completedNote != "" {
			a.Eventf(placement, nil, "Normal", "PlacementRolloutCompleted", "Rollout", "%s", step.completedNote)
		}
	}
	if message := newlyHeld(placement, status, placementv1beta1.ReasonRolloutPaused); message != "" {
		a.Eventf(placement, nil, "Normal", "PlacementRolloutPaused", "Rollout", "%s", message)
	}
	if message := newlyHeld(placement, status, placementv1beta1.ReasonPartitionReached); message != "" {
		a.Eventf(placement, nil, "Normal", "PlacementPartitionReached", "Rollout", "%s", message)
	}
	a.emitClusterEvents(placement, bindings, status)
	if note := newLeavingHook(placement.GetPlacementStatus(), &status); note != "" {
		a.Eventf(placement, nil, "Normal", "PlacementWaitsForHook", "Rollout", "%s", note)
	}
}

// emitClusterEvents emits an event for each cluster whose state has just changed, or one for all that are suspended, silent or left.
func (a *announcer) emitClusterEvents(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject,
	status placementv1beta1.PlacementStatus) {
	before := placement.GetPlacementStatus().PerClusterPlacementStatuses
	after := status.PerClusterPlacementStatuses
	if names := newlySuspended(before, after); len(names) > 0 {
		a.Eventf(placement, nil, "Normal", "PlacementClustersSuspended", "Suspend",
			"Nothing is written for %d cluster(s) any more, or removed from them: %s", len(names), joinLimited(names))
	}
	if names := newlySuspended(after, before); len(names) > 0 {
		a.Eventf(placement, nil, "Normal", "PlacementClustersResumed", "Suspend", "%d cluster(s) are not suspended any more: %s",
			len(names), joinLimited(names))
	}
	if names := newlySilent(before, after); len(names) > 0 {
		a.Eventf(placement, nil, "Warning", "PlacementClustersSilent", "Rollout", "%s", workmodel.CutMessage(
			fmt.Sprintf("%d cluster(s) have not reported or been healthy for too long, and the state of what is placed there is unknown: %s",
				len(names), joinLimited(names)), maxNote))
	}
	if names := newlySilent(after, before); len(names) > 0 { // the other way round: they were silent before
		a.Eventf(placement, nil, "Normal", "PlacementClustersReport", "Rollout", "%s", workmodel.CutMessage(
			fmt.Sprintf("%d cluster(s) report and are healthy again: %s", len(names), joinLimited(names)), maxNote))
	}
	if names := newlyLeft(bindings, before, after); len(names) > 0 {
		a.Eventf(placement, nil, "Warning", "PlacementFailedOver", "Schedule", "The placement leaves %d cluster(s) for others: %s",
			len(names), joinLimited(names))
	}
	for _, failure := range newFailures(before, after) {
		a.Eventf(placement, clusterv1beta1.ReferTo(failure.cluster), "Warning", "PlacementFailedOnCluster", failure.Condition.Type, "%s",
			failure.describeFailure())
	}
	for _, found := range newFindings(before, after, describeHookWait) {
		a.Eventf(placement, clusterv1beta1.ReferTo(found.cluster), "Normal", "PlacementWaitsForHook", "Rollout", "%s", found.note)
	}
	next := afterDrift(placement)
	for _, found := range newFindings(before, after, describeDrifts) {
		a.Eventf(placement, clusterv1beta1.ReferTo(found.cluster), "Warning", "PlacementDriftedOnCluster", "DriftDetection", "%s%s",
			workmodel.CutMessage(found.note, maxNote-len(next)), next)
	}
	for _, found := range newFindings(before, after, describeDiffs) {
		a.Eventf(placement, clusterv1beta1.ReferTo(found.cluster), "Normal", "PlacementDiffersOnCluster", "DiffReporting", "%s",
			found.note)
	}
}

// emitSchedulingEvents emits an event once a changed policy waits for the selected resources, the placement for another scheduler, or
// its rollout for an override that it requires.
func (a *announcer) emitSchedulingEvents(facts *Facts, status placementv1beta1.PlacementStatus) {
	placement := facts.Placement
	scope := placementv1beta1.ScopeOf(facts.Placement)
	scheduled := scope.PlacementConditionType(placementv1beta1.ConditionTypeScheduled)
	inForce := "" // as long as it stays in force, it is the same wait
	if generation, waits := facts.generationInForce(); waits {
		inForce = strconv.FormatInt(generation, 10)
	}
	if said := newlyTold(placement, status, scheduled); said != "" {
		if inForce != "" {
			if a.waiting.recordIfChanged(keyOf(placement), inForce) {
				a.Eventf(placement, nil, "Normal", "PlacementPolicyWaits", "Schedule", "%s", workmodel.CutMessage(said, maxNote))
			}
		} else if meta.FindStatusCondition(status.Conditions, scheduled).Reason == placementv1beta1.ReasonWaitingForScheduler {
			a.Eventf(placement, nil, "Normal", "PlacementWaitsForScheduler", "Schedule", "%s", workmodel.CutMessage(said, maxNote))
		}
	}
	overridden := scope.PlacementConditionType(placementv1beta1.ConditionTypeOverridden)
	if said := newlyTold(placement, status, overridden); said != "" &&
		meta.FindStatusCondition(status.Conditions, overridden).Reason == placementv1beta1.ReasonRequiredOverrideMissing {
		a.Eventf(placement, nil, "Warning", "RequiredOverrideMissing", "Override", "%s", workmodel.CutMessage(said, maxNote))
	}
}

// emitRescheduled emits an event once a user has asked to pick clusters afresh.
func (a *announcer) emitRescheduled(facts *Facts) {
	asked := ""
	if rules.AsksToReschedule(facts.Placement, facts.Policy) {
		asked = facts.Placement.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
	}
	if a.rescheduled.recordIfChanged(keyOf(facts.Placement), asked) {
		a.Eventf(facts.Placement, nil, "Normal", "PlacementRescheduled", "Schedule",
			"Clusters are picked and replicas divided afresh, as was asked for at %s", asked)
	}
}

// newlyHeld returns what the condition RolloutStarted says, if it has a reason that it did not have before.
func newlyHeld(placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus, reason string) string {
	started := placementv1beta1.ScopeOf(placement).PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted)
	before := meta.FindStatusCondition(placement.GetPlacementStatus().Conditions, started)
	is := meta.FindStatusCondition(status.Conditions, started)
	if is == nil || is.Reason != reason || before != nil && before.Reason == reason {
		return ""
	}
	return is.Message
}

// saysSuspended says of an entry that the placement suspends its cluster.
func saysSuspended(entry *placementv1beta1.PerClusterPlacementStatus) bool {
	said := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted)
	return said != nil && said.Reason == placementv1beta1.ReasonSuspended
}

// newlySuspended returns the names of the clusters that are suspended now and were not before.
func newlySuspended(before, after []placementv1beta1.PerClusterPlacementStatus) []string {
	known := map[string]bool{}
	for i := range before {
		known[before[i].ClusterName] = saysSuspended(&before[i])
	}
	var names []string
	for i := range after {
		if saysSuspended(&after[i]) && !known[after[i].ClusterName] {
			names = append(names, after[i].ClusterName)
		}
	}
	return names
}

// newlyLeft returns the names of the clusters that were picked before, and are not because the placement has left them for others.
func newlyLeft(bindings []placementv1beta1.BindingObject, before, after []placementv1beta1.PerClusterPlacementStatus) []string {
	isOf := func(entries []placementv1beta1.PerClusterPlacementStatus, cluster string) bool {
		return slices.ContainsFunc(entries, func(e placementv1beta1.PerClusterPlacementStatus) bool { return e.ClusterName == cluster })
	}
	var names []string
	for _, binding := range bindings {
		cluster := binding.GetBindingSpec().TargetCluster
		if _, left := rules.LeftSince(binding); left && isOf(before, cluster) && !isOf(after, cluster) {
			names = append(names, cluster)
		}
	}
	slices.Sort(names)
	return names
}

// newFindings describes the clusters that have findings now and had none before.
func newFindings(before, after []placementv1beta1.PerClusterPlacementStatus,
	tell func(*placementv1beta1.PerClusterPlacementStatus) string) []finding {
	var found []finding
	for _, entry := range newlyFound(before, after, func(e *placementv1beta1.PerClusterPlacementStatus) bool { return tell(e) != "" }) {
		found = append(found, finding{entry.ClusterName, workmodel.CutMessage("Cluster "+entry.ClusterName+": "+tell(entry), maxNote)})
	}
	return found
}

// finding is what an event says of a cluster.
type finding struct{ cluster, note string }

// newlyFound returns the clusters of which something holds now that did not before, as many as get events.
func newlyFound(before, after []placementv1beta1.PerClusterPlacementStatus,
	holds func(*placementv1beta1.PerClusterPlacementStatus) bool) []*placementv1beta1.PerClusterPlacementStatus {
	known := map[string]bool{}
	for i := range before {
		known[before[i].ClusterName] = known[before[i].ClusterName] || holds(&before[i])
	}
	var found []*placementv1beta1.PerClusterPlacementStatus
	for i := range after {
		if !known[after[i].ClusterName] && holds(&after[i]) && len(found) < maxFailureEvents {
			found = append(found, &after[i])
		}
	}
	return found
}

// describeDrifts names the fields of the first drifted resource of a cluster. The values are in the status.
func describeDrifts(entry *placementv1beta1.PerClusterPlacementStatus) string {
	if len(entry.DriftedPlacements) == 0 {
		return ""
	}
	first := &entry.DriftedPlacements[0]
	return fmt.Sprintf("%d resource(s) were changed there, first %s at %s",
		len(entry.DriftedPlacements), formatResource(&first.ResourceIdentifier), joinPaths(first.ObservedDrifts))
}

// afterDrift returns what to do about a drift, also about one that comes back with each correction.
func afterDrift(placement placementv1beta1.PlacementObject) string {
	return fmt.Sprintf("; kubectl fleet diff %s shows the values, and who writes them if they come back: end that client, or leave the fields "+
		"to it and out of the placement", asArgument(placement))
}

// describeDiffs names the fields of the first resource that differs on a cluster.
func describeDiffs(entry *placementv1beta1.PerClusterPlacementStatus) string {
	if len(entry.DiffedPlacements) == 0 {
		return ""
	}
	first := &entry.DiffedPlacements[0]
	return fmt.Sprintf("%d resource(s) differ there, first %s at %s",
		len(entry.DiffedPlacements), formatResource(&first.ResourceIdentifier), joinPaths(first.ObservedDiffs))
}

// maxPaths is how many fields a note names.
const maxPaths = 5

func joinPaths(details []placementv1beta1.PatchDetail) string {
	var all []string
	for i := range details[:min(len(details), maxPaths)] {
		all = append(all, details[i].Path)
	}
	if more := len(details) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// formatResource names a resource for people.
func formatResource(id *placementv1beta1.ResourceIdentifier) string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// maxNote is how long the API lets the note of an event be, in bytes.
const maxNote = 1024

func (f *failure) describeFailure() string {
	return workmodel.CutMessage(fmt.Sprintf("Cluster %s: %s %s: %s", f.cluster, f.Kind, f.Name, f.Condition.Message), maxNote)
}

// failure is the first resource that could not be applied on a cluster.
type failure struct {
	cluster string
	placementv1beta1.FailedResourcePlacement
}

// newFailures returns the failures of clusters that had not failed before. A resource that is only not available yet has
// not failed.
func newFailures(before, after []placementv1beta1.PerClusterPlacementStatus) []failure {
	var failures []failure
	for _, entry := range newlyFound(before, after, func(e *placementv1beta1.PerClusterPlacementStatus) bool {
		return firstFailure(
			e) != nil
	}) {
		failures = append(failures, failure{entry.ClusterName, *firstFailure(entry)})
	}
	return failures
}

func firstFailure(entry *placementv1beta1.PerClusterPlacementStatus) *placementv1beta1.FailedResourcePlacement {
	for i := range entry.FailedPlacements {
		if entry.FailedPlacements[i].IsFinal() {
			return &entry.FailedPlacements[i]
		}
	}
	return nil
}
