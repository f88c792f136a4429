package placement

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// syncedCondition says whether the copy of the status is in step; problem is what keeps it from being so.
func syncedCondition(placement placementv1beta1.PlacementObject, namespace string, problem error) metav1.Condition {
	condition := metav1.Condition{
		Type:   placementv1beta1.ScopeOf(placement).PlacementConditionType(placementv1beta1.ConditionTypeStatusSynced),
		Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonStatusSyncSucceeded, Message: fmt.Sprintf("The status is copied into namespace %q", namespace),
	}
	if problem != nil {
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonStatusSyncFailed
		condition.Message = fmt.Sprintf("The status could not be copied into namespace %q: %v", namespace, problem)
	}
	return condition
}

// statusCopy reads the copy of a placement's status from the cache; nil if there is none.
func (r *Reconciler) statusCopy(ctx context.Context, placement placementv1beta1.PlacementObject,
	namespace string) (*placementv1beta1.ClusterResourcePlacementStatus, error) {
	found := &placementv1beta1.ClusterResourcePlacementStatus{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: placement.GetName()}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the status of %s: %w", placement.GetName(), err)
	}
	return found, nil
}

// copyStatus brings the copy of a placement's status in step. The problem is the user's to solve, the error is not.
func (r *Reconciler) copyStatus(ctx context.Context, placement placementv1beta1.PlacementObject, namespace string,
	status placementv1beta1.PlacementStatus) (problem, err error) {
	have, err := r.statusCopy(ctx, placement, namespace)
	if err != nil {
		return nil, err
	}
	if have != nil && apiequality.Semantic.DeepEqual(have.SourceStatus, status) {
		return nil, nil
	}
	want := &placementv1beta1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: placement.GetName(), OwnerReferences: []metav1.OwnerReference{rules.PlacementOwner(placement)},
	}}
	if have != nil {
		want = have.DeepCopy()
		want.OwnerReferences = rules.InheritedBy(have, rules.PlacementOwner(placement))
	}
	want.SourceStatus = *status.DeepCopy()
	want.LastUpdatedTime = metav1.NewTime(r.clock.Now())
	if have == nil {
		err = r.client.Create(ctx, want)
	} else {
		err = r.client.Update(ctx, want)
	}
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return err, nil // the placement comes back when its namespace does
	}
	return err, fmt.Errorf("copying the status of %s into namespace %s: %w", placement.GetName(), namespace, err)
}

// requestCopied requests the placement of which an object is a copy of the status.
func requestCopied(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != (placementv1beta1.Scope{}).PlacementKind().Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: owner.Name}}}
}
