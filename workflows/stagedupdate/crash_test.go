package stagedupdate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/fleetflow/fleetflow/test/faults"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// fullRun has everything a run can have: an approval before a stage, a window, a soak, an approval after a stage,
// and clusters to be cleared in the end.
func fullRun(t *testing.T) *hub {
	h := newHub(t,
		&stage{name: "staging", clusters: clusters("a", "b", "c"), max: 2, wait: time.Minute, after: &approvalTask{}},
		&stage{name: "canary", clusters: clusters("d", "e"), before: &approvalTask{}},
	)
	h.deletionRounds = 1
	return h
}

// execute runs the workflow with a saboteur. Somebody approves with kubectl whatever waits for it.
func (h *hub) execute(s *faults.Saboteur) {
	h.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{s}, DeadlockDetectionTimeout: time.Minute})
	for i := range 300 {
		h.at(time.Duration(i)*time.Second, func() {
			for _, st := range h.stages {
				for _, task := range []*approvalTask{st.before, st.after} {
					if task != nil && task.opened && !task.approved {
						h.change(func() { task.approved = true })
						h.poke(wf.CauseApproval)
					}
				}
			}
		})
	}
	h.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(h.t, h.env.IsWorkflowCompleted())
}

// TestARunSurvivesEveryFaultAtEveryCall lets every call of a run go wrong in every way.
func TestARunSurvivesEveryFaultAtEveryCall(t *testing.T) {
	undisturbed := &faults.Saboteur{}
	fullRun(t).execute(undisturbed)
	require.Greater(t, undisturbed.Calls, 12, "calls of a run")
	for _, fault := range faults.All() {
		struck := map[string]bool{}
		for at := 1; at <= undisturbed.Calls; at++ {
			s := &faults.Saboteur{At: at, Fault: fault}
			t.Run(fmt.Sprintf("call %d %s", at, fault.Sentence), func(t *testing.T) {
				h := fullRun(t)
				h.execute(s)
				if fault.Fatal {
					h.attach(h.env.Now())
					h.execute(&faults.Saboteur{})
				}
				require.NoError(t, h.env.GetWorkflowError())
				h.requireRight(t)
			})
			struck[s.Struck] = true
		}
		assert.Len(t, struck, 6, "every activity was struck: %v", struck)
	}
}

// requireRight asserts what holds of the run however it was disturbed.
func (h *hub) requireRight(t *testing.T) {
	t.Helper()
	assert.True(t, h.succeeded, "the run succeeds")
	assert.Equal(t, clusters("a", "b", "c", "d", "e"), h.starts, "each cluster once, in its order")
	for _, n := range h.inFlight {
		assert.LessOrEqual(t, n, 2, "clusters in flight")
	}
	assert.Zero(t, h.deletionRounds, "everything is cleared")
	for _, st := range h.stages {
		assert.Len(t, st.done, len(st.clusters), st.name)
	}
	soaked := h.stages[0].waitsSince.Add(time.Minute)
	assert.False(t, h.canaryBegan.Before(soaked), "the soak is not shortened: canary began at %s, the soak ends at %s", h.canaryBegan, soaked)
	assert.Less(t, h.canaryBegan.Sub(soaked), 10*time.Second, "the soak is not begun anew")
}
