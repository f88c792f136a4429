package brakes

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// asked is a hold as it concerns one subject: whether it closes a cluster is asked of the gate that the activities ask, with this hold
// alone in it. What other holds and windows close does not count for it.
type asked struct {
	fleet *fleet
	gate  *brake.Chain
	now   time.Time
}

func (f *fleet) ask(hold *fleetflowv1alpha1.RolloutHold, of brake.Subject, now time.Time) asked {
	of.NamespaceLabels = f.namespaces[of.Namespace]
	of.Exemptions = brake.ExemptionsOf(f.exemptions, of, f.onlyVerified)
	return asked{fleet: f, gate: brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{*hold}, of)), now: now}
}

// closes reports whether the hold closes a cluster for a kind of start. One that has left the fleet is not gated.
func (a asked) closes(cluster string, start brake.Start) bool {
	labels, gated := a.fleet.labels[cluster]
	if !gated {
		return false
	}
	_, closed := a.gate.Closed(brake.Cluster{Name: cluster, Labels: labels}, start, a.now)
	return closed
}

// holdsPlacement reports whether a placement has clusters that wait for a hold, or evictions. Only clusters that the hold covers
// are looked at.
func (f *fleet) holdsPlacement(hold *fleetflowv1alpha1.RolloutHold, placement placementv1beta1.PlacementObject, covers func(string) bool,
	now time.Time) bool {
	if !meta.IsStatusConditionTrue(placement.GetPlacementStatus().Conditions, fleetflowv1alpha1.ConditionTypeHeld) {
		return false
	}
	by := f.ask(hold, brake.SubjectOf(placement), now)
	bindings := f.bindings[client.ObjectKeyFromObject(placement)]
	waits := f.startsOf(placement)
	if slices.ContainsFunc(bindings, func(b placementv1beta1.BindingObject) bool {
		if !covers(b.GetBindingSpec().TargetCluster) {
			return false
		}
		start := waits(b)
		return start != "" && by.closes(b.GetBindingSpec().TargetCluster, start)
	}) {
		return true
	}
	evictions := f.evictions[client.ObjectKeyFromObject(placement)]
	if len(evictions) == 0 {
		return false
	}
	there := f.bindingsOn(placement)
	return slices.ContainsFunc(evictions, func(cluster string) bool {
		return there[cluster] != nil && by.closes(cluster, fleetflowv1alpha1.StartEvictions)
	})
}

// startsOf makes what says which kind of start waits on the cluster of a binding; none if nothing does. The status of a placement
// has those that wait first; of those that it has no room for, the snapshot tells.
func (f *fleet) startsOf(placement placementv1beta1.PlacementObject) func(placementv1beta1.BindingObject) brake.Start {
	if rules.IsExternal(placement) {
		return func(placementv1beta1.BindingObject) brake.Start { return "" } // its runs tell
	}
	status := placement.GetPlacementStatus()
	closed := make(map[string]bool, len(status.PerClusterPlacementStatuses))
	for i := range status.PerClusterPlacementStatuses {
		started := meta.FindStatusCondition(status.PerClusterPlacementStatuses[i].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
		closed[status.PerClusterPlacementStatuses[i].ClusterName] = started != nil && fleetflowv1alpha1.HoldsStarts(started.Reason)
	}
	latest := ""
	if index, err := strconv.Atoi(status.ObservedResourceIndex); err == nil {
		latest = placementv1beta1.ResourceSnapshotName(placement.GetName(), index, 0)
	}
	return func(binding placementv1beta1.BindingObject) brake.Start {
		spec := binding.GetBindingSpec()
		unscheduled := spec.State == placementv1beta1.BindingStateUnscheduled
		if rules.IsDeleting(binding) || unscheduled && rules.IsSuperseded(binding) {
			return ""
		}
		switch spec.State {
		case placementv1beta1.BindingStateScheduled:
			return fleetflowv1alpha1.StartFirstPlacements
		case placementv1beta1.BindingStateUnscheduled:
			return fleetflowv1alpha1.StartRemovals
		}
		if waits, told := closed[spec.TargetCluster]; waits || !told && latest != "" && spec.ResourceSnapshotName != latest {
			return fleetflowv1alpha1.StartUpdates
		}
		return ""
	}
}

// holdsRun reports whether a run has clusters that wait for a hold, in the stage that it is in.
func (f *fleet) holdsRun(hold *fleetflowv1alpha1.RolloutHold, run placementv1beta1.UpdateRunObject,
	placement placementv1beta1.PlacementObject, now time.Time) bool {
	if !meta.IsStatusConditionTrue(run.GetConditions(), fleetflowv1alpha1.ConditionTypeHeld) {
		return false
	}
	status := run.GetUpdateRunStatus()
	for i := range status.StagesStatus {
		stage := &status.StagesStatus[i]
		if updaterun.StageOver(stage) {
			continue
		}
		by := f.ask(hold, brake.SubjectOfRun(run, placement, stage.StageName), now)
		there := f.bindingsOn(placement)
		return slices.ContainsFunc(updaterun.NamesIn(stage, updaterun.PhasePending), func(cluster string) bool {
			return by.closes(cluster, brake.StartInRun(there[cluster]))
		})
	}
	if status.DeletionStageStatus == nil {
		return false
	}
	by := f.ask(hold, brake.SubjectOfRun(run, placement, ""), now)
	return slices.ContainsFunc(updaterun.NamesIn(status.DeletionStageStatus, updaterun.PhasePending), func(cluster string) bool {
		return by.closes(cluster, fleetflowv1alpha1.StartRemovals)
	})
}

// bindingsOn returns the bindings of a placement by the names of their clusters.
func (f *fleet) bindingsOn(placement placementv1beta1.PlacementObject) map[string]placementv1beta1.BindingObject {
	bindings := f.bindings[client.ObjectKeyFromObject(placement)]
	there := make(map[string]placementv1beta1.BindingObject, len(bindings))
	for _, b := range slices.Backward(bindings) {
		if !rules.IsDeleting(b) {
			there[b.GetBindingSpec().TargetCluster] = b
		}
	}
	return there
}
