package clusterwatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// listening is a source over a hub with one placement for clusters with some nodes in
// some environment, and the queue it fills.
func listening(t *testing.T) (*source, queue) {
	t.Helper()
	scheme := fixture.Scheme(t)
	policy := &placementv1beta1.PlacementPolicy{Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			PropertySelector: &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
				{Name: "nodes", Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}},
				{Name: "resources.kubernetes-fleet.io/total-memory", Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}},
			}},
		}}},
	}}}
	builder := fixture.NewClientBuilder(scheme).WithObjects(&placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "crp"}, Spec: placementv1beta1.PlacementSpec{Policy: policy},
	})
	for _, i := range fieldindex.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
	t.Cleanup(q.ShutDown)
	r := NewReconciler(builder.Build(), nil, clocktesting.NewFakePassiveClock(began))
	return &source{Reconciler: r, log: logr.Discard()}, q
}

// asked empties a queue.
func asked(q queue) []Request {
	var requests []Request
	for q.Len() > 0 {
		request, _ := q.Get()
		requests = append(requests, request)
		q.Done(request)
	}
	return requests
}

func heard(change func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
	c := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid", Labels: map[string]string{"env": "prod", "team": "blue"}},
		Status: clusterv1beta1.MemberClusterStatus{
			Properties:    map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"nodes": {Value: "3"}, "cost": {Value: "1"}},
			ResourceUsage: clusterv1beta1.ResourceUsage{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")}},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(began),
				Conditions: []metav1.Condition{
					{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue},
					{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
				},
			}},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func TestWhatIsAskedAfterAChangeOfACluster(t *testing.T) {
	ask := func(changed ...framework.Interest) []Request {
		var requests []Request
		for _, one := range changed {
			requests = append(requests, Request{Cluster: "c", Changed: one})
		}
		return requests
	}
	cases := map[string]struct {
		before, after func(*clusterv1beta1.MemberCluster)
		want          []Request
	}{
		"a heartbeat": {before: func(c *clusterv1beta1.MemberCluster) {
			c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(began.Add(-time.Minute))
		}},
		"the first heartbeat after a rest": {before: func(c *clusterv1beta1.MemberCluster) {
			c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(began.Add(-time.Hour))
		}, want: ask(Time, framework.Standing)},
		"figures observed again": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Status.Properties["nodes"] = clusterv1beta1.PropertyValue{Value: "3", ObservationTime: metav1.NewTime(began)}
			c.Status.ResourceUsage.ObservationTime = metav1.NewTime(began)
		}},
		"another figure": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Status.Properties["nodes"] = clusterv1beta1.PropertyValue{Value: "4"}
		}, want: ask(framework.Property("nodes"))},
		"a figure that is gone": {after: func(c *clusterv1beta1.MemberCluster) { delete(c.Status.Properties, "nodes") }, want: ask(framework.Property("nodes"))},
		"another usage": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Status.ResourceUsage.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("5Gi")}
		}, want: ask(framework.Property("resources.kubernetes-fleet.io/total-memory"))},
		"the same usage in other words": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Status.ResourceUsage.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4096Mi")}
		}},
		"figures that nobody looks at": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Status.Properties["cost"] = clusterv1beta1.PropertyValue{Value: "2"}
			c.Status.ResourceUsage.Available = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}
		}},
		"a label":                      {after: func(c *clusterv1beta1.MemberCluster) { delete(c.Labels, "env") }, want: ask(framework.Label("env"))},
		"a label that nobody looks at": {after: func(c *clusterv1beta1.MemberCluster) { c.Labels["team"] = "red" }},
		"a taint": {after: func(c *clusterv1beta1.MemberCluster) {
			c.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}, want: ask(framework.Taints)},
		"it leaves": {after: func(c *clusterv1beta1.MemberCluster) {
			c.DeletionTimestamp = &metav1.Time{Time: began}
		}, want: ask(Time, framework.Standing, framework.Presence)},
		"another one of that name": {after: func(c *clusterv1beta1.MemberCluster) { c.UID = "other" }, want: ask(Time, framework.Standing, framework.Presence)},
		"it joins": {before: func(c *clusterv1beta1.MemberCluster) {
			c.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
		}, want: ask(Time, framework.Standing)},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			s, q := listening(t)
			s.handleClusters().Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: heard(tc.before), ObjectNew: heard(tc.after)}, q)
			assert.Equal(t, tc.want, asked(q))
		})
	}
}

