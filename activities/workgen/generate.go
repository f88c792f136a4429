package workgen

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RevisionTimeAnnotation on a Work says when it was brought to its revision
// (RFC 3339). It is the earliest moment from which the Work can count as
// available in that revision.
const RevisionTimeAnnotation = "kubernetes-fleet.io/revision-time"

// Generate makes the Works a binding needs, one for each part of its resource
// snapshot: the master first, then the further parts in order. A part without
// resources still gets its Work, so that the member reports on it.
func Generate(binding *placementv1beta1.ClusterResourceBinding, parts []placementv1beta1.ClusterResourceSnapshot) ([]placementv1beta1.Work, error) {
	if len(parts) == 0 || parts[0].Name != binding.Spec.ResourceSnapshotName {
		return nil, fmt.Errorf("generating works of binding %s: the master of snapshot %q is not among its %d parts",
			binding.Name, binding.Spec.ResourceSnapshotName, len(parts))
	}
	placement := binding.Labels[placementv1beta1.ParentPlacementLabel]
	if placement == "" {
		return nil, fmt.Errorf("generating works of binding %s: the label %s is missing", binding.Name, placementv1beta1.ParentPlacementLabel)
	}
	works := make([]placementv1beta1.Work, 0, len(parts))
	for i := range parts {
		works = append(works, placementv1beta1.Work{
			ObjectMeta: workMeta(binding, placement, parts, i),
			Spec: placementv1beta1.WorkSpec{
				Workload:      placementv1beta1.WorkloadTemplate{Manifests: manifests(&parts[i])},
				ApplyStrategy: binding.Spec.ApplyStrategy.DeepCopy(),
			},
		})
	}
	return works, nil
}

func workMeta(binding *placementv1beta1.ClusterResourceBinding, placement string, parts []placementv1beta1.ClusterResourceSnapshot, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: placementv1beta1.MemberNamespace(binding.Spec.TargetCluster),
		Name:      placementv1beta1.WorkName(placement, i),
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel:             placement,
			placementv1beta1.ParentBindingLabel:               binding.Name,
			placementv1beta1.ParentResourceSnapshotIndexLabel: parts[i].Labels[placementv1beta1.ResourceIndexLabel],
		},
		Annotations: map[string]string{
			placementv1beta1.RevisionAnnotation:                   Revision(binding.Spec),
			placementv1beta1.BindingUIDAnnotation:                 string(binding.UID),
			placementv1beta1.BindingGenerationAnnotation:          strconv.FormatInt(binding.Generation, 10),
			placementv1beta1.WorkCountAnnotation:                  strconv.Itoa(len(parts)),
			placementv1beta1.ParentResourceSnapshotNameAnnotation: parts[i].Name,
		},
		Finalizers: []string{placementv1beta1.WorkFinalizer},
	}
}

func manifests(part *placementv1beta1.ClusterResourceSnapshot) []placementv1beta1.Manifest {
	out := make([]placementv1beta1.Manifest, 0, len(part.Spec.SelectedResources))
	for _, resource := range part.Spec.SelectedResources {
		out = append(out, placementv1beta1.Manifest(resource))
	}
	return out
}
