package selection

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// parallelWrites bounds how many parts of a snapshot are under way at a time: each is
// large.
const parallelWrites = 4

// errOvertaken says that another attempt wrote first: look again before writing.
var errOvertaken = errors.New("another selection was faster")

// stored is the snapshot that holds the selected content.
type stored struct {
	name    string
	index   int
	created bool
}

// store makes sure that the latest snapshot holds the content. Parts are written
// first and the master last, which carries the latest label from the start; only
// then the label is taken from the one before. So whenever the process dies, there
// is a latest snapshot, and it is complete.
func (s *Selector) store(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series, content snapshot.Content) (stored, error) {
	latest := existing.latest()
	index := existing.next()
	if latest != nil && latest.hash() == content.Hash {
		index = latest.index
	}
	group := snapshot.Group(placement, index, content)
	target := existing.group(index)
	result := stored{name: group[0].GetName(), index: index, created: target.master == nil}
	if err := s.sweep(ctx, placement, existing.foreign); err != nil {
		return stored{}, err
	}
	if err := s.storeParts(ctx, target, content.Hash, group); err != nil {
		return stored{}, err
	}
	if target.master == nil {
		if err := s.storeMaster(ctx, placement, group[0], content.Hash, len(group)); err != nil {
			return stored{}, err
		}
	} else if err := s.label(ctx, target.master, placementv1beta1.LabelValueTrue); err != nil {
		return stored{}, err
	}
	return result, s.unlabel(ctx, existing, index)
}

// storeParts writes all but the master, several at a time.
func (s *Selector) storeParts(ctx context.Context, target *snapshotGroup, hash string, group []placementv1beta1.ResourceSnapshotObject) error {
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(parallelWrites)
	for sub := 1; sub < len(group); sub++ {
		writes.Go(func() error { return s.storePart(ctx, target, sub, hash, group[sub]) })
	}
	return writes.Wait()
}

// storePart writes a part unless it is there. A part with other content was left
// by an attempt that died; its master does not exist, so nobody has read it.
func (s *Selector) storePart(ctx context.Context, target *snapshotGroup, sub int, hash string, part placementv1beta1.ResourceSnapshotObject) error {
	if target.has(sub, hash) {
		return nil
	}
	if stale := target.parts[sub]; stale != nil {
		if err := s.remove(ctx, stale); err != nil {
			return err
		}
	}
	err := s.Client.Create(ctx, part)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing part %s: %w", part.GetName(), errOvertaken)
	}
	if err != nil {
		return fmt.Errorf("writing part %s: %w", part.GetName(), err)
	}
	return nil
}

// storeMaster writes the master, which makes the snapshot exist. The name settles
// which of two attempts that run at the same time is first. Where there are parts,
// a last look makes sure that they are still those of this content.
func (s *Selector) storeMaster(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, master placementv1beta1.ResourceSnapshotObject, hash string, parts int) error {
	err := s.Client.Create(ctx, master)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing snapshot %s: %w", master.GetName(), errOvertaken)
	}
	if err != nil {
		return fmt.Errorf("writing snapshot %s: %w", master.GetName(), err)
	}
	if parts == 1 {
		return nil
	}
	written, err := listSeries(ctx, s.Live, placement)
	if err != nil {
		return err
	}
	for _, group := range written.sorted() {
		if group.master.Name == master.GetName() && group.complete() && group.hash() == hash {
			return nil
		}
	}
	return fmt.Errorf("checking snapshot %s: %w", master.GetName(), errOvertaken)
}

// unlabel takes the latest label from every snapshot but the one with this index.
func (s *Selector) unlabel(ctx context.Context, existing *series, index int) error {
	for _, group := range existing.sorted() {
		if group.index == index || !group.labelled() {
			continue
		}
		if err := s.label(ctx, group.master, placementv1beta1.LabelValueFalse); err != nil {
			return err
		}
	}
	return nil
}

// label sets the latest label of a snapshot.
func (s *Selector) label(ctx context.Context, object *metav1.PartialObjectMetadata, value string) error {
	if object.Labels[placementv1beta1.IsLatestSnapshotLabel] == value {
		return nil
	}
	patched := object.DeepCopy()
	patched.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshot"))
	base := patched.DeepCopy()
	patched.Labels[placementv1beta1.IsLatestSnapshotLabel] = value
	if err := s.Client.Patch(ctx, patched, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling snapshot %s: %w", object.Name, err)
	}
	return nil
}

// remove deletes exactly this snapshot object.
func (s *Selector) remove(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	victim := object.DeepCopy()
	victim.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshot"))
	err := s.Client.Delete(ctx, victim, client.Preconditions{UID: &victim.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting snapshot %s: %w", object.Name, err)
	}
	return nil
}
