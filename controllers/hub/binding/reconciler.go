// Package binding projects what members report on Works into the status of
// bindings, repairs Works that are not as their binding wants them, and clears
// Works away when a binding is deleted or its member leaves. It decides
// nothing: which snapshot a cluster runs is decided by the workflows.
package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
)

const (
	// foreignWorkDelay is when to check again a Work that has the name of one of the binding's Works and does not
	// belong to the binding: no event of its end reaches the binding.
	foreignWorkDelay = 2 * time.Second
)

// Works is what the reconciler needs of the writer of Works.
type Works interface {
	Of(ctx context.Context, binding placementv1beta1.BindingObject) ([]placementv1beta1.Work, error)
	Sync(ctx context.Context, binding placementv1beta1.BindingObject) error
	Delete(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error)
	Abandon(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error)
	Leave(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error)
}

// Options of a Reconciler.
type Options struct {
	// ForceDeleteWaitTime is how long the deletion of a placement waits for a member whose agent does not report.
	ForceDeleteWaitTime time.Duration
	// Events takes events about clusters that a deletion did not wait for; with nil there are none.
	Events events.EventRecorder
	// Catch holds bindings whose cluster or placement was gone when the agent started, if there are many; with nil none is held.
	Catch *bind.SafetyCatch
}

// Reconciler keeps the status of bindings current and their Works in place.
type Reconciler struct {
	Options
	client  client.Client
	reader  absenceReader
	works   Works
	clock   clock.PassiveClock
	timers  *stopwatch
	latency *latencyEWMA
}

// NewReconciler makes a Reconciler; live reads past the cache.
func NewReconciler(c client.Client, live client.Reader, w Works, clk clock.PassiveClock, options Options) *Reconciler {
	return &Reconciler{Options: options, client: c, reader: absenceReader{c, live}, works: w, clock: clk, timers: newStopwatch(clk),
		latency: &latencyEWMA{}}
}

// Reconcile looks at one binding.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	binding := placementv1beta1.Scope{Namespace: request.Namespace}.NewBinding(request.Name)
	if err := r.client.Get(ctx, request.NamespacedName, binding); err != nil {
		r.timers.stopTimers(keyOf(binding))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	member, err := r.reader.readMembership(ctx, binding.GetBindingSpec().TargetCluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if isDisputed(binding) {
		r.emitLeftAlone(binding, "it names another placement as its owner than its label does. Correct one of the two, or delete it")
		return ctrl.Result{}, nil
	}
	abandoned, err := r.reader.hasLostPlacement(ctx, binding)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !binding.GetDeletionTimestamp().IsZero() {
		wait, err := r.removeWorks(ctx, binding, member)
		return ctrl.Result{RequeueAfter: wait}, err
	}
	if binding.GetLabels()[placementv1beta1.ParentPlacementLabel] == "" {
		return ctrl.Result{}, r.restoreLabel(ctx, binding)
	}
	if member == memberGone || abandoned {
		return ctrl.Result{}, r.removeOrphan(ctx, binding)
	}
	if adopted, err := r.adoptBinding(ctx, binding); err != nil || !adopted {
		return ctrl.Result{}, err
	}
	if err := fence.AddFinalizer(ctx, r.client, binding, placementv1beta1.WorkFinalizer); err != nil {
		return ctrl.Result{}, err
	}
	return r.projectWorks(ctx, binding, member)
}

// keyOf returns the key of a binding in the stopwatch.
func keyOf(binding placementv1beta1.BindingObject) string {
	return placementv1beta1.ScopeOf(binding).String() + binding.GetName()
}

// membershipState is where the cluster of a binding stands between joining and leaving the fleet.
type membershipState int

const (
	memberPresent membershipState = iota
	memberLeaving
	memberKept // the member leaves, and what was placed on it stays there
	memberGone // no agent is left that would clean up
)

// absenceReader reads from the cache, and confirms past it that an object does not exist.
type absenceReader struct {
	client client.Reader
	live   client.Reader
}

// readMembership reads the membership of a cluster. That the member is gone is confirmed past the cache, which may
// have the binding before its cluster.
func (a absenceReader) readMembership(ctx context.Context, cluster string) (membershipState, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := a.getConfirmingAbsence(ctx, types.NamespacedName{Name: cluster}, member)
	switch {
	case apierrors.IsNotFound(err):
		return memberGone, nil
	case err != nil:
		return memberPresent, fmt.Errorf("reading member cluster %s: %w", cluster, err)
	case member.DeletionTimestamp.IsZero():
		return memberPresent, nil
	case membership.KeepsPlaced(member):
		return a.readKeptMembership(ctx, cluster)
	}
	return memberLeaving, nil
}

// readKeptMembership reads whether the agent of a member that keeps what was placed on it is still there. Until the
// agent has left, it would clean up after every Work that is deleted.
func (a absenceReader) readKeptMembership(ctx context.Context, cluster string) (membershipState, error) {
	box := &clusterv1beta1.InternalMemberCluster{}
	key := types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace(cluster), Name: cluster}
	err := a.getConfirmingAbsence(ctx, key, box)
	switch {
	case apierrors.IsNotFound(err):
		return memberGone, nil
	case err != nil:
		return memberKept, fmt.Errorf("reading internal member cluster %s: %w", cluster, err)
	case membership.HasLeft(box):
		return memberGone, nil
	}
	return memberKept, nil
}

