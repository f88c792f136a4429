package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// View is what a status shows beside the facts.
type View struct {
	// Selected are the resources in the snapshot that Observed names.
	Selected []placementv1beta1.ResourceIdentifier
	// Vocabulary is in which words the status is written.
	Vocabulary placementv1beta1.Vocabulary
	// CopiedTo is the namespace into which the status is copied; empty if it is not. NotCopied is why that fails.
	CopiedTo  string
	NotCopied error
	// EngineUnreachable says that work is pending and its workflow could not be
	// reached.
	EngineUnreachable bool
	// Now is the time given to conditions that changed.
	Now metav1.Time
}

// Observed returns the resource snapshot that the status of a placement is about: the latest; or, once update runs have
// brought every cluster to the same snapshot, that one, which may be older.
func Observed(facts *Facts) Snapshot {
	if single, ok := facts.commonSnapshot(); ok {
		return single
	}
	return facts.Latest
}

// commonSnapshot returns the snapshot that all clusters of an External placement run, if it is one and the same.
func (f *Facts) commonSnapshot() (Snapshot, bool) {
	if !rules.IsExternal(f.Placement) || len(lostClusters(f)) > 0 {
		return Snapshot{}, false
	}
	name := ""
	for _, binding := range f.Bindings {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		running := binding.GetBindingSpec().ResourceSnapshotName
		if binding.GetBindingSpec().State != placementv1beta1.BindingStateBound || running == "" || (name != "" && running != name) {
			return Snapshot{}, false
		}
		name = running
	}
	found, known := f.Snapshots[name]
	if !known && name != "" {
		// The snapshot has been pruned or is not in the cache yet.
		index, err := strconv.Atoi(workmodel.SnapshotIndex(name))
		return Snapshot{Name: name, Index: index}, err == nil
	}
	return found, known
}

// Project computes the status of a placement. It is pure.
func Project(facts *Facts, view View) placementv1beta1.PlacementStatus {
	status, _ := project(facts, view)
	return status
}

// project computes the status of a placement, and what its rollout is stuck on.
func project(facts *Facts, view View) (placementv1beta1.PlacementStatus, stuckRollout) {
	observed := Observed(facts)
	entries := describeClusters(facts, observed, view.Now)
	status := placementv1beta1.PlacementStatus{
		SelectedResources:           view.Selected,
		ResourceSnapshots:           summarizeSnapshots(facts),
		PerClusterPlacementStatuses: slices.Concat(entries, describeUnfilled(facts, view.Now)),
	}
	if observed.Name != "" {
		status.ObservedResourceIndex = strconv.Itoa(observed.Index)
		status.Clusters = countClusters(entries, observed, facts, view.Now.Time)
	}
	conditions := []metav1.Condition{scheduledCondition(facts)}
	stuck := stuckRollout{}
	if facts.isSelectedAndScheduled() && observed.Name != "" && len(entries) > 0 {
		var steps []metav1.Condition
		steps, stuck = sumUpSteps(facts, entries, view)
		if facts.Overrides.areLacking() {
			if len(steps) > 1 {
				stuck = stuckRollout{} // the step that is stuck is not told of
			}
			steps = append(steps[:1], lackingCondition(facts)) // the first says whether the rollout has started
		}
		conditions = append(conditions, withoutTooLarge(facts, steps)...)
	}
	conditions = append(conditions, conditionsOnLeaving(facts, entries, view.Now.Time)...)
	conditions = append(conditions, removalConditions(facts)...)
	conditions = append(conditions, closedCondition(facts, view.Now.Time)...)
	if facts.Held != nil {
		conditions = append(conditions, heldCondition(facts.Placement, facts.Held))
	} else if facts.Verdict.Lost != nil {
		conditions = append(conditions, lossCondition(facts.Placement, facts.Verdict.Lost))
	}
	conditions = append(conditions, conditionsOnSelection(facts)...)
	if plan := planTrigger(facts); plan.Held != "" {
		conditions = append(conditions, runHeldCondition(plan))
	}
	if view.CopiedTo != "" {
		conditions = append(conditions, syncedCondition(facts.Placement, view.CopiedTo, view.NotCopied))
	}
	if view.EngineUnreachable {
		conditions = append(conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse,
			Reason:  placementv1beta1.ReasonTemporalUnreachable,
			Message: "The Temporal server cannot be reached. What is placed stays as it is; new decisions about this placement wait until it can, and are then made by themselves",
		})
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = facts.Placement.GetGeneration()
	}
	if generation, waits := facts.generationInForce(); waits {
		conditions[0].ObservedGeneration = generation
	}
	before := facts.Placement.GetPlacementStatus().Conditions
	conditions = append(placementv1beta1.KeepTransitionTimes(before, conditions, view.Now), toldOfEarlierSelection(facts)...)
	status.Conditions = placementv1beta1.WithResolved(before, conditions, facts.Placement.GetGeneration(), view.Now)
	return fitStatus(status), stuck
}

