package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/workflows/call"
)

// guard does two things for every activity. It sends heartbeats, so that the server notices within the heartbeat timeout that the
// process of the activity was killed. And it keeps the texts of errors out of histories: an API server may quote a manifest in an
// error, and all who have access to a workflow could read it there.
type guard struct {
	interceptor.WorkerInterceptorBase
	log logr.Logger
	// client sends the heartbeats.
	client client.Client
}

// InterceptActivity wraps every activity of the worker.
func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &guardedActivity{log: g.log, client: g.client}
	a.Next = next
	return a
}

type guardedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	log    logr.Logger
	client client.Client
}

// ExecuteActivity sends heartbeats while the activity runs, and replaces the text of its error.
func (a *guardedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx = attempt.WithProgress(ctx)
	beating, stop := context.WithCancel(ctx)
	defer stop()
	token := activity.GetInfo(ctx).TaskToken
	go attempt.SendHeartbeats(beating, heartbeatPace, func(ctx context.Context, details ...any) error {
		return a.client.RecordActivityHeartbeat(ctx, token, details...)
	})
	result, err := a.Next.ExecuteActivity(ctx, in)
	if err == nil || errors.Is(err, context.Canceled) || temporal.IsCanceledError(err) || temporal.IsApplicationError(err) {
		return result, err
	}
	info := activity.GetInfo(ctx)
	a.log.Info("An activity failed and will be tried again", "activity", info.ActivityType.Name,
		"workflow", info.WorkflowExecution.ID, "attempt", info.Attempt, "cause", textForLog(err))
	return result, temporal.NewApplicationError(textForHistory(err), string(apierrors.ReasonForError(err)))
}

// heartbeatPace has the first heartbeat early, so that the Temporal UI soon shows progress, and repeats one that is not delivered.
var heartbeatPace = attempt.Pace{
	First: call.HeartbeatEvery, Pause: call.HeartbeatPause, Attempt: call.HeartbeatEvery, Again: call.HeartbeatEvery / 4,
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
