package rollingupdate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// maxWaiting bounds how many clusters a result names: it is part of the history.
const maxWaiting = 10

// stepRemoved is the step that a cluster waits for whose binding is being deleted.
const stepRemoved = "Removed"

// bindingSteps are the conditions of a binding in the order in which they become true.
var bindingSteps = []string{
	placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized, placementv1beta1.ConditionTypeApplied,
	placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported,
}

// describeWaiting returns what the bindings of a rollout wait for, the longest wait first.
func describeWaiting(bindings []placementv1beta1.BindingObject, lifecycle *placementv1beta1.ClusterLifecycle, now time.Time) []wf.Waiting {
	all := make([]wf.Waiting, 0, len(bindings))
	for _, b := range bindings {
		w := describeWait(b)
		if held := rules.HoldsAvailable(lifecycle, b, now); held != nil && w.Step != stepRemoved &&
			(!held.PutOn || w.Reason == placementv1beta1.ReasonWaitingForHook) {
			w = wf.Waiting{Cluster: w.Cluster, Since: held.Since.UTC(), Step: "hook " + held.Hook, Reason: placementv1beta1.ReasonWaitingForHook,
				Object: held.Need()}
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b wf.Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster))
	})
	return all[:min(len(all), maxWaiting)]
}

// describeWait returns what is missing on a cluster, as far as its binding tells. It has no
// messages: they may be long, and the binding has them.
func describeWait(b placementv1beta1.BindingObject) wf.Waiting {
	w := wf.Waiting{Cluster: b.GetBindingSpec().TargetCluster, Step: placementv1beta1.ConditionTypeAvailable}
	if deleted := b.GetDeletionTimestamp(); !deleted.IsZero() {
		w.Step = stepRemoved
		w.Since = deleted.UTC()
		return w
	}
	for _, step := range bindingSteps {
		c := meta.FindStatusCondition(b.GetConditions(), step)
		if c != nil && c.Status != metav1.ConditionTrue {
			w.Step = step
			w.Reason = c.Reason
			w.Since = c.LastTransitionTime.UTC()
			break
		}
	}
	if failed := b.GetBindingStatus().FailedPlacements; len(failed) > 0 {
		w.Object = formatObject(failed[0].ResourceIdentifier)
		w.Reason = failed[0].Condition.Reason
	}
	return w
}

// formatObject names an object for users.
func formatObject(id placementv1beta1.ResourceIdentifier) string {
	return id.Kind + " " + placementv1beta1.Scope{Namespace: id.Namespace}.String() + id.Name
}
