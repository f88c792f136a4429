package clusterwatch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/clusterwatch"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
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
	metav1.SetMetaDataLabel(&c.ObjectMeta, clusterv1beta1.MemberNameLabel, c.Name)
	return c
}

func named(name string) change { return func(c *clusterv1beta1.MemberCluster) { c.Name = name } }

func in(region string) change {
	return func(c *clusterv1beta1.MemberCluster) { c.Labels = map[string]string{"region": region} }
}

func beat(age time.Duration) change {
	return func(c *clusterv1beta1.MemberCluster) {
		c.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-age))
	}
}

func leaving(c *clusterv1beta1.MemberCluster) {
	at := metav1.NewTime(now)
	c.DeletionTimestamp = &at
	c.Finalizers = []string{"f"}
}

func tainted(c *clusterv1beta1.MemberCluster) {
	c.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
}

func pickN(n int32) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n}
}

// spread picks over regions, of which none may have more than another by one.
func spread(n int32) *placementv1beta1.PlacementPolicy {
	policy := pickN(n)
	policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: "region"}}
	return policy
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

// only picks the clusters with the names.
func only(names ...string) *placementv1beta1.PlacementPolicy {
	return requiring(clusterv1beta1.SelectNames(names...), nil)
}

// moreThan2 wants more than two nodes.
func moreThan2() *placementv1beta1.PlacementPolicy {
	return requiring(nil, &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
		{Name: "nodes", Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}},
	}})
}

// inGroups goes back, after 10 minutes, to the first of two clusters.
func inGroups() *placementv1beta1.PlacementPolicy {
	policy := &placementv1beta1.PlacementPolicy{Failback: placementv1beta1.FailbackAutomatic}
	for _, name := range []string{"c", "other"} {
		policy.AffinityGroups = append(policy.AffinityGroups, placementv1beta1.AffinityGroup{
			Name: "of-" + name, ClusterSelector: *only(name).Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		})
	}
	return policy
}

