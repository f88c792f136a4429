package updaterun

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Phase is how far a run, a stage of it, or a cluster of a stage is.
type Phase string

// Phases. A cluster is Pending, Running (it is being updated), Succeeded, Failed or Skipped. The stage goes on without
// clusters that have failed within its failure budget, or that are skipped. A failed one may still succeed, and both may be
// asked to try again, which makes them Pending once more.
const (
	PhaseInitializing Phase = "Initializing"
	PhaseInitialized  Phase = "Initialized"
	PhasePending      Phase = "Pending"
	PhaseRunning      Phase = "Running"
	PhaseWaiting      Phase = "Waiting"
	PhaseStuck        Phase = "Stuck"
	PhaseStopping     Phase = "Stopping"
	PhaseStopped      Phase = "Stopped"
	PhaseSucceeded    Phase = "Succeeded"
	PhaseSkipped      Phase = "Skipped"
	PhaseFailed       Phase = "Failed"
	PhaseDeleting     Phase = "Deleting"
)

// Over reports whether the phase is the last one.
func (p Phase) Over() bool { return p == PhaseSucceeded || p == PhaseSkipped || p == PhaseFailed }

// ClusterPhase returns how far a cluster is.
func ClusterPhase(c *placementv1beta1.ClusterUpdatingStatus) Phase {
	succeeded := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
	switch {
	case succeeded == nil && findStarted(c) != nil:
		return PhaseRunning
	case succeeded == nil:
		return PhasePending
	case succeeded.Status == metav1.ConditionTrue:
		return PhaseSucceeded
	case rules.IsSkipped(c):
		return PhaseSkipped
	}
	return PhaseFailed
}

func findStarted(c *placementv1beta1.ClusterUpdatingStatus) *metav1.Condition {
	return meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted)
}

// WasStarted reports whether the run has written, or tried to write, to a cluster.
func WasStarted(c *placementv1beta1.ClusterUpdatingStatus) bool {
	return hasSucceeded(c) || findStarted(c) != nil
}

// StartedAt returns when the run began to update a cluster; zero if it has not begun.
func StartedAt(c *placementv1beta1.ClusterUpdatingStatus) time.Time {
	if condition := findStarted(c); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

// hasSucceeded reports whether a cluster has reached the run's snapshot.
func hasSucceeded(c *placementv1beta1.ClusterUpdatingStatus) bool {
	return meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
}

// FindCluster returns a cluster of a stage by its name; nil if the stage does not have it.
func FindCluster(stage *placementv1beta1.StageUpdatingStatus, name string) *placementv1beta1.ClusterUpdatingStatus {
	for i := range stage.Clusters {
		if stage.Clusters[i].ClusterName == name {
			return &stage.Clusters[i]
		}
	}
	return nil
}

// SnapshotFor returns the master snapshot that a run brings one cluster to; in a rollback, each has its own. It is empty if a rollback
// has no part for the cluster.
func SnapshotFor(run placementv1beta1.UpdateRunObject, cluster string) string {
	spec := run.GetUpdateRunSpec()
	status := run.GetUpdateRunStatus()
	used := status.ResourceSnapshotIndexUsed
	if spec.RollbackOf != "" {
		var c *placementv1beta1.ClusterUpdatingStatus
		for i := 0; c == nil && i < len(status.StagesStatus); i++ {
			c = FindCluster(&status.StagesStatus[i], cluster)
		}
		if c == nil {
			return ""
		}
		used = c.ResourceSnapshotIndex
	}
	index, _ := strconv.Atoi(used)
	return placementv1beta1.ResourceSnapshotName(spec.PlacementName, index, 0)
}

// ClusterNames returns the names of the clusters of a stage.
func ClusterNames(stage *placementv1beta1.StageUpdatingStatus) []string {
	names := make([]string, len(stage.Clusters))
	for i := range stage.Clusters {
		names[i] = stage.Clusters[i].ClusterName
	}
	return names
}

// NamesIn returns the names of the clusters of a stage that are in a phase.
func NamesIn(stage *placementv1beta1.StageUpdatingStatus, phase Phase) []string {
	var names []string
	for _, i := range PositionsIn(stage, phase) {
		names = append(names, stage.Clusters[i].ClusterName)
	}
	return names
}

// PositionsIn returns the positions of the clusters of a stage that are in a phase.
func PositionsIn(stage *placementv1beta1.StageUpdatingStatus, phase Phase) []int {
	var positions []int
	for i := range stage.Clusters {
		if ClusterPhase(&stage.Clusters[i]) == phase {
			positions = append(positions, i)
		}
	}
	return positions
}

// CountIn counts the clusters of a stage that are in a phase.
func CountIn(stage *placementv1beta1.StageUpdatingStatus, phase Phase) int {
	return len(PositionsIn(stage, phase))
}

// StageOver reports whether a stage has ended, well or not.
func StageOver(stage *placementv1beta1.StageUpdatingStatus) bool {
	return meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeSucceeded) != nil
}

