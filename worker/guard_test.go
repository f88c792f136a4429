package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestTheLogQuotesNothingThatIsPlaced(t *testing.T) {
	answer := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "placement.kubernetes-fleet.io", Resource: resource}, "x", errors.New(`denied: {"password":"hunter2"}`))
	}
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"of a Work the reason is left":     {fmt.Errorf("writing Work web: %w", answer("works")), "writing Work web: Forbidden (code 403; the rest of the answer may quote what is placed)"},
		"of a snapshot too":                {fmt.Errorf("creating: %w", answer("clusterresourcesnapshots")), "creating: Forbidden (code 403; the rest"},
		"of a binding the answer is whole": {fmt.Errorf("writing binding web: %w", answer("clusterresourcebindings")), `denied: {"password":"hunter2"}`},
		"an error of ours is whole":        {errors.New("the plan has no stage canary"), "the plan has no stage canary"},
	} {
		assert.Contains(t, textForLog(test.err), test.want, sentence)
	}
	assert.NotContains(t, textForLog(fmt.Errorf("writing Work web: %w", answer("works"))), "hunter2")
}

// What an API server answers may quote a manifest; a history must not.
func TestNoErrorTextReachesAHistory(t *testing.T) {
	secret := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New(`denied: {"password":"hunter2"}`))
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"our own words stay":       {fmt.Errorf("starting cluster member-1: %w", secret), "starting cluster member-1: Forbidden (the hub agent's log has the details)"},
		"a bare answer says which": {secret, "the activity failed: Forbidden (the hub agent's log has the details)"},
		"another error says less":  {errors.New("hunter2"), "the activity failed (the hub agent's log has the details)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&guard{failures: Failures{Log: logr.Discard()}}}})
			fails := func(context.Context) error { return test.err }
			env.RegisterActivity(fails)
			_, err := env.ExecuteActivity(fails)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// A panic quotes what it met, and the stack below it has arguments: both are for the log.
func TestAPanicOfAnActivityIsAnErrorWithoutItsText(t *testing.T) {
	for sentence, test := range map[string]struct {
		value any
		logs  string
	}{
		"a text":              {"hunter2", "hunter2"},
		"an error":            {errors.New("hunter2"), "hunter2"},
		"an answer of a Work": {apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "x", errors.New("hunter2")), "Forbidden (code 403"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			var logged strings.Builder
			env := suite.NewTestActivityEnvironment()
			metrics := NewMetrics()
			failures := Failures{Log: funcr.New(func(_, args string) { logged.WriteString(args) }, funcr.Options{}), Metrics: metrics}
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&guard{failures: failures}}})
			panics := func(context.Context) error { panic(test.value) }
			env.RegisterActivityWithOptions(panics, activity.RegisterOptions{Name: wf.LoadRun})
			_, err := env.ExecuteActivity(wf.LoadRun)
			require.Error(t, err)
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed, "it is tried again as other errors are")
			assert.False(t, failed.NonRetryable())
			assert.Contains(t, err.Error(), "the activity panicked")
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "goroutine")
			assert.Contains(t, logged.String(), test.logs)
			assert.Contains(t, logged.String(), "TestAPanicOfAnActivity", "the stack says where")
			assert.InDelta(t, 1, testutil.ToFloat64(metrics.panics.WithLabelValues(wf.LoadRun)), 0)
		})
	}
}

func TestWhatFailsForEverIsToldOnItsObject(t *testing.T) {
	metrics := NewMetrics()
	var told []string
	failures := Failures{Metrics: metrics, Tell: func(object wf.Ref, good bool, message string) {
		told = append(told, fmt.Sprintf("%s %t %s", object.Key(), good, message))
	}}
	info := activity.Info{
		ActivityType: activity.Type{Name: wf.AdvanceStage}, WorkflowExecution: workflow.Execution{ID: "updaterun/web-17/stage/prod"},
	}
	args := []any{wf.StageAdvance{StageRequest: prod}}
	for info.Attempt = 1; info.Attempt <= 120; info.Attempt++ {
		failures.tellFailure(info, args, "starting cluster a: Forbidden")
	}
	const failed = "web-17 false Activity AdvanceStage of workflow updaterun/web-17/stage/prod has failed %d times in a row and is tried again: starting cluster a: Forbidden"
	assert.Equal(t, []string{fmt.Sprintf(failed, 10), fmt.Sprintf(failed, 60), fmt.Sprintf(failed, 110)}, told)
	assert.InDelta(t, 111, testutil.ToFloat64(metrics.failingAgain.WithLabelValues(wf.AdvanceStage)), 0)

	told = nil
	info.Attempt = 10
	failures.tellSuccess(info, args)
	assert.Empty(t, told, "nothing was told of it")
	info.Attempt = 11
	failures.tellSuccess(info, args)
	assert.Equal(t, []string{"web-17 true Activity AdvanceStage of workflow updaterun/web-17/stage/prod has succeeded with attempt 11"}, told)
}

func TestAttemptsBecomeRarer(t *testing.T) {
	for attempt, want := range map[int32]time.Duration{
		1: 0, 19: 0, 20: 10 * time.Second, 35: 15 * time.Second, 60: 30 * time.Second, 10000: 30 * time.Second,
	} {
		assert.Equal(t, want, nextDelay(errors.New("no"), attempt), "after attempt %d", attempt)
	}
	busy := fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("busy", 7))
	assert.Equal(t, 7*time.Second, nextDelay(busy, 1), "the API server says when")
	assert.Equal(t, 30*time.Second, nextDelay(apierrors.NewTooManyRequests("busy", 3600), 1))
}
