package stagedupdate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// phaseOfCluster is how far a cluster is, as the status of its run says.
func phaseOfCluster(c *placementv1beta1.ClusterUpdatingStatus) rollout.ClusterPhase {
	succeeded := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
	switch {
	case succeeded == nil && meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted) != nil:
		return rollout.ClusterUpdating
	case succeeded == nil:
		return rollout.ClusterWaiting
	case succeeded.Status == metav1.ConditionTrue:
		return rollout.ClusterDone
	case succeeded.Reason == placementv1beta1.ReasonClusterUpdatingSkipped:
		return rollout.ClusterSkipped
	}
	return rollout.ClusterFailed
}

func progressOf(stage *placementv1beta1.StageUpdatingStatus) rollout.Progress {
	progress := make(rollout.Progress, len(stage.Clusters))
	for i := range stage.Clusters {
		progress[i] = phaseOfCluster(&stage.Clusters[i])
	}
	return progress
}

// budget is the failure budget of a stage in numbers.
type budget struct {
	// there says that the stage has one.
	there  bool
	max    int
	action placementv1beta1.FailureBudgetAction
}

func budgetOf(run *placementv1beta1.ClusterStagedUpdateRun, index int) budget {
	config := configOf(run, index).FailureBudget
	if config == nil {
		return budget{}
	}
	b := budget{there: true, action: config.OnExceeded}
	if b.action == "" {
		b.action = placementv1beta1.FailureBudgetWait
	}
	if config.MaxFailures != nil && index < len(run.Status.StagesStatus) {
		// Admission has checked its form; what cannot be read allows nothing.
		b.max, _ = rollout.Failures(config.MaxFailures.String(), len(run.Status.StagesStatus[index].Clusters))
	}
	return b
}

// overBudget says that more clusters of a stage have failed than may: one that was paused for
// that reason is so until its clusters are skipped or tried again.
func overBudget(run *placementv1beta1.ClusterStagedUpdateRun, index int) bool {
	b := budgetOf(run, index)
	return b.there && progressOf(&run.Status.StagesStatus[index]).Count(rollout.ClusterFailed) > b.max
}

// whyPaused says of a run that stands still that, and of which stage, a failure budget is
// exceeded; nothing if none is.
func whyPaused(run *placementv1beta1.ClusterStagedUpdateRun) string {
	for i := range run.Status.StagesStatus {
		if overBudget(run, i) {
			return ": " + exceededText(run, i)
		}
	}
	return ""
}

// exceededText says which clusters of a stage failed, and how many may.
func exceededText(run *placementv1beta1.ClusterStagedUpdateRun, index int) string {
	stage := &run.Status.StagesStatus[index]
	var failed []string
	for _, i := range progressOf(stage).In(rollout.ClusterFailed) {
		failed = append(failed, stage.Clusters[i].ClusterName)
	}
	return fmt.Sprintf("the failure budget of stage `%s` is exceeded: %d clusters failed, at most %d may: %s",
		stage.StageName, len(failed), budgetOf(run, index).max, listed(failed))
}

// failures decides which of the clusters that are past their deadline are given up. Those beyond
// the budget are, too, once the run does something about them or stands still; while it waits,
// they stay in flight.
func failures(run *placementv1beta1.ClusterStagedUpdateRun, index int, overdue []string) (givenUp []string, exceeded bool) {
	b := budgetOf(run, index)
	if !b.there {
		return nil, false
	}
	failed := progressOf(&run.Status.StagesStatus[index]).Count(rollout.ClusterFailed)
	without, exceeded := rollout.GiveUp(failed, len(overdue), b.max)
	if b.action != placementv1beta1.FailureBudgetWait {
		without = len(overdue)
	}
	return overdue[:without], exceeded
}

// overdueOf are those of some clusters that are past the deadline of their stage.
func overdueOf(stage *placementv1beta1.StageUpdatingStatus, inFlight []string, deadline time.Duration, now time.Time) []string {
	var overdue []string
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		started := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted)
		if phaseOfCluster(c) == rollout.ClusterUpdating && slices.Contains(inFlight, c.ClusterName) &&
			!now.Before(started.LastTransitionTime.Add(deadline)) {
			overdue = append(overdue, c.ClusterName)
		}
	}
	return overdue
}

// asked are the actions of a run's spec that a stage has yet to carry out.
type asked struct {
	// skip are clusters to go on without, requeue those that wait for their turn again,
	// restart those in flight that are written to again, and noted those that have not had
	// their turn, so that there is nothing to try again.
	skip, requeue, restart, noted []string
}

func (a asked) nothing() bool {
	return len(a.skip)+len(a.requeue)+len(a.restart)+len(a.noted) == 0
}

