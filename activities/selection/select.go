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
)

// selectTries is how often a selection that was overtaken by another one starts
// over before it leaves that to the activity's retries.
const selectTries = 3

// Selector resolves the resource selectors of placements into snapshots. It reads
// everything live: a change that was seen by whoever asked is in the snapshot.
type Selector struct {
	// Client writes snapshots and the verdict.
	Client client.Client
	// Live reads snapshots, bindings and runs from the API server.
	Live client.Reader
	// Dynamic reads the selected objects.
	Dynamic dynamic.Interface
	// Kinds knows what the hub serves.
	Kinds *servedkinds.Cache
	// Pace says how soon a snapshot may follow on another one, Clock how late it is.
	Pace  Pace
	Clock clock.PassiveClock
}

// NewSelector puts a selector together. The configuration is the hub's; filter and
// pace are what its operator has chosen.
func NewSelector(config *rest.Config, c client.Client, live client.Reader, clk clock.PassiveClock, filter snapshot.Filter, pace Pace) (*Selector, error) {
	quiet := rest.CopyConfig(config)
	quiet.WarningHandlerWithContext = rest.NoWarnings{} // users chose the versions, not we
	reader, err := dynamic.NewForConfig(quiet)
	if err != nil {
		return nil, fmt.Errorf("creating the client for selected objects: %w", err)
	}
	catalog, err := discovery.NewDiscoveryClientForConfig(quiet)
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
func (s *Selector) SelectAtPace(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement) (act.SelectResult, error) {
	return s.selectAt(ctx, placement, false)
}

// Select makes the latest snapshot of a placement hold what it selects at this moment,
// whatever the pace, and keeps the verdict on the placement.
func (s *Selector) Select(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement) (act.SelectResult, error) {
	return s.selectAt(ctx, placement, true)
}

// selectAt selects, at once or at the pace. It may be repeated and overlap with itself: what
// exists is listed before the objects are read, so an attempt that read earlier
// than another one finds the index it wants taken, and looks again.
func (s *Selector) selectAt(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, atOnce bool) (act.SelectResult, error) {
	created := false
	for try := 1; ; try++ {
		result, err := s.selectOnce(ctx, placement, atOnce)
		created = created || result.Created
		result.Created = created
		if !errors.Is(err, errOvertaken) || try == selectTries {
			return result, err
		}
		again, err := liveread.Placement(ctx, s.Live, placement.Name)
		if err != nil {
			return act.SelectResult{}, err
		}
		if again == nil || again.UID != placement.UID || again.DeletionTimestamp != nil {
			return act.SelectResult{Gone: true}, nil
		}
		placement = again
	}
}

func (s *Selector) selectOnce(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, atOnce bool) (act.SelectResult, error) {
	existing, err := listSeries(ctx, s.Live, placement)
	if err != nil {
		return act.SelectResult{}, err
	}
	if due := s.pending(placement, existing); !due.IsZero() && !atOnce {
		return s.wait(ctx, placement, existing, due)
	}
	selected, content, err := s.resolve(ctx, placement, existing)
	if invalid, ok := errors.AsType[*snapshot.InvalidError](err); ok {
		return s.reject(ctx, placement, existing, invalid)
	}
	if err != nil {
		return act.SelectResult{}, fmt.Errorf("resolving the selectors of placement %s: %w", placement.Name, err)
	}
	due, err := s.due(ctx, existing.latest(), content.Hash, atOnce)
	if err != nil {
		return act.SelectResult{}, err
	}
	if !due.IsZero() {
		return s.wait(ctx, placement, existing, due)
	}
	latest, err := s.store(ctx, placement, existing, content)
	if err != nil {
		return act.SelectResult{}, err
	}
	if err := s.prune(ctx, placement, existing, latest.index); err != nil {
		return act.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.Generation, Snapshot: latest.name, Index: latest.index,
		Hash: content.Hash, Inputs: snapshot.Fingerprint(selected.candidates),
		Note: snapshot.NoteOf(selected.missing, len(content.Manifests) == 0),
	}
	placed := func() ([]placementv1beta1.ResourceIdentifier, error) { return identifiers(content.Manifests) }
	if err := s.pickOverrides(ctx, placement, placed, &verdict); err != nil {
		return act.SelectResult{}, err
	}
	return s.conclude(ctx, placement, verdict, latest.created)
}

// resolve reads what the placement selects, as of when the existing snapshots were
// listed or later, and what a snapshot holds of it.
func (s *Selector) resolve(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series) (gathered, snapshot.Content, error) {
	catalog, err := s.Kinds.Catalog(ctx, existing.revision)
	if err != nil {
		return gathered{}, snapshot.Content{}, err
	}
	selection, err := snapshot.Compile(placement.Spec.ResourceSelectors, catalog)
	if err != nil {
		return gathered{}, snapshot.Content{}, err
	}
	if err := s.spare(ctx, existing.latest(), catalog.Unreadable()); err != nil {
		return gathered{}, snapshot.Content{}, err
	}
	selected, err := s.gather(ctx, selection, catalog, existing.revision)
	if err != nil {
		return gathered{}, snapshot.Content{}, err
	}
	content, err := snapshot.NewContent(selected.objects)
	return selected, content, err
}

// reject records that the selectors cannot be resolved. The latest snapshot stays
// what it is.
func (s *Selector) reject(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series, reason *snapshot.InvalidError) (act.SelectResult, error) {
	verdict := snapshot.Verdict{Generation: placement.Generation, Error: reason.Message}
	if latest := existing.latest(); latest != nil {
		verdict.Snapshot, verdict.Index, verdict.Hash = latest.master.Name, latest.index, latest.hash()
	}
	return s.conclude(ctx, placement, verdict, false)
}

// conclude keeps the verdict on the placement, if it is another one than before.
func (s *Selector) conclude(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, verdict snapshot.Verdict, created bool) (act.SelectResult, error) {
	result := act.SelectResult{
		Invalid: verdict.Error != "", Snapshot: verdict.Snapshot, Index: verdict.Index, Hash: verdict.Hash, Created: created,
		Overrides: verdict.Overrides, WakeAt: verdict.Due,
	}
	key, value := placementv1beta1.SelectionVerdictAnnotation, verdict.Encode()
	if placement.Annotations[key] == value {
		return result, nil
	}
	patch, err := fence.Patch(placement.UID, fence.Annotate(placement.Annotations, key, value)...)
	if err != nil {
		return act.SelectResult{}, err
	}
	err = s.Client.Patch(ctx, placement.DeepCopy(), patch)
	switch {
	case err == nil:
		return result, nil
	case apierrors.IsNotFound(err):
		return act.SelectResult{Gone: true}, nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		return act.SelectResult{Created: created}, fmt.Errorf("annotating placement %s: %w: %w", placement.Name, errOvertaken, err)
	}
	return act.SelectResult{}, fmt.Errorf("annotating placement %s: %w", placement.Name, err)
}
