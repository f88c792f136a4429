//go:build integration

package histories_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
	"github.com/fleetflow/fleetflow/test/histories"
	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// updateHistories asks to record, intoVariable where to if not here.
	updateHistories = "UPDATE_HISTORIES"
	intoVariable    = "HISTORIES_DIR"
	// patience is how long anything may take; what takes longer never comes.
	patience = time.Minute
	// temporalTool is the name of Temporal's development server among the tools of the local fleet.
	temporalTool = "temporal"
)

// TestRecordHistories has a real server of Temporal and the real workflows play each story, with activities that answer as the story says:
//
//	UPDATE_HISTORIES=1 go test -tags integration -run TestRecordHistories ./test/histories
func TestRecordHistories(t *testing.T) {
	if os.Getenv(updateHistories) == "" {
		t.Skipf("set %s=1 to record the histories anew", updateHistories)
	}
	usual := startServer(t)
	// On this one a history is long after 20 events.
	impatient := startServer(t, "--dynamic-config-value=limit.historyCount.suggestContinueAsNew=20")
	for _, story := range stories() {
		t.Run(story.name, func(t *testing.T) {
			server := usual
			if story.long {
				server = impatient
			}
			s := &session{T: t, server: server, story: story, calls: map[string]int{}, held: make(chan string, 100), release: make(chan struct{})}
			s.ref = story.ref
			s.ref.Name = story.name
			s.ref.UID = "uid-1"
			server.play(s)
			story.drive(s)
		})
	}
	t.Run("bad", func(t *testing.T) { recordBad(t, usual) })
}

// recordBad writes histories of workflows that are not ours: replay must refuse them. One has another step where ours schedules, the
// other ends where ours waits for further changes.
func recordBad(t *testing.T, server *server) {
	t.Helper()
	s := &session{T: t, server: server}
	id := wf.PlacementID("", "placement-created")
	other := s.historyOf(id, "")
	for _, event := range other.GetEvents() {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == wf.ScheduleClusters {
			scheduled.ActivityType.Name = wf.ScaleReplicas
		}
	}
	write(t, "bad-another-step", other)
	early := s.historyOf(id, "")
	for i, event := range early.GetEvents() {
		if event.GetTimerStartedEventAttributes() == nil {
			continue
		}
		early.Events = early.GetEvents()[:i+1]
		event.EventType = enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED
		event.UserMetadata = nil
		event.Attributes = &history.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
			WorkflowExecutionCompletedEventAttributes: &history.WorkflowExecutionCompletedEventAttributes{WorkflowTaskCompletedEventId: event.EventId - 1},
		}
		break
	}
	write(t, "bad-early-end", early)
}

// server is a Temporal with workers that play stories.
type server struct {
	client.Client
	mu       sync.Mutex
	sessions map[string]*session
}

func startServer(t *testing.T, arguments ...string) *server {
	t.Helper()
	tools, err := toolchain.Ensure(t.Context(), "../..", progress.New(os.Stdout), temporalTool)
	require.NoError(t, err)
	dev, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: tools[temporalTool], LogLevel: "never", Stdout: io.Discard, Stderr: io.Discard,
		ClientOptions: &client.Options{Namespace: wf.DefaultNamespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))},
		ExtraArgs: append(arguments, "--dynamic-config-value=history.transferProcessorMaxPollRPS=2000",
			"--dynamic-config-value=history.timerProcessorMaxPollRPS=2000"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = dev.Stop() })
	s := &server{Client: dev.Client(), sessions: map[string]*session{}}
	require.Eventually(t, func() bool { return worker.Ensure(t.Context(), s.Client, wf.DefaultNamespace) == nil }, patience, 100*time.Millisecond)
	for _, queue := range []string{wf.TaskQueue, wf.LongTaskQueue, wf.AdvanceTaskQueue, wf.MeasureTaskQueue} {
		w := sdkworker.New(s.Client, queue, sdkworker.Options{})
		worker.RegisterWorkflows(w)
		for _, name := range activityNames() {
			w.RegisterActivityWithOptions(s.answer, activity.RegisterOptions{Name: name})
		}
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	return s
}

func (s *server) play(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session.ref.ID()] = session
}

// answer answers every activity as its story says.
func (s *server) answer(ctx context.Context, _ json.RawMessage) (any, error) {
	info := activity.GetInfo(ctx)
	id, _, _ := strings.Cut(info.WorkflowExecution.ID, "/stage/")
	s.mu.Lock()
	session := s.sessions[id]
	s.mu.Unlock()
	return session.answer(ctx, info.ActivityType.Name)
}

// story is what happens to one execution, and to those that it starts.
type story struct {
	name string
	// long has the execution told soon that its history is long.
	long bool
	ref  wf.Ref
	// answers are those of each activity, one after the other; the last is repeated.
	answers map[string][]any
	drive   func(s *session)
}

// hold is the answer of an activity that waits until the story releases it.
type hold struct{ then any }

// takes is an answer that takes a while.
type takes struct {
	long time.Duration
	then any
}

// soon is an answer that names an instant.
type soon func(at time.Time) any

// session is a story that is being played.
type session struct {
	*testing.T
	*server
	story
	mu    sync.Mutex
	calls map[string]int
	// held has the name of each activity that waits.
	held    chan string
	release chan struct{}
}

