package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	"github.com/fleetflow/fleetflow/activities/worksync"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// statusInterval is how long a status is left as it is while answers come in.
	statusInterval = time.Second
	// keepQuestions is for how long after its end the questions of a rehearsal are kept, for their details, and keepRehearsal for how
	// long the rehearsal itself is.
	keepQuestions = 30 * time.Minute
	keepRehearsal = 24 * time.Hour
	// settle is after how long it is looked again whether a change of an override is in a snapshot.
	settle = time.Second
	// settleEnds is for how long after its creation a rehearsal waits for room: that others have ended may take a moment to be known.
	settleEnds = 3 * time.Second
)

// Composer tells what the Works of a binding would be.
type Composer interface {
	Compose(ctx context.Context, binding placementv1beta1.BindingObject) (worksync.Composition, error)
}

// OverridesFor picks the overrides that concern a snapshot of a placement, in their latest version; nil if there are none.
type OverridesFor func(ctx context.Context, placement placementv1beta1.PlacementObject, index string) (*override.Matcher, error)

// Options are what a Reconciler needs.
type Options struct {
	Client    client.Client
	Live      client.Reader
	Works     Composer
	Overrides OverridesFor
	Events    events.EventRecorder
	Clock     clock.PassiveClock
}

// Reconciler asks the members of rehearsals, and counts their answers.
type Reconciler struct {
	client client.Client
	live   client.Reader
	works  Composer
	events events.EventRecorder
	clock  clock.PassiveClock

	resolver resolver
	scope    placementv1beta1.Scope

	running running
}

// running are the rehearsals that this process has looked at and that are not gone.
type running struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*progress
}

// find returns how far a rehearsal is; nil if this process has not looked at it.
func (r *running) find(key types.NamespacedName, uid types.UID) *progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byKey[key]; known != nil && known.uid == uid {
		return known
	}
	return nil
}

// keep keeps how far a rehearsal is.
func (r *running) keep(key types.NamespacedName, p *progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[key] = p
}

// forget drops a rehearsal that is gone.
func (r *running) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// progress is what is known of a rehearsal beyond the cache, which may not have our last write yet.
type progress struct {
	uid     types.UID
	status  fleetflowv1alpha1.RehearsalStatus
	written time.Time
	tally   *rehearsals.Tally
	// answered is how many clusters have answered, asked which have a question.
	answered int32
	asked    map[string]bool
	// pulling is set while clusters pull images.
	pulling *pulling
	// arrived counts the answers that were seen coming, and hurried is whether they were looked at once before others could come with them.
	arrived atomic.Int32
	hurried bool
}

// NewReconciler makes a Reconciler.
func NewReconciler(o Options) *Reconciler {
	return &Reconciler{
		client: o.Client, live: o.Live, works: o.Works, events: o.Events, clock: o.Clock,
		resolver: resolver{o.Client, o.Live, o.Overrides}, running: running{byKey: map[types.NamespacedName]*progress{}},
	}
}

// Reconcile looks at one rehearsal.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	rehearsal, err := r.read(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if rehearsal == nil {
		r.running.forget(request.NamespacedName)
		return ctrl.Result{}, r.deleteQuestions(ctx, rehearsals.OriginKey(request.Namespace, request.Name), "")
	}
	p, err := r.progressOf(ctx, rehearsal)
	if err != nil || p == nil {
		return ctrl.Result{}, err
	}
	if isOver(&p.status) {
		return r.cleanUp(ctx, rehearsal, p)
	}
	if rehearsal.GetRehearsalSpec().PullImages != nil {
		return r.pull(ctx, rehearsal, p)
	}
	if asking := meta.FindStatusCondition(p.status.Conditions, fleetflowv1alpha1.ConditionTypeCompleted); asking == nil ||
		asking.Reason == fleetflowv1alpha1.ReasonRehearsalAsking {
		return r.ask(ctx, rehearsal, p)
	}
	return r.collect(ctx, rehearsal, p)
}

// read returns a rehearsal; nil if it is gone or about to go. That it is gone was read live.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (fleetflowv1alpha1.RehearsalObject, error) {
	rehearsal := fleetflowv1alpha1.NewRehearsal(key.Namespace, key.Name)
	err := r.client.Get(ctx, key, rehearsal)
	if err != nil && client.IgnoreNotFound(err) == nil {
		err = r.live.Get(ctx, key, rehearsal)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", fleetflowv1alpha1.RehearsalKind(key.Namespace).Kind, key.Name, err)
	}
	if !rehearsal.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	return rehearsal, nil
}

// progressOf returns how far a rehearsal is. One that this process has not seen yet is read live, and questions of an earlier one of
// its name are deleted.
func (r *Reconciler) progressOf(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject) (*progress, error) {
	key := client.ObjectKeyFromObject(rehearsal)
	if known := r.running.find(key, rehearsal.GetUID()); known != nil {
		return known, nil
	}
	now := fleetflowv1alpha1.NewRehearsal(key.Namespace, key.Name)
	if err := r.live.Get(ctx, key, now); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.GetUID() != rehearsal.GetUID() {
		return nil, nil // the cache will know the other one
	}
	if err := r.deleteQuestions(ctx, rehearsals.OriginKey(key.Namespace, key.Name), rehearsal.GetUID()); err != nil {
		return nil, err
	}
	p := &progress{
		uid: rehearsal.GetUID(), status: *now.GetRehearsalStatus().DeepCopy(), tally: rehearsals.NewTally(), asked: map[string]bool{},
	}
	r.running.keep(key, p)
	return p, nil
}

