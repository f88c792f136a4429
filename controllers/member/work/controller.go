package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
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
	"github.com/fleetflow/fleetflow/controllers/member/cause"
)

const (
	// concurrentWorks is how many Works are reconciled in parallel, and concurrentManifests how
	// many manifests of each.
	concurrentWorks     = 10
	concurrentManifests = 4
	// resyncPeriod is how long the agent relies on events. The watch sees every change; this only
	// guards against a missed event.
	resyncPeriod = 15 * time.Minute
	// catchUpDelay is when to check that the watch has caught up with what a pass has read: the
	// watch never shows an object that came and went while the watch was interrupted.
	catchUpDelay = 10 * time.Second
	// neverTimeout is longer than any hub is away. The agent does not give up because it waits for
	// the hub.
	neverTimeout = 10 * 365 * 24 * time.Hour
)

// appliedWorkResource is the resource of AppliedWorks.
var appliedWorkResource = placementv1beta1.GroupVersion.WithResource("appliedworks")

// definitionResource is the resource of CustomResourceDefinitions.
var definitionResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Options are what a Reconciler needs.
type Options struct {
	// Namespace is the one on the hub with this member's Works.
	Namespace string
	// Hub reads Works from the cache and writes their status.
	Hub client.Client
	// HubLive reads Works from the hub's API server, past the cache.
	HubLive client.Reader
	// Member reads and writes the member's API server without a cache.
	Member client.Client
	// Mapper knows which kinds the member has.
	Mapper meta.RESTMapper
	// Metadata watches the member's objects.
	Metadata metadata.Interface
	// Discovery knows which kinds there are in a Namespace.
	Discovery discovery.DiscoveryInterface
	Clock     clock.PassiveClock
	// Log is for messages that concern no single Work.
	Log logr.Logger
	// Pruning says how objects that left a Work are removed.
	Pruning PruningOptions
	// Veto is what the owner of the member does not let the fleet place.
	Veto apply.Veto
	// Causes finds out why objects are not available. It is optional.
	Causes *cause.Finder
	// Metrics are optional.
	Metrics *Metrics
	// Tracer makes spans of passes over Works that were written in a trace. It is optional.
	Tracer trace.Tracer
	// Removed is called in ModeLeave whenever all objects of a Work are gone.
	Removed func()
}

// Reconciler applies the Works of its namespace.
type Reconciler struct {
	Options
	engine   *apply.Engine
	rivals   *rivalFinder
	contents *contentLister
	watcher  *Watcher
	memories *memories
	// kindTimeout is how long a pass waits for the kinds that its own Work defines.
	kindTimeout time.Duration

	mode     modeSwitch
	enqueuer enqueuer
}

// NewReconciler returns a Reconciler in ModeIdle.
func NewReconciler(o Options) *Reconciler {
	r := &Reconciler{Options: o, memories: newMemories(), kindTimeout: defaultKindTimeout, enqueuer: enqueuer{namespace: o.Namespace}}
	r.rivals = &rivalFinder{hub: o.Hub, member: o.Member, namespace: o.Namespace}
	r.contents = &contentLister{discovery: o.Discovery, metadata: o.Metadata}
	r.engine = &apply.Engine{Client: o.Member, Mapper: o.Mapper, Rivals: r.rivals, Veto: o.Veto}
	r.watcher = NewWatcher(o.Metadata, len(o.Veto.Namespaces) > 0, o.Log, r.enqueueAfterEvent)
	// An AppliedWork has the name of its Work. The first list also enqueues AppliedWorks whose Work
	// vanished while no agent ran: they are to be removed when the cluster leaves.
	r.watcher.WatchAlways(appliedWorkResource, func(name types.NamespacedName) []string { return []string{name.Name} })
	if o.Causes != nil {
		o.Causes.Changed = func(work string) { r.enqueuer.enqueueWork(work, priorityEvent) }
	}
	// A new definition may be of a kind that a Work lacks.
	r.watcher.WatchAlways(definitionResource, func(name types.NamespacedName) []string {
		_, group, _ := strings.Cut(name.Name, ".")
		return r.memories.worksLacking(group)
	})
	return r
}

// SetupWithManager adds the controller and its watches to the manager of the member; the Works come
// from the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, hub cluster.Cluster) error {
	c, err := controller.New("work", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: concurrentWorks,
		CacheSyncTimeout:        neverTimeout,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxReconnectDelay),
	})
	if err != nil {
		return fmt.Errorf("creating the work controller: %w", err)
	}
	works := source.Kind(hub.GetCache(), &placementv1beta1.Work{}, &handler.TypedEnqueueRequestForObject[*placementv1beta1.Work]{},
		predicate.TypedFuncs[*placementv1beta1.Work]{UpdateFunc: isRelevantUpdate})
	if err := c.Watch(works); err != nil {
		return fmt.Errorf("watching Works: %w", err)
	}
	if err := c.Watch(source.Func(r.enqueuer.attachQueue)); err != nil {
		return fmt.Errorf("watching applied objects: %w", err)
	}
	if r.Causes != nil {
		if err := mgr.Add(r.Causes); err != nil {
			return fmt.Errorf("adding what finds out why objects are not available: %w", err)
		}
	}
	return mgr.Add(r.watcher)
}

// isRelevantUpdate reports whether the agent acts on an update of a Work. It ignores its own status
// writes.
func isRelevantUpdate(e event.TypedUpdateEvent[*placementv1beta1.Work]) bool {
	return e.ObjectOld.UID != e.ObjectNew.UID ||
		e.ObjectOld.Generation != e.ObjectNew.Generation ||
		e.ObjectOld.Annotations[placementv1beta1.PruneAnnotation] != e.ObjectNew.Annotations[placementv1beta1.PruneAnnotation] ||
		e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
}

