package worksync

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// removeLeftovers deletes, once the others are applied, Works of an earlier revision that had more parts, and those that name the UID of an
// earlier binding of the name, once a live read shows that the binding is the present one.
func (s *Syncer) removeLeftovers(ctx context.Context, binding placementv1beta1.BindingObject, existing []placementv1beta1.Work) error {
	if !workmodel.StateOf(binding, existing).Applied {
		return nil
	}
	isPresent := false
	if slices.ContainsFunc(existing, func(work placementv1beta1.Work) bool { return !workmodel.Owns(binding, &work) }) {
		present, err := readLiveBinding(ctx, s.live, placementv1beta1.ScopeOf(binding), binding.GetName())
		if err != nil {
			return err
		}
		isPresent = present != nil && present.GetUID() == binding.GetUID()
	}
	for i := range existing {
		isStale := func(work *placementv1beta1.Work) bool {
			if !workmodel.Owns(binding, work) {
				return isPresent
			}
			return generationOf(work) <= binding.GetGeneration() && work.Annotations[placementv1beta1.RevisionAnnotation] != workmodel.Revision(binding)
		}
		if err := s.removeStale(ctx, isStale, &existing[i], workmodel.AbandonsRemoved(binding)); err != nil {
			return err
		}
	}
	return nil
}

// removeStale deletes a Work if it is stale, and lets its member keep what it has brought if that is to be
// abandoned. The resource version makes sure that no later generation of its binding has taken it into use
// meanwhile.
func (s *Syncer) removeStale(ctx context.Context, isStale func(*placementv1beta1.Work) bool, work *placementv1beta1.Work,
	abandon bool) error {
	for range attempts {
		if !isStale(work) || !work.DeletionTimestamp.IsZero() {
			return nil
		}
		if abandon {
			marked, err := markAbandoned(ctx, s.client, work)
			if err != nil {
				return err
			}
			if marked == nil {
				if work, err = s.readLiveWork(ctx, work); err != nil || work == nil {
					return err
				}
				continue
			}
			work = marked
		}
		err := s.client.Delete(ctx, work, client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion})
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting work %s/%s: %w", work.Namespace, work.Name, err)
		}
		if work, err = s.readLiveWork(ctx, work); err != nil || work == nil {
			return err
		}
	}
	return fmt.Errorf("deleting work %s/%s: other writers were faster %d times", work.Namespace, work.Name, attempts)
}

