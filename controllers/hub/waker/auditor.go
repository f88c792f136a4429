package waker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// How often the audit is done, when it is done again after a failure, and how fast it pokes.
const (
	AuditInterval    = 30 * time.Second
	auditRetry       = 500 * time.Millisecond
	auditPokesPerSec = 20
)

// Source lists the objects of one kind that need a workflow now, from a cache.
// After a reconnect, when workflows may have been lost, that includes those
// that otherwise look after themselves.
type Source func(ctx context.Context, reconnected bool) ([]wf.Ref, error)

// Auditor makes sure that every object that needs work has an open workflow, and that no run's
// workflow waits for a run that is gone: on start, after each reconnect and every half minute.
// It is what brings rollouts back after Temporal has lost its database.
type Auditor struct {
	Temporal Temporal
	Sources  []Source
	Log      logr.Logger

	// idle are the workflows of runs that the last audit found open although nothing needs
	// them.
	idle map[string]struct{}
}

// Temporal is what the audit needs of it.
type Temporal interface {
	Poker
	// ListOpen returns the IDs of the open workflows of placements and runs, with their types.
	ListOpen(ctx context.Context) (map[string]string, error)
	// PokeIfOpen pokes a workflow by its ID and starts none.
	PokeIfOpen(ctx context.Context, id string, poke wf.Poke) error
	// Connected tells of new connections.
	Connected() <-chan struct{}
}

// NeedLeaderElection leaves the audit to the leader.
func (a *Auditor) NeedLeaderElection() bool { return true }

// Start audits until the context ends.
func (a *Auditor) Start(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	reconnected, retry := true, auditRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.Temporal.Connected():
			reconnected = true
		case <-next.C:
		}
		wait := AuditInterval
		if err := a.wakeMissing(ctx, reconnected); err != nil {
			a.Log.V(1).Info("The audit of workflows could not be done", "cause", err.Error())
			wait, retry = retry, min(2*retry, AuditInterval)
		} else {
			reconnected, retry = false, auditRetry
		}
		next.Reset(wait)
	}
}

// wakeMissing pokes the workflows that are missing.
func (a *Auditor) wakeMissing(ctx context.Context, reconnected bool) error {
	var needing []wf.Ref
	for _, source := range a.Sources {
		refs, err := source(ctx, reconnected)
		if err != nil {
			return fmt.Errorf("listing what needs a workflow: %w", err)
		}
		needing = append(needing, refs...)
	}
	open, err := a.Temporal.ListOpen(ctx)
	if err != nil {
		return err
	}
	limit := rate.NewLimiter(auditPokesPerSec, auditPokesPerSec)
	failed := a.releaseIdle(ctx, limit, open, needing)
	for _, ref := range needing {
		if _, has := open[ref.ID()]; has {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		a.Log.Info("Starting a missing workflow", "workflow", ref.ID())
		// One that cannot be started must not keep the others from it.
		failed = errors.Join(failed, a.Temporal.Poke(ctx, ref, wf.Poke{UID: ref.UID, Cause: wf.CauseAudit}))
	}
	return failed
}

// releaseIdle wakes the workflows of runs that nothing has needed for two audits: a run may have been
// deleted while Temporal was away, and its workflow would wait for an approval for ever. None is
// started for that.
func (a *Auditor) releaseIdle(ctx context.Context, limit *rate.Limiter, open map[string]string, needing []wf.Ref) error {
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
		failed = errors.Join(failed, a.Temporal.PokeIfOpen(ctx, id, wf.Poke{Cause: wf.CauseAudit}))
	}
	return failed
}
