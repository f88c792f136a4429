package rollingupdate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// eviction asks to take the placement off a cluster, some seconds after the first.
func eviction(cluster string, after int) *placementv1beta1.ClusterResourcePlacementEviction {
	return &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("off-%s-%d", cluster, after), UID: types.UID(fmt.Sprintf("eviction-%s-%d", cluster, after)), Generation: 1,
			CreationTimestamp: metav1.NewTime(now.Add(time.Duration(after) * time.Second)),
		},
		Spec: placementv1beta1.PlacementEvictionSpec{PlacementName: "crp", ClusterName: cluster},
	}
}

func (r *rollout) ask(objects ...client.Object) {
	r.t.Helper()
	for _, o := range objects {
		require.NoError(r.t, r.Create(r.t.Context(), o))
	}
}

// budget lets so many clusters of a PickN placement of three be unavailable.
func (r *rollout) budget(most int) {
	r.t.Helper()
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(3))}
	})
	r.ask(&placementv1beta1.ClusterResourcePlacementDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "crp"}, Spec: placementv1beta1.PlacementDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt(most))},
	})
}

// said is the outcome of an eviction in short: Valid, Executed, and the last message.
func (r *rollout) said(e *placementv1beta1.ClusterResourcePlacementEviction) []string {
	r.t.Helper()
	stored := &placementv1beta1.ClusterResourcePlacementEviction{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKeyFromObject(e), stored))
	var out []string
	message := ""
	for _, kind := range []string{"Valid", "Executed"} {
		if c := meta.FindStatusCondition(stored.Status.Conditions, kind); c != nil {
			out = append(out, kind+" "+string(c.Status))
			message = c.Message
		}
	}
	return append(out, message)
}

// attempt runs the activity once, which may fail.
func (r *rollout) attempt(in wf.AdvanceRequest) (wf.AdvanceResult, error) {
	in.Placement = ref
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(r.rolling.AdvancePlacement, activity.RegisterOptions{Name: "advance"})
	var out wf.AdvanceResult
	value, err := env.ExecuteActivity("advance", in)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

// evictAll does what the workflow does for evictions until there are none left.
func (r *rollout) evictAll() {
	r.t.Helper()
	request := wf.AdvanceRequest{EvictionsOnly: true}
	for range 20 {
		result, err := r.attempt(request)
		require.NoError(r.t, err)
		switch {
		case result.Changed:
			request = wf.AdvanceRequest{EvictionsOnly: true}
		case len(result.Next) == 0:
			require.True(r.t, result.Settled, "%+v", result)
			return
		default:
			request.Batch = result.Next
			request.Epoch = result.Epoch
		}
	}
	r.t.Fatal("it does not end")
}

const without = "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"

func bySpec(allowed string, available, total int) string {
	return fmt.Sprintf("Eviction is %s by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d", allowed, available, total)
}

func (r *rollout) left() []string {
	r.t.Helper()
	var list placementv1beta1.ClusterResourceBindingList
	require.NoError(r.t, r.List(r.t.Context(), &list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Spec.TargetCluster)
	}
	return names
}

func TestEvictionsWithoutABudget(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), scheduled("c"))
	r.ask(eviction("a", 0), eviction("c", 1), eviction("d", 2), eviction("a", 3))
	r.evictAll()
	assert.Equal(t, []string{"Valid True", "Executed True", without}, r.said(eviction("a", 0)))
	assert.Equal(t, []string{"Valid True", "Executed False", "Eviction is blocked, placement has not propagated resources to target cluster yet"}, r.said(eviction("c", 1)))
	assert.Equal(t, []string{"Valid False", "The placement is not on this cluster, there is nothing to evict (Failed to find scheduler decision for placement in cluster targeted by eviction)"}, r.said(eviction("d", 2)))
	assert.Equal(t, "Valid False", r.said(eviction("a", 3))[0], "it came too late")
	assert.ElementsMatch(t, []string{"b", "c"}, r.left())
}

func TestTwoEvictionsSpendABudgetOfOneOnce(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot), bound("c", newSnapshot))
	r.budget(1)
	r.ask(eviction("b", 0), eviction("a", 1))
	r.evictAll()
	assert.Equal(t, []string{"Valid True", "Executed True", bySpec("allowed", 3, 3)}, r.said(eviction("b", 0)))
	assert.Equal(t, "Executed False", r.said(eviction("a", 1))[1])
	assert.ElementsMatch(t, []string{"a", "c"}, r.left())
}

