package waker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// How often the audit is done, when it is done again after a failure, and how fast it pokes. A server that begins takes connections before
// it answers: what it has lost waits for the next attempt.
const (
	AuditInterval    = 30 * time.Second
	auditRetry       = 500 * time.Millisecond
	maxAuditRetry    = 5 * time.Second
	auditPokesPerSec = 20
)

// restartInterval is how long the workflow of an object is left alone after it was restarted: its code may fail again at once.
const restartInterval = 10 * time.Minute

// ReasonWorkflowRestarted is the reason of the event on an object whose workflow was ended because its tasks failed again and again.
const ReasonWorkflowRestarted = "WorkflowRestarted"

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
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	// PokesPerSecond is how many workflows are poked in a second; 0 is 20.
	PokesPerSecond int

	// idle are the workflows of runs that the last audit found open although nothing needs
	// them.
	idle map[string]struct{}
	// stuck are the runs of workflows that the last audit found stuck, restarted when a workflow was restarted last.
	stuck     map[string]struct{}
	restarted map[string]time.Time
}

// Temporal is what the audit needs of it.
type Temporal interface {
	Poker
	// ListOpen returns the IDs of the open workflows of placements and runs, with their types.
	ListOpen(ctx context.Context) (map[string]string, error)
	// PokeIfOpen pokes a workflow by its ID and starts none.
	PokeIfOpen(ctx context.Context, id string, poke wf.Poke) error
	// ListStuck returns the open workflows whose tasks fail again and again.
	ListStuck(ctx context.Context) ([]wf.Stuck, error)
	// EndStuck terminates one of them and returns why its tasks have failed.
	EndStuck(ctx context.Context, stuck wf.Stuck) (failure string, err error)
	// Connected reports new connections.
	Connected() <-chan struct{}
}

// NeedLeaderElection leaves the audit to the leader.
func (a *Auditor) NeedLeaderElection() bool { return true }

// Start audits until the context ends.
func (a *Auditor) Start(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	reconnected := true
	retry := auditRetry
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.Temporal.Connected():
			reconnected = true
			retry = auditRetry
		case <-next.C:
		}
		wait := AuditInterval
		if err := a.wakeMissing(ctx, reconnected); err != nil {
			a.Log.V(1).Info("The audit of workflows could not be done", "cause", err.Error())
			wait = retry
			retry = min(2*retry, maxAuditRetry)
			if !errors.Is(err, errNoAnswer) { // perhaps one workflow can never be started
				retry = min(2*wait, AuditInterval)
			}
		} else {
			reconnected = false
			retry = auditRetry
		}
		next.Reset(wait)
	}
}

// errNoAnswer says that Temporal does not tell which workflows are open.
var errNoAnswer = errors.New("listing the open workflows")

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
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	pokes := cmp.Or(a.PokesPerSecond, auditPokesPerSec)
	limit := rate.NewLimiter(rate.Limit(pokes), pokes)
	failed := a.releaseIdle(ctx, limit, open, needing)
	failed = errors.Join(failed, a.endStuck(ctx, limit, open, needing))
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

// endStuck ends the workflows whose tasks two audits in a row found failing, and takes them out of those that are open: they are
// started again from their objects, as the parent of a stage starts that again. One that a build cannot replay, or that panics,
// would stay as it is for ever otherwise, and looks open. A workflow is restarted once in a while only: if its code panics, it will
// again.
func (a *Auditor) endStuck(ctx context.Context, limit *rate.Limiter, open map[string]string, needing []wf.Ref) error {
	all, err := a.Temporal.ListStuck(ctx)
	if err != nil {
		return err
	}
	before := a.stuck
	now := a.Clock.Now()
	a.stuck = map[string]struct{}{}
	maps.DeleteFunc(a.restarted, func(_ string, at time.Time) bool { return now.Sub(at) >= restartInterval })
	var failed error
	for _, stuck := range all {
		a.stuck[stuck.RunID] = struct{}{}
		_, again := before[stuck.RunID]
		_, lately := a.restarted[stuck.ID]
		if !again || lately {
			continue
		}
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		failure, err := a.Temporal.EndStuck(ctx, stuck)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if a.restarted == nil {
			a.restarted = map[string]time.Time{}
		}
		a.restarted[stuck.ID] = now
		delete(open, stuck.ID)
		a.Log.Info("Ended a workflow whose tasks fail; it is started again from its object", "workflow", stuck.ID, "cause", failure)
		a.tellRestart(stuck, needing, failure)
	}
	return failed
}

// tellRestart reports a restart on the object of the workflow, if it still needs one.
func (a *Auditor) tellRestart(stuck wf.Stuck, needing []wf.Ref, failure string) {
	at := slices.IndexFunc(needing, func(ref wf.Ref) bool { return ref.ID() == stuck.Root })
	if at < 0 || a.Events == nil {
		return
	}
	a.Events.Eventf(ObjectOf(needing[at]), nil, corev1.EventTypeWarning, ReasonWorkflowRestarted, "RestartWorkflow",
		"Workflow %s could not go on and is started again from this object: %s", stuck.ID, failure)
}

// ObjectOf returns the object that a workflow works for, as events name it.
func ObjectOf(ref wf.Ref) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: placementv1beta1.GroupVersion.String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID),
	}
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
