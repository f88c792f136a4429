package clusterwait

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Notifier tells waiting activities what has changed. It is an index, not a
// queue: an event costs one look-up, and nothing more if no activity waits.
type Notifier struct {
	mu   sync.Mutex
	subs map[Key]map[*Subscription]struct{}
}

// NewNotifier returns a Notifier without a source of events; see Watch.
func NewNotifier() *Notifier {
	return &Notifier{subs: map[Key]map[*Subscription]struct{}{}}
}

// Subscription collects what has changed since the waiting activity last took it.
type Subscription struct {
	// C receives when there is something to take.
	C chan struct{}

	notifier    *Notifier
	keys        []Key
	mu          sync.Mutex
	clusters    sets.Set[string]
	planChanged bool
}

// Key names the events to subscribe to.
type Key string

// ClusterLabelsKey is the key of the labels of all clusters: they decide which
// overrides apply to a cluster.
const ClusterLabelsKey Key = "labels"

// GatesKey is the key of what closes clusters of any placement, and of exemptions from it.
const GatesKey Key = "gates"

// PlacementKey returns the key of a placement, its clusters and its snapshots.
func PlacementKey(scope placementv1beta1.Scope, name string) Key {
	return Key("placement/" + scope.String() + name)
}

// BindingsKey returns the key of the set of a placement's bindings and of their specs:
// what a rolling update plans with.
func BindingsKey(scope placementv1beta1.Scope, placement string) Key {
	return Key("bindings/" + scope.String() + placement)
}

// RunKey returns the key of an update run.
func RunKey(scope placementv1beta1.Scope, name string) Key {
	return Key("run/" + scope.String() + name)
}

// Subscribe starts to collect the events of the keys, until the subscription is closed.
func (n *Notifier) Subscribe(keys ...Key) *Subscription {
	s := &Subscription{C: make(chan struct{}, 1), notifier: n, clusters: sets.New[string]()}
	s.Add(keys...)
	return s
}

// Add makes a subscription collect the events of further keys as well.
func (s *Subscription) Add(keys ...Key) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	for _, key := range keys {
		if s.notifier.subs[key] == nil {
			s.notifier.subs[key] = map[*Subscription]struct{}{}
		}
		s.notifier.subs[key][s] = struct{}{}
	}
	s.keys = append(s.keys, keys...)
}

// Close ends a subscription.
func (s *Subscription) Close() {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	for _, key := range s.keys {
		delete(s.notifier.subs[key], s)
		if len(s.notifier.subs[key]) == 0 {
			delete(s.notifier.subs, key)
		}
	}
}

// TakeChanges returns the clusters that have changed since the last call, and
// whether the plan itself may have changed.
func (s *Subscription) TakeChanges() (clusters []string, plan bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clusters = slices.Collect(maps.Keys(s.clusters))
	plan = s.planChanged
	clear(s.clusters)
	s.planChanged = false
	return clusters, plan
}

// addCluster notes that a cluster has changed.
func (s *Subscription) addCluster(name string) {
	s.mu.Lock()
	s.clusters.Insert(name)
	s.mu.Unlock()
	s.signalChange()
}

// addPlanChange notes that the plan may have changed.
func (s *Subscription) addPlanChange() {
	s.mu.Lock()
	s.planChanged = true
	s.mu.Unlock()
	s.signalChange()
}

// signalChange makes C receive, unless a signal is already waiting to be received.
func (s *Subscription) signalChange() {
	select {
	case s.C <- struct{}{}:
	default:
	}
}

// forSubscribers calls add for every subscription to a key.
func (n *Notifier) forSubscribers(key Key, add func(*Subscription)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subs[key] {
		add(s)
	}
}

func (n *Notifier) notifyClusterChange(key Key, cluster string) {
	if cluster == "" { // a Work outside the namespaces of clusters
		n.notifyPlanChange(key)
		return
	}
	n.forSubscribers(key, func(s *Subscription) { s.addCluster(cluster) })
}

func (n *Notifier) notifyPlanChange(key Key) {
	n.forSubscribers(key, (*Subscription).addPlanChange)
}

