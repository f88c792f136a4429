package placement_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/placement"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var ref = wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "crp", UID: "uid-1"}

// hub stands in for the activities of one placement.
type hub struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment

	mu       sync.Mutex
	state    wf.PlacementState
	selected wf.SelectResult
	schedule wf.ScheduleResult
	// results of Advance, one after the other; settled when there are none left.
	results  []wf.AdvanceResult
	requests []wf.AdvanceRequest
	calls    []string
	// during is run inside an activity of this name, once.
	during map[string]func()
}

func newHub(t *testing.T) *hub {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	h := &hub{
		t: t, env: suite.NewTestWorkflowEnvironment(), during: map[string]func(){},
		state:    wf.PlacementState{Found: true, UID: "uid-1"},
		selected: wf.SelectResult{Snapshot: "crp-0-snapshot"},
		schedule: wf.ScheduleResult{PolicySnapshot: "crp-0", Selected: 3},
	}
	h.env.SetStartTime(begin)
	h.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	h.env.RegisterWorkflowWithOptions(placement.Workflow, workflow.RegisterOptions{Name: wf.PlacementWorkflow})
	for name, f := range map[string]any{
		wf.LoadPlacement: h.load, wf.SelectResources: h.selectResources,
		wf.ScheduleClusters: h.scheduleClusters, wf.ScaleReplicas: h.scale, wf.AdvancePlacement: h.advance,
	} {
		h.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return h
}

// waiting lets every Advance take a while.
func (h *hub) waiting(d time.Duration) {
	h.env.OnActivity(wf.AdvancePlacement, mock.Anything, mock.Anything).Return(h.advance).After(d)
}

func (h *hub) at(d time.Duration, do func()) { h.env.RegisterDelayedCallback(do, d) }

func (h *hub) poke(cause string) {
	h.env.SignalWorkflow(wf.PokeSignal, wf.Poke{UID: "uid-1", Cause: cause})
}

func (h *hub) run() {
	h.t.Helper()
	h.env.ExecuteWorkflow(wf.PlacementWorkflow, ref)
	require.True(h.t, h.env.IsWorkflowCompleted(), "the workflow must end; calls:\n%s", strings.Join(h.calls, "\n"))
}

func (h *hub) note(name string) {
	h.calls = append(h.calls, name)
	if do := h.during[name]; do != nil {
		delete(h.during, name)
		do()
	}
}

func (h *hub) load(context.Context, wf.Ref) (wf.PlacementState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note("Load")
	return h.state, nil
}

func (h *hub) selectResources(_ context.Context, r wf.Ref) (wf.SelectResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note("Select")
	if r.UID != h.state.UID {
		return wf.SelectResult{Gone: true}, nil
	}
	return h.selected, nil
}

func (h *hub) scheduleClusters(context.Context, wf.Ref) (wf.ScheduleResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note("Schedule")
	return h.schedule, nil
}

func (h *hub) scale(_ context.Context, in wf.ScaleRequest) (wf.ScaleResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note("Scale at " + in.Snapshot)
	return wf.ScaleResult{}, nil
}

func (h *hub) advance(_ context.Context, in wf.AdvanceRequest) (wf.AdvanceResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note("Advance")
	h.requests = append(h.requests, in)
	if len(h.results) == 0 {
		return wf.AdvanceResult{Settled: true}, nil
	}
	next := h.results[0]
	h.results = h.results[1:]
	return next, nil
}

func change(cluster string) wf.Change {
	return wf.Change{Cluster: cluster, Op: wf.OpUpdate, Binding: "crp-" + cluster, UID: "b-" + cluster, FromState: "Bound", FromRevision: "1"}
}

// once is one convergence that rolls out.
var once = []string{"Load", "Select", "Schedule", "Advance"}

func TestAConvergenceEndsAfterItHasLingered(t *testing.T) {
	h := newHub(t)
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, once, h.calls)
	assert.WithinDuration(t, begin.Add(placement.Linger), h.env.Now(), 0)
}

