package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Source is a kind of objects to look at, and which of them.
type Source struct {
	what    string
	object  client.Object
	list    func() client.ObjectList
	options []client.ListOption
	// optional says that it is left out for those who may not read it.
	optional bool
}

// RunSources returns the objects that describe a run: itself, its approval requests, the bindings of its placement.
func RunSources(run Run) []Source {
	scope := run.scope()
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", run.Name)}
	placed := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", run.Spec.PlacementName)}
	requests := client.MatchingLabels{placementv1beta1.TargetUpdateRunLabel: run.Name}
	return slices.Concat([]Source{
		{"the run", scope.NewUpdateRun(""), func() client.ObjectList { return scope.NewUpdateRunList() }, inScope(scope, named), false},
		{"approval requests", scope.NewApprovalRequest(""), func() client.ObjectList { return scope.NewApprovalRequestList() },
			inScope(scope, requests), false},
		bindingSource(run.Placement()),
		{"the placement", scope.NewPlacement(""), func() client.ObjectList { return scope.NewPlacementList() }, inScope(scope, placed), true},
	}, gateSources(), namespaceSources(run.Namespace))
}

// PlacementSources returns the objects that describe a placement: itself, its bindings, the runs and overrides there are.
func PlacementSources(p Placement) []Source {
	return slices.Concat(placementSources(p), gateSources(), namespaceSources(p.Namespace), overrideSources(p.Namespace))
}

// placementSources returns the placement itself, its bindings and the runs there are.
func placementSources(p Placement) []Source {
	scope := p.scope()
	named := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", p.Name)}
	return []Source{
		{"the placement", scope.NewPlacement(""), func() client.ObjectList { return scope.NewPlacementList() }, inScope(scope, named), false},
		bindingSource(p.Ref),
		{"runs", scope.NewUpdateRun(""), func() client.ObjectList { return scope.NewUpdateRunList() }, inScope(scope), false},
	}
}

// overrideSources returns the overrides that may be meant for a placement, of which some may have no effect. Not every user may read
// them.
func overrideSources(namespace string) []Source {
	sources := bothScopes("overrides", namespace, scoped.NewOverride, scoped.NewOverrideList)
	for i := range sources {
		sources[i].optional = true
	}
	return sources
}

// FleetSources returns all objects of some kinds; of placements and runs, with a namespace, only those in it.
func FleetSources(kinds []Kind, namespace string) []Source {
	var sources []Source
	for _, kind := range kinds {
		switch kind {
		case KindMember:
			sources = append(sources, Source{"member clusters", &clusterv1beta1.MemberCluster{},
				func() client.ObjectList { return &clusterv1beta1.MemberClusterList{} }, nil, false})
		case KindPlacement:
			sources = append(sources, bothScopes("placements", namespace, scoped.NewPlacement, scoped.NewPlacementList)...)
		case KindRun:
			sources = append(sources, bothScopes("runs", namespace, scoped.NewUpdateRun, scoped.NewUpdateRunList)...)
		}
	}
	return sources
}

// scoped makes objects and lists of a kind in either scope.
type scoped = placementv1beta1.Scope

// bothScopes returns the sources of a kind that there is in both scopes; with a namespace, only the one in it.
func bothScopes[O client.Object, L client.ObjectList](what, namespace string, object func(scoped, string) O, list func(scoped) L) []Source {
	source := func(what string, scope scoped, options ...client.ListOption) Source {
		return Source{what, object(scope, ""), func() client.ObjectList { return list(scope) }, options, false}
	}
	inside := source("namespaced "+what, placementv1beta1.AnyNamespace, client.InNamespace(namespace))
	if namespace != "" {
		return []Source{inside}
	}
	return []Source{source(what, scoped{}), inside}
}

