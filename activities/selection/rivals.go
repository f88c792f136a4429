package selection

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namespaces is the resource by which Namespaces are read.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// keptRivals is of how many snapshots it is kept in memory which objects they have.
const keptRivals = 1024

// Rivals reads from the cache the placements with a priority that may select the same objects as one; none if that has no
// priority. They belong to the cache and must not be changed.
func Rivals(ctx context.Context, cached client.Reader, placement placementv1beta1.PlacementObject) ([]placementv1beta1.PlacementObject, error) {
	if _, ranked := rules.RankOf(placement); !ranked {
		return nil, nil
	}
	var rivals []placementv1beta1.PlacementObject
	for _, scope := range placementv1beta1.Scopes() {
		options := []client.ListOption{client.UnsafeDisableDeepCopy}
		if scope.Namespaced() && placement.GetNamespace() != "" {
			options = append(options, client.InNamespace(placement.GetNamespace()))
		}
		list := scope.NewPlacementList()
		if err := cached.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing the placements that may select the same as %s: %w", placement.GetName(), err)
		}
		for _, other := range list.Objects() {
			if snapshot.MayShare(placement, other) {
				rivals = append(rivals, other)
			}
		}
	}
	return rivals, nil
}

// rivalReader reads what placements with a priority have to know of each other.
type rivalReader struct {
	cached, live client.Reader
	dynamic      dynamic.Interface
	// objects are which objects snapshots have, by the placement and the name of the snapshot; nil if that is not kept.
	objects *lru.Cache
}

// shareWithRivals takes out of what a placement with a priority has selected what its rivals have. What these have is read from the
// cache: if that lags behind, the controller that wakes placements sees that the verdict knew other rivals, and has the placement
// selected again.
func (r *rivalReader) shareWithRivals(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series,
	catalog *snapshot.Catalog, selection *snapshot.Selection, selected *selectedObjects) error {
	others, err := Rivals(ctx, r.cached, placement)
	if err != nil || len(others) == 0 {
		return err
	}
	selected.rivals = snapshot.FingerprintRivals(placement, others)
	rivals := make([]snapshot.Rival, 0, len(others))
	for _, other := range others {
		rival, err := r.readRival(ctx, catalog, other)
		if err != nil {
			return err
		}
		rivals = append(rivals, rival)
	}
	me := snapshot.Rival{Name: nameOf(placement), Selection: selection}
	me.Rank, _ = rules.RankOf(placement)
	if latest := existing.latestGroup(); latest != nil {
		if me.Has, err = r.objectsIn(ctx, placement, latest.master.Name, latest.index); err != nil {
			return err
		}
	}
	namespaces, err := r.readLabelsOfNamespaces(ctx, selected.items, rivals)
	if err != nil {
		return err
	}
	selected.items, selected.leftOut, err = snapshot.Share(me, selected.items, namespaces, rivals)
	return err
}

// nameOf returns the name of a placement as users write it.
func nameOf(placement placementv1beta1.PlacementObject) string {
	return placementv1beta1.ScopeOf(placement).String() + placement.GetName()
}

func (r *rivalReader) readRival(ctx context.Context, catalog *snapshot.Catalog,
	placement placementv1beta1.PlacementObject) (snapshot.Rival, error) {
	rival := snapshot.Rival{Name: nameOf(placement), Written: snapshot.IsWritten(placement)}
	rival.Rank, _ = rules.RankOf(placement)
	verdict := lastVerdict(placement)
	refused := verdict.Error != "" && verdict.Generation == placement.GetGeneration()
	if !refused && !rules.IsDeleting(placement) {
		compiled, err := snapshot.Compile(placementv1beta1.ScopeOf(placement), placement.GetPlacementSpec().ResourceSelectors, catalog)
		if _, invalid := errors.AsType[*snapshot.InvalidError](err); err != nil && !invalid {
			return rival, fmt.Errorf("resolving the selectors of placement %s, which may select the same: %w", rival.Name, err)
		}
		rival.Selection = compiled // nil if they are invalid
	}
	if verdict.Snapshot == "" {
		return rival, nil
	}
	var err error
	rival.Has, err = r.objectsIn(ctx, placement, verdict.Snapshot, verdict.Index)
	return rival, err
}

// objectsIn returns the objects in a snapshot of a placement. Snapshots never change, so what was read once is kept.
func (r *rivalReader) objectsIn(ctx context.Context, placement placementv1beta1.PlacementObject, name string,
	index int) (map[snapshot.Identity]bool, error) {
	key := string(placement.GetUID()) + "/" + name
	if r.objects != nil {
		if known, ok := r.objects.Get(key); ok {
			return known.(map[snapshot.Identity]bool), nil
		}
	}
	former := formerObjects{live: r.live, placement: placement, latest: &snapshotGroup{index: index}}
	if err := former.readOnce(ctx); err != nil {
		return nil, err
	}
	has := make(map[snapshot.Identity]bool, len(former.manifests))
	for id := range former.manifests {
		has[id] = true
	}
	if r.objects != nil && len(has) > 0 { // a snapshot that is gone reads as an empty one
		r.objects.Add(key, has)
	}
	return has, nil
}

// readLabelsOfNamespaces reads the labels of the namespaces of items, if a rival selects namespaces by label.
func (r *rivalReader) readLabelsOfNamespaces(ctx context.Context, items []snapshot.Item,
	rivals []snapshot.Rival) (map[string]labels.Set, error) {
	byLabel := false
	for i := range rivals {
		byLabel = byLabel || rivals[i].Selection.SelectsNamespacesByLabel()
	}
	if !byLabel {
		return nil, nil
	}
	found := map[string]labels.Set{}
	for i := range items {
		name := items[i].Namespace
		if _, known := found[name]; name == "" || known {
			continue
		}
		namespace, err := r.dynamic.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", strconv.Quote(name), err)
		}
		found[name] = namespace.GetLabels()
	}
	return found, nil
}
