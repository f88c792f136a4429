package clusterwatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterwatch"
	"github.com/fleetflow/fleetflow/controllers/hub/index"
	wfcontract "github.com/fleetflow/fleetflow/workflows/contract"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change func(*clusterv1beta1.MemberCluster)

func cluster(changes ...change) *clusterv1beta1.MemberCluster {
	c := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid", Labels: map[string]string{"env": "prod"}},
		Status: clusterv1beta1.MemberClusterStatus{
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"nodes": {Value: "3"}},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-time.Second)),
				Conditions: []metav1.Condition{
					{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue},
					{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue},
				},
			}},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return c
}

func beat(age time.Duration) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-age))
	}
}

func leaving(c *clusterv1beta1.MemberCluster) {
	at := metav1.NewTime(now)
	c.DeletionTimestamp, c.Finalizers = &at, []string{"f"}
}

func tainted(c *clusterv1beta1.MemberCluster) {
	c.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
}

func TestRelevant(t *testing.T) {
	cases := map[string]struct {
		before, after *clusterv1beta1.MemberCluster
		want          clusterwatch.Relevance
	}{
		"a heartbeat":            {cluster(beat(time.Minute)), cluster(), clusterwatch.Irrelevant},
		"the first after a rest": {cluster(beat(time.Hour)), cluster(), clusterwatch.Standing},
		"a figure observed again": {cluster(), cluster(func(c *clusterv1beta1.MemberCluster) {
			c.Status.Properties["nodes"] = clusterv1beta1.PropertyValue{Value: "3", ObservationTime: metav1.NewTime(now)}
			c.Status.ResourceUsage.ObservationTime = metav1.NewTime(now)
		}), clusterwatch.Irrelevant},
		"another figure": {cluster(), cluster(func(c *clusterv1beta1.MemberCluster) {
			c.Status.Properties["nodes"] = clusterv1beta1.PropertyValue{Value: "4"}
		}), clusterwatch.Figures},
		"another usage": {cluster(), cluster(func(c *clusterv1beta1.MemberCluster) {
			c.Status.ResourceUsage.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), clusterwatch.Figures},
		"another label":            {cluster(), cluster(func(c *clusterv1beta1.MemberCluster) { c.Labels = nil }), clusterwatch.Standing},
		"a taint":                  {cluster(), cluster(tainted), clusterwatch.Standing},
		"it leaves":                {cluster(), cluster(leaving), clusterwatch.Standing},
		"another one of that name": {cluster(), cluster(func(c *clusterv1beta1.MemberCluster) { c.UID = "other" }), clusterwatch.Standing},
		"it joins": {cluster(func(c *clusterv1beta1.MemberCluster) {
			c.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
		}), cluster(), clusterwatch.Standing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, clusterwatch.Relevant(tc.before, tc.after, now))
		})
	}
}

func pickN(n int32) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n}
}

func pickFixed(names ...string) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
}

func requiring(selector *metav1.LabelSelector, properties *placementv1beta1.PropertySelector) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: selector, PropertySelector: properties},
		}},
	}}}
}

func TestCares(t *testing.T) {
	dev := requiring(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}, nil)
	cases := map[string]struct {
		stake   clusterwatch.Stake
		cluster *clusterv1beta1.MemberCluster
		want    bool
	}{
		"a cluster to pick":                       {clusterwatch.Stake{}, cluster(), true},
		"a cluster that cannot take anything":     {clusterwatch.Stake{}, cluster(beat(time.Hour)), false},
		"a cluster with a taint":                  {clusterwatch.Stake{}, cluster(tainted), false},
		"a cluster the policy does not match":     {clusterwatch.Stake{Policy: dev}, cluster(), false},
		"a cluster that has it":                   {clusterwatch.Stake{Bound: true}, cluster(beat(time.Hour), tainted), false},
		"a cluster that has it and leaves":        {clusterwatch.Stake{Bound: true}, cluster(leaving), true},
		"a cluster that has it and is gone":       {clusterwatch.Stake{Bound: true}, nil, true},
		"a cluster that leaves without it":        {clusterwatch.Stake{}, cluster(leaving), false},
		"a cluster that is still being cleaned":   {clusterwatch.Stake{Terminating: true}, cluster(), false},
		"a named cluster":                         {clusterwatch.Stake{Policy: pickFixed("c")}, cluster(tainted), true},
		"a cluster nobody named":                  {clusterwatch.Stake{Policy: pickFixed("d")}, cluster(), false},
		"a cluster while others suffice":          {clusterwatch.Stake{Policy: pickN(2), Picked: 2}, cluster(), false},
		"a cluster while others do not suffice":   {clusterwatch.Stake{Policy: pickN(2), Picked: 1}, cluster(), true},
		"a policy that cannot be followed at all": {clusterwatch.Stake{Policy: requiring(nil, &placementv1beta1.PropertySelector{MatchExpressions: make([]placementv1beta1.PropertySelectorRequirement, 1)})}, cluster(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, clusterwatch.Cares(tc.stake, tc.cluster, now))
		})
	}
}

