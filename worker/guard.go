package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/activities/heartbeat"
	"github.com/fleetflow/fleetflow/workflows/call"
)

// guard does for every activity what none should have to do itself: it says
// that the activity is alive, so that the server notices within the heartbeat
// timeout that the process which ran it was killed; and it keeps the texts of
// errors out of histories, where anybody who may see a workflow could read what
// an API server quotes of a manifest.
type guard struct {
	interceptor.WorkerInterceptorBase
	log logr.Logger
}

// InterceptActivity wraps every activity of the worker.
func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &guardedActivity{log: g.log}
	a.Next = next
	return a
}

type guardedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	log logr.Logger
}

// ExecuteActivity runs the activity under guard.
func (a *guardedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx = heartbeat.WithProgress(ctx)
	done := make(chan struct{})
	defer close(done)
	go beat(ctx, done)
	result, err := a.Next.ExecuteActivity(ctx, in)
	if err == nil || errors.Is(err, context.Canceled) || temporal.IsCanceledError(err) || temporal.IsApplicationError(err) {
		return result, err
	}
	info := activity.GetInfo(ctx)
	a.log.Info("An activity failed and will be tried again", "activity", info.ActivityType.Name,
		"workflow", info.WorkflowExecution.ID, "attempt", info.Attempt, "cause", err.Error())
	return result, temporal.NewApplicationError(shown(err), string(apierrors.ReasonForError(err)))
}

func beat(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(call.HeartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			heartbeat.Repeat(ctx)
		case <-done:
			return
		}
	}
}

// shown is what of an error may be recorded: what we were doing, which are our
// own words and names, and the kind of answer; not the answer itself.
func shown(err error) string {
	doing := "the activity failed"
	if errors.Unwrap(err) != nil {
		doing, _, _ = strings.Cut(err.Error(), ": ")
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		doing = fmt.Sprintf("%s: %s", doing, reason)
	}
	return doing + " (the hub agent's log has the details)"
}
