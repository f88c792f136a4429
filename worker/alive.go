package worker

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/fleetflow/fleetflow/workflows/call"
)

// alive heartbeats for activities that do not wait and so have nothing to
// report: the server then notices within the heartbeat timeout, rather than the
// activity's own, that the process which ran one was killed.
type alive struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity wraps every activity of the worker.
func (a *alive) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &aliveActivity{}
	i.Next = next
	return i
}

type aliveActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity heartbeats until the activity returns.
func (i *aliveActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(call.HeartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return i.Next.ExecuteActivity(ctx, in)
}
