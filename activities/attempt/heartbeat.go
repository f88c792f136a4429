package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

type progressKey struct{}

// WithProgress returns a context in which SendHeartbeats finds what Report was given last.
func WithProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, &atomic.Value{})
}

// Report notes the progress of the activity, which the Temporal UI shows.
func Report(ctx context.Context, progress any) {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok {
		last.Store(progress)
	}
}

// Pace says when heartbeats are sent.
type Pace struct {
	// First is how long an activity runs before its first heartbeat, Pause the time between two.
	First, Pause time.Duration
	// Attempt bounds an attempt to send one; Again is the time from one that failed to the next.
	Attempt, Again time.Duration
}

// SendHeartbeats sends the newest report once in a while, until the context ends or the server does not want the activity to go on: the SDK
// then cancels it.
//
// The SDK would cancel an activity whose heartbeat it cannot deliver for half of the time between two. An absence of Temporal says
// nothing about the activity: here the same heartbeat is sent again until it is delivered, and the server alone decides.
func SendHeartbeats(ctx context.Context, pace Pace, send func(ctx context.Context, details ...any) error) {
	wait := time.NewTimer(pace.First)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		attempt, cancel := context.WithTimeout(ctx, pace.Attempt)
		err := send(attempt, newestProgress(ctx)...)
		cancel()
		switch {
		case err == nil:
			wait.Reset(pace.Pause)
		case ctx.Err() != nil:
			return // the activity has ended meanwhile
		case isUnwanted(err):
			activity.RecordHeartbeat(ctx, newestProgress(ctx)...) // the SDK hears the same answer
			return
		default:
			wait.Reset(pace.Again)
		}
	}
}

// newestProgress returns what was reported last: a heartbeat without it would clear what the Temporal UI shows.
func newestProgress(ctx context.Context) []any {
	if last, ok := ctx.Value(progressKey{}).(*atomic.Value); ok && last.Load() != nil {
		return []any{last.Load()}
	}
	return nil
}

// isUnwanted reports whether an answer of the server ends the activity: it is canceled, paused or reset, or another attempt has begun.
func isUnwanted(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone || temporal.IsCanceledError(err) || errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}
