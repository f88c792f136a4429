package placement_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func memberIn(name, region, nodes string) *clusterv1beta1.MemberCluster {
	m := member(name)
	m.Labels = map[string]string{"region": region}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.NodeCountProperty: {Value: nodes}}
	return m
}

// spreadOverRegions prefers clusters with many nodes.
func spreadOverRegions(n int32) func(*placementv1beta1.ClusterResourcePlacement) {
	return func(p *placementv1beta1.ClusterResourcePlacement) {
		pickN(n)(p)
		p.Spec.Policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{TopologyKey: "region"}}
		p.Spec.Policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{{
				Weight: 10,
				Preference: placementv1beta1.ClusterSelectorTerm{PropertySorter: &placementv1beta1.PropertySorter{
					Name: string(clusterv1beta1.NodeCountProperty), SortOrder: placementv1beta1.Descending,
				}},
			}},
		}}
	}
}

func TestAPolicyWithoutFieldsOfFleetflowHasTheHashOfKubeFleet(t *testing.T) {
	h := newHub(t, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		spreadOverRegions(2)(p)
		p.Spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &placementv1beta1.ClusterSelector{
			ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}},
		}
	}))
	h.schedule()
	const encoded = `{"placementType":"PickN","affinity":{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":` +
		`{"clusterSelectorTerms":[{"labelSelector":{"matchLabels":{"env":"prod"}}}]},"preferredDuringSchedulingIgnoredDuringExecution":` +
		`[{"weight":10,"preference":{"propertySorter":{"name":"kubernetes-fleet.io/node-count","sortOrder":"Descending"}}}]}},` +
		`"topologySpreadConstraints":[{"topologyKey":"region"}]}`
	assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(encoded))), string(h.policy("crp-0").Spec.PolicyHash))

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		terms := p.Spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms
		terms[0].LabelSelector = clusterv1beta1.SelectOtherNames("member-1")
	})
	h.schedule()
	assert.ElementsMatch(t, []string{"crp-0", "crp-1*"}, h.policies(), "names tell policies apart")
}

func TestAffinityGroupsAreRecordedAndGoneBackTo(t *testing.T) {
	group := func(name, cluster string) placementv1beta1.AffinityGroup {
		return placementv1beta1.AffinityGroup{Name: name, ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: clusterv1beta1.SelectNames(cluster)},
		}}}
	}
	tainted := member("tainted")
	other := member("other")
	tainted.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: "NoExecute"}}
	h := newHub(t, tainted, other, crp(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{AffinityGroups: []placementv1beta1.AffinityGroup{group("local", "tainted"), group("cloud", "other")}}
	}))
	assert.Zero(t, h.schedule().WakeAt)
	assert.Equal(t, map[string]string{"other": "Scheduled crp-0"}, h.bindings())
	binding := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, h.List(t.Context(), binding))
	assert.Equal(t, "cloud", binding.Items[0].Spec.ClusterDecision.AffinityGroup)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(tainted), tainted))
	tainted.Spec.Taints = nil
	require.NoError(t, h.Update(t.Context(), tainted))
	assert.Zero(t, h.schedule().WakeAt, "the policy does not go back")
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.AffinityGroupsFitSinceAnnotation)

	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.Failback = placementv1beta1.FailbackAutomatic
	})
	wake := h.schedule().WakeAt
	assert.Equal(t, []string{"crp-0*"}, h.policies(), "it is the same policy")
	assert.WithinDuration(t, h.clock.Now().Add(10*time.Minute), wake, time.Second)
	noted := h.policy("crp-0")
	assert.Contains(t, noted.Annotations, placementv1beta1.AffinityGroupsFitSinceAnnotation)
	assert.Empty(t, noted.Spec.Policy.Failback)
	h.schedule()
	assert.Equal(t, noted.ResourceVersion, h.policy("crp-0").ResourceVersion, "nothing is written again")

	h.clock.Step(4 * time.Minute)
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.FailbackAfterSeconds = new(int32(200))
	})
	assert.Zero(t, h.schedule().WakeAt)
	assert.Equal(t, map[string]string{"other": "Unscheduled crp-0", "tainted": "Scheduled crp-0"}, h.bindings())
	assert.NotContains(t, h.policy("crp-0").Annotations, placementv1beta1.AffinityGroupsFitSinceAnnotation)
}

