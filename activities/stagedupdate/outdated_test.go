package stagedupdate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// manyClusters is a hub with a run of one stage over more clusters than a policy snapshot names.
func manyClusters(t *testing.T, count int) *hub {
	t.Helper()
	objects := []client.Object{placementObject(), snapshotObject(0), strategyOf(placementv1beta1.StageConfig{Name: "all"}), runObject("example-run", "0")}
	var clusters []string
	for i := range count {
		clusters = append(clusters, fmt.Sprintf("cluster-%04d", i))
		objects = append(objects, bindingObject(clusters[i], placementv1beta1.BindingStateScheduled, ""))
	}
	return newHub(t, append(objects, policyObject(clusters[:min(count, 1000)]...))...)
}

func TestOfMoreClustersThanAPolicySnapshotNamesTheBindingsCount(t *testing.T) {
	const count = 1002
	last := fmt.Sprintf("cluster-%04d", count-1)
	for sentence, test := range map[string]struct {
		change func(h *hub)
		want   string
	}{
		"nothing has changed": {func(*hub) {}, ""},
		"one has come": {func(h *hub) {
			require.NoError(h.t, h.WithWatch.Create(h.t.Context(), bindingObject("cluster-new", placementv1beta1.BindingStateScheduled, "")))
		}, "the cluster count initialized in the clusterStagedUpdateRun is outdated, latest: 1003, recorded: 1002"},
		"one has gone": {func(h *hub) {
			edit(h, h.binding(last), func(b *placementv1beta1.ClusterResourceBinding) {
				b.Spec.State = placementv1beta1.BindingStateUnscheduled
			})
		}, "the cluster count initialized in the clusterStagedUpdateRun is outdated, latest: 1001, recorded: 1002"},
		"one has come for one that has gone": {func(h *hub) {
			require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), h.binding(last)))
			require.NoError(h.t, h.WithWatch.Create(h.t.Context(), bindingObject("cluster-new", placementv1beta1.BindingStateScheduled, "")))
		}, "the clusters selected for clusterResourcePlacement `example-placement` have changed: `cluster-new` is in no stage of the clusterStagedUpdateRun"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := manyClusters(t, count)
			require.True(t, initialize(h, "example-run").Initialized)
			test.change(h)
			delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run", "all", 0), Start: names("cluster-0000")})
			assert.Equal(t, test.want != "", delta.Ended)
			if test.want != "" {
				assert.Equal(t, "Succeeded=False UpdateRunFailed: "+outdated(test.want), conditionOf(h.run("example-run").Status.Conditions, "Succeeded"))
			}
		})
	}
}

func TestACacheThatLagsBehindEndsNoRunOfManyClusters(t *testing.T) {
	h := manyClusters(t, 1001)
	require.True(t, initialize(h, "example-run").Initialized)
	h.acts.Client = lagging{h}
	delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run", "all", 0), Start: names("cluster-0000")})
	assert.False(t, delta.Ended)
}

// lagging is a cache that has not heard of any binding yet.
type lagging struct{ *hub }

func (l lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, bindings := list.(*placementv1beta1.ClusterResourceBindingList); bindings {
		return nil
	}
	return l.hub.List(ctx, list, options...)
}

func TestACacheThatLagsBehindTakesNoClusterFromALaterRun(t *testing.T) {
	h := howTo(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.acts.Client = old{h, h.binding("member2")}
	edit(h, h.binding("member2"), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations = map[string]string{
			placementv1beta1.UpdateRunAnnotation: "later", placementv1beta1.UpdateRunUIDAnnotation: "uid-later",
			placementv1beta1.UpdateRunCreatedAnnotation: h.clock.Now().Add(time.Hour).Format(time.RFC3339),
		}
		b.Spec.ResourceSnapshotName = "example-placement-0-snapshot"
	})
	delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	assert.True(t, delta.Ended)
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "UpdateRunFailed")
	assert.Equal(t, "uid-later", h.binding("member2").Annotations[placementv1beta1.UpdateRunUIDAnnotation])
}

// old is a cache that knows a binding as it was.
type old struct {
	*hub
	binding *placementv1beta1.ClusterResourceBinding
}

func (o old) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if binding, is := into.(*placementv1beta1.ClusterResourceBinding); is && key.Name == o.binding.Name {
		o.binding.DeepCopyInto(binding)
		return nil
	}
	return o.hub.Get(ctx, key, into, options...)
}

// withoutPlacement is a cache that has not heard of the placement yet.
type withoutPlacement struct{ *hub }

func (w withoutPlacement) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, is := into.(*placementv1beta1.ClusterResourcePlacement); is {
		return apierrors.NewNotFound(placementv1beta1.GroupVersion.WithResource("clusterresourceplacements").GroupResource(), key.Name)
	}
	return w.hub.Get(ctx, key, into, options...)
}

func TestACacheThatHasNoPlacementYetEndsNoRun(t *testing.T) {
	h := howTo(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	advance := func() wf.StageDelta {
		return must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	}
	require.False(t, advance().Ended, "read live")
	h.acts.Client = withoutPlacement{h}
	assert.False(t, advance().Ended)
}

// liveReads counts what is read live of placements and policies.
type liveReads struct {
	*hub
	placements, policies int
}

func (l *liveReads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch into.(type) {
	case *placementv1beta1.ClusterResourcePlacement:
		l.placements++
	case *placementv1beta1.ClusterSchedulingPolicySnapshot:
		l.policies++
	}
	return l.hub.Get(ctx, key, into, options...)
}

func TestThePlanOfAQuickRunIsReadFromTheCache(t *testing.T) {
	h := howTo(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	live := &liveReads{hub: h}
	h.acts.Live = live
	advance := func(what string, reads int, ended bool) {
		t.Helper()
		before := *live
		delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
		assert.Equal(t, ended, delta.Ended, what)
		assert.Equal(t, reads, live.placements-before.placements, what)
		assert.Equal(t, reads, live.policies-before.policies, what)
	}
	advance("the first time it is read live", 1, false)
	h.clock.Step(4 * time.Second)
	advance("soon afterwards not", 0, false)
	h.clock.Step(time.Second)
	advance("but later, as the cache may hear nothing any more", 1, false)
	edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Type = placementv1beta1.RollingUpdateRolloutStrategyType
	})
	advance("and before it ends the run", 1, true)
}
