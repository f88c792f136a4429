package work

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

const (
	// concurrentWorks is how many Works are looked at in parallel, and concurrentManifests how
	// many manifests of each.
	concurrentWorks     = 10
	concurrentManifests = 4
	// resync is how long the events are trusted. Changes are seen by the watch; this only
	// guards against what no event tells.
	resync = 15 * time.Minute
	// catchUp is when to make sure that the watch has seen what a pass has found: an object that
	// came and went while the watch was interrupted never shows.
	catchUp = 10 * time.Second
	// forEver is longer than any hub is away. Waiting for the hub is no reason to stop.
	forEver = 10 * 365 * 24 * time.Hour
)

// appliedWorkResource is what the member serves AppliedWorks as.
var appliedWorkResource = placementv1beta1.GroupVersion.WithResource("appliedworks")

// definitionResource is what the member serves CustomResourceDefinitions as.
var definitionResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Mode is what the agent does with the Works of its namespace.
type Mode int32

const (
	// ModeIdle does nothing at all: nobody has told the cluster yet whether to join, or whether
	// to keep what was placed on it. Works that are being deleted wait for that too.
	ModeIdle Mode = iota
	// ModeApply applies Works.
	ModeApply
	// ModeLeave removes all that was applied and applies nothing.
	ModeLeave
	// ModeAbandon leaves all that was applied in place and touches nothing any more.
	ModeAbandon
)

// Options are what a Reconciler needs.
type Options struct {
	// Namespace on the hub that has this member's Works.
	Namespace string
	// Hub reads Works from the cache.
	Hub client.Client
	// HubLive reads Works past the cache.
	HubLive client.Reader
	// Member reads and writes the member live.
	Member client.Client
	// Mapper knows which kinds the member has.
	Mapper meta.RESTMapper
	// Metadata watches the member's objects.
	Metadata metadata.Interface
	// Clock tells the time.
	Clock clock.PassiveClock
	// Log is for what concerns no single Work.
	Log logr.Logger
	// Pruning says how what left a Work is removed.
	Pruning Pruning
	// Metrics are reported to if they are given.
	Metrics *Metrics
	// Tracer, if it is given, makes spans of passes over Works that were written in a trace.
	Tracer trace.Tracer
	// Removed is called in ModeLeave whenever all that a Work had brought is gone.
	Removed func()
}

// Reconciler applies the Works of its namespace.
type Reconciler struct {
	Options
	engine   *apply.Engine
	rivals   *rivals
	watcher  *Watcher
	memories *memories
	// patience is how long a pass waits for the kinds that its Work defines.
	patience time.Duration

	// gate is held for reading while a Work is looked at, so that a change of mode waits until
	// nobody works in the old one.
	gate sync.RWMutex
	mode Mode
	// untold is whether not every Work has been brought up yet since the mode has changed.
	untold atomic.Bool

	// due has the Works to look at.
	due dueWorks
}

// NewReconciler returns a Reconciler in ModeIdle.
func NewReconciler(o Options) *Reconciler {
	r := &Reconciler{Options: o, memories: newMemories(), patience: servedWithin, due: dueWorks{namespace: o.Namespace}}
	r.rivals = &rivals{hub: o.Hub, member: o.Member, namespace: o.Namespace}
	r.engine = &apply.Engine{Client: o.Member, Mapper: o.Mapper, Rivals: r.rivals, Propagation: o.Pruning.Propagation}
	r.watcher = NewWatcher(o.Metadata, o.Log, r.noticed)
	// An AppliedWork bears its Work's name. The first list of them also brings up those whose
	// Work vanished while no agent was there: they are to be removed when the cluster leaves.
	r.watcher.Pin(appliedWorkResource, func(name types.NamespacedName) []string { return []string{name.Name} })
	// A new definition may be of a kind that a Work waits for.
	r.watcher.Pin(definitionResource, func(name types.NamespacedName) []string {
		_, group, _ := strings.Cut(name.Name, ".")
		return r.memories.waitingFor(group)
	})
	return r
}

// SetupWithManager starts the controller and its watches with the manager of the member; the
// Works come from the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, hub cluster.Cluster) error {
	c, err := controller.New("work", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrentWorks,
		CacheSyncTimeout:        forEver,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastReconnect),
	})
	if err != nil {
		return fmt.Errorf("creating the work controller: %w", err)
	}
	works := source.Kind(hub.GetCache(), &placementv1beta1.Work{}, &handler.TypedEnqueueRequestForObject[*placementv1beta1.Work]{},
		predicate.TypedFuncs[*placementv1beta1.Work]{UpdateFunc: concerns})
	if err := c.Watch(works); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	if err := c.Watch(source.Func(r.due.attach)); err != nil {
		return fmt.Errorf("watching applied objects: %w", err)
	}
	return mgr.Add(r.watcher)
}

// concerns tells whether a change of a Work is for the agent to act on. Its own status is not.
func concerns(e event.TypedUpdateEvent[*placementv1beta1.Work]) bool {
	return e.ObjectOld.UID != e.ObjectNew.UID ||
		e.ObjectOld.Generation != e.ObjectNew.Generation ||
		e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
}

// SetMode says what to do with Works from now on. If that changes anything, it waits for what
// is under way, and every Work and every AppliedWork is looked at again. The mode holds even if
// that fails; setting it again makes up for it.
func (r *Reconciler) SetMode(ctx context.Context, mode Mode) error {
	if !r.change(mode) {
		return nil
	}
	// Listed only now: a Work that arrives later is looked at in the new mode anyway.
	works := &placementv1beta1.WorkList{}
	if err := r.Hub.List(ctx, works, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		r.due.add(works.Items[i].Name, urgencyRecheck)
	}
	for _, name := range r.watcher.Names(appliedWorkResource) {
		r.due.add(name, urgencyRecheck)
	}
	r.untold.Store(false)
	return nil
}

