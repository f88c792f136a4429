package stagedupdate

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// approveForm tells people in the Temporal UI what they can send.
const approveForm = `Approve the stage that the run waits for: {"stage":"canary","comment":"lgtm"}`

// approval is one approval sent through Temporal, from its arrival until it is
// written to the approval request, or refused.
type approval struct {
	wf.Approval
	channel   string
	update    string
	malformed bool

	done   bool
	result wf.ApprovalResult
	err    error
}

// approvalInbox takes the approvals that users send to a run through Temporal.
type approvalInbox struct {
	run     *run
	signals workflow.ReceiveChannel
	// arrived wakes the main coroutine when an update has queued an approval.
	arrived workflow.Channel
	// queued are approvals that are not answered yet, received is how many signals there have been.
	queued   []*approval
	received int
}

func newApprovalInbox(ctx workflow.Context, r *run) *approvalInbox {
	return &approvalInbox{
		run:     r,
		signals: workflow.GetSignalChannelWithOptions(ctx, wf.ApproveSignal, workflow.SignalChannelOptions{Description: approveForm}),
		arrived: workflow.NewNamedBufferedChannel(ctx, "approvals by update", 1),
	}
}

// registerUpdate lets the inbox answer the approve update.
func (b *approvalInbox) registerUpdate(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, wf.ApproveUpdate, b.handleUpdate, workflow.UpdateHandlerOptions{
		Validator:   b.validateUpdate,
		Description: approveForm,
	})
	if err != nil {
		return fmt.Errorf("registering the approve update: %w", err)
	}
	return nil
}

// validateUpdate refuses, without a trace in the history, what cannot be approved.
// Before the run has been read, and while the tasks of the stage are checked,
// this is not known: the answer comes later.
func (b *approvalInbox) validateUpdate(_ workflow.Context, a wf.Approval) error {
	if !b.run.loaded || b.run.checking != "" && b.run.checking == a.Stage {
		return nil
	}
	if _, sentence := b.refusalOf(a); sentence != "" {
		return temporal.NewApplicationError(sentence, wf.ErrorUser)
	}
	return nil
}

// handleUpdate queues an approval for the main coroutine and waits until it is
// written to the approval request.
func (b *approvalInbox) handleUpdate(ctx workflow.Context, a wf.Approval) (string, error) {
	item := &approval{Approval: a, channel: wf.ChannelUpdate, update: workflow.GetCurrentUpdateInfo(ctx).ID}
	b.queued = append(b.queued, item)
	b.arrived.SendAsync(true)
	if err := workflow.Await(ctx, func() bool { return item.done }); err != nil {
		return "", err
	}
	if item.err != nil {
		return "", item.err
	}
	if item.result.Already {
		return fmt.Sprintf("stage %s of run %s was approved before", a.Stage, b.run.ref.Key()), nil
	}
	return fmt.Sprintf("stage %s of run %s approved by %s, written to approval request %s",
		a.Stage, b.run.ref.Key(), item.result.By, item.result.Request), nil
}

// addTo lets a selector return when an approval has arrived.
func (b *approvalInbox) addTo(s workflow.Selector) {
	s.AddReceive(b.signals, func(workflow.ReceiveChannel, bool) { b.drainSignals() })
	s.AddReceive(b.arrived, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
}

// drainSignals queues the approvals that came as signals; one that cannot be decoded is kept as malformed, so that its sender
// gets an answer.
func (b *approvalInbox) drainSignals() {
	var raw converter.RawValue
	for b.signals.ReceiveAsync(&raw) {
		b.received++
		item := &approval{channel: wf.ChannelSignal}
		if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &item.Approval); err != nil {
			item.malformed = true
		}
		b.queued = append(b.queued, item)
		raw = converter.RawValue{}
	}
}

