package updaterun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Recorder writes what has happened into the status of a run. It only ever moves a run forward: two overlapping attempts
// of an activity can both record what they saw, in any order, and the result is the same.
type Recorder struct {
	Run placementv1beta1.UpdateRunObject
	// Now is the time of what is recorded.
	Now time.Time
}

// Status returns the status that is written to.
func (r Recorder) Status() *placementv1beta1.UpdateRunStatus { return r.Run.GetUpdateRunStatus() }

// Stage returns the status of a stage.
func (r Recorder) Stage(index int) *placementv1beta1.StageUpdatingStatus {
	return StageAt(r.Run, index)
}

// DeletionStage returns the status of the stage that clears clusters which the placement no longer selects.
func (r Recorder) DeletionStage() *placementv1beta1.StageUpdatingStatus {
	return r.Status().DeletionStageStatus
}

func (r Recorder) setCondition(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	r.setConditionAt(conditions, kind, status, reason, message, r.Now)
}

func (r Recorder) setConditionAt(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string,
	at time.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: placementv1beta1.ScopeOf(r.Run).Word(message),
		ObservedGeneration: r.Run.GetGeneration(), LastTransitionTime: metav1.NewTime(at),
	})
}

// RunCondition sets a condition of the run. The words of a run of KubeFleet's are recorded first: the reason may be what they
// are known by.
func (r Recorder) RunCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	if vocabulary := placementv1beta1.VocabularyOf(r.Run); vocabulary != placementv1beta1.VocabularyDocumentation {
		r.Status().Vocabulary = vocabulary
	}
	r.setCondition(&r.Status().Conditions, kind, status, reason, message)
}

// TaskChecked records what a check of a task has found.
func (r Recorder) TaskChecked(stage *placementv1beta1.StageUpdatingStatus, task stagetask.Task, outcome stagetask.Outcome) {
	outcome.RecordIn(stage, task, r.Run.GetGeneration(), r.Now)
}

// Initialized records that the plan is frozen.
func (r Recorder) Initialized(note string) {
	message := "ClusterStagedUpdateRun initialized successfully"
	if note != "" {
		message += "; " + note
	}
	r.RunCondition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunInitializedSuccessfully, message)
}

// Progressing records that the run moves on. A run that was stuck or stopped no longer is.
func (r Recorder) Progressing() {
	if rules.IsRunOver(r.Run) {
		return
	}
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue,
		r.words().RunProgressing, "The update run is making progress")
}

// WaitingForTasks records that the run waits for the tasks on one side of a stage.
func (r Recorder) WaitingForTasks(stage *placementv1beta1.StageUpdatingStatus, side stagetask.Side) {
	reason := r.words().RunWaiting
	if reason == "" {
		r.Progressing()
		return
	}
	if rules.IsRunOver(r.Run) {
		return
	}
	tasks := "after-stage"
	if side == stagetask.Before {
		tasks = "before-stage"
	}
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, reason,
		fmt.Sprintf("The updateRun is waiting for %s tasks in stage %s to complete", tasks, stage.StageName))
}

// Held records that clusters are closed, for which the run stands still or not. Without a reason none are.
func (r Recorder) Held(reason, message string, standsStill bool) {
	if reason == "" || rules.IsRunOver(r.Run) {
		r.released()
		return
	}
	r.setCondition(&r.Status().Conditions, fleetflowv1alpha1.ConditionTypeHeld, metav1.ConditionTrue, reason, message)
	if standsStill {
		r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunWaiting,
			"The updateRun is waiting: "+message)
	}
}

// released takes back that clusters are closed: the run does not want to start them any more.
func (r Recorder) released() {
	placementv1beta1.Resolve(&r.Status().Conditions, fleetflowv1alpha1.ConditionTypeHeld, r.Run.GetGeneration(), metav1.NewTime(r.Now))
}

// Stuck records that the run has waited for a cluster for too long; why is what is known of the cause, as it follows a sentence:
// empty, or behind a colon. The cause comes first, then the remedy; the phrase at the end is KubeFleet's, for scripts that look
// for it.
func (r Recorder) Stuck(stage, cluster, why string) {
	message := fmt.Sprintf("The updateRun is stuck waiting for cluster %s in stage %s to finish updating, please check crp status for potential errors", cluster, stage)
	if why != "" {
		message = fmt.Sprintf("Cluster %s in stage %s has not finished updating%s.%s (%s)", cluster, stage, strings.TrimRight(why, ". "),
			r.skipHint(stage, cluster), message)
	}
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck, message)
}

