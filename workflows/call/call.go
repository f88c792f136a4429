// Package call is the table of timeouts and retries: every activity a workflow
// asks for goes through it.
package call

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Bounds of an activity. A heartbeat timeout is what frees the attempt of a worker that was killed; one that stops hands over at once.
//
// HeartbeatPause is how often an activity under way writes into Temporal's database. HeartbeatTimeout is more than that and Outage
// together, so that Temporal may be away for so long and no attempt is given up. A short step has a timeout and a pause of its own: most
// end before their first heartbeat, and one whose worker was killed keeps a gate waiting.
//
// HeartbeatEvery is how often an activity reports its progress; the newest report is sent after HeartbeatPause.
const (
	ShortTimeout          = 30 * time.Second
	LongTimeout           = 5 * time.Minute
	WaitTimeout           = 10 * time.Minute
	Outage                = 10 * time.Second
	HeartbeatPause        = 10 * time.Second
	HeartbeatTimeout      = 24 * time.Second
	ShortHeartbeatPause   = 6 * time.Second
	ShortHeartbeatTimeout = 10 * time.Second
	HeartbeatEvery        = 2 * time.Second
	// RetryAtMost is the longest pause between two attempts, unless the activity asks for more.
	RetryAtMost = 5 * time.Second
)

// retryForever never end: what cannot be done now is done later, and only errors that a person must correct are final.
func retryForever() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval:        200 * time.Millisecond,
		BackoffCoefficient:     2,
		MaximumInterval:        RetryAtMost,
		NonRetryableErrorTypes: []string{wf.ErrorUser},
	}
}

// Short runs an activity that reads and writes but never waits.
func Short[R any](ctx workflow.Context, name, summary string, request any) (R, error) {
	return runWithin[R](ctx, wf.TaskQueue, ShortTimeout, ShortHeartbeatTimeout, name, summary, request)
}

// Long runs an activity that never waits for clusters either, but may have ten thousand
// objects to read and to write, or some others before it in the worker.
func Long[R any](ctx workflow.Context, name, summary string, request any) (R, error) {
	return runWithin[R](ctx, wf.LongTaskQueue, LongTimeout, HeartbeatTimeout, name, summary, request)
}

func runWithin[R any](ctx workflow.Context, queue string, timeout, heartbeat time.Duration, name, summary string, request any) (R, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: timeout,
		HeartbeatTimeout:    heartbeat,
		RetryPolicy:         retryForever(),
		Summary:             BoundSummary(summary),
	})
	var result R
	err := workflow.ExecuteActivity(ctx, name, request).Get(ctx, &result)
	return result, err
}

// Wait starts an activity that waits for clusters; it may take until
// WaitTimeout and then says that nothing changed.
func Wait(ctx workflow.Context, name, summary string, request any) workflow.Future {
	return waitOn(ctx, wf.AdvanceTaskQueue, name, summary, request)
}

// Measure starts an activity that measures; it may take until WaitTimeout.
func Measure(ctx workflow.Context, name, summary string, request any) workflow.Future {
	return waitOn(ctx, wf.MeasureTaskQueue, name, summary, request)
}

func waitOn(ctx workflow.Context, queue, name, summary string, request any) workflow.Future {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: WaitTimeout,
		HeartbeatTimeout:    HeartbeatTimeout,
		RetryPolicy:         retryForever(),
		Summary:             BoundSummary(summary),
	})
	return workflow.ExecuteActivity(ctx, name, request)
}

// Pokes returns the channel of the pokes of a workflow.
func Pokes(ctx workflow.Context) workflow.ReceiveChannel {
	return workflow.GetSignalChannelWithOptions(ctx, wf.PokeSignal, workflow.SignalChannelOptions{
		Description: "Look at the object again: for the hub agent, and harmless by hand",
	})
}

// maxSummary is the server's limit for summaries, in bytes.
const maxSummary = 200

// BoundSummary cuts a summary to what the server takes.
func BoundSummary(s string) string {
	const more = "..."
	if len(s) <= maxSummary {
		return s
	}
	return strings.ToValidUTF8(s[:maxSummary-len(more)], "") + more
}

// SignalLimit is how many signals one execution takes; the server refuses more
// after ten times as many. Youth is how old an execution must be at least before
// it continues as new, so that a burst of signals is not a burst of executions.
//
// HistoryLimit is of how many events: the server suggests to continue as new only once there are
// 4,096, and a step still has to end.
//
// All three decide which commands a workflow gives: another value is behind workflow.GetVersion, or it wedges every execution that is
// between the two.
const (
	SignalLimit  = 1000
	HistoryLimit = 3800
	Youth        = time.Second
)

// Exhausted reports whether an execution that has received so many signals should
// continue as new before its history becomes too long.
func Exhausted(ctx workflow.Context, signals int) bool {
	info := workflow.GetInfo(ctx)
	if workflow.Now(ctx).Sub(info.WorkflowStartTime) < Youth {
		return false
	}
	return signals > SignalLimit || info.GetCurrentHistoryLength() > HistoryLimit || info.GetContinueAsNewSuggested()
}
