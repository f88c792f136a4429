package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// putBackPrepared puts clusters back into service that a run which is being deleted has taken out of service, because of a
// lifecycle hook, and has not updated, those included that it has given up or skipped, unless they were prepared after that, by another
// run. A later run that is to update one of them prepares it again. It fails if a binding
// has changed meanwhile, or the API server refuses to write it, and is tried again; the others are put back all the same.
func (r *Reconciler) putBackPrepared(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	prepared := preparedBy(run)
	if rules.IsRunOver(run) || len(prepared) == 0 {
		return nil
	}
	scope := placementv1beta1.ScopeOf(run)
	placement := scope.NewPlacement(run.GetUpdateRunSpec().PlacementName)
	if err := r.client.Get(ctx, types.NamespacedName{Namespace: run.GetNamespace(), Name: placement.GetName()}, placement,
		client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	lifecycle := rules.LifecycleOf(placement)
	if lifecycle == nil {
		return nil
	}
	bindings := scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.InNamespace(run.GetNamespace()),
		client.MatchingFields{fieldindex.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the bindings of placement %s: %w", placement.GetName(), err)
	}
	var failed []error
	for _, binding := range bindings.Objects() {
		state, since := rules.LifecycleStateOf(binding)
		cluster := prepared[binding.GetBindingSpec().TargetCluster]
		if state != placementv1beta1.LifecyclePreparingUpdate || cluster == nil || updaterun.ConcludedBefore(cluster, since) {
			continue
		}
		if _, err := bind.EnterState(ctx, r.client, binding, rules.StateWhenGivenUp(lifecycle, binding), r.clock.Now(), nil); err != nil {
			failed = append(failed, fmt.Errorf("putting cluster %s back into service: %w", binding.GetBindingSpec().TargetCluster, err))
		}
	}
	return joinFirst(failed)
}

// preparedBy returns the clusters, by name, that a run may have taken out of service and has not updated.
func preparedBy(run placementv1beta1.UpdateRunObject) map[string]*placementv1beta1.ClusterUpdatingStatus {
	prepared := map[string]*placementv1beta1.ClusterUpdatingStatus{}
	left := updaterun.OutOfService(run)
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for j := range stages[i].Clusters {
			cluster := &stages[i].Clusters[j]
			switch updaterun.ClusterPhase(cluster) {
			case updaterun.PhaseRunning, updaterun.PhaseFailed, updaterun.PhaseSkipped:
				prepared[cluster.ClusterName] = cluster
			default:
				if slices.Contains(left, cluster.ClusterName) {
					prepared[cluster.ClusterName] = cluster
				}
			}
		}
	}
	return prepared
}

// maxTold bounds the clusters that an error names.
const maxTold = 20

// joinFirst joins errors, the first of them if there are many; nil if there are none.
func joinFirst(all []error) error {
	told := all[:min(len(all), maxTold)]
	if more := len(all) - len(told); more > 0 {
		return fmt.Errorf("%w\nand %d more clusters", errors.Join(told...), more)
	}
	return errors.Join(told...)
}