// StageUpdated reports whether all clusters of a stage have reached the run's snapshot, or that the run goes on without them.
func StageUpdated(stage *placementv1beta1.StageUpdatingStatus) bool {
	return !slices.ContainsFunc(stage.Clusters, func(c placementv1beta1.ClusterUpdatingStatus) bool {
		return meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded) == nil
	})
}

// AfterTasksBegan returns the condition that says since when a stage, all of whose clusters are updated, waits for the
// tasks after it, or has waited for them; nil if it does not. The wait for the tasks before a stage has the same reason. At
// the end of the stage some vocabularies change the reason; the time stays, and so it does while the run is stopped.
func AfterTasksBegan(stage *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig) *metav1.Condition {
	c := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	if c == nil || stage.StartTime == nil || !StageUpdated(stage) {
		return nil
	}
	switch c.Reason {
	case placementv1beta1.ReasonStageUpdatingWaiting:
		return c
	case placementv1beta1.ReasonStageUpdatingSucceeded:
		if len(stage.Clusters) > 0 {
			return c
		}
	case placementv1beta1.ReasonStageUpdatingStopped:
		if !isOverBudget(stage, config) && endedBy(stage, c.LastTransitionTime.Time) {
			return c
		}
	}
	return nil
}

// endedBy reports whether all clusters of a stage were updated by a time. A stage that was stopped earlier than that did not
// wait for its tasks yet.
func endedBy(stage *placementv1beta1.StageUpdatingStatus, t time.Time) bool {
	return !slices.ContainsFunc(stage.Clusters, func(c placementv1beta1.ClusterUpdatingStatus) bool {
		ended := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
		return ended == nil || ended.LastTransitionTime.After(t)
	})
}

// IsStopping reports whether the user wants a run to stop.
func IsStopping(run placementv1beta1.UpdateRunObject) bool {
	return run.GetUpdateRunSpec().State == placementv1beta1.StateStop
}

// IsStuck reports whether a run was reported stuck.
func IsStuck(run placementv1beta1.UpdateRunObject) bool {
	c := meta.FindStatusCondition(run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonUpdateRunStuck
}

// IsHeldUp reports whether a run was reported to stand still because clusters are closed.
func IsHeldUp(run placementv1beta1.UpdateRunObject) bool {
	c := meta.FindStatusCondition(run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonUpdateRunWaiting &&
		meta.IsStatusConditionTrue(run.GetConditions(), fleetflowv1alpha1.ConditionTypeHeld)
}

// largeRun is beyond how many clusters the status says less of each: it has to fit into what the API server stores.
const largeRun = 500

// IsLarge reports whether a run has so many clusters that its status says less of each.
func IsLarge(run placementv1beta1.UpdateRunObject) bool {
	status := run.GetUpdateRunStatus()
	clusters := 0
	for i := range status.StagesStatus {
		clusters += len(status.StagesStatus[i].Clusters)
	}
	if d := status.DeletionStageStatus; d != nil {
		clusters += len(d.Clusters)
	}
	return clusters > largeRun
}

// StageAt returns the status of a stage; the one behind the last is the deletion stage.
func StageAt(run placementv1beta1.UpdateRunObject, index int) *placementv1beta1.StageUpdatingStatus {
	if status := run.GetUpdateRunStatus(); index < len(status.StagesStatus) {
		return &status.StagesStatus[index]
	}
	return run.GetUpdateRunStatus().DeletionStageStatus
}

// StageConfig returns the frozen configuration of a stage.
func StageConfig(run placementv1beta1.UpdateRunObject, index int) placementv1beta1.StageConfig {
	if s := run.GetUpdateRunStatus().UpdateStrategySnapshot; s != nil && index < len(s.Stages) {
		return s.Stages[index]
	}
	return placementv1beta1.StageConfig{}
}
