// Package resourcewatch notices when something changes on the hub that a placement
// selects, and wakes the placement's workflow. It watches metadata only, and only of
// kinds that some placement selects; an index leads from an object to its
// placements, so that everything else on the hub costs nothing.
package resourcewatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// definitions is the kind whose changes change what the hub serves. It is always
// watched.
var definitions = snapshot.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Resource:         "customresourcedefinitions",
}

// firstRefreshRetry is when to refresh again after the hub did not serve a new kind yet, or could not be asked;
// repeated failures double it up to longestRefreshRetry.
const (
	firstRefreshRetry   = 250 * time.Millisecond
	longestRefreshRetry = 10 * time.Second
)

// Marker takes note that the workflow of a placement has to look again.
type Marker interface {
	Mark(ref wf.Ref, poke wf.Poke)
	Forget(ref wf.Ref)
}

// Catalogs tells what the hub serves.
type Catalogs interface {
	// Catalog is read at a revision of the hub's store or later.
	Catalog(ctx context.Context, revision string) (*snapshot.Catalog, error)
	// Lagging says that another read will soon return more.
	Lagging() bool
}

// Informers is the part of the manager's cache that the watcher subscribes to.
type Informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// Watcher wakes placements when what they select changes. Only the leader runs it.
type Watcher struct {
	// Placements reads placements from the manager's cache, Cache reports changes.
	Placements client.Reader
	Cache      Informers
	// Kinds says what the hub serves, Metadata watches it, Contents the kinds whose metadata is not enough.
	Kinds    Catalogs
	Metadata metadata.Interface
	Contents dynamic.Interface
	// Namespaces are those in which namespaced kinds are watched; empty for all.
	Namespaces []string
	// Marker takes the pokes.
	Marker Marker
	// Reports writes the status of PropagatedTypes, Events reports what happens to them.
	Reports client.Client
	Events  events.EventRecorder
	Clock   clock.Clock
	Log     logr.Logger

	index   *Index
	watches *kindWatches
	catalog *snapshot.Catalog
	types   typeReporter
	// requests are what the loop is asked for.
	requests *requests

	mu         sync.Mutex
	placements map[string]*watchedPlacement
}

// NeedLeaderElection leaves the watching to the leader.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.index = NewIndex()
	w.watches = &kindWatches{client: w.Metadata, contents: w.Contents, log: w.Log, namespaces: w.Namespaces, changed: w.handleChange,
		listed: w.handleFirstList, running: map[schema.GroupKind]*watched{}}
	w.placements = map[string]*watchedPlacement{}
	w.types = typeReporter{watcher: w}
	w.requests = newRequests()
	for _, scope := range placementv1beta1.Scopes() {
		informer, err := w.Cache.GetInformer(ctx, scope.NewPlacement(""))
		if err != nil {
			return fmt.Errorf("watching placements: %w", err)
		}
		registration, err := informer.AddEventHandler(w.newPlacementHandler())
		if err != nil {
			return fmt.Errorf("watching placements: %w", err)
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
	}
	w.requests.addCatalog()
	for failures := 0; ; {
		err := w.refreshWatches(ctx)
		later, failed := w.types.reportTypes(ctx)
		err = errors.Join(err, failed)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			w.Log.Error(err, "The resources that placements select cannot all be watched; trying again")
			failures++
		case w.Kinds.Lagging():
			failures = 1
		case w.catalog != nil && w.catalog.Incomplete():
			failures++ // no event announces the missing API groups
		default:
			failures = 0
		}
		if !w.waitForWork(ctx, failures, later) {
			return nil
		}
	}
}

// waitForWork waits for a request; after failures also for a time that grows with them, and otherwise, if there is more to
// report, until later. It is false when the context has ended.
func (w *Watcher) waitForWork(ctx context.Context, failures int, later time.Duration) bool {
	var alarm, report <-chan time.Time
	if failures == 0 && later > 0 {
		timer := w.Clock.NewTimer(later)
		defer timer.Stop()
		report = timer.C()
	}
	if failures > 0 {
		timer := w.Clock.NewTimer(min(firstRefreshRetry<<min(failures-1, 10), longestRefreshRetry))
		defer timer.Stop()
		alarm = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-alarm:
		w.requests.addCatalog()
	case <-report:
	case <-w.requests.kick:
	}
	return true
}