// maxSnapshots is how many resource snapshots a status names.
const maxSnapshots = 100

// summarizeSnapshots names the latest snapshots, by index. Who may read the placement may not read what is in them.
func summarizeSnapshots(facts *Facts) []placementv1beta1.ResourceSnapshotSummary {
	byIndex := slices.SortedFunc(maps.Values(facts.Snapshots), func(a, b Snapshot) int { return cmp.Compare(a.Index, b.Index) })
	byIndex = slices.CompactFunc(byIndex, func(a, b Snapshot) bool { return a.Index == b.Index })
	var summaries []placementv1beta1.ResourceSnapshotSummary
	for _, snapshot := range byIndex[max(0, len(byIndex)-maxSnapshots):] {
		summaries = append(summaries, placementv1beta1.ResourceSnapshotSummary{Index: strconv.Itoa(snapshot.Index), Name: snapshot.Name,
			CreationTime: snapshot.Created})
	}
	return summaries
}

// withoutTooLarge lets no placement be available of which an object is too large: not all that is selected is.
func withoutTooLarge(facts *Facts, steps []metav1.Condition) []metav1.Condition {
	available := meta.FindStatusCondition(steps, placementv1beta1.ScopeOf(facts.Placement).PlacementConditionType(
		placementv1beta1.ConditionTypeAvailable))
	if available != nil && available.Status == metav1.ConditionTrue && facts.Verdict.TooLarge != "" &&
		facts.Verdict.Generation == facts.Placement.GetGeneration() {
		available.Status = metav1.ConditionFalse
		available.Reason = placementv1beta1.ReasonObjectTooLarge
		available.Message = "What could be placed is available, but not all that is selected could; see the condition " +
			placementv1beta1.ConditionTypeResourcesLeftOut
	}
	return steps
}

// conditionsOnSelection say what was selected otherwise than the selectors alone say, for the present generation.
func conditionsOnSelection(facts *Facts) []metav1.Condition {
	if facts.Verdict.Generation != facts.Placement.GetGeneration() {
		return nil
	}
	var conditions []metav1.Condition
	if facts.Verdict.Excess != "" {
		conditions = append(conditions, changesHeldCondition(facts))
	}
	if len(facts.Verdict.Held) > 0 {
		conditions = append(conditions, kindsHeldCondition(facts))
	}
	if facts.Verdict.MissingDependencies != "" {
		conditions = append(conditions, dependenciesMissingCondition(facts))
	}
	if facts.Verdict.Note != "" {
		conditions = append(conditions, resourcesMissingCondition(facts))
	}
	if facts.Verdict.LeftOut.Total > 0 || facts.Verdict.TooLarge != "" {
		conditions = append(conditions, leftOutCondition(facts.Verdict.LeftOut, facts.Verdict.TooLarge))
	}
	return conditions
}

