package selection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickOverrides notes in a verdict which overrides concern what was selected. One that
// was made for the placement counts at once; one for all placements from the next rollout
// on, which is when the placement or what it selects changes (API reference,
// ClusterResourceOverrideSpec), or at once if its last version cannot be applied. Update
// runs pick their overrides when they start.
//
// It reads from the cache: if that lags behind, the controller that wakes placements sees
// that the verdict was made of other overrides, and has the placement selected again.
func (s *Selector) pickOverrides(ctx context.Context, placement placementv1beta1.PlacementObject,
	readIdentifiers func() ([]placementv1beta1.ResourceIdentifier, error), verdict *snapshot.Verdict) error {
	if rules.IsExternal(placement) && len(placement.GetPlacementSpec().RequiredOverrides) == 0 {
		return nil
	}
	inForce, err := hubread.OverridesInForce(ctx, s.Client)
	if err != nil {
		return fmt.Errorf("picking the overrides of placement %s: %w", placement.GetName(), err)
	}
	verdict.OverridesLacking = inForce.Lacking(placement)
	if rules.IsExternal(placement) {
		return nil
	}
	named := override.PlacementOf(placement)
	verdict.OverridesMade = override.Made(named, inForce)
	last := lastVerdict(placement)
	sameRollout, err := s.isSameRollout(ctx, placement, inForce, last, verdict)
	if err != nil {
		return err
	}
	if sameRollout {
		if inForce, err = s.addKeptOverrides(ctx, inForce, last.Overrides); err != nil {
			return err
		}
	}
	if len(inForce) == 0 {
		return nil
	}
	ids, err := readIdentifiers()
	if err != nil {
		return err
	}
	matcher := override.NewMatcher(named, ids, inForce)
	verdict.OverridesIdle = describeIdle(matcher)
	for _, concern := range matcher.Concerns() {
		if concern.Made || !sameRollout || slices.Contains(last.Overrides, concern.Source.Ref()) {
			verdict.Overrides = append(verdict.Overrides, concern.Source.Ref())
		}
	}
	return nil
}

// isSameRollout reports whether the verdict continues the rollout of the last one. An
// override that could not be applied and has another version now begins a new rollout.
func (s *Selector) isSameRollout(ctx context.Context, placement placementv1beta1.PlacementObject, inForce override.Snapshots,
	last snapshot.Verdict, verdict *snapshot.Verdict) (bool, error) {
	if last.Generation != verdict.Generation || last.Snapshot != verdict.Snapshot {
		return false, nil
	}
	if len(last.Overrides) == 0 {
		return true, nil
	}
	bindings := placementv1beta1.ScopeOf(placement).NewBindingList()
	err := s.Client.List(ctx, bindings, client.InNamespace(placement.GetNamespace()),
		client.MatchingFields{hubread.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the bindings of placement %s: %w", placement.GetName(), err)
	}
	return !override.Corrected(inForce, last.Overrides, bindings.Objects()), nil
}

// maxIdleSelectors is how many selectors that select nothing are named.
const maxIdleSelectors = 5

// describeIdle names the selectors of overrides made for a placement that select nothing
// of it.
func describeIdle(matcher *override.Matcher) []string {
	var idle []string
	for _, selector := range matcher.Idle() {
		if len(idle) == maxIdleSelectors {
			break
		}
		what := selector.Resource.Kind + " " + selector.Resource.Name
		if selector.Resource.Namespace != "" {
			what = selector.Resource.Kind + " " + selector.Resource.Namespace + "/" + selector.Resource.Name
		}
		idle = append(idle, fmt.Sprintf("%s selects %s", selector.Override, what))
	}
	return idle
}

// addKeptOverrides adds the overrides for all placements with which the rollout has begun
// and of which there is a later version by now, which waits for the next rollout.
func (s *Selector) addKeptOverrides(ctx context.Context, inForce override.Snapshots,
	refs []string) (override.Snapshots, error) {
	for _, ref := range refs {
		kept, err := hubread.LoadOverrides(ctx, s.Client, s.Live, []string{ref})
		if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the rollout began with: %w", err)
		}
		for _, snapshot := range kept {
			if snapshot.GetOverridePlacement() == nil && !containsSnapshot(inForce, snapshot) {
				inForce = append(inForce, snapshot)
			}
		}
	}
	return inForce, nil
}