func (w *Watcher) newPlacementHandler() toolscache.ResourceEventHandler {
	touch := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if placement, ok := object.(placementv1beta1.PlacementObject); ok {
			w.requests.addPlacement(waker.PlacementRef(placement).Key())
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    touch,
		DeleteFunc: touch,
		UpdateFunc: func(before, after any) {
			old, _ := before.(placementv1beta1.PlacementObject)
			updated, ok := after.(placementv1beta1.PlacementObject)
			if ok && concernsSelection(old, updated) {
				w.requests.addPlacement(waker.PlacementRef(updated).Key())
			}
		},
	}
}

// concernsSelection reports whether an update of a placement is about its selection. Most are about its status.
func concernsSelection(before, after placementv1beta1.PlacementObject) bool {
	key := placementv1beta1.SelectionVerdictAnnotation
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		before.GetAnnotations()[key] != after.GetAnnotations()[key] ||
		rules.DeletionStarted(before, after)
}

// refreshWatches brings index and watches up to date with placements and catalog.
func (w *Watcher) refreshWatches(ctx context.Context) error {
	touched, refresh := w.requests.take()
	if len(touched) == 0 && !refresh {
		return nil
	}
	catalog, err := w.Kinds.Catalog(ctx, "")
	if err != nil {
		w.requests.restore(touched)
		return err
	}
	if catalog != w.catalog {
		w.catalog = catalog
		for name := range w.listKnown() {
			touched[name] = true
		}
	}
	failed := w.types.watchTypes(ctx)
	for name := range touched {
		if err := w.indexPlacement(ctx, name); err != nil {
			w.requests.restore(map[string]bool{name: true})
			failed = errors.Join(failed, err)
		}
	}
	kinds := w.index.Kinds(catalog)
	kinds[definitions.GroupKind()] = definitions
	started, err := w.watches.ensureWatches(ctx, kinds)
	w.requestComparison(started)
	failed = errors.Join(failed, err)
	for name := range touched {
		w.compareSelection(name)
	}
	return failed
}

// handleChange wakes the placements that selected an object before a change, or do after
// it.
func (w *Watcher) handleChange(kind snapshot.Kind, before, after *metav1.PartialObjectMetadata) {
	if kind.GroupKind() == definitions.GroupKind() {
		w.requests.addCatalog()
	}
	var affected []string
	if before != nil {
		affected = w.index.Selecting(kind, before)
	}
	if kind.GroupKind() == snapshot.NamespaceKind {
		w.indexNamespace(before, after)
	}
	if after != nil {
		affected = append(affected, w.index.Selecting(kind, after)...)
	}
	slices.Sort(affected)
	for _, placement := range slices.Compact(affected) {
		w.wakePlacement(placement)
	}
}

// indexNamespace keeps the index informed about the labels of a namespace.
func (w *Watcher) indexNamespace(before, after *metav1.PartialObjectMetadata) {
	if after == nil {
		w.index.Namespace(before.Name, nil)
		return
	}
	w.index.Namespace(after.Name, labels.Merge(labels.Set{}, after.Labels))
}

// handleFirstList handles the first list of a kind.
func (w *Watcher) handleFirstList(kind snapshot.Kind, objects []*metav1.PartialObjectMetadata) {
	if kind.GroupKind() == snapshot.NamespaceKind {
		for _, object := range objects {
			w.indexNamespace(nil, object)
		}
	}
	if kind.GroupKind() == definitions.GroupKind() {
		w.requests.addCatalog() // for what was defined since the catalog was read
	}
	for name := range w.listKnown() {
		w.compareSelection(name)
	}
}