// decisions are those in the status of a policy snapshot, in their order, as cluster and reason.
func (h *hub) decisions(policy string) [][2]string {
	h.t.Helper()
	var told [][2]string
	for _, d := range h.policy(policy).Status.ClusterDecisions {
		told = append(told, [2]string{d.ClusterName, d.Reason})
	}
	return told
}

func (h *hub) scored(cluster string) [2]int32 {
	h.t.Helper()
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(h.t, h.Get(h.t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", cluster)}, binding))
	score := binding.Spec.ClusterDecision.ClusterScore
	return [2]int32{*score.AffinityScore, *score.TopologySpreadScore}
}

func TestScoresAreRecordedAndReasonsAreTold(t *testing.T) {
	h := newHub(t, crp(spreadOverRegions(2)), memberIn("a", "east", "9"), memberIn("b", "east", "5"), memberIn("c", "west", "1"), memberIn("d", "west", "3"))
	h.schedule()
	assert.Equal(t, [2]int32{10, -1}, h.scored("a"), "most nodes")
	assert.Equal(t, [2]int32{3, 1}, h.scored("d"), "the other region, and more nodes than c")
	assert.Equal(t, [][2]string{
		{"a", `Successfully scheduled resources for placement in "a" (affinity score: 10, topology spread score: -1): picked by scheduling policy`},
		{"d", `Successfully scheduled resources for placement in "d" (affinity score: 3, topology spread score: 1): picked by scheduling policy`},
		{"b", `Cluster "b" does not score high enough (affinity score: 5, topology spread score: -1)`},
		{"c", `Cluster "c" does not score high enough (affinity score: 0, topology spread score: -1)`},
	}, h.decisions("crp-0"))

	// Whatever has become of the clusters since, their recorded ranks decide who leaves.
	for name, nodes := range map[string]string{"a": "9", "d": "0"} {
		m := memberIn(name, "north", nodes)
		stored := &clusterv1beta1.MemberCluster{}
		require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), stored))
		stored.Labels = m.Labels
		stored.Status = m.Status
		require.NoError(t, h.Update(t.Context(), stored))
	}
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) { *p.Spec.Policy.NumberOfClusters = 1 })
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Unscheduled crp-0", "d": "Scheduled crp-0"}, h.bindings(), "d was picked with the higher topology score")
}

func TestASpreadThatDoesNotLetClustersInSaysSo(t *testing.T) {
	h := newHub(t, crp(spreadOverRegions(3)), memberIn("a", "east", "1"), memberIn("b", "east", "1"), memberIn("c", "west", "1"),
		func() *clusterv1beta1.MemberCluster {
			silent := memberIn("d", "north", "1")
			silent.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-6 * time.Minute))
			return silent
		}())
	h.schedule()
	assert.Equal(t, map[string]string{"b": "Scheduled crp-0", "c": "Scheduled crp-0"}, h.bindings())
	condition := h.policy("crp-0").Status.Conditions[0]
	assert.Equal(t, "2 of 3 clusters found: ClusterEligibility keeps 1 out, TopologySpreadConstraints keeps 1 out (could not find all clusters needed as specified by the scheduling policy, found 2 cluster(s) instead)", condition.Message)
	assert.Equal(t, [][2]string{
		{"a", `ClusterUnschedulable, violated doNotSchedule topology spread constraint "region" (max skew 1)`},
		{"d", "ClusterUnschedulable, cluster is not connected to the fleet: no recent heartbeat signals (last received 6.00 minutes ago)"},
	}, h.decisions("crp-0")[2:], "the one that came closest first")
}

func TestANamedClusterThatIsOutOfReachIsMissedButKeepsWhatItHas(t *testing.T) {
	h := newHub(t, crp(pickFixed("a")), member("a"))
	h.schedule()
	h.clock.Step(6 * time.Minute)
	h.schedule()
	assert.Equal(t, map[string]string{"a": "Scheduled crp-0"}, h.bindings())
	condition := h.policy("crp-0").Status.Conditions[0]
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, "0 of 1 clusters found (could not find all clusters needed as specified by the scheduling policy, found 0 cluster(s) instead)", condition.Message)
	assert.Contains(t, h.decisions("crp-0")[0][1], "no recent heartbeat signals (last received 6.02 minutes ago); what was placed on it before stays")
	assert.Contains(t, bindingReason(t, h, "a"), "Successfully scheduled", "the binding is not written for it")
}

