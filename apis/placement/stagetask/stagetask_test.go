package stagetask_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	isApproval  = placementv1beta1.StageTaskTypeApproval
	isTimedWait = placementv1beta1.StageTaskTypeTimedWait
	isPrePull   = placementv1beta1.StageTaskTypePrePull
	isTicket    = placementv1beta1.StageTaskType("Ticket")
)

func taskOf(name placementv1beta1.StageTaskType, wait time.Duration) placementv1beta1.StageTask {
	task := placementv1beta1.StageTask{Type: name}
	if wait > 0 {
		task.WaitTime = &metav1.Duration{Duration: wait}
	}
	return task
}

func TestTasksOfAStrategyAreRefusedInASentence(t *testing.T) {
	for sentence, test := range map[string]struct {
		before, after []placementv1beta1.StageTask
		want          string
	}{
		"a stage needs no tasks":             {},
		"one of each type is fine":           {after: []placementv1beta1.StageTask{taskOf(isApproval, 0), taskOf(isTimedWait, time.Minute)}},
		"an approval before a stage is fine": {before: []placementv1beta1.StageTask{taskOf(isApproval, 0)}},
		"two of a type": {
			after: []placementv1beta1.StageTask{taskOf(isApproval, 0), taskOf(isApproval, 0)},
			want:  "afterStageTasks of stage `canary` cannot have two tasks of the same type: Approval",
		},
		"two of a type before a stage": {
			before: []placementv1beta1.StageTask{taskOf(isApproval, 0), taskOf(isApproval, 0)},
			want:   "beforeStageTasks of stage `canary` cannot have two tasks of the same type: Approval",
		},
		"a wait that has no time": {
			after: []placementv1beta1.StageTask{taskOf(isApproval, 0), taskOf(isTimedWait, 0)},
			want:  "task 1 of stage `canary`: a TimedWait needs a waitTime above 0",
		},
		"an approval that takes time": {
			after: []placementv1beta1.StageTask{taskOf(isApproval, time.Minute)},
			want:  "task 0 of stage `canary`: an Approval has no waitTime",
		},
		"a wait before a stage": {
			before: []placementv1beta1.StageTask{taskOf(isTimedWait, time.Minute)},
			want:   "task 0 before stage `canary`: a TimedWait is possible after a stage only",
		},
		"a pull of images is fine": {before: []placementv1beta1.StageTask{taskOf(isPrePull, 0)}},
		"a pull of images after a stage": {
			after: []placementv1beta1.StageTask{taskOf(isPrePull, 0)},
			want:  "task 0 of stage `canary`: a PrePull is for what has not started yet: it is a task before a stage",
		},
		"a pull of images that may take a day": {
			before: []placementv1beta1.StageTask{taskOf(isPrePull, 24*time.Hour)},
			want:   "task 0 before stage `canary`: waitTime of a PrePull must be 10s to 2h",
		},
		"a type that this version does not know": {
			after: []placementv1beta1.StageTask{taskOf(isTicket, 0)},
			want:  "task 0 of stage `canary`: there is no type Ticket; the types are Analysis, Approval, PrePull, Rehearsal, TimedWait",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := placementv1beta1.StageConfig{Name: "canary", BeforeStageTasks: test.before, AfterStageTasks: test.after}
			assert.Equal(t, test.want, stagetask.Validate(config))
		})
	}
}

func TestATaskIsDescribedFromItsStatus(t *testing.T) {
	at := metav1.NewTime(noon.Add(10 * time.Second))
	isTrue := func(name, message string) []metav1.Condition {
		return []metav1.Condition{{Type: name, Status: metav1.ConditionTrue, LastTransitionTime: at, Message: message}}
	}
	approval := stagetask.State{Type: isApproval, Title: "approval", Subject: "web-canary", RunPhase: "WaitingApproval", Approvable: true}
	soak := stagetask.State{Type: isTimedWait, Title: "soak", RunPhase: "Soaking", Timed: true, Duration: time.Minute}
	for sentence, test := range map[string]struct {
		task          placementv1beta1.StageTask
		conditions    []metav1.Condition
		waitsSince    time.Time
		want          func() stagetask.State
		waiting, done bool
	}{
		"an approval ahead": {task: taskOf(isApproval, 0), want: func() stagetask.State { return approval }},
		"an approval that is waited for": {
			task: taskOf(isApproval, 0), conditions: isTrue("ApprovalRequestCreated", ""), waitsSince: noon, waiting: true,
			want: func() stagetask.State {
				s := approval
				s.WaitsSince = noon
				s.Begun = at.Time
				return s
			},
		},
		"an approval that was given": {
			task: taskOf(isApproval, 0), conditions: isTrue("ApprovalRequestApproved", "by ada"), waitsSince: noon, done: true,
			want: func() stagetask.State {
				s := approval
				s.WaitsSince = noon
				s.DoneAt = at.Time
				s.Message = "by ada"
				return s
			},
		},
		"a soak ahead": {task: taskOf(isTimedWait, time.Minute), want: func() stagetask.State { return soak }},
		"a soak that goes on": {
			task: taskOf(isTimedWait, time.Minute), waitsSince: noon, waiting: true,
			want: func() stagetask.State {
				s := soak
				s.WaitsSince = noon
				s.Begun = noon
				s.Due = noon.Add(time.Minute)
				return s
			},
		},
		"a soak that is over, also when its stage is": {
			task: taskOf(isTimedWait, time.Minute), conditions: isTrue("WaitTimeElapsed", ""), done: true,
			want: func() stagetask.State { s := soak; s.DoneAt = at.Time; return s },
		},
		"a task of a type that this version does not know is never done": {
			task: taskOf(isTicket, 0), conditions: isTrue("ApprovalRequestApproved", ""), waitsSince: noon, waiting: true,
			want: func() stagetask.State { return stagetask.State{Type: isTicket, Title: "Ticket", WaitsSince: noon} },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			config := placementv1beta1.StageConfig{Name: "canary", AfterStageTasks: []placementv1beta1.StageTask{test.task}}
			stage := &placementv1beta1.StageUpdatingStatus{
				StageName: "canary", AfterStageTaskStatus: stagetask.Freeze(stagetask.Names{Run: "web"}, "canary", stagetask.After, config.AfterStageTasks),
			}
			stage.AfterStageTaskStatus[0].Conditions = test.conditions
			tasks := stagetask.List(stage, &config, stagetask.After, test.waitsSince)
			require.Len(t, tasks, 1)
			state := tasks[0].Describe()
			assert.Equal(t, test.want(), state)
			assert.Equal(t, test.waiting, state.Waiting())
			assert.Equal(t, test.done, state.Done())
		})
	}
}

