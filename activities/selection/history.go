package selection

import (
	"context"
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// defaultHistoryLimit is how many snapshots are kept if the placement does not say.
const defaultHistoryLimit = 10

// HistoryLimit returns how many snapshots of a placement are kept.
func HistoryLimit(placement placementv1beta1.PlacementObject) int {
	if limit := placement.GetPlacementSpec().RevisionHistoryLimit; limit != nil && *limit > 0 {
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
func ReadReferences(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject,
	revision string) (References, error) {
	r := References{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	scope := placementv1beta1.ScopeOf(placement)
	name := placement.GetName()
	bindings := scope.NewBindingList()
	err := live.List(ctx, bindings, hubread.SinceRevision(revision),
		client.InNamespace(scope.Namespace), client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name})
	if err != nil {
		return r, fmt.Errorf("listing bindings of placement %s: %w", name, err)
	}
	for _, binding := range bindings.Objects() {
		r.Snapshots[binding.GetBindingSpec().ResourceSnapshotName] = true
		r.Snapshots[binding.GetAnnotations()[placementv1beta1.PreviousResourceSnapshotAnnotation]] = true
		r.Policies[binding.GetBindingSpec().SchedulingPolicySnapshotName] = true
	}
	runs := scope.NewUpdateRunList()
	if err := live.List(ctx, runs, hubread.SinceRevision(revision), client.InNamespace(scope.Namespace)); err != nil {
		return r, fmt.Errorf("listing update runs: %w", err)
	}
	for _, run := range runs.Objects() {
		spec := run.GetUpdateRunSpec()
		status := run.GetUpdateRunStatus()
		if spec.PlacementName == name && !rules.IsRunOver(run) {
			r.ResourceIndexes[spec.ResourceSnapshotIndex] = true
			r.ResourceIndexes[status.ResourceSnapshotIndexUsed] = true
			r.PolicyIndexes[status.PolicySnapshotIndexUsed] = true
		}
	}
	return r, nil
}

// pruneSeries deletes the snapshots beyond the history limit to which nothing refers, and
// the parts that attempts which died have left.
func (w snapshotWriter) pruneSeries(ctx context.Context, existing *series, latest int) error {
	victims := existing.partsWithoutMaster(latest)
	groups := existing.withMaster()
	excess := len(groups) - HistoryLimit(w.placement)
	if existing.groupAt(latest).master == nil {
		excess++ // the latest has just been written
	}
	if excess > 0 {
		refs, err := ReadReferences(ctx, w.live, w.placement, existing.revision)
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
			victims = append(victims, group.masterAndParts()...)
			excess--
		}
	}
	for _, victim := range victims {
		if err := w.deleteSnapshot(ctx, victim); err != nil {
			return err
		}
	}
	return nil
}
