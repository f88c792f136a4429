package call

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// SignalLimit is how many signals one execution takes; the server refuses more
// after ten times as many. Youth is how old an execution must be at least before
// it continues as new, so that a burst of signals is not a burst of executions.
//
// HistoryLimit is of how many events: the server suggests to continue as new only once there are
// 4,096, and a step still has to end.
const (
	SignalLimit  = 1000
	HistoryLimit = 3800
	Youth        = time.Second
)

// Exhausted says that an execution that has received so many signals should
// continue as new before its history becomes too long.
func Exhausted(ctx workflow.Context, signals int) bool {
	info := workflow.GetInfo(ctx)
	if workflow.Now(ctx).Sub(info.WorkflowStartTime) < Youth {
		return false
	}
	return signals > SignalLimit || info.GetCurrentHistoryLength() > HistoryLimit || info.GetContinueAsNewSuggested()
}