// markAbandoned says on a Work that what it has brought is to stay, and returns the Work as it is then; nil if another writer
// was faster.
func markAbandoned(ctx context.Context, c client.Client, work *placementv1beta1.Work) (*placementv1beta1.Work, error) {
	const key, abandon = placementv1beta1.DeletePropagationAnnotation, string(placementv1beta1.DeletePropagationPolicyAbandon)
	if work.Annotations[key] == abandon {
		return work, nil
	}
	operations := append([]fence.Op{fence.Test("/metadata/resourceVersion", work.ResourceVersion)},
		fence.Annotate(work.Annotations, key, abandon)...)
	patch, err := fence.Patch(work.UID, operations...)
	if err != nil {
		return nil, err
	}
	marked := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	switch err := c.Patch(ctx, marked, patch); {
	case lostRace(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("marking work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return marked, nil
}

// Delete starts the deletion of all Works of a binding and says how many are
// still there. The answer 0 was read live: no Work will come back to life.
func (s *Syncer) Delete(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error) {
	return s.clearWorks(ctx, binding, s.removeWork)
}

// Abandon deletes all Works of a binding without waiting for the member to
// clean up: there is no member any more that could.
func (s *Syncer) Abandon(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error) {
	return s.clearWorks(ctx, binding, s.abandonWork)
}

// Leave deletes all Works of a binding and has their member leave what they placed.
func (s *Syncer) Leave(ctx context.Context, binding placementv1beta1.BindingObject) (remaining int, err error) {
	return s.clearWorks(ctx, binding, s.leaveWork)
}

// leaveWork deletes a Work that says that what it has brought is to stay. It says so first: a
// member that sees it being deleted must know.
func (s *Syncer) leaveWork(ctx context.Context, work client.Object) error {
	if !work.GetDeletionTimestamp().IsZero() {
		return nil
	}
	operations := fence.Annotate(work.GetAnnotations(), placementv1beta1.DeletePropagationAnnotation,
		string(placementv1beta1.DeletePropagationPolicyAbandon))
	patch, err := fence.Patch(work.GetUID(), operations...)
	if err != nil {
		return err
	}
	marked := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: work.GetNamespace(), Name: work.GetName(),
		UID: work.GetUID()}}
	marked.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("Work"))
	err = s.client.Patch(ctx, marked, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsInvalid(err) {
		// Both a test that failed and a policy that does not want the write answer so.
		if changed, failed := s.hasChanged(ctx, work); failed != nil || changed {
			return failed // it is gone, or another one, or was changed: what is left is looked at again
		}
	}
	if err != nil {
		return fmt.Errorf("marking work %s/%s: %w", work.GetNamespace(), work.GetName(), err)
	}
	return s.removeWork(ctx, work)
}

// hasChanged reports whether a Work is no longer what it was as to what leave tests.
func (s *Syncer) hasChanged(ctx context.Context, work client.Object) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("Work"))
	err := s.live.Get(ctx, client.ObjectKeyFromObject(work), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading work %s/%s: %w", work.GetNamespace(), work.GetName(), err)
	}
	const key = placementv1beta1.DeletePropagationAnnotation
	same := err == nil && now.UID == work.GetUID() && now.Annotations[key] == work.GetAnnotations()[key] &&
		(len(now.Annotations) == 0) == (len(work.GetAnnotations()) == 0)
	return !same, nil
}

func (s *Syncer) clearWorks(ctx context.Context, binding placementv1beta1.BindingObject,
	remove func(context.Context, client.Object) error) (int, error) {
	works, err := s.Of(ctx, binding)
	if err != nil {
		return 0, err
	}
	remaining, err := clearEach(ctx, binding, asObjects(works), remove)
	if err != nil || remaining > 0 {
		return remaining, err
	}
	var known metav1.PartialObjectMetadataList
	known.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
	if err := s.live.List(ctx, &known, ofBinding(binding)...); err != nil {
		return 0, fmt.Errorf("listing the works of binding %s: %w", binding.GetName(), err)
	}
	objects := make([]client.Object, 0, len(known.Items))
	for i := range known.Items {
		known.Items[i].SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("Work"))
		objects = append(objects, &known.Items[i])
	}
	return clearEach(ctx, binding, objects, remove)
}

func asObjects(works []placementv1beta1.Work) []client.Object {
	objects := make([]client.Object, 0, len(works))
	for i := range works {
		objects = append(objects, &works[i])
	}
	return objects
}

func clearEach(ctx context.Context, binding placementv1beta1.BindingObject, works []client.Object,
	remove func(context.Context, client.Object) error) (int, error) {
	remaining := 0
	var failures []error
	for _, work := range works {
		if !rules.IsWorkOf(work, binding) {
			continue
		}
		remaining++
		failures = append(failures, remove(ctx, work))
	}
	return remaining, errors.Join(failures...)
}

func (s *Syncer) removeWork(ctx context.Context, work client.Object) error {
	if !work.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := s.client.Delete(ctx, work, client.Preconditions{UID: new(work.GetUID())})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting work %s/%s: %w", work.GetNamespace(), work.GetName(), err)
	}
	return nil
}

func (s *Syncer) abandonWork(ctx context.Context, work client.Object) error {
	if err := s.removeWork(ctx, work); err != nil {
		return err
	}
	if len(work.GetFinalizers()) == 0 {
		return nil
	}
	return ReleaseWork(ctx, s.client, work)
}

// ReleaseWork takes the finalizers off a Work whose member cannot do it.
func ReleaseWork(ctx context.Context, writer client.Writer, work client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	err := writer.Patch(ctx, work, patch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing work %s/%s: %w", work.GetNamespace(), work.GetName(), err)
	}
	return nil
}
