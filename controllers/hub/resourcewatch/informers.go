package resourcewatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// versionKey is the key under which reduced metadata keeps the object's version, in place of the annotations. No
// annotation of a user can have this key.
const versionKey = "/version"

// watched is one kind that is being watched: everywhere, or in some namespaces by an informer each.
type watched struct {
	kind      snapshot.Kind
	informers []cache.SharedIndexInformer
	synced    []cache.InformerSynced
	stop      context.CancelFunc
}

// isSynced reports whether the objects have been listed.
func (w *watched) isSynced() bool {
	return !slices.ContainsFunc(w.synced, func(synced cache.InformerSynced) bool { return !synced() })
}

// kindWatches watch the metadata of the selected kinds.
type kindWatches struct {
	client metadata.Interface
	// contents watches the kinds whose metadata is not enough.
	contents dynamic.Interface
	log      logr.Logger
	// namespaces are those in which namespaced kinds are watched; empty for all.
	namespaces []string
	// changed is called for every change after the first list; either object may be
	// nil. listed is called when the first list of a kind is known.
	changed func(kind snapshot.Kind, before, after *metav1.PartialObjectMetadata)
	listed  func(kind snapshot.Kind, objects []*metav1.PartialObjectMetadata)

	mu      sync.Mutex
	running map[schema.GroupKind]*watched
}

// listedWatches returns the watches of some kinds; listed is false if one of them is missing or
// does not know all objects yet.
func (i *kindWatches) listedWatches(kinds map[schema.GroupKind]bool) (watches map[schema.GroupKind]*watched, listed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	watches = make(map[schema.GroupKind]*watched, len(kinds))
	for gk := range kinds {
		running, ok := i.running[gk]
		if !ok || !running.isSynced() {
			return nil, false
		}
		watches[gk] = running
	}
	return watches, true
}

// ensureWatches starts and stops watches so that exactly these kinds are watched, and
// returns which were started.
func (i *kindWatches) ensureWatches(ctx context.Context, kinds map[schema.GroupKind]snapshot.Kind) (started map[schema.GroupKind]bool, failed error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for gk, running := range i.running {
		if wanted, ok := kinds[gk]; !ok || wanted.GVR() != running.kind.GVR() {
			running.stop()
			delete(i.running, gk)
		}
	}
	started = map[schema.GroupKind]bool{}
	for gk, kind := range kinds {
		if _, ok := i.running[gk]; ok {
			continue
		}
		running, err := i.startWatch(ctx, kind)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("watching %s: %w", kind, err))
			continue
		}
		i.running[gk] = running
		started[gk] = true
	}
	return started, failed
}

func (i *kindWatches) startWatch(ctx context.Context, kind snapshot.Kind) (*watched, error) {
	ctx, stop := context.WithCancel(ctx)
	running := &watched{kind: kind, stop: stop}
	namespaces := []string{metav1.NamespaceAll}
	if kind.Namespaced && len(i.namespaces) > 0 {
		namespaces = i.namespaces
	}
	for _, namespace := range namespaces {
		if err := i.addInformer(running, namespace); err != nil {
			stop()
			return nil, err
		}
	}
	for _, informer := range running.informers {
		go informer.RunWithContext(ctx)
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), running.synced...) {
			i.listed(kind, running.listAll())
		}
	}()
	return running, nil
}

// addInformer adds an informer of a namespace, or of all, to a watch.
func (i *kindWatches) addInformer(running *watched, namespace string) error {
	informer := i.newInformer(running.kind, namespace)
	if err := informer.SetTransform(reduceMetadata(running.kind.GroupKind())); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		i.log.V(1).Info("A watch ended and is taken up again", "kind", running.kind.String(), "cause", err.Error())
	}); err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(i.newChangeHandler(running.kind))
	if err != nil {
		return err
	}
	running.informers = append(running.informers, informer)
	running.synced = append(running.synced, registration.HasSynced)
	return nil
}

// newInformer watches the metadata of a kind. If metadata does not tell a change of the status from others, it
// watches the objects, and keeps no more of them than metadata.
func (i *kindWatches) newInformer(kind snapshot.Kind, namespace string) cache.SharedIndexInformer {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if snapshot.Uncounted(kind.GroupKind()) {
		return informer.OfObjects(i.contents, kind.GVR(), namespace, indexers)
	}
	return informer.OfMetadata(i.client, kind.GVR(), namespace, indexers)
}

