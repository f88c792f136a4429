package override

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// tries is how often the snapshots are planned anew because another process has created one first.
const tries = 3

// errOvertaken says that another process has created a snapshot with the same index.
var errOvertaken = errors.New("another write was faster")

// overrideState is an override with its snapshots. The objects may belong to the cache and must not be changed.
type overrideState struct {
	key types.NamespacedName
	// override is nil if there is none.
	override placementv1beta1.OverrideObject
	verdict  Verdict
	// missing says that the placement does not exist that the override refers to; empty if it does.
	missing  string
	want     desired
	versions []version
	// seen are all overrides of the kind.
	seen sets.Set[types.UID]
}

// isKept reports whether there is an override and that it is not being deleted.
func (s *overrideState) isKept() bool { return s.want.exists }

// told returns the verdict that the condition tells.
func (s *overrideState) told() Verdict {
	if s.verdict.Valid() && s.missing != "" {
		return Verdict{placementv1beta1.ReasonOverridePlacementNotFound, s.missing}
	}
	return s.verdict
}

// isFinalizerRight reports whether the override has the finalizer exactly if it is kept.
func (s *overrideState) isFinalizerRight() bool {
	return s.override == nil ||
		controllerutil.ContainsFinalizer(s.override, placementv1beta1.OverrideCleanupFinalizer) == s.isKept()
}

// readState reads an override, its validity beside the others of its kind, and its snapshots.
func (r *Reconciler) readState(ctx context.Context, reader client.Reader, key types.NamespacedName) (*overrideState, error) {
	all, err := r.listOverrides(ctx, reader)
	if err != nil {
		return nil, err
	}
	s := &overrideState{key: key, seen: sets.New[types.UID]()}
	for _, o := range all {
		s.seen.Insert(o.GetUID())
		if client.ObjectKeyFromObject(o) == key {
			s.override = o
		}
	}
	if s.override != nil {
		s.verdict = Decide(overridesToKeep(all))[key]
		s.want = desired{exists: s.override.GetDeletionTimestamp().IsZero(), valid: s.verdict.Valid()}
		if s.want.hash, err = override.Hash(s.override); err != nil {
			return nil, err
		}
		if s.missing, err = r.readMissing(ctx, reader, s.override); err != nil {
			return nil, err
		}
	}
	return s, r.readVersions(ctx, reader, s)
}

// readVersions reads the snapshots of an override. They are identified by their names, because users can change their
// labels.
func (r *Reconciler) readVersions(ctx context.Context, reader client.Reader, s *overrideState) error {
	list := r.scope.NewOverrideSnapshotList()
	if err := reader.List(ctx, list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the snapshots of override %s: %w", s.key, err)
	}
	s.versions = nil
	for _, snapshot := range list.Objects() {
		name, index, ok := parseName(snapshot.GetName())
		if !ok || name != s.key.Name {
			continue
		}
		current, err := override.IsSnapshotOf(snapshot, s.want.hash)
		if err != nil {
			return err
		}
		v := version{
			index: index, hash: snapshot.GetOverrideHash(), mark: markOf(snapshot.GetLabels(), name, index),
			leaving: !snapshot.GetDeletionTimestamp().IsZero(), object: snapshot,
		}
		if current {
			v.hash = s.want.hash // another author may state another one
		}
		if s.override != nil {
			v.kinship = rules.KinshipOf(snapshot, ownerReference(s.override))
		}
		s.versions = append(s.versions, v)
	}
	return nil
}

// updateSnapshots makes the snapshots reflect the override. Unlike the check before, it reads past the cache, which
// may not have the last snapshot yet, nor the last object that references one.
func (r *Reconciler) updateSnapshots(ctx context.Context, key types.NamespacedName) error {
	taken := sets.New[int]()
	for try := 1; ; try++ {
		err := r.tryUpdateSnapshots(ctx, key, taken)
		if !errors.Is(err, errOvertaken) || try == tries {
			return err
		}
	}
}

func (r *Reconciler) tryUpdateSnapshots(ctx context.Context, key types.NamespacedName, taken sets.Set[int]) error {
	now, err := r.readState(ctx, r.live, key)
	if err != nil {
		return err
	}
	if now.isKept() {
		if err := fence.AddFinalizer(ctx, r.client, now.override, placementv1beta1.OverrideCleanupFinalizer); err != nil {
			return err
		}
	}
	if now.override != nil && !now.isKept() {
		if now.want.frozen, err = r.listFrozen(ctx, now.key); err != nil {
			return err
		}
	}
	named, err := r.listReferenced(ctx, now)
	if err != nil {
		return err
	}
	for _, s := range planSteps(now.want, now.versions, named.Union(taken)) {
		if s.do == prune {
			continue
		}
		if err := r.takeStep(ctx, now, s); err != nil {
			if errors.Is(err, errOvertaken) {
				taken.Insert(s.index)
			}
			return err
		}
	}
	if now.isKept() {
		return r.pruneVersions(ctx, now, named)
	}
	return r.releaseOverride(ctx, now)
}

