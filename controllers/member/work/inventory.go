package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// inventory keeps what AppliedWorks list: the objects that Works have on the member.
type inventory struct {
	member  client.Client
	watcher *Watcher
}

// ensureAppliedWork returns the AppliedWork of a Work and creates it if it is missing. It reuses
// what the last pass wrote until the watch sees another version.
func (i inventory) ensureAppliedWork(
	ctx context.Context, work *placementv1beta1.Work, mem *memory,
) (*placementv1beta1.AppliedWork, error) {
	name := types.NamespacedName{Name: work.Name}
	if mem.applied != nil && i.watcher.isAppliedWorkCurrent(mem.applied) {
		return mem.applied, nil
	}
	applied := &placementv1beta1.AppliedWork{}
	err := i.member.Get(ctx, name, applied)
	if apierrors.IsNotFound(err) {
		applied = &placementv1beta1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: work.Name},
			Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work.Name, WorkNamespace: work.Namespace},
		}
		err = i.member.Create(ctx, applied, client.FieldOwner(apply.FieldManager))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("getting or creating AppliedWork %s: %w", work.Name, err)
	case !applied.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("AppliedWork %s is being deleted; its objects are applied anew once it is gone", work.Name)
	case applied.Spec.WorkNamespace != work.Namespace:
		// The cluster was a member under another name, and its objects were left in place.
		if err := i.adoptAppliedWork(ctx, work, applied); err != nil {
			return nil, err
		}
	}
	mem.applied = applied
	return applied, nil
}

func (i inventory) adoptAppliedWork(ctx context.Context, work *placementv1beta1.Work, applied *placementv1beta1.AppliedWork) error {
	before := applied.DeepCopy()
	applied.Spec = placementv1beta1.AppliedWorkSpec{WorkName: work.Name, WorkNamespace: work.Namespace}
	if err := i.member.Patch(ctx, applied, client.MergeFrom(before), client.FieldOwner(apply.FieldManager)); err != nil {
		return fmt.Errorf("adopting AppliedWork %s of %s: %w", applied.Name, before.Spec.WorkNamespace, err)
	}
	return nil
}

// addToInventory lists in the AppliedWork every object that is about to be applied. It runs before
// any object is written, so that a crash leaves no object unlisted.
func (i inventory) addToInventory(ctx context.Context, mem *memory, steps []*step) error {
	list := slices.Clone(mem.applied.Status.AppliedResources)
	listed := map[apply.Key]bool{}
	for _, item := range list {
		listed[apply.KeyOf(item.WorkResourceIdentifier)] = true
	}
	for _, s := range steps {
		if s.due && !listed[apply.KeyOf(s.outcome.id)] {
			list = append(list, placementv1beta1.AppliedResourceMeta{WorkResourceIdentifier: s.outcome.id})
		}
	}
	if len(list) == len(mem.applied.Status.AppliedResources) {
		return nil
	}
	return i.writeInventory(ctx, mem, list)
}

// recordRuns writes down the runs of Jobs that the pass has seen, before anything else may fail: what is forgotten runs again.
func (i inventory) recordRuns(ctx context.Context, mem *memory, steps []*step) error {
	runs := map[apply.Key]outcome{}
	for _, s := range steps {
		if s.due && s.outcome.problem == nil && s.outcome.run.of != "" {
			runs[apply.KeyOf(s.outcome.id)] = s.outcome
		}
	}
	list := slices.Clone(mem.applied.Status.AppliedResources)
	for at := range list {
		if seen, ok := runs[apply.KeyOf(list[at].WorkResourceIdentifier)]; ok {
			list[at].RunOf = seen.run.of
			list[at].RunResult = seen.run.result
			list[at].UID = cmp.Or(seen.version.uid, list[at].UID)
		}
	}
	if slices.Equal(list, mem.applied.Status.AppliedResources) {
		return nil
	}
	return i.writeInventory(ctx, mem, list)
}

// recordApplied lists the applied objects with their UIDs, and the objects of earlier manifests
// that are left.
func (i inventory) recordApplied(ctx context.Context, mem *memory, steps []*step, left []placementv1beta1.AppliedResourceMeta) error {
	before := map[apply.Key]placementv1beta1.AppliedResourceMeta{}
	for _, item := range mem.applied.Status.AppliedResources {
		before[apply.KeyOf(item.WorkResourceIdentifier)] = item
	}
	var list []placementv1beta1.AppliedResourceMeta
	for _, s := range steps {
		switch {
		case !s.due:
		case s.outcome.problem == nil:
			list = append(list, placementv1beta1.AppliedResourceMeta{
				WorkResourceIdentifier: s.outcome.id, UID: cmp.Or(s.outcome.version.uid, before[apply.KeyOf(s.outcome.id)].UID),
				RunOf: s.outcome.run.of, RunResult: s.outcome.run.result,
			})
		default:
			// The object may exist from earlier, or the failed write may have created it.
			earlier := before[apply.KeyOf(s.outcome.id)]
			list = append(list, placementv1beta1.AppliedResourceMeta{
				WorkResourceIdentifier: s.outcome.id, UID: earlier.UID, RunOf: earlier.RunOf, RunResult: earlier.RunResult,
			})
		}
	}
	list = append(list, left...)
	if slices.Equal(list, mem.applied.Status.AppliedResources) {
		return nil
	}
	return i.writeInventory(ctx, mem, list)
}

func (i inventory) writeInventory(ctx context.Context, mem *memory, list []placementv1beta1.AppliedResourceMeta) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": mem.applied.UID},
		"status":   map[string]any{"appliedResources": list},
	})
	if err != nil {
		return fmt.Errorf("encoding the inventory of AppliedWork %s: %w", mem.applied.Name, err)
	}
	written := mem.applied.DeepCopy()
	err = i.member.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	if err != nil {
		mem.applied = nil // its content is unknown and is to be read again
		return fmt.Errorf("writing the inventory of AppliedWork %s: %w", written.Name, err)
	}
	mem.applied = written
	return nil
}
