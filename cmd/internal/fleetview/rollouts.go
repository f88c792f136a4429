package fleetview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
)

// Placement is a row about a placement.
type Placement struct {
	hub.Ref
	// Phase is the state that pages show.
	Phase updaterun.Phase
	// Policy is how clusters are picked.
	Policy string
	// Selected counts the clusters picked, Applied and Available those of them that have and run the resources.
	Selected, Applied, Available string
	// Rollout says what it is at.
	Rollout   string
	Snapshot  string
	Resources string
	Message   string
	Labels    map[string]string
	Age       string
}

// fullClusters is the greatest number of clusters that a status reports in full. Above, one that is listed by name alone is as it
// should be.
const fullClusters = 150

// Placements sums placements up. Of runs, those that are not over say what an External placement is at.
func Placements(placements []hub.Placement, active []hub.Run, now time.Time) []Placement {
	rows := make([]Placement, 0, len(placements))
	for _, p := range placements {
		row := Placement{
			Ref: p.Ref, Labels: p.Object.GetLabels(), Policy: policyText(p.Spec.Policy),
			Snapshot: p.Status.ObservedResourceIndex, Resources: strconv.Itoa(len(p.Status.SelectedResources)),
			Age: Age(p.Object.GetCreationTimestamp().Time, now),
		}
		row.countClusters(p)
		row.Rollout, row.Message = rolloutOf(p, active)
		row.Phase, _ = status.PlacementState(p)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Placement) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func policyText(policy *placementv1beta1.PlacementPolicy) string {
	switch {
	case policy == nil || policy.PlacementType == "" || policy.PlacementType == placementv1beta1.PickAllPlacementType:
		return "PickAll"
	case policy.PlacementType == placementv1beta1.PickNPlacementType && policy.NumberOfClusters != nil:
		return fmt.Sprintf("PickN %d", *policy.NumberOfClusters)
	case policy.PlacementType == placementv1beta1.PickFixedPlacementType:
		return fmt.Sprintf("PickFixed %d", len(policy.ClusterNames))
	default:
		return string(policy.PlacementType)
	}
}

func (row *Placement) countClusters(p hub.Placement) {
	selected := 0
	applied := 0
	available := 0
	large := len(p.Status.PerClusterPlacementStatuses) > fullClusters
	for i := range p.Status.PerClusterPlacementStatuses {
		entry := &p.Status.PerClusterPlacementStatuses[i]
		if entry.ClusterName == "" {
			continue
		}
		selected++
		settled := large && len(entry.Conditions) == 0
		if settled || meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeApplied) {
			applied++
		}
		if settled || meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeAvailable) {
			available++
		}
	}
	if left := int(p.Status.UnlistedClusters); left > 0 {
		// Clusters that are not as they should be are listed first: the ones left out are.
		selected = selected + left
		applied = applied + left
		available = available + left
	}
	wanted := selected
	if policy := p.Spec.Policy; policy != nil && policy.PlacementType == placementv1beta1.PickNPlacementType &&
		policy.NumberOfClusters != nil {
		wanted = max(wanted, int(*policy.NumberOfClusters))
	}
	row.Selected = strconv.Itoa(selected)
	if wanted != selected {
		row.Selected = formatFraction(selected, wanted)
	}
	row.Applied = formatFraction(applied, selected)
	row.Available = formatFraction(available, selected)
}

// engine is what a run waits for that cannot go on without Temporal.
const engine = "Temporal, which the hub agent does not reach"

// steps are the conditions of a placement in their order, each with what is going on while it is unknown and false.
var steps = []struct{ condition, unknown, failed string }{
	{placementv1beta1.ConditionTypeScheduled, "scheduling", "not scheduled"},
	{placementv1beta1.ConditionTypeRolloutStarted, "rolling out", "rolling out"},
	{placementv1beta1.ConditionTypeOverridden, "overriding", "override failed"},
	{placementv1beta1.ConditionTypeWorkSynchronized, "writing", "writing"},
	{placementv1beta1.ConditionTypeApplied, "applying", "apply failed"},
	{placementv1beta1.ConditionTypeAvailable, "starting up", "not available"},
	{placementv1beta1.ConditionTypeDiffReported, "comparing", "comparing"},
}

