package stagedupdate

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// recorder writes progress into the status of a run. All it does only moves
// forward, so that two overlapping attempts of an activity can both record what
// they saw, in any order, and the result is the same.
type recorder struct {
	run *placementv1beta1.ClusterStagedUpdateRun
	now time.Time
}

func (r recorder) set(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	r.setAt(conditions, kind, status, reason, message, r.now)
}

func (r recorder) setAt(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string, at time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: r.run.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}

func (r recorder) runCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	r.set(&r.run.Status.Conditions, kind, status, reason, message)
}

// initialized records that the plan is frozen.
func (r recorder) initialized(note string) {
	message := "ClusterStagedUpdateRun initialized successfully"
	if note != "" {
		message += "; " + note
	}
	r.runCondition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunInitializedSuccessfully, message)
}

// progressing records that the run moves on, which also clears a stuck or
// stopped run.
func (r recorder) progressing() {
	if terminal(r.run) {
		return
	}
	r.runCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunStarted, "The update run is making progress")
}

// isStuck says that a run is called stuck.
func isStuck(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonUpdateRunStuck
}

// stuck names the cluster a run waits for in vain; why is what keeps it from being written to, if
// anything does.
func (r recorder) stuck(stage, cluster, why string) {
	r.runCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck,
		fmt.Sprintf("The updateRun is stuck waiting for cluster %s in stage %s to finish updating, please check crp status for potential errors%s", cluster, stage, why))
}

// started records that clusters of a stage are being written to.
func (r recorder) started(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	if len(clusters) == 0 {
		return
	}
	r.stageStarted(stage)
	each(stage, clusters, r.clusterStarted)
}

func (r recorder) clusterStarted(c *placementv1beta1.ClusterUpdatingStatus) {
	if meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted) != nil || clusterDone(c) {
		return
	}
	r.setCluster(c, placementv1beta1.ConditionTypeStarted, placementv1beta1.ReasonClusterUpdatingStarted, "Cluster update started")
}

// largeRun is beyond how many clusters the status says less of each: it has to fit into what
// the API server stores.
const largeRun = 500

func (r recorder) large() bool { return large(r.run) }

func large(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	status := &run.Status
	n := 0
	for i := range status.StagesStatus {
		n += len(status.StagesStatus[i].Clusters)
	}
	if d := status.DeletionStageStatus; d != nil {
		n += len(d.Clusters)
	}
	return n > largeRun
}

// setCluster sets a condition of a cluster to True; in a large run, as short as it can be.
func (r recorder) setCluster(c *placementv1beta1.ClusterUpdatingStatus, kind, reason, message string) {
	condition := metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: r.run.Generation, LastTransitionTime: metav1.NewTime(r.now),
	}
	if r.large() {
		condition.Message, condition.ObservedGeneration = "", 0
	}
	meta.SetStatusCondition(&c.Conditions, condition)
}

func (r recorder) stageStarted(stage *placementv1beta1.StageUpdatingStatus) {
	// The wait for an approval before the stage looks like the wait after it, but
	// for the clusters: so this comes first.
	waits, begins := stageWaits(stage), stage.StartTime == nil
	if begins {
		now := metav1.NewTime(r.now)
		stage.StartTime = &now
	}
	if stageOver(stage) || waits || stopping(r.run) && !begins {
		return
	}
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue,
		placementv1beta1.ReasonStageUpdatingStarted, "Clusters in the stage started updating")
}

// done records clusters that have reached the run's snapshot.
func (r recorder) done(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	large := r.large()
	each(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		r.clusterStarted(c)
		r.writtenAtLast(c)
		r.setCluster(c, placementv1beta1.ConditionTypeSucceeded, placementv1beta1.ReasonClusterUpdatingSucceeded, "Cluster update completed successfully")
		if large {
			// When it was started and with which overrides is on its binding.
			meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
			c.ResourceOverrideSnapshots, c.ClusterResourceOverrideSnapshots = nil, nil
		}
	})
}

// stopping records that a run waits for clusters in flight before it stands still.
func (r recorder) stopping(stage *placementv1beta1.StageUpdatingStatus) {
	if terminal(r.run) {
		return
	}
	r.runCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionUnknown,
		placementv1beta1.ReasonUpdateRunStopping, "The update run is stopping, waiting for the clusters being updated to finish")
	if stage.StartTime == nil || stageOver(stage) || stageWaits(stage) {
		return
	}
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionUnknown,
		placementv1beta1.ReasonStageUpdatingStopping, "The stage is stopping, waiting for the clusters being updated to finish")
}

