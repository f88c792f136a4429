package worksync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const timeFormat = time.RFC3339

// replacementPatch returns the patch that makes have what want is. The resource version is no fence
// here: it moves with every report of the member.
func replacementPatch(want, have *placementv1beta1.Work) (client.Patch, error) {
	return fence.Patch(have.UID, append(metadataOperations(want, have), fence.Add("/spec", want.Spec))...)
}

// metadataOperations make have say what want says of itself. They test that the Work has not been
// replaced since have was read.
func metadataOperations(want, have *placementv1beta1.Work) []fence.Op {
	var operations []fence.Op
	if len(have.Annotations) == 0 {
		operations = append(operations, fence.Test("/metadata/annotations", nil), fence.Add("/metadata/annotations", map[string]string{}))
	} else {
		for _, key := range []string{
			placementv1beta1.BindingUIDAnnotation,
			placementv1beta1.BindingGenerationAnnotation,
			placementv1beta1.RevisionAnnotation,
		} {
			var seen any // none, if another author has written the Work
			if value, ok := have.Annotations[key]; ok {
				seen = value
			}
			operations = append(operations, fence.Test(fence.AnnotationPath(key), seen))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Annotations)) {
		operations = append(operations, fence.Add(fence.AnnotationPath(key), want.Annotations[key]))
	}
	operations = append(operations, dropTrace(want, have)...)
	for _, key := range []string{workmodel.AssignmentsAnnotation, workmodel.DroppedAnnotation, workmodel.OverriddenReplicasAnnotation,
		workmodel.ScalingAnnotation} {
		operations = append(operations, dropAnnotation(want, have, key)...)
	}
	for _, key := range []string{workmodel.HeldBackAnnotation, placementv1beta1.RemovedResourcesAnnotation,
		placementv1beta1.DeletePropagationAnnotation,
		placementv1beta1.PruneAnnotation, placementv1beta1.PriorityAnnotation, placementv1beta1.PreemptionAnnotation} {
		operations = append(operations, dropAnnotation(want, have, key)...)
	}
	if len(have.Labels) == 0 {
		operations = append(operations, fence.Add("/metadata/labels", map[string]string{}))
	}
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		operations = append(operations, fence.Add(fence.LabelPath(key), want.Labels[key]))
	}
	if !slices.Contains(have.Finalizers, placementv1beta1.WorkFinalizer) {
		finalizers := append(slices.Clone(have.Finalizers), want.Finalizers...)
		operations = append(operations, fence.Add("/metadata/finalizers", finalizers))
	}
	return append(operations, fence.Untrack(have)...)
}

// takeOver replaces a Work whose binding is gone: that binding was removed
// without its clean-up. It proves live that the old binding is gone and that
// the new one is the present one; a late attempt for the old one fails here.
func (s *Syncer) takeOver(ctx context.Context, binding placementv1beta1.BindingObject,
	want *placementv1beta1.Work) (again bool, err error) {
	have, err := s.readLiveWork(ctx, want)
	if err != nil {
		return false, err
	}
	if have == nil || stateOfWork(want, have) != foreign {
		return true, nil
	}
	held := &HeldError{Work: want.Namespace + "/" + want.Name, Why: "belongs to " + describeHolder(binding, have)}
	owner, err := readLiveBinding(ctx, s.live, placementv1beta1.Scope{Namespace: have.Labels[placementv1beta1.ParentNamespaceLabel]},
		have.Labels[placementv1beta1.ParentBindingLabel])
	if err != nil {
		return false, err
	}
	if owner != nil && workmodel.Owns(owner, have) {
		return false, held
	}
	present, err := readLiveBinding(ctx, s.live, placementv1beta1.ScopeOf(binding), binding.GetName())
	if err != nil {
		return false, err
	}
	if present == nil || present.GetUID() != binding.GetUID() || !present.GetDeletionTimestamp().IsZero() {
		return false, held
	}
	replaced := want.DeepCopy()
	replaced.UID = have.UID
	replaced.ResourceVersion = have.ResourceVersion
	err = s.client.Update(ctx, replaced)
	if lostRace(err) {
		return true, nil
	}
	return false, err
}

// describeHolder returns whose a Work is that has the name of one of a binding's. Placements of different kinds can want one
// name: team.web, and web in namespace team.
func describeHolder(binding placementv1beta1.BindingObject, have *placementv1beta1.Work) string {
	scope := placementv1beta1.Scope{Namespace: have.Labels[placementv1beta1.ParentNamespaceLabel]}
	name := have.Labels[placementv1beta1.ParentPlacementLabel]
	if name == "" || scope == placementv1beta1.ScopeOf(binding) && name == rules.PlacementNameOf(binding) {
		return "another binding"
	}
	return fmt.Sprintf("%s %s%s, which had the name first: rename one of the two placements", scope.PlacementKind().Kind, scope, name)
}

func readLiveBinding(ctx context.Context, live client.Reader, scope placementv1beta1.Scope,
	name string) (placementv1beta1.BindingObject, error) {
	if name == "" {
		return nil, nil // no binding is an answer, not a failure
	}
	return hubread.Existing(ctx, live, scope.NewBinding(name), "binding")
}
