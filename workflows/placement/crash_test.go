package placement_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/test/faults"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/placement"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// fleet is a placement on clusters that become available a second after they were written, planned by the planner of the product.
// It outlives executions, as objects do.
type fleet struct {
	t       *testing.T
	env     *testsuite.TestWorkflowEnvironment
	target  string
	members map[string]*member
	limits  rollout.Limits
	// picked is how many clusters the policy asks for, scheduled how many of them are picked.
	picked, scheduled int
	epoch             int64
	// fewest is how many clusters were available at a write at least, once all were.
	fewest int
	// evictions are asked for and have no outcome.
	evictions []string
	replicas  string
}

// member is one cluster: the snapshot that it has, since when.
type member struct {
	snapshot string
	since    time.Time
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, target: "crp-1-snapshot", members: map[string]*member{}, picked: 6, scheduled: 4, fewest: 4, evictions: []string{"a"},
		limits: rollout.Limits{Target: 6, MaxUnavailable: 3, MaxSurge: 1}}
	for i := range f.picked {
		f.members[string(rune('a'+i))] = &member{}
	}
	for _, name := range f.names()[:f.scheduled] {
		f.members[name].snapshot = "crp-0-snapshot"
	}
	return f
}

func (f *fleet) names() []string {
	var names []string
	for name := range f.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// execute runs one execution with a saboteur, in which each batch takes a second.
func (f *fleet) execute(s *faults.Saboteur, suggested bool) error {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	now := begin
	if f.env != nil {
		now = f.env.Now()
	}
	f.env = suite.NewTestWorkflowEnvironment()
	f.env.SetStartTime(now)
	if suggested { // by then it has written something
		f.env.RegisterDelayedCallback(func() { f.env.SetContinueAsNewSuggested(true) }, 3500*time.Millisecond)
	}
	f.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{s}, DeadlockDetectionTimeout: time.Minute})
	f.env.RegisterWorkflowWithOptions(placement.Workflow, workflow.RegisterOptions{Name: wf.PlacementWorkflow})
	for name, do := range map[string]any{
		wf.LoadPlacement: f.load, wf.SelectResources: f.selectResources, wf.ScheduleClusters: f.schedule, wf.ScaleReplicas: f.scale,
		wf.AdvancePlacement: f.advance,
	} {
		f.env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
	f.env.OnActivity(wf.AdvancePlacement, mock.Anything, mock.Anything).Return(f.advance).After(time.Second)
	f.env.ExecuteWorkflow(wf.PlacementWorkflow, ref)
	require.True(f.t, f.env.IsWorkflowCompleted())
	return f.env.GetWorkflowError()
}

func (f *fleet) load(context.Context, wf.Ref) (wf.PlacementState, error) {
	return wf.PlacementState{Found: true, UID: ref.UID, Divides: true, Evictions: len(f.evictions) > 0}, nil
}

func (f *fleet) selectResources(context.Context, wf.Ref) (wf.SelectResult, error) {
	return wf.SelectResult{Snapshot: f.target, Demand: "3 replicas"}, nil
}

func (f *fleet) schedule(context.Context, wf.Ref) (wf.ScheduleResult, error) {
	f.scheduled = f.picked
	return wf.ScheduleResult{PolicySnapshot: "crp-0", Selected: f.picked}, nil
}

func (f *fleet) scale(_ context.Context, in wf.ScaleRequest) (wf.ScaleResult, error) {
	f.replicas = in.Snapshot
	return wf.ScaleResult{Scaled: 1}, nil
}

// plan is what the planner says of the fleet as it is now.
func (f *fleet) plan() (rollout.Plan, int) {
	facts := rollout.Facts{Limits: f.limits}
	available := 0
	for i, name := range f.names() {
		if i >= f.scheduled {
			continue
		}
		m := f.members[name]
		c := rollout.Cluster{Name: name, State: rollout.Scheduled, Placed: m.snapshot != "", Current: m.snapshot == f.target,
			Old: m.snapshot != "" && m.snapshot != f.target}
		if c.Placed {
			c.State = rollout.Bound
			c.Available = !f.env.Now().Before(m.since.Add(time.Second))
		}
		if c.Available {
			available++
		}
		facts.Clusters = append(facts.Clusters, c)
	}
	for _, cluster := range f.evictions {
		facts.Evictions = append(facts.Evictions, rollout.Eviction{Name: "evict-" + cluster, Cluster: cluster})
	}
	return rollout.Decide(facts), available
}