func TestEachBatchIsRecordedBeforeItIsWritten(t *testing.T) {
	h := newHub(t)
	h.results = []wf.AdvanceResult{
		{Next: wf.Batch{change("a")}, Blocked: 2},
		{Next: wf.Batch{change("b")}, Blocked: 1},
		{Next: wf.Batch{change("c")}, InFlight: 1},
	}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 4)
	assert.Empty(t, h.requests[0].Batch, "the first call only plans")
	assert.Equal(t, wf.Batch{change("a")}, h.requests[1].Batch)
	assert.Equal(t, wf.Batch{change("b")}, h.requests[2].Batch)
	assert.Equal(t, wf.Batch{change("c")}, h.requests[3].Batch)
	assert.Equal(t, 1, h.requests[3].InFlight)
	for _, request := range h.requests {
		assert.Equal(t, ref, request.Placement)
		assert.Equal(t, "crp-0-snapshot", request.Snapshot)
	}
}

func TestABurstOfPokesIsOneMoreConvergence(t *testing.T) {
	h := newHub(t)
	h.at(time.Second, func() {
		for range 20 {
			h.env.SignalWorkflowSkippingWorkflowTask(wf.PokeSignal, wf.Poke{UID: "uid-1", Cause: wf.CauseResources})
		}
		h.poke(wf.CauseResources)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, append(append([]string{}, once...), "Select", "Advance"), h.calls, "a change of resources needs no new look at the placement, nor at the clusters")
}

func TestAPokeThatComesWithTheEndOfTheLingerIsNotLost(t *testing.T) {
	h := newHub(t)
	h.at(placement.Linger, func() { h.poke(wf.CauseSpec) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Contains(t, []int{4, 8}, len(h.calls), "either it was taken, or the workflow had ended before it")
}

func TestAPokeAfterSelectBeganRepeatsSelectBeforeTheEnd(t *testing.T) {
	for _, name := range []string{"Select", "Schedule"} {
		t.Run("during "+name, func(t *testing.T) {
			h := newHub(t)
			h.during[name] = func() { h.poke(wf.CauseResources) }
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			selects := 0
			for _, call := range h.calls {
				if call == "Select" {
					selects++
				}
			}
			assert.Equal(t, 2, selects, "calls %v", h.calls)
		})
	}
}

func TestAPokeWhileARolloutWaitsIsTakenUpAtOnce(t *testing.T) {
	h := newHub(t)
	h.waiting(time.Minute)
	var before []string
	h.at(10*time.Second, func() { h.poke(wf.CauseResources) })
	h.at(11*time.Second, func() { before = append(before, h.calls...) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Select"}, before, "it does not wait for the rollout")
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Select", "Advance"}, h.calls)
}

func TestWhatCanAlterWhichClustersArePickedIsScheduled(t *testing.T) {
	for cause, schedules := range map[string]int{
		wf.CauseResources: 1, wf.CauseOverrides: 1, wf.CauseAvailability: 1,
		wf.CauseSpec: 2, wf.CauseClusters: 2, wf.CauseBindings: 2, wf.CauseEvictions: 2, wf.CauseAudit: 2, "what is not known": 2,
	} {
		t.Run(cause, func(t *testing.T) {
			h := newHub(t)
			h.at(time.Second, func() { h.poke(cause) })
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			count := 0
			for _, call := range h.calls {
				if call == "Schedule" {
					count++
				}
			}
			assert.Equal(t, schedules, count, "calls %v", h.calls)
		})
	}
}

func TestAChangeOfAvailabilityDoesNotSelectWhileARolloutWaits(t *testing.T) {
	h := newHub(t)
	h.waiting(time.Minute)
	h.at(10*time.Second, func() { h.poke(wf.CauseAvailability) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, once, h.calls)
}

func TestAChangeOfReplicasIsScheduledThoughAChangeOfResourcesIsNot(t *testing.T) {
	h := newHub(t)
	h.selected.Demand = "3 replicas"
	h.at(time.Second, func() { h.poke(wf.CauseResources) })
	h.at(2*time.Second, func() {
		h.selected.Demand = "4 replicas"
		h.poke(wf.CauseResources)
	})
	h.at(3*time.Second, func() { h.poke(wf.CauseResources) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Advance", "Select", "Advance", "Select", "Schedule", "Advance", "Select", "Advance"}, h.calls)
}

func TestALazyPolicyIsScheduledBeforeTheSnapshotThatItWaitedForIsRolledOut(t *testing.T) {
	h := newHub(t)
	h.at(time.Second, func() {
		h.selected.Reschedule = true
		h.poke(wf.CauseResources)
	})
	h.at(2*time.Second, func() {
		h.selected.Reschedule = false
		h.poke(wf.CauseResources)
	})
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Advance", "Select", "Schedule", "Advance", "Select", "Advance"}, h.calls)
}

func TestDividedReplicasComeIntoForceBeforeTheRolloutGoesOn(t *testing.T) {
	h := newHub(t)
	h.state.Divides = true
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Scale at crp-0-snapshot", "Advance"}, h.calls)
}

func TestReplicasAreScaledWhileUpdateRunsDecideAboutVersions(t *testing.T) {
	h := newHub(t)
	h.state.Divides = true
	h.state.External = true
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Scale at crp-0-snapshot"}, h.calls)
}

func TestReplicasAreScaledWhileARolloutWaits(t *testing.T) {
	h := newHub(t)
	h.waiting(time.Minute)
	h.at(10*time.Second, func() { h.poke(wf.CauseReplicas) })
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Scale at crp-0-snapshot", "Advance"}, h.calls, "nothing is selected or scheduled for it")
}

func TestAChangedPlanIsLoadedSelectedAndScheduledAgain(t *testing.T) {
	h := newHub(t)
	h.results = []wf.AdvanceResult{{Next: wf.Batch{change("a")}}, {Changed: true, Reschedule: true}}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Advance", "Advance", "Load", "Select", "Schedule", "Advance"}, h.calls)
	assert.Empty(t, h.requests[2].Batch, "a new plan begins with nothing recorded")
}

// patient lets every Advance wait until it is told to wake.
func (h *hub) patient() {
	h.env.OnActivity(wf.AdvancePlacement, mock.Anything, mock.Anything).Return(h.advance).After(wf.StuckAfter)
}

func TestABlockedRolloutEndsAfterTenMinutes(t *testing.T) {
	h := newHub(t)
	for range 100 {
		h.results = append(h.results, wf.AdvanceResult{Blocked: 2, InFlight: 1})
	}
	h.patient()
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 2)
	assert.WithinDuration(t, begin.Add(wf.StuckAfter), h.requests[0].WakeAt, 0, "it looks whether it is stuck")
	assert.WithinDuration(t, begin.Add(placement.BlockedFor), h.requests[1].WakeAt, 0, "the wait is bounded by the end")
	assert.WithinDuration(t, begin.Add(placement.BlockedFor+placement.Linger), h.env.Now(), 0)
}

func TestWhatOnlyTimeWillChangeIsWaitedFor(t *testing.T) {
	h := newHub(t)
	ready := begin.Add(time.Hour)
	for range 12 { // of five minutes
		h.results = append(h.results, wf.AdvanceResult{Blocked: 1, InFlight: 1, WakeAt: ready})
	}
	h.patient()
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 13)
	for _, request := range h.requests {
		assert.False(t, request.WakeAt.After(ready))
	}
	assert.False(t, h.env.Now().Before(ready), "nobody pokes when an unavailablePeriodSeconds is over")
}

func TestAStuckRolloutSaysOnWhatSinceWhen(t *testing.T) {
	h := newHub(t)
	for range 3 {
		h.results = append(h.results, wf.AdvanceResult{
			Blocked: 2, InFlight: 1, Held: "of 3 none may go",
			Waiting: []wf.Waiting{{Cluster: "a", Since: begin, Step: "Available", Reason: "NotAllWorkAreAvailable", Object: "Deployment web/front"}},
		})
	}
	h.patient()
	var early, late string
	h.at(wf.StuckAfter+time.Second, func() { early = h.details() })
	h.at(placement.BlockedFor+time.Second, func() { late = h.details() })
	h.run()
	for _, said := range []string{early, late} {
		assert.Contains(t, said, "**Stuck** since 2026-01-02T03:04:05Z.")
		assert.Contains(t, said, "| a | 2026-01-02T03:04:05Z | Available | NotAllWorkAreAvailable | Deployment web/front |")
		assert.Contains(t, said, "of 3 none may go")
	}
}

func TestProgressPutsTheEndOfABlockedRolloutOff(t *testing.T) {
	h := newHub(t)
	h.waiting(6 * time.Minute)
	wake := begin.Add(15 * time.Minute)
	h.results = []wf.AdvanceResult{
		{Blocked: 2, InFlight: 1},
		{Blocked: 2, ProgressAt: begin.Add(11 * time.Minute), InFlight: 1, WakeAt: wake},
		{Blocked: 1, InFlight: 1},
	}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	require.Len(t, h.requests, 4)
	assert.WithinDuration(t, begin.Add(10*time.Minute), h.requests[1].WakeAt, 0)
	assert.WithinDuration(t, wake, h.requests[2].WakeAt, 0, "the earlier of the two")
	assert.WithinDuration(t, begin.Add(21*time.Minute), h.requests[3].WakeAt, 0)
}

func TestCollectedChangesAreSelectedWhenTheirTimeHasCome(t *testing.T) {
	for sentence, test := range map[string]struct {
		prepare func(h *hub)
		want    []string
		end     time.Duration
	}{
		"after a rollout": {
			prepare: func(*hub) {},
			want:    []string{"Load", "Select", "Schedule", "Advance", "Select", "Advance"},
			end:     40*time.Second + placement.Linger,
		},
		"while a rollout waits": {
			prepare: func(h *hub) { h.waiting(time.Minute) },
			want:    []string{"Load", "Select", "Schedule", "Select", "Advance"},
			end:     time.Minute + placement.Linger,
		},
		"when update runs roll out": {
			prepare: func(h *hub) { h.state.External = true },
			want:    []string{"Load", "Select", "Schedule", "Select"},
			end:     40*time.Second + placement.Linger,
		},
		"at last, though another change comes meanwhile": {
			prepare: func(h *hub) {
				h.state.External = true
				h.at(10*time.Second, func() { h.poke(wf.CauseResources) })
			},
			want: []string{"Load", "Select", "Schedule", "Select", "Select"},
			end:  40*time.Second + placement.Linger,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			due := begin.Add(40 * time.Second)
			h.selected.WakeAt = due
			h.at(39*time.Second, func() { h.selected.WakeAt = time.Time{} })
			test.prepare(h)
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, h.calls)
			assert.WithinDuration(t, begin.Add(test.end), h.env.Now(), 0)
		})
	}
}

func TestAnEarlierAffinityGroupIsGoneBackToWhenItsTimeHasCome(t *testing.T) {
	for sentence, test := range map[string]struct {
		prepare func(h *hub)
		want    []string
		end     time.Duration
	}{
		"after a rollout": {
			prepare: func(*hub) {},
			want:    []string{"Load", "Select", "Schedule", "Advance", "Select", "Schedule", "Advance"},
			end:     10*time.Minute + time.Second + placement.Linger,
		},
		"while a rollout waits": {
			prepare: func(h *hub) { h.waiting(11 * time.Minute) },
			want:    []string{"Load", "Select", "Schedule", "Select", "Schedule", "Advance"},
			end:     11*time.Minute + placement.Linger,
		},
		"when update runs roll out": {
			prepare: func(h *hub) { h.state.External = true },
			want:    []string{"Load", "Select", "Schedule", "Select", "Schedule"},
			end:     10*time.Minute + time.Second + placement.Linger,
		},
		"unless clusters are picked again before, and it does not fit any more": {
			prepare: func(h *hub) {
				h.at(time.Minute, func() { h.schedule.WakeAt = time.Time{}; h.poke(wf.CauseClusters) })
			},
			want: []string{"Load", "Select", "Schedule", "Advance", "Select", "Schedule", "Advance"},
			end:  time.Minute + placement.Linger,
		},
		"though availability changes meanwhile": {
			prepare: func(h *hub) {
				h.state.External = true
				h.at(time.Minute, func() { h.poke(wf.CauseAvailability) })
			},
			want: []string{"Load", "Select", "Schedule", "Select", "Select", "Schedule"},
			end:  10*time.Minute + time.Second + placement.Linger,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			h.schedule.WakeAt = begin.Add(10 * time.Minute)
			h.at(9*time.Minute, func() { h.schedule.WakeAt = time.Time{} })
			test.prepare(h)
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, h.calls)
			assert.WithinDuration(t, begin.Add(test.end), h.env.Now(), 0)
		})
	}
}

func TestExternalEndsAfterScheduling(t *testing.T) {
	h := newHub(t)
	h.state.External = true
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule"}, h.calls)
}

func TestInvalidSelectorsStillSchedule(t *testing.T) {
	h := newHub(t)
	h.selected = wf.SelectResult{Invalid: true}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule"}, h.calls)
}

func TestAPlacementThatIsGoneIsLeftAlone(t *testing.T) {
	for sentence, state := range map[string]wf.PlacementState{
		"it does not exist":     {},
		"it is being deleted":   {Found: true, UID: "uid-1", Deleting: true},
		"a successor goes, too": {Found: true, UID: "uid-2", Deleting: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			h.state = state
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, []string{"Load"}, h.calls)
			assert.WithinDuration(t, begin, h.env.Now(), 0, "it does not linger")
		})
	}
}