func TestARequestHasTheNameThatItsRunHasRecorded(t *testing.T) {
	tasks := []placementv1beta1.StageTask{taskOf(isTimedWait, time.Minute), taskOf(isApproval, 0)}
	for want, line := range map[string]struct {
		vocabulary placementv1beta1.Vocabulary
		side       stagetask.Side
	}{
		"web-canary":        {placementv1beta1.VocabularyDocumentation, stagetask.After},
		"web-after-canary":  {placementv1beta1.VocabularyKubeFleet, stagetask.After},
		"web-before-canary": {placementv1beta1.VocabularyKubeFleet, stagetask.Before},
	} {
		run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		run.Status.Vocabulary = line.vocabulary
		assert.Equal(t, want, stagetask.ApprovalRequestName(run, "canary", line.side), "by the rule, before the run has begun")

		stage := placementv1beta1.StageUpdatingStatus{StageName: "canary", BeforeStageTaskStatus: stagetask.Freeze(stagetask.NamesOf(run), "canary", stagetask.Before, tasks)}
		stage.AfterStageTaskStatus = stagetask.Freeze(stagetask.NamesOf(run), "canary", stagetask.After, tasks)
		run.Status = placementv1beta1.UpdateRunStatus{StagesStatus: []placementv1beta1.StageUpdatingStatus{{StageName: "staging"}, stage}}
		assert.Equal(t, want, stagetask.ApprovalRequestName(run, "canary", line.side), "as the run has recorded it, whatever the words are now")
	}
}

func TestATimedWaitIsOverAtTheVeryInstant(t *testing.T) {
	task := stagetask.Task{
		Side: stagetask.After, Config: taskOf(isTimedWait, time.Minute), Status: placementv1beta1.StageTaskStatus{Type: isTimedWait}, WaitsSince: noon,
	}
	for sentence, test := range map[string]struct {
		now  time.Time
		done bool
	}{
		"just before": {now: noon.Add(time.Minute - 1)},
		"at it":       {now: noon.Add(time.Minute), done: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			task := task
			outcome, err := stagetask.Perform(t.Context(), stagetask.Check{Task: task, Now: test.now})
			require.NoError(t, err)
			stage := &placementv1beta1.StageUpdatingStatus{}
			assert.Equal(t, test.done, task.DescribeAfter(outcome, test.now).Done())
			outcome.RecordIn(stage, task, 3, test.now)
			task.Status = stage.AfterStageTaskStatus[0]
			assert.Equal(t, test.done, task.Describe().Done())
			if test.done {
				assert.Equal(t, int64(3), task.Status.Conditions[0].ObservedGeneration)
			}
		})
	}
}

func TestATaskOfAnUnknownTypeEndsTheRun(t *testing.T) {
	outcome, err := stagetask.Perform(t.Context(), stagetask.Check{
		Task:  stagetask.Task{Side: stagetask.After, Status: placementv1beta1.StageTaskStatus{Type: isTicket}},
		Stage: &placementv1beta1.StageUpdatingStatus{StageName: "canary"},
	})
	require.NoError(t, err)
	assert.Equal(t, "a task of stage `canary`: there is no type Ticket; the types are Analysis, Approval, PrePull, Rehearsal, TimedWait", outcome.Refused)
}

func TestOnlyTimedTasksCountFromWhenTheStageWaits(t *testing.T) {
	assert.True(t, stagetask.CountsFromWait([]placementv1beta1.StageTaskStatus{{Type: isApproval}, {Type: isTimedWait}}))
	assert.False(t, stagetask.CountsFromWait([]placementv1beta1.StageTaskStatus{{Type: isApproval}, {Type: isTicket}}))
}

func TestAnAnalysisThatHasNotPassedHasFailed(t *testing.T) {
	for reason, want := range map[string]bool{placementv1beta1.ReasonStageTaskAnalysisFailed: true, placementv1beta1.ReasonStageTaskAnalysisStopped: false} {
		stage := &placementv1beta1.StageUpdatingStatus{AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{
			Type: placementv1beta1.StageTaskTypeAnalysis,
			Conditions: []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeAnalysisSucceeded, Status: metav1.ConditionFalse, Reason: reason, Message: "errors failed", LastTransitionTime: metav1.NewTime(noon),
			}},
		}}}
		config := &placementv1beta1.StageConfig{AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeAnalysis}}}
		tasks := stagetask.List(stage, config, stagetask.After, noon)
		require.Len(t, tasks, 1)
		assert.Equal(t, want, tasks[0].Describe().Failed, reason)
		assert.False(t, tasks[0].Describe().Done(), reason)
	}
}
