package selection

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/liveread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// defaultHistoryLimit is how many snapshots are kept if the placement does not say.
const defaultHistoryLimit = 10

// HistoryLimit is how many snapshots of a placement are kept.
func HistoryLimit(placement *placementv1beta1.ClusterResourcePlacement) int {
	if limit := placement.Spec.RevisionHistoryLimit; limit != nil && *limit > 0 {
		return int(*limit)
	}
	return defaultHistoryLimit
}

// References are the snapshots that something still needs.
type References struct {
	// Snapshots and Policies by name, resource and policy indexes as runs pin them.
	Snapshots, Policies            map[string]bool
	ResourceIndexes, PolicyIndexes map[string]bool
}

// ReadReferences reads live what bindings and unfinished runs of a placement refer
// to, as of a revision of the hub's store or later.
func ReadReferences(ctx context.Context, live client.Reader, placement, revision string) (References, error) {
	r := References{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	bindings := &placementv1beta1.ClusterResourceBindingList{}
	if err := live.List(ctx, bindings, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}, liveread.SinceRevision(revision)); err != nil {
		return r, fmt.Errorf("listing bindings of placement %s: %w", placement, err)
	}
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		r.Snapshots[binding.Spec.ResourceSnapshotName] = true
		r.Snapshots[binding.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation]] = true
		r.Policies[binding.Spec.SchedulingPolicySnapshotName] = true
	}
	runs := &placementv1beta1.ClusterStagedUpdateRunList{}
	if err := live.List(ctx, runs, liveread.SinceRevision(revision)); err != nil {
		return r, fmt.Errorf("listing update runs: %w", err)
	}
	for i := range runs.Items {
		if run := &runs.Items[i]; run.Spec.PlacementName == placement && !ended(run) {
			r.ResourceIndexes[run.Spec.ResourceSnapshotIndex] = true
			r.ResourceIndexes[run.Status.ResourceSnapshotIndexUsed] = true
			r.PolicyIndexes[run.Status.PolicySnapshotIndexUsed] = true
		}
	}
	return r, nil
}

// ended says whether a run will not touch a cluster any more.
func ended(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	return succeeded != nil && succeeded.Status != metav1.ConditionUnknown ||
		meta.IsStatusConditionFalse(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized)
}

// prune deletes snapshots beyond the history limit that nothing refers to, and
// what attempts that died have left.
func (s *Selector) prune(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series, latest int) error {
	victims := existing.leftovers(latest)
	groups := existing.sorted()
	excess := len(groups) - HistoryLimit(placement)
	if existing.group(latest).master == nil {
		excess++ // the latest has just been written
	}
	if excess > 0 {
		refs, err := ReadReferences(ctx, s.Live, placement.Name, existing.revision)
		if err != nil {
			return err
		}
		for _, group := range groups {
			if excess == 0 || group.index == latest {
				break
			}
			if refs.Snapshots[group.master.Name] || refs.ResourceIndexes[strconv.Itoa(group.index)] {
				continue
			}
			victims = append(victims, group.objects()...)
			excess--
		}
	}
	for _, victim := range victims {
		if err := s.remove(ctx, victim); err != nil {
			return err
		}
	}
	return nil
}

// objects of a snapshot in the order in which they are deleted: without the master
// the snapshot no longer exists, and the rest are leftovers.
func (g *snapshotGroup) objects() []*metav1.PartialObjectMetadata {
	objects := []*metav1.PartialObjectMetadata{g.master}
	for _, part := range g.parts {
		objects = append(objects, part)
	}
	return objects
}

// sweep deletes the snapshots of an earlier placement of the same name: they have names
// that are needed now. That the placement is still there makes sure that they are not of
// a later one.
func (s *Selector) sweep(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, foreign []*metav1.PartialObjectMetadata) error {
	if len(foreign) == 0 {
		return nil
	}
	now, err := liveread.Placement(ctx, s.Live, placement.Name)
	if err != nil {
		return err
	}
	if now == nil || now.UID != placement.UID {
		return fmt.Errorf("clearing away after an earlier placement %s: %w", placement.Name, errOvertaken)
	}
	for _, object := range foreign {
		if err := s.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// leftovers are parts without a master. Those of a higher index than the latest may be
// of an attempt that is just being made.
func (s *series) leftovers(latest int) []*metav1.PartialObjectMetadata {
	var leftovers []*metav1.PartialObjectMetadata
	for _, group := range s.groups {
		if group.master != nil || group.index >= latest {
			continue
		}
		for _, part := range group.parts {
			leftovers = append(leftovers, part)
		}
	}
	return leftovers
}