// hasLostPlacement reports whether the placement of a binding does not exist any more: an activity that began before the
// placement was deleted has written the binding afterwards.
func (a absenceReader) hasLostPlacement(ctx context.Context, binding placementv1beta1.BindingObject) (bool, error) {
	if binding.GetLabels()[placementv1beta1.ParentPlacementLabel] == "" {
		return false, nil
	}
	placement, err := a.readPlacement(ctx, binding)
	return placement == nil && err == nil, err
}

// getConfirmingAbsence reads an object from the cache, which it shares with the cache: it must not be changed. Each event of each
// binding asks for its placement, whose status may be large. That the object does not exist is confirmed past the cache.
func (a absenceReader) getConfirmingAbsence(ctx context.Context, key types.NamespacedName, into client.Object) error {
	err := a.client.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		err = a.live.Get(ctx, key, into)
	}
	return err
}

// removeWorks removes the Works of a binding that is being deleted, and then the binding's finalizer. While Works
// remain, the event of their end triggers the next reconciliation. A member that keeps what was placed on it has to
// leave first; the event of its end triggers the next one, too.
func (r *Reconciler) removeWorks(ctx context.Context, binding placementv1beta1.BindingObject,
	member membershipState) (time.Duration, error) {
	if held, err := r.isHeldWithNamespace(ctx, binding, member); err != nil || held {
		return 0, err
	}
	clear := r.works.Delete
	switch member {
	case memberKept:
		return 0, nil
	case memberGone:
		clear = r.works.Abandon
	case memberPresent, memberLeaving:
		left, err := r.isLeftBehind(ctx, binding, member)
		if err != nil {
			return 0, err
		}
		if left {
			clear = r.works.Leave
		}
	}
	if suspended, err := r.isSuspended(ctx, binding, member); err != nil || suspended {
		return 0, err
	}
	remaining, err := clear(ctx, binding)
	if err != nil {
		return 0, err
	}
	if remaining > 0 {
		if wait, waits, err := r.waitForWorks(ctx, binding, member, remaining); err != nil || waits {
			return wait, err
		}
	}
	return 0, r.releaseBinding(ctx, binding)
}

// waitForWorks writes what keeps the Works of a binding that is being deleted, and says whether its end waits for them.
func (r *Reconciler) waitForWorks(ctx context.Context, binding placementv1beta1.BindingObject, member membershipState,
	remaining int) (wait time.Duration, waits bool, err error) {
	if err := r.reportRemoval(ctx, binding); err != nil {
		return 0, false, err
	}
	return r.waitForSilentMember(ctx, binding, member, remaining)
}

// releaseBinding removes the finalizers of a binding whose Works are gone.
func (r *Reconciler) releaseBinding(ctx context.Context, binding placementv1beta1.BindingObject) error {
	r.timers.stopTimers(keyOf(binding))
	finalizers := []string{placementv1beta1.WorkFinalizer, placementv1beta1.SchedulerBindingFinalizer}
	if placement, err := r.reader.readPlacement(ctx, binding); err != nil {
		return err
	} else if placement != nil {
		finalizers = append(finalizers, rules.HookFinalizers(rules.StrategyOf(placement).Lifecycle)...)
	}
	return fence.RemoveFinalizer(ctx, r.client, binding, finalizers...)
}

