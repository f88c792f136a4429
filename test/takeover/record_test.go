//go:build integration

package takeover

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// write is one that an API server has stored.
type write struct {
	cluster string
	at      time.Time
	event   watch.EventType
	// before is what it found, nil if that was nothing; after is what it left, or deleted.
	before, after *unstructured.Unstructured
}

func (w write) String() string {
	return fmt.Sprintf("%s: %s %s %s %s", w.cluster, w.event, w.after.GetKind(), key(w.after), strings.Join(differences(w.before, w.after), ", "))
}

func key(o *unstructured.Unstructured) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// recorder has every write to API servers since it began, but those of unwatched kinds.
type recorder struct {
	mu      sync.Mutex
	writes  []write
	news    chan struct{}
	objects map[string]*unstructured.Unstructured
}

// unwatched are kinds that the servers and agents write for themselves all the time.
var unwatched = []string{
	"Event", "Lease", "FlowSchema", "PriorityLevelConfiguration", "IPAddress", "ServiceCIDR", "Endpoints", "EndpointSlice", "APIService",
}

// record begins to watch every kind of every cluster.
func (r *rig) record() *recorder {
	r.Helper()
	recording := &recorder{news: make(chan struct{}, 1), objects: map[string]*unstructured.Unstructured{}}
	for cluster, config := range r.configs {
		kinds, err := discovery.NewDiscoveryClientForConfig(config)
		require.NoError(r, err)
		lists, err := kinds.ServerPreferredResources()
		require.NoError(r, err)
		c, err := dynamic.NewForConfig(config)
		require.NoError(r, err)
		for _, list := range lists {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			require.NoError(r, err)
			for _, kind := range list.APIResources {
				if slices.Contains(kind.Verbs, "watch") && slices.Contains(kind.Verbs, "list") && !slices.Contains(unwatched, kind.Kind) {
					recording.follow(r, cluster, c.Resource(group.WithResource(kind.Name)))
				}
			}
		}
	}
	return recording
}

// follow lists and watches the objects of a kind.
func (r *recorder) follow(rig *rig, cluster string, resource dynamic.ResourceInterface) {
	rig.Helper()
	list, err := resource.List(rig.ctx, metav1.ListOptions{})
	require.NoError(rig, err)
	for i := range list.Items {
		r.objects[cluster+"/"+string(list.Items[i].GetUID())] = &list.Items[i]
	}
	events, err := resource.Watch(rig.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(rig, err)
	go func() {
		for event := range events.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is {
				r.note(cluster, event.Type, object)
			}
		}
	}()
}

func (r *recorder) note(cluster string, event watch.EventType, object *unstructured.Unstructured) {
	r.mu.Lock()
	id := cluster + "/" + string(object.GetUID())
	r.writes = append(r.writes, write{cluster: cluster, at: time.Now(), event: event, before: r.objects[id], after: object})
	r.objects[id] = object
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// matching returns the writes so far that are as wanted.
func (r *recorder) matching(wanted func(write) bool) []write {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.writes), func(w write) bool { return !wanted(w) })
}

// awaitQuiet waits until nothing but heartbeats has been written for a while.
func (r *recorder) awaitQuiet(rig *rig, quiet time.Duration) {
	rig.Helper()
	seen := 0
	last := time.Now()
	for {
		if now := len(r.matching(func(w write) bool { return !isHeartbeat(w) })); now != seen {
			seen = now
			last = time.Now()
		}
		left := quiet - time.Since(last)
		if left <= 0 {
			return
		}
		select {
		case <-r.news:
		case <-time.After(left):
		case <-rig.ctx.Done():
			require.Fail(rig, "writes did not end", "%v", r.matching(func(w write) bool { return time.Since(w.at) < 10*time.Second }))
		}
	}
}

// isHeartbeat says that a write is about a member's well-being, which is reported all the time.
func isHeartbeat(w write) bool {
	return w.event == watch.Modified && slices.Contains([]string{"MemberCluster", "InternalMemberCluster", "ClusterProfile"}, w.after.GetKind())
}

// differences are the paths at which two objects differ, with what is new there.
func differences(before, after *unstructured.Unstructured) []string {
	if before == nil || after == nil {
		return nil
	}
	var found []string
	compare("", before.Object, after.Object, &found)
	return found
}

func compare(path string, before, after any, found *[]string) {
	if path == ".metadata.managedFields" || path == ".metadata.resourceVersion" || equality.Semantic.DeepEqual(before, after) {
		return
	}
	if list, ok := before.([]any); ok {
		if now, ok := after.([]any); ok && len(list) == len(now) {
			for i := range list {
				compare(fmt.Sprintf("%s[%d]", path, i), list[i], now[i], found)
			}
			return
		}
	}
	was, isMap := before.(map[string]any)
	is, both := after.(map[string]any)
	if !isMap || !both {
		old, _ := json.Marshal(before)
		now, _ := json.Marshal(after)
		*found = append(*found, fmt.Sprintf("%s: %s -> %s", path, old, now))
		return
	}
	keys := map[string]bool{}
	for k := range was {
		keys[k] = true
	}
	for k := range is {
		keys[k] = true
	}
	for k := range keys {
		compare(path+"."+k, was[k], is[k], found)
	}
	slices.Sort(*found)
}