func bindingReason(t *testing.T, h *hub, cluster string) string {
	t.Helper()
	binding := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", cluster)}, binding))
	return binding.Spec.ClusterDecision.Reason
}

// slow is a reader for which reading takes a while.
type slow struct {
	client.Reader
	step func()
}

func (s *slow) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.Reader.List(ctx, list, options...)
	s.step()
	return err
}

func TestAClusterIsNotMissedBecauseReadingTookLong(t *testing.T) {
	h := newHub(t, crp(pickFixed("a")), member("a"))
	a := h.activities()
	a.Live = &slow{h, func() { h.clock.Step(4 * time.Minute) }}
	result, err := a.ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Selected, "what was heard of it since has not been read")
}

func TestOfMoreClustersThanAStatusHoldsItStillSaysWhyOthersAreMissing(t *testing.T) {
	objects := []runtime.Object{crp(pickN(1002))}
	for i := range 1001 {
		objects = append(objects, member(fmt.Sprintf("member-%04d", i)))
	}
	tainted := member("tainted")
	tainted.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Effect: "NoSchedule"}}
	h := newHub(t, append(objects, tainted)...)
	assert.Equal(t, 1001, h.schedule().Selected)
	told := h.decisions("crp-0")
	assert.Len(t, told, 1000)
	assert.Equal(t, [2]string{"tainted", "ClusterUnschedulable, taint k:NoSchedule is not tolerated"}, told[999])
	assert.Equal(t, "member-0998", told[998][0])

	require.NoError(t, h.Delete(t.Context(), member("member-1000")))
	h.schedule()
	told = h.decisions("crp-0")
	assert.Len(t, told, 1000)
	assert.Equal(t, "member-0999", told[999][0], "every selected cluster comes before any other, as long as all of them fit")
}

func TestAnAttemptThatWasOvertakenDoesNotSpoilTheVerdict(t *testing.T) {
	h := newHub(t, crp(pickFixed("a", "b")), member("a"))
	lists := 0
	overtaken := h.activities()
	overtaken.Live = &slow{h, func() {
		if lists++; lists == 2 { // it has read all it will
			require.NoError(t, h.Create(t.Context(), member("b")))
			h.schedule()
		}
	}}
	_, err := overtaken.ScheduleClusters(t.Context(), ref)
	require.Error(t, err, "it is repeated, and looks again")
	assert.Equal(t, metav1.ConditionTrue, h.policy("crp-0").Status.Conditions[0].Status)
	assert.Len(t, h.bindings(), 2)
}

func TestHowLongAClusterHasBeenSilentAloneIsNotNews(t *testing.T) {
	h := newHub(t, crp(pickFixed("a", "b")), member("a"), member("b"))
	h.schedule()
	h.clock.Step(6 * time.Minute)
	h.schedule()
	told := h.decisions("crp-0")
	h.clock.Step(time.Minute)
	h.writes = 0
	h.schedule()
	assert.Zero(t, h.writes)
	assert.Equal(t, told, h.decisions("crp-0"))

	h.edit(pickFixed("a", "b"))
	h.schedule()
	assert.Contains(t, h.decisions("crp-0")[0][1], "last received 7.02 minutes ago", "what is written anyway is up to date")
}

// wholeFleet is a reader that counts how often all clusters are read.
type wholeFleet struct {
	client.Reader
	reads int
}

func (w *wholeFleet) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*clusterv1beta1.MemberClusterList); ok {
		w.reads++
	}
	return w.Reader.List(ctx, list, options...)
}

func TestWhoNamesClustersDoesNotReadTheWholeFleet(t *testing.T) {
	h := newHub(t, crp(pickFixed("a", "b", "a", "gone")), member("a"), member("b"), member("c"))
	a := h.activities()
	reads := &wholeFleet{Reader: h}
	a.Live = reads
	result, err := a.ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 2, result.Selected)
	assert.Equal(t, [2]string{"gone", `Specified cluster "gone" is not found`}, h.decisions("crp-0")[2])
	assert.Zero(t, reads.reads)
	h.edit(pickN(3))
	_, err = a.ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 1, reads.reads)
}
