package clusterprofile

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// workers is how many profiles are reconciled concurrently.
	workers = 4
	// lookEvery is how often a hub that does not serve the kind is asked again.
	lookEvery = 30 * time.Second
	// forEver is longer than listing profiles can fail: that must not end the agent.
	forEver = 10 * 365 * 24 * time.Hour
)

// SetupWithManager starts keeping profiles once the hub serves their kind. Nothing else waits for that.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	// Runnables of this type run where the controllers do.
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !AwaitKind(ctx, mgr, inventoryv1alpha1.ClusterProfileSchemeGroupVersionKind, "cluster-profile") {
			return nil
		}
		return r.runController(ctx, mgr)
	}))
}

// AwaitKind waits until the hub serves a kind of the inventory, and says so in the log of that name. It is false if ctx ends before.
func AwaitKind(ctx context.Context, mgr ctrl.Manager, kind schema.GroupVersionKind, logName string) bool {
	told := false
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(context.Context) (bool, error) {
		_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil && !told {
			message := "The hub cannot be asked for its kinds; trying again"
			if meta.IsNoMatchError(err) {
				message = "The hub does not serve " + kind.Kind + "s; they are made as soon as it does. Apply the CRD of the hub agent's chart, or turn them off"
			}
			mgr.GetLogger().WithName(logName).Info(message, "cause", err.Error())
			told = true
		}
		return err == nil, nil
	})
	return err == nil
}

func (r *Reconciler) runController(ctx context.Context, mgr ctrl.Manager) error {
	c, err := controller.NewUnmanaged("cluster-profile", controller.Options{
		Reconciler: r, MaxConcurrentReconciles: workers, CacheSyncTimeout: forEver, Logger: mgr.GetLogger().WithName("cluster-profile"),
	})
	if err != nil {
		return fmt.Errorf("creating the cluster profile controller: %w", err)
	}
	for _, watched := range []source.Source{
		source.Kind(mgr.GetCache(), &clusterv1beta1.MemberCluster{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, m *clusterv1beta1.MemberCluster) []reconcile.Request { return requestNamed(m) })),
		source.Kind(mgr.GetCache(), &inventoryv1alpha1.ClusterProfile{}, handler.TypedEnqueueRequestsFromMapFunc(r.memberOf)),
	} {
		if err := c.Watch(watched); err != nil {
			return fmt.Errorf("watching for cluster profiles: %w", err)
		}
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("running the cluster profile controller: %w", err)
	}
	return nil
}

// memberOf finds the member by the name of its profile.
func (r *Reconciler) memberOf(_ context.Context, profile *inventoryv1alpha1.ClusterProfile) []reconcile.Request {
	if profile.Namespace != r.namespace {
		return nil
	}
	return requestNamed(profile)
}

func requestNamed(object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetName()}}}
}