// advance writes what was recorded, as far as it is still allowed, and proposes what is next.
func (f *fleet) advance(_ context.Context, in wf.AdvanceRequest) (wf.AdvanceResult, error) {
	if len(in.Batch) > 0 && in.Epoch != f.epoch {
		if in.Epoch != f.epoch+1 {
			return wf.AdvanceResult{Changed: true}, nil
		}
		f.epoch++
	}
	for _, change := range in.Batch {
		f.write(change)
	}
	plan, _ := f.plan()
	result := wf.AdvanceResult{Settled: plan.Settled, Blocked: plan.Blocked(), Epoch: f.epoch + 1}
	for _, e := range plan.Evictions {
		result.Next = append(result.Next, wf.Change{Cluster: e.Cluster, Op: wf.OpConclude, Eviction: e.Eviction})
	}
	for _, s := range plan.Steps {
		result.Next = append(result.Next, wf.Change{Cluster: s.Cluster, Op: string(s.Op)})
	}
	return result, nil
}

func (f *fleet) write(change wf.Change) {
	if change.Eviction != "" {
		f.evictions = slices.DeleteFunc(f.evictions, func(cluster string) bool { return "evict-"+cluster == change.Eviction })
		return
	}
	plan, _ := f.plan()
	if !slices.Contains(plan.Steps, rollout.Step{Cluster: change.Cluster, Op: rollout.Op(change.Op)}) {
		return
	}
	f.members[change.Cluster].snapshot = f.target
	f.members[change.Cluster].since = f.env.Now()
	_, available := f.plan()
	f.fewest = min(f.fewest, available)
}

func (f *fleet) requireRight(t *testing.T) {
	t.Helper()
	for name, m := range f.members {
		assert.Equal(t, f.target, m.snapshot, "cluster %s", name)
	}
	assert.GreaterOrEqual(t, f.fewest, 3, "available clusters")
	assert.Empty(t, f.evictions, "evictions without an outcome")
	assert.Equal(t, f.target, f.replicas, "replicas in force")
}

// Every call of a placement goes wrong in every way.
func TestAPlacementSurvivesEveryFaultAtEveryCall(t *testing.T) {
	undisturbed := &faults.Saboteur{}
	require.NoError(t, newFleet(t).execute(undisturbed, false))
	require.Greater(t, undisturbed.Calls, 6, "calls of a placement")
	for _, fault := range faults.All() {
		struck := map[string]bool{}
		for at := 1; at <= undisturbed.Calls; at++ {
			s := &faults.Saboteur{At: at, Fault: fault}
			t.Run(fmt.Sprintf("call %d %s", at, fault.Sentence), func(t *testing.T) {
				f := newFleet(t)
				err := f.execute(s, false)
				if fault.Fatal {
					err = f.execute(&faults.Saboteur{}, false)
				}
				require.NoError(t, err)
				f.requireRight(t)
			})
			struck[s.Struck] = true
		}
		assert.Len(t, struck, 5, "every activity was struck: %v", struck)
	}
}

// Every execution is told after some batches that its history is long, as after thousands of events.
func TestAPlacementGoesOnThroughExecutionsThatContinueAsNew(t *testing.T) {
	f := newFleet(t)
	for executions := 1; ; executions++ {
		err := f.execute(&faults.Saboteur{}, true)
		if _, again := errors.AsType[*workflow.ContinueAsNewError](err); again {
			require.Less(t, executions, 30, "it must come forward in each")
			continue
		}
		require.NoError(t, err)
		require.Greater(t, executions, 1)
		break
	}
	f.requireRight(t)
}
