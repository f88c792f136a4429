// Package clusterwatch wakes the placements for which the scheduler would decide differently because a cluster
// joined, left, or changed in what their policies ask for. An index finds placements by what they ask for, so that a
// heartbeat that changes nothing of it wakes no workflow and costs nothing. What becomes true by the passing of time
// is checked when it does.
package clusterwatch

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Marker wakes the workflow of a placement soon.
type Marker interface {
	Mark(ref wf.Ref, poke wf.Poke)
}

// Request asks to check the placements that a change of a cluster may concern.
type Request struct {
	Cluster string
	// Changed is what has changed about the cluster, or Time.
	Changed framework.Interest
	// Placement restricts the check to one placement, because one of its bindings to the cluster has changed.
	Placement types.NamespacedName
}

// Time asks whether a cluster has been unreachable for so long that nothing new can be placed on it.
const Time framework.Interest = "time"

const (
	// maxRemembered is for how many placements the prepared policy and the last decision are remembered.
	maxRemembered = 4096
	// timeMargin is added to an instant so that it has passed for sure.
	timeMargin = 10 * time.Millisecond
	// longestWait bounds the wait for the next check of a cluster's time: if the clock is set back, an instant that
	// is near seems far away.
	longestWait = 5*time.Minute + timeMargin
	// repeatAfterWake is when to check again a placement that was woken because of the time. The scheduler may run in
	// another process, for whose clock the instant has not come.
	repeatAfterWake = 15 * time.Second
)

// Reconciler finds out which placements a change concerns. It handles one request at a
// time.
type Reconciler struct {
	client client.Reader
	// scope chooses between the cluster-scoped kinds and their twins in namespaces.
	scope     placementv1beta1.Scope
	marker    Marker
	clock     clock.PassiveClock
	takers    *lru.Cache
	decisions *lru.Cache
	// rooms are what was seen of the room that the clusters of placements have, by placement.
	rooms *lru.Cache
	// changes counts the changes that may change a decision.
	changes atomic.Uint64
}

// NewReconciler returns a reconciler that reads from a cache with the hub's indexes.
func NewReconciler(cache client.Reader, marker Marker, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{client: cache, marker: marker, clock: clk, takers: lru.New(maxRemembered), decisions: lru.New(maxRemembered),
		rooms: lru.New(maxRemembered)}
}