func isOver(status *fleetflowv1alpha1.RehearsalStatus) bool {
	return fleetflowv1alpha1.IsRehearsalOver(&fleetflowv1alpha1.ClusterRehearsal{Status: *status})
}

// deadlineOf returns until when clusters may answer: the start, of which seconds are kept, and the whole timeout.
func deadlineOf(rehearsal fleetflowv1alpha1.RehearsalObject, status *fleetflowv1alpha1.RehearsalStatus) metav1.Time {
	end := status.StartTime.Add(fleetflowv1alpha1.RehearsalTimeout(rehearsal.GetRehearsalSpec()))
	return metav1.NewTime(end.Add(time.Second + 999*time.Millisecond).Truncate(time.Second))
}

// begun returns a rehearsal that names the revision that it has begun with: the latest one may be another since.
func begun(rehearsal fleetflowv1alpha1.RehearsalObject, status *fleetflowv1alpha1.RehearsalStatus) fleetflowv1alpha1.RehearsalObject {
	if status.StartTime == nil || rehearsal.GetRehearsalSpec().UpdateRunName != "" {
		return rehearsal
	}
	same := rehearsal.DeepCopyObject().(fleetflowv1alpha1.RehearsalObject)
	same.GetRehearsalSpec().ResourceSnapshotIndex = status.ResourceSnapshotIndex
	return same
}

// ask begins a rehearsal, or goes on where another agent has begun: it asks every cluster once.
func (r *Reconciler) ask(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (ctrl.Result, error) {
	if after, err := r.refuseIfMany(ctx, rehearsal, p); err != nil || after > 0 {
		return ctrl.Result{RequeueAfter: after}, err
	}
	c, err := r.resolver.resolve(ctx, begun(rehearsal, &p.status))
	if nothing, is := errors.AsType[*invalidError](err); is {
		return ctrl.Result{RequeueAfter: keepQuestions}, r.refuse(ctx, rehearsal, p, nothing.text)
	}
	if _, is := errors.AsType[*hubread.OverrideUnsettledError](err); is {
		return ctrl.Result{RequeueAfter: settle}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if p.status.StartTime == nil {
		status := p.status.DeepCopy()
		status.StartTime = &metav1.Time{Time: r.clock.Now().Truncate(time.Second)}
		status.ResourceSnapshotIndex = c.index
		status.ClusterCount = int32(len(c.clusters)) //nolint:gosec // at most 10,000
		r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalAsking,
			fmt.Sprintf("%d clusters are being asked about revision %s", len(c.clusters), c.index))
		if err := r.write(ctx, rehearsal, p, status); err != nil {
			return ctrl.Result{}, err
		}
	}
	questions, err := r.questionsOf(ctx, rehearsal)
	if err != nil {
		return ctrl.Result{}, err
	}
	a := &asker{client: r.client, works: r.works, clock: r.clock, rehearsal: rehearsal, deadline: deadlineOf(rehearsal, &p.status),
		asked: map[string]bool{}}
	for i := range questions {
		a.asked[clusterOf(&questions[i])] = true
	}
	if err := a.askAll(ctx, c); err != nil {
		return ctrl.Result{}, err
	}
	status := p.status.DeepCopy()
	status.ClusterCount = int32(len(c.clusters)) //nolint:gosec // at most 10,000
	status.Findings = a.findings.tell()
	r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalWaiting,
		fmt.Sprintf("0 of %d clusters have answered", len(c.clusters)))
	if err := r.write(ctx, rehearsal, p, status); err != nil {
		return ctrl.Result{}, err
	}
	for _, one := range c.clusters {
		p.asked[one.name] = true
	}
	return ctrl.Result{RequeueAfter: statusInterval}, nil
}

// refuse ends a rehearsal of which there is nothing to ask.
func (r *Reconciler) refuse(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress, why string) error {
	status := p.status.DeepCopy()
	status.CompletionTime = &metav1.Time{Time: r.clock.Now()}
	r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalInvalid, why)
	if err := r.write(ctx, rehearsal, p, status); err != nil {
		return err
	}
	r.events.Eventf(rehearsal, nil, corev1.EventTypeWarning, "RehearsalInvalid", "Rehearse", "%s", why)
	return r.prune(ctx, rehearsal)
}

func (r *Reconciler) setCompleted(rehearsal fleetflowv1alpha1.RehearsalObject, status *fleetflowv1alpha1.RehearsalStatus,
	is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: is, Reason: reason, Message: message,
		ObservedGeneration: rehearsal.GetGeneration(), LastTransitionTime: metav1.NewTime(r.clock.Now()),
	})
}

// write stores a status, if it differs from the one that was stored last.
func (r *Reconciler) write(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress,
	status *fleetflowv1alpha1.RehearsalStatus) error {
	if apiequality.Semantic.DeepEqual(p.status, *status) {
		return nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, rehearsal, status); err != nil {
		return err
	}
	p.status = *status
	p.written = r.clock.Now()
	return nil
}

// questionsOf lists the questions of a rehearsal, as the cache knows them: without manifests. They must not be changed.
func (r *Reconciler) questionsOf(ctx context.Context,
	rehearsal fleetflowv1alpha1.RehearsalObject) ([]fleetflowv1alpha1.MemberQuestion, error) {
	return r.listQuestions(ctx, string(rehearsal.GetUID()))
}