// skipHint returns how a run goes on without a cluster of a stage. The deletion stage skips none.
func (r Recorder) skipHint(stage, cluster string) string {
	if stage == placementv1beta1.DeletionStageName {
		return ""
	}
	of := r.Run.GetName()
	if namespace := r.Run.GetNamespace(); namespace != "" {
		of = "-n " + namespace + " " + of
	}
	return fmt.Sprintf(" kubectl fleet skip %s %s goes on without it.", of, cluster)
}

// Stopping records that the run waits for clusters in flight before it stops.
func (r Recorder) Stopping(stage *placementv1beta1.StageUpdatingStatus) {
	if rules.IsRunOver(r.Run) {
		return
	}
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionUnknown,
		placementv1beta1.ReasonUpdateRunStopping, "The update run is stopping, waiting for the clusters being updated to finish")
	if stage.StartTime == nil || StageOver(stage) || r.afterTasksBegan(stage) != nil {
		return
	}
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionUnknown,
		placementv1beta1.ReasonStageUpdatingStopping, "The stage is stopping, waiting for the clusters being updated to finish")
}

// Stopped records that the run has stopped. The timed wait of a stage goes on, and that of a stage whose last cluster was
// updated while the run was stopping begins: what its clusters run does not change while the run is stopped.
func (r Recorder) Stopped() {
	r.released()
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonUpdateRunStopped, "The update run has been stopped"+pauseText(r.Run)+OutOfServiceText(r.Run))
	for i := range r.Status().StagesStatus {
		stage := r.Stage(i)
		if stage.StartTime != nil && len(stage.Clusters) > 0 && StageUpdated(stage) && !OverBudget(r.Run, i) {
			r.WaitingAfter(stage)
		}
		r.stopStage(stage)
	}
	if stage := r.DeletionStage(); stage != nil {
		r.stopStage(stage)
	}
}

// isStopped reports whether a stage was recorded to have stopped.
func isStopped(stage *placementv1beta1.StageUpdatingStatus) bool {
	c := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	return c != nil && c.Reason == placementv1beta1.ReasonStageUpdatingStopped
}

// stopStage records that a stage has stopped. One that waits for its tasks keeps the time since when: the condition is False
// then, too, and setting it again leaves the time of its transition.
func (r Recorder) stopStage(stage *placementv1beta1.StageUpdatingStatus) {
	begun := stage.StartTime != nil || meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing) != nil
	if !begun || StageOver(stage) {
		return
	}
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingStopped,
		"All the updating clusters have finished updating, the stage is now stopped, waiting to be resumed")
}

// Succeeded ends the run well.
func (r Recorder) Succeeded() {
	r.released()
	r.Progressing()
	if reason := r.words().RunSucceeded; reason != "" {
		r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, reason, "All stages are completed")
	}
	r.RunCondition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunSucceeded, "All stages are completed successfully"+ExceptionsText(r.Status().StagesStatus...))
}

// Failed ends the run, and the stage it is in, because of message. The sentence behind it in Progressing is KubeFleet's.
func (r Recorder) Failed(message string) {
	if rules.IsRunOver(r.Run) {
		return
	}
	for i := range r.Status().StagesStatus {
		r.failStage(r.Stage(i))
	}
	if stage := r.DeletionStage(); stage != nil {
		r.failStage(stage)
	}
	r.released()
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonUpdateRunFailed, message+". The stages are aborted due to a non-recoverable error")
	r.RunCondition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunFailed, message)
}

func (r Recorder) failStage(stage *placementv1beta1.StageUpdatingStatus) {
	stagetask.RecordEnd(stage, r.Run.GetGeneration(), r.Now)
	if len(stage.Conditions) == 0 || StageOver(stage) {
		return
	}
	const message = "Stage update aborted due to a non-recoverable error"
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingFailed, message)
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingFailed, message)
}

