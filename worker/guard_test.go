package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&guard{log: logr.Discard()}}})
			fails := func(context.Context) error { return test.err }
			env.RegisterActivity(fails)
			_, err := env.ExecuteActivity(fails)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}