func containsSnapshot(all override.Snapshots, snapshot placementv1beta1.OverrideSnapshotObject) bool {
	return slices.ContainsFunc(all, func(other placementv1beta1.OverrideSnapshotObject) bool {
		return override.SourceOf(other) == override.SourceOf(snapshot)
	})
}

// identifyManifests identifies the objects that manifests bring to clusters: an envelope
// brings its content, and one that cannot be unpacked brings nothing that could be
// overridden.
func (s *Selector) identifyManifests(ctx context.Context, scope placementv1beta1.Scope,
	manifests [][]byte) ([]placementv1beta1.ResourceIdentifier, error) {
	rules, err := s.Kinds.EnvelopeRules(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out what envelopes may hold: %w", err)
	}
	ids := make([]placementv1beta1.ResourceIdentifier, 0, len(manifests))
	for _, manifest := range manifests {
		if _, is := envelope.Identify(manifest); is {
			_, entries, _ := envelope.Unpack(manifest, rules.In(scope))
			for _, entry := range entries {
				ids = append(ids, identifyObject(entry.Object.GroupVersionKind(), entry.Object))
			}
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifest, object); err != nil {
			return nil, fmt.Errorf("decoding a selected object: %w", err)
		}
		ids = append(ids, identifyObject(object.GroupVersionKind(), object))
	}
	return ids, nil
}

func identifyObject(gvk schema.GroupVersionKind, object metav1.Object) placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// Overrides picks, for an update run that starts, the overrides that concern a snapshot of
// a placement, in their latest version; nil if there are none. It reads everything live.
func (s *Selector) Overrides(ctx context.Context, placement placementv1beta1.PlacementObject, index string) (*override.Matcher, error) {
	inForce, err := hubread.LatestOverrides(ctx, s.Live, override.PlacementOf(placement))
	if err != nil {
		return nil, fmt.Errorf("picking the overrides of placement %s: %w", placement.GetName(), err)
	}
	if lacking := inForce.Lacking(placement); lacking != nil {
		return nil, &override.LackingError{Overrides: lacking}
	}
	if len(inForce) == 0 {
		return nil, nil
	}
	placed, err := s.readSnapshotIdentifiers(ctx, placement, index)
	if err != nil {
		return nil, err
	}
	return override.NewMatcher(override.PlacementOf(placement), placed, inForce), nil
}

// readSnapshotIdentifiers reads live which objects a snapshot of a placement holds.
func (s *Selector) readSnapshotIdentifiers(ctx context.Context, placement placementv1beta1.PlacementObject,
	index string) ([]placementv1beta1.ResourceIdentifier, error) {
	manifests, err := readSnapshotManifests(ctx, s.Live, placement, index)
	if err != nil {
		return nil, err
	}
	return s.identifyManifests(ctx, placementv1beta1.ScopeOf(placement), manifests)
}

// readSnapshotManifests reads live what a snapshot of a placement holds.
func readSnapshotManifests(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject,
	index string) ([][]byte, error) {
	parts := placementv1beta1.ScopeOf(placement).NewResourceSnapshotList()
	err := live.List(ctx, parts, client.InNamespace(placement.GetNamespace()), client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement.GetName(), placementv1beta1.ResourceIndexLabel: index})
	if err != nil {
		return nil, fmt.Errorf("reading resource snapshot %s of placement %s: %w", index, placement.GetName(), err)
	}
	var manifests [][]byte
	for _, part := range parts.Objects() {
		for _, resource := range part.GetResourceSnapshotSpec().SelectedResources {
			manifests = append(manifests, resource.Raw)
		}
	}
	return manifests, nil
}
