package work

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetflow/fleetflow/controllers/informer"
)

// object names an object of the member by the resource it is served as.
type object struct {
	gvr  schema.GroupVersionResource
	name types.NamespacedName
}

// sighting is what the watch last saw of an object.
type sighting struct {
	uid             types.UID
	resourceVersion string
}

// Watcher watches the member's objects that Works apply, so that a change of any of them is
// seen at once. It holds one informer per kind in use, which keeps nothing but the objects'
// identity and version, and stops it when no Work needs the kind any more.
type Watcher struct {
	client metadata.Interface
	log    logr.Logger
	// notify is called with each Work that a change concerns, and the object that changed. One
	// without a name stands for all of its kind.
	notify func(work string, o object)

	mu        sync.RWMutex
	ctx       context.Context // nil until started
	informers map[schema.GroupVersionResource]*kindInformer
	interest  map[object]map[string]struct{} // object → names of Works
	wants     map[string]map[object]struct{} // name of Work → objects
}

// kindInformer watches one kind.
type kindInformer struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc // nil until running
	pinned   bool               // needed even if no Work names an object of the kind
	users    int                // objects of the kind that Works name
	// works tells which Works an event on an unnamed object concerns; nil for none.
	works func(name types.NamespacedName) []string
}

// NewWatcher returns a Watcher that tells notify which Works to look at again. Nothing is
// watched before Start.
func NewWatcher(client metadata.Interface, log logr.Logger, notify func(work string, o object)) *Watcher {
	return &Watcher{
		client:    client,
		log:       log,
		notify:    notify,
		informers: map[schema.GroupVersionResource]*kindInformer{},
		interest:  map[object]map[string]struct{}{},
		wants:     map[string]map[object]struct{}{},
	}
}

// Pin watches a kind for good. Works says which Works an event on an object of the kind
// concerns, besides those that named it.
func (w *Watcher) Pin(gvr schema.GroupVersionResource, works func(name types.NamespacedName) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := w.kindLocked(gvr)
	kind.pinned, kind.works = true, works
}

// Start watches until ctx ends. It implements manager.Runnable.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for gvr := range w.informers {
		w.runLocked(gvr)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Want declares all objects a Work is about; it replaces what was declared before. The names
// matter, not who owns the objects: a Work also wants to know that an object in its way is
// gone.
func (w *Watcher) Want(work string, objects []object) {
	next := make(map[object]struct{}, len(objects))
	for _, o := range objects {
		next[o] = struct{}{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(next, w.wants[work]) {
		return
	}
	for o := range next {
		w.addLocked(work, o)
	}
	for o := range w.wants[work] {
		if _, ok := next[o]; !ok {
			w.dropLocked(work, o)
		}
	}
	if len(next) == 0 {
		delete(w.wants, work)
		return
	}
	w.wants[work] = next
}

func (w *Watcher) addLocked(work string, o object) {
	works, ok := w.interest[o]
	if !ok {
		works = map[string]struct{}{}
		w.interest[o] = works
		w.kindLocked(o.gvr).users++
	}
	works[work] = struct{}{}
}

func (w *Watcher) dropLocked(work string, o object) {
	works := w.interest[o]
	delete(works, work)
	if len(works) > 0 {
		return
	}
	delete(w.interest, o)
	kind := w.informers[o.gvr]
	kind.users--
	if kind.users > 0 || kind.pinned {
		return
	}
	if kind.stop != nil {
		kind.stop()
	}
	delete(w.informers, o.gvr)
}

// kindLocked returns the informer of a kind and starts it if there was none.
func (w *Watcher) kindLocked(gvr schema.GroupVersionResource) *kindInformer {
	if kind, ok := w.informers[gvr]; ok {
		return kind
	}
	kind := &kindInformer{
		informer: informer.OfMetadata(w.client, gvr, cache.Indexers{}),
	}
	w.informers[gvr] = kind
	w.runLocked(gvr)
	return kind
}

func (w *Watcher) runLocked(gvr schema.GroupVersionResource) {
	kind := w.informers[gvr]
	if w.ctx == nil || kind.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	kind.stop = stop
	if err := kind.informer.SetTransform(strip); err != nil {
		w.log.Error(err, "Cannot strip watched objects; they take more memory than they need to", "resource", gvr.String())
	}
	changed := func(obj any) { w.changed(gvr, obj) }
	registration, err := kind.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: changed,
	})
	if err != nil {
		w.log.Error(err, "Cannot watch objects; changes to them are seen at the next resync only", "resource", gvr.String())
		return
	}
	go kind.informer.RunWithContext(ctx)
	go func() {
		// What vanished before the first list shows only now.
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.synced(gvr)
		}
	}()
}

// strip leaves of an object what tells that it changed.
func strip(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}}, nil
}

func (w *Watcher) changed(gvr schema.GroupVersionResource, obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		w.log.Error(fmt.Errorf("reading an event on %s: %w", gvr, err), "Cannot tell which object changed")
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	w.mu.RLock()
	var works []string
	for work := range w.interest[object{gvr: gvr, name: name}] {
		works = append(works, work)
	}
	if kind := w.informers[gvr]; kind != nil && kind.works != nil {
		works = append(works, kind.works(name)...)
	}
	w.mu.RUnlock()
	for _, work := range works {
		w.notify(work, object{gvr: gvr, name: name})
	}
}

// synced wakes every Work that has objects of a kind.
func (w *Watcher) synced(gvr schema.GroupVersionResource) {
	works := map[string]struct{}{}
	w.mu.RLock()
	for o, interested := range w.interest {
		if o.gvr == gvr {
			maps.Copy(works, interested)
		}
	}
	w.mu.RUnlock()
	for work := range works {
		w.notify(work, object{gvr: gvr})
	}
}

// standing is what the watch knows of an object that was read or written at some version.
type standing int

const (
	// moved objects stand at another version, are gone, or are not watched yet.
	moved standing = iota
	// same objects stand at that version.
	same
	// unseen versions are ahead of the watch. An event will tell when it has caught up.
	unseen
)

// Stands tells whether an object still stands as it was found.
func (w *Watcher) Stands(o object, found sighting) standing {
	w.mu.RLock()
	kind := w.informers[o.gvr]
	w.mu.RUnlock()
	if kind == nil || !kind.informer.HasSynced() {
		return moved
	}
	// Read before the store: what the watch has come to is in the store a moment later.
	reached := kind.informer.LastSyncResourceVersion()
	key := cache.ObjectName{Namespace: o.name.Namespace, Name: o.name.Name}.String()
	stored, exists, err := kind.informer.GetStore().GetByKey(key)
	if err != nil {
		return moved
	}
	if exists {
		if meta, ok := stored.(*metav1.PartialObjectMetadata); ok {
			if meta.UID == found.uid && meta.ResourceVersion == found.resourceVersion {
				return same
			}
			reached = meta.ResourceVersion
		}
	} else if found == (sighting{}) {
		return same // it was absent, and still is
	}
	if order, err := resourceversion.CompareResourceVersion(reached, found.resourceVersion); err == nil && order < 0 {
		return unseen
	}
	return moved
}

// Synced tells whether the watch of a kind has caught up once.
func (w *Watcher) Synced(gvr schema.GroupVersionResource) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	kind := w.informers[gvr]
	return kind != nil && kind.informer.HasSynced()
}

// Names returns the names of all objects of a kind the watch knows.
func (w *Watcher) Names(gvr schema.GroupVersionResource) []string {
	w.mu.RLock()
	kind := w.informers[gvr]
	w.mu.RUnlock()
	if kind == nil {
		return nil
	}
	return kind.informer.GetStore().ListKeys()
}
