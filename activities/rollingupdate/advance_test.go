package rollingupdate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// old and new are the snapshots a rollout goes between.
const oldSnapshot, newSnapshot = "crp-0-snapshot", "crp-1-snapshot"

// decided is a change as the planner proposes it for a binding as it is.
func decided(b *placementv1beta1.ClusterResourceBinding, op string) wf.Change {
	return wf.Change{
		Cluster: b.Spec.TargetCluster, Op: op, UID: string(b.UID),
		FromState: string(b.Spec.State), FromRevision: workmodel.Revision(b),
	}
}

func three(t *testing.T) *rollout {
	t.Helper()
	return newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot))
}

func TestAdvanceProposesOneOfThreeByDefault(t *testing.T) {
	r := three(t)
	assert.Equal(t, wf.AdvanceResult{Next: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}, Blocked: 2},
		r.advance(wf.AdvanceRequest{}))
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName, "what is proposed is not written")
}

func TestAdvanceWritesItsBatchAndWaitsForIt(t *testing.T) {
	r := three(t)
	request := wf.AdvanceRequest{Epoch: 1, Batch: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}}
	result := r.waiting(request)
	assert.Equal(t, newSnapshot, r.binding("a").Spec.ResourceSnapshotName)
	assert.Equal(t, oldSnapshot, r.binding("b").Spec.ResourceSnapshotName)
	r.report("b", metav1.ConditionTrue) // news of others do not end it
	r.report("a", metav1.ConditionTrue)
	want := wf.AdvanceResult{Next: wf.Batch{decided(bound("b", oldSnapshot), wf.OpUpdate)}, Blocked: 1}
	assert.Equal(t, want, r.ended(result))
	assert.Equal(t, now, r.progressAt)

	written := r.binding("a").ResourceVersion
	assert.Equal(t, want, r.advance(request), "a second attempt comes to the same")
	assert.Equal(t, written, r.binding("a").ResourceVersion, "and writes nothing")
}

func TestARolloutGoesOneAtATimeAndSettles(t *testing.T) {
	r := three(t)
	r.prompt = true
	var order []string
	request := wf.AdvanceRequest{}
	for range 10 {
		result := r.advance(request)
		if result.Settled {
			assert.Equal(t, []string{"a", "b", "c"}, order)
			assert.Empty(t, result.Next)
			return
		}
		require.Len(t, result.Next, 1)
		order = append(order, result.Next[0].Cluster)
		request.Batch = result.Next
	}
	t.Fatal("it does not settle")
}

func TestTheLastBatchIsNotWaitedFor(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), bound("b", oldSnapshot))
	result := r.advance(wf.AdvanceRequest{Batch: wf.Batch{decided(bound("b", oldSnapshot), wf.OpUpdate)}})
	assert.Equal(t, wf.AdvanceResult{Settled: true, InFlight: 1}, result)
}

func TestFirstPlacementsGoTogether(t *testing.T) {
	r := newRollout(t, scheduled("a"), scheduled("b"), scheduled("c"))
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, wf.Batch{
		decided(scheduled("a"), wf.OpAdd), decided(scheduled("b"), wf.OpAdd), decided(scheduled("c"), wf.OpAdd),
	}, result.Next)
	result = r.advance(wf.AdvanceRequest{Batch: result.Next})
	assert.True(t, result.Settled)
	for _, name := range []string{"a", "b", "c"} {
		assert.Equal(t, placementv1beta1.BindingStateBound, r.binding(name).Spec.State)
	}
}

func TestWhatIsNoLongerPickedIsRemoved(t *testing.T) {
	r := newRollout(t, bound("a", newSnapshot), unscheduled("b"))
	result := r.advance(wf.AdvanceRequest{})
	assert.Equal(t, wf.Batch{decided(unscheduled("b"), wf.OpRemove)}, result.Next)
	result = r.advance(wf.AdvanceRequest{Batch: result.Next})
	assert.Equal(t, wf.AdvanceResult{Settled: true}, result)
	var left placementv1beta1.ClusterResourceBindingList
	require.NoError(t, r.List(t.Context(), &left))
	assert.Len(t, left.Items, 1)
}

