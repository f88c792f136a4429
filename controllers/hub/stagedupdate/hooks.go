package stagedupdate

import (
	"context"
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
// lifecycle hook, and has not updated yet. A later run that is to update one of them prepares it again. It fails if a binding
// has changed meanwhile, and is tried again.
func (r *Reconciler) putBackPrepared(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	var running []string
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		running = append(running, updaterun.NamesIn(&stages[i], updaterun.PhaseRunning)...)
	}
	if rules.IsRunOver(run) || len(running) == 0 {
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
	for _, binding := range bindings.Objects() {
		state, _ := rules.LifecycleStateOf(binding)
		if state != placementv1beta1.LifecyclePreparingUpdate || !slices.Contains(running, binding.GetBindingSpec().TargetCluster) {
			continue
		}
		if _, err := bind.EnterState(ctx, r.client, binding, rules.StateWhenGivenUp(lifecycle, binding), r.clock.Now(), nil); err != nil {
			return fmt.Errorf("putting cluster %s back into service: %w", binding.GetBindingSpec().TargetCluster, err)
		}
	}
	return nil
}
