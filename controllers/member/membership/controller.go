package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	"github.com/fleetflow/fleetflow/controllers/joining"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

const (
	defaultHeartbeatPeriod = 60 * time.Second
	// nodeDebounce is how long to wait after nodes were added or removed before their number is
	// reported.
	nodeDebounce = 500 * time.Millisecond
	// leaveResyncPeriod is how often the progress of leaving is checked, in addition to events.
	leaveResyncPeriod = 30 * time.Second
	// unwatchedDelay is after how long the agent looks again whether it may report, in addition to being woken.
	unwatchedDelay = 30 * time.Second
	// neverTimeout is longer than any hub is away. The agent does not give up because it waits for
	// the hub.
	neverTimeout = 10 * 365 * 24 * time.Hour
)

// Applier is the part of the agent that applies Works.
type Applier interface {
	// SetMode says what to do with Works from now on.
	SetMode(ctx context.Context, mode work.Mode) error
	// Remaining returns the names of the Works that still have objects on the cluster.
	Remaining(ctx context.Context) ([]string, error)
}

// Reporter collects facts about the cluster.
type Reporter interface {
	// Shape returns what of the cluster is reported soon after it changes.
	Shape(ctx context.Context) (Shape, error)
	// Survey collects all facts for a report.
	Survey(ctx context.Context, now metav1.Time) (Survey, error)
}

// Reconciler joins, reports and leaves as the InternalMemberCluster says.
type Reconciler struct {
	// Cluster is the name of this member, Namespace its namespace on the hub.
	Cluster, Namespace string
	// Hub reads from the cache and writes to the hub's API server.
	Hub      client.Client
	Applier  Applier
	Reporter Reporter
	Clock    clock.PassiveClock
	// Findings are conditions that the hub is told while they are there: at once after a wake, if they are others than
	// before. It is optional.
	Findings func() []metav1.Condition
	// Busy returns what the owner of the cluster asks, which the hub is told as soon as it is other than before, and whether that is known:
	// until then, what was told before stays. It is optional.
	Busy func() (asked *clusterv1beta1.BusyRequest, known bool)
	// Agent returns what the agent says of itself, which the hub is told as soon as it is other than before. It is optional.
	Agent func() map[clusterv1beta1.PropertyName]string
	// Requested takes what the hub asks of the agent itself, and Reported is told that the hub has taken a report. Both are optional.
	Requested func(*clusterv1beta1.AgentRequest)
	Reported  func()
	// Unwatched returns the kinds of the hub that the agent does not see changes of, because the hub refuses it. While
	// there are some, nothing is reported: a report means that what is placed is also applied. It is optional.
	Unwatched func() []string
	// Joins counts when the member has joined and left. It is optional.
	Joins *joining.Counters
	// WatchNamespaces has the member report soon after its namespaces have changed.
	WatchNamespaces bool

	lastReport LastReport // used by a single worker, so it needs no lock
	wakes      chan event.TypedGenericEvent[types.NamespacedName]
}

// NewReconciler returns a Reconciler for a member.
func NewReconciler(name string, hub client.Client, reporter Reporter, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{
		Cluster: name, Namespace: clusterv1beta1.MemberNamespace(name),
		Hub: hub, Reporter: reporter, Clock: clock,
		wakes: make(chan event.TypedGenericEvent[types.NamespacedName], 1),
	}
}

// SetupWithManager adds the controller to the manager of the member; the InternalMemberCluster
// comes from the hub.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, hub cluster.Cluster) error {
	c, err := controller.New("membership", mgr, controller.Options{
		Reconciler:       r,
		CacheSyncTimeout: neverTimeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			200*time.Millisecond, 5*time.Second),
	})
	if err != nil {
		return fmt.Errorf("creating the membership controller: %w", err)
	}
	internalMember := source.Kind(hub.GetCache(), &clusterv1beta1.InternalMemberCluster{},
		&handler.TypedEnqueueRequestForObject[*clusterv1beta1.InternalMemberCluster]{},
		predicate.NewTypedPredicateFuncs(func(o *clusterv1beta1.InternalMemberCluster) bool { return o.Name == r.Cluster }),
		predicate.TypedFuncs[*clusterv1beta1.InternalMemberCluster]{UpdateFunc: isRelevantUpdate})
	if err := c.Watch(internalMember); err != nil {
		return fmt.Errorf("watching the InternalMemberCluster: %w", err)
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{}, r.enqueueAfterNodeChange())); err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	if r.WatchNamespaces {
		later := handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
			CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[*metav1.PartialObjectMetadata],
				q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				r.enqueueLater(q)
			},
			DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[*metav1.PartialObjectMetadata],
				q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				r.enqueueLater(q)
			},
		}
		if err := c.Watch(source.Kind(mgr.GetCache(), newNamespace(), later)); err != nil {
			return fmt.Errorf("watching namespaces: %w", err)
		}
	}
	woken := handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName],
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.Add(reconcile.Request{NamespacedName: e.Object})
		},
	}
	if err := c.Watch(source.Channel(r.wakes, woken)); err != nil {
		return fmt.Errorf("watching the way out: %w", err)
	}
	return nil
}

