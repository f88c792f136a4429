package stagedupdate

import (
	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/workflows/call"
)

// measuring is what is measured while a run waits at a gate.
type measuring struct {
	// ended receives when the gates are to be checked; nil if nothing was ever measured.
	ended  workflow.Channel
	cancel workflow.CancelFunc
	// under says what is being measured.
	under bool
}

// follow begins to measure what the gates ask for, unless that is being done, and ends what they no longer ask for.
func (m *measuring) follow(ctx workflow.Context, request *act.MeasureRequest, r *run) {
	if request == nil {
		m.stop()
		return
	}
	if m.under {
		return
	}
	if m.ended == nil {
		m.ended = workflow.NewNamedBufferedChannel(ctx, "ends of measuring", 1)
	}
	ctx, m.cancel = workflow.WithCancel(ctx)
	m.under = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		err := measureOn(ctx, *request, r)
		if m.under = false; err == nil {
			m.ended.SendAsync(true)
		}
	})
}

// stop ends what is being measured.
func (m *measuring) stop() {
	if m.cancel != nil {
		m.cancel()
		m.cancel = nil
	}
}

// measureOn measures until the gates are to be checked, or the history has become long. It needs no timer and no check of the
// gates between two calls: what is due soon, the activity waits for.
func measureOn(ctx workflow.Context, request act.MeasureRequest, r *run) error {
	for {
		var result act.MeasureResult
		if err := call.Measure(ctx, act.MeasureAnalysis, "measure the analysis of "+request.Stage, request).Get(ctx, &result); err != nil {
			return err
		}
		if !result.Again || call.Exhausted(ctx, r.signalsReceived()) {
			return nil
		}
	}
}
