package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
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

// Auditor makes sure that every object that needs work has an open workflow:
// on start, after each reconnect and every half minute. It is what brings
// rollouts back after Temporal has lost its database.
type Auditor struct {
	Engine    *Engine
	Namespace string
	Sources   []Source
	Log       logr.Logger
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
	if len(needing) == 0 {
		return nil
	}
	open, err := a.open(ctx)
	if err != nil {
		return err
	}
	var failed error
	limit := rate.NewLimiter(pokesPerSec, pokesPerSec)
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

// open lists the IDs of all open executions, stages left out.
func (a *Auditor) open(ctx context.Context) (map[string]struct{}, error) {
	if err := a.Engine.Ensure(ctx); err != nil {
		return nil, err
	}
	ids := map[string]struct{}{}
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
			ids[e.GetExecution().GetWorkflowId()] = struct{}{}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return ids, nil
		}
	}
}
