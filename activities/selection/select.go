package selection

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/servedkinds"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// maxSelectTries is how often a selection that was overtaken by another attempt starts
// over before it fails, and the activity is retried.
const maxSelectTries = 3

// Selector resolves the resource selectors of placements into snapshots. It reads
// everything live, so that a change which led to the selection is in the snapshot.
type Selector struct {
	// Client writes snapshots and the verdict.
	Client client.Client
	// Live reads snapshots, bindings and runs from the API server.
	Live client.Reader
	// Dynamic reads the selected objects.
	Dynamic dynamic.Interface
	// Kinds knows what the hub serves.
	Kinds *servedkinds.Cache
	// Pace says how soon a snapshot may follow another one.
	Pace  Pace
	Clock clock.PassiveClock
}

// NewSelector returns a selector. The configuration is the hub's; filter and pace are
// options of the hub's operator.
func NewSelector(config *rest.Config, c client.Client, live client.Reader, clk clock.PassiveClock,
	filter snapshot.Filter, pace Pace) (*Selector, error) {
	withoutWarnings := rest.CopyConfig(config)
	withoutWarnings.WarningHandlerWithContext = rest.NoWarnings{} // users chose the versions, not we
	reader, err := dynamic.NewForConfig(withoutWarnings)
	if err != nil {
		return nil, fmt.Errorf("creating the client for selected objects: %w", err)
	}
	catalog, err := discovery.NewDiscoveryClientForConfig(withoutWarnings)
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client: %w", err)
	}
	return &Selector{
		Client: c, Live: live, Dynamic: reader, Pace: pace, Clock: clk,
		Kinds: &servedkinds.Cache{Discovery: catalog, Live: live, Clock: clk, Filter: filter},
	}, nil
}

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
		return s.recordInvalid(ctx, placement, existing, invalid)
	}
	if err != nil {
		return act.SelectResult{}, fmt.Errorf("resolving the selectors of placement %s: %w", placement.GetName(), err)
	}
	due, err := s.dueOf(ctx, existing.latestGroup(), content.Hash, atOnce)
	if err != nil {
		return act.SelectResult{}, err
	}
	if !due.IsZero() {
		return s.keepLatest(ctx, placement, existing, due)
	}
	writer := s.snapshotWriter(placement)
	latest, err := writer.storeContent(ctx, existing, content)
	if err != nil {
		return act.SelectResult{}, err
	}
	if err := writer.pruneSeries(ctx, existing, latest.index); err != nil {
		return act.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Snapshot: latest.name, Index: latest.index,
		Hash: content.Hash, Inputs: snapshot.Fingerprint(selected.candidates),
		Note: snapshot.NoteOf(selected.missing, len(content.Manifests) == 0),
	}
	err = s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return identifyManifests(content.Manifests)
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
		return selectedObjects{}, snapshot.Content{}, err
	}
	content, err := snapshot.NewContent(selected.objects)
	return selected, content, err
}

// recordInvalid records that the selectors cannot be resolved. The latest snapshot stays
// what it is.
func (s *Selector) recordInvalid(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series,
	reason *snapshot.InvalidError) (act.SelectResult, error) {
	verdict := snapshot.Verdict{Generation: placement.GetGeneration(), Error: reason.Message}
	if latest := existing.latestGroup(); latest != nil {
		verdict.Snapshot, verdict.Index, verdict.Hash = latest.master.Name, latest.index, latest.contentHash()
	}
	return s.recordVerdict(ctx, placement, verdict, false)
}

// recordVerdict writes the verdict to the placement, if it differs from the last one.
func (s *Selector) recordVerdict(ctx context.Context, placement placementv1beta1.PlacementObject, verdict snapshot.Verdict,
	created bool) (act.SelectResult, error) {
	result := act.SelectResult{
		Invalid: verdict.Error != "", Snapshot: verdict.Snapshot, Index: verdict.Index, Hash: verdict.Hash, Created: created,
		Overrides: verdict.Overrides, WakeAt: verdict.Due,
	}
	key, value := placementv1beta1.SelectionVerdictAnnotation, verdict.Encode()
	if placement.GetAnnotations()[key] == value {
		return result, nil
	}
	patch, err := fence.Patch(placement.GetUID(), fence.Annotate(placement.GetAnnotations(), key, value)...)
	if err != nil {
		return act.SelectResult{}, err
	}
	err = s.Client.Patch(ctx, placementv1beta1.DeepCopyOf(placement), patch)
	switch {
	case err == nil:
		return result, nil
	case apierrors.IsNotFound(err):
		return act.SelectResult{Gone: true}, nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		return act.SelectResult{Created: created}, fmt.Errorf("annotating placement %s: %w: %w", placement.GetName(), errOvertaken, err)
	}
	return act.SelectResult{}, fmt.Errorf("annotating placement %s: %w", placement.GetName(), err)
}

// lastVerdict is the verdict that an earlier selection has recorded; a zero one if there
// is none that can be read.
func lastVerdict(placement placementv1beta1.PlacementObject) snapshot.Verdict {
	verdict, err := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	if err != nil {
		return snapshot.Verdict{}
	}
	return verdict
}
