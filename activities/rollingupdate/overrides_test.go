package rollingupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func cluster(name, env string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
}

func TestOverridesAreRolledOutByTheLabelsOfClusters(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot))
	for _, object := range []client.Object{cluster("a", "test"), cluster("b", "prod"), fixture.OverrideSnapshot("made", "made-0", "crp")} {
		require.NoError(t, r.Create(t.Context(), object))
	}
	request := wf.AdvanceRequest{Overrides: []string{"made-0"}}
	proposed := r.advance(request)
	require.Equal(t, wf.Batch{decided(bound("b", newSnapshot), wf.OpUpdate)}, proposed.Next, "a has no label that the override asks for")

	r.prompt = true
	request.Batch = proposed.Next
	assert.True(t, r.advance(request).Settled)
	assert.Equal(t, []string{"made-0"}, r.binding("b").Spec.ClusterResourceOverrideSnapshots)
	assert.Empty(t, r.binding("a").Spec.ClusterResourceOverrideSnapshots)

	require.NoError(t, r.Update(t.Context(), relabelled(r, "b", "test")))
	proposed = r.advance(wf.AdvanceRequest{Overrides: []string{"made-0"}})
	require.Equal(t, wf.Batch{decided(r.binding("b"), wf.OpUpdate)}, proposed.Next, "a label that changes changes what applies")

	require.NoError(t, r.Delete(t.Context(), fixture.OverrideSnapshot("made", "made-0", "crp")))
	assert.True(t, r.advance(wf.AdvanceRequest{Overrides: []string{"made-0"}}).Changed, "an override that is gone asks for a new selection")
}

func TestAClusterThatIsGoneKeepsTheOverridesThatItHas(t *testing.T) {
	overridden := bound("b", newSnapshot)
	overridden.Spec.ClusterResourceOverrideSnapshots = []string{"made-0"}
	r := newRollout(t, overridden)
	require.NoError(t, r.Create(t.Context(), fixture.OverrideSnapshot("made", "made-0", "crp")))
	assert.Empty(t, r.advance(wf.AdvanceRequest{Overrides: []string{"made-0"}}).Next)
}

func relabelled(r *rollout, name, env string) *clusterv1beta1.MemberCluster {
	r.t.Helper()
	c := &clusterv1beta1.MemberCluster{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: name}, c))
	c.Labels["env"] = env
	return c
}

func TestARolloutThatWaitsNoticesOtherLabels(t *testing.T) {
	r := three(t)
	for _, object := range []client.Object{cluster("a", "test"), fixture.OverrideSnapshot("made", "made-0", "crp")} {
		require.NoError(t, r.Create(t.Context(), object))
	}
	result := r.waiting(wf.AdvanceRequest{Overrides: []string{"made-0"}, Batch: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}})
	before := cluster("a", "test")
	after := &clusterv1beta1.MemberCluster{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(before), after))
	after.Labels["env"] = "prod"
	require.NoError(t, r.Update(t.Context(), after))
	r.tell(before, after)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "a", got.Next[0].Cluster, "it is unavailable as it is, and its override is to be applied")
}
