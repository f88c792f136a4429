package work

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// objectRef names an object of the member by its resource.
type objectRef struct {
	gvr  schema.GroupVersionResource
	name types.NamespacedName
}

// objectVersion identifies one version of an object.
type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// Watcher watches the member's objects that Works apply, so that their changes are seen at once. It
// has one informer for each kind in use, which keeps only the objects' identity and version, and
// stops it when no Work needs the kind any more.
type Watcher struct {
	client metadata.Interface
	log    logr.Logger
	// notify is called with each Work that a change concerns, and the object that changed. A
	// reference without a name stands for all objects of its kind.
	notify func(work string, o objectRef)

	// namespaced says that objects are watched by namespace, because the agent may not watch all.
	namespaced bool

	mu         sync.RWMutex
	ctx        context.Context // nil until started
	informers  map[watchedKind]*kindInformer
	interest   map[objectRef]map[string]struct{} // by object, the names of Works
	interestOf map[string]map[objectRef]struct{} // by name of a Work, its objects
}

// watchedKind is a kind in a namespace, or everywhere if that is empty.
type watchedKind struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// kindInformer watches one kind.
type kindInformer struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc // nil until running
	always   bool               // needed even if no Work names an object of the kind
	users    int                // how many objects of the kind Works name
	// works returns the Works that an event concerns in addition to those that name the object; nil for none.
	works func(name types.NamespacedName) []string
}

// NewWatcher returns a Watcher that calls notify with each Work to reconcile. It watches nothing
// before Start, and then, if it is namespaced, only the namespaces in which objects are.
func NewWatcher(client metadata.Interface, namespaced bool, log logr.Logger, notify func(work string, o objectRef)) *Watcher {
	return &Watcher{
		client:     client,
		namespaced: namespaced,
		log:        log,
		notify:     notify,
		informers:  map[watchedKind]*kindInformer{},
		interest:   map[objectRef]map[string]struct{}{},
		interestOf: map[string]map[objectRef]struct{}{},
	}
}

// WatchAlways watches a kind for good. Works returns the Works that an event on an object of the kind concerns, in addition to
// those that named it.
func (w *Watcher) WatchAlways(gvr schema.GroupVersionResource, works func(name types.NamespacedName) []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := w.ensureInformerLocked(watchedKind{gvr: gvr})
	kind.always = true
	kind.works = works
}

// Start watches until ctx ends. It implements manager.Runnable.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for watched := range w.informers {
		w.startInformerLocked(watched)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// SetInterest declares all objects of a Work; it replaces what was declared before. It does not
// matter who owns the objects: a Work also needs to know that a conflicting object is gone.
func (w *Watcher) SetInterest(work string, objects []objectRef) {
	next := make(map[objectRef]struct{}, len(objects))
	for _, o := range objects {
		next[o] = struct{}{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(next, w.interestOf[work]) {
		return
	}
	for o := range next {
		w.addInterestLocked(work, o)
	}
	for o := range w.interestOf[work] {
		if _, ok := next[o]; !ok {
			w.dropInterestLocked(work, o)
		}
	}
	if len(next) == 0 {
		delete(w.interestOf, work)
		return
	}
	w.interestOf[work] = next
}

func (w *Watcher) addInterestLocked(work string, o objectRef) {
	works, ok := w.interest[o]
	if !ok {
		works = map[string]struct{}{}
		w.interest[o] = works
		w.ensureInformerLocked(w.watchedAs(o)).users++
	}
	works[work] = struct{}{}
}

func (w *Watcher) dropInterestLocked(work string, o objectRef) {
	works := w.interest[o]
	delete(works, work)
	if len(works) > 0 {
		return
	}
	delete(w.interest, o)
	watched := w.watchedAs(o)
	kind := w.informers[watched]
	kind.users--
	if kind.users > 0 || kind.always {
		return
	}
	if kind.stop != nil {
		kind.stop()
	}
	delete(w.informers, watched)
}

// watchedAs returns what is watched for an object.
func (w *Watcher) watchedAs(o objectRef) watchedKind {
	if !w.namespaced {
		return watchedKind{gvr: o.gvr}
	}
	return watchedKind{gvr: o.gvr, namespace: o.name.Namespace}
}

// ensureInformerLocked returns the informer of a kind and starts it if there was none.
func (w *Watcher) ensureInformerLocked(watched watchedKind) *kindInformer {
	if kind, ok := w.informers[watched]; ok {
		return kind
	}
	kind := &kindInformer{
		informer: informer.OfMetadata(w.client, watched.gvr, watched.namespace, cache.Indexers{}),
	}
	w.informers[watched] = kind
	w.startInformerLocked(watched)
	return kind
}

func (w *Watcher) startInformerLocked(watched watchedKind) {
	kind := w.informers[watched]
	gvr := watched.gvr
	if w.ctx == nil || kind.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	kind.stop = stop
	if err := kind.informer.SetTransform(stripObject); err != nil {
		w.log.Error(err, "Cannot strip watched objects; they take more memory than they need to", "resource", gvr.String())
	}
	changed := func(obj any) { w.notifyOfObject(gvr, obj) }
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
		// Objects that vanished before the first list cause no event, so all Works of the kind are
		// notified.
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.notifyOfKind(gvr)
		}
	}()
}