// listReferenced returns the indexes that a new snapshot must not have, and those that are kept from pruning without
// another check.
func (r *Reconciler) listReferenced(ctx context.Context, now *overrideState) (sets.Set[int], error) {
	if !now.isKept() {
		return nil, nil
	}
	if now.want.valid && len(ownVersions(now.versions)) == 0 {
		return r.listReferencedLive(ctx, now)
	}
	return r.listReferencedCached(ctx, now)
}

// pruneVersions deletes the snapshots beyond the limit that are not referenced. It may take a while, and comes last:
// what is in force is right by now.
func (r *Reconciler) pruneVersions(ctx context.Context, now *overrideState, named sets.Set[int]) error {
	surplus := slices.DeleteFunc(planSteps(now.want, now.versions, named), func(s step) bool { return s.do != prune })
	if len(surplus) == 0 {
		return nil
	}
	all, err := readUsage(ctx, r.live)
	if err != nil {
		return err
	}
	for _, s := range surplus {
		if all[now.key].Has(s.index) {
			continue
		}
		if err := r.takeStep(ctx, now, s); err != nil {
			return err
		}
	}
	return nil
}

// releaseOverride removes the finalizer once the override has no snapshots.
func (r *Reconciler) releaseOverride(ctx context.Context, now *overrideState) error {
	if now.override == nil {
		return nil
	}
	if len(now.versions) > 0 {
		if err := r.readVersions(ctx, r.live, now); err != nil {
			return err
		}
	}
	if len(now.versions) > 0 {
		r.emitInUse(now)
		return nil // they have finalizers; the event of their end triggers the next reconciliation
	}
	return fence.RemoveFinalizer(ctx, r.client, now.override, placementv1beta1.OverrideCleanupFinalizer)
}

// takeStep makes the write of a step.
func (r *Reconciler) takeStep(ctx context.Context, now *overrideState, s step) error {
	switch s.do {
	case create:
		return r.createSnapshot(ctx, now, s.index)
	case adopt:
		return r.adoptSnapshot(ctx, now, s.version)
	case enforce:
		return r.labelSnapshot(ctx, now.key.Name, s.version, inForce)
	case retire:
		return r.labelSnapshot(ctx, now.key.Name, s.version, retired)
	case remove, prune:
		return r.deleteSnapshot(ctx, s.version.object)
	}
	return nil
}

// createSnapshot creates a snapshot. Its name decides between two processes that do so.
func (r *Reconciler) createSnapshot(ctx context.Context, now *overrideState, index int) error {
	snapshot := newSnapshot(now.override, index, now.want.hash)
	err := r.client.Create(ctx, snapshot)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("taking snapshot %s: %w", client.ObjectKeyFromObject(snapshot), errOvertaken)
	case err != nil:
		return fmt.Errorf("taking snapshot %s: %w", client.ObjectKeyFromObject(snapshot), err)
	}
	since := "from now on"
	if now.missing != "" {
		since = "once the placement that it refers to exists"
	}
	r.events.Eventf(now.override, nil, "Normal", "OverrideSnapshotCreated", "TakeSnapshot",
		"Created snapshot %s; it is in force %s", snapshot.GetName(), since)
	return nil
}

// adoptSnapshot makes the override, as it is now, the owner of a snapshot that was taken before.
func (r *Reconciler) adoptSnapshot(ctx context.Context, now *overrideState, v *version) error {
	owners := rules.InheritedBy(v.object, ownerReference(now.override))
	patch, err := fence.Patch(v.object.GetUID(), fence.Add("/metadata/ownerReferences", owners))
	if err != nil {
		return err
	}
	target := v.object.DeepCopyObject().(client.Object)
	if err := r.client.Patch(ctx, target, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adopting snapshot %s: %w", client.ObjectKeyFromObject(v.object), err)
	}
	return nil
}

// labelSnapshot makes the labels of exactly this snapshot say what it is. A snapshot that is gone needs none.
func (r *Reconciler) labelSnapshot(ctx context.Context, name string, v *version, m mark) error {
	labels := labelsOf(name, v.index, m)
	var operations []fence.Op
	if len(v.object.GetLabels()) == 0 {
		operations = append(operations, fence.Test("/metadata/labels", nil), fence.Add("/metadata/labels", labels))
	} else {
		for key, value := range labels {
			operations = append(operations, fence.Add(fence.LabelPath(key), value))
		}
	}
	patch, err := fence.Patch(v.object.GetUID(), operations...)
	if err != nil {
		return err
	}
	target := v.object.DeepCopyObject().(client.Object)
	if err := r.client.Patch(ctx, target, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling snapshot %s: %w", client.ObjectKeyFromObject(v.object), err)
	}
	return nil
}

// deleteSnapshot deletes exactly this snapshot.
func (r *Reconciler) deleteSnapshot(ctx context.Context, snapshot client.Object) error {
	err := r.client.Delete(ctx, snapshot, client.Preconditions{UID: new(snapshot.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting snapshot %s: %w", client.ObjectKeyFromObject(snapshot), err)
	}
	return nil
}
