// Package waker wakes the workflows of placements and update runs by pokes. A poke is a signal that says that an
// object has changed; it starts the workflow where none is open, and carries nothing that a workflow decides by.
//
// Three things wake workflows: a Waker, for the reconciler that looks after the objects of a kind; a Debouncer, for
// watchers that see bursts of changes elsewhere; and an Auditor, for workflows that were lost.
package waker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Poker pokes the workflow of an object. An error means that Temporal could not be reached.
type Poker interface {
	Poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error
}

// retryPause is when a poke is repeated that Temporal has not taken; half as much is added at random, so that the
// objects of a fleet do not come back all at once.
const retryPause = 5 * time.Second

// PlacementRef names a placement for its workflow.
func PlacementRef(o placementv1beta1.PlacementObject) wf.Ref {
	return wf.Ref{Kind: placementv1beta1.ScopeOf(o).PlacementKind().Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: string(o.GetUID())}
}

// UpdateRunRef names an update run for its workflow.
func UpdateRunRef(o placementv1beta1.UpdateRunObject) wf.Ref {
	return wf.Ref{Kind: placementv1beta1.ScopeOf(o).UpdateRunKind().Kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: string(o.GetUID())}
}

// Waker wakes the workflows of the objects of one kind. What it remembers of them lives in memory only: after a
// restart of the hub, an object that needs its workflow wakes it once more.
type Waker struct {
	poker Poker
	clock clock.PassiveClock

	mu       sync.Mutex
	memories map[string]*memory
}

// New returns a Waker. Without a poker it wakes nothing.
func New(poker Poker, clk clock.PassiveClock) *Waker {
	return &Waker{poker: poker, clock: clk, memories: map[string]*memory{}}
}

// WakeIfDue pokes the workflow of an object if the object's need is due, and returns when to come back; 0 is not
// before the need changes. The reconciler calls it for one object at a time.
func (w *Waker) WakeIfDue(ctx context.Context, ref wf.Ref, generation int64, need Need) time.Duration {
	if w.poker == nil {
		return 0
	}
	memory := w.memoryOf(ref.Key())
	due, wait := memory.isDue(need, w.clock.Now())
	if !due {
		return wait
	}
	if retry := w.deliverPoke(ctx, memory, ref, generation, need); retry > 0 {
		return retry
	}
	_, wait = memory.isDue(need, w.clock.Now())
	return wait
}

// Wake pokes the workflow of an object at once. It returns after how long to try again; 0 if Temporal has taken the
// poke.
func (w *Waker) Wake(ctx context.Context, ref wf.Ref, generation int64, cause string) time.Duration {
	return w.deliverPoke(ctx, w.memoryOf(ref.Key()), ref, generation, Need{Cause: cause})
}

func (w *Waker) deliverPoke(ctx context.Context, memory *memory, ref wf.Ref, generation int64, need Need) time.Duration {
	now := w.clock.Now()
	err := w.poker.Poke(ctx, ref, wf.Poke{UID: ref.UID, Generation: generation, Cause: need.Cause})
	if err != nil {
		log.FromContext(ctx).Info("The workflow could not be woken; trying again", "workflow", ref.ID(), "poke", need.Cause, "cause", err.Error())
		pause := retryPause + rand.N(retryPause/2)
		memory.recordFailure(now.Add(pause))
		return pause
	}
	memory.recordDelivery(need, ref.UID, generation, now)
	return 0
}

// IsUnreachable reports whether the last poke of an object's workflow was not taken.
func (w *Waker) IsUnreachable(ref wf.Ref) bool { return w.memoryOf(ref.Key()).failing }

// HasWokenFor reports whether the workflow of an object has been poked since the object has this generation.
func (w *Waker) HasWokenFor(ref wf.Ref, generation int64) bool {
	memory := w.memoryOf(ref.Key())
	return memory.uid == ref.UID && memory.generation == generation
}

// Forget drops what is remembered of an object.
func (w *Waker) Forget(ref wf.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.memories, ref.Key())
}

func (w *Waker) memoryOf(key string) *memory {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.memories[key]
	if !ok {
		known = &memory{}
		w.memories[key] = known
	}
	return known
}
