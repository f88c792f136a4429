package selection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// maxSelectTries is how often a selection that was overtaken by another attempt starts
// over before it fails, and the activity is retried.
const maxSelectTries = 3

// readAgainAfter is how long what was too much is not read again, whatever changes in it.
const readAgainAfter = time.Minute

// SelectAtPace makes the latest snapshot of a placement hold what it selects, as soon
// as the pace allows it.
func (s *Selector) SelectAtPace(ctx context.Context, placement placementv1beta1.PlacementObject) (wf.SelectResult, error) {
	return s.selectWithRetries(ctx, placement, false)
}

// Select makes the latest snapshot of a placement hold what it selects at this moment,
// whatever the pace, and records the verdict on the placement.
func (s *Selector) Select(ctx context.Context, placement placementv1beta1.PlacementObject) (wf.SelectResult, error) {
	return s.selectWithRetries(ctx, placement, true)
}

// selectWithRetries may be repeated and may overlap with itself: the existing snapshots
// are listed before the objects are read, so an attempt that has read older objects than
// another one finds the index of its snapshot taken, and starts over.
func (s *Selector) selectWithRetries(ctx context.Context, placement placementv1beta1.PlacementObject,
	atOnce bool) (wf.SelectResult, error) {
	ref := wf.Ref{Namespace: placement.GetNamespace(), Name: placement.GetName(), UID: string(placement.GetUID())}
	created := false
	for try := 1; ; try++ {
		result, err := s.selectOnce(ctx, placement, atOnce)
		created = created || result.Created
		result.Created = created
		if !errors.Is(err, errOvertaken) || try == maxSelectTries {
			return result, err
		}
		if placement, err = hubread.CurrentPlacement(ctx, s.Live, ref); err != nil {
			return wf.SelectResult{}, err
		}
		if placement == nil {
			return wf.SelectResult{Gone: true}, nil
		}
	}
}

func (s *Selector) selectOnce(ctx context.Context, placement placementv1beta1.PlacementObject, atOnce bool) (wf.SelectResult, error) {
	existing, err := listSeries(ctx, s.Live, placement)
	if err != nil {
		return wf.SelectResult{}, err
	}
	if wait := s.recordedDelay(placement, existing); !wait.until.IsZero() && !atOnce {
		return s.keepLatest(ctx, placement, existing, wait, lastVerdict(placement))
	}
	if last := lastVerdict(placement); last.IsTooMuchFor(placement.GetGeneration(), s.Clock.Now()) && !atOnce {
		return wf.SelectResult{Invalid: true, Snapshot: last.Snapshot, Index: last.Index, WakeAt: last.ReadAgain}, nil
	}
	counted := &reading{ceiling: s.Ceiling, large: s.large.isKnown(placement)}
	result, err := s.selectInSlot(ctx, placement, existing, counted, atOnce)
	if errors.Is(err, errLarge) {
		counted = &reading{ceiling: s.Ceiling, large: true}
		result, err = s.selectInSlot(ctx, placement, existing, counted, atOnce)
	}
	s.large.setLarge(placement, counted.isLarge())
	return result, err
}

// selectInSlot selects as soon as one of the slots is free that selections of the size take.
// The error is errLarge if it turns out to be larger.
func (s *Selector) selectInSlot(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series, counted *reading,
	atOnce bool) (wf.SelectResult, error) {
	slots := s.Slots
	if counted.large {
		slots = s.LargeSlots
	}
	release, err := attempt.Acquire(ctx, slots)
	if err != nil {
		return wf.SelectResult{}, fmt.Errorf("selecting the resources of placement %s: %w", placement.GetName(), err)
	}
	defer release()
	selected, content, err := s.resolveSelectors(ctx, placement, existing, counted)
	if invalid, ok := errors.AsType[*snapshot.InvalidError](err); ok {
		return s.recordInvalid(ctx, placement, existing, selected.inputs, invalid)
	}
	if err != nil {
		return wf.SelectResult{}, fmt.Errorf("resolving the selectors of placement %s: %w", placement.GetName(), err)
	}
	demands, err := rules.ReadReplicaDemands(placement.GetPlacementSpec().Policy, content.Manifests)
	if err == nil {
		err = content.Divide(demands)
	}
	if err != nil {
		return wf.SelectResult{}, err
	}
	writer := s.snapshotWriter(placement)
	if err := writer.recognizeContent(ctx, existing.latestGroup(), content); err != nil {
		return wf.SelectResult{}, err
	}
	if result, kept, err := s.keepInstead(ctx, placement, existing, selected, content, atOnce); kept || err != nil {
		return result, err
	}
	latest, err := writer.storeContent(ctx, existing, content)
	if err != nil {
		return wf.SelectResult{}, err
	}
	if err := writer.pruneSeries(ctx, existing, latest.index); err != nil {
		return wf.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Snapshot: latest.name, Index: latest.index,
		Inputs: selected.inputs, Selectors: snapshot.HashSelectors(placement), Held: selected.held,
		Note:         snapshot.NoteOf(slices.Concat(selected.tooLarge, selected.missing), len(content.Manifests) == 0),
		Dependencies: selected.dependencies, MissingDependencies: snapshot.DescribeMissing(selected.missingDependencies),
	}
	verdict.TooLarge = snapshot.DescribeMissing(selected.tooLarge)
	verdict.Demand = rules.HashDemand(demands, rules.KindsToServe(placement.GetPlacementSpec().Policy, envelope.KindsIn(content.Manifests)))
	if _, ranked := rules.RankOf(placement); ranked {
		verdict.Objects = content.Objects()
		verdict.Rivals = selected.rivals
		verdict.LeftOut = selected.leftOut
	}
	err = s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.identifyManifests(ctx, placementv1beta1.ScopeOf(placement), content.Manifests)
	}, &verdict)
	if err != nil {
		return wf.SelectResult{}, err
	}
	return s.recordVerdict(ctx, placement, verdict, latest.created)
}