// isRelevantUpdate reports whether the agent acts on an update of the InternalMemberCluster. It
// ignores its own reports.
func isRelevantUpdate(e event.TypedUpdateEvent[*clusterv1beta1.InternalMemberCluster]) bool {
	return e.ObjectOld.UID != e.ObjectNew.UID ||
		e.ObjectOld.Generation != e.ObjectNew.Generation ||
		e.ObjectOld.Annotations[clusterv1beta1.KeepPlacedAnnotation] != e.ObjectNew.Annotations[clusterv1beta1.KeepPlacedAnnotation]
}

// enqueueAfterNodeChange enqueues the member with a delay after nodes were added or removed, so
// that many changes make one report.
func (r *Reconciler) enqueueAfterNodeChange() handler.TypedEventHandler[*corev1.Node, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[*corev1.Node], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.enqueueLater(q)
		},
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[*corev1.Node], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.enqueueLater(q)
		},
	}
}

func (r *Reconciler) enqueueLater(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.AddAfter(reconcile.Request{NamespacedName: r.memberKey()}, nodeDebounce)
}

func (r *Reconciler) memberKey() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Cluster}
}

// Wake enqueues the member. It never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: r.memberKey()}:
	default: // it is about to be enqueued already
	}
}

// Reconcile does what the InternalMemberCluster asks for, and reports if a report is due.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	imc := &clusterv1beta1.InternalMemberCluster{}
	err := r.Hub.Get(ctx, req.NamespacedName, imc)
	if apierrors.IsNotFound(err) {
		r.lastReport = LastReport{}
		return reconcile.Result{}, r.Applier.SetMode(ctx, work.ModeIdle)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading InternalMemberCluster %s: %w", req, err)
	}
	if r.Requested != nil {
		r.Requested(imc.Spec.Agent)
	}
	progress, followErr := r.followHub(ctx, imc)
	if errors.Is(followErr, reconcile.TerminalError(nil)) {
		return reconcile.Result{}, followErr
	}
	if (progress.Phase == PhaseLeft || progress.RemainingUnknown != "") && hasLeft(imc) {
		return reconcile.Result{}, followErr // a cluster that has left sends no heartbeat
	}
	// The heartbeat does not depend on progress: the cluster is alive although it cannot join or
	// leave.
	wait, err := r.reportIfDue(ctx, imc, progress)
	if err := errors.Join(followErr, err); err != nil {
		return reconcile.Result{}, err
	}
	if progress.Phase == PhaseLeaving {
		wait = min(wait, leaveResyncPeriod)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// followHub sets the applier's mode to the state that the hub asks for. It returns the progress,
// also if it fails.
func (r *Reconciler) followHub(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster) (Progress, error) {
	switch {
	case imc.Spec.State == clusterv1beta1.ClusterStateJoin:
		return Progress{Phase: PhaseJoined}, r.Applier.SetMode(ctx, work.ModeApply)
	case imc.Spec.State != clusterv1beta1.ClusterStateLeave:
		return Progress{}, reconcile.TerminalError(fmt.Errorf("the hub asks for state %q; only Join and Leave are known", imc.Spec.State))
	case imc.Annotations[clusterv1beta1.KeepPlacedAnnotation] == clusterv1beta1.KeepPlacedValue:
		if err := r.Applier.SetMode(ctx, work.ModeAbandon); err != nil {
			return progressUnknown(err), err
		}
		return Progress{Phase: PhaseLeft}, nil
	}
	if err := r.Applier.SetMode(ctx, work.ModeLeave); err != nil {
		return progressUnknown(err), err
	}
	remaining, err := r.Applier.Remaining(ctx)
	if err != nil {
		return progressUnknown(err), err
	}
	if len(remaining) > 0 {
		slices.Sort(remaining)
		return Progress{Phase: PhaseLeaving, Remaining: remaining}, nil
	}
	return Progress{Phase: PhaseLeft}, nil
}

// progressUnknown returns the progress of a cluster that cannot leave for now.
func progressUnknown(err error) Progress {
	return Progress{Phase: PhaseLeaving, RemainingUnknown: err.Error()}
}

// hasLeft reports whether the last report says that the agent has left.
func hasLeft(imc *clusterv1beta1.InternalMemberCluster) bool {
	agent := agentStatus(imc.Status.DeepCopy())
	c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeJoined)
	return c != nil && c.Reason == clusterv1beta1.ReasonInternalMemberClusterLeft && c.ObservedGeneration == imc.Generation
}

