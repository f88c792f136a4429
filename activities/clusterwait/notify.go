package clusterwait

import (
	"context"
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Notifier wakes those who wait for a placement or a run. It is an index, not
// a queue: an event costs one look-up, and nothing when nobody waits.
type Notifier struct {
	mu   sync.Mutex
	subs map[string]map[*Subscription]struct{}
}

// NewNotifier returns a Notifier that nothing feeds yet; see Watch.
func NewNotifier() *Notifier {
	return &Notifier{subs: map[string]map[*Subscription]struct{}{}}
}

// Subscription is one waiter's view of what has changed since it last looked.
type Subscription struct {
	// C receives when there is something to Take.
	C chan struct{}

	notifier *Notifier
	keys     []string
	mu       sync.Mutex
	clusters map[string]struct{}
	plan     bool
}

// PlacementKey and RunKey name what can be subscribed to.
func PlacementKey(name string) string { return "placement/" + name }

// BindingsKey is the subscription key for bindings of a placement coming, going
// or being given another spec: what a rolling update plans with.
func BindingsKey(placement string) string { return "bindings/" + placement }

// LabelsKey is the subscription key for the labels of any cluster: with them, the
// overrides that apply to it may be others.
const LabelsKey = "labels"

// RunKey is the subscription key of an update run.
func RunKey(name string) string { return "run/" + name }

// Subscribe starts to collect events of the given keys. Close it.
func (n *Notifier) Subscribe(keys ...string) *Subscription {
	s := &Subscription{C: make(chan struct{}, 1), notifier: n, clusters: map[string]struct{}{}}
	s.Also(keys...)
	return s
}

// Also makes a subscription collect events of further keys, without losing any
// of those it collects.
func (s *Subscription) Also(keys ...string) {
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

// Take returns the clusters with news since the last call, and whether the plan
// itself may be another one.
func (s *Subscription) Take() (clusters []string, plan bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.clusters {
		clusters = append(clusters, name)
	}
	plan = s.plan
	clear(s.clusters)
	s.plan = false
	return clusters, plan
}

// notify tells all subscribers of a key about a cluster, or about the plan when
// cluster is empty.
func (n *Notifier) notify(key, cluster string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subs[key] {
		s.mu.Lock()
		if cluster == "" {
			s.plan = true
		} else {
			s.clusters[cluster] = struct{}{}
		}
		s.mu.Unlock()
		s.wake()
	}
}

// wake makes C receive.
func (s *Subscription) wake() {
	select {
	case s.C <- struct{}{}:
	default:
	}
}

// Watch feeds the notifier from the informers of the cache.
func (n *Notifier) Watch(ctx context.Context, c cache.Cache) error {
	snapshot := &metav1.PartialObjectMetadata{}
	snapshot.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshot"))
	sources := []struct {
		object client.Object
		handle func(old, new client.Object)
	}{
		{&placementv1beta1.Work{}, n.work},
		{&placementv1beta1.ClusterResourceBinding{}, n.binding},
		{&placementv1beta1.ClusterResourcePlacement{}, n.placement},
		{&placementv1beta1.ClusterStagedUpdateRun{}, n.run},
		{&placementv1beta1.ClusterResourcePlacementEviction{}, n.eviction},
		{&placementv1beta1.ClusterResourcePlacementDisruptionBudget{}, n.budget},
		{&clusterv1beta1.MemberCluster{}, n.member},
		{&placementv1beta1.ClusterSchedulingPolicySnapshot{}, n.labelled},
		{snapshot, n.labelled},
	}
	for _, source := range sources {
		informer, err := c.GetInformer(ctx, source.object)
		if err != nil {
			return fmt.Errorf("watching %T for waiting activities: %w", source.object, err)
		}
		if _, err := informer.AddEventHandler(handler(source.handle)); err != nil {
			return fmt.Errorf("watching %T for waiting activities: %w", source.object, err)
		}
	}
	return nil
}

// handler adapts one function to the three events of an informer; old is nil
// for additions and equals new for deletions.
func handler(handle func(old, new client.Object)) toolscache.ResourceEventHandler {
	object := func(o any) client.Object {
		if tombstone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = tombstone.Obj
		}
		out, _ := o.(client.Object)
		return out
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { handle(nil, object(o)) },
		UpdateFunc: func(o, n any) { handle(object(o), object(n)) },
		DeleteFunc: func(o any) {
			if gone := object(o); gone != nil {
				handle(nil, gone)
			}
		},
	}
}

func (n *Notifier) work(_, now client.Object) {
	if name := now.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
		n.notify(PlacementKey(name), clusterOf(now.GetNamespace()))
	}
}

func (n *Notifier) binding(old, now client.Object) {
	b, ok := now.(*placementv1beta1.ClusterResourceBinding)
	name := now.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if !ok || name == "" {
		return
	}
	n.notify(PlacementKey(name), b.Spec.TargetCluster)
	if planChanged(old, now) {
		n.notify(BindingsKey(name), "")
	}
}

// placement only tells of what a plan rests on: spec, deletion and what was selected
// last, not status.
func (n *Notifier) placement(old, now client.Object) {
	const verdict = placementv1beta1.SelectionVerdictAnnotation
	if planChanged(old, now) || old.GetAnnotations()[verdict] != now.GetAnnotations()[verdict] {
		n.notify(PlacementKey(now.GetName()), "")
	}
}

// eviction tells of evictions that ask for something.
func (n *Notifier) eviction(_, now client.Object) {
	if e, ok := now.(*placementv1beta1.ClusterResourcePlacementEviction); ok && !e.Ended() {
		n.notify(PlacementKey(e.Spec.PlacementName), "")
	}
}

// budget has the name of its placement.
func (n *Notifier) budget(old, now client.Object) {
	if planChanged(old, now) {
		n.notify(PlacementKey(now.GetName()), "")
	}
}

// member tells of labels only: clusters are scheduled elsewhere, and their heartbeats
// concern nobody here.
func (n *Notifier) member(old, now client.Object) {
	if old != nil && !maps.Equal(old.GetLabels(), now.GetLabels()) {
		n.notify(LabelsKey, "")
	}
}

func (n *Notifier) run(old, now client.Object) {
	const rolledBack = placementv1beta1.RolledBackByAnnotation
	if planChanged(old, now) || old.GetAnnotations()[rolledBack] != now.GetAnnotations()[rolledBack] {
		n.notify(RunKey(now.GetName()), "")
	}
}

func (n *Notifier) labelled(_, now client.Object) {
	if name := now.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
		n.notify(PlacementKey(name), "")
	}
}

func planChanged(old, now client.Object) bool {
	return old == nil || old.GetUID() != now.GetUID() || old.GetGeneration() != now.GetGeneration() ||
		old.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero()
}

// clusterOf is the cluster whose Works live in a namespace.
func clusterOf(namespace string) string {
	prefix := placementv1beta1.MemberNamespace("")
	if len(namespace) > len(prefix) && namespace[:len(prefix)] == prefix {
		return namespace[len(prefix):]
	}
	return ""
}
