//go:build integration

package principals

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/worker"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Activities begin one after the other, so that the heartbeat of one or the other is due at each moment of the outage.
func TestAFrontendThatIsAwayForTenSecondsCancelsNoActivity(t *testing.T) {
	s := startServer(t, false)
	line := newLine(t, s.address)
	direct := s.as("hub-agent", "fleetflow:write")
	s.address = line.address
	agent := s.as("hub-agent", "fleetflow:write")
	release := make(chan struct{})
	w := sdkworker.New(agent, wf.AdvanceTaskQueue, worker.Options(agent, worker.Failures{Log: logr.Discard()}, 100))
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, ref wf.Ref) (ended string, err error) {
		err = call.Wait(ctx, wf.AdvancePlacement, "waits", wf.AdvanceRequest{Placement: ref}).Get(ctx, &ended)
		return ended, err
	}, workflow.RegisterOptions{Name: wf.PlacementWorkflow})
	w.RegisterActivityWithOptions(func(ctx context.Context, _ wf.AdvanceRequest) (string, error) {
		select {
		case <-release:
			return fmt.Sprintf("released in attempt %d", activity.GetInfo(ctx).Attempt), nil
		case <-ctx.Done():
			return fmt.Sprintf("canceled in attempt %d: %v", activity.GetInfo(ctx).Attempt, context.Cause(ctx)), nil
		}
	}, activity.RegisterOptions{Name: wf.AdvancePlacement})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	waiting := make([]client.WorkflowRun, int(call.HeartbeatPause/time.Second))
	for i := range waiting {
		ref := wf.Ref{Kind: "ClusterResourcePlacement", Name: fmt.Sprint("p", i)}
		var err error
		waiting[i], err = direct.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: ref.ID(), TaskQueue: wf.AdvanceTaskQueue, StartDelay: time.Duration(i) * time.Second,
		}, wf.PlacementWorkflow, ref)
		require.NoError(t, err)
	}
	// An activity that has ended sends no heartbeat any more; the end says how.
	heardSince := func(then time.Time) func() bool {
		return func() bool {
			for _, run := range waiting {
				found, err := direct.DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
				if err != nil {
					return false
				}
				pending := found.GetPendingActivities()
				open := found.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
				if open && (len(pending) != 1 || !pending[0].GetLastHeartbeatTime().AsTime().After(then)) {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, heardSince(time.Unix(1, 0)), patience, 100*time.Millisecond, "no heartbeat of each")
	line.cut()
	<-time.After(call.Outage)
	line.mend(t)
	require.Eventually(t, heardSince(time.Now()), patience, 100*time.Millisecond, "no heartbeat of each after the outage")
	close(release)
	for _, run := range waiting {
		var ended string
		require.NoError(t, direct.GetWorkflow(t.Context(), run.GetID(), run.GetRunID()).Get(t.Context(), &ended))
		assert.Equal(t, "released in attempt 1", ended, run.GetID())
	}
}

// line is a line to a server that can be cut.
type line struct {
	address, server string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	l := &line{address: "127.0.0.1:0", server: server}
	l.mend(t)
	l.address = l.listener.Addr().String()
	t.Cleanup(l.cut)
	return l
}

// mend lets clients connect.
func (l *line) mend(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", l.address)
	require.NoError(t, err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = listener
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.server)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			go pass(near, far)
			go pass(far, near)
		}
	}()
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// cut ends all connections and refuses new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}