// RollbackFailed fails a rollback if some of its clusters were not taken back, and says whether that is so.
func (r Recorder) RollbackFailed() bool {
	if r.Run.GetUpdateRunSpec().RollbackOf == "" {
		return false
	}
	var failed []string
	for i := range r.Status().StagesStatus {
		failed = append(failed, NamesIn(r.Stage(i), PhaseFailed)...)
	}
	if len(failed) == 0 {
		return false
	}
	r.Failed(fmt.Sprintf("%d clusters were taken back and are not available: %s", len(failed), ListNames(failed)))
	return true
}

// StageStarted records that a stage has begun to update clusters.
func (r Recorder) StageStarted(stage *placementv1beta1.StageUpdatingStatus) {
	// Only the start time tells the wait after a stage from the wait before it: this comes first.
	waits := r.afterTasksBegan(stage) != nil
	begins := stage.StartTime == nil
	r.ensureStartTime(stage)
	if StageOver(stage) || waits || IsStopping(r.Run) && !begins {
		return
	}
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue,
		placementv1beta1.ReasonStageUpdatingStarted, "Clusters in the stage started updating")
}

func (r Recorder) ensureStartTime(stage *placementv1beta1.StageUpdatingStatus) {
	if stage.StartTime == nil {
		now := metav1.NewTime(r.Now)
		stage.StartTime = &now
	}
}

// WaitingBefore records that a stage waits for the tasks before it: no brake keeps it, even if one did when it waited for them before.
func (r Recorder) WaitingBefore(stage *placementv1beta1.StageUpdatingStatus) {
	r.released()
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingWaiting, "Not all before-stage tasks are completed, waiting for approval")
}

// WaitingAfter records that all clusters of a stage are updated and the tasks after it have begun. A timed wait counts from
// the transition time. The API keeps whole seconds, so the time is rounded up: no wait is cut short.
func (r Recorder) WaitingAfter(stage *placementv1beta1.StageUpdatingStatus) {
	began := r.afterTasksBegan(stage)
	if StageOver(stage) || began != nil && !isStopped(stage) {
		return
	}
	message := "All clusters in the stage are updated, waiting for after-stage tasks to complete"
	if len(stage.AfterStageTaskStatus)+len(stage.DuringStageTaskStatus) == 0 {
		message = "All clusters in the stage are updated" // a stage without tasks has the same reason
	}
	r.ensureStartTime(stage) // every cluster may have been skipped before its turn
	if began == nil && meta.IsStatusConditionFalse(stage.Conditions, placementv1beta1.ConditionTypeProgressing) {
		// The wait before the stage, and a stopped stage, have the same condition status, but the wait counts from now.
		meta.RemoveStatusCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing)
	}
	at := r.Now
	if stagetask.CountsFromWait(stage.AfterStageTaskStatus) {
		at = CeilSecond(at)
	}
	r.setConditionAt(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingWaiting, message, at)
}

// afterTasksBegan is AfterTasksBegan of a stage of the run.
func (r Recorder) afterTasksBegan(stage *placementv1beta1.StageUpdatingStatus) *metav1.Condition {
	index := slices.IndexFunc(r.Status().StagesStatus, func(s placementv1beta1.StageUpdatingStatus) bool { return s.StageName == stage.StageName })
	if index < 0 {
		return AfterTasksBegan(stage, placementv1beta1.StageConfig{}) // the deletion stage
	}
	return AfterTasksBegan(stage, StageConfig(r.Run, index))
}

// CeilSecond rounds a time up to the whole second.
func CeilSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// StageSucceeded ends a stage well.
func (r Recorder) StageSucceeded(stage *placementv1beta1.StageUpdatingStatus) {
	if StageOver(stage) {
		return
	}
	r.ensureStartTime(stage)
	now := metav1.NewTime(r.Now)
	stage.EndTime = &now
	reason := placementv1beta1.ReasonStageUpdatingSucceeded
	message := "Stage update completed successfully" + ExceptionsText(*stage)
	if len(stage.Clusters) == 0 {
		reason = placementv1beta1.ReasonStageUpdatingSkippedNoClusters
		message = "Stage skipped because it has no clusters"
	}
	switch {
	case len(stage.Clusters) == 0 && r.words().StageSucceeded != "":
		r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, reason, message)
	case r.afterTasksBegan(stage) == nil || r.words().StageSucceeded != "":
		r.endProgress(stage)
	}
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, reason, message)
}

