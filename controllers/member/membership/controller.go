package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

const (
	defaultPeriod = 60 * time.Second
	// nodesSettle is how long the number of nodes may go on changing before it is reported.
	nodesSettle = 500 * time.Millisecond
	// leaveResync is how often the way out is looked at besides the events.
	leaveResync = 30 * time.Second
	// forEver is longer than any hub is away. Waiting for the hub is no reason to stop.
	forEver = 10 * 365 * 24 * time.Hour
)

// Applier is the part of the agent that applies Works. It is told whether to.
type Applier interface {
	// SetMode says what to do with Works from now on.
	SetMode(ctx context.Context, mode work.Mode) error
	// Remaining returns the names of the Works of which something is still on the cluster.
	Remaining(ctx context.Context) ([]string, error)
}

// Reporter finds out how the cluster is.
type Reporter interface {
	// NodeCount returns the number of nodes.
	NodeCount(ctx context.Context) (int, error)
	// Survey finds out everything a report says.
	Survey(ctx context.Context, now metav1.Time) (Survey, error)
}

// Reconciler joins, reports and leaves as the InternalMemberCluster says.
type Reconciler struct {
	// Cluster is the name of this member, Namespace its namespace on the hub.
	Cluster, Namespace string
	// Hub reads from the cache and writes.
	Hub client.Client
	// Applier applies Works.
	Applier Applier
	// Reporter finds out how the cluster is.
	Reporter Reporter
	// Clock tells the time.
	Clock clock.PassiveClock

	last  Last // of a single worker
	wakes chan event.TypedGenericEvent[types.NamespacedName]
}

// NewReconciler returns a Reconciler for a member.
func NewReconciler(name string, hub client.Client, reporter Reporter, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{
		Cluster: name, Namespace: clusterv1beta1.MemberNamespace(name),
		Hub: hub, Reporter: reporter, Clock: clock,
		wakes: make(chan event.TypedGenericEvent[types.NamespacedName], 1),
	}
}

// SetupWithManager starts the controller with the manager of the member; the
// InternalMemberCluster comes from the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, hub cluster.Cluster) error {
	c, err := controller.New("membership", mgr, controller.Options{
		Reconciler:       r,
		CacheSyncTimeout: forEver,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			200*time.Millisecond, 5*time.Second),
	})
	if err != nil {
		return fmt.Errorf("creating the membership controller: %w", err)
	}
	letterBox := source.Kind(hub.GetCache(), &clusterv1beta1.InternalMemberCluster{},
		&handler.TypedEnqueueRequestForObject[*clusterv1beta1.InternalMemberCluster]{},
		predicate.NewTypedPredicateFuncs(func(o *clusterv1beta1.InternalMemberCluster) bool { return o.Name == r.Cluster }),
		predicate.TypedFuncs[*clusterv1beta1.InternalMemberCluster]{UpdateFunc: concerns})
	if err := c.Watch(letterBox); err != nil {
		return fmt.Errorf("watching the InternalMemberCluster: %w", err)
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, r.nodesChanged())); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	woken := handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(reconcile.Request{NamespacedName: e.Object})
		},
	}
	if err := c.Watch(source.Channel(r.wakes, woken)); err != nil {
		return fmt.Errorf("watching the way out: %w", err)
	}
	return nil
}

// concerns tells whether a change of the InternalMemberCluster is for the agent to act on. Its
// own reports are not.
func concerns(e event.TypedUpdateEvent[*clusterv1beta1.InternalMemberCluster]) bool {
	return e.ObjectOld.UID != e.ObjectNew.UID ||
		e.ObjectOld.Generation != e.ObjectNew.Generation ||
		e.ObjectOld.Annotations[clusterv1beta1.KeepPlacedAnnotation] != e.ObjectNew.Annotations[clusterv1beta1.KeepPlacedAnnotation]
}

// nodesChanged reports a while after nodes came or went, so that many at once make one report.
func (r *Reconciler) nodesChanged() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	later := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{NamespacedName: r.key()}, nodesSettle)
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[*corev1.Node], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[*corev1.Node], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q)
		},
	}
}

func (r *Reconciler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Cluster}
}

// Wake makes the Reconciler look again. It never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: r.key()}:
	default: // a wake is under way already
	}
}