func TestConcerns(t *testing.T) {
	const standing, presence = framework.Standing, framework.Presence
	dev := requiring(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}, nil)
	unreadable := requiring(nil, &placementv1beta1.PropertySelector{MatchExpressions: make([]placementv1beta1.PropertySelectorRequirement, 1)})
	cases := map[string]struct {
		stake   clusterwatch.Stake
		changed framework.Interest
		cluster *clusterv1beta1.MemberCluster
		want    clusterwatch.Concern
	}{
		"a cluster to pick":                           {clusterwatch.Stake{}, standing, cluster(), clusterwatch.Yes},
		"a cluster that cannot take anything":         {clusterwatch.Stake{}, standing, cluster(beat(time.Hour)), clusterwatch.No},
		"a cluster with a taint":                      {clusterwatch.Stake{}, framework.Taints, cluster(tainted), clusterwatch.No},
		"a cluster the policy does not match":         {clusterwatch.Stake{Policy: dev}, framework.Label("env"), cluster(), clusterwatch.No},
		"a cluster that a term names":                 {clusterwatch.Stake{Policy: only("c")}, standing, cluster(), clusterwatch.Yes},
		"a cluster that no term names":                {clusterwatch.Stake{Policy: only("d")}, standing, cluster(), clusterwatch.No},
		"a cluster that has it":                       {clusterwatch.Stake{Bound: true}, standing, cluster(tainted), clusterwatch.No},
		"a cluster that has it and leaves":            {clusterwatch.Stake{Bound: true}, presence, cluster(leaving), clusterwatch.Yes},
		"a cluster that has it and is gone":           {clusterwatch.Stake{Bound: true}, presence, nil, clusterwatch.Yes},
		"a cluster that is put back while held":       {clusterwatch.Stake{Bound: true, Held: true}, presence, cluster(), clusterwatch.Yes},
		"a cluster that leaves without it":            {clusterwatch.Stake{}, presence, cluster(leaving), clusterwatch.No},
		"a cluster that is still being cleaned":       {clusterwatch.Stake{Terminating: true}, standing, cluster(), clusterwatch.No},
		"a tainted cluster, with affinity groups":     {clusterwatch.Stake{Policy: inGroups()}, framework.Taints, cluster(tainted), clusterwatch.Perhaps},
		"a cluster that leaves, with affinity groups": {clusterwatch.Stake{Policy: inGroups()}, presence, cluster(leaving), clusterwatch.Perhaps},
		"a cluster that would not be chosen":          {clusterwatch.Stake{Policy: &placementv1beta1.PlacementPolicy{SpreadConstraints: make([]placementv1beta1.SpreadConstraint, 1)}}, standing, cluster(), clusterwatch.Perhaps},
		"a named cluster":                             {clusterwatch.Stake{Policy: pickFixed("c")}, standing, cluster(tainted), clusterwatch.Perhaps},
		"a named cluster that has it":                 {clusterwatch.Stake{Policy: pickFixed("c"), Bound: true}, clusterwatch.Time, cluster(beat(time.Hour)), clusterwatch.Perhaps},
		"a cluster without a name in the policy":      {clusterwatch.Stake{Policy: pickFixed("d")}, standing, cluster(), clusterwatch.No},
		"a cluster one of some":                       {clusterwatch.Stake{Policy: pickN(2)}, standing, cluster(), clusterwatch.Perhaps},
		"a cluster that some others leave behind":     {clusterwatch.Stake{Policy: spread(2)}, presence, nil, clusterwatch.Perhaps},
		"a cluster that changes groups and has it":    {clusterwatch.Stake{Policy: spread(2), Bound: true}, framework.Group("region"), cluster(), clusterwatch.Perhaps},
		"a slot that is free again":                   {clusterwatch.Stake{Policy: pickN(2), Terminating: true}, "", cluster(), clusterwatch.Perhaps},
		"a slot on a cluster with a taint":            {clusterwatch.Stake{Policy: pickN(2)}, "", cluster(tainted), clusterwatch.Perhaps},
		"a slot on a cluster that is gone":            {clusterwatch.Stake{Policy: pickN(2)}, "", nil, clusterwatch.Perhaps},
		"a cluster that begins to report namespaces":  {clusterwatch.Stake{Bound: true}, framework.NamespaceReports, cluster(), clusterwatch.Perhaps},
		"a taint of a cluster that may be left":       {clusterwatch.Stake{Policy: pickN(2), Bound: true, FailsOver: true}, framework.Taints, cluster(), clusterwatch.Yes},
		"the health of a cluster that may be left":    {clusterwatch.Stake{Policy: pickN(2), Bound: true, FailsOver: true}, framework.Health, cluster(), clusterwatch.Yes},
		"another change of it":                        {clusterwatch.Stake{Policy: pickN(2), Bound: true, FailsOver: true}, framework.Label("env"), cluster(), clusterwatch.No},
		"the health of one to be picked instead":      {clusterwatch.Stake{Policy: pickN(2), FailsOver: true}, framework.Health, cluster(), clusterwatch.Perhaps},
		"a taint of a cluster that is not left":       {clusterwatch.Stake{Policy: pickN(2), Bound: true}, framework.Taints, cluster(), clusterwatch.No},
		"a clean-up has begun":                        {clusterwatch.Stake{Terminating: true}, "", cluster(), clusterwatch.No},
		"a policy that cannot be followed at all":     {clusterwatch.Stake{Policy: unreadable}, standing, cluster(), clusterwatch.No},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.stake.Taker = scheduler.NewTaker("", tc.stake.Policy)
			assert.Equal(t, tc.want, clusterwatch.Concerns(tc.stake, tc.changed, tc.cluster, "c", now))
		})
	}
}

// marks records which placements were marked.
type marks []string

func (m *marks) Mark(ref wf.Ref, poke wf.Poke) {
	*m = append(*m, ref.Name+" "+poke.Cause)
}

// hub is a cache with the hub's indexes that counts how often all clusters are listed.
type hub struct {
	client.Client
	looks int
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	scheme := fixture.Scheme(t)
	h := &hub{}
	builder := fixture.NewClientBuilder(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			_, ok := list.(*clusterv1beta1.MemberClusterList)
			if (&client.ListOptions{}).ApplyOptions(options).FieldSelector == nil && ok { // an index does not look at the whole fleet
				h.looks++
			}
			return c.List(ctx, list, options...)
		},
	})
	for _, i := range fieldindex.All() {
		builder = builder.WithIndex(i.Object, i.Field, i.Extract)
	}
	h.Client = builder.Build()
	return h
}

