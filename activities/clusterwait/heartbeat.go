package clusterwait

import (
	"context"
	"sync/atomic"

	"go.temporal.io/sdk/activity"
)

type progressKey struct{}

// TrackProgress lets Beat repeat what an activity reports last with Heartbeat.
func TrackProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, &atomic.Value{})
}

// Heartbeat reports the progress of the activity, which the Temporal UI shows.
func Heartbeat(ctx context.Context, progress any) {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok {
		last.Store(progress)
	}
	activity.RecordHeartbeat(ctx, progress)
}

// Beat says that the activity is alive, and repeats its last progress.
func Beat(ctx context.Context) {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok && last.Load() != nil {
		activity.RecordHeartbeat(ctx, last.Load())
		return
	}
	activity.RecordHeartbeat(ctx)
}