// stopped records that a run stands still. A stage that soaks goes on soaking, and one whose
// last cluster was done while the run was stopping begins to: what its clusters run does not
// change while the run stands still, and no soak time is lost.
func (r recorder) stopped() {
	r.runCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonUpdateRunStopped, "The update run has been stopped"+whyPaused(r.run))
	for i := range r.run.Status.StagesStatus {
		stage := &r.run.Status.StagesStatus[i]
		if stage.StartTime != nil && len(stage.Clusters) > 0 && stageUpdated(stage) && !overBudget(r.run, i) {
			r.waiting(stage)
			continue
		}
		r.stageStopped(stage)
	}
	if stage := r.run.Status.DeletionStageStatus; stage != nil {
		r.stageStopped(stage)
	}
}

func (r recorder) stageStopped(stage *placementv1beta1.StageUpdatingStatus) {
	if stage.StartTime == nil || stageOver(stage) {
		return
	}
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingStopped,
		"All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed")
}

// waiting records that all clusters of a stage are updated and its tasks have
// begun. The transition time is what a timed wait counts from, so it is rounded
// up to the second that the API keeps: a soak is never cut short.
func (r recorder) waiting(stage *placementv1beta1.StageUpdatingStatus) {
	if stageWaits(stage) || stageOver(stage) {
		return
	}
	message := "All clusters in the stage are updated, waiting for after-stage tasks to complete"
	if len(stage.AfterStageTaskStatus) == 0 {
		message = "All clusters in the stage are updated" // a stage without tasks has the same reason
	}
	if stage.StartTime == nil { // every cluster was skipped before its turn
		now := metav1.NewTime(r.now)
		stage.StartTime = &now
	}
	if meta.IsStatusConditionFalse(stage.Conditions, placementv1beta1.ConditionTypeProgressing) {
		// The wait before the stage, and one that stands still, have the same status: nothing
		// counts from then.
		meta.RemoveStatusCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	}
	at := r.now
	if slices.ContainsFunc(stage.AfterStageTaskStatus, func(t placementv1beta1.StageTaskStatus) bool {
		return t.Type == placementv1beta1.StageTaskTypeTimedWait
	}) {
		at = ceilSecond(at)
	}
	r.setAt(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingWaiting, message, at)
}

// waitingBefore records that a stage may not start yet.
func (r recorder) waitingBefore(stage *placementv1beta1.StageUpdatingStatus) {
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingWaiting, "Not all before-stage tasks are completed, waiting for approval")
}

// doneLast records the last clusters of a stage, and ends it if nothing holds it up.
func (r recorder) doneLast(stage *placementv1beta1.StageUpdatingStatus, clusters []string) (over bool) {
	r.done(stage, clusters)
	if over = r.mayEnd(stage); over {
		r.progressing() // it may have been called stuck
		r.waiting(stage)
		r.succeeded(stage)
	}
	return over
}

// mayEnd says that a stage whose clusters are all updated has nothing else to wait for, and that
// nobody has to look at it: no tasks come after it, and no cluster of it was given up.
func (r recorder) mayEnd(stage *placementv1beta1.StageUpdatingStatus) bool {
	return !stopping(r.run) && !stageOver(stage) && len(stage.AfterStageTaskStatus) == 0 &&
		stageUpdated(stage) && len(namesIn(stage, rollout.ClusterFailed)) == 0
}

// succeeded ends a stage.
func (r recorder) succeeded(stage *placementv1beta1.StageUpdatingStatus) {
	if stageOver(stage) {
		return
	}
	now := metav1.NewTime(r.now)
	if stage.StartTime == nil {
		stage.StartTime = &now
	}
	stage.EndTime = &now
	reason, message := placementv1beta1.ReasonStageUpdatingSucceeded, "Stage update completed successfully"+exceptions(*stage)
	if len(stage.Clusters) == 0 {
		reason, message = placementv1beta1.ReasonStageUpdatingSkippedNoClusters, "Stage skipped because it has no clusters"
	}
	if !stageWaits(stage) {
		r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
			placementv1beta1.ReasonStageUpdatingSucceeded, "All clusters in the stage are updated and after-stage tasks are completed")
	}
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, reason, message)
}