// Reconcile does what the InternalMemberCluster asks for and reports if a report is due.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	imc := &clusterv1beta1.InternalMemberCluster{}
	err := r.Hub.Get(ctx, req.NamespacedName, imc)
	if apierrors.IsNotFound(err) {
		r.last = Last{}
		return reconcile.Result{}, r.Applier.SetMode(ctx, work.ModeIdle)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading InternalMemberCluster %s: %w", req, err)
	}
	progress, moveErr := r.move(ctx, imc)
	if errors.Is(moveErr, reconcile.TerminalError(nil)) {
		return reconcile.Result{}, moveErr
	}
	if (progress.Stage == StageLeft || progress.Stuck != "") && hasLeft(imc) {
		return reconcile.Result{}, moveErr // a cluster that has left has no heartbeat
	}
	// A cluster that cannot move is alive nevertheless.
	wait, err := r.report(ctx, imc, progress)
	if err := errors.Join(moveErr, err); err != nil {
		return reconcile.Result{}, err
	}
	if progress.Stage == StageLeaving {
		wait = min(wait, leaveResync)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// move sets the applier to what the hub asks for, and returns how far that has come, also if
// it fails.
func (r *Reconciler) move(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) (Progress, error) {
	switch {
	case imc.Spec.State == clusterv1beta1.ClusterStateJoin:
		return Progress{Stage: StageJoined}, r.Applier.SetMode(ctx, work.ModeApply)
	case imc.Spec.State != clusterv1beta1.ClusterStateLeave:
		return Progress{}, reconcile.TerminalError(fmt.Errorf("the hub asks for state %q; only Join and Leave are known", imc.Spec.State))
	case imc.Annotations[clusterv1beta1.KeepPlacedAnnotation] == clusterv1beta1.KeepPlacedValue:
		if err := r.Applier.SetMode(ctx, work.ModeAbandon); err != nil {
			return stuck(err), err
		}
		return Progress{Stage: StageLeft}, nil
	}
	if err := r.Applier.SetMode(ctx, work.ModeLeave); err != nil {
		return stuck(err), err
	}
	remaining, err := r.Applier.Remaining(ctx)
	if err != nil {
		return stuck(err), err
	}
	if len(remaining) > 0 {
		slices.Sort(remaining)
		return Progress{Stage: StageLeaving, Remaining: remaining}, nil
	}
	return Progress{Stage: StageLeft}, nil
}

// stuck is the progress of a cluster that is to leave and cannot for now.
func stuck(err error) Progress {
	return Progress{Stage: StageLeaving, Stuck: err.Error()}
}

// hasLeft tells whether the hub knows already that the agent has left.
func hasLeft(imc *clusterv1beta1.InternalMemberCluster) bool {
	agent := agentOf(imc.Status.DeepCopy())
	c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeJoined)
	return c != nil && c.Reason == clusterv1beta1.ReasonInternalMemberClusterLeft && c.ObservedGeneration == imc.Generation
}

// report writes a report if one is due, and returns how long it is until the next.
func (r *Reconciler) report(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster, progress Progress) (time.Duration, error) {
	stage := progress.Stage
	nodes, err := r.Reporter.NodeCount(ctx)
	if err != nil {
		return 0, err
	}
	if r.last.Box != imc.UID {
		r.last = Last{}
	}
	if wait := UntilReport(r.last, stage, nodes, imc.Generation, r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	now := metav1.NewTime(r.Clock.Now())
	survey, err := r.Reporter.Survey(ctx, now)
	if err != nil {
		return 0, err
	}
	updated := imc.DeepCopy()
	updated.Status = Report(progress, survey, imc.Status, imc.Generation, now)
	if err := r.Hub.Status().Update(ctx, updated, client.FieldOwner("member-agent")); err != nil {
		return 0, fmt.Errorf("reporting to the hub: %w", err)
	}
	if r.last.At.IsZero() || r.last.Stage != stage {
		log.FromContext(ctx).Info("Reported to the hub", "stage", stage.String(), "nodes", survey.NodeCount)
	}
	period := Spread(heartbeat(imc), rand.Float64()) //nolint:gosec // spreading load needs no secrecy
	r.last = Last{At: now.Time, Next: r.Clock.Now().Add(period), Stage: stage, NodeCount: survey.NodeCount, Generation: imc.Generation, Box: imc.UID}
	return period, nil
}

func heartbeat(imc *clusterv1beta1.InternalMemberCluster) time.Duration {
	if imc.Spec.HeartbeatPeriodSeconds <= 0 {
		return defaultPeriod
	}
	return time.Duration(imc.Spec.HeartbeatPeriodSeconds) * time.Second
}
