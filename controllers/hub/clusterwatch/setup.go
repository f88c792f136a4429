package clusterwatch

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
)

// SetupWithManager adds the watching of clusters to a manager; the poker wakes workflows. On start it checks every
// cluster once, so that no change is missed that happened while no hub was running.
func SetupWithManager(mgr ctrl.Manager, poker waker.Poker, clk clock.WithTicker, scope placementv1beta1.Scope) error {
	debouncer := waker.NewDebouncer(poker, clk, mgr.GetLogger().WithName("clusterwatch"))
	if err := mgr.Add(debouncer); err != nil {
		return fmt.Errorf("adding the debouncer of changed clusters: %w", err)
	}
	reconciler := NewReconciler(mgr.GetClient(), debouncer, clk)
	reconciler.scope = scope
	source := &source{Reconciler: reconciler, log: mgr.GetLogger().WithName("clusterwatch")}
	return builder.TypedControllerManagedBy[Request](mgr).
		Named(scope.ControllerName("clusterwatch")).
		Watches(&clusterv1beta1.MemberCluster{}, source.handleClusters()).
		Watches(scope.NewBinding(""), source.handleBindings()).
		Complete(reconciler)
}