// reportIfDue writes a report if one is due, and returns the time until the next.
func (r *Reconciler) reportIfDue(ctx context.Context, imc *clusterv1beta1.InternalMemberCluster, progress Progress) (time.Duration, error) {
	phase := progress.Phase
	if r.Unwatched != nil && len(r.Unwatched()) > 0 {
		return unwatchedDelay, nil
	}
	shape, err := r.Reporter.Shape(ctx)
	if err != nil {
		return 0, err
	}
	if r.lastReport.InternalMemberClusterUID != imc.UID {
		r.lastReport = LastReport{}
	}
	findings := r.readFindings()
	told := reasonsOf(findings)
	if r.Agent != nil {
		told += fmt.Sprint(r.Agent())
	}
	busy := r.readBusy(imc)
	told += describeBusy(busy)
	if wait := UntilReport(r.lastReport, phase, shape, imc.Generation, r.Clock.Now()); wait > 0 && told == r.lastReport.Findings {
		return wait, nil
	}
	now := metav1.NewTime(r.Clock.Now())
	survey, err := r.Reporter.Survey(ctx, now)
	if err != nil {
		return 0, err
	}
	survey.Conditions = append(survey.Conditions, findings...)
	survey.Busy = busy
	updated := imc.DeepCopy()
	updated.Status = Report(progress, survey, imc.Status, imc.Generation, now)
	if err := r.Hub.Status().Update(ctx, updated, client.FieldOwner("member-agent")); err != nil {
		return 0, fmt.Errorf("reporting to the hub: %w", err)
	}
	if r.Reported != nil {
		r.Reported()
	}
	r.Joins.Observe(agentStatus(imc.Status.DeepCopy()).Conditions, agentStatus(&updated.Status).Conditions)
	if r.lastReport.At.IsZero() || r.lastReport.Phase != phase {
		log.FromContext(ctx).Info("Reported to the hub", "stage", phase.String(), "nodes", survey.NodeCount)
	}
	period := Spread(heartbeatPeriod(imc), rand.Float64()) //nolint:gosec // spreading load needs no secrecy
	r.lastReport = LastReport{
		At: now.Time, Next: r.Clock.Now().Add(period), Phase: phase,
		Shape: shape, Generation: imc.Generation, InternalMemberClusterUID: imc.UID, Findings: told,
	}
	return period, nil
}

// TryReport sends the hub the last report once more, for it to check and not to keep: it shows that this agent can report
// before another agent, which works, makes room for it.
func (r *Reconciler) TryReport(ctx context.Context, live client.Reader) error {
	imc := &clusterv1beta1.InternalMemberCluster{}
	if err := live.Get(ctx, r.memberKey(), imc); err != nil {
		return fmt.Errorf("reading InternalMemberCluster %s: %w", r.memberKey(), err)
	}
	if err := r.Hub.Status().Update(ctx, imc, client.FieldOwner("member-agent"), client.DryRunAll); err != nil {
		return fmt.Errorf("reporting to the hub: %w", err)
	}
	return nil
}

// readFindings returns what other parts of the agent have to tell the hub.
func (r *Reconciler) readFindings() []metav1.Condition {
	if r.Findings == nil {
		return nil
	}
	return r.Findings()
}

// readBusy returns what the owner of the cluster asks; nil if the owner asks nothing. An agent that has just started does not know yet.
func (r *Reconciler) readBusy(imc *clusterv1beta1.InternalMemberCluster) *clusterv1beta1.BusyRequest {
	if r.Busy == nil {
		return nil
	}
	asked, known := r.Busy()
	if !known {
		return imc.Status.Busy
	}
	return asked
}

// describeBusy tells whether the owner asks for something else than before.
func describeBusy(busy *clusterv1beta1.BusyRequest) string {
	if busy == nil {
		return ""
	}
	return fmt.Sprintf("busy until %v: %s", busy.Until, busy.Message)
}

// reasonsOf tells whether there are other findings than before. Their messages may change all the time.
func reasonsOf(findings []metav1.Condition) string {
	var reasons strings.Builder
	for i := range findings {
		reasons.WriteString(findings[i].Type + "=" + findings[i].Reason + ";")
	}
	return reasons.String()
}

func heartbeatPeriod(imc *clusterv1beta1.InternalMemberCluster) time.Duration {
	if imc.Spec.HeartbeatPeriodSeconds <= 0 {
		return defaultHeartbeatPeriod
	}
	return time.Duration(imc.Spec.HeartbeatPeriodSeconds) * time.Second
}