func (i *kindWatches) newChangeHandler(kind snapshot.Kind) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			// What the first list brings is compared as a whole; see handleFirstList.
			if added, ok := object.(*metav1.PartialObjectMetadata); ok && !initial {
				i.changed(kind, nil, added)
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(*metav1.PartialObjectMetadata)
			updated, ok := after.(*metav1.PartialObjectMetadata)
			if ok && !isSameVersion(kind, old, updated) {
				i.changed(kind, old, updated)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = tombstone.Obj
			}
			if deleted, ok := object.(*metav1.PartialObjectMetadata); ok {
				i.changed(kind, deleted, nil)
			}
		},
	}
}

// isSameVersion reports whether a snapshot would be the same for both.
func isSameVersion(kind snapshot.Kind, before, after *metav1.PartialObjectMetadata) bool {
	return before.UID == after.UID && identifyReduced(kind, before) == identifyReduced(kind, after) &&
		snapshot.Candidate(kind.GroupKind(), before) == snapshot.Candidate(kind.GroupKind(), after)
}

// listSelectedBy returns the objects that a rule selects which applies by itself, not inside selected namespaces.
func (w *watched) listSelectedBy(rule snapshot.Rule) []*metav1.PartialObjectMetadata {
	var objects []*metav1.PartialObjectMetadata
	switch {
	case rule.Name != "":
		key := cache.ObjectName{Namespace: rule.Namespace, Name: rule.Name}.String()
		for _, informer := range w.informers {
			object, _, _ := informer.GetStore().GetByKey(key) // never fails: the store is in memory
			objects = append(objects, metadataOf([]any{object})...)
		}
	case rule.Namespace != "":
		objects = w.listInNamespace(rule.Namespace)
	default:
		objects = w.listAll()
	}
	return slices.DeleteFunc(objects, func(object *metav1.PartialObjectMetadata) bool {
		return !rule.Matches(object) || !snapshot.Candidate(w.kind.GroupKind(), object)
	})
}

// listInNamespace returns the objects in a namespace.
func (w *watched) listInNamespace(namespace string) []*metav1.PartialObjectMetadata {
	var objects []*metav1.PartialObjectMetadata
	for _, informer := range w.informers {
		found, _ := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace) // never fails: the index exists
		objects = append(objects, metadataOf(found)...)
	}
	return objects
}

func (w *watched) listAll() []*metav1.PartialObjectMetadata {
	var objects []*metav1.PartialObjectMetadata
	for _, informer := range w.informers {
		objects = append(objects, metadataOf(informer.GetStore().List())...)
	}
	return objects
}

func metadataOf(objects []any) []*metav1.PartialObjectMetadata {
	all := make([]*metav1.PartialObjectMetadata, 0, len(objects))
	for _, object := range objects {
		if metadata, ok := object.(*metav1.PartialObjectMetadata); ok {
			all = append(all, metadata)
		}
	}
	return all
}

// reduceMetadata reduces an object, or its metadata, to what selecting and comparing need.
func reduceMetadata(gk schema.GroupKind) cache.TransformFunc {
	return func(object any) (any, error) {
		full, ok := object.(metav1.Object)
		if !ok {
			return object, nil
		}
		if _, reduced := full.GetAnnotations()[versionKey]; reduced {
			return object, nil
		}
		kept := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{
				Name: full.GetName(), Namespace: full.GetNamespace(), UID: full.GetUID(), ResourceVersion: full.GetResourceVersion(),
				Labels: full.GetLabels(), DeletionTimestamp: full.GetDeletionTimestamp(),
				Annotations: map[string]string{versionKey: snapshot.Version(gk, full)},
			},
		}
		for _, owner := range full.GetOwnerReferences() {
			kept.OwnerReferences = append(kept.OwnerReferences, metav1.OwnerReference{UID: owner.UID})
		}
		return kept, nil
	}
}

// identifyReduced reads the identity of an object of which the metadata was reduced.
func identifyReduced(kind snapshot.Kind, object *metav1.PartialObjectMetadata) snapshot.Identity {
	id := snapshot.Identify(kind.GroupKind(), object)
	id.Version = object.Annotations[versionKey]
	return id
}
