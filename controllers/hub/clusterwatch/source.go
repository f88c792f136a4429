package clusterwatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// queue holds requests until they are reconciled.
type queue = workqueue.TypedRateLimitingInterface[Request]

// grace is how much longer than its period the first heartbeat of a cluster may take after a start of the hub: while
// no hub was running, no heartbeat was recorded.
const grace = 15 * time.Second

// source turns changes into requests.
type source struct {
	*Reconciler
	log logr.Logger
}

// handleClusters requests a check of what has changed about a cluster.
func (s *source) handleClusters() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedFuncs[client.Object, Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			cluster, ok := e.Object.(*clusterv1beta1.MemberCluster)
			if !ok {
				return
			}
			s.changes.Add(1)
			q.Add(Request{Cluster: cluster.Name, Changed: framework.Standing})
			q.Add(Request{Cluster: cluster.Name, Changed: framework.Presence})
			if clusterrules.ReplacedBy(cluster) != "" {
				q.Add(Request{Cluster: cluster.Name, Changed: framework.Replacement})
			}
			wait := grace + time.Duration(cluster.Spec.HeartbeatPeriodSeconds)*time.Second
			q.AddAfter(Request{Cluster: cluster.Name, Changed: Time}, wait)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[client.Object], q queue) {
			s.changes.Add(1)
			q.Add(Request{Cluster: e.Object.GetName(), Changed: framework.Presence})
			if gone, ok := e.Object.(*clusterv1beta1.MemberCluster); ok {
				requestReplaced(ctx, q, s.Reconciler, s.log, gone, clusterrules.ReplacedBy(gone))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			before, _ := e.ObjectOld.(*clusterv1beta1.MemberCluster)
			after, ok := e.ObjectNew.(*clusterv1beta1.MemberCluster)
			if !ok {
				return
			}
			if clusterrules.IsFit(before) != clusterrules.IsFit(after) || clusterrules.ReplacedBy(before) != clusterrules.ReplacedBy(after) ||
				rules.DeletionStarted(before, after) {
				requestReplaced(ctx, q, s.Reconciler, s.log, after, clusterrules.ReplacedBy(before), clusterrules.ReplacedBy(after))
			}
			for _, changed := range scheduler.Changes(before, after, s.clock.Now()) {
				s.requestIfWatched(ctx, after.Name, changed, q)
			}
		},
	}
}

// requestReplaced requests a check of the clusters whose replacement may go on, or no more, because of a change of another.
func requestReplaced(ctx context.Context, q queue, r *Reconciler, log logr.Logger, changed *clusterv1beta1.MemberCluster, asked ...string) {
	replaced, err := listReplaced(ctx, r.client, r.scope, changed.Name, asked)
	if err != nil { // the cache always answers once it has started
		log.Error(err, "Finding out whom a change of a cluster concerns", "cluster", changed.Name)
	}
	for _, name := range replaced {
		r.changes.Add(1)
		q.Add(Request{Cluster: name, Changed: framework.Replacement})
	}
}

// listReplaced lists the clusters whose replacement may go on, or no more, because of a change of another: that is to replace them, copies on
// them wait for that on it, or it stands no more in the way, as it was to be replaced by one of them, or by the same, that was asked for.
func listReplaced(ctx context.Context, cached client.Reader, scope placementv1beta1.Scope, changed string, asked []string) ([]string, error) {
	waiting := scope.NewBindingList()
	if err := cached.List(ctx, waiting, client.MatchingFields{hubread.ByAwaited: changed}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings that wait for cluster %s: %w", changed, err)
	}
	var names []string
	for _, binding := range waiting.Objects() {
		names = append(names, binding.GetBindingSpec().TargetCluster)
	}
	var replaced clusterv1beta1.MemberClusterList
	err := cached.List(ctx, &replaced, client.MatchingFields{hubread.ByReplacement: hubread.AnyReplacement}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the clusters that are replaced: %w", err)
	}
	for i := range replaced.Items {
		one := &replaced.Items[i]
		if by := clusterrules.ReplacedBy(one); by == changed || slices.Contains(asked, by) || slices.Contains(asked, one.Name) {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// requestIfWatched requests a check, unless no placement has an interest in the change.
func (s *source) requestIfWatched(ctx context.Context, cluster string, changed framework.Interest, q queue) {
	switch changed {
	case framework.Standing:
		q.Add(Request{Cluster: cluster, Changed: Time})
	case framework.Presence, framework.Replacement: // always matters to those that have the cluster
	case framework.Room: // which clusters are picked does not depend on it
		if watched, _ := s.isWatched(ctx, changed); watched {
			q.Add(Request{Cluster: cluster, Changed: changed})
		}
		return
	default:
		watched, err := s.isWatched(ctx, changed)
		if err != nil {
			s.log.Error(err, "Finding out whom a change of a cluster concerns", "cluster", cluster)
		}
		if !watched {
			return
		}
	}
	s.changes.Add(1)
	q.Add(Request{Cluster: cluster, Changed: changed})
}

// handleBindings requests a check when a binding no longer holds its cluster, because another one may be picked then,
// and when it is gone, because only then can its cluster be picked again. On start it requests a check of every bound
// cluster, which may have been lost while no hub was running.
func (s *source) handleBindings() handler.TypedEventHandler[client.Object, Request] {
	request := func(object client.Object) Request {
		binding, _ := object.(placementv1beta1.BindingObject)
		return Request{Cluster: binding.GetBindingSpec().TargetCluster, Placement: parentOf(binding)}
	}
	return handler.TypedFuncs[client.Object, Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			if e.IsInInitialList {
				q.Add(Request{Cluster: request(e.Object).Cluster, Changed: framework.Presence})
			}
			s.changes.Add(1)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			before, _ := e.ObjectOld.(placementv1beta1.BindingObject)
			if after, ok := e.ObjectNew.(placementv1beta1.BindingObject); ok && rules.IsLiveBinding(before) &&
				!rules.IsLiveBinding(after) {
				s.changes.Add(1)
				q.Add(request(after))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q queue) {
			s.changes.Add(1)
			q.Add(request(e.Object))
		},
	}
}
