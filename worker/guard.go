package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// guard does two things for every activity. It sends heartbeats, so that the server notices within the heartbeat timeout that the
// process of the activity was killed. And it keeps the texts of errors and panics out of histories: an API server may quote a
// manifest in an error, and all who have access to a workflow could read it there.
type guard struct {
	interceptor.WorkerInterceptorBase
	failures Failures
	// client sends the heartbeats.
	client client.Client
}

// Failures says where failed attempts of activities are told.
type Failures struct {
	Log logr.Logger
	// Metrics are optional.
	Metrics *Metrics
	// Tell, if set, tells an object that an activity for it has failed again and again, and, as good news, that it has succeeded then.
	Tell func(object wf.Ref, good bool, message string)
}

// Attempts and delays of an activity that fails again and again: from the attempt manyAttempts on that is told, and told again after
// toldAgainAfter more. Its attempts become rarer with their number, up to one in maxAttemptDelay: an API server that is away for long would
// be asked by a thousand rollouts every five seconds otherwise.
const (
	manyAttempts    = 10
	toldAgainAfter  = 50
	maxAttemptDelay = 30 * time.Second
)

// tellFailure reports an attempt that failed, if there were many.
func (f *Failures) tellFailure(info activity.Info, args []any, cause string) {
	if info.Attempt < manyAttempts {
		return
	}
	f.Metrics.countFailingAgain(info.ActivityType.Name)
	if object, known := objectOf(args); known && f.Tell != nil && (info.Attempt-manyAttempts)%toldAgainAfter == 0 {
		f.Tell(object, false, fmt.Sprintf("Activity %s of workflow %s has failed %d times in a row and is tried again: %s",
			info.ActivityType.Name, info.WorkflowExecution.ID, info.Attempt, cause))
	}
}

// tellSuccess reports an attempt that succeeded, if its failures were reported.
func (f *Failures) tellSuccess(info activity.Info, args []any) {
	if info.Attempt <= manyAttempts {
		return
	}
	if object, known := objectOf(args); known && f.Tell != nil {
		f.Tell(object, true, fmt.Sprintf("Activity %s of workflow %s has succeeded with attempt %d",
			info.ActivityType.Name, info.WorkflowExecution.ID, info.Attempt))
	}
}

// nextDelay returns how long to wait before the attempt after one that failed: as long as the API server asks for, and the longer the more
// attempts there were. 0 leaves it to the retries of the workflow.
func nextDelay(err error, attempt int32) time.Duration {
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxAttemptDelay)
	}
	if attempt < 2*manyAttempts {
		return 0
	}
	return min(call.RetryAtMost*time.Duration(attempt/manyAttempts), maxAttemptDelay)
}

// InterceptActivity wraps every activity of the worker.
func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &guardedActivity{failures: g.failures, client: g.client}
	a.Next = next
	return a
}

type guardedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	failures Failures
	client   client.Client
}

// ExecuteActivity sends heartbeats while the activity runs, and replaces the text of its error.
func (a *guardedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx = attempt.WithProgress(ctx)
	beating, stop := context.WithCancel(ctx)
	defer stop()
	info := activity.GetInfo(ctx)
	go attempt.SendHeartbeats(beating, paceOf(info.HeartbeatTimeout), func(ctx context.Context, details ...any) error {
		return a.client.RecordActivityHeartbeat(ctx, info.TaskToken, details...)
	})
	result, err := a.executeRecovered(ctx, in)
	if err == nil {
		a.failures.tellSuccess(info, in.Args)
		return result, nil
	}
	if errors.Is(err, context.Canceled) || temporal.IsCanceledError(err) || temporal.IsApplicationError(err) {
		return result, err
	}
	a.failures.Log.Info("An activity failed and will be tried again", "activity", info.ActivityType.Name,
		"workflow", info.WorkflowExecution.ID, "attempt", info.Attempt, "cause", textForLog(err))
	cause := textForHistory(err)
	a.failures.tellFailure(info, in.Args, cause)
	return result, temporal.NewApplicationErrorWithOptions(cause, string(apierrors.ReasonForError(err)),
		temporal.ApplicationErrorOptions{NextRetryDelay: nextDelay(err, info.Attempt)})
}

// executeRecovered runs the activity, and makes an error of a panic.
func (a *guardedActivity) executeRecovered(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		cause, isError := value.(error)
		if !isError {
			cause = fmt.Errorf("%v", value)
		}
		name := activity.GetInfo(ctx).ActivityType.Name
		a.failures.Log.Error(nil, "An activity panicked", "activity", name, "cause", textForLog(cause), "stack", string(debug.Stack()))
		a.failures.Metrics.countPanic(name)
		result = nil
		err = fmt.Errorf("the activity panicked: %w", cause)
	}()
	return a.Next.ExecuteActivity(ctx, in)
}

// paceOf has the first heartbeat early, so that the Temporal UI soon shows progress, and repeats one that is not delivered. The timeout is
// that of the activity, which another version may have asked for.
func paceOf(timeout time.Duration) attempt.Pace {
	pace := attempt.Pace{First: call.HeartbeatEvery, Pause: call.HeartbeatPause, Attempt: call.HeartbeatEvery, Again: call.HeartbeatEvery / 4}
	if timeout < call.HeartbeatTimeout {
		pace.Pause = call.ShortHeartbeatPause
	}
	return pace
}

// withPlacedContent are the resources whose objects hold placed objects, Secrets included.
var withPlacedContent = map[string]bool{
	"works": true, "clusterresourcesnapshots": true, "resourcesnapshots": true, "secrets": true,
	"clusterresourceenvelopes": true, "resourceenvelopes": true,
}

// textForLog returns an error as the log may have it: in full, unless it is the API server's answer to a
// write of placed content, which may quote it. Of that the reason remains.
func textForLog(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil || !withPlacedContent[answer.Status().Details.Kind] {
		return err.Error()
	}
	status := answer.Status()
	left := fmt.Sprintf("%s (code %d; the rest of the answer may quote what is placed)", status.Reason, status.Code)
	if text := strings.ReplaceAll(err.Error(), status.Message, left); text != err.Error() {
		return text
	}
	return textForHistory(err)
}

// textForHistory returns the part of an error that a history may contain: what the activity was doing,
// in our own words and names, and the reason of the API server's answer; not the answer itself.
func textForHistory(err error) string {
	doing := "the activity failed"
	if errors.Unwrap(err) != nil {
		doing, _, _ = strings.Cut(err.Error(), ": ")
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		doing = fmt.Sprintf("%s: %s", doing, reason)
	}
	return doing + " (the hub agent's log has the details)"
}