// SetMode returns what to do with Works from now on. If that changes the mode, SetMode waits for the
// reconciliations under way and enqueues every Work and every AppliedWork. The mode is set even if
// enqueuing fails; the next call enqueues them then.
func (r *Reconciler) SetMode(ctx context.Context, mode Mode) error {
	if !r.mode.change(mode) {
		return nil
	}
	// The list follows the change of mode: a Work that arrives later is reconciled in the new mode
	// anyway.
	works := &placementv1beta1.WorkList{}
	if err := r.Hub.List(ctx, works, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	for i := range works.Items {
		r.enqueuer.enqueueWork(works.Items[i].Name, priorityRecheck)
	}
	for _, name := range r.watcher.Names(appliedWorkResource) {
		r.enqueuer.enqueueWork(name, priorityRecheck)
	}
	r.mode.enqueuePending.Store(false)
	return nil
}

// Remaining returns the names of the Works that still have objects on the member.
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

// Reconcile brings the member to the state that one Work asks for. What it enqueues again has a
// lower priority than new Works.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcileWork(ctx, req)
	result.Priority = new(priorityRecheck)
	return result, err
}

func (r *Reconciler) reconcileWork(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mode, release := r.mode.hold()
	defer release()
	if mode == ModeIdle {
		r.memories.forgetWork(req.Name)
		forgetCauses(req.Name, r.Options)
		return reconcile.Result{}, nil // SetMode enqueues every Work again
	}
	work := &placementv1beta1.Work{}
	err := r.Hub.Get(ctx, req.NamespacedName, work)
	switch {
	case apierrors.IsNotFound(err):
		return r.reconcileMissingWork(ctx, req.NamespacedName, mode)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading Work %s: %w", req, err)
	case !work.DeletionTimestamp.IsZero():
		return r.finalizeWork(ctx, work, mode)
	case mode == ModeLeave:
		return r.removeForLeaving(ctx, work.Name)
	case mode != ModeApply:
		return reconcile.Result{}, nil
	}
	return r.applyWork(ctx, work)
}

// applyWork runs one pass and decides when the next is due.
func (r *Reconciler) applyWork(ctx context.Context, work *placementv1beta1.Work) (reconcile.Result, error) {
	mem := r.memories.memoryOf(work)
	if r.isUpToDate(work, mem) {
		return reconcile.Result{RequeueAfter: r.delayUntilNextPass(mem)}, nil
	}
	firstPass := mem.generation != work.Generation
	began := r.Clock.Now()
	if err := r.runTracedPass(ctx, work, mem); err != nil {
		mem.complete = false
		if firstPass {
			mem.outcomes = nil // the new manifests may have overwritten some of these objects
		}
		if errors.Is(err, errReportWaits) {
			return reconcile.Result{RequeueAfter: max(time.Millisecond, mem.unsent.nextReport().Sub(r.Clock.Now()))}, nil
		}
		return reconcile.Result{}, err
	}
	if firstPass {
		r.wakeHolding(work.Name)
		r.Metrics.observeFirstApply(r.Clock.Since(began))
	}
	return reconcile.Result{RequeueAfter: r.delayUntilNextPass(mem)}, nil
}

// delayUntilNextPass returns how long to wait for the next pass over a Work if no event asks for one
// earlier.
func (r *Reconciler) delayUntilNextPass(mem *memory) time.Duration {
	wait := max(time.Second, addJitter(resyncPeriod-r.Clock.Since(mem.checked)))
	if next := earliestRetry(mem.outcomes); !next.IsZero() {
		wait = min(wait, addJitter(max(time.Millisecond, next.Sub(r.Clock.Now()))))
	}
	if r.watcher.isBehind(mem.outcomes) {
		wait = min(wait, catchUpDelay)
	}
	for _, reports := range mem.reportLimits() {
		if reports.owed {
			wait = min(wait, max(time.Millisecond, reports.nextReport().Sub(r.Clock.Now())))
		}
	}
	if look := earliestLook(mem.outcomes); !look.IsZero() {
		wait = min(wait, max(time.Millisecond, look.Sub(r.Clock.Now())))
	}
	if mem.hasStaleObjects {
		wait = min(wait, mem.delayUntilNextLook(len(mem.remnants), r.Clock.Now()))
	}
	for _, next := range []time.Time{earliestRepair(mem.outcomes), earliestQuiet(mem.outcomes), earliestCause(mem.outcomes, r.Causes, r.Clock.Now())} {
		if !next.IsZero() {
			wait = min(wait, max(time.Millisecond, next.Sub(r.Clock.Now())))
		}
	}
	return wait
}

// isUpToDate reports whether the results of the last pass still hold: the Work is the same, and every
// object has the version that the pass saw.
func (r *Reconciler) isUpToDate(work *placementv1beta1.Work, mem *memory) bool {
	if !mem.complete || mem.hasStaleObjects || mem.generation != work.Generation || r.Clock.Since(mem.checked) >= resyncPeriod {
		return false
	}
	isDue := func(reports *reportLimit) bool { return reports.isDue(r.Clock.Now()) }
	if slices.ContainsFunc(mem.reportLimits(), isDue) || mem.applied != nil && !r.watcher.isAppliedWorkCurrent(mem.applied) {
		return false
	}
	for _, o := range mem.outcomes {
		if !r.watcher.isOutcomeCurrent(o, r.Clock.Now()) || !o.failing.isCurrent(r.Causes, r.Clock.Now()) {
			return false
		}
	}
	return true
}

// addJitter lengthens a delay by up to a tenth. It never shortens it: the delay must be over when
// its end is checked.
func addJitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(max(d/10, 1)))) //nolint:gosec // spreading load needs no secrecy
}
