package stagedupdate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// headlampRule is one by which KubeFleet's plug-in for Headlamp, version 0.2.2, tells what a run or a stage does: by its last condition.
type headlampRule struct {
	kind   string
	status metav1.ConditionStatus
	reason string
	shows  string
}

// headlampRuns are its rules for runs, in its order. A run to which none applies is shown by its condition Initialized.
var headlampRuns = []headlampRule{
	{"Succeeded", metav1.ConditionTrue, "UpdateRunSucceeded", "Completed"},
	{"Progressing", metav1.ConditionFalse, "UpdateRunWaiting", "Waiting"},
	{"Progressing", metav1.ConditionFalse, "UpdateRunStopped", "User stopped"},
	{"Progressing", metav1.ConditionFalse, "UpdateRunStuck", "Blocked"},
}

// showRun is what the plug-in shows as the status of a run.
func showRun(conditions []metav1.Condition) string {
	for _, rule := range headlampRuns {
		if last := lastOf(conditions); last.Type == rule.kind && last.Status == rule.status && last.Reason == rule.reason {
			return rule.shows
		}
	}
	switch initialized := meta.FindStatusCondition(conditions, "Initialized"); {
	case initialized == nil || initialized.Status == metav1.ConditionUnknown:
		return "what spec.state says"
	case initialized.Status == metav1.ConditionTrue:
		return "Initialized"
	}
	return "Not Initialized"
}

// showStage is what the plug-in shows as the status of a stage, and for what it waits.
func showStage(stage placementv1beta1.StageUpdatingStatus) string {
	last := lastOf(stage.Conditions)
	succeeded := meta.FindStatusCondition(stage.Conditions, "Succeeded")
	switch {
	case succeeded != nil && succeeded.Status == metav1.ConditionTrue && succeeded.Reason == "StageUpdatingSucceeded":
		return "Completed"
	case last.Reason == "StageUpdatingStopped":
		return "Stopped"
	case last.Reason == "StageUpdatingWaiting" && last.Status == metav1.ConditionFalse:
		return strings.TrimSpace("Waiting " + waitsFor(stage.BeforeStageTaskStatus, stage.AfterStageTaskStatus))
	case meta.FindStatusCondition(stage.Conditions, "Progressing") != nil:
		return "progressing"
	}
	return "pending"
}

// waitsFor is the first task that the plug-in takes for what a stage waits for.
func waitsFor(lists ...[]placementv1beta1.StageTaskStatus) string {
	for _, tasks := range lists {
		for _, task := range tasks {
			switch task.Type {
			case placementv1beta1.StageTaskTypeApproval:
				if meta.IsStatusConditionTrue(task.Conditions, "ApprovalRequestCreated") {
					return "for " + task.ApprovalRequestName
				}
			case placementv1beta1.StageTaskTypeTimedWait:
				if !meta.IsStatusConditionTrue(task.Conditions, "WaitTimeElapsed") {
					return "for a time"
				}
			}
		}
	}
	return ""
}

// stopped has a user stop the run while none of its clusters is under way.
func (d *driver) stopped() {
	d.t.Helper()
	run := d.hub.run(d.run)
	run.Spec.State = placementv1beta1.StateStop
	require.NoError(d.t, d.WithWatch.Update(d.t.Context(), run))
	must(d.hub, d.acts.PauseRun, refOf(d.run))
}

func lastOf(conditions []metav1.Condition) metav1.Condition {
	if len(conditions) == 0 {
		return metav1.Condition{}
	}
	return conditions[len(conditions)-1]
}

// The guide on moving has these rows.
func TestWhatHeadlampsPlugInShowsOfARun(t *testing.T) {
	type shown struct{ run, stage string }
	rows := []struct {
		state            string
		tasks            []placementv1beta1.StageTask
		reach            func(d *driver)
		seeds, kubefleet shown
	}{
		{"created", nil, nil, shown{"what spec.state says", ""}, shown{"what spec.state says", ""}},
		{"updates clusters", nil, func(d *driver) {
			d.stuck["member1"] = true
			d.halfway("staging", 0, names("member1"), nil)
		}, shown{"Initialized", "progressing"}, shown{"Initialized", "progressing"}},
		{"waits for an approval after a stage", []placementv1beta1.StageTask{approvalTask}, func(d *driver) {
			d.stage("staging", 0)
			d.gates("staging", 0)
		}, shown{"Initialized", "Waiting for example-run-staging"}, shown{"Waiting", "Waiting for example-run-after-staging"}},
		{"waits for a time", []placementv1beta1.StageTask{minuteWait}, func(d *driver) {
			d.stage("staging", 0)
			d.gates("staging", 0)
		}, shown{"Initialized", "Waiting for a time"}, shown{"Waiting", "Waiting for a time"}},
		{"moves on after a wait", []placementv1beta1.StageTask{minuteWait}, func(d *driver) {
			d.soaked("staging", 0)
		}, shown{"Initialized", "Completed"}, shown{"Initialized", "Completed"}},
		{"stuck", nil, func(d *driver) {
			d.stuck["member1"] = true
			delta := background(d.hub, func() wf.StageDelta {
				return must(d.hub, d.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(d.run, "staging", 0), Start: names("member1")})
			})
			d.untilItWaits()
			d.clock.Step(time.Hour)
			<-delta
		}, shown{"Blocked", "progressing"}, shown{"Blocked", "progressing"}},
		{"stopped", nil, func(d *driver) {
			d.stopped()
		}, shown{"User stopped", "pending"}, shown{"User stopped", "pending"}},
		{"stopped while it waits", []placementv1beta1.StageTask{approvalTask}, func(d *driver) {
			d.stage("staging", 0)
			d.gates("staging", 0)
			d.stopped()
		}, shown{"User stopped", "Stopped"}, shown{"User stopped", "Stopped"}},
		{"succeeded", nil, func(d *driver) {
			d.stage("staging", 0)
			d.gates("staging", 0)
			must(d.hub, d.acts.AdvanceDeletion, refOf(d.run))
		}, shown{"Completed", "Completed"}, shown{"Completed", "Completed"}},
	}
	for _, row := range rows {
		for vocabulary, want := range map[placementv1beta1.Vocabulary]shown{
			placementv1beta1.VocabularyDocumentation: row.seeds, placementv1beta1.VocabularyKubeFleet: row.kubefleet,
		} {
			t.Run(row.state+" in the words of "+string(vocabulary), func(t *testing.T) {
				h := printedHub(t, strategyOf(ofEnvironment("staging", "", row.tasks...)), runObject("example-run", "0"), "staging")
				h.acts.Vocabulary = vocabulary
				if row.reach != nil {
					row.reach(begun(t, h, "example-run"))
				}
				status := h.run("example-run").Status
				got := shown{run: showRun(status.Conditions)}
				if len(status.StagesStatus) > 0 {
					got.stage = showStage(status.StagesStatus[0])
				}
				assert.Equal(t, want, got, "%v", status)
			})
		}
	}
}
