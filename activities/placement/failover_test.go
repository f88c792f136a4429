package placement_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// failingOver is a hub whose placement picks n of twice as many clusters, tolerates the taint for a minute and fails over.
func failingOver(t *testing.T, n int32) *hub {
	t.Helper()
	seconds := int64(60)
	objects := []runtime.Object{crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &n,
			Tolerations: []placementv1beta1.Toleration{{Key: "k", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}},
		}
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{}}}
	})}
	for i := range 2 * n {
		objects = append(objects, member(fmt.Sprintf("member-%d", i)))
	}
	h := newHub(t, objects...)
	require.Equal(t, int(n), h.schedule().Created)
	return h
}

// taint gives a member the taint since now, or takes it away.
func (h *hub) taint(name string, on bool) {
	h.t.Helper()
	m := &clusterv1beta1.MemberCluster{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: name}, m))
	m.Spec.Taints = nil
	if on {
		m.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: "NoExecute"}}
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[clusterv1beta1.TaintsSinceAnnotation] = clusterrules.NoteTaints(m, h.clock.Now())
	require.NoError(h.t, h.Update(h.t.Context(), m))
}

func TestAClusterIsLeftWhenTheTimeIsOver(t *testing.T) {
	h := failingOver(t, 1)
	assert.Equal(t, map[string]string{"member-1": "Scheduled crp-0"}, h.bindings())
	assert.Nil(t, h.policy("crp-0").Spec.Policy.Tolerations[0].TolerationSeconds, "the seconds are not part of the policy")
	h.taint("member-1", true)
	due := h.clock.Now().Add(time.Minute)
	assert.WithinDuration(t, due, h.schedule().WakeAt, time.Second)
	assert.Equal(t, due.UTC().Format(time.RFC3339), h.policy("crp-0").Annotations[placementv1beta1.LeaveAtAnnotation], "so that a hub that has lost its workflows goes on")
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes)
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		seconds := int64(30)
		p.Spec.Policy.Tolerations[0].TolerationSeconds = &seconds
	})
	assert.WithinDuration(t, due.Add(-30*time.Second), h.schedule().WakeAt, time.Second)
	assert.Equal(t, []string{"crp-0*"}, h.policies(), "it is the same policy")

	h.clock.Step(30 * time.Second)
	assert.Equal(t, 1, h.schedule().Unscheduled)
	assert.Equal(t, map[string]string{"member-0": "Scheduled crp-0", "member-1": "Unscheduled crp-0"}, h.bindings())
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.LeaveAtAnnotation)
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes, "all that was decided is stored")
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), list))
	for i := range list.Items {
		since, left := rules.LeftSince(&list.Items[i])
		assert.Equal(t, list.Items[i].Spec.TargetCluster == "member-1", left)
		assert.True(t, !left || since.Equal(h.clock.Now().Truncate(time.Second)))
	}
}

func TestAClusterThatRecoversInTimeIsNotLeft(t *testing.T) {
	h := failingOver(t, 1)
	h.taint("member-1", true)
	h.schedule()
	h.clock.Step(59 * time.Second)
	h.taint("member-1", false)
	assert.Zero(t, h.schedule().WakeAt)
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.LeaveAtAnnotation)
	h.clock.Step(time.Hour)
	h.schedule()
	assert.Equal(t, map[string]string{"member-1": "Scheduled crp-0"}, h.bindings())
}

func TestManyClustersAtOnceAreLeftOnlyIfAUserAccepts(t *testing.T) {
	h := failingOver(t, 4)
	before := h.bindings()
	for _, name := range []string{"member-7", "member-6", "member-5"} {
		h.taint(name, true)
		h.clock.Step(10 * time.Second)
	}
	h.clock.Step(time.Minute)
	result := h.schedule()
	assert.Equal(t, 3, result.Held)
	assert.Equal(t, before, h.bindings())
	p := h.placement()
	held := rules.HeldRemovalsOf(p)
	require.NotNil(t, held)
	assert.True(t, held.Failover)
	assert.Equal(t, 3, held.Total)

	h.taint("member-7", false)
	assert.Equal(t, 2, h.schedule().Unscheduled, "two are not too many")
	assert.NotContains(t, h.placement().Annotations, placementv1beta1.RemovalsHeldAnnotation)

	h = failingOver(t, 4)
	for _, name := range []string{"member-7", "member-6", "member-5"} {
		h.taint(name, true)
	}
	h.clock.Step(time.Minute)
	h.schedule()
	p = h.placement()
	p.Annotations[placementv1beta1.RemovalsAcceptedAnnotation] = rules.HeldRemovalsOf(p).Token(p)
	require.NoError(t, h.Update(t.Context(), p))
	assert.Equal(t, 3, h.schedule().Unscheduled)
	assert.NotContains(t, h.placement().Annotations, placementv1beta1.RemovalsAcceptedAnnotation)
}

// fallIll has what is placed on a cluster not be available since now.
func (h *hub) fallIll(cluster string) {
	h.t.Helper()
	h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		since := metav1.NewTime(h.clock.Now())
		b.Spec.ResourceSnapshotName = "crp-0-snapshot"
		b.Status.Health = &placementv1beta1.BindingHealth{Revision: "r", HasBeenAvailable: true, UnhealthySince: &since}
	})
}