// toldOfEarlierSelection returns the conditions on the selection of an earlier generation, as long as nothing was selected for
// the present one.
func toldOfEarlierSelection(facts *Facts) []metav1.Condition {
	if facts.Verdict.Generation == facts.Placement.GetGeneration() {
		return nil
	}
	var told []metav1.Condition
	for _, said := range facts.Placement.GetPlacementStatus().Conditions {
		switch said.Type {
		case placementv1beta1.ConditionTypeChangesHeld, placementv1beta1.ConditionTypeKindsHeld,
			placementv1beta1.ConditionTypeDependenciesMissing, placementv1beta1.ConditionTypeResourcesMissing,
			placementv1beta1.ConditionTypeResourcesLeftOut:
			told = append(told, said)
		}
	}
	return told
}

// isSelectedAndScheduled reports whether resources were selected and clusters picked for the present generation. Before
// that, a condition about the rollout would be about an earlier one.
func (f *Facts) isSelectedAndScheduled() bool {
	return f.isScheduled() && f.Verdict.Error == ""
}

func scheduledCondition(facts *Facts) metav1.Condition {
	conditionType := placementv1beta1.ScopeOf(facts.Placement).PlacementConditionType(placementv1beta1.ConditionTypeScheduled)
	if facts.Verdict.Error != "" && facts.Verdict.Generation == facts.Placement.GetGeneration() {
		if facts.Verdict.Reason == snapshot.ReasonTooMuch {
			return metav1.Condition{
				Type: conditionType, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonSelectionTooLarge,
				Message: facts.Verdict.Error,
			}
		}
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonInvalidResourceSelectors,
			Message: "The resource selectors are invalid: " + facts.Verdict.Error,
		}
	}
	if facts.isScheduled() {
		if said := meta.FindStatusCondition(facts.Policy.GetPolicySnapshotStatus().Conditions,
			placementv1beta1.ConditionTypeScheduled); said != nil {
			return metav1.Condition{Type: conditionType, Status: said.Status, Reason: said.Reason, Message: said.Message + describeNote(facts)}
		}
	}
	if facts.leftToScheduler() {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonWaitingForScheduler,
			Message: fmt.Sprintf("Scheduler %q is to pick the clusters, by the status of policy snapshot %s: its targetClusters, and its observedCRPGeneration %d. What is placed stays",
				rules.SchedulerOf(facts.Placement), facts.Policy.GetName(), facts.Placement.GetGeneration()) + describeNote(facts),
		}
	}
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonSchedulePending,
		Message: "Scheduling has not completed",
	}
}

// generationInForce returns the generation of the placement whose policy is in force, if a later one waits for the next resource snapshot.
func (f *Facts) generationInForce() (generation int64, waits bool) {
	if f.Policy == nil || !f.isScheduled() {
		return 0, false
	}
	if _, waits = rules.PolicyWaits(f.Policy); !waits {
		return 0, false
	}
	generation, err := strconv.ParseInt(f.Policy.GetAnnotations()[placementv1beta1.CRPGenerationAnnotation], 10, 64)
	return generation, err == nil
}

// describeNote describes what is selected and cannot be placed yet, and marks and costs that have no effect.
func describeNote(facts *Facts) string {
	note := ""
	if facts.Verdict.Note != "" && facts.Verdict.Generation == facts.Placement.GetGeneration() {
		note = "; " + facts.Verdict.Note
	}
	if _, waits := facts.generationInForce(); waits {
		note += "; the changed policy waits for the next change of the selected resources, as policy.activation is Lazy"
	}
	if facts.NoPriorityClass != "" {
		note += fmt.Sprintf("; there is no PriorityClass %q on the hub, so that the placement is worked on in the usual order",
			facts.NoPriorityClass)
	}
	if _, err := rules.RescheduleAt(facts.Placement); err != nil {
		note += "; " + err.Error()
	}
	switch marked := listMarked(facts); {
	case len(marked) == 0:
	case len(markedClusters(facts)) == 0:
		note += fmt.Sprintf("; label %s on the binding(s) of %s: every matching cluster is wanted; use a taint, or an eviction",
			placementv1beta1.SpecifiedDeleteLabel, joinLimited(marked))
	default:
		note += fmt.Sprintf("; %s marked to be replaced, which waits until another cluster can take the place", joinLimited(marked))
	}
	var unreadable []string
	for _, binding := range facts.Bindings {
		if _, err := rules.DeletionCost(binding); err != nil && rules.IsLiveBinding(binding) {
			unreadable = append(unreadable, binding.GetBindingSpec().TargetCluster)
		}
	}
	if len(unreadable) > 0 {
		note += fmt.Sprintf("; annotation %s on the binding(s) of %s is no integer of 32 bits, and counts as 0",
			placementv1beta1.ClusterDeletionCostAnnotation, joinLimited(unreadable))
	}
	return note
}

