package rollingupdate

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	act "github.com/fleetflow/fleetflow/activities/contract"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxWaiting bounds how many clusters a result names: it is part of the history.
const maxWaiting = 10

// stepRemoved is what a cluster is told to wait for whose binding is being deleted.
const stepRemoved = "Removed"

// waiting tells which clusters a rollout waits for, the longest first.
func (f *rolloutFacts) waiting() []act.Waiting {
	all := make([]act.Waiting, 0, len(f.down))
	for _, b := range f.down {
		all = append(all, waitingFor(b))
	}
	slices.SortFunc(all, func(a, b act.Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster))
	})
	return all[:min(len(all), maxWaiting)]
}

// waitingFor tells what is missing on a cluster, as far as its binding knows. It has no
// messages: they may be long, and the binding has them.
func waitingFor(b *placementv1beta1.ClusterResourceBinding) act.Waiting {
	w := act.Waiting{Cluster: b.Spec.TargetCluster, Step: placementv1beta1.ConditionTypeAvailable}
	if !b.DeletionTimestamp.IsZero() {
		w.Step, w.Since = stepRemoved, b.DeletionTimestamp.UTC()
		return w
	}
	for _, step := range []string{
		placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized, placementv1beta1.ConditionTypeApplied,
		placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported,
	} {
		c := meta.FindStatusCondition(b.Status.Conditions, step)
		if c != nil && c.Status != metav1.ConditionTrue {
			w.Step, w.Reason, w.Since = step, c.Reason, c.LastTransitionTime.UTC()
			break
		}
	}
	if len(b.Status.FailedPlacements) > 0 {
		first := &b.Status.FailedPlacements[0]
		w.Object, w.Reason = objectOf(first.ResourceIdentifier), first.Condition.Reason
	}
	return w
}

// objectOf names an object for people.
func objectOf(id placementv1beta1.ResourceIdentifier) string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}
