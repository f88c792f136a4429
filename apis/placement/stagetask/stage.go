package stagetask

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Validate returns what is wrong with the tasks of a stage of a strategy; empty if nothing is.
func Validate(stage placementv1beta1.StageConfig) string {
	if problem := validateSide(After, "afterStageTasks", "of", stage.Name, stage.AfterStageTasks); problem != "" {
		return problem
	}
	if problem := validateSide(During, "duringStageTasks", "during", stage.Name, stage.DuringStageTasks); problem != "" {
		return problem
	}
	return validateSide(Before, "beforeStageTasks", "before", stage.Name, stage.BeforeStageTasks)
}

func validateSide(side Side, field, where, stage string, tasks []placementv1beta1.StageTask) string {
	seen := map[placementv1beta1.StageTaskType]bool{}
	for _, task := range tasks {
		if seen[task.Type] {
			return fmt.Sprintf("%s of stage `%s` cannot have two tasks of the same type: %s", field, stage, task.Type)
		}
		seen[task.Type] = true
	}
	for i, task := range tasks {
		problem := typeOf(task.Type).Validate(side, task)
		for _, after := range task.StartsAfter {
			if !seen[after] || after == task.Type {
				problem = cmp.Or(problem, fmt.Sprintf("it starts after a task of type %s, and there is no other one of that type", after))
			}
		}
		if problem != "" {
			return fmt.Sprintf("task %d %s stage `%s`: %s", i, where, stage, problem)
		}
	}
	return ""
}

// Freeze returns the statuses that the tasks on one side of a stage begin with.
func Freeze(names Names, stage string, side Side, tasks []placementv1beta1.StageTask) []placementv1beta1.StageTaskStatus {
	var statuses []placementv1beta1.StageTaskStatus
	for _, task := range tasks {
		statuses = append(statuses, typeOf(task.Type).Freeze(names, stage, side))
	}
	return statuses
}

// List returns the tasks on one side of a stage. Config is the stage in the strategy that the run has
// frozen; WaitsSince is when the stage began to wait for them, zero while it does not.
func List(stage *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig, side Side, waitsSince time.Time) []Task {
	statuses := *statusesOf(stage, side)
	tasks := make([]Task, len(statuses))
	for i, status := range statuses {
		tasks[i] = Task{Side: side, Config: findConfig(config, side, status.Type), Status: status, WaitsSince: waitsSince}
	}
	done := map[placementv1beta1.StageTaskType]bool{}
	for _, task := range tasks {
		done[task.Status.Type] = task.Describe().Done()
	}
	for i := range tasks {
		if !tasks[i].Starts(done) {
			tasks[i].WaitsSince = time.Time{}
		}
	}
	return tasks
}

// Starts reports whether a task need not wait for others, given the types of those that are done.
func (t Task) Starts(done map[placementv1beta1.StageTaskType]bool) bool {
	return !slices.ContainsFunc(t.Config.StartsAfter, func(other placementv1beta1.StageTaskType) bool { return !done[other] })
}

// Sides returns the sides of a stage, in the order in which a run comes to them.
func Sides() []Side { return []Side{Before, During, After} }

// Statuses iterates over the statuses of all tasks of a stage, in the order in which a run comes to them. What is done to one of them is
// done to the stage.
func Statuses(stage *placementv1beta1.StageUpdatingStatus) iter.Seq[*placementv1beta1.StageTaskStatus] {
	return func(yield func(*placementv1beta1.StageTaskStatus) bool) {
		for _, side := range Sides() {
			statuses := *statusesOf(stage, side)
			for i := range statuses {
				if !yield(&statuses[i]) {
					return
				}
			}
		}
	}
}

func statusesOf(stage *placementv1beta1.StageUpdatingStatus, side Side) *[]placementv1beta1.StageTaskStatus {
	switch side {
	case Before:
		return &stage.BeforeStageTaskStatus
	case During:
		return &stage.DuringStageTaskStatus
	}
	return &stage.AfterStageTaskStatus
}

