package workmodel

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ScalingAnnotation is on a Work that was available when nothing but its replicas was changed: how many ready pods of each
// workload are enough until all are available again.
const ScalingAnnotation = placementv1beta1.OwnPrefix + "scaling"

// maxScalingBytes bounds ScalingAnnotation and DroppedAnnotation. Beyond it, the cluster counts as unavailable while it is scaled.
const maxScalingBytes = 64 << 10

// CarryVersion lets a Work that is to replace another one of the same version go on as that version: since when it has it,
// and, if only the replicas change, with how many of them it stays available.
func CarryVersion(want, have *placementv1beta1.Work) {
	delete(want.Annotations, ScalingAnnotation)
	if have == nil || have.Annotations[placementv1beta1.RevisionAnnotation] != want.Annotations[placementv1beta1.RevisionAnnotation] ||
		have.Annotations[AssignmentsAnnotation]+want.Annotations[AssignmentsAnnotation] == "" {
		return
	}
	if since := have.Annotations[RevisionTimeAnnotation]; since != "" {
		want.Annotations[RevisionTimeAnnotation] = since
	}
	if !isAvailable(have) && !isScaledEnough(have) {
		return
	}
	enough := have.Annotations[ScalingAnnotation]
	if have.Annotations[AssignmentsAnnotation] != want.Annotations[AssignmentsAnnotation] {
		enough = enoughReplicas(want, have)
	}
	if enough != "" {
		want.Annotations[ScalingAnnotation] = enough
	}
}

// enoughReplicas works out the value of ScalingAnnotation: of each workload that is counted, the fewer of the replicas that
// the member reports for the one Work and those that the other asks for.
func enoughReplicas(want, have *placementv1beta1.Work) string {
	before := scalingOf(have)
	finished := isAvailable(have)
	dropped := droppedIn(have)
	reported := map[string]*placementv1beta1.ManifestCondition{}
	for i := range have.Status.ManifestConditions {
		reported[workloadIn(have.Status.ManifestConditions[i].Identifier)] = &have.Status.ManifestConditions[i]
	}
	enough := map[string]int32{}
	for _, ordinal := range want.Spec.ReportReplicas {
		manifest := want.Spec.Workload.Manifests[ordinal].Raw
		key := workloadOf(manifest).String()
		wanted, ok := replicasIn(manifest)
		said, known := reported[key]
		switch {
		case !ok:
		case slices.Contains(dropped, key):
			enough[key] = 0
		case known && said.ReplicaStatus != nil:
			enough[key] = min(wanted, said.ReplicaStatus.Replicas)
			if least, scaled := before[key]; scaled && !finished {
				enough[key] = min(enough[key], least)
			}
		}
	}
	raw, err := json.Marshal(enough)
	if err != nil || len(raw) > maxScalingBytes {
		return ""
	}
	return string(raw)
}

// droppedIn reads which workloads a Work leaves out.
func droppedIn(work *placementv1beta1.Work) []string {
	var dropped []string
	if err := json.Unmarshal([]byte(work.Annotations[DroppedAnnotation]), &dropped); err != nil {
		return nil
	}
	return dropped
}

// scalingOf reads ScalingAnnotation; nil if a Work has none.
func scalingOf(work *placementv1beta1.Work) map[string]int32 {
	enough := map[string]int32{}
	if err := json.Unmarshal([]byte(work.Annotations[ScalingAnnotation]), &enough); err != nil {
		return nil
	}
	return enough
}

func workloadIn(id placementv1beta1.WorkResourceIdentifier) string {
	return rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}.String()
}

// isAvailable reports whether a Work is available as it is now.
func isAvailable(work *placementv1beta1.Work) bool {
	for _, step := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable} {
		if said := currentCondition(work, step); said == nil || said.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

// isScaledEnough reports whether nothing but the replicas of a Work has changed since it was available, and that enough of them are
// ready. Before the member has carried the change out, what it reports is about what was there before.
func isScaledEnough(work *placementv1beta1.Work) bool {
	enough := scalingOf(work)
	if enough == nil {
		return false
	}
	if applied := currentCondition(work, placementv1beta1.ConditionTypeApplied); applied != nil && applied.Status != metav1.ConditionTrue {
		return false
	}
	for i := range work.Status.ManifestConditions {
		said := &work.Status.ManifestConditions[i]
		least, scaled := enough[workloadIn(said.Identifier)]
		if scaled && said.ReplicaStatus != nil && said.ReplicaStatus.Ready >= least {
			continue
		}
		// The hub keeps of a report what is not as it should be, and counts.
		if slices.ContainsFunc(said.Conditions, func(c metav1.Condition) bool { return c.Status != metav1.ConditionTrue }) {
			return false
		}
	}
	return true
}

// isScalingOver says that, by the status of a binding, the cluster has been available with the replicas that are in force
// now, or was not available before: what is missing since then is missing for another reason.
func isScalingOver(binding placementv1beta1.BindingObject) bool {
	said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeAvailable)
	if said == nil {
		return false
	}
	return said.Status != metav1.ConditionTrue || said.ObservedGeneration == binding.GetGeneration() &&
		said.Reason != placementv1beta1.ReasonScalingOnly
}

// isDividedAs reports whether Works were made with the assignments that a binding has in force.
func isDividedAs(binding placementv1beta1.BindingObject, works []placementv1beta1.Work) bool {
	hash := hashAssignments(binding)
	for i := range works {
		if works[i].Annotations[AssignmentsAnnotation] != hash {
			return false
		}
	}
	return true
}
