package binding

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// projectHooks adds to the status of a binding what the lifecycle hooks of its placement make of it: a cluster that a hook holds
// is not available, and may have to be left alone by traffic. It writes the state to which the cluster comes by itself. It
// returns after how long the status is another one though nothing changes.
func (r *Reconciler) projectHooks(ctx context.Context, binding placementv1beta1.BindingObject,
	status *placementv1beta1.ResourceBindingStatus,
	available bool, now metav1.Time) (time.Duration, error) {
	placement, err := r.reader.readPlacement(ctx, binding)
	if err != nil || placement == nil {
		return 0, err
	}
	lifecycle := rules.LifecycleOf(placement)
	at, _ := rules.LifecycleStateOf(binding)
	if lifecycle == nil && at == "" {
		return 0, nil
	}
	if next := rules.NextState(lifecycle, binding, available); next != at {
		// The write triggers the next reconciliation, which reports the new state.
		if next == "" {
			err = bind.LeaveState(ctx, r.client, binding)
		} else {
			_, err = bind.EnterState(ctx, r.client, binding, next, now.Time, nil)
		}
		if err != nil && !errors.Is(err, bind.ErrFenced) {
			return 0, err
		}
	}
	if lifecycle == nil {
		return 0, nil
	}
	if serving := rules.ServingCondition(lifecycle, binding); serving != nil {
		serving.ObservedGeneration = binding.GetGeneration()
		status.Conditions = append(status.Conditions, placementv1beta1.KeepTransitionTimes(binding.GetBindingStatus().Conditions,
			[]metav1.Condition{*serving}, now)...)
	}
	wait := rules.HoldsAvailable(lifecycle, binding, now.Time)
	said := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeAvailable)
	if wait == nil || said == nil || said.Status != metav1.ConditionTrue {
		return 0, nil
	}
	held := []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonWaitingForHook,
		Message: "The cluster " + brake.HookText(wait), ObservedGeneration: binding.GetGeneration(),
	}}
	*said = placementv1beta1.KeepTransitionTimes(binding.GetBindingStatus().Conditions, held, now)[0]
	if wait.Until.IsZero() {
		return 0, nil
	}
	return max(wait.Until.Sub(now.Time), time.Second), nil
}