func TestABatchIsFencedByWhatItWasDecidedOn(t *testing.T) {
	for sentence, test := range map[string]struct {
		op     string
		change func(*placementv1beta1.ClusterResourceBinding)
	}{
		"update of another binding of the name": {wf.OpUpdate, func(b *placementv1beta1.ClusterResourceBinding) { b.UID = "another" }},
		"update of one no longer picked": {wf.OpUpdate, func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateUnscheduled
		}},
		"update of one at another revision": {wf.OpUpdate, func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "crp-7-snapshot" }},
		"update of one applied otherwise": {wf.OpUpdate, func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply}
		}},
		"removal of one picked again": {wf.OpRemove, func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.State = placementv1beta1.BindingStateBound }},
	} {
		t.Run(sentence, func(t *testing.T) {
			start := bound("a", oldSnapshot)
			if test.op == wf.OpRemove {
				start = unscheduled("a")
			}
			r := newRollout(t, start, bound("b", newSnapshot))
			change := decided(start, test.op)
			r.set("a", test.change)
			stored := r.binding("a")
			result := r.advance(wf.AdvanceRequest{Batch: wf.Batch{change}})
			assert.Equal(t, stored.ResourceVersion, r.binding("a").ResourceVersion)
			for _, next := range result.Next {
				assert.NotEqual(t, change, next, "a new decision rests on what there is")
			}
		})
	}
}

func TestAnAttemptThatDiedBetweenBindingAndWorkIsFinished(t *testing.T) {
	r := three(t)
	change := decided(bound("a", oldSnapshot), wf.OpUpdate)
	r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	r.prompt = true
	result := r.advance(wf.AdvanceRequest{Batch: wf.Batch{change}})
	require.Len(t, result.Next, 1)
	assert.Equal(t, "b", result.Next[0].Cluster)
}

// The process may be away for long between a decision and its write.
func TestABatchThatTheLimitsNoLongerAllowIsNotWritten(t *testing.T) {
	r := three(t)
	change := decided(bound("a", oldSnapshot), wf.OpUpdate)
	r.report("c", metav1.ConditionFalse) // lost by itself, after the decision
	r.set("c", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	result := r.waiting(wf.AdvanceRequest{Batch: wf.Batch{change}})
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName, "two of three would be unavailable")
	require.NoError(t, r.Sync(t.Context(), r.binding("c")))
	r.report("c", metav1.ConditionTrue)
	assert.Equal(t, wf.AdvanceResult{Next: wf.Batch{change}, Blocked: 1}, r.ended(result), "it comes again when it may")
}

func TestARefusedChangeOfAnAvailableClusterStillNeedsBudget(t *testing.T) {
	for sentence, request := range map[string]wf.AdvanceRequest{
		"in the batch":            {Batch: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}},
		"in flight, it was said":  {InFlight: 1},
		"neither, for comparison": {},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRollout(t, bound("a", "crp-7-snapshot"), bound("b", newSnapshot), bound("c", newSnapshot))
			r.report("b", metav1.ConditionFalse)
			result := r.waiting(request)
			assert.Equal(t, "crp-7-snapshot", r.binding("a").Spec.ResourceSnapshotName)
			r.report("b", metav1.ConditionTrue)
			got := r.ended(result)
			assert.Equal(t, wf.Batch{decided(bound("a", "crp-7-snapshot"), wf.OpUpdate)}, got.Next)
			assert.Zero(t, got.InFlight)
		})
	}
}

// lagging is a cache that is behind.
type lagging struct {
	client.Client
	behind client.Reader
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if _, binding := o.(*placementv1beta1.ClusterResourceBinding); binding {
		return l.behind.Get(ctx, key, o, options...)
	}
	return l.Client.Get(ctx, key, o, options...)
}

