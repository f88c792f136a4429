package attempt

import (
	"context"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
)

type progressKey struct{}

// WithProgress returns a context in which Repeat finds what Report has sent last.
func WithProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, &atomic.Value{})
}

// Report sends the progress of the activity, which the Temporal UI shows.
func Report(ctx context.Context, progress any) {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok {
		last.Store(progress)
	}
	activity.RecordHeartbeat(ctx, progress)
}

// Repeat sends the last reported progress again: a heartbeat without any would
// clear what the Temporal UI shows.
func Repeat(ctx context.Context) {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok && last.Load() != nil {
		activity.RecordHeartbeat(ctx, last.Load())
		return
	}
	activity.RecordHeartbeat(ctx)
}
