package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Gates says how what closes clusters is read, for the status and to know when a workflow has something to do. Whether a
// cluster may be started, its workflow's activities decide.
type Gates struct {
	// Served says that the hub serves the kinds that close clusters. Without them nothing is closed.
	Served bool
	Clock  clock.PassiveClock
	// Exemptions says which exemptions count.
	Exemptions hubread.ExemptionRule
}

// readGate reads what closes clusters.
func (f *Facts) readGate(ctx context.Context, cached client.Reader, gates Gates) (err error) {
	if !gates.Served {
		return nil
	}
	now := gates.Clock.Now()
	f.closing.chain, err = hubread.Brakes(ctx, cached, cached, gates.Exemptions, brake.SubjectOf(f.Placement), now)
	f.closing.opens = f.closing.chain.NextChange(now)
	return err
}

// closedFor reports whether a cluster is closed for a kind of start, and why.
func (f *Facts) closedFor(ctx context.Context, cached client.Reader, gates Gates, cluster string,
	start brake.Start) (rollout.Wait, bool, error) {
	of, gated, err := hubread.ClusterLabels(ctx, cached, cluster)
	if err != nil || !gated {
		return rollout.Wait{}, false, err
	}
	closure, closed := f.closing.chain.Closed(of, start, gates.Clock.Now())
	return closure, closed, nil
}

// findClosed finds what closes clusters for what they are not up to date for. Of a placement that is left to update runs, the runs
// tell.
func (f *Facts) findClosed(ctx context.Context, cached client.Reader, gates Gates) error {
	if f.closing.chain == nil || rules.IsExternal(f.Placement) || f.Latest.Name == "" {
		return nil
	}
	f.Closed = map[string]rollout.Wait{}
	for _, binding := range f.Bindings {
		if rules.IsDeleting(binding) || upToDate(f, binding, f.Latest.Name) {
			continue
		}
		start := fleetflowv1alpha1.StartUpdates
		switch binding.GetBindingSpec().State {
		case placementv1beta1.BindingStateScheduled:
			start = fleetflowv1alpha1.StartFirstPlacements
		case placementv1beta1.BindingStateUnscheduled:
			if rules.IsSuperseded(binding) {
				continue
			}
			start = fleetflowv1alpha1.StartRemovals
		}
		closure, closed, err := f.closedFor(ctx, cached, gates, binding.GetBindingSpec().TargetCluster, start)
		if err != nil {
			return err
		}
		if closed {
			f.Closed[binding.GetName()] = closure
		}
	}
	return nil
}

// keepsEviction makes what says of an eviction that it waits because its cluster is closed for it.
func (f *Facts) keepsEviction(ctx context.Context, cached client.Reader, gates Gates) func(cluster string) (bool, error) {
	return func(cluster string) (bool, error) {
		there := func(b placementv1beta1.BindingObject) bool {
			return b.GetBindingSpec().TargetCluster == cluster && !rules.IsDeleting(b)
		}
		if f.closing.chain == nil || !slices.ContainsFunc(f.Bindings, there) {
			return false, nil
		}
		closure, closed, err := f.closedFor(ctx, cached, gates, cluster, fleetflowv1alpha1.StartEvictions)
		if closed {
			f.EvictionsClosed = append(f.EvictionsClosed, closure)
		}
		return closed, err
	}
}

// heldText returns which clusters wait because they are closed, and the reason of the condition that does; empty if none waits.
func (f *Facts) heldText(closed map[string]rollout.Wait) (reason, text string) {
	var tally rollout.Tally
	for _, closure := range closed {
		tally.Add(closure)
	}
	for _, closure := range f.EvictionsClosed {
		tally.Add(closure)
	}
	return tally.Reason(), workmodel.CutMessage(tally.Text(len(f.Bindings), "the placement"), maxNote)
}

// closedCondition returns which clusters wait because they are closed; none if nothing waits.
func closedCondition(facts *Facts, now time.Time) []metav1.Condition {
	reason, text := facts.heldText(facts.standing(now).closed)
	if reason == "" {
		return nil
	}
	return []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeHeld, Status: metav1.ConditionTrue, Reason: reason, Message: text}}
}

// describeClosed tells in the condition RolloutStarted of a placement that clusters wait because they are closed.
func describeClosed(facts *Facts, closed map[string]rollout.Wait, condition metav1.Condition) metav1.Condition {
	if len(closed) > 0 && condition.Status == metav1.ConditionFalse {
		condition.Reason, condition.Message = facts.heldText(closed)
	}
	return condition
}