func TestAPlacementThatGoesDuringItsRolloutEndsTheWorkflow(t *testing.T) {
	h := newHub(t)
	h.results = []wf.AdvanceResult{{Gone: true}}
	h.during["Advance"] = func() { h.state = wf.PlacementState{} }
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Advance", "Load"}, h.calls)
}

func TestASuccessorOfTheSameNameIsTakenOver(t *testing.T) {
	h := newHub(t)
	h.during["Schedule"] = func() {
		h.state.UID = "uid-2"
		h.schedule.Gone = true
	}
	h.during["Load"] = func() {
		h.during["Load"] = func() { h.schedule.Gone = false }
	}
	h.run()
	require.NoError(t, h.env.GetWorkflowError())
	assert.Equal(t, []string{"Load", "Select", "Schedule", "Load", "Select", "Schedule", "Advance"}, h.calls)
	assert.Equal(t, "uid-2", h.requests[0].Placement.UID)
}

func TestALongHistoryContinuesAsNew(t *testing.T) {
	for sentence, test := range map[string]struct {
		prepare func(h *hub)
	}{
		"in the middle of a rollout of many batches": {func(h *hub) {
			h.waiting(2 * time.Second)
			for i := range 100 {
				h.results = append(h.results, wf.AdvanceResult{Next: wf.Batch{change(fmt.Sprint(i))}})
			}
			h.env.SetContinueAsNewSuggested(true)
		}},
		"while a batch is under way, which nothing ends": {func(h *hub) {
			h.waiting(9 * time.Minute)
			h.env.SetContinueAsNewSuggested(true)
			for i := range 20 {
				h.at(time.Duration(2+i)*time.Second, func() { h.poke(wf.CauseResources) })
			}
		}},
		"while a batch is under way and only availability changes": {func(h *hub) {
			h.waiting(9 * time.Minute)
			h.env.SetContinueAsNewSuggested(true)
			h.at(2*time.Second, func() { h.poke(wf.CauseAvailability) })
		}},
		"after a flood of pokes": {func(h *hub) {
			for i := range 11 { // the test environment queues few at a time
				h.at(time.Duration(i+1)*time.Millisecond, func() {
					for range 100 {
						h.env.SignalWorkflowSkippingWorkflowTask(wf.PokeSignal, wf.Poke{UID: "uid-1", Cause: wf.CauseResources})
					}
				})
			}
			h.at(2*time.Second, func() { h.poke(wf.CauseResources) })
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			test.prepare(h)
			h.run()
			var again *workflow.ContinueAsNewError
			require.True(t, errors.As(h.env.GetWorkflowError(), &again), "got %v after %v", h.env.GetWorkflowError(), h.calls)
			assert.Equal(t, wf.PlacementWorkflow, again.WorkflowType.Name)
			assert.Less(t, len(h.calls), 60)
			assert.Less(t, h.env.Now().Sub(begin), 8*time.Minute, "it does not wait for the end of a batch")
		})
	}
}

