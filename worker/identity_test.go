package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// temporal serves the history of one execution, newest first, in pages of two.
type temporal struct {
	workflowservice.WorkflowServiceClient
	t      *testing.T
	events []*history.HistoryEvent
	pages  int
	err    error
}

// connected is a client of that server.
type connected struct {
	client.Client
	server *temporal
}

// WorkflowService returns the server itself.
func (c connected) WorkflowService() workflowservice.WorkflowServiceClient { return c.server }

// GetWorkflowExecutionHistoryReverse serves a page; its token has the length of the position.
func (s *temporal) GetWorkflowExecutionHistoryReverse(_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryReverseRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	if s.err != nil {
		return nil, s.err
	}
	assert.Equal(s.t, "space", in.GetNamespace())
	assert.Equal(s.t, "updaterun/run", in.GetExecution().GetWorkflowId())
	assert.Equal(s.t, "execution", in.GetExecution().GetRunId())
	first := len(in.GetNextPageToken())
	s.pages++
	page := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &history.History{}}
	for i := len(s.events) - 1 - first; i >= 0 && len(page.GetHistory().GetEvents()) < 2; i-- {
		page.History.Events = append(page.History.Events, s.events[i])
	}
	if next := first + 2; next < len(s.events) {
		page.NextPageToken = make([]byte, next)
	}
	return page, nil
}

func payload(t *testing.T, value any) *common.Payloads {
	t.Helper()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	return payloads
}

func signalled(t *testing.T, name, identity string, value any) *history.HistoryEvent {
	t.Helper()
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &history.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &history.WorkflowExecutionSignaledEventAttributes{
			SignalName: name, Identity: identity, Input: payload(t, value),
		}},
	}
}

func updated(id, identity string) *history.HistoryEvent {
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		Attributes: &history.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{WorkflowExecutionUpdateAcceptedEventAttributes: &history.WorkflowExecutionUpdateAcceptedEventAttributes{
			AcceptedRequest: &update.Request{Meta: &update.Meta{UpdateId: id, Identity: identity}},
		}},
	}
}

func reset() *history.HistoryEvent {
	return &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		Attributes: &history.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &history.WorkflowTaskFailedEventAttributes{
			Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
		}},
	}
}

func by(principal string, event *history.HistoryEvent) *history.HistoryEvent {
	event.Principal = &common.Principal{Name: principal}
	return event
}

