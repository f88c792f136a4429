//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// visibilityEvery is how often Temporal's list and queries are asked: unlike everything else here they can neither be
// watched nor polled long.
const visibilityEvery = 100 * time.Millisecond

// workflowOf is the ID of a run's workflow.
func workflowOf(run *placementv1beta1.ClusterStagedUpdateRun) string {
	return wf.UpdateRunID("", run.Name)
}

// awaitClosed waits until the newest execution of a workflow has ended.
func (s *spec) awaitClosed(id string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, s.Temporal.GetWorkflow(ctx, id, "").Get(ctx, nil), "waiting for the end of workflow %s", id)
}

// execution is one execution of a workflow in Temporal's list.
type execution struct {
	id, run string
	open    bool
	events  int64
}

// executions lists the executions that match a query.
func (f *fleet) executions(ctx context.Context, query string) ([]execution, error) {
	var all []execution
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000}
	for {
		page, err := f.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("listing workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			all = append(all, execution{
				id: e.GetExecution().GetWorkflowId(), run: e.GetExecution().GetRunId(),
				open: e.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, events: e.GetHistoryLength(),
			})
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return all, nil
		}
	}
}

// ownExecutions are those of the spec's placement and runs; the list lags, so a closed workflow may still look open.
func (s *spec) ownExecutions() []execution {
	s.Helper()
	all, err := s.executions(s.Context(), "")
	require.NoError(s, err)
	var own []execution
	for _, e := range all {
		if parts := strings.Split(e.id, "/"); len(parts) > 1 && s.owns(parts[1]) {
			own = append(own, e)
		}
	}
	return own
}

// awaitSettled waits until all the spec's workflows have ended and the list says so.
func (s *spec) awaitSettled() []execution {
	s.Helper()
	for _, e := range s.ownExecutions() {
		if e.open {
			s.awaitEndOf(e)
		}
	}
	var own []execution
	require.Eventually(s, func() bool {
		own = s.ownExecutions()
		for _, e := range own {
			if e.open {
				return false
			}
		}
		return true
	}, patience, visibilityEvery, "workflows that are still open")
	return own
}

// awaitEndOf waits until one execution is over, however it ended.
func (s *spec) awaitEndOf(e execution) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	// How it ended is not of interest: a stage ends with its run.
	_ = s.Temporal.GetWorkflow(ctx, e.id, e.run).Get(ctx, nil)
	require.NoError(s, ctx.Err(), "waiting for the end of workflow %s", e.id)
}

// history reads all events of the newest execution of a workflow.
func (s *spec) history(id string) *history.History {
	s.Helper()
	return s.historyOf(id, "")
}

// historyOf reads all events of an execution of a workflow, of the newest if it is not named.
func (s *spec) historyOf(id, run string) *history.History {
	s.Helper()
	h := &history.History{}
	events := s.Temporal.GetWorkflowHistory(s.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(s, err, "reading the history of %s", id)
		h.Events = append(h.Events, event)
	}
	return h
}

// requireSoakedOnce asserts that every timer with which the workflow of a run has waited for the soak of its first stage ends with that
// soak: one that was begun anew would end later. How late the run goes on then depends on how busy the machine is.
func (s *spec) requireSoakedOnce(run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	s.Helper()
	until := *soakedUntil(run, 0)
	var now time.Time // of the workflow
	for _, event := range s.history(workflowOf(run)).GetEvents() {
		switch event.GetEventType() {
		case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			now = event.GetEventTime().AsTime()
		case enums.EVENT_TYPE_TIMER_STARTED:
			lasts := event.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration()
			summary := string(event.GetUserMetadata().GetSummary().GetData())
			if !strings.Contains(summary, stage+" until") || lasts <= time.Second {
				continue
			}
			s.Logf("at %s: timer %s of %s", now.Format(time.TimeOnly), summary, lasts)
			require.WithinDuration(s, until, now.Add(lasts), time.Second, "the soak was begun anew: %s", summary)
		}
	}
}

// requireNoSuchWorkflow asserts that Temporal refused because nothing of that ID runs.
func (s *spec) requireNoSuchWorkflow(err error) {
	s.Helper()
	var missing *serviceerror.NotFound
	require.Error(s, err)
	require.True(s, errors.As(err, &missing), "%v", err)
}

const (
	// quietFor is how long nothing may happen before it counts as quiet: longer than any pause between two looks at an
	// object that is not settled.
	quietFor = 4 * time.Second
	// quietTries is how many such windows there are: the last status of a placement is written a moment after its
	// workflow has ended.
	quietTries = 3
)

// requireQuiet asserts that the hub comes to write nothing about the spec's objects any more and to start no workflow for
// them.
func (s *spec) requireQuiet() {
	s.Helper()
	recordings := []*recording{
		s.record(s.hub, &placementv1beta1.ClusterResourcePlacement{}),
		s.record(s.hub, &placementv1beta1.ClusterStagedUpdateRun{}),
		s.record(s.hub, &placementv1beta1.ClusterApprovalRequest{}),
		s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine()),
		s.record(s.hub, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, s.mine()),
		s.record(s.hub, &placementv1beta1.ClusterResourceSnapshot{}, s.mine()),
		s.record(s.hub, &placementv1beta1.Work{}, s.mine()),
	}
	var happened []string
	for range quietTries {
		before := s.awaitSettled()
		happened = s.during(recordings, quietFor)
		if !cmp.Equal(before, s.ownExecutions(), cmp.AllowUnexported(execution{})) {
			happened = append(happened, fmt.Sprintf("executions before: %v, after: %v", before, s.ownExecutions()))
		}
		if len(happened) == 0 {
			return
		}
	}
	require.Empty(s, happened, "though nothing changes")
}

// during lets a window of time pass, for only that can show that nothing happens, and returns what did.
func (s *spec) during(recordings []*recording, window time.Duration) []string {
	s.Helper()
	before := make([]int, len(recordings))
	for i, r := range recordings {
		before[i] = len(r.soFar())
	}
	select {
	case <-time.After(window):
	case <-s.Context().Done():
	}
	var happened []string
	for i, r := range recordings {
		for _, c := range r.soFar()[before[i]:] {
			if s.owns(c.object.GetName()) {
				happened = append(happened, fmt.Sprintf("%s %T %s", c.kind, c.object, c.object.GetName()))
			}
		}
	}
	return happened
}