// refusalOf returns why an approval cannot be accepted now: a reason for the event
// and a sentence for the sender, both empty when it can.
func (b *approvalInbox) refusalOf(a wf.Approval) (reason, sentence string) {
	run, stages, waiting := b.run.ref.Key(), stageNames(b.run.state), b.run.gate.stageName()
	const form = `send {"stage":"<stage>","comment":"<why>"}`
	switch {
	case a.Stage == "":
		return wf.SignalMalformed, "the approval names no stage: " + form
	case len(stages) == 0:
		return wf.SignalNotWaiting, fmt.Sprintf("run %s has no stages: it is not initialized", run)
	case !slices.Contains(stages, a.Stage):
		return wf.SignalUnknownStage, fmt.Sprintf("run %s has no stage %q; its stages are %s", run, a.Stage, strings.Join(stages, ", "))
	case waiting == "":
		return wf.SignalNotWaiting, fmt.Sprintf("stage %s of run %s is not waiting for an approval: no stage is", a.Stage, run)
	case waiting != a.Stage:
		return wf.SignalNotWaiting, fmt.Sprintf("stage %s of run %s is not waiting for an approval: stage %s waits for %s",
			a.Stage, run, waiting, b.run.gate.describeWaits())
	case !b.run.gate.state.NeedsApproval():
		return wf.SignalNoApproval, fmt.Sprintf("stage %s of run %s needs no approval, or has it already", a.Stage, run)
	}
	return "", ""
}

// answerQueued writes down, or reports as ignored, the approvals that have arrived.
func (b *approvalInbox) answerQueued(ctx workflow.Context) error {
	for len(b.queued) > 0 {
		item := b.queued[0]
		b.queued = b.queued[1:]
		err := b.answerOne(ctx, item)
		if err != nil {
			item.err = err
		}
		item.done = true
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *approvalInbox) answerOne(ctx workflow.Context, item *approval) error {
	reason, sentence := b.refusalOf(item.Approval)
	if item.malformed {
		reason = wf.SignalMalformed
	}
	if reason != "" {
		return b.refuse(ctx, item, sentence, wf.SignalReport{Reason: reason, Waiting: b.run.gate.stageName()})
	}
	info := workflow.GetInfo(ctx).WorkflowExecution
	gate := b.run.gate
	request := wf.ApprovalRequest{
		StageRequest: wf.StageRequest{Run: b.run.ref, Stage: item.Stage, Index: gate.stage},
		Before:       gate.before, Channel: item.channel, Comment: item.Comment, PlanHash: item.PlanHash,
		Workflow: info.ID, Execution: info.RunID, Update: item.update,
	}
	result, err := call.Short[wf.ApprovalResult](ctx, wf.RecordApproval, "write down the approval of "+item.Stage, request)
	if err != nil {
		return err
	}
	if result.Ended {
		b.run.reload = true
		return b.refuse(ctx, item, fmt.Sprintf("the approval of stage %s was not written: run %s has ended, or its approval request was deleted; "+
			"look at the run and send the approval again", item.Stage, b.run.ref.Key()), wf.SignalReport{Reason: wf.SignalNotWaiting})
	}
	if result.Refused != "" { // the activity has said so in an event
		if item.channel == wf.ChannelUpdate {
			item.err = temporal.NewApplicationError(result.Refused, wf.ErrorUser)
		}
		return nil
	}
	item.result = result
	gate.state.Approved()
	return nil
}

// refuse tells the sender of an approval why it did nothing: in the answer to an update, and by an
// event for a signal, which has no answer.
func (b *approvalInbox) refuse(ctx workflow.Context, item *approval, sentence string, report wf.SignalReport) error {
	if item.channel == wf.ChannelUpdate {
		item.err = temporal.NewApplicationError(sentence, wf.ErrorUser)
		return nil
	}
	report.Run = b.run.ref
	report.Stage = item.Stage
	_, err := call.Short[bool](ctx, wf.ReportSignal, "report an approve signal that does nothing", report)
	return err
}

func stageNames(s wf.RunState) []string {
	names := make([]string, len(s.Stages))
	for i, st := range s.Stages {
		names[i] = st.Name
	}
	return names
}