// stripObject keeps only the identity and the version of an object.
func stripObject(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}}, nil
}

func (w *Watcher) notifyOfObject(gvr schema.GroupVersionResource, obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		w.log.Error(fmt.Errorf("reading an event on %s: %w", gvr, err), "Cannot tell which object changed")
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	w.mu.RLock()
	var works []string
	for work := range w.interest[objectRef{gvr: gvr, name: name}] {
		works = append(works, work)
	}
	if kind := w.informers[watchedKind{gvr: gvr}]; kind != nil && kind.works != nil {
		works = append(works, kind.works(name)...)
	}
	w.mu.RUnlock()
	for _, work := range works {
		w.notify(work, objectRef{gvr: gvr, name: name})
	}
}

// notifyOfKind notifies every Work that has objects of a kind.
func (w *Watcher) notifyOfKind(gvr schema.GroupVersionResource) {
	works := map[string]struct{}{}
	w.mu.RLock()
	for o, interested := range w.interest {
		if o.gvr == gvr {
			maps.Copy(works, interested)
		}
	}
	w.mu.RUnlock()
	for work := range works {
		w.notify(work, objectRef{gvr: gvr})
	}
}

// versionState is how a version that a pass has read or written compares with the watch.
type versionState int

const (
	// versionChanged: the object has another version, is gone, or is not watched yet.
	versionChanged versionState = iota
	// versionCurrent: the object has that version.
	versionCurrent
	// versionAhead: the watch has not reached that version yet. An event will follow.
	versionAhead
)

// CompareVersion compares the version of an object that a pass found with the watch.
func (w *Watcher) CompareVersion(o objectRef, found objectVersion) versionState {
	w.mu.RLock()
	kind := w.informers[w.watchedAs(o)]
	w.mu.RUnlock()
	if kind == nil || !kind.informer.HasSynced() {
		return versionChanged
	}
	// This is read before the store, because the store receives an event a moment after the
	// informer has reached its version.
	reached := kind.informer.LastSyncResourceVersion()
	key := cache.ObjectName{Namespace: o.name.Namespace, Name: o.name.Name}.String()
	stored, exists, err := kind.informer.GetStore().GetByKey(key)
	if err != nil {
		return versionChanged
	}
	if exists {
		if meta, ok := stored.(*metav1.PartialObjectMetadata); ok {
			if meta.UID == found.uid && meta.ResourceVersion == found.resourceVersion {
				return versionCurrent
			}
			reached = meta.ResourceVersion
		}
	} else if found == (objectVersion{}) {
		return versionCurrent // it is still absent
	}
	if order, err := resourceversion.CompareResourceVersion(reached, found.resourceVersion); err == nil && order < 0 {
		return versionAhead
	}
	return versionChanged
}

// HasSynced reports whether the watch of a kind in all namespaces has received its first list.
func (w *Watcher) HasSynced(gvr schema.GroupVersionResource) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	kind := w.informers[watchedKind{gvr: gvr}]
	return kind != nil && kind.informer.HasSynced()
}

// Names returns the names of all objects of a kind that the watch of all namespaces has.
func (w *Watcher) Names(gvr schema.GroupVersionResource) []string {
	w.mu.RLock()
	kind := w.informers[watchedKind{gvr: gvr}]
	w.mu.RUnlock()
	if kind == nil {
		return nil
	}
	return kind.informer.GetStore().ListKeys()
}

// isAppliedWorkCurrent reports whether the AppliedWork is as this agent last wrote it.
func (w *Watcher) isAppliedWorkCurrent(applied *placementv1beta1.AppliedWork) bool {
	o := objectRef{gvr: appliedWorkResource, name: types.NamespacedName{Name: applied.Name}}
	return w.CompareVersion(o, objectVersion{uid: applied.UID, resourceVersion: applied.ResourceVersion}) != versionChanged
}

// isBehind reports whether a pass has read versions that the watch has not seen yet.
func (w *Watcher) isBehind(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.observed && w.CompareVersion(o.ref(), o.version) != versionCurrent {
			return true
		}
	}
	return false
}

// watchObjects declares every object of the pass before any of them is written, and further objects
// that the pass depends on.
func (w *Watcher) watchObjects(work string, steps []*step, applied *placementv1beta1.AppliedWork, objects ...objectRef) {
	for _, s := range steps {
		if s.due && s.outcome.gvr.Resource != "" {
			objects = append(objects, s.outcome.ref())
		}
	}
	for _, listed := range applied.Status.AppliedResources {
		if gvr, ok := resourceOf(listed.WorkResourceIdentifier); ok {
			objects = append(objects, objectRef{gvr: gvr, name: types.NamespacedName{Namespace: listed.Namespace, Name: listed.Name}})
		}
	}
	w.SetInterest(work, objects)
}

// isOutcomeCurrent reports whether the outcome of a manifest still holds.
func (w *Watcher) isOutcomeCurrent(o outcome, now time.Time) bool {
	if o.retry || !o.observed {
		return !o.retry
	}
	if o.struggle.held && !o.struggle.repairs.mustWait(now) {
		return false
	}
	if o.struggle.isOver(now) {
		return false
	}
	return !o.pods.mustLook(now) && w.CompareVersion(o.ref(), o.version) != versionChanged
}
