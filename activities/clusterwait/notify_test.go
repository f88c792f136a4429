package clusterwait_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// informers are a hub's informers that tell what a test makes up.
type informers struct {
	t        *testing.T
	fake     *informertest.FakeInformers
	notifier *clusterwait.Notifier
}

func newInformers(t *testing.T) *informers {
	t.Helper()
	scheme := fixture.Scheme(t)
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "meta", Version: "v1", Kind: "Snapshot"}, &metav1.PartialObjectMetadata{})
	i := &informers{t: t, fake: &informertest.FakeInformers{Scheme: scheme}, notifier: clusterwait.NewNotifier()}
	of := func(placement, cluster string) *placementv1beta1.ClusterResourceBinding {
		b := fixture.Binding(cluster, 1)
		b.Name = placement + "-" + cluster
		b.Labels[placementv1beta1.ParentPlacementLabel] = placement
		return b
	}
	require.NoError(t, i.notifier.Watch(t.Context(), i.fake, fixture.APIServer(t, of("crp", "a"), of("other", "b"))))
	return i
}

func (i *informers) update(old, now client.Object) {
	i.t.Helper()
	informer, err := i.fake.FakeInformerFor(i.t.Context(), now)
	require.NoError(i.t, err)
	informer.Update(old, now)
}

func (i *informers) added(now client.Object) {
	i.t.Helper()
	informer, err := i.fake.FakeInformerFor(i.t.Context(), now)
	require.NoError(i.t, err)
	informer.Add(now)
}

func (i *informers) deleted(gone client.Object) {
	i.t.Helper()
	informer, err := i.fake.FakeInformerFor(i.t.Context(), gone)
	require.NoError(i.t, err)
	informer.Delete(gone)
}

// work tells of a Work of placement crp on a cluster.
func (i *informers) work(cluster string) {
	w := workOf(cluster)
	i.update(w, w)
}

// placement tells of a placement crp that went from a generation to another.
func (i *informers) placement(from, to int64) { i.update(placementOf(from), placementOf(to)) }

func workOf(cluster string) *placementv1beta1.Work {
	return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-member-" + cluster, Name: "crp-work", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
	}}
}

func placementOf(generation int64) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "uid", Generation: generation}}
}

func memberOf(region string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", Labels: map[string]string{"region": region}}}
}

func runOf(generation int64) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "uid", Generation: generation}}
}

func busyMember() *clusterv1beta1.MemberCluster {
	member := memberOf("east")
	member.Status.Busy = &clusterv1beta1.Busy{Since: metav1.NewTime(begin), Until: metav1.NewTime(begin.Add(time.Hour))}
	return member
}