// askedOf finds what a run's spec asks for in a stage; done are clusters that are done although
// the status does not say so yet. Of a stage that is over nothing can be asked any more.
func askedOf(run *placementv1beta1.ClusterStagedUpdateRun, index int, done []string) asked {
	var out asked
	stage := &run.Status.StagesStatus[index]
	if len(run.Spec.ClusterActions) == 0 || stageOver(stage) {
		return out
	}
	actions := make(map[string]placementv1beta1.ClusterAction, len(run.Spec.ClusterActions))
	for _, a := range run.Spec.ClusterActions {
		actions[a.Cluster] = a
	}
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		if action, ok := actions[c.ClusterName]; ok && !slices.Contains(done, c.ClusterName) && !noWayBack(run, c) {
			out.add(c, action)
		}
	}
	return out
}

// noWayBack says that a rollback has nothing to take a cluster back to: it stays skipped, whatever
// is asked for.
func noWayBack(run *placementv1beta1.ClusterStagedUpdateRun, c *placementv1beta1.ClusterUpdatingStatus) bool {
	return run.Spec.RollbackOf != "" && c.ResourceSnapshotIndex == ""
}

func (a *asked) add(c *placementv1beta1.ClusterUpdatingStatus, action placementv1beta1.ClusterAction) {
	phase := phaseOfCluster(c)
	switch {
	case phase == rollout.ClusterDone:
	case action.Action == placementv1beta1.ClusterActionSkip:
		if phase != rollout.ClusterSkipped {
			a.skip = append(a.skip, c.ClusterName)
		}
	case c.Attempt >= attemptOf(action):
	case phase == rollout.ClusterWaiting:
		a.noted = append(a.noted, c.ClusterName)
	case phase == rollout.ClusterUpdating:
		a.restart = append(a.restart, c.ClusterName)
	default:
		a.requeue = append(a.requeue, c.ClusterName)
	}
}

func attemptOf(action placementv1beta1.ClusterAction) int32 { return max(1, action.Attempt) }

// carryOut records what was asked for.
func (r recorder) carryOut(stage *placementv1beta1.StageUpdatingStatus, a asked) {
	for _, action := range r.run.Spec.ClusterActions {
		c := clusterIn(stage, action.Cluster)
		if c == nil {
			continue
		}
		switch name := action.Cluster; {
		case slices.Contains(a.skip, name):
			why := "Skipped, as spec.clusterActions asks for"
			if phaseOfCluster(c) != rollout.ClusterWaiting {
				why += "; it keeps what was written to it"
			}
			r.skipped(c, why)
			continue
		case slices.Contains(a.requeue, name):
			c.Conditions = nil
		case slices.Contains(a.restart, name):
			r.restarted(c)
		case !slices.Contains(a.noted, name):
			continue
		}
		c.Attempt = attemptOf(action)
	}
}

// restarted lets the deadline of a cluster count from now.
func (r recorder) restarted(c *placementv1beta1.ClusterUpdatingStatus) {
	meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeStarted)
	r.set(&c.Conditions, placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue,
		placementv1beta1.ReasonClusterUpdatingStarted, "Cluster update started again, as spec.clusterActions asks for")
}

// skipped records that the run goes on without a cluster.
func (r recorder) skipped(c *placementv1beta1.ClusterUpdatingStatus, why string) {
	if clusterDone(c) {
		return
	}
	r.set(&c.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
		placementv1beta1.ReasonClusterUpdatingSkipped, why)
}

// gaveUp records that clusters are not available in time.
func (r recorder) gaveUp(stage *placementv1beta1.StageUpdatingStatus, clusters []string, message func(cluster string) string) {
	each(stage, clusters, func(c *placementv1beta1.ClusterUpdatingStatus) {
		if phaseOfCluster(c) == rollout.ClusterUpdating {
			r.set(&c.Conditions, placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse,
				placementv1beta1.ReasonClusterUpdatingFailed, message(c.ClusterName))
		}
	})
}

// shownNames bounds the names in a message.
const shownNames = 10

// listed are names as a message shows them.
func listed(names []string) string {
	if len(names) <= shownNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), len(names)-shownNames)
}

// exceptions says without which clusters a run, or a stage, was done; nothing if with all.
func exceptions(stages ...placementv1beta1.StageUpdatingStatus) string {
	var failed, skipped []string
	for i := range stages {
		for j := range stages[i].Clusters {
			c := &stages[i].Clusters[j]
			switch phaseOfCluster(c) {
			case rollout.ClusterFailed:
				failed = append(failed, c.ClusterName)
			case rollout.ClusterSkipped:
				skipped = append(skipped, c.ClusterName)
			default:
			}
		}
	}
	text := ""
	if len(failed) > 0 {
		text += fmt.Sprintf(", %d failed within the failure budget (%s)", len(failed), listed(failed))
	}
	if len(skipped) > 0 {
		text += fmt.Sprintf(", %d skipped (%s)", len(skipped), listed(skipped))
	}
	return text
}

// without removes names from a list.
func without(list, names []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(names, name) })
}
