package selection

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// errOvertaken says that another attempt wrote first: everything must be read again
// before writing.
var errOvertaken = errors.New("another selection was faster")

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
	Kinds *hubread.ServedKinds
	// Pace says how soon a snapshot may follow another one.
	Pace Pace
	// Ceiling is how much a placement may select.
	Ceiling Ceiling
	// Slots bound the selections that this process makes at the same time, LargeSlots those
	// that read much.
	Slots, LargeSlots attempt.Limit
	Clock             clock.PassiveClock

	large largePlacements
	// objects are which objects snapshots have, for a rivalReader.
	objects *lru.Cache
}

// NewSelector returns a selector. The configuration is the hub's, the pace an option of the hub's
// operator.
func NewSelector(config *rest.Config, c client.Client, live client.Reader, kinds *hubread.ServedKinds, clk clock.PassiveClock,
	pace Pace, ceiling Ceiling) (*Selector, error) {
	withoutWarnings := rest.CopyConfig(config)
	withoutWarnings.WarningHandlerWithContext = rest.NoWarnings{} // users chose the versions, not we
	withoutWarnings.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTransport{next} })
	reader, err := dynamic.NewForConfig(withoutWarnings)
	if err != nil {
		return nil, fmt.Errorf("creating the client for selected objects: %w", err)
	}
	return &Selector{
		Client: c, Live: live, Dynamic: reader, Kinds: kinds, Pace: pace, Ceiling: ceiling, Clock: clk,
		Slots: attempt.NewLimit(attempt.MaxSelections), LargeSlots: attempt.NewLimit(attempt.MaxLargeSelections),
		large: largePlacements{lru.New(keptLarge)}, objects: lru.New(keptRivals),
	}, nil
}

// recordVerdict writes the verdict to the placement, if it differs from the last one.
func (s *Selector) recordVerdict(ctx context.Context, placement placementv1beta1.PlacementObject, verdict snapshot.Verdict,
	created bool) (wf.SelectResult, error) {
	result := wf.SelectResult{
		Invalid: verdict.Error != "" || verdict.OverridesLacking != nil, OverridesLacking: verdict.OverridesLacking, Snapshot: verdict.Snapshot,
		Index: verdict.Index, Created: created,
		Overrides: verdict.Overrides, WakeAt: verdict.Due, LossHeld: verdict.Lost != nil, Demand: verdict.Demand,
	}
	key := placementv1beta1.SelectionVerdictAnnotation
	value := verdict.Encode()
	if placement.GetAnnotations()[key] == value {
		return result, nil
	}
	patch, err := fence.Patch(placement.GetUID(), fence.Annotate(placement.GetAnnotations(), key, value)...)
	if err != nil {
		return wf.SelectResult{}, err
	}
	err = s.Client.Patch(ctx, placementv1beta1.DeepCopyOf(placement), patch)
	switch {
	case err == nil:
		return result, nil
	case apierrors.IsNotFound(err):
		return wf.SelectResult{Gone: true}, nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err):
		return wf.SelectResult{Created: created}, fmt.Errorf("annotating placement %s: %w: %w", placement.GetName(), errOvertaken, err)
	}
	return wf.SelectResult{}, fmt.Errorf("annotating placement %s: %w", placement.GetName(), err)
}

// lastVerdict returns the verdict that an earlier selection has recorded; a zero one if there
// is none that can be read.
func lastVerdict(placement placementv1beta1.PlacementObject) snapshot.Verdict {
	verdict, err := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	if err != nil {
		return snapshot.Verdict{}
	}
	return verdict
}