func (l lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, bindings := list.(*placementv1beta1.ClusterResourceBindingList); bindings {
		return l.behind.List(ctx, list, options...)
	}
	return l.Client.List(ctx, list, options...)
}

func TestARefusedChangeIsNotProposedAgainFromACacheThatLags(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", newSnapshot))
	before := newRollout(t, bound("a", oldSnapshot), bound("b", newSnapshot))
	r.rolling.Client = lagging{r, before}
	change := decided(bound("a", oldSnapshot), wf.OpUpdate)
	r.set("a", func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateUnscheduled
	})
	result := r.advance(wf.AdvanceRequest{Batch: wf.Batch{change}})
	assert.Equal(t, wf.Batch{decided(r.binding("a"), wf.OpRemove)}, result.Next)
}

func TestAdvanceSaysWhenThereIsAnotherPlan(t *testing.T) {
	request := wf.AdvanceRequest{Batch: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}}
	external := func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Generation = 2
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	}
	relabel := func(r *rollout) {
		snapshot := &placementv1beta1.ClusterResourceSnapshot{}
		require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: newSnapshot}, snapshot))
		snapshot.Labels[placementv1beta1.IsLatestSnapshotLabel] = "false"
		require.NoError(r.t, r.Update(r.t.Context(), snapshot))
		told := &metav1.PartialObjectMetadata{ObjectMeta: snapshot.ObjectMeta}
		r.tell(told, told)
	}
	for sentence, test := range map[string]struct {
		change func(r *rollout)
		before wf.AdvanceResult
		during wf.AdvanceResult
	}{
		"the placement is gone": {
			func(r *rollout) {
				require.NoError(r.t, r.Delete(r.t.Context(), crp()))
				going := crp()
				going.Generation = 2
				r.tell(crp(), going)
			},
			wf.AdvanceResult{Gone: true}, wf.AdvanceResult{Changed: true, Reschedule: true},
		},
		"the placement is another one": {
			func(r *rollout) { r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.UID = "another" }) },
			wf.AdvanceResult{Gone: true}, wf.AdvanceResult{Changed: true, Reschedule: true},
		},
		"update runs shall roll it out": {
			func(r *rollout) { r.edit(external) },
			wf.AdvanceResult{Changed: true, Reschedule: true}, wf.AdvanceResult{Changed: true, Reschedule: true},
		},
		"there is a later snapshot": {relabel, wf.AdvanceResult{Changed: true}, wf.AdvanceResult{Changed: true}},
	} {
		t.Run(sentence+" before it", func(t *testing.T) {
			r := three(t)
			test.change(r)
			assert.Equal(t, test.before, r.advance(request))
			assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName, "nothing is written")
		})
		t.Run(sentence+" while it waits", func(t *testing.T) {
			r := three(t)
			result := r.waiting(request)
			test.change(r)
			assert.Equal(t, test.during, r.ended(result))
		})
	}
}

func TestANewlyPickedClusterIsPlannedForAtOnce(t *testing.T) {
	r := three(t)
	result := r.waiting(wf.AdvanceRequest{Batch: wf.Batch{decided(bound("a", oldSnapshot), wf.OpUpdate)}})
	d := scheduled("d")
	require.NoError(t, r.Create(t.Context(), d))
	informer, err := r.informers.FakeInformerFor(t.Context(), d)
	require.NoError(t, err)
	informer.Add(d)
	got := r.ended(result)
	assert.False(t, got.Changed)
	assert.Equal(t, wf.Batch{decided(scheduled("d"), wf.OpAdd)}, got.Next)
	assert.Equal(t, 1, got.InFlight)
}