// rolloutOf returns what a placement is at, and what its conditions say of that.
func rolloutOf(p hub.Placement, active []hub.Run) (state, message string) {
	if !p.Object.GetDeletionTimestamp().IsZero() {
		return "deleting", ""
	}
	if run := runOf(p, active); run != nil {
		view := updaterun.Read(run.Object)
		return fmt.Sprintf("run %s: %s", run.Name, view.Phase), view.Why
	}
	if updaterun.IsEngineAway(p.Object.GetPlacementStatus().Conditions) {
		return "waits for Temporal", p.Condition(placementv1beta1.ConditionTypeEngineReachable).Message
	}
	if p.Current(placementv1beta1.ConditionTypeScheduled) == nil {
		return "scheduling", ""
	}
	last := ""
	unplaced := ""
	for _, step := range steps {
		condition := p.Current(step.condition)
		if condition == nil {
			continue
		}
		last = step.condition
		if condition.Status == metav1.ConditionTrue {
			continue
		}
		if condition.Reason == placementv1beta1.ReasonReplicasUnplaced {
			unplaced = condition.Message // what found a place is rolled out
			continue
		}
		return wordAt(p, step.condition, condition, step.unknown, step.failed), condition.Message
	}
	if unplaced != "" {
		return "replicas unplaced", unplaced
	}
	if last == placementv1beta1.ConditionTypeScheduled {
		return "no clusters", p.Condition(last).Message
	}
	for _, short := range []struct{ condition, state string }{
		{placementv1beta1.ConditionTypeRemovalsHeld, "removals held"}, {placementv1beta1.ConditionTypeResourcesMissing, "resources missing"},
	} {
		if said := p.Condition(short.condition); said != nil && said.Status == metav1.ConditionTrue {
			return short.state, said.Message
		}
	}
	return "done", ""
}

// wordAt returns what is going on at a step that is not done.
func wordAt(p hub.Placement, step string, condition *metav1.Condition, unknown, failed string) string {
	switch {
	case p.External() && step == placementv1beta1.ConditionTypeRolloutStarted:
		return "waits for a run"
	case condition.Reason == placementv1beta1.ReasonRolloutPaused:
		return "paused"
	case condition.Reason == placementv1beta1.ReasonSuspended:
		return "suspended"
	case condition.Status == metav1.ConditionFalse:
		return failed
	case isDoubted(p, step):
		return "not known"
	default:
		return unknown
	}
}

// isDoubted reports whether a step is unknown because no agent looks at a cluster of a placement.
func isDoubted(p hub.Placement, step string) bool {
	return slices.ContainsFunc(p.Status.PerClusterPlacementStatuses, func(entry placementv1beta1.PerClusterPlacementStatus) bool {
		said := meta.FindStatusCondition(entry.Conditions, step)
		return said != nil && clusterrules.IsDoubt(said.Reason)
	})
}

// runOf returns the latest run of a placement that is not over.
func runOf(p hub.Placement, active []hub.Run) *hub.Run {
	var found *hub.Run
	for i := range active {
		run := &active[i]
		if run.Placement() != p.Ref || run.Outcome() != "" {
			continue
		}
		if found == nil || found.Object.GetCreationTimestamp().Time.Before(run.Object.GetCreationTimestamp().Time) {
			found = run
		}
	}
	return found
}

// Run is a row about a staged update run.
type Run struct {
	hub.Ref
	// Phase is the state that pages show.
	Phase                  updaterun.Phase
	Placement, Snapshot    string
	State, Stage, Progress string
	// WaitingFor says what has to happen next.
	WaitingFor string
	Strategy   string
	Message    string
	Labels     map[string]string
	Age        string
	Created    time.Time
}

// Runs sums staged update runs up, the latest first.
func Runs(all []hub.Run, now time.Time) []Run {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b hub.Run) int {
		return cmp.Or(b.Object.GetCreationTimestamp().Compare(a.Object.GetCreationTimestamp().Time), cmp.Compare(a.Name, b.Name))
	})
	rows := make([]Run, 0, len(all))
	for _, run := range all {
		rows = append(rows, runRow(run, now))
	}
	return rows
}

func runRow(run hub.Run, now time.Time) Run {
	view := updaterun.Read(run.Object)
	row := Run{
		Ref: run.Ref, Phase: view.Phase, Created: run.Object.GetCreationTimestamp().Time,
		Labels: run.Object.GetLabels(), Placement: run.Spec.PlacementName,
		Snapshot: cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex, "latest"),
		State:    string(view.Phase), Strategy: run.Spec.StagedUpdateStrategyName,
		WaitingFor: waitingFor(view, now), Age: Age(run.Object.GetCreationTimestamp().Time, now),
	}
	if run.Spec.RollbackOf != "" {
		row.Snapshot = "before " + run.Spec.RollbackOf
	}
	if view.Phase == updaterun.PhaseFailed || view.Phase == updaterun.PhaseStuck {
		row.Message = view.Why
	}
	row.WaitingFor = cmp.Or(row.WaitingFor, heldBy(run))
	if updaterun.IsEngineAway(run.Object.GetConditions()) && !view.Phase.Over() {
		row.State = string(updaterun.PhaseStuck)
		row.WaitingFor = engine
	}
	if len(view.Stages) > 0 {
		row.Progress = view.Progress()
	}
	if view.Current < len(view.Stages) {
		row.Stage = fmt.Sprintf("%s (%d of %d)", view.Stages[view.Current].Title(), view.Current+1, len(view.Stages))
	}
	return row
}