// A copy may wait for one on a cluster that no user has named: one that was picked in place of the named one, or is picked again.
func TestTheHealthOfAClusterAsksForALookAtThoseThatWaitForIt(t *testing.T) {
	s, q := listening(t)
	waiting := &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "crp-left", Annotations: map[string]string{placementv1beta1.ReplacedByAnnotation: "c"}},
		Spec:       placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateUnscheduled, TargetCluster: "left"},
	}
	require.NoError(t, s.client.(client.Client).Create(t.Context(), waiting))
	fit := func(c *clusterv1beta1.MemberCluster) {
		for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
		}
	}
	change := event.TypedUpdateEvent[client.Object]{ObjectOld: heard(nil), ObjectNew: heard(fit)}
	s.handleClusters().Update(t.Context(), change, q)
	assert.Contains(t, asked(q), Request{Cluster: "left", Changed: framework.Replacement})
	change.ObjectOld = change.ObjectNew
	s.handleClusters().Update(t.Context(), change, q)
	assert.Empty(t, asked(q), "nothing has changed of it")
}

// What leaves the fleet stands no more in the way of other replacements.
func TestTheEndOfAClusterAsksForALookAtThoseThatItStoodInTheWayOf(t *testing.T) {
	member := func(name, by string) *clusterv1beta1.MemberCluster {
		return heard(func(c *clusterv1beta1.MemberCluster) {
			c.Name = name
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, by)
		})
	}
	want := []Request{{Cluster: "b", Changed: framework.Replacement}, {Cluster: "n", Changed: framework.Replacement}}
	stood := member("c", "n")
	leaving := stood.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: began}
	for sentence, tell := range map[string]func(s *source, q queue){
		"it is gone": func(s *source, q queue) {
			s.handleClusters().Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: stood}, q)
		},
		"it leaves": func(s *source, q queue) {
			s.handleClusters().Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: stood, ObjectNew: leaving}, q)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, q := listening(t)
			for name, by := range map[string]string{"b": "n", "n": "m", "x": "y"} {
				require.NoError(t, s.client.(client.Client).Create(t.Context(), member(name, by)))
			}
			tell(s, q)
			requests := asked(q)
			assert.Subset(t, requests, want)
			assert.NotContains(t, requests, Request{Cluster: "x", Changed: framework.Replacement})
		})
	}
}

func TestAStormOfHeartbeatsAsksForNothing(t *testing.T) {
	s, q := listening(t)
	before := heard(nil)
	for i := range 1_000 {
		after := heard(func(c *clusterv1beta1.MemberCluster) {
			c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(began.Add(time.Duration(i) * time.Second))
			c.Status.Properties["cost"] = clusterv1beta1.PropertyValue{Value: fmt.Sprint(i)}
			c.Status.ResourceUsage.Available = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(i), resource.DecimalSI)}
		})
		s.handleClusters().Update(t.Context(), event.TypedUpdateEvent[client.Object]{ObjectOld: before, ObjectNew: after}, q)
		before = after
	}
	assert.Zero(t, q.Len())
}

func TestTheEndOfABindingAsksForALookAtItsCluster(t *testing.T) {
	bound := func(state placementv1beta1.BindingState, cluster string) *placementv1beta1.ClusterResourceBinding {
		return &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}},
			Spec:       placementv1beta1.ResourceBindingSpec{State: state, TargetCluster: cluster},
		}
	}
	cases := map[string]placementv1beta1.BindingState{
		"the rollout removed it":                       placementv1beta1.BindingStateUnscheduled,
		"somebody deleted it":                          placementv1beta1.BindingStateBound,
		"somebody deleted it before it was rolled out": placementv1beta1.BindingStateScheduled,
	}
	for sentence, state := range cases {
		t.Run(sentence, func(t *testing.T) {
			s, q := listening(t)
			for _, cluster := range []string{"one", "two"} {
				s.handleBindings().Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: bound(state, cluster)}, q)
			}
			assert.Equal(t, []Request{{Cluster: "one", Placement: types.NamespacedName{Name: "crp"}}, {Cluster: "two", Placement: types.NamespacedName{Name: "crp"}}}, asked(q))
		})
	}
	t.Run("it no longer holds its cluster", func(t *testing.T) {
		s, q := listening(t)
		s.handleBindings().Update(t.Context(), event.TypedUpdateEvent[client.Object]{
			ObjectOld: bound(placementv1beta1.BindingStateBound, "one"), ObjectNew: bound(placementv1beta1.BindingStateUnscheduled, "one"),
		}, q)
		assert.Equal(t, []Request{{Cluster: "one", Placement: types.NamespacedName{Name: "crp"}}}, asked(q))
		s.handleBindings().Update(t.Context(), event.TypedUpdateEvent[client.Object]{
			ObjectOld: bound(placementv1beta1.BindingStateScheduled, "one"), ObjectNew: bound(placementv1beta1.BindingStateBound, "one"),
		}, q)
		assert.Empty(t, asked(q), "a rollout frees nothing")
	})
}