// keepInstead keeps the latest snapshot where the content is not to be stored now: the catch holds what it has lost, or it waits for
// its time.
func (s *Selector) keepInstead(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series, selected selectedObjects,
	content snapshot.Content, atOnce bool) (result wf.SelectResult, kept bool, err error) {
	loss, err := lossCatch{s.Live, s.Dynamic}.lossToHold(ctx, placement, existing.latestGroup(), selected, content)
	if err != nil {
		return result, false, err
	}
	wait := delay{}
	if loss == nil {
		if wait, err = s.delayOf(ctx, placement, existing.latestGroup(), content, atOnce); err != nil || wait.until.IsZero() {
			return result, false, err
		}
	}
	said := lastVerdict(placement)
	said.Lost = loss
	said.Inputs = ""
	if loss != nil {
		said.Inputs = selected.inputs
	}
	said.Held = selected.held
	said.Rivals = selected.rivals
	said.LeftOut = selected.leftOut
	result, err = s.keepLatest(ctx, placement, existing, wait, said)
	return result, true, err
}

// resolveSelectors reads what the placement selects, as of when the existing snapshots
// were listed or later, and makes the content of a snapshot of it.
func (s *Selector) resolveSelectors(ctx context.Context, placement placementv1beta1.PlacementObject,
	existing *series, counted *reading) (selectedObjects, snapshot.Content, error) {
	catalog, err := s.Kinds.Catalog(ctx, existing.revision)
	if err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	if err := checkStatusCopy(placement); err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	selection, err := snapshot.Compile(placementv1beta1.ScopeOf(placement), placement.GetPlacementSpec().ResourceSelectors, catalog)
	if err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	if err := s.refuseUnreadable(ctx, placement, existing.latestGroup(), catalog.Unreadable()); err != nil {
		return selectedObjects{}, snapshot.Content{}, err
	}
	selected, err := readSelected(ctx, s.Dynamic, selection, catalog, existing.revision, counted)
	if err != nil {
		return selected, snapshot.Content{}, err
	}
	if err := leaveOutClaims(ctx, s.Dynamic, catalog, &selected, existing.revision); err != nil {
		return selected, snapshot.Content{}, err
	}
	latest := formerObjects{live: s.Live, placement: placement, latest: existing.latestGroup()}
	if err := latest.keepTooLarge(ctx, &selected); err != nil {
		return selected, snapshot.Content{}, err
	}
	if err := latest.keepHeld(ctx, catalog, selection, &selected); err != nil {
		return selected, snapshot.Content{}, err
	}
	rivals := rivalReader{cached: s.Client, live: s.Live, dynamic: s.Dynamic, objects: s.objects}
	if err := rivals.shareWithRivals(ctx, placement, existing, catalog, selection, &selected); err != nil {
		return selected, snapshot.Content{}, err
	}
	if placement.GetPlacementSpec().PropagateDeps {
		if err := addDependencies(ctx, s.Dynamic, &latest, catalog, selection, &selected, counted); err != nil {
			return selected, snapshot.Content{}, err
		}
	}
	return selected, snapshot.NewContent(selected.items), nil
}

// checkStatusCopy refuses to select another namespace than the one into which the status was copied so far: those who read it
// there would go by what it was last.
func checkStatusCopy(placement placementv1beta1.PlacementObject) error {
	namespace := rules.NamespaceOfStatusCopy(placement)
	for _, selected := range placement.GetPlacementStatus().SelectedResources {
		if namespace != "" && selected.Group == "" && selected.Kind == snapshot.NamespaceKind.Kind && selected.Name != namespace {
			return &snapshot.InvalidError{Message: fmt.Sprintf("with statusReportingScope NamespaceAccessible the selected namespace cannot change: "+
				"the status is reported in %q, and resourceSelectors select %q; select %q again, or create another placement", selected.Name, namespace,
				selected.Name)}
		}
	}
	return nil
}

// recordInvalid records that the selectors cannot be resolved, and what was read of the hub. The latest snapshot stays
// what it is.
func (s *Selector) recordInvalid(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series, inputs string,
	reason *snapshot.InvalidError) (wf.SelectResult, error) {
	last := lastVerdict(placement)
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Inputs: inputs, Error: reason.Message, Reason: reason.Reason,
		Dependencies: last.Dependencies, MissingDependencies: last.MissingDependencies, Selectors: last.Selectors,
	}
	if reason.Reason == snapshot.ReasonTooMuch {
		verdict.ReadAgain = s.Clock.Now().Add(readAgainAfter).UTC().Truncate(time.Second)
	}
	if latest := existing.latestGroup(); latest != nil {
		verdict.Snapshot = latest.master.Name
		verdict.Index = latest.index
		verdict.Demand = last.Demand
		verdict.Objects = last.Objects
		verdict.Lost = heldLoss(placement, latest)
	}
	return s.recordVerdict(ctx, placement, verdict, false)
}
