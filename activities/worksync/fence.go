package worksync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const timeFormat = time.RFC3339

// replacementPatch is the patch that makes have what want is. It tests that the Work
// has not been replaced since have was read. The resource version is no fence
// here: it moves with every report of the member.
func replacementPatch(want, have *placementv1beta1.Work) (client.Patch, error) {
	var operations []fence.Op
	for _, key := range []string{
		placementv1beta1.BindingUIDAnnotation,
		placementv1beta1.BindingGenerationAnnotation,
		placementv1beta1.RevisionAnnotation,
	} {
		if value, ok := have.Annotations[key]; ok {
			operations = append(operations, fence.Test(fence.AnnotationPath(key), value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want.Annotations)) {
		operations = append(operations, fence.Add(fence.AnnotationPath(key), want.Annotations[key]))
	}
	operations = append(operations, dropTrace(want, have)...)
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		operations = append(operations, fence.Add(fence.LabelPath(key), want.Labels[key]))
	}
	if !slices.Contains(have.Finalizers, placementv1beta1.WorkFinalizer) {
		finalizers := append(slices.Clone(have.Finalizers), want.Finalizers...)
		operations = append(operations, fence.Add("/metadata/finalizers", finalizers))
	}
	return fence.Patch(have.UID, append(operations, fence.Add("/spec", want.Spec))...)
}

// takeOver replaces a Work whose binding is gone: that binding was removed
// without its clean-up. It proves live that the old binding is gone and that
// the new one is the present one; a late attempt for the old one fails here.
func (s *Syncer) takeOver(ctx context.Context, binding placementv1beta1.BindingObject, want *placementv1beta1.Work) (again bool, err error) {
	have, err := s.readLiveWork(ctx, want)
	if err != nil {
		return false, err
	}
	if have == nil || stateOfWork(want, have) != foreign {
		return true, nil
	}
	held := &HeldError{Work: want.Namespace + "/" + want.Name, Why: "belongs to another binding"}
	owner, err := s.readLiveBinding(ctx, placementv1beta1.Scope{Namespace: have.Labels[placementv1beta1.ParentNamespaceLabel]},
		have.Labels[placementv1beta1.ParentBindingLabel])
	if err != nil {
		return false, err
	}
	if owner != nil && workmodel.Owns(owner, have) {
		return false, held
	}
	present, err := s.readLiveBinding(ctx, placementv1beta1.ScopeOf(binding), binding.GetName())
	if err != nil {
		return false, err
	}
	if present == nil || present.GetUID() != binding.GetUID() || !present.GetDeletionTimestamp().IsZero() {
		return false, held
	}
	replaced := want.DeepCopy()
	replaced.UID, replaced.ResourceVersion = have.UID, have.ResourceVersion
	err = s.client.Update(ctx, replaced)
	if lostRace(err) {
		return true, nil
	}
	return false, err
}

func (s *Syncer) readLiveBinding(ctx context.Context, scope placementv1beta1.Scope, name string) (placementv1beta1.BindingObject, error) {
	if name == "" {
		return nil, nil // no binding is an answer, not a failure
	}
	binding := scope.NewBinding(name)
	err := s.live.Get(ctx, scope.Key(name), binding)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading binding %s%s: %w", scope, name, err)
	}
	return binding, nil
}
