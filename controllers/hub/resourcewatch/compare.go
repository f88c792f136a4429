package resourcewatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// watchedPlacement is what the watcher knows of a placement.
type watchedPlacement struct {
	ref        wf.Ref
	generation int64
	verdict    snapshot.Verdict
	catalog    *snapshot.Catalog
	selection  *snapshot.Selection
	kinds      map[schema.GroupKind]bool
	// invalid says that the selectors cannot be resolved.
	invalid bool
	// compared says that the last selection was compared with the objects on the hub. From then on, events report every change.
	compared bool
	// epoch counts how often compared was reset.
	epoch int
}

// listKnown returns the keys of the placements that are watched.
func (w *Watcher) listKnown() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make(map[string]bool, len(w.placements))
	for name := range w.placements {
		names[name] = true
	}
	return names
}

// wakePlacement asks for a poke of a placement.
func (w *Watcher) wakePlacement(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.placements[name]; ok {
		w.Marker.Mark(p.ref, wf.Poke{UID: p.ref.UID, Generation: p.generation, Cause: wf.CauseResources})
	}
}

// indexPlacement takes a placement into the index as it is now.
func (w *Watcher) indexPlacement(ctx context.Context, name string) error {
	namespace, base, err := toolscache.SplitMetaNamespaceKey(name)
	if err != nil {
		return fmt.Errorf("reading the key of a placement: %w", err)
	}
	scope := placementv1beta1.Scope{Namespace: namespace}
	placement := scope.NewPlacement(base)
	err = w.Placements.Get(ctx, scope.Key(base), placement, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading placement %s: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.placements[name]
	if err != nil || placement.GetDeletionTimestamp() != nil {
		w.forgetPlacement(name, known)
		return nil
	}
	if known != nil && known.ref.UID != string(placement.GetUID()) {
		w.forgetPlacement(name, known)
		known = nil
	}
	// A verdict that cannot be read counts as none: the next selection replaces it.
	verdict, _ := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	if known != nil && known.generation == placement.GetGeneration() && known.catalog == w.catalog &&
		slices.Equal(known.verdict.Dependencies, verdict.Dependencies) {
		known.verdict = verdict
		return nil
	}
	w.placements[name] = w.resolveSelectors(placement, verdict, known)
	return nil
}

func (w *Watcher) forgetPlacement(name string, known *watchedPlacement) {
	w.index.Remove(name)
	delete(w.placements, name)
	if known != nil {
		w.Marker.Forget(known.ref)
	}
}

// resolveSelectors puts the selectors of a placement into the index, with what its last selection has found that the selected
// objects name. As long as it selects the same kinds and names as before, and the same of them are held as its last selection held,
// nothing can have been missed.
func (w *Watcher) resolveSelectors(placement placementv1beta1.PlacementObject, verdict snapshot.Verdict,
	before *watchedPlacement) *watchedPlacement {
	resolved := &watchedPlacement{
		ref: waker.PlacementRef(placement), generation: placement.GetGeneration(), verdict: verdict, catalog: w.catalog,
		kinds: map[schema.GroupKind]bool{},
	}
	selection, err := snapshot.Compile(placementv1beta1.ScopeOf(placement), placement.GetPlacementSpec().ResourceSelectors, w.catalog)
	if _, ok := errors.AsType[*snapshot.InvalidError](err); ok {
		resolved.invalid = true
		w.index.Remove(resolved.ref.Key())
		return resolved
	}
	if err != nil { // an API group it needs cannot be read: the next catalog will tell
		resolved.invalid = true
		resolved.compared = true
		w.index.Remove(resolved.ref.Key())
		return resolved
	}
	if placement.GetPlacementSpec().PropagateDeps {
		selection.AddDependencies(verdict.Dependencies, w.catalog)
	}
	resolved.selection = selection
	w.index.Set(resolved.ref.Key(), selection)
	for _, kind := range kindsOf(selection, w.catalog) {
		resolved.kinds[kind.GroupKind()] = true
	}
	if before != nil && before.compared && !before.invalid && before.generation == placement.GetGeneration() {
		resolved.compared = maps.Equal(before.kinds, resolved.kinds) && slices.Equal(before.verdict.Dependencies, verdict.Dependencies) &&
			selection.SameHeld(verdict.Held, w.catalog)
	}
	return resolved
}

// requestComparison has the placements compared again that select one of these kinds, which were not watched until
// now.
func (w *Watcher) requestComparison(kinds map[schema.GroupKind]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, placement := range w.placements {
		for gk := range kinds {
			if placement.kinds[gk] {
				placement.compared = false
				placement.epoch++
			}
		}
	}
}

// compareSelection wakes a placement if the objects on the hub differ from what its last selection saw. It does so
// once, as soon as everything that the placement selects has been listed: changes while the kinds were not watched
// are found, and a restart wakes no workflow without need.
func (w *Watcher) compareSelection(name string) {
	w.mu.Lock()
	p, ok := w.placements[name]
	if !ok || p.compared || p.verdict.Generation != p.generation {
		w.mu.Unlock()
		return // there is nothing to compare with: the next selection sees the present objects
	}
	now := *p
	w.mu.Unlock()

	differs := now.invalid != (now.verdict.Error != "")
	if !now.invalid && (now.verdict.Error == "" || now.verdict.Inputs != "") {
		inputs, listed := w.watches.fingerprintSelected(&now)
		if !listed {
			return
		}
		differs = inputs != now.verdict.Inputs || !now.selection.SameHeld(now.verdict.Held, now.catalog)
	}
	w.mu.Lock()
	if w.placements[name] == p && p.epoch == now.epoch {
		p.compared = true
	}
	w.mu.Unlock()
	if differs {
		w.wakePlacement(name)
	}
}

// fingerprintSelected returns the fingerprint of what a placement selects according to the watches; listed is false if one
// of them has not listed all its objects yet.
func (i *kindWatches) fingerprintSelected(placement *watchedPlacement) (inputs string, listed bool) {
	watches, listed := i.listedWatches(placement.kinds)
	if !listed {
		return "", false
	}
	selection := placement.selection
	var candidates []snapshot.Identity
	for _, rule := range selection.Rules {
		watch := watches[rule.Kind.GroupKind()]
		for _, object := range watch.listSelectedBy(rule) {
			candidates = append(candidates, identifyReduced(watch.kind, object))
			if rule.Kind.GroupKind() == snapshot.NamespaceKind {
				candidates = append(candidates, listNamespaceContents(selection, object, watches)...)
			}
		}
	}
	return snapshot.Fingerprint(candidates), true
}

// listNamespaceContents lists the objects that are placed with a namespace.
func listNamespaceContents(selection *snapshot.Selection, namespace *metav1.PartialObjectMetadata,
	watches map[schema.GroupKind]*watched) []snapshot.Identity {
	var candidates []snapshot.Identity
	for _, watch := range watches {
		if !watch.kind.Namespaced {
			continue
		}
		for _, object := range watch.listInNamespace(namespace.Name) {
			if snapshot.Candidate(watch.kind.GroupKind(), object) && selectsInside(selection, namespace.Labels, watch.kind, object) {
				candidates = append(candidates, identifyReduced(watch.kind, object))
			}
		}
	}
	return candidates
}
