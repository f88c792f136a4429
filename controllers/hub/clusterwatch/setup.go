package clusterwatch

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/wake"
)

// queue is where requests wait.
type queue = workqueue.TypedRateLimitingInterface[Request]

// SetupWithManager adds the watching of clusters to a manager; the poker wakes
// workflows. On start it looks at every cluster once, so that what changed while no
// hub was running is not missed.
func SetupWithManager(mgr ctrl.Manager, poker wake.Poker) error {
	collector := wake.NewCollector(poker, clock.RealClock{}, mgr.GetLogger().WithName("clusterwatch"))
	if err := mgr.Add(collector); err != nil {
		return fmt.Errorf("adding the collector of changed clusters: %w", err)
	}
	err := builder.TypedControllerManagedBy[Request](mgr).
		Named("clusterwatch").
		Watches(&clusterv1beta1.MemberCluster{}, clusterHandler(clock.RealClock{})).
		Watches(&placementv1beta1.ClusterResourceBinding{}, bindingHandler()).
		Complete(NewReconciler(mgr.GetClient(), collector, clock.RealClock{}))
	if err != nil {
		return fmt.Errorf("setting up the watching of clusters: %w", err)
	}
	return nil
}

// clusterHandler asks for a look at a cluster after a relevant change.
func clusterHandler(clk clock.PassiveClock) handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedFuncs[client.Object, Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			q.Add(Request{Cluster: e.Object.GetName()})
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q queue) {
			q.Add(Request{Cluster: e.Object.GetName()})
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], q queue) {
			before, _ := e.ObjectOld.(*clusterv1beta1.MemberCluster)
			after, ok := e.ObjectNew.(*clusterv1beta1.MemberCluster)
			if !ok {
				return
			}
			if relevance := Relevant(before, after, clk.Now()); relevance != Irrelevant {
				q.Add(Request{Cluster: after.Name, Figures: relevance == Figures})
			}
		},
	}
}

// bindingHandler asks for a look at a cluster when it may have been lost while no hub
// was running, and when a binding to it is gone, whoever deleted it: only then can the
// cluster be picked again.
func bindingHandler() handler.TypedEventHandler[client.Object, Request] {
	return handler.TypedFuncs[client.Object, Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q queue) {
			if binding, ok := e.Object.(*placementv1beta1.ClusterResourceBinding); ok && e.IsInInitialList {
				q.Add(Request{Cluster: binding.Spec.TargetCluster})
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], q queue) {
			if binding, ok := e.Object.(*placementv1beta1.ClusterResourceBinding); ok {
				q.Add(Request{Cluster: binding.Spec.TargetCluster})
			}
		},
	}
}