func TestEvictionsArePartOfARollout(t *testing.T) {
	r := three(t)
	r.claims = true
	r.ask(eviction("c", 0))
	result := r.advance(wf.AdvanceRequest{})
	require.Len(t, result.Next, 1, "what is evicted leaves nothing for an update: %+v", result)
	assert.Equal(t, wf.OpEvict, result.Next[0].Op)
	result = r.advance(wf.AdvanceRequest{Batch: result.Next, Epoch: result.Epoch})
	assert.True(t, result.Changed, "who is evicted may be replaced")
	assert.Equal(t, []string{"Valid True", "Executed True", without}, r.said(eviction("c", 0)))
}

func TestAWaitingRolloutNoticesAnEviction(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot))
	r.report("a", metav1.ConditionFalse)
	result := r.waiting(wf.AdvanceRequest{})
	e := eviction("c", 0)
	r.ask(e)
	r.tell(e, e)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "off-c-0", got.Next[0].Eviction)
}

// A process dies after each of its writes; what comes after either knows the history, or
// has only what is stored. Meanwhile the cluster may have been picked again.
func TestAnEvictionHappensOnceWhateverDies(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for _, again := range []bool{false, true} {
			for writes := range 7 {
				t.Run(fmt.Sprintf("history lost %t, picked again %t, dies after %d writes", lost, again, writes), func(t *testing.T) {
					dieAndGoOn(t, writes, lost, again)
				})
			}
		}
	}
}

func dieAndGoOn(t *testing.T, writes int, lost, again bool) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot), bound("c", newSnapshot))
	r.budget(1)
	r.ask(eviction("b", 0), eviction("a", 1))
	proposed, err := r.attempt(wf.AdvanceRequest{EvictionsOnly: true})
	require.NoError(t, err)
	require.Len(t, proposed.Next, 2)
	request := wf.AdvanceRequest{EvictionsOnly: true, Batch: proposed.Next, Epoch: proposed.Epoch}
	deleted := r.mortal(writes)
	_, err = r.attempt(request)
	if writes < 4 {
		require.Error(t, err, "there are a claim, a deletion and two outcomes to write")
	}
	r.mortal(-1)
	if again && *deleted > 0 {
		fresh := bound("b", newSnapshot)
		fresh.UID = "uid-b-again"
		r.ask(fresh)
		require.NoError(t, r.Sync(t.Context(), fresh))
		r.report("b", metav1.ConditionTrue)
	}
	more := r.mortal(-1)
	if !lost {
		_, err = r.attempt(request)
		require.NoError(t, err)
	}
	r.evictAll()
	assert.Equal(t, []string{"Valid True", "Executed True", bySpec("allowed", 3, 3)}, r.said(eviction("b", 0)))
	other := r.said(eviction("a", 1))
	executed := 1
	if other[1] == "Executed True" {
		executed++
		assert.True(t, again, "there is a budget for a second one only after the first was replaced")
	}
	assert.Equal(t, executed, *deleted+*more, "as many bindings were deleted as evictions were executed")
}

// mortal lets the process die after so many writes, negative for never, and counts the
// deletions.
func (r *rollout) mortal(writes int) *int {
	var mu sync.Mutex
	deleted := 0
	died := errors.New("the process died")
	lives := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if writes == 0 {
			return false
		}
		writes--
		return true
	}
	r.rolling.Client = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if !lives() {
				return died
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if !lives() {
				return died
			}
			mu.Lock()
			deleted++
			mu.Unlock()
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if !lives() {
				return died
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return &deleted
}

func TestEvictionsFromAPlacementThatIsNotThere(t *testing.T) {
	r := newRollout(t)
	e := eviction("a", 0)
	r.ask(e)
	refused, err := r.rolling.RefuseEvictions(t.Context(), ref)
	require.NoError(t, err)
	assert.False(t, refused, "it is there")
	assert.Equal(t, []string{""}, r.said(e))

	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Finalizers = []string{"f/f"} })
	p := crp()
	require.NoError(t, r.Delete(t.Context(), p))
	_, err = r.rolling.RefuseEvictions(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, []string{"Valid False", "The placement is being deleted, which clears the cluster without an eviction (Found deleting ClusterResourcePlacement targeted by eviction)"}, r.said(e))

	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Finalizers = nil })
	late := eviction("a", 1)
	r.ask(late)
	_, err = r.rolling.RefuseEvictions(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, []string{"Valid False", "The hub has no placement of this name: correct spec.placementName in another eviction (Failed to find ClusterResourcePlacement targeted by eviction)"}, r.said(late))
	assert.Equal(t, "The placement is being deleted, which clears the cluster without an eviction (Found deleting ClusterResourcePlacement targeted by eviction)", r.said(e)[1], "an outcome is final")
}
