package selection

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// parallelWrites bounds how many parts of a snapshot are written at the same time: each
// is large.
const parallelWrites = 4

// snapshotWriter writes and deletes the resource snapshots of a placement.
type snapshotWriter struct {
	client    client.Client
	live      client.Reader
	placement placementv1beta1.PlacementObject
}

func (s *Selector) snapshotWriter(placement placementv1beta1.PlacementObject) snapshotWriter {
	return snapshotWriter{client: s.Client, live: s.Live, placement: placement}
}

// storedSnapshot is the snapshot that holds the selected content.
type storedSnapshot struct {
	name    string
	index   int
	created bool
}

// storeContent makes sure that the latest snapshot holds the content. Parts are written
// first and the master last, which carries the latest label from the start; only then
// the label is taken from the one before. So whenever the process dies, there is a
// latest snapshot, and it is complete.
func (w snapshotWriter) storeContent(ctx context.Context, existing *series, content snapshot.Content) (storedSnapshot, error) {
	index := existing.nextIndex()
	if latest := existing.latestGroup(); latest != nil && latest.contentHash() == content.Hash && w.canHold(latest, content) {
		index = latest.index
	}
	group := snapshot.Group(w.placement, index, content)
	target := existing.groupAt(index)
	result := storedSnapshot{name: group[0].GetName(), index: index, created: target.master == nil}
	if err := w.adoptAll(ctx, existing.inherited); err != nil {
		return storedSnapshot{}, err
	}
	if !target.isComplete() {
		hash := content.Hash
		if target.master != nil {
			hash = target.statedHash() // parts that are lost are those of the master that is there
			for _, part := range group[1:] {
				part.GetAnnotations()[snapshot.PartOfAnnotation] = hash
			}
		}
		if err := w.storeParts(ctx, target, hash, group); err != nil {
			return storedSnapshot{}, err
		}
	}
	if target.master == nil {
		if err := w.storeMaster(ctx, group[0], content.Hash, len(group)); err != nil {
			return storedSnapshot{}, err
		}
	} else if err := errors.Join(w.labelLatest(ctx, target.master, placementv1beta1.LabelValueTrue),
		w.noteReplicas(ctx, target.master, content.Replicas)); err != nil {
		return storedSnapshot{}, err
	}
	return result, w.unlabelOthers(ctx, existing, index)
}

// canHold reports whether a snapshot holds a content, or does once its lost parts are written: one that was divided otherwise never would.
func (w snapshotWriter) canHold(existing *snapshotGroup, content snapshot.Content) bool {
	if existing.isComplete() {
		return true
	}
	count, err := existing.statedCount()
	return err == nil && count == len(snapshot.Group(w.placement, existing.index, content))
}

// storeParts writes all but the master, several at a time.
func (w snapshotWriter) storeParts(ctx context.Context, target *snapshotGroup, hash string,
	group []placementv1beta1.ResourceSnapshotObject) error {
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(parallelWrites)
	for sub := 1; sub < len(group); sub++ {
		writes.Go(func() error { return w.storePart(ctx, target, sub, hash, group[sub]) })
	}
	return writes.Wait()
}

// storePart writes a part unless it exists. A part with other content was left by an
// attempt that died; its master does not exist, so no program has read it.
func (w snapshotWriter) storePart(ctx context.Context, target *snapshotGroup, sub int, hash string,
	part placementv1beta1.ResourceSnapshotObject) error {
	if target.hasPart(sub, hash) {
		return nil
	}
	if stale := target.parts[sub]; stale != nil {
		if err := w.deleteSnapshot(ctx, stale); err != nil {
			return err
		}
	}
	err := w.client.Create(ctx, part)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing part %s: %w", part.GetName(), errOvertaken)
	}
	if err != nil {
		return fmt.Errorf("writing part %s: %w", part.GetName(), err)
	}
	return nil
}

// storeMaster writes the master, with which the snapshot begins to exist. Its name
// decides which of two overlapping attempts is first. If there are further parts, they
// are listed again to make sure that they are still those of this content.
func (w snapshotWriter) storeMaster(ctx context.Context, master placementv1beta1.ResourceSnapshotObject, hash string, parts int) error {
	err := w.client.Create(ctx, master)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing snapshot %s: %w", master.GetName(), errOvertaken)
	}
	if err != nil {
		return fmt.Errorf("writing snapshot %s: %w", master.GetName(), err)
	}
	if parts == 1 {
		return nil
	}
	written, err := listSeries(ctx, w.live, w.placement)
	if err != nil {
		return err
	}
	for _, group := range written.withMaster() {
		if group.master.Name == master.GetName() && group.isComplete() && group.contentHash() == hash {
			return nil
		}
	}
	return fmt.Errorf("checking snapshot %s: %w", master.GetName(), errOvertaken)
}

// unlabelOthers takes the latest label from every snapshot but the one with this index.
func (w snapshotWriter) unlabelOthers(ctx context.Context, existing *series, index int) error {
	for _, group := range existing.withMaster() {
		if group.index == index || !rules.IsLatestSnapshot(group.master) {
			continue
		}
		if err := w.labelLatest(ctx, group.master, placementv1beta1.LabelValueFalse); err != nil {
			return err
		}
	}
	return nil
}