// endProgress records in the condition Progressing of a stage that it has ended well.
func (r Recorder) endProgress(stage *placementv1beta1.StageUpdatingStatus) {
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse,
		placementv1beta1.ReasonStageUpdatingSucceeded, "All clusters in the stage are updated and after-stage tasks are completed")
}

// words returns those of the run.
func (r Recorder) words() placementv1beta1.Words { return placementv1beta1.VocabularyOf(r.Run).Words() }

// DeletionSucceeded ends the deletion stage.
func (r Recorder) DeletionSucceeded() {
	stage := r.DeletionStage()
	skipped := NamesIn(stage, PhaseSkipped)
	r.ClustersSucceeded(stage, slices.DeleteFunc(ClusterNames(stage), func(name string) bool { return slices.Contains(skipped, name) }))
	r.StageStarted(stage)
	if r.words().StageSucceeded != "" {
		r.endProgress(stage)
	}
	if stage.EndTime == nil {
		now := metav1.NewTime(r.Now)
		stage.EndTime = &now
	}
	r.setCondition(&stage.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue,
		placementv1beta1.ReasonStageUpdatingSucceeded, "Stage update completed successfully")
}

// ClustersStarted records that the run begins to update clusters of a stage.
func (r Recorder) ClustersStarted(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	if len(clusters) == 0 {
		return
	}
	r.StageStarted(stage)
	forEachCluster(stage, clusters, r.startCluster)
}

func (r Recorder) startCluster(c *placementv1beta1.ClusterUpdatingStatus) {
	if findStarted(c) != nil || hasSucceeded(c) {
		return
	}
	forgetOutOfService(c)
	r.setClusterCondition(c, placementv1beta1.ConditionTypeStarted, placementv1beta1.ReasonClusterUpdatingStarted, "Cluster update started")
}

// restartCluster lets the deadline of a cluster count from now.
func (r Recorder) restartCluster(c *placementv1beta1.ClusterUpdatingStatus) {
	forgetNotWritten(c)
	meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
	r.setCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue,
		placementv1beta1.ReasonClusterUpdatingStarted, "Cluster update started again, as spec.clusterActions asks for")
}

// setClusterCondition sets a condition of a cluster to True; in a large run, as short as it can be.
func (r Recorder) setClusterCondition(c *placementv1beta1.ClusterUpdatingStatus, kind, reason, message string) {
	condition := metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: r.Run.GetGeneration(), LastTransitionTime: metav1.NewTime(r.Now),
	}
	if IsLarge(r.Run) {
		condition.Message = ""
		condition.ObservedGeneration = 0
	}
	meta.SetStatusCondition(&c.Conditions, condition)
}

// ClustersSucceeded records clusters that have reached the run's snapshot.
func (r Recorder) ClustersSucceeded(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	large := IsLarge(r.Run)
	if !IsStopping(r.Run) && isStopped(stage) && len(clusters) > 0 {
		r.StageStarted(stage) // a cluster that had failed has recovered: the stage does not wait since it was stopped
	}
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		r.startCluster(c)
		r.acceptCluster(c)
		forgetOutOfService(c)
		r.setClusterCondition(c, placementv1beta1.ConditionTypeSucceeded, placementv1beta1.ReasonClusterUpdatingSucceeded,
			"Cluster update completed successfully")
		if large {
			// When it was started and with which overrides is on its binding.
			meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
			c.ResourceOverrideSnapshots = nil
			c.ClusterResourceOverrideSnapshots = nil
			c.Base = ""
		}
	})
}

// LastClustersSucceeded records the last clusters of a stage, and ends the stage if it has nothing else to wait for.
func (r Recorder) LastClustersSucceeded(stage *placementv1beta1.StageUpdatingStatus, clusters []string) (over bool) {
	r.ClustersSucceeded(stage, clusters)
	over = !IsStopping(r.Run) && !StageOver(stage) && len(stage.AfterStageTaskStatus)+len(stage.DuringStageTaskStatus) == 0 &&
		StageUpdated(stage) && CountIn(stage, PhaseFailed) == 0 // a failed cluster may still recover
	if over {
		r.Progressing() // the run may have been stuck
		r.WaitingAfter(stage)
		r.StageSucceeded(stage)
	}
	return over
}