// Reconcile wakes the placements that a cluster, as it is now, concerns.
func (r *Reconciler) Reconcile(ctx context.Context, request Request) (reconcile.Result, error) {
	cluster, err := r.readCluster(ctx, request.Cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.clock.Now()
	ineligible := cluster == nil || scheduler.Ineligible(cluster, now) != ""
	switch {
	case request.Changed == Time && !ineligible:
		// Heartbeats have come since the request: check again when they end.
		return reconcile.Result{RequeueAfter: min(scheduler.EligibleUntil(cluster).Sub(now)+timeMargin, longestWait)}, nil
	case request.Changed == framework.Standing && ineligible:
		return reconcile.Result{}, nil // the request about the time answers
	}
	if request.Changed == Time {
		r.changes.Add(1)
	}
	stakes, err := r.listStakes(ctx, request.Cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	return r.wakeConcerned(ctx, request, cluster, stakes)
}

// wakeConcerned wakes those placements for which the scheduler would decide differently.
func (r *Reconciler) wakeConcerned(ctx context.Context, request Request, cluster *clusterv1beta1.MemberCluster,
	stakes map[types.NamespacedName]Stake) (reconcile.Result, error) {
	placements, err := r.listInterested(ctx, request, stakes)
	if err != nil {
		return reconcile.Result{}, err
	}
	result := reconcile.Result{}
	for _, placement := range placements {
		stake := stakes[client.ObjectKeyFromObject(placement)]
		if request.Changed == framework.Room {
			after, err := r.wakeForRoom(ctx, placement, stake, cluster)
			if err != nil {
				return reconcile.Result{}, err
			}
			if after > 0 && (result.RequeueAfter == 0 || after < result.RequeueAfter) {
				result.RequeueAfter = after
			}
			continue
		}
		woken, err := r.wakeIfConcerned(ctx, placement, stake, request, cluster)
		if err != nil {
			return reconcile.Result{}, err
		}
		if woken && request.Changed == Time {
			result.RequeueAfter = repeatAfterWake
		}
	}
	return result, nil
}

// wakeForRoom wakes a placement if it would divide replicas differently because one of its clusters has other room for pods. It returns
// after what time to ask again; 0 if there is no need.
func (r *Reconciler) wakeForRoom(ctx context.Context, placement placementv1beta1.PlacementObject, stake Stake,
	cluster *clusterv1beta1.MemberCluster) (time.Duration, error) {
	if placement.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	wake, after, err := r.wantsRoom(ctx, placement, stake, cluster)
	if err == nil && wake {
		r.wakePlacement(placement)
	}
	return after, err
}

func (r *Reconciler) wakePlacement(placement placementv1beta1.PlacementObject) {
	r.marker.Mark(
		waker.PlacementRef(placement), wf.Poke{UID: string(placement.GetUID()), Generation: placement.GetGeneration(), Cause: wf.CauseClusters},
	)
}

// wakeIfConcerned wakes a placement if the scheduler would decide differently.
func (r *Reconciler) wakeIfConcerned(ctx context.Context, placement placementv1beta1.PlacementObject, stake Stake, request Request,
	cluster *clusterv1beta1.MemberCluster) (woken bool, err error) {
	if placement.GetDeletionTimestamp() != nil {
		return false, nil
	}
	stake.Policy = placement.GetPlacementSpec().Policy
	stake.Taker = r.takerOf(placement)
	stake.Held = rules.HeldRemovalsOf(placement) != nil
	if rules.IsLazy(placement) || rules.SchedulerOf(placement) != "" {
		latest, err := r.latestPolicyOf(ctx, placement)
		if err != nil {
			return false, err
		}
		stake.Policy = rules.PolicyInForce(placement, latest)
		stake.Taker = scheduler.NewTaker(placement.GetNamespace(), stake.Policy)
	}
	stake.FailsOver = rules.LeavesIllClusters(placement)
	concern := Concerns(stake, request.Changed, cluster, request.Cluster, r.clock.Now())
	if concern == Perhaps {
		anew, err := r.wouldDecideAnew(ctx, placement, request.Changed)
		if err != nil {
			return false, err
		}
		if anew {
			concern = Yes
		}
	}
	if concern != Yes {
		return false, nil
	}
	r.wakePlacement(placement)
	return true, nil
}

// readCluster reads a cluster; nil if it is gone.
func (r *Reconciler) readCluster(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	cluster := &clusterv1beta1.MemberCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return cluster, nil
}

// listStakes returns, by placement, what bindings there are to a cluster.
func (r *Reconciler) listStakes(ctx context.Context, cluster string) (map[types.NamespacedName]Stake, error) {
	bindings := r.scope.NewBindingList()
	if err := r.client.List(ctx, bindings, client.MatchingFields{fieldindex.ByCluster: cluster}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings of cluster %s: %w", cluster, err)
	}
	stakes := map[types.NamespacedName]Stake{}
	for _, binding := range bindings.Objects() {
		key := parentOf(binding)
		stake := stakes[key]
		stake.Bound = stake.Bound || rules.IsLiveBinding(binding)
		stake.Replaced = stake.Replaced || rules.ReplacedBy(binding) != ""
		stake.Terminating = stake.Terminating || binding.GetDeletionTimestamp() != nil
		stake.Limited = stake.Limited || slices.ContainsFunc(binding.GetBindingSpec().ClusterDecision.Assignments,
			func(a placementv1beta1.ReplicaAssignment) bool { return a.Capacity != nil })
		stakes[key] = stake
	}
	return stakes, nil
}

// parentOf returns the key of the placement that a binding was made for.
func parentOf(binding placementv1beta1.BindingObject) types.NamespacedName {
	return placementv1beta1.ScopeOf(binding).Key(binding.GetLabels()[placementv1beta1.ParentPlacementLabel])
}

// takerOf prepares the policy of a placement, once for each generation.
func (r *Reconciler) takerOf(placement placementv1beta1.PlacementObject) *scheduler.Taker {
	type prepared struct {
		generation int64
		*scheduler.Taker
	}
	if known, ok := r.takers.Get(placement.GetUID()); ok && known.(prepared).generation == placement.GetGeneration() {
		return known.(prepared).Taker
	}
	taker := scheduler.NewTaker(placement.GetNamespace(), placement.GetPlacementSpec().Policy)
	r.takers.Add(placement.GetUID(), prepared{placement.GetGeneration(), taker})
	return taker
}