// deleted ends the deletion stage, as the documents print it: with Progressing
// left at StageUpdatingStarted.
func (r recorder) deleted() {
	stage := r.run.Status.DeletionStageStatus
	r.done(stage, without(clusterNames(stage), namesIn(stage, rollout.ClusterSkipped)))
	r.stageStarted(stage)
	if stage.EndTime == nil {
		now := metav1.NewTime(r.now)
		stage.EndTime = &now
	}
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue,
		placementv1beta1.ReasonStageUpdatingSucceeded, "Stage update completed successfully")
}

// finished ends the run well. Progressing stays as the documents print it.
func (r recorder) finished() {
	r.progressing()
	r.runCondition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunSucceeded, "All stages are completed successfully"+exceptions(r.run.Status.StagesStatus...))
}

// failed ends the run, and the stage it was in, for good.
func (r recorder) failed(message string) {
	if terminal(r.run) {
		return
	}
	for i := range r.run.Status.StagesStatus {
		r.failStage(&r.run.Status.StagesStatus[i])
	}
	if s := r.run.Status.DeletionStageStatus; s != nil {
		r.failStage(s)
	}
	r.runCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonUpdateRunFailed, "The stages are aborted due to a non-recoverable error")
	r.runCondition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunFailed, message)
}

func (r recorder) failStage(stage *placementv1beta1.StageUpdatingStatus) {
	if len(stage.Conditions) == 0 || stageOver(stage) {
		return
	}
	const message = "Stage update aborted due to a non-recoverable error"
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingFailed, message)
	r.set(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingFailed, message)
}

// task finds the status of a task, adding it when it is missing.
func task(list *[]placementv1beta1.StageTaskStatus, kind placementv1beta1.StageTaskType) *placementv1beta1.StageTaskStatus {
	for i := range *list {
		if (*list)[i].Type == kind {
			return &(*list)[i]
		}
	}
	*list = append(*list, placementv1beta1.StageTaskStatus{Type: kind})
	return &(*list)[len(*list)-1]
}

func clusterIn(stage *placementv1beta1.StageUpdatingStatus, name string) *placementv1beta1.ClusterUpdatingStatus {
	for i := range stage.Clusters {
		if stage.Clusters[i].ClusterName == name {
			return &stage.Clusters[i]
		}
	}
	return nil
}

// each calls do for the clusters of a stage that have one of the names.
func each(stage *placementv1beta1.StageUpdatingStatus, names []string, do func(*placementv1beta1.ClusterUpdatingStatus)) {
	if len(names) == 1 {
		if c := clusterIn(stage, names[0]); c != nil {
			do(c)
		}
		return
	}
	wanted := make(map[string]struct{}, len(names))
	for _, name := range names {
		wanted[name] = struct{}{}
	}
	for i := range stage.Clusters {
		if _, ok := wanted[stage.Clusters[i].ClusterName]; ok {
			do(&stage.Clusters[i])
		}
	}
}

func clusterNames(stage *placementv1beta1.StageUpdatingStatus) []string {
	names := make([]string, len(stage.Clusters))
	for i := range stage.Clusters {
		names[i] = stage.Clusters[i].ClusterName
	}
	return names
}

// clusterDone says that a cluster has reached the run's snapshot.
func clusterDone(c *placementv1beta1.ClusterUpdatingStatus) bool {
	return meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
}

// stopping says that the user wants a run to stand still.
func stopping(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return run.Spec.State == placementv1beta1.StateStop
}

func stageOver(stage *placementv1beta1.StageUpdatingStatus) bool {
	return meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeSucceeded) != nil
}

// stageWaits says that all clusters are updated and the tasks after the stage
// have begun; the wait before a stage has the same reason.
func stageWaits(stage *placementv1beta1.StageUpdatingStatus) bool {
	c := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonStageUpdatingWaiting && stage.StartTime != nil && stageUpdated(stage)
}

// stageUpdated says that all clusters of a stage have reached the run's
// snapshot, or that the run goes on without them.
func stageUpdated(stage *placementv1beta1.StageUpdatingStatus) bool {
	for i := range stage.Clusters {
		if meta.FindStatusCondition(stage.Clusters[i].Conditions, placementv1beta1.ConditionTypeSucceeded) == nil {
			return false
		}
	}
	return true
}

// terminal says that nothing more will happen to a run.
func terminal(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) != nil ||
		meta.IsStatusConditionFalse(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized)
}

func ceilSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}
