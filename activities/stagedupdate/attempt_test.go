package stagedupdate_test

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// attempts tells activities which attempt they are.
type attempts struct {
	interceptor.WorkerInterceptorBase
	h *hub
}

func (a *attempts) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &attemptIn{interceptor.ActivityInboundInterceptorBase{Next: next}, a.h}
}

type attemptIn struct {
	interceptor.ActivityInboundInterceptorBase
	h *hub
}

func (a *attemptIn) Init(out interceptor.ActivityOutboundInterceptor) error {
	return a.Next.Init(&attemptOut{interceptor.ActivityOutboundInterceptorBase{Next: out}, a.h})
}

type attemptOut struct {
	interceptor.ActivityOutboundInterceptorBase
	h *hub
}

func (a *attemptOut) GetInfo(ctx context.Context) activity.Info {
	info := a.Next.GetInfo(ctx)
	info.Attempt = max(info.Attempt, a.h.attempt)
	return info
}
