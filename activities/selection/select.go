package selection

import (
	"context"
	"errors"
	"fmt"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// maxSelectTries is how often a selection that was overtaken by another attempt starts
// over before it fails, and the activity is retried.
const maxSelectTries = 3

// SelectAtPace makes the latest snapshot of a placement hold what it selects, as soon
// as the pace allows it.
func (s *Selector) SelectAtPace(ctx context.Context, placement placementv1beta1.PlacementObject) (act.SelectResult, error) {
	return s.selectWithRetries(ctx, placement, false)
}

// Select makes the latest snapshot of a placement hold what it selects at this moment,
// whatever the pace, and records the verdict on the placement.
func (s *Selector) Select(ctx context.Context, placement placementv1beta1.PlacementObject) (act.SelectResult, error) {
	return s.selectWithRetries(ctx, placement, true)
}

// selectWithRetries may be repeated and may overlap with itself: the existing snapshots
// are listed before the objects are read, so an attempt that has read older objects than
// another one finds the index of its snapshot taken, and starts over.
func (s *Selector) selectWithRetries(ctx context.Context, placement placementv1beta1.PlacementObject,
	atOnce bool) (act.SelectResult, error) {
	ref := wf.Ref{Namespace: placement.GetNamespace(), Name: placement.GetName(), UID: string(placement.GetUID())}
	created := false
	for try := 1; ; try++ {
		result, err := s.selectOnce(ctx, placement, atOnce)
		created = created || result.Created
		result.Created = created
		if !errors.Is(err, errOvertaken) || try == maxSelectTries {
			return result, err
		}
		if placement, err = liveread.CurrentPlacement(ctx, s.Live, ref); err != nil {
			return act.SelectResult{}, err
		}
		if placement == nil {
			return act.SelectResult{Gone: true}, nil
		}
	}
}

func (s *Selector) selectOnce(ctx context.Context, placement placementv1beta1.PlacementObject, atOnce bool) (act.SelectResult, error) {
	existing, err := listSeries(ctx, s.Live, placement)
	if err != nil {
		return act.SelectResult{}, err
	}
	if due := s.recordedDue(placement, existing); !due.IsZero() && !atOnce {
		return s.keepLatest(ctx, placement, existing, due)
	}
	selected, content, err := s.resolveSelectors(ctx, placement, existing)
	if invalid, ok := errors.AsType[*snapshot.InvalidError](err); ok {
		return s.recordInvalid(ctx, placement, existing, selected.inputs, invalid)
	}
	if err != nil {
		return act.SelectResult{}, fmt.Errorf("resolving the selectors of placement %s: %w", placement.GetName(), err)
	}
	writer := s.snapshotWriter(placement)
	if err := writer.recognizeContent(ctx, existing.latestGroup(), content); err != nil {
		return act.SelectResult{}, err
	}
	due, err := s.dueOf(ctx, existing.latestGroup(), content.Hash, atOnce)
	if err != nil {
		return act.SelectResult{}, err
	}
	if !due.IsZero() {
		return s.keepLatest(ctx, placement, existing, due)
	}
	latest, err := writer.storeContent(ctx, existing, content)
	if err != nil {
		return act.SelectResult{}, err
	}
	if err := writer.pruneSeries(ctx, existing, latest.index); err != nil {
		return act.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Snapshot: latest.name, Index: latest.index,
		Hash: content.Hash, Inputs: selected.inputs,
		Note: snapshot.NoteOf(selected.missing, len(content.Manifests) == 0),
	}
	err = s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.identifyManifests(ctx, content.Manifests)
	}, &verdict)
	if err != nil {
		return act.SelectResult{}, err
	}
	return s.recordVerdict(ctx, placement, verdict, latest.created)
}

// resolveSelectors reads what the placement selects, as of when the existing snapshots
// were listed or later, and makes the content of a snapshot of it.
func (s *Selector) resolveSelectors(ctx context.Context, placement placementv1beta1.PlacementObject,
	existing *series) (selectedObjects, snapshot.Content, error) {
	catalog, err := s.Kinds.Catalog(ctx, existing.revision)
	if err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	selection, err := snapshot.Compile(placement.GetPlacementSpec().ResourceSelectors, catalog)
	if err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	if err := s.refuseUnreadable(ctx, placement, existing.latestGroup(), catalog.Unreadable()); err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	selected, err := readSelected(ctx, s.Dynamic, selection, catalog, existing.revision)
	if err != nil {
		return selected, snapshot.Content{}, err
	}
	content, err := snapshot.NewContent(selected.objects)
	return selected, content, err
}

// recordInvalid records that the selectors cannot be resolved, and what was read of the hub. The latest snapshot stays
// what it is.
func (s *Selector) recordInvalid(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series, inputs string,
	reason *snapshot.InvalidError) (act.SelectResult, error) {
	verdict := snapshot.Verdict{Generation: placement.GetGeneration(), Inputs: inputs, Error: reason.Message}
	if latest := existing.latestGroup(); latest != nil {
		verdict.Snapshot, verdict.Index, verdict.Hash = latest.master.Name, latest.index, latest.contentHash()
	}
	return s.recordVerdict(ctx, placement, verdict, false)
}
