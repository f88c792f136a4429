package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)

func yes(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}
}

func no(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon)}
}

// initializedRun is the how-to's run once it is planned: member-2, then member-3 and member-1.
func initializedRun() *placementv1beta1.ClusterStagedUpdateRun {
	run := updateRun("example-run", "1")
	run.Status = placementv1beta1.UpdateRunStatus{
		ResourceSnapshotIndexUsed: "1",
		UpdateStrategySnapshot:    &strategy(5*time.Second, 3).Spec,
		StagesStatus: []placementv1beta1.StageUpdatingStatus{
			{StageName: stagingStage, Clusters: clusters("member-2"), AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{Type: placementv1beta1.StageTaskTypeTimedWait}}},
			{StageName: canaryStage, Clusters: clusters("member-3", "member-1"), AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{
				{Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: "example-run-canary"},
			}},
		},
		DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{StageName: placementv1beta1.DeletionStageName},
		Conditions:          []metav1.Condition{yes(placementv1beta1.ConditionTypeInitialized)},
	}
	return run
}

func clusters(names ...string) []placementv1beta1.ClusterUpdatingStatus {
	list := make([]placementv1beta1.ClusterUpdatingStatus, len(names))
	for i, name := range names {
		list[i].ClusterName = name
	}
	return list
}

func add(conditions *[]metav1.Condition, c metav1.Condition) { *conditions = append(*conditions, c) }

// waits makes a stage wait for its tasks since noon.
// waits makes a stage wait for the tasks after it, all of its clusters being updated.
func waits(stage *placementv1beta1.StageUpdatingStatus) {
	stage.StartTime = &metav1.Time{Time: noon}
	for i := range stage.Clusters {
		if c := &stage.Clusters[i]; updaterun.ClusterPhase(c) != updaterun.PhaseSucceeded {
			add(&c.Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
		}
	}
	add(&stage.Conditions, no(placementv1beta1.ConditionTypeProgressing, placementv1beta1.ReasonStageUpdatingWaiting, ""))
}

func text(lines []line) string {
	written := make([]string, len(lines))
	for i, l := range lines {
		written[i] = strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", l.stage, l.cluster, l.text)), " ")
	}
	return strings.Join(written, "\n")
}

func TestLiveViewTellsARunFromItsPlanToItsEnd(t *testing.T) {
	view := &liveView{}
	run := updateRun("example-run", "1")
	see := func(ms int, want string) {
		t.Helper()
		assert.Equal(t, want, text(view.see(run, noon.Add(time.Duration(ms)*time.Millisecond))))
	}
	see(0, "")
	run = initializedRun()
	staging := &run.Status.StagesStatus[0]
	canary := &run.Status.StagesStatus[1]
	see(10, "run planned: snapshot 1 to 3 clusters in 2 stages")

	add(&staging.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeStarted))
	see(20, "staging member-2 updating")
	see(30, "")

	add(&staging.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	waits(staging)
	see(110, "staging member-2 updated in 0.09 s\nstaging soaks for 5s, until 12:00:05")

	add(&staging.AfterStageTaskStatus[0].Conditions, yes(placementv1beta1.ConditionTypeWaitTimeElapsed))
	add(&staging.Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	see(5000, "staging soak is over\nstaging stage done")

	add(&canary.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeStarted))
	see(5010, "canary member-3 updating")
	add(&canary.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	add(&canary.Clusters[1].Conditions, yes(placementv1beta1.ConditionTypeStarted))
	see(5110, "canary member-3 updated in 0.10 s\ncanary member-1 updating")
	add(&canary.Clusters[1].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	waits(canary)
	add(&canary.AfterStageTaskStatus[0].Conditions, yes(placementv1beta1.ConditionTypeApprovalRequestCreated))
	see(5210, "canary member-1 updated in 0.10 s\ncanary waiting for approval of example-run-canary")

	add(&canary.AfterStageTaskStatus[0].Conditions, yes(placementv1beta1.ConditionTypeApprovalRequestApproved))
	add(&canary.Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	see(6000, "canary approved\ncanary stage done")
	add(&run.Status.DeletionStageStatus.Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	add(&run.Status.Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	see(6100, "run succeeded after 6.10 s")
}

func TestLiveViewTellsWhatWentWrong(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*placementv1beta1.ClusterStagedUpdateRun)
		want   string
	}{
		"a run that cannot be planned": {
			func(run *placementv1beta1.ClusterStagedUpdateRun) {
				run.Status = placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{
					no(placementv1beta1.ConditionTypeInitialized, "X", "no such strategy"),
				}}
			},
			"run cannot be planned: no such strategy",
		},
		"a cluster, its stage and the run that failed": {
			func(run *placementv1beta1.ClusterStagedUpdateRun) {
				stage := &run.Status.StagesStatus[0]
				add(&stage.Clusters[0].Conditions, no(placementv1beta1.ConditionTypeSucceeded, "X", "preempted"))
				add(&stage.Conditions, no(placementv1beta1.ConditionTypeSucceeded, "X", "aborted"))
				add(&run.Status.Conditions, no(placementv1beta1.ConditionTypeSucceeded, "X", "cannot continue"))
			},
			"staging member-2 failed: preempted\nstaging stage failed: aborted\nrun failed: cannot continue",
		},
		"a run that is stuck": {
			func(run *placementv1beta1.ClusterStagedUpdateRun) {
				add(&run.Status.Conditions, no(placementv1beta1.ConditionTypeProgressing, placementv1beta1.ReasonUpdateRunStuck, "stuck waiting for member-2"))
			},
			"run stuck waiting for member-2",
		},
		"an empty stage": {
			func(run *placementv1beta1.ClusterStagedUpdateRun) {
				skipped := yes(placementv1beta1.ConditionTypeSucceeded)
				skipped.Reason = placementv1beta1.ReasonStageUpdatingSkippedNoClusters
				add(&run.Status.StagesStatus[1].Conditions, skipped)
			},
			"canary skipped: it has no clusters",
		},
		"a cluster that is cleared": {
			func(run *placementv1beta1.ClusterStagedUpdateRun) {
				stage := run.Status.DeletionStageStatus
				stage.Clusters = clusters("member-9")
				add(&stage.Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeStarted))
			},
			"deletion member-9 updating",
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := &liveView{}
			run := initializedRun()
			view.see(run, noon)
			tc.change(run)
			assert.Equal(t, tc.want, text(view.see(run, noon)))
		})
	}
}

func TestLiveViewOfARunThatWasMissedMostly(t *testing.T) {
	view := &liveView{}
	run := initializedRun()
	add(&run.Status.StagesStatus[0].Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeStarted))
	add(&run.Status.StagesStatus[0].Clusters[0].Conditions, yes(placementv1beta1.ConditionTypeSucceeded))
	assert.Equal(t, "run planned: snapshot 1 to 3 clusters in 2 stages\nstaging member-2 updated", text(view.see(run, noon)),
		"no duration is made up")
}