// isHeldWithNamespace reports whether the Works of a binding stay as they are, because it is being deleted with its namespace,
// and no user has accepted what that removes. The end of the membership does not wait for it.
func (r *Reconciler) isHeldWithNamespace(ctx context.Context, binding placementv1beta1.BindingObject,
	member membershipState) (bool, error) {
	if member != memberPresent || binding.GetNamespace() == "" || binding.GetBindingSpec().ResourceSnapshotName == "" {
		return false, nil
	}
	placement, err := r.reader.readPlacement(ctx, binding)
	if err != nil || placement == nil {
		return false, err
	}
	return bind.HoldsWithNamespace(ctx, r.reader.live, placement)
}

// reportRemoval writes what the Works of a binding that is being deleted say of objects that are still there.
func (r *Reconciler) reportRemoval(ctx context.Context, binding placementv1beta1.BindingObject) error {
	works, err := r.works.Of(ctx, binding)
	if err != nil {
		return err
	}
	status := *binding.GetBindingStatus()
	status.Conditions = workmodel.WithRemoval(binding, works, metav1.NewTime(r.clock.Now()))
	if apiequality.Semantic.DeepEqual(*binding.GetBindingStatus(), status) {
		return nil
	}
	return fence.ReplaceStatus(ctx, r.client, binding, status)
}

// isSuspended reports whether the Works of a binding stay as they are, because its placement suspends the cluster. Neither the
// end of the placement nor that of the membership waits for it.
func (r *Reconciler) isSuspended(ctx context.Context, binding placementv1beta1.BindingObject, member membershipState) (bool, error) {
	if member != memberPresent {
		return false, nil
	}
	placement, err := r.reader.readPlacement(ctx, binding)
	return placement != nil && rules.IsSuspended(placement, binding.GetBindingSpec().TargetCluster), err
}

// isLeftBehind reports whether the placement of a binding asks to leave its resources on the cluster: because the placement is
// being deleted, or because the cluster leaves the placement, but not the fleet.
func (r *Reconciler) isLeftBehind(ctx context.Context, binding placementv1beta1.BindingObject, member membershipState) (bool, error) {
	placement, err := r.reader.readPlacement(ctx, binding)
	if err != nil || placement == nil {
		return false, err
	}
	if !rules.IsDeleting(placement) {
		return member == memberPresent && rules.AbandonsRemoved(placement), nil
	}
	strategy := rules.StrategyOf(placement).DeleteStrategy
	return strategy != nil && strategy.PropagationPolicy == placementv1beta1.DeletePropagationPolicyAbandon, nil
}