// reconcile returns which placements a look wakes.
func (h *hub) reconcile(t *testing.T, request clusterwatch.Request) marks {
	t.Helper()
	var got marks
	_, err := clusterwatch.NewReconciler(h, &got, clocktesting.NewFakePassiveClock(now)).Reconcile(t.Context(), request)
	require.NoError(t, err)
	return got
}

func placement(name string, policy *placementv1beta1.PlacementPolicy) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1}, Spec: placementv1beta1.PlacementSpec{Policy: policy},
	}
}

// told is the policy snapshot of a placement that has been scheduled.
func told(of *placementv1beta1.ClusterResourcePlacement, fulfilled metav1.ConditionStatus) client.Object {
	yes := true
	return &placementv1beta1.ClusterSchedulingPolicySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name: of.Name + "-0",
			Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel: of.Name, placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "k", Name: of.Name, UID: of.UID, Controller: &yes}},
		},
		Status: placementv1beta1.SchedulingPolicySnapshotStatus{
			ObservedCRPGeneration: of.Generation, Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeScheduled, Status: fulfilled}},
		},
	}
}

func binding(of *placementv1beta1.ClusterResourcePlacement, cluster string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName(of.Name, of.UID, cluster), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: of.Name},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			TargetCluster: cluster, State: placementv1beta1.BindingStateBound, SchedulingPolicySnapshotName: of.Name + "-0",
		},
	}
}

func TestReconcileMarksWhoCares(t *testing.T) {
	placed := placement("placed", nil)
	one := placement("one", pickN(1))
	lost := placement("lost", nil)
	two := placement("two", pickN(2))
	fixed := placement("fixed", pickFixed("c", "d"))
	h := newHub(t, cluster(), cluster(named("other")),
		placement("all", nil), placed, binding(placed, "c"), placement("figures", moreThan2()),
		one, told(one, metav1.ConditionTrue), binding(one, "other"), lost, binding(lost, "gone"),
		two, told(two, metav1.ConditionFalse), binding(two, "other"),
		fixed, told(fixed, metav1.ConditionFalse))
	cases := map[string]struct {
		request clusterwatch.Request
		want    marks
	}{
		"a cluster that joined": {clusterwatch.Request{Cluster: "c", Changed: framework.Standing},
			marks{"all clusters", "figures clusters", "lost clusters", "two clusters", "fixed clusters"}},
		"a taint that went":          {clusterwatch.Request{Cluster: "c", Changed: framework.Taints}, marks{"all clusters", "figures clusters", "lost clusters", "two clusters"}},
		"a change of figures":        {clusterwatch.Request{Cluster: "c", Changed: framework.Property("nodes")}, marks{"figures clusters"}},
		"a figure nobody looks at":   {clusterwatch.Request{Cluster: "c", Changed: framework.Property("cores")}, nil},
		"a label nobody looks at":    {clusterwatch.Request{Cluster: "c", Changed: framework.Label("env")}, nil},
		"a cluster that left":        {clusterwatch.Request{Cluster: "gone", Changed: framework.Presence}, marks{"lost clusters"}},
		"the end of a binding":       {clusterwatch.Request{Cluster: "c", Placement: types.NamespacedName{Name: "all"}}, marks{"all clusters"}},
		"the end of one with enough": {clusterwatch.Request{Cluster: "c", Placement: types.NamespacedName{Name: "one"}}, nil},
		"the end of a placement":     {clusterwatch.Request{Cluster: "c", Placement: types.NamespacedName{Name: "deleted"}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, tc.want, h.reconcile(t, tc.request))
		})
	}
}

