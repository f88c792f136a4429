package binding

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReasonBindingLeftAlone is the reason of the event on a binding whose owner is unknown.
const ReasonBindingLeftAlone = "BindingLeftAlone"

// isDisputed reports whether a binding names another placement as its owner than its label does.
func isDisputed(binding placementv1beta1.BindingObject) bool {
	named := placementv1beta1.ScopeOf(binding).NewPlacement(rules.PlacementNameOf(binding))
	return rules.KinshipOf(binding, rules.PlacementOwner(named)) == rules.KinshipDisputed
}

// adoptBinding adds to a binding that another author has made what ours have from the start: the note of what its overrides
// are applied from. It says whether the binding has it; after a write, the event of the write triggers the next
// reconciliation.
func (r *Reconciler) adoptBinding(ctx context.Context, binding placementv1beta1.BindingObject) (adopted bool, err error) {
	refs := override.RefsOf(*binding.GetBindingSpec())
	if _, noted := binding.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation]; noted || len(refs) == 0 {
		return true, nil
	}
	inputs, err := hubread.OverrideInputs(ctx, r.client, r.reader.live, refs, binding.GetBindingSpec().TargetCluster)
	if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone || err == nil && inputs == "" {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the overrides of binding %s: %w", binding.GetName(), err)
	}
	return false, r.patchMetadata(ctx, binding, fence.Annotate(binding.GetAnnotations(), placementv1beta1.OverrideInputsAnnotation, inputs))
}

// restoreLabel labels a binding with the placement that its policy snapshot is of. If there is no such placement, the binding
// stays as it is: nothing says what it is there for.
func (r *Reconciler) restoreLabel(ctx context.Context, binding placementv1beta1.BindingObject) error {
	name := rules.PlacementNameOf(binding)
	placement, err := r.reader.readPlacementNamed(ctx, binding, name)
	if err != nil {
		return err
	}
	if placement == nil {
		r.emitLeftAlone(binding, "it has no label "+placementv1beta1.ParentPlacementLabel+
			", and the policy snapshot it names is of no placement. Label it, or delete it")
		return nil
	}
	labels := map[string]string{placementv1beta1.ParentPlacementLabel: name}
	if len(binding.GetLabels()) == 0 {
		return r.patchMetadata(ctx, binding, []fence.Op{fence.Test("/metadata/labels", nil), fence.Add("/metadata/labels", labels)})
	}
	return r.patchMetadata(ctx, binding, []fence.Op{fence.Add(fence.LabelPath(placementv1beta1.ParentPlacementLabel), name)})
}

// emitLeftAlone says why a binding is left alone.
func (r *Reconciler) emitLeftAlone(binding placementv1beta1.BindingObject, why string) {
	if r.Events != nil {
		r.Events.Eventf(binding, nil, "Warning", ReasonBindingLeftAlone, "Adopt", "The binding is left alone: %s", why)
	}
}

func (r *Reconciler) patchMetadata(ctx context.Context, binding placementv1beta1.BindingObject, operations []fence.Op) error {
	patch, err := fence.Patch(binding.GetUID(), operations...)
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, placementv1beta1.DeepCopyOf(binding), patch)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // it is gone, or was changed meanwhile, which triggers the next reconciliation
	}
	if err != nil {
		return fmt.Errorf("adopting binding %s: %w", binding.GetName(), err)
	}
	return nil
}
