package demo

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// line is one line of the live view.
type line struct {
	stage, cluster, text string
	tone                 tone
}

// liveView turns the states of a run, one after the other, into lines about what has changed.
type liveView struct {
	last placementv1beta1.UpdateRunStatus
	// since has when a cluster was first seen updating; states are seen within milliseconds, while the times in a
	// status are whole seconds.
	since map[string]time.Time
	began time.Time
	lines []line
}

// shortestUpdate is what an update takes at least: of two states that arrive closer together, the first was late.
const shortestUpdate = 10 * time.Millisecond

// see returns what has changed since the last state. It is pure but for what it remembers.
func (v *liveView) see(run *placementv1beta1.ClusterStagedUpdateRun, now time.Time) []line {
	if v.since == nil {
		v.since, v.began = map[string]time.Time{}, now
	}
	v.lines = nil
	before, after := v.last, *run.Status.DeepCopy()
	v.initialized(before.Conditions, after)
	for i := range after.StagesStatus {
		v.stage(stageAt(before.StagesStatus, i), &after.StagesStatus[i], configAt(&after, i), now)
	}
	if stage := after.DeletionStageStatus; stage != nil && len(stage.Clusters) > 0 {
		previous := before.DeletionStageStatus
		if previous == nil {
			previous = &placementv1beta1.StageUpdatingStatus{}
		}
		shown := stage.DeepCopy()
		shown.StageName = "deletion"
		v.stage(previous, shown, nil, now)
	}
	v.progressing(before.Conditions, after.Conditions)
	v.ended(before.Conditions, after.Conditions, now)
	v.last = after
	return v.lines
}

func (v *liveView) add(stage, cluster string, t tone, format string, args ...any) {
	v.lines = append(v.lines, line{stage: stage, cluster: cluster, tone: t, text: fmt.Sprintf(format, args...)})
}

func (v *liveView) initialized(before []metav1.Condition, after placementv1beta1.UpdateRunStatus) {
	c := became(before, after.Conditions, placementv1beta1.ConditionTypeInitialized)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		clusters := 0
		for _, stage := range after.StagesStatus {
			clusters += len(stage.Clusters)
		}
		v.add("run", "", toneQuiet, "planned: snapshot %s to %d clusters in %d stages", after.ResourceSnapshotIndexUsed, clusters, len(after.StagesStatus))
	default:
		v.add("run", "", toneBad, "cannot be planned: %s", c.Message)
	}
}

func (v *liveView) stage(before, after *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig, now time.Time) {
	name := after.StageName
	v.tasks(before, after, config, stagetask.Before)
	for i := range after.Clusters {
		c := &after.Clusters[i]
		v.cluster(name, conditionsOf(before, c.ClusterName), c, now)
	}
	v.tasks(before, after, config, stagetask.After)
	c := became(before.Conditions, after.Conditions, placementv1beta1.ConditionTypeSucceeded)
	switch {
	case c == nil:
	case c.Reason == placementv1beta1.ReasonStageUpdatingSkippedNoClusters:
		v.add(name, "", toneQuiet, "skipped: it has no clusters")
	case c.Status == metav1.ConditionTrue:
		v.add(name, "", toneGood, "stage done")
	default:
		v.add(name, "", toneBad, "stage failed: %s", c.Message)
	}
}

func (v *liveView) cluster(stage string, before []metav1.Condition, after *placementv1beta1.ClusterUpdatingStatus, now time.Time) {
	key := stage + "/" + after.ClusterName
	done := became(before, after.Conditions, placementv1beta1.ConditionTypeSucceeded)
	if became(before, after.Conditions, placementv1beta1.ConditionTypeStarted) != nil && done == nil {
		v.since[key] = now
		v.add(stage, after.ClusterName, toneQuiet, "updating")
	}
	started, seen := v.since[key]
	switch {
	case done == nil:
	case done.Status != metav1.ConditionTrue:
		v.add(stage, after.ClusterName, toneBad, "failed: %s", done.Message)
	case seen && now.Sub(started) >= shortestUpdate:
		v.add(stage, after.ClusterName, toneGood, "updated in %s", seconds(now.Sub(started)))
	default:
		v.add(stage, after.ClusterName, toneGood, "updated")
	}
}

// tasks tells what has become of the tasks on one side of a stage.
func (v *liveView) tasks(before, after *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig, side stagetask.Side) {
	earlier := map[placementv1beta1.StageTaskType]stagetask.State{}
	for _, task := range stagetask.List(before, config, side, updaterun.WaitsSince(before, side)) {
		earlier[task.Status.Type] = task.Describe()
	}
	for _, task := range stagetask.List(after, config, side, updaterun.WaitsSince(after, side)) {
		v.task(after.StageName, earlier[task.Status.Type], task.Describe())
	}
}

func (v *liveView) task(stage string, before, after stagetask.State) {
	switch {
	case before.Begun.IsZero() && after.Timed && !after.Due.IsZero():
		v.add(stage, "", toneWait, "%ss for %s, until %s", after.Title, after.Duration, after.Due.Local().Format(time.TimeOnly))
	case before.Begun.IsZero() && !after.Begun.IsZero() && !after.Done():
		v.add(stage, "", toneWait, "waiting for %s of %s", after.Title, after.Subject)
	}
	switch {
	case before.Done() || !after.Done():
	case after.Approvable:
		v.add(stage, "", toneGood, "approved")
	default:
		v.add(stage, "", toneGood, "%s is over", after.Title)
	}
}

// progressing tells why a run does not move on.
func (v *liveView) progressing(before, after []metav1.Condition) {
	is := meta.FindStatusCondition(after, placementv1beta1.ConditionTypeProgressing)
	was := meta.FindStatusCondition(before, placementv1beta1.ConditionTypeProgressing)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	switch is.Reason {
	case placementv1beta1.ReasonUpdateRunStuck, placementv1beta1.ReasonUpdateRunStopping, placementv1beta1.ReasonUpdateRunStopped:
		v.add("run", "", toneWait, "%s", is.Message)
	}
}

func (v *liveView) ended(before, after []metav1.Condition, now time.Time) {
	c := became(before, after, placementv1beta1.ConditionTypeSucceeded)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		v.add("run", "", toneGood, "succeeded after %s", seconds(now.Sub(v.began)))
	default:
		v.add("run", "", toneBad, "failed: %s", c.Message)
	}
}

// became returns a condition that has another status than before, or is new.
func became(before, after []metav1.Condition, kind string) *metav1.Condition {
	is, was := meta.FindStatusCondition(after, kind), meta.FindStatusCondition(before, kind)
	if is == nil || was != nil && was.Status == is.Status {
		return nil
	}
	return is
}

// configAt is a stage of the strategy that the run has frozen; nil if there is none.
func configAt(status *placementv1beta1.UpdateRunStatus, stage int) *placementv1beta1.StageConfig {
	if status.StagedUpdateStrategySnapshot == nil || stage >= len(status.StagedUpdateStrategySnapshot.Stages) {
		return nil
	}
	return &status.StagedUpdateStrategySnapshot.Stages[stage]
}

func stageAt(stages []placementv1beta1.StageUpdatingStatus, i int) *placementv1beta1.StageUpdatingStatus {
	if i < len(stages) {
		return &stages[i]
	}
	return &placementv1beta1.StageUpdatingStatus{}
}

// conditionsOf are the conditions of a cluster of a stage; none if the stage does not have it.
func conditionsOf(stage *placementv1beta1.StageUpdatingStatus, cluster string) []metav1.Condition {
	if c := updaterun.FindCluster(stage, cluster); c != nil {
		return c.Conditions
	}
	return nil
}
