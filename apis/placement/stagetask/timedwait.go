package stagetask

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// timedWait ends after an amount of time, counted from when its stage began to wait.
type timedWait struct{}

// Validate implements Type.
func (timedWait) Validate(side Side, config placementv1beta1.StageTask) string {
	if side == Before {
		return "a TimedWait is possible after a stage only"
	}
	if config.WaitTime == nil || config.WaitTime.Duration <= 0 {
		return "a TimedWait needs a waitTime above 0"
	}
	return ""
}

// Freeze implements Type.
func (timedWait) Freeze(Names, string, Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{Type: placementv1beta1.StageTaskTypeTimedWait}
}

// Describe implements Type.
func (timedWait) Describe(task Task) State {
	state := State{Title: "soak", RunPhase: "Soaking", Timed: true, Begun: task.WaitsSince}
	if task.Config.WaitTime != nil {
		state.Duration = task.Config.WaitTime.Duration
	}
	if !task.WaitsSince.IsZero() {
		state.Due = task.WaitsSince.Add(state.Duration)
	}
	state.readDone(task.Status, placementv1beta1.ConditionTypeWaitTimeElapsed)
	return state
}

// Check implements Type.
func (w timedWait) Check(_ context.Context, check Check) (Outcome, error) {
	if due := w.Describe(check.Task).Due; check.Now.Before(due) {
		return Outcome{CheckAgain: due}, nil
	}
	return Outcome{Conditions: []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeWaitTimeElapsed, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonAfterStageTaskWaitTimeElapsed, Message: "Wait time elapsed",
	}}}, nil
}
