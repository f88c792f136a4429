package stagedupdate

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/workflows/call"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// approval is one approval sent through Temporal, from its arrival until it is
// written on the approval request, or refused.
type approval struct {
	wf.Approval
	door      string
	update    string
	malformed bool

	done   bool
	result act.ApprovalResult
	err    error
}

// register answers the approve update and the status query.
func (r *run) register(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, wf.ApproveUpdate, r.approve, workflow.UpdateHandlerOptions{
		Validator:   r.validate,
		Description: `Approve the stage that the run waits for: {"stage":"canary","comment":"lgtm"}`,
	})
	if err != nil {
		return fmt.Errorf("registering the approve update: %w", err)
	}
	err = workflow.SetQueryHandlerWithOptions(ctx, wf.StatusQuery, r.status, workflow.QueryHandlerOptions{
		Description: "The run's progress, stage by stage.",
	})
	if err != nil {
		return fmt.Errorf("registering the status query: %w", err)
	}
	return nil
}

// validate refuses, without a trace in the history, what cannot be approved.
// Before the run has been read, and while the gate of the stage is looked at,
// nothing can be said: the answer comes later.
func (r *run) validate(_ workflow.Context, a wf.Approval) error {
	if !r.loaded || r.checking != "" && r.checking == a.Stage {
		return nil
	}
	if _, sentence := r.judge(a); sentence != "" {
		return temporal.NewApplicationError(sentence, act.ErrorUser)
	}
	return nil
}

// approve queues an approval for the main coroutine and waits until it is
// written on the approval request.
func (r *run) approve(ctx workflow.Context, a wf.Approval) (string, error) {
	item := &approval{Approval: a, door: act.DoorUpdate, update: workflow.GetCurrentUpdateInfo(ctx).ID}
	r.approvals = append(r.approvals, item)
	r.arrived.SendAsync(true)
	if err := workflow.Await(ctx, func() bool { return item.done }); err != nil {
		return "", err
	}
	if item.err != nil {
		return "", item.err
	}
	if item.result.Already {
		return fmt.Sprintf("stage %s of run %s was approved before", a.Stage, r.ref.Key()), nil
	}
	return fmt.Sprintf("stage %s of run %s approved by %s, written to approval request %s",
		a.Stage, r.ref.Key(), item.result.By, item.result.Request), nil
}

// drainSignals takes the approve signals; what cannot be decoded is kept as
// malformed, so that its sender can be told.
func (r *run) drainSignals() {
	var raw converter.RawValue
	for r.signals.ReceiveAsync(&raw) {
		r.received++
		item := &approval{door: act.DoorSignal}
		if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &item.Approval); err != nil {
			item.malformed = true
		}
		r.approvals = append(r.approvals, item)
		raw = converter.RawValue{}
	}
}

// judge says why an approval cannot be accepted now: a reason for the event
// and a sentence for the sender, both empty when it can.
func (r *run) judge(a wf.Approval) (reason, sentence string) {
	waiting := r.waitingStage()
	const form = `send {"stage":"<stage>","comment":"<why>"}`
	switch {
	case a.Stage == "":
		return act.SignalMalformed, "the approval names no stage: " + form
	case len(r.state.Stages) == 0:
		return act.SignalNotWaiting, fmt.Sprintf("run %s has no stages: it is not initialized", r.ref.Key())
	case !r.knows(a.Stage):
		return act.SignalUnknownStage, fmt.Sprintf("run %s has no stage %q; its stages are %s", r.ref.Key(), a.Stage, r.stageNames())
	case waiting == "":
		return act.SignalNotWaiting, fmt.Sprintf("stage %s of run %s is not waiting for an approval: no stage is", a.Stage, r.ref.Key())
	case waiting != a.Stage:
		return act.SignalNotWaiting, fmt.Sprintf("stage %s of run %s is not waiting for an approval: stage %s waits for %s", a.Stage, r.ref.Key(), waiting, r.waitsFor())
	case !r.gate.state.NeedsApproval:
		return act.SignalNoApproval, fmt.Sprintf("stage %s of run %s needs no approval, or has it already", a.Stage, r.ref.Key())
	}
	return "", ""
}

// answer writes down, or reports as ignored, the approvals that have arrived.
func (r *run) answer(ctx workflow.Context) error {
	for len(r.approvals) > 0 {
		item := r.approvals[0]
		r.approvals = r.approvals[1:]
		if err := r.settle(ctx, item); err != nil {
			item.err = err
			item.done = true
			return err
		}
		item.done = true
	}
	return nil
}

func (r *run) settle(ctx workflow.Context, item *approval) error {
	reason, sentence := r.judge(item.Approval)
	if item.malformed {
		reason = act.SignalMalformed
	}
	if reason != "" {
		if item.door == act.DoorUpdate {
			item.err = temporal.NewApplicationError(sentence, act.ErrorUser)
			return nil
		}
		report := act.SignalReport{Run: r.ref, Reason: reason, Stage: item.Stage, Waiting: r.waitingStage()}
		_, err := call.Short[bool](ctx, act.ReportSignal, "report an approve signal that does nothing", report)
		return err
	}
	info := workflow.GetInfo(ctx).WorkflowExecution
	request := act.ApprovalRequest{
		StageRequest: act.StageRequest{Run: r.ref, Stage: item.Stage, Index: r.gate.stage},
		Before:       r.gate.before, Door: item.door, Comment: item.Comment,
		Workflow: info.ID, Execution: info.RunID, Update: item.update,
	}
	result, err := call.Short[act.ApprovalResult](ctx, act.RecordApproval, "write down the approval of "+item.Stage, request)
	if err != nil {
		return err
	}
	if result.Ended {
		r.reload = true
		return r.unwritten(ctx, item)
	}
	item.result = result
	r.gate.state.NeedsApproval = false
	return nil
}

// unwritten tells the sender of an approval that there is nothing any more to
// write it to: the run has ended, or somebody has deleted the request.
func (r *run) unwritten(ctx workflow.Context, item *approval) error {
	if item.door == act.DoorUpdate {
		item.err = temporal.NewApplicationError(fmt.Sprintf("the approval of stage %s was not written: run %s has ended, or its approval request was deleted; "+
			"look at the run and send the approval again", item.Stage, r.ref.Key()), act.ErrorUser)
		return nil
	}
	report := act.SignalReport{Run: r.ref, Reason: act.SignalNotWaiting, Stage: item.Stage}
	_, err := call.Short[bool](ctx, act.ReportSignal, "report an approve signal that does nothing", report)
	return err
}

func (r *run) waitingStage() string {
	if r.gate == nil {
		return ""
	}
	return r.gate.name
}

func (r *run) knows(stage string) bool {
	for _, st := range r.state.Stages {
		if st.Name == stage {
			return true
		}
	}
	return false
}

func (r *run) stageNames() string {
	names := make([]string, len(r.state.Stages))
	for i, st := range r.state.Stages {
		names[i] = st.Name
	}
	return strings.Join(names, ", ")
}