// ClustersSkipped records that the run goes on without clusters.
func (r Recorder) ClustersSkipped(stage *placementv1beta1.StageUpdatingStatus, clusters []string, why string) {
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) { r.skipCluster(c, why) })
}

func (r Recorder) skipCluster(c *placementv1beta1.ClusterUpdatingStatus, why string) {
	if hasSucceeded(c) {
		return
	}
	forgetNotWritten(c)
	r.setCondition(&c.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
		placementv1beta1.ReasonClusterUpdatingSkipped, why)
}

// LeftText is what the status says of a cluster that has left the placement.
const LeftText = "The cluster is no longer selected for the placement"

// ClustersLeft records that clusters are skipped because the placement no longer selects them. Of those among them that
// were about to start, the start was recorded beside the attempt to write to them, and is taken back.
func (r Recorder) ClustersLeft(stage *placementv1beta1.StageUpdatingStatus, clusters, starting []string) {
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		if slices.Contains(starting, c.ClusterName) && !hasSucceeded(c) {
			meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
		}
		r.skipCluster(c, LeftText)
	})
}

// ClustersFailed records clusters in flight that are not available in time; whys says why of each.
func (r Recorder) ClustersFailed(stage *placementv1beta1.StageUpdatingStatus, clusters []string, whys map[string]string) {
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		if ClusterPhase(c) == PhaseRunning {
			forgetNotWritten(c)
			r.setCondition(&c.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
				placementv1beta1.ReasonClusterUpdatingFailed, whys[c.ClusterName])
		}
	})
}

// ClustersNotWritten takes back that clusters were started: they could not be written to.
func (r Recorder) ClustersNotWritten(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	forEachCluster(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		if ClusterPhase(c) == PhaseRunning {
			forgetNotWritten(c)
			meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
		}
	})
}

// NotWritten returns the condition that says why a cluster's binding is not written; nil if nothing keeps the run from it.
func NotWritten(c *placementv1beta1.ClusterUpdatingStatus) *metav1.Condition {
	said := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeWritten)
	if said == nil || said.Status != metav1.ConditionFalse {
		return nil
	}
	return said
}

func forgetNotWritten(c *placementv1beta1.ClusterUpdatingStatus) {
	meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeWritten)
}

// CountRefused counts the clusters of a stage that, as the status says, cannot be written to.
func CountRefused(stage *placementv1beta1.StageUpdatingStatus) int {
	count := 0
	for i := range stage.Clusters {
		if NotWritten(&stage.Clusters[i]) != nil {
			count++
		}
	}
	return count
}

// ClusterWait is why a cluster in flight is not written to: Reason and Why are those of its condition, Text is what its start says.
type ClusterWait struct{ Cluster, Reason, Why, Text string }

// ClustersWait records why clusters in flight are not written to.
func (r Recorder) ClustersWait(stage *placementv1beta1.StageUpdatingStatus, waits []ClusterWait) {
	for _, wait := range waits {
		if c := FindCluster(stage, wait.Cluster); c != nil && ClusterPhase(c) == PhaseRunning {
			findStarted(c).Message = wait.Text
			r.setCondition(&c.Conditions, placementv1beta1.ConditionTypeWritten, metav1.ConditionFalse, wait.Reason, wait.Why)
		}
	}
}

// ClustersAccepted records that clusters which could not be written to have been written to.
func (r Recorder) ClustersAccepted(stage *placementv1beta1.StageUpdatingStatus, clusters []string) {
	forEachCluster(stage, clusters, r.acceptCluster)
}

// acceptCluster lets the deadline of a cluster that could not be written to count from now: it had no chance before.
func (r Recorder) acceptCluster(c *placementv1beta1.ClusterUpdatingStatus) {
	if NotWritten(c) == nil {
		return
	}
	forgetNotWritten(c)
	meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
	r.startCluster(c)
}

// forEachCluster calls do for the clusters of a stage that have one of the names.
func forEachCluster(stage *placementv1beta1.StageUpdatingStatus, names []string, do func(*placementv1beta1.ClusterUpdatingStatus)) {
	if len(names) == 1 {
		if c := FindCluster(stage, names[0]); c != nil {
			do(c)
		}
		return
	}
	wanted := sets.New(names...)
	for i := range stage.Clusters {
		if wanted.Has(stage.Clusters[i].ClusterName) {
			do(&stage.Clusters[i])
		}
	}
}