func TestAClusterWakesWhoWouldPickItByThePolicyInForce(t *testing.T) {
	wantsOther := only("other")
	lazy := placement("lazy", nil)
	wantsOther.Activation = placementv1beta1.ActivationLazy
	lazy.Spec.Policy = wantsOther
	before := told(lazy, metav1.ConditionTrue).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	before.Annotations = map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0"}
	before.Spec.Policy = only("c")
	leftTo := func(name, picks string) []client.Object {
		of := placement(name, &placementv1beta1.PlacementPolicy{SchedulerName: "theirs"})
		snapshot := told(of, metav1.ConditionFalse).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
		snapshot.Status.ClusterDecisions = []placementv1beta1.ClusterDecision{{ClusterName: picks, Selected: true}}
		return []client.Object{of, snapshot}
	}
	objects := slices.Concat([]client.Object{cluster(), lazy, before}, leftTo("picked", "c"), leftTo("elsewhere", "d"))
	h := newHub(t, objects...)
	assert.ElementsMatch(t, marks{"lazy clusters", "picked clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Standing}))
}

func TestWhatThePolicyInForceLooksAtWakesAPlacementWhosePolicyWaits(t *testing.T) {
	lazy := placement("lazy", requiring(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, nil))
	lazy.Spec.Policy.Activation = placementv1beta1.ActivationLazy
	before := told(lazy, metav1.ConditionTrue).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
	before.Spec.Policy = requiring(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, nil)
	change := clusterwatch.Request{Cluster: "c", Changed: framework.Label("env")}
	assert.Empty(t, newHub(t, cluster(), lazy, before).reconcile(t, change), "it is in force no more")
	before.ResourceVersion, lazy.ResourceVersion = "", ""
	before.Annotations = map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0"}
	assert.Equal(t, marks{"lazy clusters"}, newHub(t, cluster(), lazy, before).reconcile(t, change))
}

func TestWhoFailsOverIsWokenByTheHealthOfClusters(t *testing.T) {
	moving := placement("moving", pickN(1))
	staying := placement("staying", pickN(1))
	moving.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{}}}
	objects := []client.Object{cluster(), moving, told(moving, metav1.ConditionTrue), binding(moving, "c"), staying, told(staying, metav1.ConditionTrue), binding(staying, "c")}
	for _, changed := range []framework.Interest{framework.Taints, framework.Health} {
		assert.ElementsMatch(t, marks{"moving clusters"}, newHub(t, objects...).reconcile(t, clusterwatch.Request{Cluster: "c", Changed: changed}), changed)
	}
}

func TestWhoHasAClusterThatIsReplacedIsWoken(t *testing.T) {
	replaced := func(c *clusterv1beta1.MemberCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "other")
	}
	joined := func(c *clusterv1beta1.MemberCluster) {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}}
	}
	moving := placement("moving", pickN(1))
	bound := binding(moving, "c")
	bound.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: "c", Selected: true}
	waiting := placement("waiting", pickN(1))
	waits := binding(waiting, "c")
	waits.Spec.State = placementv1beta1.BindingStateUnscheduled
	waits.Annotations = map[string]string{placementv1beta1.ReplacedByAnnotation: "other"}
	elsewhere := placement("elsewhere", pickN(1))
	h := newHub(t, cluster(replaced), cluster(named("other"), joined), moving, told(moving, metav1.ConditionTrue), bound,
		waiting, told(waiting, metav1.ConditionTrue), waits, elsewhere, told(elsewhere, metav1.ConditionTrue), binding(elsewhere, "other"))
	assert.ElementsMatch(t, marks{"moving clusters", "waiting clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Replacement}))
}

func TestWhoStaysOnAClusterThatIsReplacedIsToldWhyOnce(t *testing.T) {
	replaced := func(c *clusterv1beta1.MemberCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "other")
	}
	saying := func(of *placementv1beta1.ClusterResourcePlacement, message string) client.Object {
		policy := told(of, metav1.ConditionTrue).(*placementv1beta1.ClusterSchedulingPolicySnapshot)
		policy.Status.Conditions[0].Message = message
		return policy
	}
	holding := func(of *placementv1beta1.ClusterResourcePlacement) client.Object {
		bound := binding(of, "c")
		bound.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: "c", Selected: true}
		return bound
	}
	said := "found all; c stays (it is not replaced by other: there is no member cluster other)"
	untold := placement("untold", pickN(1))
	knows := placement("knows", pickN(1))
	otherwise := placement("otherwise", pickN(1))
	h := newHub(t, cluster(replaced), untold, saying(untold, "found all"), holding(untold), knows, saying(knows, said), holding(knows),
		otherwise, saying(otherwise, "found all; c stays (it is not replaced by other: other is leaving the fleet)"), holding(otherwise))
	assert.ElementsMatch(t, marks{"untold clusters", "otherwise clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Replacement}))

	h = newHub(t, cluster(), untold, saying(untold, "found all"), holding(untold), knows, saying(knows, said), holding(knows))
	assert.ElementsMatch(t, marks{"knows clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Replacement}), "it was given up")
}

func TestWhoseReplicasAreWithheldIsWokenWhenTheyAreNotAnyMore(t *testing.T) {
	shares := &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{{}}}
	withheld := placement("withheld", shares)
	withheld.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{}}}
	on := binding(withheld, "other")
	on.Spec.SchedulingPolicySnapshotName = told(withheld, metav1.ConditionTrue).GetName()
	noted := on.DeepCopy()
	noted.Spec.ClusterDecision.Withheld = &placementv1beta1.WithheldReplicas{Because: placementv1beta1.CauseCluster}
	evicted := cluster(named("other"))
	evicted.Spec.Taints = []clusterv1beta1.Taint{{Key: "ill", Effect: corev1.TaintEffectNoExecute}}
	for sentence, tc := range map[string]struct {
		cluster *clusterv1beta1.MemberCluster
		binding *placementv1beta1.ClusterResourceBinding
		want    marks
	}{
		"a cluster is ill":              {evicted, on, marks{"withheld clusters"}},
		"which is noted":                {evicted, noted, nil},
		"none is, as is noted":          {cluster(named("other")), noted, marks{"withheld clusters"}},
		"none is, and nothing is noted": {cluster(named("other")), on, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, tc.cluster, withheld.DeepCopy(), told(withheld, metav1.ConditionTrue), tc.binding.DeepCopy())
			assert.ElementsMatch(t, tc.want, h.reconcile(t, clusterwatch.Request{Cluster: "other", Changed: framework.Presence}))
		})
	}
}