// sumUpSteps sums up the conditions of all clusters, step by step, and returns what the first step that is not done is stuck on.
func sumUpSteps(facts *Facts, entries []placementv1beta1.PerClusterPlacementStatus, view View) ([]metav1.Condition, stuckRollout) {
	var conditions []metav1.Condition
	for _, step := range rolloutSteps(reportsDiff(facts)) {
		condition := sumUpStep(placementv1beta1.ScopeOf(facts.Placement), step, entries)
		condition.Message += describeSilentBeside(step, condition.Status, entries)
		if step == &overriddenStep && condition.Status == metav1.ConditionTrue {
			condition.Message += describeIdleOverrides(facts)
		}
		if step == &rolloutStartedStep {
			stands := facts.standing(view.Now.Time)
			condition = describeClosed(facts, stands.closed, describeHeldBack(facts, stands.held, condition))
			condition = describeRefused(stands.refused, condition)
		}
		if condition.Status != metav1.ConditionTrue {
			if step == &rolloutStartedStep && condition.Status == metav1.ConditionUnknown && rules.IsExternal(facts.Placement) {
				condition = leaveToRuns(facts, entries, condition, view.Vocabulary.Words().RolloutByRuns)
			}
			stuck := findStuck(facts, entries, step, view.Now.Time)
			condition.Message += describeHooks(facts, view.Now.Time) + cmp.Or(stuck.text(), describeAwaited(facts.standing(view.Now.Time), condition))
			stuck.message = condition.Message
			return append(conditions, condition), stuck
		}
		conditions = append(conditions, condition)
	}
	return conditions, stuckRollout{}
}

// leaveToRuns says in the condition RolloutStarted that the clusters wait for update runs: for the reason that KubeFleet's
// releases have, in their words.
func leaveToRuns(facts *Facts, entries []placementv1beta1.PerClusterPlacementStatus, undecided metav1.Condition,
	reason string) metav1.Condition {
	if undecided.Reason == reason {
		undecided.Message = describeWaitForRun(facts, entries) + " (" + undecided.Message + ")"
		return undecided
	}
	given := map[string]bool{}
	for i := range entries {
		given[entries[i].ObservedResourceIndex] = true
	}
	why := "different resource snapshot versions are observed across clusters"
	if len(given) == 1 {
		why = fmt.Sprintf("cluster %s is in RolloutStarted Unknown state", entries[0].ClusterName)
		if given[""] {
			kind := placementv1beta1.ScopeOf(facts.Placement).UpdateRunKind().Kind
			why = fmt.Sprintf("no resource snapshot name is observed across clusters. To determine rollout status, check the %s resources with spec.placementName matching this placement", kind)
		}
	}
	undecided.Reason = reason
	undecided.Message = "Rollout is controlled by an external controller and " + why
	return undecided
}