// WholeSources returns all objects that a fleet is described by; with a namespace, of what is namespaced only what is in it.
func WholeSources(namespace string) []Source {
	return slices.Concat(FleetSources([]Kind{KindMember, KindPlacement, KindRun}, namespace),
		[]Source{{"evictions", &placementv1beta1.ClusterResourcePlacementEviction{},
			func() client.ObjectList { return &placementv1beta1.ClusterResourcePlacementEvictionList{} }, nil, false}},
		gateSources(), []Source{namespacesNamed(namespace)},
		[]Source{{AuditRecords, &fleetflowv1alpha1.AuditRecord{}, func() client.ObjectList { return &fleetflowv1alpha1.AuditRecordList{} }, nil, false}},
		bothScopes("bindings", namespace, scoped.NewBinding, scoped.NewBindingList),
		bothScopes("approval requests", namespace, scoped.NewApprovalRequest, scoped.NewApprovalRequestList))
}

// AuditRecords is what they are called where they are left out.
const AuditRecords = "audit records"

// What names the kind of a source in the plural.
func (s Source) What() string { return s.what }

func bindingSource(placement Ref) Source {
	scope := placement.scope()
	return Source{"bindings", scope.NewBinding(""), func() client.ObjectList { return scope.NewBindingList() },
		Reader{}.Of(placement).inScope(), false}
}

// Load reads all objects of some sources once.
func Load(ctx context.Context, c client.Reader, sources []Source) ([]client.Object, error) {
	var objects []client.Object
	for _, source := range sources {
		read := source.list()
		err := listServed(ctx, c, source.what, read, source.options...)
		if source.optional && apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(read)
		if err != nil {
			return nil, fmt.Errorf("reading the list of %s: %w", source.what, err)
		}
		for _, item := range items {
			objects = append(objects, item.(client.Object))
		}
	}
	return objects, nil
}

// Feed follows sources by one watch each.
type Feed struct {
	stores  []toolscache.Store
	synced  []toolscache.InformerSynced
	changed chan struct{}
	// refused has why something was not read at all.
	refused chan error

	mutex   sync.Mutex
	trouble map[string]error
	// doubt is why what is read may not be how it is.
	doubt string
}

// Follow begins to follow sources, until the context ends. Kinds the hub does not serve are left out, and those that may be
// left out for users who may not read them. Of a single source it is said.
func Follow(ctx context.Context, c client.WithWatch, sources []Source) (*Feed, error) {
	feed := newFeed()
	for _, source := range sources {
		gvk, err := c.GroupVersionKindFor(source.object)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", source.what, err)
		}
		if _, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			if Unserved(err) {
				continue
			}
			return nil, fmt.Errorf("watching %s: %w", source.what, err)
		}
		source.optional = source.optional && len(sources) > 1
		feed.addSource(ctx, c, source)
	}
	return feed, feed.awaitRead(ctx)
}

func newFeed() *Feed {
	return &Feed{changed: make(chan struct{}, 1), refused: make(chan error, 1), trouble: map[string]error{}}
}

// awaitRead waits until all is read, or something is refused or not answered. What is asked for again, later on, has been read before.
func (f *Feed) awaitRead(ctx context.Context) error {
	synced := make(chan bool, 1)
	go func() { synced <- toolscache.WaitForCacheSync(ctx.Done(), f.synced...) }()
	select {
	case <-synced: // also when the context has ended
		return ctx.Err()
	case err := <-f.refused:
		return err
	}
}

func (f *Feed) addSource(ctx context.Context, c client.WithWatch, source Source) {
	quiet := logr.Discard() // what goes wrong is shown, see Trouble
	notify := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.signalChange() },
		UpdateFunc: func(_, object any) {
			if _, is := object.(*fleetflowv1alpha1.AuditRecord); !is { // only where it was delivered changes, which no page shows
				f.signalChange()
			}
		},
		DeleteFunc: func(any) { f.signalChange() },
	}
	ctx, leave := context.WithCancel(ctx)
	w := &listerWatcher{client: c, source: source, feed: f, leave: leave}
	store, controller := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		Logger: &quiet, ObjectType: source.object, Handler: notify, Transform: forgetManagers,
		ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(
			&toolscache.ListWatch{ListWithContextFunc: w.listOnce, WatchFuncWithContext: w.beginWatch}, w),
	})
	f.stores = append(f.stores, store)
	f.synced = append(f.synced, func() bool { return controller.HasSynced() || w.leftOut.Load() })
	go controller.RunWithContext(ctx)
}