func (h *hub) editBindingOf(cluster string, change func(*placementv1beta1.ClusterResourceBinding)) {
	h.t.Helper()
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	for i := range list.Items {
		if b := &list.Items[i]; b.Spec.TargetCluster == cluster {
			change(b)
			require.NoError(h.t, h.Update(h.t.Context(), b))
		}
	}
}

// leavingIll is a hub whose placement leaves clusters after a minute because of what is placed there.
func leavingIll(t *testing.T, n int32, mode placementv1beta1.PurgeMode) *hub {
	t.Helper()
	h := failingOver(t, n)
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Failover = &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{
			DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: new(int32(60))}, PurgeMode: mode,
		}}
	})
	h.schedule()
	return h
}

func TestAClusterIsLeftBecauseOfWhatIsPlacedThere(t *testing.T) {
	for mode, superseded := range map[placementv1beta1.PurgeMode]bool{"": false, placementv1beta1.PurgeDirectly: false, placementv1beta1.PurgeNever: true} {
		h := leavingIll(t, 1, mode)
		h.fallIll("member-1")
		due := h.clock.Now().Add(time.Minute)
		assert.WithinDuration(t, due, h.schedule().WakeAt, time.Second)
		assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.OverdueAnnotation)
		h.writes = 0
		h.schedule()
		assert.Zero(t, h.writes)

		h.clock.Step(time.Minute)
		assert.Equal(t, 1, h.schedule().Unscheduled)
		assert.Equal(t, map[string]string{"member-0": "Scheduled crp-0", "member-1": "Unscheduled crp-0"}, h.bindings())
		noted := h.policy("crp-0").Annotations
		assert.Contains(t, noted[placementv1beta1.BarredAnnotation], `"member-1"`)
		assert.NotContains(t, noted, placementv1beta1.OverdueAnnotation, "it has been left")
		h.editBindingOf("member-1", func(b *placementv1beta1.ClusterResourceBinding) {
			assert.Equal(t, placementv1beta1.CauseApplication, rules.LeftBecauseOf(b))
			assert.Equal(t, superseded, rules.IsSuperseded(b))
		})
		h.writes = 0
		h.schedule()
		assert.Zero(t, h.writes, "all that was decided is stored")
	}
}

func TestOnlyCopiesThatAreIllAreSuperseded(t *testing.T) {
	h := leavingIll(t, 2, placementv1beta1.PurgeNever)
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		for group, clusters := range map[string][]string{"local": {"member-3", "member-2"}, "remote": {"member-1", "member-0"}} {
			p.Spec.Policy.AffinityGroups = append(p.Spec.Policy.AffinityGroups, placementv1beta1.AffinityGroup{Name: group, ClusterSelector: placementv1beta1.ClusterSelector{
				ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: clusterv1beta1.SelectNames(clusters...)}},
			}})
		}
		slices.SortFunc(p.Spec.Policy.AffinityGroups, func(a, b placementv1beta1.AffinityGroup) int { return cmp.Compare(a.Name, b.Name) })
	})
	h.schedule()
	assert.Equal(t, map[string]string{"member-3": "Scheduled crp-1", "member-2": "Scheduled crp-1"}, h.bindings())
	h.fallIll("member-3")
	h.clock.Step(time.Minute)
	assert.Equal(t, 2, h.schedule().Unscheduled, "the group is left")
	for cluster, superseded := range map[string]bool{"member-3": true, "member-2": false} {
		h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
			assert.Equal(t, placementv1beta1.CauseApplication, rules.LeftBecauseOf(b))
			assert.Equal(t, superseded, rules.IsSuperseded(b), cluster)
		})
	}

	h = leavingIll(t, 1, placementv1beta1.PurgeNever)
	h.fallIll("member-1")
	h.editBindingOf("member-1", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "" })
	h.clock.Step(time.Minute)
	h.schedule()
	h.editBindingOf("member-1", func(b *placementv1beta1.ClusterResourceBinding) {
		assert.False(t, rules.IsSuperseded(b), "there is no copy that could stay, nor be evicted")
	})
}

func TestIllnessOfManyIsLeftOnlyIfAUserAccepts(t *testing.T) {
	h := leavingIll(t, 4, "")
	before := h.bindings()
	for _, name := range []string{"member-7", "member-6", "member-5"} {
		h.fallIll(name)
	}
	h.clock.Step(time.Minute)
	assert.Equal(t, 3, h.schedule().Held)
	assert.Equal(t, before, h.bindings())
	noted := h.policy("crp-0").Annotations
	assert.NotContains(t, noted, placementv1beta1.BarredAnnotation, "none is left")
	assert.NotEmpty(t, noted[placementv1beta1.OverdueAnnotation], "so that it is not decided again and again")
	h.editBindingOf("member-7", func(b *placementv1beta1.ClusterResourceBinding) { b.Status.Health.UnhealthySince = nil })
	assert.Equal(t, 2, h.schedule().Unscheduled, "two are not too many")
}