func TestWhoCountsForHowLongAGroupFitsIsWokenWhenItBeginsAndCeasesTo(t *testing.T) {
	began := placement("began", inGroups())
	counting := placement("counting", inGroups())
	fromOther := func(of *placementv1beta1.ClusterResourcePlacement) *placementv1beta1.ClusterResourceBinding {
		b := binding(of, "other")
		b.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: "other", Selected: true, AffinityGroup: "of-other"}
		return b
	}
	noted := told(counting, metav1.ConditionTrue)
	noted.SetAnnotations(map[string]string{placementv1beta1.AffinityGroupsFitSinceAnnotation: `{"of-c":"` + now.Add(-time.Minute).Format(time.RFC3339) + `"}`})
	objects := []client.Object{cluster(named("other")), began, told(began, metav1.ConditionTrue), fromOther(began), counting, noted, fromOther(counting)}
	for name, tc := range map[string]struct {
		cluster *clusterv1beta1.MemberCluster
		changed framework.Interest
		want    marks
	}{
		"a taint that went":         {cluster(), framework.Taints, marks{"began clusters"}},
		"a taint that came":         {cluster(tainted), framework.Taints, marks{"counting clusters"}},
		"a cluster out of reach":    {cluster(beat(time.Hour)), clusterwatch.Time, marks{"counting clusters"}},
		"a cluster that is leaving": {cluster(leaving), framework.Presence, marks{"counting clusters"}},
		"a cluster that came":       {cluster(), framework.Presence, marks{"began clusters"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, append(slices.Clone(objects), tc.cluster)...)
			assert.ElementsMatch(t, tc.want, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: tc.changed}))
		})
	}
}

func TestANamedClusterIsMissedFromTheInstantItIsOutOfReach(t *testing.T) {
	fixed := placement("fixed", pickFixed("c"))
	other := placement("other", pickFixed("d"))
	all := placement("all", nil)
	h := newHub(t, cluster(beat(time.Minute)), fixed, binding(fixed, "c"), told(fixed, metav1.ConditionTrue),
		other, told(other, metav1.ConditionFalse), all, binding(all, "c"), told(all, metav1.ConditionTrue))
	clk := clocktesting.NewFakePassiveClock(now)
	var got marks
	r := clusterwatch.NewReconciler(h, &got, clk)
	look := func() time.Duration {
		result, err := r.Reconcile(t.Context(), clusterwatch.Request{Cluster: "c", Changed: clusterwatch.Time})
		require.NoError(t, err)
		return result.RequeueAfter
	}
	wait := look()
	assert.InDelta(t, 4*time.Minute, wait, float64(time.Second), "the next look is when the cluster will have been silent for too long")
	assert.Empty(t, got)

	clk.SetTime(now.Add(wait))
	assert.Equal(t, 15*time.Second, look(), "whoever schedules may have a clock that is behind")
	assert.Equal(t, marks{"fixed clusters"}, got, "what is placed stays; who named the cluster is told")

	require.NoError(t, h.Delete(t.Context(), told(fixed, metav1.ConditionTrue)))
	require.NoError(t, h.Create(t.Context(), told(fixed, metav1.ConditionFalse)))
	got = nil
	assert.Zero(t, look(), "the next heartbeat will tell")
	assert.Empty(t, got, "it has been told")
}