// emitClosedEvents tells that clusters have come to wait because they are closed, and that none does any more.
func (a *announcer) emitClosedEvents(placement placementv1beta1.PlacementObject, status placementv1beta1.PlacementStatus) {
	before := placementv1beta1.FindTrue(placement.GetPlacementStatus().Conditions, fleetflowv1alpha1.ConditionTypeHeld)
	now := placementv1beta1.FindTrue(status.Conditions, fleetflowv1alpha1.ConditionTypeHeld)
	switch {
	case before == nil && now != nil:
		a.Eventf(placement, nil, "Normal", "PlacementHeld", "Rollout", "%s", now.Message)
	case before != nil && now == nil:
		a.Eventf(placement, nil, "Normal", "PlacementReleased", "Rollout", "%s", "The placement is held no longer")
	}
}

// untilOpen returns after how long time alone may open or close a cluster of a placement; 0 if it never does.
func (f *Facts) untilOpen(now time.Time) time.Duration {
	if f.closing.opens.IsZero() || len(f.standing(now).closed)+len(f.EvictionsClosed) == 0 {
		return 0
	}
	return max(f.closing.opens.Sub(now), 0) + time.Second
}

// requestHeld requests the placements that what closes clusters may concern: those that have clusters to change, and those
// that say that they are held.
func (r requester) requestHeld(ctx context.Context, _ client.Object) []reconcile.Request {
	placements := r.scope.NewPlacementList()
	if err := r.client.List(ctx, placements, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for _, placement := range placements.Objects() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placement)})
	}
	return requests
}

// requestOfNamespace requests the placements of a Namespace, by whose labels holds and windows select.
func (r requester) requestOfNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	if !r.scope.Namespaced() {
		return nil
	}
	placements := r.scope.NewPlacementList()
	if err := r.client.List(ctx, placements, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for _, placement := range placements.Objects() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placement)})
	}
	return requests
}

// requestPlacedOn requests the placements that have something on a cluster, or are to have.
func (r requester) requestPlacedOn(ctx context.Context, cluster client.Object) []reconcile.Request {
	bindings := r.scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.MatchingFields{fieldindex.ByCluster: cluster.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for _, binding := range bindings.Objects() {
		requests = append(requests, requestParent(ctx, binding)...)
	}
	return requests
}

// onBusyChanged passes members that are busy from now on, or no more, because their owners ask for that.
func onBusyChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
			after, is := e.ObjectNew.(*clusterv1beta1.MemberCluster)
			return ok && is && !before.Status.Busy.Equal(after.Status.Busy)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// requestExempt requests the placement that an exemption is for.
func (r requester) requestExempt(_ context.Context, object client.Object) []reconcile.Request {
	exemption, is := object.(*fleetflowv1alpha1.RolloutExemption)
	if !is || exemption.Spec.TargetRef.Kind != r.scope.PlacementKind().Kind {
		return nil
	}
	target := exemption.Spec.TargetRef
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: target.Namespace, Name: target.Name}}}
}

// onGateChanged passes changes of what closes clusters, but not of its status.
func onGateChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || rules.DeletionStarted(e.ObjectOld, e.ObjectNew)
	}}
}

// hastenReleased has a workflow woken at once for clusters that are released, not only when nothing has moved for a while.
func hastenReleased(need *waker.Need, facts *Facts) {
	if need.Cause == wf.CauseAvailability && facts.isReleased() {
		need.Cause = wf.CauseGates
		need.Demand = "released"
	}
}

// isReleased reports whether the status reports clusters that wait because they are closed, and none does any more.
func (f *Facts) isReleased() bool {
	return len(f.standing(time.Time{}).closed)+len(f.EvictionsClosed) == 0 && meta.IsStatusConditionTrue(f.Placement.GetPlacementStatus().Conditions,
		fleetflowv1alpha1.ConditionTypeHeld)
}

// orClosed says of a cluster that is to be changed what it waits for before that, if it is closed.
func orClosed(closure *rollout.Wait, otherwise metav1.Condition) metav1.Condition {
	if closure == nil {
		return otherwise
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse, Reason: closure.Reason,
		Message: fmt.Sprintf("The cluster waits for %s", closure.Text()),
	}
}