func (s *session) answer(ctx context.Context, name string) (any, error) {
	s.mu.Lock()
	answers := s.answers[name]
	i := min(s.calls[name], len(answers)-1)
	s.calls[name]++
	s.mu.Unlock()
	if i < 0 {
		return nil, temporal.NewNonRetryableApplicationError("the story has no answer of "+name, "Story", nil)
	}
	return s.give(ctx, name, answers[i])
}

func (s *session) give(ctx context.Context, name string, answer any) (any, error) {
	switch answer := answer.(type) {
	case error:
		return nil, answer
	case soon:
		return answer(time.Now().UTC()), nil
	case func(context.Context) any:
		return answer(ctx), nil
	case takes:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(answer.long):
			return s.give(ctx, name, answer.then)
		}
	case hold:
		s.held <- name
		for {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-s.release:
				return s.give(ctx, name, answer.then)
			case <-time.After(time.Second):
				activity.RecordHeartbeat(ctx)
			}
		}
	}
	return answer, nil
}

// start starts the execution of the story as the hub agent does.
func (s *session) start(cause string) {
	s.Helper()
	attribute := temporal.NewSearchAttributeKeyKeyword(wf.PlacementAttribute)
	if s.ref.Execution().Type == wf.UpdateRunWorkflow {
		attribute = temporal.NewSearchAttributeKeyKeyword(wf.RunAttribute)
	}
	_, err := s.SignalWithStartWorkflow(s.Context(), s.ref.ID(), wf.PokeSignal, wf.Poke{UID: s.ref.UID, Cause: cause}, client.StartWorkflowOptions{
		TaskQueue: wf.TaskQueue, WorkflowTaskTimeout: wf.TaskTimeout, StaticSummary: s.ref.Kind + " " + s.ref.Key(),
		TypedSearchAttributes: temporal.NewSearchAttributes(attribute.ValueSet(s.ref.Key())),
	}, s.ref.Execution().Type, s.ref)
	require.NoError(s, err)
}

func (s *session) poke(cause string) {
	s.Helper()
	require.NoError(s, s.SignalWorkflow(s.Context(), s.ref.ID(), "", wf.PokeSignal, wf.Poke{UID: s.ref.UID, Cause: cause}))
}

func (s *session) stageID() string { return wf.StageID(s.ref.ID(), "one") }

// awaitHeld waits until an activity waits.
func (s *session) awaitHeld(name string) {
	s.Helper()
	for {
		select {
		case held := <-s.held:
			if held == name {
				return
			}
		case <-time.After(patience):
			s.Fatalf("%s is not called", name)
		}
	}
}

// letGo releases an activity that waits.
func (s *session) letGo() { s.release <- struct{}{} }

// awaitCalls waits until an activity was called so often.
func (s *session) awaitCalls(name string, n int) {
	s.Helper()
	require.Eventually(s, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.calls[name] >= n
	}, patience, 10*time.Millisecond, "calls of %s", name)
}

// awaitEnd waits until the newest execution of a workflow ends as it should.
func (s *session) awaitEnd(id string, want enums.WorkflowExecutionStatus) {
	s.Helper()
	var is enums.WorkflowExecutionStatus
	require.Eventually(s, func() bool {
		found, err := s.DescribeWorkflowExecution(s.Context(), id, "")
		is = found.GetWorkflowExecutionInfo().GetStatus()
		return err == nil && is == want
	}, patience, 50*time.Millisecond, "%s is %s", id, is)
}

// completes waits for the end and saves the history under the name of the story.
func (s *session) completes() {
	s.Helper()
	s.awaitEnd(s.ref.ID(), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	s.save(s.name, s.ref.ID(), "")
}

// save writes the history of an execution, the newest unless it is named.
func (s *session) save(file, id, run string) {
	s.Helper()
	recorded := s.historyOf(id, run)
	require.Empty(s, histories.FailedTask(recorded))
	write(s.T, file, recorded)
}

func (s *session) historyOf(id, run string) *history.History {
	s.Helper()
	var recorded history.History
	for events := s.GetWorkflowHistory(s.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		require.NoError(s, err)
		recorded.Events = append(recorded.Events, event)
	}
	return &recorded
}

func write(t *testing.T, file string, recorded *history.History) {
	t.Helper()
	content, err := protojson.Marshal(recorded)
	require.NoError(t, err)
	// protojson varies its white space on purpose; a recorded file shall change only with what is recorded.
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, content, "", " "))
	indented.WriteByte('\n')
	dir := os.Getenv(intoVariable)
	if dir == "" {
		dir = "."
	}
	require.NoError(t, os.WriteFile(dir+"/"+file+".json", indented.Bytes(), 0o644))
}

// firstRun returns the execution with which a chain of them began.
func (s *session) firstRun(id string) string {
	s.Helper()
	found, err := s.DescribeWorkflowExecution(s.Context(), id, "")
	require.NoError(s, err)
	return found.GetWorkflowExecutionInfo().GetFirstRunId()
}

// errForUser is one that only a person can correct.
var errForUser = temporal.NewNonRetryableApplicationError("only a person can correct it", wf.ErrorUser, nil)

// errOfNow is one that the next attempt does not have.
var errOfNow = errors.New("not now")