func TestWhoWaitsForASpreadIsWokenByItsOwnClusters(t *testing.T) {
	waiting := placement("waiting", spread(3))
	objects := []client.Object{
		waiting, told(waiting, metav1.ConditionFalse), binding(waiting, "a"), binding(waiting, "b"),
		cluster(named("a"), in("east")), cluster(named("c"), in("east")),
	}
	t.Run("while the spread does not let a cluster in, nothing about it wakes anybody", func(t *testing.T) {
		h := newHub(t, append(objects, cluster(named("b"), in("east")), cluster(named("d"), in("west"), beat(time.Hour)))...)
		assert.Empty(t, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Standing}))
		assert.Empty(t, h.reconcile(t, clusterwatch.Request{Cluster: "c", Changed: framework.Group("region")}))
	})
	t.Run("a cluster that goes to another group may let it in", func(t *testing.T) {
		h := newHub(t, append(objects, cluster(named("b"), in("west")), cluster(named("d"), in("west"), beat(time.Hour)))...)
		assert.Equal(t, marks{"waiting clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "b", Changed: framework.Group("region")}))
	})
	t.Run("and so may the end of a group", func(t *testing.T) {
		h := newHub(t, append(objects, cluster(named("b"), in("east")))...)
		assert.Equal(t, marks{"waiting clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: "d", Changed: framework.Presence}))
	})
}

func TestOnStartTheFleetIsLookedAtOnceForEachPlacement(t *testing.T) {
	waiting := placement("waiting", spread(3))
	objects := []client.Object{waiting, told(waiting, metav1.ConditionFalse), binding(waiting, "c00"), cluster(named("west"), in("west"), beat(time.Hour))}
	for i := range 50 {
		objects = append(objects, cluster(named(fmt.Sprintf("c%02d", i)), in("east")))
	}
	h := newHub(t, objects...)
	var got marks
	r := clusterwatch.NewReconciler(h, &got, clocktesting.NewFakePassiveClock(now))
	for i := range 50 {
		_, err := r.Reconcile(t.Context(), clusterwatch.Request{Cluster: fmt.Sprintf("c%02d", i), Changed: framework.Standing})
		require.NoError(t, err)
	}
	assert.Empty(t, got)
	assert.Equal(t, 1, h.looks)
}

func TestEveryClusterThatIsClearedCanBePickedAgain(t *testing.T) {
	for sentence, policy := range map[string]*placementv1beta1.PlacementPolicy{
		"every cluster": nil, "as many as there are": pickN(3), "by their names": pickFixed("one", "two", "three"),
	} {
		t.Run(sentence, func(t *testing.T) {
			crp := placement("crp", policy)
			objects := []client.Object{crp, told(crp, metav1.ConditionFalse)}
			names := []string{"one", "two", "three"}
			for _, name := range names {
				clearing := binding(crp, name)
				clearing.Finalizers = []string{placementv1beta1.WorkFinalizer}
				clearing.DeletionTimestamp = new(metav1.NewTime(now))
				objects = append(objects, clearing, cluster(named(name)))
			}
			h := newHub(t, objects...)
			for _, name := range names {
				cleared := &placementv1beta1.ClusterResourceBinding{}
				require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(binding(crp, name)), cleared))
				cleared.Finalizers = nil
				require.NoError(t, h.Update(t.Context(), cleared), "its clean-up is over")
				assert.Equal(t, marks{"crp clusters"}, h.reconcile(t, clusterwatch.Request{Cluster: name, Placement: types.NamespacedName{Name: "crp"}}), name)
			}
		})
	}
}
