//go:build integration

package histories_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// many is a large fleet, and mostBatch how many clusters one batch changes.
const (
	many      = 5000
	mostBatch = 1000
)

// largeRollout answers for the activity that advances: it proposes changes of clusters as that does, with names and UIDs as long as usual.
type largeRollout struct {
	written, landed, proposed int
	// window is how many clusters may be in flight, burst how many become available between two batches.
	window, burst int
	change        wf.Change
	batches       int
}

func (l *largeRollout) next(context.Context) wf.AdvanceResult {
	l.written = l.proposed
	if l.batches > 0 && l.landed+l.burst <= l.written {
		l.landed += l.burst
	}
	l.batches++
	out := wf.AdvanceResult{Epoch: int64(l.batches), Basis: "2fqxk3v8w9z1a", InFlight: l.written - l.landed, ProgressAt: time.Now().UTC()}
	for len(out.Next) < mostBatch && l.proposed < many && l.proposed-l.landed < l.window {
		change := l.change
		change.Cluster = fmt.Sprintf("member-%s-%06d", strings.Repeat("x", 11), l.proposed)
		change.UID = fmt.Sprintf("%08x", 0x1a2b3c4d+l.proposed)
		out.Next = append(out.Next, change)
		l.proposed++
	}
	out.Blocked = many - l.proposed
	out.Settled = len(out.Next) == 0
	return out
}

// What a rollout on 5,000 clusters leaves in Temporal: 2 MB at most for a first placement.
func TestTheHistoryOfALargePlacementIsSmall(t *testing.T) {
	if os.Getenv(updateHistories) == "" {
		t.Skipf("set %s=1 to measure it on a server of Temporal", updateHistories)
	}
	server := startServer(t)
	for name, test := range map[string]struct {
		rollout *largeRollout
		most    int64
	}{
		"first-placement": {&largeRollout{window: many, change: wf.Change{Op: wf.OpAdd, FromState: "Scheduled"}}, 2_000_000},
		// A hub that updates 70 clusters a second collects them for a second.
		"update-of-a-quarter": {&largeRollout{window: many / 4, burst: 70, change: wf.Change{Op: wf.OpUpdate, FromState: "Bound", FromRevision: "5ca1ab1e0ddba11"}},
			4_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{T: t, server: server, calls: map[string]int{}, story: story{name: name, ref: cluster, answers: rollsOut(map[string][]any{
				wf.AdvancePlacement: {func(ctx context.Context) any { return test.rollout.next(ctx) }},
			})}}
			s.ref.Name = name
			s.ref.UID = "uid-1"
			server.play(s)
			s.start(wf.CauseSpec)
			s.awaitEnd(s.ref.ID(), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
			size, events, executions := s.sizeOfChain(s.ref.ID())
			t.Logf("%s on %d clusters: %d bytes, %d events in %d executions, %d calls", name, many, size, events, executions, test.rollout.batches)
			require.Less(t, size, test.most)
			require.Equal(t, many, test.rollout.proposed)
		})
	}
}

// sizeOfChain returns what an execution and those that it goes on in have in the database.
func (s *session) sizeOfChain(id string) (size, events int64, executions int) {
	s.Helper()
	for run := s.firstRun(id); run != ""; executions++ {
		found, err := s.DescribeWorkflowExecution(s.Context(), id, run)
		require.NoError(s, err)
		size += found.GetWorkflowExecutionInfo().GetHistorySizeBytes()
		events += found.GetWorkflowExecutionInfo().GetHistoryLength()
		last := s.GetWorkflowHistory(s.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		run = ""
		for last.HasNext() {
			event, err := last.Next()
			require.NoError(s, err)
			run = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
	}
	return size, events, executions
}
