package attempt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/testsuite"

	"github.com/fleetflow/fleetflow/activities/attempt"
)

// patience is for a busy machine.
const patience = time.Minute

var pace = attempt.Pace{First: time.Millisecond, Pause: time.Millisecond, Attempt: patience, Again: time.Millisecond}

func TestAHeartbeatIsSentAgainUntilItIsDelivered(t *testing.T) {
	ctx, cancel := context.WithTimeout(attempt.WithProgress(t.Context()), patience)
	defer cancel()
	answers := []error{nil, errors.New("connection refused"), context.DeadlineExceeded, nil}
	var sent [][]any
	attempt.SendHeartbeats(ctx, pace, func(ctx context.Context, details ...any) error {
		sent = append(sent, details)
		attempt.Report(ctx, len(sent))
		if len(sent) == len(answers) {
			cancel()
		}
		return answers[len(sent)-1]
	})
	require.ErrorIs(t, ctx.Err(), context.Canceled, "all were sent")
	assert.Equal(t, [][]any{nil, {1}, {2}, {3}}, sent, "each with the newest progress")
}

func TestAnActivityThatTheServerDoesNotWantSendsNoMore(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	sent := 0
	activity := func(ctx context.Context) error {
		attempt.SendHeartbeats(ctx, pace, func(context.Context, ...any) error {
			sent++
			return serviceerror.NewNotFound("another attempt has begun")
		})
		return nil
	}
	env.RegisterActivity(activity)
	_, err := env.ExecuteActivity(activity)
	require.NoError(t, err)
	assert.Equal(t, 1, sent)
}