// describeWaitForRun returns for how many clusters a run decides next, and how one is made.
func describeWaitForRun(facts *Facts, entries []placementv1beta1.PerClusterPlacementStatus) string {
	waiting := 0
	for i := range entries {
		said := meta.FindStatusCondition(entries[i].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
		if said == nil || said.Status == metav1.ConditionUnknown {
			waiting++
		}
	}
	text := "1 cluster waits for an update run"
	if waiting != 1 {
		text = fmt.Sprintf("%d clusters wait for an update run", waiting)
	}
	external := rules.StrategyOf(facts.Placement).External
	if external != nil && external.Trigger == placementv1beta1.UpdateRunTriggerOnChange {
		return text + fmt.Sprintf(", which is created for each new snapshot, with strategy `%s`", external.StrategyName)
	}
	strategy := "STRATEGY"
	if external != nil && external.StrategyName != "" {
		strategy = external.StrategyName
	}
	return text + fmt.Sprintf(": unless one is under way, kubectl fleet run %s --strategy %s creates it", asArgument(facts.Placement), strategy)
}

// asArgument names a placement for a command of the plugin.
func asArgument(placement placementv1beta1.PlacementObject) string {
	if namespace := placement.GetNamespace(); namespace != "" {
		return "-n " + namespace + " " + placement.GetName()
	}
	return placement.GetName()
}

// lackingCondition returns which overrides the rollout waits for.
func lackingCondition(facts *Facts) metav1.Condition {
	return metav1.Condition{
		Type:   placementv1beta1.ScopeOf(facts.Placement).PlacementConditionType(placementv1beta1.ConditionTypeOverridden),
		Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonRequiredOverrideMissing,
		Message: "Nothing is written to clusters: " + override.DescribeLacking(facts.Overrides.Lacking),
	}
}

// describeIdleOverrides describes the overrides that are for the placement and select nothing of it.
func describeIdleOverrides(facts *Facts) string {
	if len(facts.Verdict.OverridesIdle) == 0 {
		return ""
	}
	return "; " + strings.Join(facts.Verdict.OverridesIdle, ", ") +
		", which this placement does not place: correct the selector of the override, or select the resource"
}

// sumUpStep sums up one step over all clusters: unknown if it is for one of them that reports, else false if it is for one, else unknown
// if a cluster does not report.
func sumUpStep(scope placementv1beta1.Scope, step *stepTemplate, entries []placementv1beta1.PerClusterPlacementStatus) metav1.Condition {
	conditionType := scope.PlacementConditionType(step.step)
	unknown := 0
	failed := 0
	silent := 0
	overridden := false
	for i := range entries {
		said := meta.FindStatusCondition(entries[i].Conditions, step.step)
		switch {
		case saysSilent(said):
			silent++
		case said == nil || said.Status == metav1.ConditionUnknown:
			unknown++
		case said.Status == metav1.ConditionFalse:
			failed++
		case said.Reason == placementv1beta1.ReasonOverriddenSucceeded:
			overridden = true
		}
	}
	switch {
	case unknown > 0:
		return step.unknown.newCondition(conditionType, metav1.ConditionUnknown, unknown)
	case failed > 0:
		return step.failed.newCondition(conditionType, metav1.ConditionFalse, failed)
	case silent > 0:
		return conditionText{step.unknown.reason, describeSilent(step, entries)}.newCondition(conditionType, metav1.ConditionUnknown)
	case step == &overriddenStep && !overridden:
		return conditionText{placementv1beta1.ReasonNoOverrideSpecified, noOverride}.newCondition(conditionType, metav1.ConditionTrue)
	}
	return step.done.newCondition(conditionType, metav1.ConditionTrue, len(entries))
}

// reportsDiff reports whether differences are only reported: by the placement's strategy or, under External, by what the
// runs have brought to the clusters.
func reportsDiff(facts *Facts) bool {
	if !rules.IsExternal(facts.Placement) {
		return isReportDiff(facts.applyStrategy())
	}
	for i := range facts.Bindings {
		if binding := facts.Bindings[i]; rules.IsLiveBinding(binding) && isReportDiff(binding.GetBindingSpec().ApplyStrategy) {
			return true
		}
	}
	return false
}

func isReportDiff(strategy *placementv1beta1.ApplyStrategy) bool {
	return strategy != nil && strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff
}
