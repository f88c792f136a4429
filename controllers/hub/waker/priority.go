package waker

import (
	"context"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Priority keys of workflows: of those that wait, the lowest is worked on first.
const (
	keyCritical = 1
	keyUrgent   = 2
	keyUsual    = 0 // none, which counts as 3
	keyLater    = 4
)

// criticalValue is from which value on a PriorityClass is one of the system's own.
const criticalValue = 1_000_000_000

// keyOfClass returns the priority key for the value of a PriorityClass.
func keyOfClass(value int32) int {
	switch {
	case value >= criticalValue:
		return keyCritical
	case value > 0:
		return keyUrgent
	case value < 0:
		return keyLater
	}
	return keyUsual
}

// ReadPriorityClass reads a PriorityClass; nil if there is none of the name, or the hub serves none.
func ReadPriorityClass(ctx context.Context, reader client.Reader, name string) (*schedulingv1.PriorityClass, error) {
	class := &schedulingv1.PriorityClass{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, class)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return class, err
}

// Priorities are those that users give to placements and, through these, to their update runs.
type Priorities struct{ Cached client.Reader }

// KeyOf returns the priority key of the workflow of an object. What cannot be read has the usual one: an order of work is never worth
// losing work.
func (p Priorities) KeyOf(ctx context.Context, ref wf.Ref) int {
	scope := placementv1beta1.Scope{Namespace: ref.Namespace}
	name := ref.Name
	if ref.Execution().Type == wf.UpdateRunWorkflow {
		run := scope.NewUpdateRun("")
		if p.Cached.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: name}, run) != nil {
			return keyUsual
		}
		name = run.GetUpdateRunSpec().PlacementName
	}
	placement := scope.NewPlacement("")
	if p.Cached.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: name}, placement) != nil {
		return keyUsual
	}
	policy := placement.GetPlacementSpec().Policy
	if policy == nil || policy.QueuePriorityClassName == "" {
		return keyUsual
	}
	class, err := ReadPriorityClass(ctx, p.Cached, policy.QueuePriorityClassName)
	if err != nil || class == nil {
		return keyUsual
	}
	// Who may only write in a namespace does not come before what the fleet itself depends on.
	if key := keyOfClass(class.Value); key != keyCritical || ref.Namespace == "" {
		return key
	}
	return keyUrgent
}