// Watch feeds the notifier from the informers of the cache, whose bindings say which placements a cluster concerns.
func (n *Notifier) Watch(ctx context.Context, c cache.Informers, bindings client.Reader) error {
	type source struct {
		object client.Object
		notify func(old, now client.Object)
	}
	gates := []source{{&fleetflowv1alpha1.RolloutHold{}, n.gateChanged}, {&fleetflowv1alpha1.RolloutWindow{}, n.gateChanged},
		{&fleetflowv1alpha1.RolloutExemption{}, n.gateChanged}}
	sources := []source{
		{&placementv1beta1.Work{}, n.workChanged},
		{&placementv1beta1.ClusterResourcePlacementEviction{}, n.evictionChanged},
		{&placementv1beta1.ClusterResourcePlacementDisruptionBudget{}, n.budgetChanged},
		{&clusterv1beta1.MemberCluster{}, n.memberChanged},
		{&clusterv1beta1.MemberCluster{}, func(old, now client.Object) { n.busyChanged(ctx, bindings, old, now) }},
		{&clusterv1beta1.MemberCluster{}, func(old, now client.Object) { n.fitnessChanged(ctx, bindings, old, now) }},
		{hubread.NamespaceMetadata(""), n.namespaceChanged},
	}
	for _, scope := range placementv1beta1.Scopes() {
		resources := &metav1.PartialObjectMetadata{}
		resources.SetGroupVersionKind(scope.ResourceSnapshotKind())
		sources = append(sources,
			source{scope.NewBinding(""), n.bindingChanged},
			source{scope.NewPlacement(""), n.placementChanged},
			source{scope.NewUpdateRun(""), n.runChanged},
			source{scope.NewPolicySnapshot(""), n.snapshotChanged},
			source{resources, n.snapshotChanged},
		)
	}
	for _, source := range append(sources, gates...) {
		informer, err := c.GetInformer(ctx, source.object)
		if meta.IsNoMatchError(err) && (source.object == gates[0].object || source.object == gates[1].object) {
			continue // the CustomResourceDefinitions are older than the agent: nothing is closed
		}
		if err != nil {
			return fmt.Errorf("watching %T for waiting activities: %w", source.object, err)
		}
		if _, err := informer.AddEventHandler(eventHandler(source.notify)); err != nil {
			return fmt.Errorf("watching %T for waiting activities: %w", source.object, err)
		}
	}
	return nil
}

// gateChanged notifies of what closes clusters, but not of its status.
func (n *Notifier) gateChanged(old, now client.Object) {
	if specChanged(old, now) {
		n.notifyPlanChange(GatesKey)
	}
}

// namespaceChanged notifies of labels only, by which holds and windows select.
func (n *Notifier) namespaceChanged(old, now client.Object) {
	if old != nil && !maps.Equal(old.GetLabels(), now.GetLabels()) {
		n.notifyPlanChange(GatesKey)
	}
}

// eventHandler adapts one function to the three events of an informer; old is nil
// for additions and deletions.
func eventHandler(notify func(old, now client.Object)) toolscache.ResourceEventHandler {
	object := func(o any) client.Object {
		if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = tombstone.Obj
		}
		out, _ := o.(client.Object)
		return out
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { notify(nil, object(o)) },
		UpdateFunc: func(o, n any) { notify(object(o), object(n)) },
		DeleteFunc: func(o any) {
			if deleted := object(o); deleted != nil {
				notify(nil, deleted)
			}
		},
	}
}

// workChanged notifies of a cluster. A Work lives in the namespace of its cluster,
// so a label says which namespace its placement is in.
func (n *Notifier) workChanged(_, now client.Object) {
	labels := now.GetLabels()
	if name := labels[placementv1beta1.ParentPlacementLabel]; name != "" {
		scope := placementv1beta1.Scope{Namespace: labels[placementv1beta1.ParentNamespaceLabel]}
		n.notifyClusterChange(PlacementKey(scope, name), clusterOfNamespace(now.GetNamespace()))
	}
}

func (n *Notifier) bindingChanged(old, now client.Object) {
	binding, ok := now.(placementv1beta1.BindingObject)
	name := now.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if !ok || name == "" {
		return
	}
	scope := placementv1beta1.ScopeOf(now)
	n.notifyClusterChange(PlacementKey(scope, name), binding.GetBindingSpec().TargetCluster)
	if specChanged(old, now) || lifecycleChanged(old, now) {
		n.notifyPlanChange(BindingsKey(scope, name))
	}
}

// placementChanged notifies of what a plan rests on, which is the spec, the deletion
// and the last selection, but not the status.
func (n *Notifier) placementChanged(old, now client.Object) {
	if specChanged(old, now) || annotationChanged(old, now, placementv1beta1.SelectionVerdictAnnotation) {
		n.notifyPlanChange(PlacementKey(placementv1beta1.ScopeOf(now), now.GetName()))
	}
}