func TestAClusterInFlightHoldsTheBudgetInTheNextCallToo(t *testing.T) {
	r := three(t)
	r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	result := r.waiting(wf.AdvanceRequest{InFlight: 1})
	require.NoError(t, r.Sync(t.Context(), r.binding("a")))
	r.report("a", metav1.ConditionTrue)
	got := r.ended(result)
	assert.Equal(t, now, r.progressAt)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "b", got.Next[0].Cluster)
}

// The limits hold the others back because a is not available. One of them that goes down is free to
// be rewritten: the fix may be what it needs, and nobody else would notice for minutes.
func TestAHeldBackClusterThatGoesDownIsUpdatedAtOnce(t *testing.T) {
	r := three(t)
	r.report("a", metav1.ConditionFalse)
	r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	result := r.waiting(wf.AdvanceRequest{WakeAt: r.clock.Now().Add(5 * time.Minute)})
	r.report("b", metav1.ConditionFalse)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "b", got.Next[0].Cluster)
}

func TestWhatCannotBeTrackedCountsAsAvailableAfterItsTime(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", newSnapshot), bound("c", oldSnapshot))
	seconds := int32(30)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{UnavailablePeriodSeconds: &seconds}}
	})
	r.report("b", metav1.ConditionTrue, placementv1beta1.ReasonWorkNotTrackable)
	result := r.waiting(wf.AdvanceRequest{})
	r.clock.Step(30 * time.Second)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "a", got.Next[0].Cluster)
}

func TestTheTimeOfWhatCannotBeTrackedRunsFromTheReport(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", newSnapshot), bound("c", oldSnapshot))
	seconds := int32(30)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{UnavailablePeriodSeconds: &seconds}}
	})
	r.report("b", metav1.ConditionFalse)
	later := r.clock.Now().Add(10 * time.Minute)
	result := r.waiting(wf.AdvanceRequest{WakeAt: later})
	r.clock.Step(time.Second)
	r.report("b", metav1.ConditionTrue, placementv1beta1.ReasonWorkNotTrackable)
	<-r.clock.waits // it waits again, until then
	r.clock.Step(29 * time.Second)
	select {
	case got := <-result:
		t.Fatalf("it is not over: %+v", got)
	default:
	}
	r.clock.Step(time.Second)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "a", got.Next[0].Cluster)
}

func TestAClusterCountsAsAvailableOnceItHasBeenForMinReadySeconds(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", newSnapshot), bound("c", oldSnapshot))
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{MinReadySeconds: new(int32(30))}}
	})
	for _, cluster := range []string{"a", "c"} {
		r.says(cluster, metav1.ConditionTrue)
	}
	r.clock.Step(time.Minute)
	r.report("b", metav1.ConditionTrue)
	result := r.waiting(wf.AdvanceRequest{WakeAt: r.clock.Now().Add(10 * time.Minute)})
	r.says("b", metav1.ConditionTrue)
	<-r.clock.waits // that it is available does not count yet
	r.clock.Step(20 * time.Second)
	r.says("b", metav1.ConditionFalse)
	r.says("b", metav1.ConditionTrue)
	r.clock.Step(10 * time.Second)
	got := r.ended(result)
	assert.Empty(t, got.Next, "a break begins the time anew")
	assert.WithinDuration(t, r.clock.Now().Add(20*time.Second), got.WakeAt, 0)

	result = r.waiting(wf.AdvanceRequest{WakeAt: got.WakeAt})
	r.clock.Step(20 * time.Second)
	got = r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "a", got.Next[0].Cluster)
}

func TestTheWaitIsBoundedByTheWorkflow(t *testing.T) {
	r := three(t)
	r.report("a", metav1.ConditionFalse)
	r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	for sentence, test := range map[string]struct{ in, after time.Duration }{
		"as far as it says":            {time.Minute, time.Minute},
		"but a second at least":        {0, time.Second},
		"also if its clock is not our": {-time.Hour, time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			result := r.waiting(wf.AdvanceRequest{WakeAt: r.clock.Now().Add(test.in)})
			r.clock.Step(test.after - 1)
			select {
			case got := <-result:
				t.Fatalf("too early: %+v", got)
			default:
			}
			r.clock.Step(1)
			assert.Equal(t, 2, r.ended(result).Blocked)
		})
	}
}