func TestACancelledWorkflowEnds(t *testing.T) {
	for sentence, when := range map[string]time.Duration{"in a rollout": time.Second, "while it lingers": time.Minute + time.Second} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			h.waiting(time.Minute)
			h.at(when, func() { h.env.CancelWorkflow() })
			h.run()
			assert.WithinDuration(t, begin.Add(when), h.env.Now(), 0)
		})
	}
}

func TestTheDetailsNameSnapshotAndPolicy(t *testing.T) {
	h := newHub(t)
	var details string
	h.at(time.Second, func() { details = h.details() })
	h.run()
	assert.Equal(t, "Snapshot **crp-0-snapshot**, 3 clusters selected by policy crp-0.", details)
}

func TestThePhaseOfAPlacementIsPublishedOnceItChanges(t *testing.T) {
	for sentence, test := range map[string]struct {
		results []wf.AdvanceResult
		pokes   []string
		want    []string
	}{
		"not while it rolls out": {[]wf.AdvanceResult{{Next: wf.Batch{change("a")}}, {Settled: true}}, nil, nil},
		"once it is held, and once it is not": {[]wf.AdvanceResult{{Settled: true, Closed: 2, ClosedBy: "hold h"}, {Settled: true, Closed: 1}, {Settled: true}},
			[]string{wf.CauseResources, wf.CauseGates}, []string{placement.PhaseHeld, placement.PhaseRolling}},
		"once it is blocked, and once it is not": {[]wf.AdvanceResult{{Blocked: 1}, {Next: wf.Batch{change("a")}}, {Settled: true}}, nil,
			[]string{placement.PhaseBlocked, placement.PhaseRolling}},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			h.results = test.results
			if test.pokes == nil {
				h.env.OnActivity(wf.AdvancePlacement, mock.Anything, mock.Anything).Return(h.advance).After(wf.StuckAfter)
			}
			for i, cause := range test.pokes {
				h.at(time.Duration(i+1)*time.Second, func() { h.poke(cause) })
			}
			var published []string
			h.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
				attributes, _ := args.Get(0).(temporal.SearchAttributes)
				if phase, ok := attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute)); ok {
					published = append(published, phase)
				}
			}).Return(nil)
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			assert.Equal(t, test.want, published)
		})
	}
}

func TestTheStatusSaysHowFarARolloutIs(t *testing.T) {
	h := newHub(t)
	h.results = []wf.AdvanceResult{{Settled: true, Closed: 2, ClosedBy: "hold incident", InFlight: 1}}
	var status placement.Status
	h.at(time.Second, func() {
		value, err := h.env.QueryWorkflow(wf.StatusQuery)
		require.NoError(t, err)
		require.NoError(t, value.Get(&status))
	})
	h.run()
	assert.Equal(t, placement.Status{Placement: "crp", Phase: placement.PhaseHeld, Snapshot: "crp-0-snapshot", Policy: "crp-0", Clusters: 3, InFlight: 1,
		Since: begin, WaitsFor: "hold incident"}, status)
}

// details are what the Temporal UI shows of an execution.
func (h *hub) details() string {
	h.t.Helper()
	value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(h.t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(h.t, value.Get(&metadata))
	return metadata.GetCurrentDetails()
}
