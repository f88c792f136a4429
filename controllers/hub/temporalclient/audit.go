package temporalclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/time/rate"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// How often, and how fast, the audit looks and pokes.
const (
	AuditEvery  = 30 * time.Second
	auditRetry  = 500 * time.Millisecond
	pokesPerSec = 20
	pageSize    = 1000
)

// Source lists the objects of one kind that need a workflow now, from a cache.
// After a reconnect, when workflows may have been lost, that includes those
// that otherwise look after themselves.
type Source func(ctx context.Context, reconnected bool) ([]wf.Ref, error)

// Auditor makes sure that every object that needs work has an open workflow, and that no run's
// workflow waits for a run that is gone: on start, after each reconnect and every half minute.
// It is what brings rollouts back after Temporal has lost its database.
type Auditor struct {
	Engine    *Engine
	Namespace string
	Sources   []Source
	Log       logr.Logger

	// idle are the workflows of runs that the last audit found open although nothing needs
	// them.
	idle map[string]struct{}
}

// NeedLeaderElection leaves the audit to the leader.
func (a *Auditor) NeedLeaderElection() bool { return true }

// Start audits until the context ends.
func (a *Auditor) Start(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	reconnected, failures := true, auditRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.Engine.connected:
			reconnected = true
		case <-next.C:
		}
		wait := AuditEvery
		if err := a.audit(ctx, reconnected); err != nil {
			a.Log.V(1).Info("The audit of workflows could not be done", "cause", err.Error())
			wait, failures = failures, min(2*failures, AuditEvery)
		} else {
			reconnected, failures = false, auditRetry
		}
		next.Reset(wait)
	}
}

// audit pokes what has no open workflow.
func (a *Auditor) audit(ctx context.Context, reconnected bool) error {
	var needing []wf.Ref
	for _, source := range a.Sources {
		refs, err := source(ctx, reconnected)
		if err != nil {
			return fmt.Errorf("listing what needs a workflow: %w", err)
		}
		needing = append(needing, refs...)
	}
	open, err := a.open(ctx)
	if err != nil {
		return err
	}
	limit := rate.NewLimiter(pokesPerSec, pokesPerSec)
	failed := a.release(ctx, limit, open, needing)
	for _, ref := range needing {
		if _, has := open[ref.ID()]; has {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		a.Log.Info("Starting a missing workflow", "workflow", ref.ID())
		// One that cannot be started must not keep the others from it.
		failed = errors.Join(failed, a.Engine.Poke(ctx, ref, wf.Poke{UID: ref.UID, Cause: wf.CauseAudit}))
	}
	return failed
}

// release wakes the workflows of runs that nothing has needed for two audits: a run may have been
// deleted while Temporal was away, and its workflow would wait for an approval for ever. None is
// started for that.
func (a *Auditor) release(ctx context.Context, limit *rate.Limiter, open map[string]string, needing []wf.Ref) error {
	idle := map[string]struct{}{}
	for id, kind := range open {
		if kind == wf.UpdateRunWorkflow {
			idle[id] = struct{}{}
		}
	}
	for _, ref := range needing {
		delete(idle, ref.ID())
	}
	before := a.idle
	a.idle = idle
	var failed error
	for id := range idle {
		if _, again := before[id]; !again {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		err := a.Engine.Client.SignalWorkflow(ctx, id, "", wf.PokeSignal, wf.Poke{Cause: wf.CauseAudit})
		if _, gone := errors.AsType[*serviceerror.NotFound](err); err != nil && !gone {
			failed = errors.Join(failed, fmt.Errorf("waking workflow %s of a run that is gone: %w", id, err))
		}
	}
	return failed
}

// open lists the IDs of all open executions with their types, stages left out.
func (a *Auditor) open(ctx context.Context) (map[string]string, error) {
	if err := a.Engine.Ensure(ctx); err != nil {
		return nil, err
	}
	ids := map[string]string{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: a.Namespace, PageSize: pageSize,
		Query: fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", wf.PlacementWorkflow, wf.UpdateRunWorkflow),
	}
	for {
		ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
		page, err := a.Engine.Client.ListWorkflow(ctx, request)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("listing open workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			ids[e.GetExecution().GetWorkflowId()] = e.GetType().GetName()
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return ids, nil
		}
	}
}