func TestLimitsComeFromTheStrategy(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot), bound("d", oldSnapshot))
	half := intstr.FromString("50%")
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &half}}
	})
	assert.Len(t, r.advance(wf.AdvanceRequest{}).Next, 2)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(6))}
	}) // two slots unfilled, three may be unavailable
	assert.Len(t, r.advance(wf.AdvanceRequest{}).Next, 1)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"a", "b", "c", "d", "e", "f", "g", "h"},
		}
	})
	assert.Empty(t, r.ended(func() chan wf.AdvanceResult {
		result := r.waiting(wf.AdvanceRequest{})
		r.clock.Step(time.Hour)
		return result
	}()).Next, "four slots unfilled, four may be unavailable")
}

// What is proposed is in a history twice, and a rollout on thousands of clusters proposes all of them.
func TestTheProposalForAThousandClustersIsSmall(t *testing.T) {
	many := make([]*placementv1beta1.ClusterResourceBinding, 1000)
	for i := range many {
		many[i] = scheduled(fmt.Sprintf("member-cluster-of-edge-%04d", i))
		many[i].UID = types.UID(fmt.Sprintf("%08x-7d1b-4c6a-9f5e-0123456789ab", i))
	}
	r := newRollout(t, many...)
	result := r.advance(wf.AdvanceRequest{})
	require.Len(t, result.Next, 1000)
	text, err := json.Marshal(result)
	require.NoError(t, err)
	assert.Less(t, len(text), 45_000)
}

// A batch that the version before has recorded names the binding, by its whole UID.
func TestABatchOfTheVersionBeforeIsWritten(t *testing.T) {
	r := three(t)
	r.prompt = true
	a := bound("a", oldSnapshot)
	change := decided(a, wf.OpUpdate)
	change.Binding = a.Name
	r.advance(wf.AdvanceRequest{Batch: wf.Batch{change}})
	assert.Equal(t, newSnapshot, r.binding("a").Spec.ResourceSnapshotName)
}

// The limits let nothing begin until a second cluster is available: the first is no reason to return.
func TestABurstThatFreesNothingDoesNotEndACall(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot), bound("d", oldSnapshot))
	for _, down := range []string{"a", "b"} {
		r.report(down, metav1.ConditionFalse)
		r.set(down, func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = newSnapshot })
	}
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
			MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("0"),
		}}
	})
	result := r.waiting(wf.AdvanceRequest{})
	require.NoError(t, r.Sync(t.Context(), r.binding("a")))
	r.report("a", metav1.ConditionTrue)
	<-r.clock.waits // it waits again
	require.NoError(t, r.Sync(t.Context(), r.binding("b")))
	r.report("b", metav1.ConditionTrue)
	got := r.ended(result)
	require.Len(t, got.Next, 1)
	assert.Equal(t, "c", got.Next[0].Cluster)
	assert.Equal(t, now, r.progressAt)
}

// The API server answers the claim with the placement as it is by then: that is not what the batch was decided for.
func TestAPlacementThatChangesBeforeItsClaimIsPlannedAnew(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot))
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
	next := r.advance(wf.AdvanceRequest{}).Next
	require.Len(t, next, 1)
	changed := false
	r.WithWatch = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := o.(*placementv1beta1.ClusterResourcePlacement); is && !changed {
				changed = true
				p := &placementv1beta1.ClusterResourcePlacement{}
				require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(o), p))
				p.Generation++
				require.NoError(t, c.Update(ctx, p))
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	result := r.advance(wf.AdvanceRequest{Batch: next})
	require.True(t, changed)
	assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName, "nothing is written of what the placement was")
	assert.False(t, result.Settled)
}