func TestTheNotifierTellsThoseWhoWait(t *testing.T) {
	clusterScope := placementv1beta1.Scope{}
	namespace := placementv1beta1.Scope{Namespace: "team-a"}
	placement := clusterwait.PlacementKey(clusterScope, "crp")
	namespaced := clusterwait.PlacementKey(namespace, "crp")
	bindings := clusterwait.BindingsKey(clusterScope, "crp")
	run := clusterwait.RunKey(clusterScope, "run")
	const labels = clusterwait.ClusterLabelsKey
	workOfNamespaced := workOf("a")
	workOfNamespaced.Labels[placementv1beta1.ParentNamespaceLabel] = "team-a"
	going := placementOf(1)
	going.DeletionTimestamp = &metav1.Time{Time: begin}
	another := runOf(1)
	another.UID = "another"
	snapshot := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "crp-1-snapshot", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}}}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "crp-1", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}}}
	longer := busyMember()
	longer.Status.Busy.Until = metav1.NewTime(begin.Add(2 * time.Hour))
	otherwise := busyMember()
	otherwise.Status.Busy.Message = "year-end"
	type told struct {
		clusters []string
		plan     bool
	}
	for sentence, test := range map[string]struct {
		event func(i *informers)
		want  map[clusterwait.Key]told
	}{
		"a Work tells its cluster": {func(i *informers) { i.work("a") }, map[clusterwait.Key]told{placement: {clusters: []string{"a"}}}},
		"a Work of a placement in a namespace tells its cluster": {
			func(i *informers) { i.added(workOfNamespaced) }, map[clusterwait.Key]told{namespaced: {clusters: []string{"a"}}},
		},
		"a Work of nobody tells nothing": {func(i *informers) {
			i.added(&placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a"}})
		}, nil},
		"a binding's status tells its cluster":           {func(i *informers) { i.update(fixture.Binding("a", 1), fixture.Binding("a", 1)) }, map[clusterwait.Key]told{placement: {clusters: []string{"a"}}}},
		"a binding's spec tells planners, too":           {func(i *informers) { i.update(fixture.Binding("a", 1), fixture.Binding("a", 2)) }, map[clusterwait.Key]told{placement: {clusters: []string{"a"}}, bindings: {plan: true}}},
		"a new binding tells planners, too":              {func(i *informers) { i.added(fixture.Binding("a", 1)) }, map[clusterwait.Key]told{placement: {clusters: []string{"a"}}, bindings: {plan: true}}},
		"a binding that is gone tells them, too":         {func(i *informers) { i.deleted(fixture.Binding("a", 1)) }, map[clusterwait.Key]told{placement: {clusters: []string{"a"}}, bindings: {plan: true}}},
		"a placement's spec changes the plan":            {func(i *informers) { i.placement(1, 2) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"a placement's deletion does":                    {func(i *informers) { i.update(placementOf(1), going) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"a placement's status does not":                  {func(i *informers) { i.placement(1, 1) }, nil},
		"a busy cluster tells who has something there":   {func(i *informers) { i.update(memberOf("east"), busyMember()) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"a cluster that is busy no more does":            {func(i *informers) { i.update(busyMember(), memberOf("east")) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"one that is busy for longer does":               {func(i *informers) { i.update(busyMember(), longer) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"one that is busy for another reason does not":   {func(i *informers) { i.update(busyMember(), otherwise) }, nil},
		"many changes of busy clusters are one to take":  {func(i *informers) { i.update(memberOf("east"), busyMember()); i.update(busyMember(), longer) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"a busy cluster that reports tells nothing":      {func(i *informers) { i.update(busyMember(), busyMember()) }, nil},
		"a hold concerns all":                            {func(i *informers) { i.added(&fleetflowv1alpha1.RolloutHold{}) }, map[clusterwait.Key]told{clusterwait.GatesKey: {plan: true}}},
		"a cluster's labels change plans with overrides": {func(i *informers) { i.update(memberOf("east"), memberOf("west")) }, map[clusterwait.Key]told{labels: {plan: true}}},
		"a cluster's heartbeat does not":                 {func(i *informers) { i.update(memberOf("east"), memberOf("east")) }, nil},
		"a cluster that joins does not":                  {func(i *informers) { i.added(memberOf("east")) }, nil},
		"a run's spec changes its plan":                  {func(i *informers) { i.update(runOf(1), runOf(2)) }, map[clusterwait.Key]told{run: {plan: true}}},
		"a run that was replaced does":                   {func(i *informers) { i.update(runOf(1), another) }, map[clusterwait.Key]told{run: {plan: true}}},
		"a run's status, our own writes, do not":         {func(i *informers) { i.update(runOf(1), runOf(1)) }, nil},
		"a run that is gone does":                        {func(i *informers) { i.deleted(runOf(1)) }, map[clusterwait.Key]told{run: {plan: true}}},
		"a resource snapshot changes the plan":           {func(i *informers) { i.added(snapshot) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"a policy snapshot's status changes it":          {func(i *informers) { i.update(policy, policy) }, map[clusterwait.Key]told{placement: {plan: true}}},
		"two events of a cluster are one to take":        {func(i *informers) { i.work("a"); i.work("a"); i.work("b") }, map[clusterwait.Key]told{placement: {clusters: []string{"a", "b"}}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			i := newInformers(t)
			subscriptions := map[clusterwait.Key]*clusterwait.Subscription{}
			for _, key := range []clusterwait.Key{placement, namespaced, bindings, run, labels, clusterwait.GatesKey, "placement/other", "run/other"} {
				subscriptions[key] = i.notifier.Subscribe(key)
			}
			test.event(i)
			for key, s := range subscriptions {
				clusters, plan := s.TakeChanges()
				slices.Sort(clusters)
				assert.Equal(t, test.want[key], told{clusters, plan}, key)
				assert.Equal(t, len(clusters) > 0 || plan, len(s.C) == 1, "%s is woken if there is something to take", key)
				clusters, plan = s.TakeChanges()
				assert.True(t, len(clusters) == 0 && !plan, "what was taken is taken")
			}
		})
	}
}

func TestASubscriptionCanBeWidenedAndClosed(t *testing.T) {
	i := newInformers(t)
	s := i.notifier.Subscribe(clusterwait.RunKey(placementv1beta1.Scope{}, "run"))
	i.update(runOf(1), runOf(2))
	s.Add(clusterwait.PlacementKey(placementv1beta1.Scope{}, "crp"))
	i.work("a")
	clusters, plan := s.TakeChanges()
	assert.Equal(t, []string{"a"}, clusters)
	assert.True(t, plan, "what came before it was widened is not lost")
	s.Close()
	i.work("a")
	i.update(runOf(2), runOf(3))
	clusters, plan = s.TakeChanges()
	assert.True(t, len(clusters) == 0 && !plan)
}