func TestTheApproverIsWhoSentTheNewestApprovalThroughTheDoor(t *testing.T) {
	approval := func(identity, stage string) *history.HistoryEvent {
		return signalled(t, wf.ApproveSignal, identity, wf.Approval{Stage: stage})
	}
	for sentence, test := range map[string]struct {
		events   []*history.HistoryEvent
		request  wf.ApprovalRequest
		who      string
		verified bool
	}{
		"a signal says who sent it, which nobody has checked": {
			events: []*history.HistoryEvent{approval("ada@laptop", "canary")}, who: "ada@laptop",
		},
		"the newest of the stage counts": {
			events: []*history.HistoryEvent{approval("bob", "canary"), approval("ada", "canary"), approval("eve", "prod")}, who: "ada",
		},
		"neither pokes nor malformed signals approve": {
			events: []*history.HistoryEvent{
				approval("ada", "canary"), signalled(t, wf.PokeSignal, "hub-agent", wf.Approval{Stage: "canary"}), signalled(t, wf.ApproveSignal, "eve", "canary"),
			}, who: "ada",
		},
		"who the server vouches for is verified": {
			events: []*history.HistoryEvent{by("ada", approval("somebody", "canary"))}, who: "ada", verified: true,
		},
		"the principal of an update is that of who accepts it, not of who sends it": {
			events:  []*history.HistoryEvent{by("hub-agent", updated("u1", "eve"))},
			request: wf.ApprovalRequest{Channel: wf.ChannelUpdate, Update: "u1"}, who: "eve",
		},
		"the principal of a signal that a reset takes along is that of who resets": {
			events: []*history.HistoryEvent{by("ada", reset()), by("ada", signalled(t, wf.PokeSignal, "hub-agent", wf.Poke{})), by("ada", approval("eve", "canary"))}, who: "eve",
		},
		"a signal after a reset has the principal of its sender": {
			events: []*history.HistoryEvent{
				by("ada", reset()), by("ada", &history.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED}), by("bob", approval("somebody", "canary")),
			}, who: "bob", verified: true,
		},
		"a sender without a name is unknown": {
			events: []*history.HistoryEvent{approval("", "canary")}, who: "unknown",
		},
		"an approval that is not there is nobody's": {
			events: []*history.HistoryEvent{approval("ada", "prod")}, who: "",
		},
		"an update is found by its id": {
			events:  []*history.HistoryEvent{updated("u1", "ada"), updated("u2", "eve"), approval("bob", "canary")},
			request: wf.ApprovalRequest{Channel: wf.ChannelUpdate, Update: "u1"}, who: "ada",
		},
		"an update without an id is nobody's": {
			events: []*history.HistoryEvent{updated("", "eve")}, request: wf.ApprovalRequest{Channel: wf.ChannelUpdate}, who: "",
		},
		"an update of before a reset is found by its instance": {
			events: []*history.HistoryEvent{{
				EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
				Attributes: &history.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
					WorkflowExecutionUpdateAcceptedEventAttributes: &history.WorkflowExecutionUpdateAcceptedEventAttributes{ProtocolInstanceId: "u1"},
				},
			}}, request: wf.ApprovalRequest{Channel: wf.ChannelUpdate, Update: "u1"}, who: "unknown",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := &temporal{t: t, events: test.events}
			if test.request.Channel == "" {
				test.request.Channel = wf.ChannelSignal
			}
			test.request.Stage = "canary"
			test.request.Workflow = "updaterun/run"
			test.request.Execution = "execution"
			identities := worker.Identities{Client: connected{server: server}, Namespace: "space", Converter: converter.GetDefaultDataConverter()}
			who, verified, err := identities.Approver(t.Context(), test.request)
			require.NoError(t, err)
			assert.Equal(t, test.who, who)
			assert.Equal(t, test.verified, verified)
		})
	}
}

func TestAnApprovalIsReadAsTheClientWritesIt(t *testing.T) {
	packed := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	event := signalled(t, wf.ApproveSignal, "ada", wf.Approval{Stage: "canary"})
	input, err := packed.ToPayloads(wf.Approval{Stage: "canary"})
	require.NoError(t, err)
	event.GetWorkflowExecutionSignaledEventAttributes().Input = input
	identities := worker.Identities{Client: connected{server: &temporal{t: t, events: []*history.HistoryEvent{event}}}, Namespace: "space", Converter: packed}
	who, _, err := identities.Approver(t.Context(), wf.ApprovalRequest{
		StageRequest: wf.StageRequest{Stage: "canary"}, Channel: wf.ChannelSignal, Workflow: "updaterun/run", Execution: "execution",
	})
	require.NoError(t, err)
	assert.Equal(t, "ada", who)
}

func TestTheCancellerIsWhoAskedToCancel(t *testing.T) {
	cancelled := &history.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
		Attributes: &history.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
			WorkflowExecutionCancelRequestedEventAttributes: &history.WorkflowExecutionCancelRequestedEventAttributes{Identity: "grace@desk"},
		},
	}
	poke := signalled(t, wf.PokeSignal, "hub-agent", wf.Poke{})
	server := &temporal{t: t, events: []*history.HistoryEvent{cancelled, poke, poke, poke}}
	identities := worker.Identities{Client: connected{server: server}, Namespace: "space", Converter: converter.GetDefaultDataConverter()}
	who, err := identities.Canceller(t.Context(), "updaterun/run", "execution")
	require.NoError(t, err)
	assert.Equal(t, "grace@desk", who)
	assert.Equal(t, 2, server.pages, "further pages are read until it is found")

	server.events = []*history.HistoryEvent{poke}
	who, err = identities.Canceller(t.Context(), "updaterun/run", "execution")
	require.NoError(t, err)
	assert.Empty(t, who, "nobody has asked")

	server.err = errors.New("not now")
	_, err = identities.Canceller(t.Context(), "updaterun/run", "execution")
	require.ErrorContains(t, err, "reading the history of workflow updaterun/run: not now")
}