// change changes the mode and tells whether Works are to be brought up. It does not wait for
// what is under way if there is nothing to change.
func (r *Reconciler) change(mode Mode) bool {
	r.gate.RLock()
	same := r.mode == mode
	r.gate.RUnlock()
	if same {
		return r.untold.Load()
	}
	r.gate.Lock()
	defer r.gate.Unlock()
	r.mode = mode
	r.untold.Store(true)
	return true
}

// Remaining returns the names of the Works of which something is still on the member.
func (r *Reconciler) Remaining(ctx context.Context) ([]string, error) {
	list := &placementv1beta1.AppliedWorkList{}
	if err := r.Member.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing AppliedWorks: %w", err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].Spec.WorkNamespace == r.Namespace {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// Reconcile brings the member to where one Work wants it. Whatever it leaves to be looked at
// again comes after what is new.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, req)
	result.Priority = new(urgencyRecheck)
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.gate.RLock()
	defer r.gate.RUnlock()
	mode := r.mode
	if mode == ModeIdle {
		r.memories.forget(req.Name)
		return reconcile.Result{}, nil // SetMode brings up every Work again
	}
	work := &placementv1beta1.Work{}
	err := r.Hub.Get(ctx, req.NamespacedName, work)
	switch {
	case apierrors.IsNotFound(err):
		return r.withoutWork(ctx, req.NamespacedName, mode)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading Work %s: %w", req, err)
	case !work.DeletionTimestamp.IsZero():
		return r.finalize(ctx, work, mode)
	case mode == ModeLeave:
		return r.leave(ctx, work.Name)
	case mode != ModeApply:
		return reconcile.Result{}, nil
	}
	return r.applyWork(ctx, work)
}

// applyWork runs one pass and decides when the next is due.
func (r *Reconciler) applyWork(ctx context.Context, work *placementv1beta1.Work) (reconcile.Result, error) {
	mem := r.memories.of(work)
	if r.nothingNew(work, mem) {
		return reconcile.Result{RequeueAfter: r.untilNext(mem)}, nil
	}
	first, began := mem.generation != work.Generation, r.Clock.Now()
	if err := r.tracedPass(ctx, work, mem); err != nil {
		mem.settled = false
		if first {
			mem.outcomes = nil // of other manifests; some of these have perhaps been written over them
		}
		return reconcile.Result{}, err
	}
	if first {
		r.Metrics.applied(r.Clock.Since(began))
	}
	return reconcile.Result{RequeueAfter: r.untilNext(mem)}, nil
}

// untilNext is how long to wait for the next look at a Work if no event calls for one earlier.
func (r *Reconciler) untilNext(mem *memory) time.Duration {
	wait := r.untilResync(mem)
	if next := nextTry(mem.outcomes); !next.IsZero() {
		wait = min(wait, jitter(max(time.Millisecond, next.Sub(r.Clock.Now()))))
	}
	if r.ahead(mem.outcomes) {
		wait = min(wait, catchUp)
	}
	if mem.mirroring.owed {
		wait = min(wait, max(time.Millisecond, mem.mirroring.next().Sub(r.Clock.Now())))
	}
	if mem.leaving {
		wait = min(wait, removalResync)
	}
	if held := heldUntil(mem.outcomes); !held.IsZero() {
		wait = min(wait, max(time.Millisecond, held.Sub(r.Clock.Now())))
	}
	return wait
}

// nothingNew tells whether the last pass still holds: the Work is the same, and every object
// stands at the version that pass saw.
func (r *Reconciler) nothingNew(work *placementv1beta1.Work, mem *memory) bool {
	if !mem.settled || mem.leaving || mem.generation != work.Generation || r.Clock.Since(mem.checked) >= resync {
		return false
	}
	if mem.mirroring.due(r.Clock.Now()) || mem.applied != nil && !r.trusted(mem.applied) {
		return false
	}
	for _, o := range mem.outcomes {
		if !r.unchanged(o) {
			return false
		}
	}
	return true
}

// unchanged tells whether what was found out about a manifest still holds.
func (r *Reconciler) unchanged(o outcome) bool {
	if o.retry || !o.looked {
		return !o.retry
	}
	if o.held && !o.repairs.hold(r.Clock.Now()) {
		return false
	}
	return r.watcher.Stands(o.object(), o.seen) != moved
}

// trusted tells whether an AppliedWork stands as it was last written.
func (r *Reconciler) trusted(applied *placementv1beta1.AppliedWork) bool {
	o := object{gvr: appliedWorkResource, name: types.NamespacedName{Name: applied.Name}}
	return r.watcher.Stands(o, sighting{uid: applied.UID, resourceVersion: applied.ResourceVersion}) != moved
}

// ahead tells whether a pass has found more than the watch has seen so far.
func (r *Reconciler) ahead(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.looked && r.watcher.Stands(o.object(), o.seen) != same {
			return true
		}
	}
	return false
}

func (r *Reconciler) untilResync(mem *memory) time.Duration {
	return max(time.Second, jitter(resync-r.Clock.Since(mem.checked)))
}

// jitter spreads a delay by a tenth, upwards, so that it is over when it is looked at.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(max(d/10, 1)))) //nolint:gosec // spreading load needs no secrecy
}
