package hub

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// shareStrings lets bindings and Works share the memory of what most of them say alike: keys and names, conditions and why
// a cluster was picked. There may be 100,000 of both, and each is decoded with strings, and room for conditions, of its own.
func shareStrings(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		switch o := object.(type) {
		case *placementv1beta1.Work:
			shareMetadata(o)
			o.Status.Conditions = shareConditions(o.Status.Conditions)
		case placementv1beta1.BindingObject:
			shareMetadata(o)
			shareDecision(o.GetBindingSpec())
			status := o.GetBindingStatus()
			status.Conditions = shareConditions(status.Conditions)
		}
		return next(object)
	}
}

// shareString returns the one copy of a string that all share. It goes when nothing has it any more.
func shareString(s string) string { return unique.Make(s).Value() }

func shareMetadata(object client.Object) {
	object.SetNamespace(shareString(object.GetNamespace()))
	labels := shareKeys(object.GetLabels())
	for key, value := range labels {
		labels[key] = shareString(value)
	}
	object.SetLabels(labels)
	object.SetAnnotations(shareKeys(object.GetAnnotations())) // their values are times and UIDs, which differ
	for i, finalizer := range object.GetFinalizers() {
		object.GetFinalizers()[i] = shareString(finalizer)
	}
}

// shareKeys returns a map of its own with shared keys.
func shareKeys(all map[string]string) map[string]string {
	if len(all) == 0 {
		return all
	}
	with := make(map[string]string, len(all))
	for key, value := range all {
		with[shareString(key)] = value
	}
	return with
}

func shareDecision(spec *placementv1beta1.ResourceBindingSpec) {
	for _, text := range []*string{
		&spec.ResourceSnapshotName, &spec.SchedulingPolicySnapshotName, &spec.TargetCluster, &spec.ClusterDecision.ClusterName, &spec.ClusterDecision.Reason,
	} {
		*text = shareString(*text)
	}
}

// shareConditions returns the conditions in as little room as they need.
func shareConditions(all []metav1.Condition) []metav1.Condition {
	if len(all) == 0 {
		return all
	}
	conditions := make([]metav1.Condition, len(all))
	copy(conditions, all)
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Reason, c.Message = shareString(c.Type), shareString(c.Reason), shareString(c.Message)
		c.Status = metav1.ConditionStatus(shareString(string(c.Status)))
	}
	return conditions
}