// evictionChanged notifies of evictions without an outcome.
func (n *Notifier) evictionChanged(_, now client.Object) {
	if e, ok := now.(*placementv1beta1.ClusterResourcePlacementEviction); ok && !e.Ended() {
		n.notifyPlanChange(PlacementKey(placementv1beta1.ScopeOf(now), e.Spec.PlacementName))
	}
}

// budgetChanged relies on a disruption budget having the name of its placement.
func (n *Notifier) budgetChanged(old, now client.Object) {
	if specChanged(old, now) {
		n.notifyPlanChange(PlacementKey(placementv1beta1.ScopeOf(now), now.GetName()))
	}
}

// memberChanged notifies of labels: heartbeats come too often, and new clusters concern the scheduler, not the activities that wait.
func (n *Notifier) memberChanged(old, now client.Object) {
	if old != nil && !maps.Equal(old.GetLabels(), now.GetLabels()) {
		n.notifyPlanChange(ClusterLabelsKey)
	}
}

// busyChanged notifies of a cluster that is busy from now on, or no more, or until another time, those that have something on it, or
// are to have. What its owner says of why is told when they look.
func (n *Notifier) busyChanged(ctx context.Context, bindings client.Reader, old, now client.Object) {
	before, ok := old.(*clusterv1beta1.MemberCluster)
	after, is := now.(*clusterv1beta1.MemberCluster)
	if !ok || !is || before.Status.Busy.EndsWith(after.Status.Busy) {
		return
	}
	n.notifyPlacementsOf(ctx, bindings, client.MatchingFields{hubread.ByCluster: after.Name}) // those that have something on it, or are to have
}

// fitnessChanged notifies of a cluster that is known to be healthy from now on, or no more, those of whose copies one waits for that on it.
func (n *Notifier) fitnessChanged(ctx context.Context, cached client.Reader, old, now client.Object) {
	before, ok := old.(*clusterv1beta1.MemberCluster)
	after, is := now.(*clusterv1beta1.MemberCluster)
	if !ok || !is || clusterrules.IsFit(before) == clusterrules.IsFit(after) {
		return
	}
	n.notifyPlacementsOf(ctx, cached, client.MatchingFields{hubread.ByAwaited: after.Name})
}

// notifyPlacementsOf notifies the placements of the bindings that an index finds.
func (n *Notifier) notifyPlacementsOf(ctx context.Context, bindings client.Reader, found client.MatchingFields) {
	for _, scope := range placementv1beta1.Scopes() {
		list := scope.NewBindingList()
		err := bindings.List(ctx, list, found, client.UnsafeDisableDeepCopy)
		if err != nil { // the cache always answers once it has started
			n.notifyPlanChange(GatesKey)
			return
		}
		for _, binding := range list.Objects() {
			if name := binding.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
				n.notifyPlanChange(PlacementKey(placementv1beta1.ScopeOf(binding), name))
			}
		}
	}
}

func (n *Notifier) runChanged(old, now client.Object) {
	if specChanged(old, now) || annotationChanged(old, now, placementv1beta1.RolledBackByAnnotation) ||
		annotationChanged(old, now, placementv1beta1.SupersededByAnnotation) {
		n.notifyPlanChange(RunKey(placementv1beta1.ScopeOf(now), now.GetName()))
	}
}

func (n *Notifier) snapshotChanged(_, now client.Object) {
	if name := now.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
		n.notifyPlanChange(PlacementKey(placementv1beta1.ScopeOf(now), name))
	}
}

// specChanged reports whether anything but metadata and status differs; an object
// that is added or deleted counts as changed.
func specChanged(old, now client.Object) bool {
	return old == nil || old.GetUID() != now.GetUID() || old.GetGeneration() != now.GetGeneration() ||
		rules.DeletionStarted(old, now)
}

// lifecycleChanged reports whether a binding stands elsewhere between its lifecycle hooks, which is what a plan counts with.
// Labels and finalizers that answer a hook concern the one cluster.
func lifecycleChanged(old, now client.Object) bool {
	return old.GetLabels()[placementv1beta1.LifecycleStateLabel] != now.GetLabels()[placementv1beta1.LifecycleStateLabel]
}

func annotationChanged(old, now client.Object, key string) bool {
	return old.GetAnnotations()[key] != now.GetAnnotations()[key]
}

// clusterOfNamespace returns the cluster whose Works live in a namespace.
func clusterOfNamespace(namespace string) string {
	cluster, ok := strings.CutPrefix(namespace, placementv1beta1.MemberNamespace(""))
	if !ok {
		return ""
	}
	return cluster
}
