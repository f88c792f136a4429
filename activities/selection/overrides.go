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
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/overridesource"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pickOverrides notes in a verdict which overrides concern what was selected. One that
// was made for the placement counts at once; one for all placements from the next rollout
// on, which is when the placement or what it selects changes (API reference,
// ClusterResourceOverrideSpec), or at once if what it said before cannot be applied.
// Update runs pick theirs when they start.
//
// It reads from the cache: should that lag behind, whoever wakes placements sees that the
// verdict was made of others than there are, and asks again.
func (s *Selector) pickOverrides(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, placed func() ([]placementv1beta1.ResourceIdentifier, error), verdict *snapshot.Verdict) error {
	if placementv1beta1.IsExternal(placement) {
		return nil
	}
	inForce, err := overridesource.InForce(ctx, s.Client)
	if err != nil {
		return fmt.Errorf("picking the overrides of placement %s: %w", placement.Name, err)
	}
	named := override.Placement{Name: placement.Name}
	verdict.OverridesMade = override.Made(named, inForce)
	before, _ := snapshot.DecodeVerdict(placement.Annotations[placementv1beta1.SelectionVerdictAnnotation])
	sameRollout := before.Generation == verdict.Generation && before.Snapshot == verdict.Snapshot
	if sameRollout && len(before.Overrides) > 0 {
		var bindings placementv1beta1.ClusterResourceBindingList
		if err := s.Client.List(ctx, &bindings, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the bindings of placement %s: %w", placement.Name, err)
		}
		sameRollout = !overridesource.Mended(inForce, before.Overrides, bindings.Objects())
	}
	if sameRollout {
		if inForce, err = s.withKept(ctx, inForce, before.Overrides); err != nil {
			return err
		}
	}
	if len(inForce) == 0 {
		return nil
	}
	ids, err := placed()
	if err != nil {
		return err
	}
	matcher := override.NewMatcher(named, ids, inForce)
	verdict.OverridesIdle = idle(matcher)
	for _, concern := range matcher.Concerns() {
		if concern.Made || !sameRollout || slices.Contains(before.Overrides, concern.Source.Ref()) {
			verdict.Overrides = append(verdict.Overrides, concern.Source.Ref())
		}
	}
	return nil
}

// toldIdle is how many selectors that select nothing are told of.
const toldIdle = 5

// idle says which selectors of overrides made for a placement select nothing of it.
func idle(matcher *override.Matcher) []string {
	var told []string
	for _, selector := range matcher.Idle() {
		if len(told) == toldIdle {
			break
		}
		what := selector.Resource.Kind + " " + selector.Resource.Name
		if selector.Resource.Namespace != "" {
			what = selector.Resource.Kind + " " + selector.Resource.Namespace + "/" + selector.Resource.Name
		}
		told = append(told, fmt.Sprintf("%s selects %s", selector.Override, what))
	}
	return told
}

// withKept adds the overrides for all placements that the rollout has begun with, should
// there be a later version of them by now: that one waits for the next rollout.
func (s *Selector) withKept(ctx context.Context, inForce overridesource.Snapshots, refs []string) (overridesource.Snapshots, error) {
	for _, ref := range refs {
		kept, err := overridesource.Load(ctx, s.Client, s.Live, []string{ref})
		if _, gone := errors.AsType[*overridesource.MissingError](err); gone {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the rollout began with: %w", err)
		}
		for _, snapshot := range kept {
			if snapshot.GetOverridePlacement() == nil && !has(inForce, snapshot) {
				inForce = append(inForce, snapshot)
			}
		}
	}
	return inForce, nil
}

func has(all overridesource.Snapshots, snapshot placementv1beta1.OverrideSnapshotObject) bool {
	return slices.ContainsFunc(all, func(other placementv1beta1.OverrideSnapshotObject) bool {
		return override.SourceOf(other) == override.SourceOf(snapshot)
	})
}

// identifiers says what manifests stand for: an envelope for what is in it. One that cannot
// be unpacked brings nothing to clusters that could be overridden.
func identifiers(manifests [][]byte) ([]placementv1beta1.ResourceIdentifier, error) {
	ids := make([]placementv1beta1.ResourceIdentifier, 0, len(manifests))
	for _, manifest := range manifests {
		if _, is := envelope.Identify(manifest); is {
			_, entries, _ := envelope.Unpack(manifest, envelope.BuiltIn)
			for _, entry := range entries {
				ids = append(ids, identifier(entry.Object.GroupVersionKind(), entry.Object))
			}
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifest, object); err != nil {
			return nil, fmt.Errorf("decoding a selected object: %w", err)
		}
		ids = append(ids, identifier(object.GroupVersionKind(), object))
	}
	return ids, nil
}

func identifier(gvk schema.GroupVersionKind, object metav1.Object) placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// Overrides picks, for an update run that starts, the overrides that concern a snapshot of
// a placement, in their latest version; nil if there are none. It reads everything live.
func (s *Selector) Overrides(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, index string) (*override.Matcher, error) {
	inForce, err := overridesource.Latest(ctx, s.Live, placement.Name)
	if err != nil {
		return nil, fmt.Errorf("picking the overrides of placement %s: %w", placement.Name, err)
	}
	if len(inForce) == 0 {
		return nil, nil
	}
	placed, err := s.stored(ctx, placement, index)
	if err != nil {
		return nil, err
	}
	return override.NewMatcher(override.Placement{Name: placement.Name}, placed, inForce), nil
}

// stored says, live, what a snapshot of a placement holds.
func (s *Selector) stored(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, index string) ([]placementv1beta1.ResourceIdentifier, error) {
	var parts placementv1beta1.ClusterResourceSnapshotList
	if err := s.Live.List(ctx, &parts, client.MatchingLabels{
		placementv1beta1.ParentPlacementLabel: placement.Name, placementv1beta1.ResourceIndexLabel: index}); err != nil {
		return nil, fmt.Errorf("reading resource snapshot %s of placement %s: %w", index, placement.Name, err)
	}
	var manifests [][]byte
	for i := range parts.Items {
		for _, resource := range parts.Items[i].Spec.SelectedResources {
			manifests = append(manifests, resource.Raw)
		}
	}
	return identifiers(manifests)
}
