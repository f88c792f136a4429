package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each rule of the domain that more than one program needs is stated here, once.

// IsDeleting says that the deletion of an object has started.
func IsDeleting(o metav1.Object) bool { return !o.GetDeletionTimestamp().IsZero() }

// IsRunOver says that a run has succeeded or failed, or that its plan could not be made: nothing more will happen to it. A
// run that is being deleted is not over for that.
func IsRunOver(run UpdateRunObject) bool {
	conditions := run.GetConditions()
	succeeded := meta.FindStatusCondition(conditions, ConditionTypeSucceeded)
	return succeeded != nil && succeeded.Status != metav1.ConditionUnknown ||
		meta.IsStatusConditionFalse(conditions, ConditionTypeInitialized)
}

// IsLiveBinding says that a binding says what a cluster is to run: the placement selects the cluster, and the binding is not
// being deleted.
func IsLiveBinding(b BindingObject) bool {
	return !IsDeleting(b) && b.GetBindingSpec().State != BindingStateUnscheduled
}