func findConfig(stage *placementv1beta1.StageConfig, side Side, name placementv1beta1.StageTaskType) placementv1beta1.StageTask {
	if stage == nil {
		return placementv1beta1.StageTask{Type: name}
	}
	tasks := stage.AfterStageTasks
	switch side {
	case Before:
		tasks = stage.BeforeStageTasks
	case During:
		tasks = stage.DuringStageTasks
	}
	if i := slices.IndexFunc(tasks, func(t placementv1beta1.StageTask) bool { return t.Type == name }); i >= 0 {
		return tasks[i]
	}
	return placementv1beta1.StageTask{Type: name}
}

// Describe reads how far a task is.
func (t Task) Describe() State {
	state := typeOf(t.Status.Type).Describe(t)
	state.Type = t.Status.Type
	state.WaitsSince = t.WaitsSince
	state.StartsAfter = t.Config.StartsAfter
	return state
}

// Perform looks at what a task waits for.
func Perform(ctx context.Context, check Check) (Outcome, error) {
	return typeOf(check.Status.Type).Check(ctx, check)
}

// RecordIn sets the conditions that a check has found in the status of its task, which is added if it is
// missing; generation is that of the run.
func (o Outcome) RecordIn(stage *placementv1beta1.StageUpdatingStatus, task Task, generation int64, now time.Time) {
	statuses := statusesOf(stage, task.Side)
	i := slices.IndexFunc(*statuses, func(s placementv1beta1.StageTaskStatus) bool { return s.Type == task.Status.Type })
	if i < 0 {
		i = len(*statuses)
		*statuses = append(*statuses, placementv1beta1.StageTaskStatus{Type: task.Status.Type})
	}
	o.recordInStatus(&(*statuses)[i], generation, now)
}

func (o Outcome) recordInStatus(status *placementv1beta1.StageTaskStatus, generation int64, now time.Time) {
	for _, c := range o.Conditions {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if !o.Expires.IsZero() {
		status.ExpirationTime = new(metav1.NewTime(o.Expires))
	}
	if o.Rehearsal != nil {
		status.Rehearsal = o.Rehearsal.DeepCopy()
	}
}

// after returns the task as it is once the outcome of a check is recorded.
func (t Task) after(o Outcome, now time.Time) Task {
	t.Status = *t.Status.DeepCopy()
	o.recordInStatus(&t.Status, 0, now)
	return t
}

// DescribeAfter reads how far a task is once the outcome of a check is recorded.
func (t Task) DescribeAfter(o Outcome, now time.Time) State { return t.after(o, now).Describe() }

// PerformStart looks at a task that is done with an outcome, once nothing else keeps its stage from starting, and returns the outcome
// that takes the place of that one: the same, if the task holds still.
func PerformStart(ctx context.Context, check Check, done Outcome) (Outcome, error) {
	expiring, is := typeOf(check.Status.Type).(Expiring)
	if !is {
		return done, nil
	}
	check.Task = check.after(done, check.Now)
	outcome, err := expiring.CheckStart(ctx, check)
	if err != nil || len(outcome.Conditions) == 0 && outcome.Refused == "" {
		return done, err
	}
	return outcome, nil
}

// IsExpired reports whether a task was done and does not hold any more: its stage, if nothing of that has started, must not.
func (t Task) IsExpired(now time.Time) bool {
	expiring, is := typeOf(t.Status.Type).(Expiring)
	return is && t.Describe().Done() && now.After(expiring.HoldsUntil(t))
}

// CountsFromWait reports whether a task of one of the statuses counts from when the stage began to wait. The API
// keeps whole seconds, so that instant is then rounded up: what counts from it is never cut short.
func CountsFromWait(statuses []placementv1beta1.StageTaskStatus) bool {
	return slices.ContainsFunc(statuses, func(s placementv1beta1.StageTaskStatus) bool {
		return Task{Status: s}.Describe().Timed
	})
}

// readDone reads when a task was done from the condition that says so.
func (s *State) readDone(status placementv1beta1.StageTaskStatus, name string) {
	if c := meta.FindStatusCondition(status.Conditions, name); c != nil && c.Status == metav1.ConditionTrue {
		s.DoneAt = c.LastTransitionTime.Time
		s.Message = c.Message
	}
}