// marks records which placements were marked.
type marks []string

func (m *marks) Mark(ref wfcontract.Ref, poke wfcontract.Poke) {
	*m = append(*m, ref.Name+" "+poke.Cause)
}

func TestReconcileMarksWhoCares(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	placement := func(name string, policy *placementv1beta1.PlacementPolicy) client.Object {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.PlacementSpec{Policy: policy}}
	}
	binding := func(placement, cluster string) client.Object {
		return &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: placement + "-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement}},
			Spec:       placementv1beta1.ResourceBindingSpec{TargetCluster: cluster, State: placementv1beta1.BindingStateBound},
		}
	}
	figures := requiring(nil, &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
		{Name: "nodes", Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}},
	}})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster(),
		placement("all", nil), placement("placed", nil), binding("placed", "c"),
		placement("figures", figures), placement("one", pickN(1)), binding("one", "other"), placement("lost", nil), binding("lost", "gone"))
	for _, i := range index.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	cases := map[string]struct {
		request clusterwatch.Request
		want    marks
	}{
		"a cluster that joined": {clusterwatch.Request{Cluster: "c"}, marks{"all clusters", "figures clusters", "lost clusters"}},
		"a change of figures":   {clusterwatch.Request{Cluster: "c", Figures: true}, marks{"figures clusters"}},
		"a cluster that left":   {clusterwatch.Request{Cluster: "gone"}, marks{"lost clusters"}},
	}
	cache := builder.Build()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got marks
			_, err := clusterwatch.NewReconciler(cache, &got, clocktesting.NewFakePassiveClock(now)).Reconcile(t.Context(), tc.request)
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.want, got)
		})
	}
}

func TestEveryClusterThatIsClearedCanBePickedAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	for sentence, policy := range map[string]*placementv1beta1.PlacementPolicy{
		"every cluster": nil, "as many as there are": pickN(3), "by their names": pickFixed("one", "two", "three"),
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := []client.Object{&placementv1beta1.ClusterResourcePlacement{
				ObjectMeta: metav1.ObjectMeta{Name: "crp"}, Spec: placementv1beta1.PlacementSpec{Policy: policy},
			}}
			names := []string{"one", "two", "three"}
			for _, name := range names {
				binding := &placementv1beta1.ClusterResourceBinding{
					ObjectMeta: metav1.ObjectMeta{
						Name: name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
						Finalizers: []string{placementv1beta1.WorkFinalizer}, DeletionTimestamp: new(metav1.NewTime(now)),
					},
					Spec: placementv1beta1.ResourceBindingSpec{TargetCluster: name, State: placementv1beta1.BindingStateBound},
				}
				objects = append(objects, binding, cluster(func(c *clusterv1beta1.MemberCluster) { c.Name = name }))
			}
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
			for _, i := range index.All() {
				builder = builder.WithIndex(i.Object, i.Field, i.Extract)
			}
			hub := builder.Build()
			for _, name := range names {
				binding := &placementv1beta1.ClusterResourceBinding{}
				require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: name}, binding))
				binding.Finalizers = nil
				require.NoError(t, hub.Update(t.Context(), binding), "its clean-up is over")
				var got marks
				_, err := clusterwatch.NewReconciler(hub, &got, clocktesting.NewFakePassiveClock(now)).Reconcile(t.Context(), clusterwatch.Request{Cluster: name})
				require.NoError(t, err)
				assert.Equal(t, marks{"crp clusters"}, got, name)
			}
		})
	}
}