// removeOrphan deletes a binding whose cluster or placement does not exist any more. The user has deleted that; a
// later object of the same name starts afresh.
func (r *Reconciler) removeOrphan(ctx context.Context, binding placementv1beta1.BindingObject) error {
	if held, err := r.Catch.HoldsOrphan(ctx, binding); err != nil || held {
		return r.reportHeldOrphan(ctx, binding, err)
	}
	err := r.client.Delete(ctx, binding, client.Preconditions{UID: new(binding.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting binding %s, whose cluster or placement is gone: %w", binding.GetName(), err)
	}
	return nil
}

// reportHeldOrphan says that a binding whose cluster or placement is gone stays until a user removes it.
func (r *Reconciler) reportHeldOrphan(ctx context.Context, binding placementv1beta1.BindingObject, err error) error {
	if err != nil {
		return err
	}
	const note = "The cluster or the placement of this binding was gone when the hub agent started, and those of many others: " +
		"nothing is removed until it is accepted: kubectl fleet migrate accept"
	log.FromContext(ctx).Info("Holding a removal that nothing explains")
	if r.Events != nil {
		r.Events.Eventf(binding, nil, "Warning", "RemovalHeld", "Delete", note)
	}
	return nil
}

// projectWorks repairs the Works if they differ from the binding, and writes the binding's status.
func (r *Reconciler) projectWorks(ctx context.Context, binding placementv1beta1.BindingObject,
	member membershipState) (ctrl.Result, error) {
	existing, err := r.works.Of(ctx, binding)
	if err != nil {
		return ctrl.Result{}, err
	}
	state := workmodel.StateOf(binding, existing)
	suspended, err := r.isSuspended(ctx, binding, member)
	if err != nil {
		return ctrl.Result{}, err
	}
	var wait time.Duration
	var syncErr error
	if !suspended {
		wait, syncErr = r.ensureWorks(ctx, binding, member, state, existing)
	}
	if wait > 0 && hasToldOfFailure(binding) {
		return ctrl.Result{RequeueAfter: wait}, nil // the status says so already, and stays until the next attempt
	}
	now := metav1.NewTime(r.clock.Now())
	status := workmodel.BindingStatus(binding, existing, syncErr, now)
	hooked, hookErr := r.projectHooks(ctx, binding, &status, state.Available, now)
	if hookErr != nil {
		return ctrl.Result{}, hookErr
	}
	status.Conditions = placementv1beta1.WithResolved(binding.GetBindingStatus().Conditions, status.Conditions, binding.GetGeneration(), now)
	silent, err := r.projectDoubt(ctx, binding, &status, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	pace := paceOf(state, existing, syncErr != nil || silent)
	if err := r.projectHealth(ctx, binding, existing, &status, silent, now.Time); err != nil {
		return ctrl.Result{}, err
	}
	wait = shorterWait(wait, hooked)
	held, err := r.storeBindingStatus(ctx, binding, status, pace)
	if err != nil {
		return ctrl.Result{}, err
	}
	return resultOf(syncErr, shorterWait(wait, held))
}

// hasToldOfFailure reports whether the status already says that the Works could not be written for the present generation.
// A process that has just started does not know yet whether that still holds.
func hasToldOfFailure(binding placementv1beta1.BindingObject) bool {
	said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeWorkSynchronized)
	return said != nil && said.Status == metav1.ConditionFalse && said.ObservedGeneration == binding.GetGeneration()
}

// resultOf turns an error of writing Works into when to reconcile again. An invalid envelope or override is no failure of this
// controller: it is corrected by another snapshot, which changes the binding, or by labels of the cluster, and both cause an
// event.
func resultOf(syncErr error, wait time.Duration) (ctrl.Result, error) {
	var held *worksync.HeldError
	var invalid *workmodel.InvalidError
	var override *workmodel.OverrideError
	switch {
	case errors.As(syncErr, &held):
		return ctrl.Result{RequeueAfter: foreignWorkDelay}, nil
	case errors.Is(syncErr, errLeaving), errors.As(syncErr, &invalid), errors.As(syncErr, &override):
		return ctrl.Result{}, nil
	case syncErr != nil:
		return ctrl.Result{}, syncErr
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// errLeaving is shown in the status of a binding whose cluster leaves.
var errLeaving = errors.New("the member cluster is leaving the fleet")

// ensureWorks brings the Works in line with the binding and with its member. It returns how long to wait before they
// are repaired.
func (r *Reconciler) ensureWorks(ctx context.Context, binding placementv1beta1.BindingObject, member membershipState,
	state workmodel.ClusterState, existing []placementv1beta1.Work) (time.Duration, error) {
	switch {
	case member == memberKept:
		return 0, errLeaving
	case member == memberLeaving:
		if _, err := r.works.Delete(ctx, binding); err != nil {
			return 0, err
		}
		return 0, errLeaving
	case areWorksInPlace(binding, state, existing):
		r.timers.stopTimer(keyOf(binding), repairTimer)
		return 0, nil
	}
	// The activity that has written the binding is about to write its Works, as soon as the API server lets it. If
	// the status describes this generation already, the Works had been written, and another client has deleted or
	// changed them.
	patience := r.latency.holdBackTime()
	if _, told := describesGeneration(binding); told {
		patience = interimAtLeast
	}
	if workmodel.IsAnyUnsigned(binding, existing) {
		patience = 0 // they are there, and nothing but this controller signs them
	}
	if rest := r.timers.remainingDelay(keyOf(binding), repairTimer, binding.GetGeneration(), patience); rest > 0 {
		return rest, nil
	}
	err := r.works.Sync(ctx, binding)
	if _, missing := errors.AsType[*worksync.SnapshotMissingError](err); missing && state.Synced {
		return 0, nil // another author has made the Works while the snapshot was complete: they stay as they are
	}
	return 0, err
}

// areWorksInPlace reports whether nothing has to be written: every Work is there, and no other.
func areWorksInPlace(binding placementv1beta1.BindingObject, state workmodel.ClusterState, existing []placementv1beta1.Work) bool {
	if binding.GetBindingSpec().ResourceSnapshotName == "" {
		return true
	}
	if !state.Synced || state.HeldBack {
		return false // a change of labels of the cluster may let the overrides apply
	}
	revision := workmodel.Revision(binding)
	for _, binding := range existing {
		work := &binding
		if work.DeletionTimestamp.IsZero() && work.Annotations[placementv1beta1.RevisionAnnotation] != revision {
			return false
		}
	}
	return true
}

// statusPace is how soon a changed status is written.
type statusPace int

const (
	// atOnce is for an outcome.
	atOnce statusPace = iota
	// soon is for a status that says why a workload is not available: the outcome may be far off.
	soon
	// unhurried is for a status that the outcome is likely to overtake.
	unhurried
)

// paceOf returns how soon the status of a binding is written. It is an outcome, too, that Works could not be written or a member is silent.
func paceOf(state workmodel.ClusterState, works []placementv1beta1.Work, isStuck bool) statusPace {
	switch {
	case isStuck || state.Available || state.Failed:
		return atOnce
	case state.Applied && tellsWhy(works): // else it is about what was there before
		return soon
	}
	return unhurried
}

// tellsWhy reports whether the member says of some object why it is not available.
func tellsWhy(works []placementv1beta1.Work) bool {
	return slices.ContainsFunc(works, func(work placementv1beta1.Work) bool {
		return slices.ContainsFunc(work.Status.ManifestConditions, func(m placementv1beta1.ManifestCondition) bool {
			return meta.IsStatusConditionTrue(m.Conditions, placementv1beta1.ConditionTypeFailing) ||
				meta.IsStatusConditionTrue(m.Conditions, placementv1beta1.ConditionTypeStalled)
		})
	})
}

// storeBindingStatus writes the status if it has changed. What is no outcome is held back; the result is for how much
// longer.
func (r *Reconciler) storeBindingStatus(ctx context.Context, binding placementv1beta1.BindingObject,
	status placementv1beta1.ResourceBindingStatus, pace statusPace) (time.Duration, error) {
	if apiequality.Semantic.DeepEqual(*binding.GetBindingStatus(), status) {
		r.timers.stopTimer(keyOf(binding), statusTimer)
		return 0, nil
	}
	if pace != atOnce {
		patience := r.latency.holdBackTime()
		if pace == soon {
			patience = interimAtLeast
		}
		switch available, told := describesGeneration(binding); {
		case !told: // the change has not been reported yet
			r.timers.remainingDelay(keyOf(binding), outcomeTimer, binding.GetGeneration(), 0)
		case available: // the cluster was available and is not any more
			patience = interimAtLeast
		}
		if rest := r.timers.remainingDelay(keyOf(binding), statusTimer, binding.GetGeneration(), patience); rest > 0 {
			return rest, nil
		}
	} else if took, running := r.timers.elapsedTime(keyOf(binding), outcomeTimer, binding.GetGeneration()); running {
		r.latency.observeLatency(took)
		r.timers.stopTimer(keyOf(binding), outcomeTimer)
	}
	r.timers.stopTimer(keyOf(binding), statusTimer)
	return 0, fence.ReplaceStatus(ctx, r.client, binding, status)
}

// describesGeneration reports whether the status of a binding is about its present generation, and whether it says that
// the cluster is available.
func describesGeneration(binding placementv1beta1.BindingObject) (available, told bool) {
	for i := range binding.GetBindingStatus().Conditions {
		said := &binding.GetBindingStatus().Conditions[i]
		if said.ObservedGeneration != binding.GetGeneration() {
			continue
		}
		told = true
		if said.Type == placementv1beta1.ConditionTypeAvailable || said.Type == placementv1beta1.ConditionTypeDiffReported {
			available = said.Status == metav1.ConditionTrue
		}
	}
	return available, told
}

// shorterWait returns the shorter of two waits, where 0 means none.
func shorterWait(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