// labelLatest sets the latest label of a snapshot.
func (w snapshotWriter) labelLatest(ctx context.Context, object *metav1.PartialObjectMetadata, value string) error {
	if object.Labels[placementv1beta1.IsLatestSnapshotLabel] == value {
		return nil
	}
	patched := object.DeepCopy()
	patched.SetGroupVersionKind(placementv1beta1.ScopeOf(object).ResourceSnapshotKind())
	base := patched.DeepCopy()
	patched.Labels[placementv1beta1.IsLatestSnapshotLabel] = value
	if err := w.client.Patch(ctx, patched, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling snapshot %s: %w", object.Name, err)
	}
	return nil
}

// noteChangeSeen notes on the latest snapshot when other content than its own was first
// seen to be selected; an empty text says that its content is what is selected.
func noteChangeSeen(ctx context.Context, c client.Client, master *metav1.PartialObjectMetadata, when string) error {
	return annotateSnapshot(ctx, c, master, placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation, when)
}

// noteReplicas notes on a snapshot what the workloads in it ask for now whose replicas are divided; an empty text says that none are.
func (w snapshotWriter) noteReplicas(ctx context.Context, master *metav1.PartialObjectMetadata, replicas string) error {
	return annotateSnapshot(ctx, w.client, master, placementv1beta1.ReplicaCountsAnnotation, replicas)
}

// annotateSnapshot gives a snapshot the annotation, unless it has it; without a value, it takes it off.
func annotateSnapshot(ctx context.Context, c client.Client, master *metav1.PartialObjectMetadata, key, value string) error {
	if master.Annotations[key] == value {
		return nil
	}
	patched := master.DeepCopy()
	patched.SetGroupVersionKind(placementv1beta1.ScopeOf(master).ResourceSnapshotKind())
	base := patched.DeepCopy()
	patched.Annotations[key] = value
	if value == "" {
		delete(patched.Annotations, key)
	}
	if err := c.Patch(ctx, patched, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating snapshot %s: %w", master.Name, err)
	}
	return nil
}

// deleteSnapshot deletes exactly this snapshot object.
func (w snapshotWriter) deleteSnapshot(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	victim := object.DeepCopy()
	victim.SetGroupVersionKind(placementv1beta1.ScopeOf(object).ResourceSnapshotKind())
	err := w.client.Delete(ctx, victim, client.Preconditions{UID: &victim.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting snapshot %s: %w", object.Name, err)
	}
	return nil
}

// adoptAll makes the placement the owner of snapshots that were made before it got its UID. That the placement still exists
// makes sure that they are not those of a later one.
func (w snapshotWriter) adoptAll(ctx context.Context, inherited []*metav1.PartialObjectMetadata) error {
	if len(inherited) == 0 {
		return nil
	}
	name := w.placement.GetName()
	now, err := hubread.Placement(ctx, w.live, placementv1beta1.ScopeOf(w.placement), name)
	if err != nil {
		return err
	}
	if now == nil || now.GetUID() != w.placement.GetUID() {
		return fmt.Errorf("adopting the snapshots of placement %s: %w", name, errOvertaken)
	}
	for _, object := range inherited {
		adopted := object.DeepCopy()
		adopted.SetGroupVersionKind(placementv1beta1.ScopeOf(object).ResourceSnapshotKind())
		owners := rules.InheritedBy(object, rules.PlacementOwner(w.placement))
		patch, err := fence.Patch(object.UID, fence.Add("/metadata/ownerReferences", owners))
		if err != nil {
			return err
		}
		if err := w.client.Patch(ctx, adopted, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("adopting snapshot %s: %w", object.Name, err)
		}
	}
	return nil
}

// recognizeContent finds out whether the latest snapshot, if another author has made it, has the content: it states a hash of
// its own then, and is read. Once that is known, the snapshot notes it.
func (w snapshotWriter) recognizeContent(ctx context.Context, latest *snapshotGroup, content snapshot.Content) error {
	if latest == nil || !latest.isComplete() {
		return nil
	}
	if latest.contentHash() == content.Hash {
		return nil
	}
	if lastVerdict(w.placement).Snapshot == latest.master.Name {
		return nil
	}
	var stored [][]byte
	for _, object := range latest.masterAndParts() {
		part := placementv1beta1.ScopeOf(w.placement).NewResourceSnapshot(object.Name)
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(part), part); err != nil {
			return fmt.Errorf("reading snapshot %s: %w", object.Name, err)
		}
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			stored = append(stored, resource.Raw)
		}
	}
	isSame, err := snapshot.SameObjects(stored, content.Manifests)
	if err != nil {
		return fmt.Errorf("comparing snapshot %s with what is selected: %w", latest.master.Name, err)
	}
	if !isSame {
		return nil
	}
	latest.content = content.Hash
	return w.noteContent(ctx, latest)
}

// noteContent notes on a snapshot of another author the hash of its content. It is not noted on the placement, which users may read who
// may not read what it selects.
func (w snapshotWriter) noteContent(ctx context.Context, latest *snapshotGroup) error {
	return annotateSnapshot(ctx, w.client, latest.master, snapshot.PartOfAnnotation, latest.content)
}
