package workmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RevisionTimeAnnotation on a Work says when it was brought to its revision
// (RFC 3339). It is the earliest moment from which the Work can count as
// available in that revision.
const RevisionTimeAnnotation = placementv1beta1.OwnPrefix + "revision-time"

// Generate makes the Works a binding needs: one for each part of its resource
// snapshot, the master first, then one for each envelope. A part without resources
// still gets its Work, so that the member reports on it. An envelope that cannot be
// unpacked gets none, but it counts: without its Work the binding is not synchronized.
func Generate(binding placementv1beta1.BindingObject, content *Content) ([]placementv1beta1.Work, error) {
	if len(content.parts) == 0 || content.parts[0].GetName() != binding.GetBindingSpec().ResourceSnapshotName {
		return nil, fmt.Errorf("generating works of binding %s: the master of snapshot %q is not among its %d parts",
			binding.GetName(), binding.GetBindingSpec().ResourceSnapshotName, len(content.parts))
	}
	placement := rules.PlacementNameOf(binding)
	if placement == "" {
		return nil, fmt.Errorf("generating works of binding %s: the label %s is missing", binding.GetName(),
			placementv1beta1.ParentPlacementLabel)
	}
	base := baseOfWorkNames(binding.GetNamespace(), placement)
	works := make([]placementv1beta1.Work, 0, len(content.units))
	for i := range content.units {
		p := &content.units[i]
		if p.invalid {
			continue
		}
		work := placementv1beta1.Work{
			ObjectMeta: workMeta(binding, content.parts[p.part], len(content.units)),
			Spec: placementv1beta1.WorkSpec{
				Workload:      placementv1beta1.WorkloadTemplate{Manifests: p.manifests},
				ApplyStrategy: binding.GetBindingSpec().ApplyStrategy.DeepCopy(),
			},
		}
		work.Name = placementv1beta1.WorkName(base, p.part)
		if p.envelope != nil {
			work.Name = placementv1beta1.EnvelopeWorkName(base, *p.envelope)
			markEnvelope(&work.ObjectMeta, p.envelope)
		}
		if held := content.heldBackIn(i); held != "" {
			work.Annotations[HeldBackAnnotation] = held
		}
		content.markReplicas(&work, i, binding)
		works = append(works, work)
	}
	return works, nil
}

// baseOfWorkNames returns what the names of the Works of a placement begin with. The Works of
// all placements of a cluster are in one namespace, so that of the placement goes in.
func baseOfWorkNames(namespace, placement string) string {
	if namespace == "" {
		return placement
	}
	return namespace + "." + placement
}

func workMeta(binding placementv1beta1.BindingObject, part placementv1beta1.ResourceSnapshotObject, count int) metav1.ObjectMeta {
	work := metav1.ObjectMeta{
		Namespace: placementv1beta1.MemberNamespace(binding.GetBindingSpec().TargetCluster),
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel:             rules.PlacementNameOf(binding),
			placementv1beta1.ParentBindingLabel:               binding.GetName(),
			placementv1beta1.ParentResourceSnapshotIndexLabel: part.GetLabels()[placementv1beta1.ResourceIndexLabel],
		},
		Annotations: map[string]string{
			placementv1beta1.RevisionAnnotation:                   Revision(binding),
			placementv1beta1.BindingUIDAnnotation:                 string(binding.GetUID()),
			placementv1beta1.BindingGenerationAnnotation:          strconv.FormatInt(binding.GetGeneration(), 10),
			placementv1beta1.WorkCountAnnotation:                  strconv.Itoa(count),
			placementv1beta1.ParentResourceSnapshotNameAnnotation: part.GetName(),
		},
		Finalizers: []string{placementv1beta1.WorkFinalizer},
	}
	if AbandonsRemoved(binding) {
		work.Annotations[placementv1beta1.RemovedResourcesAnnotation] = string(placementv1beta1.DeletePropagationPolicyAbandon)
	}
	if namespace := binding.GetNamespace(); namespace != "" {
		work.Labels[placementv1beta1.ParentNamespaceLabel] = namespace
	}
	return work
}

// AbandonsRemoved reports whether resources that leave a binding, or one of its Works, stay on the member.
func AbandonsRemoved(object metav1.Object) bool {
	return object.GetAnnotations()[placementv1beta1.RemovedResourcesAnnotation] == string(placementv1beta1.DeletePropagationPolicyAbandon)
}

// ReportBack returns what the Works of a placement say about reporting the status of objects;
// nil if it is not reported. It is no part of a revision: what runs is the same.
func ReportBack(placement placementv1beta1.PlacementObject) *placementv1beta1.ReportBackStrategy {
	strategy := rules.StrategyOf(placement).ReportBackStrategy
	if strategy == nil || strategy.Type != placementv1beta1.ReportBackStrategyTypeMirror {
		return nil
	}
	return strategy.DeepCopy()
}

// AnnotateRank says on a Work what rank its placement has. What is in an envelope is not selected, so that no placement gives it
// up to another.
func AnnotateRank(work *placementv1beta1.Work, placement placementv1beta1.PlacementObject) {
	rank, ok := rules.RankOf(placement)
	if !ok || work.Labels[placementv1beta1.EnvelopeTypeLabel] != "" {
		return
	}
	work.Annotations[placementv1beta1.PriorityAnnotation] = strconv.Itoa(int(rank.Priority))
	if rank.Preempts {
		work.Annotations[placementv1beta1.PreemptionAnnotation] = string(placementv1beta1.PreemptionAlways)
	}
}

// AnnotatePruning says on a Work how its placement has objects removed. It is no part of a revision: what runs is the same.
func AnnotatePruning(work *placementv1beta1.Work, placement placementv1beta1.PlacementObject) {
	if said := rules.PruningOf(placement); said != "" {
		work.Annotations[placementv1beta1.PruneAnnotation] = said
	}
}

// markEnvelope says on a Work which envelope it was made of.
func markEnvelope(work *metav1.ObjectMeta, id *placementv1beta1.EnvelopeIdentifier) {
	work.Labels[placementv1beta1.EnvelopeTypeLabel] = string(id.Type)
	work.Labels[placementv1beta1.EnvelopeNamespaceLabel] = id.Namespace
	work.Labels[placementv1beta1.EnvelopeNameLabel] = labelValue(id.Name)
	work.Annotations[placementv1beta1.EnvelopeNameAnnotation] = id.Name
}

// hashInLabel is the number of hex digits that tell apart names cut for a label.
const hashInLabel = 8

// labelValue returns a name as the value of a label: the name itself, unless it is too
// long.
func labelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	kept := strings.TrimRight(name[:validation.LabelValueMaxLength-hashInLabel-1], "-.")
	return kept + "-" + hex.EncodeToString(sum[:])[:hashInLabel]
}

// envelopeOf reads off a Work which envelope it was made of; nil if it was of none.
func envelopeOf(work *placementv1beta1.Work) *placementv1beta1.EnvelopeIdentifier {
	envelopeType := work.Labels[placementv1beta1.EnvelopeTypeLabel]
	if envelopeType == "" {
		return nil
	}
	return &placementv1beta1.EnvelopeIdentifier{
		Name:      work.Annotations[placementv1beta1.EnvelopeNameAnnotation],
		Namespace: work.Labels[placementv1beta1.EnvelopeNamespaceLabel],
		Type:      placementv1beta1.EnvelopeType(envelopeType),
	}
}