// forgetManagers drops what nothing is shown of, which is a large part of small objects, of Works, and of records.
func forgetManagers(stored any) (any, error) {
	if object, is := stored.(client.Object); is {
		object.SetManagedFields(nil)
	}
	if work, is := stored.(*placementv1beta1.Work); is {
		digestManifests(work)
	}
	if record, is := stored.(*fleetflowv1alpha1.AuditRecord); is {
		record.Labels = nil
		record.Status = fleetflowv1alpha1.AuditRecordStatus{}
		record.Spec.ID = ""
		record.Spec.Previous = ""
	}
	return stored, nil
}

func (f *Feed) signalChange() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Changed receives whenever something has changed since it was received from last.
func (f *Feed) Changed() <-chan struct{} { return f.changed }

// Objects returns all objects as they are now.
func (f *Feed) Objects() []client.Object {
	var objects []client.Object
	for _, store := range f.stores {
		for _, item := range store.List() {
			objects = append(objects, item.(client.Object))
		}
	}
	return objects
}

// Trouble returns why what is shown may be old, empty if it is not.
func (f *Feed) Trouble() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, what := range slices.Sorted(maps.Keys(f.trouble)) { // of several always the same, until it is over
		return fmt.Sprintf("what is shown of %s may be old, trying again: %v", what, f.trouble[what])
	}
	return f.doubt
}

// Doubt has the feed say why what it has may not be how it is, empty if nothing speaks against that.
func (f *Feed) Doubt(said string) {
	f.mutex.Lock()
	before := f.doubt
	f.doubt = said
	f.mutex.Unlock()
	if before != said {
		f.signalChange()
	}
}

func (f *Feed) noteTrouble(what string, err error) error {
	f.mutex.Lock()
	before := f.trouble[what]
	if err == nil {
		delete(f.trouble, what)
	} else {
		f.trouble[what] = err
	}
	f.mutex.Unlock()
	if (before == nil) != (err == nil) {
		f.signalChange()
	}
	return err
}

// listerWatcher lists and watches a source for client-go's reflector.
type listerWatcher struct {
	client client.WithWatch
	source Source
	feed   *Feed
	// leave ends that the source is followed, and leftOut says that it has: it must not be read.
	leave   context.CancelFunc
	leftOut atomic.Bool
	// read says that it has been read once.
	read atomic.Bool
}

// IsWatchListSemanticsUnSupported keeps to a list and a watch, which every API server and every fake of one can do.
func (w *listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

func (w *listerWatcher) listOptions(options metav1.ListOptions) *client.ListOptions {
	all := &client.ListOptions{Raw: &options}
	return all.ApplyOptions(w.source.options)
}

func (w *listerWatcher) listOnce(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := w.source.list()
	err := w.client.List(ctx, list, w.listOptions(options))
	if apierrors.IsForbidden(err) && w.source.optional {
		w.leftOut.Store(true)
		w.leave()
		return list, err
	}
	if err == nil {
		w.read.Store(true)
	}
	if err != nil && !w.read.Load() {
		select {
		case w.feed.refused <- fmt.Errorf("listing %s: %w", w.source.what, err):
		default: // one is enough
		}
	}
	return list, w.feed.noteTrouble(w.source.what, err)
}

func (w *listerWatcher) beginWatch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := w.client.Watch(ctx, w.source.list(), w.listOptions(options))
	// That it can be listed does not end this trouble.
	return events, w.feed.noteTrouble(w.source.what+" from now on", err)
}
