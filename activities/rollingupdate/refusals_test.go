package rollingupdate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const denial = `admission webhook "freeze.example.com" denied the request: not on Saturdays`

// denials are a webhook or policy that refuses each write to the binding of a cluster, and how often it was asked.
type denials struct {
	mu    sync.Mutex
	of    map[string]error
	tries map[string]int
	// specOnly lets writes pass that change nothing of the spec.
	specOnly bool
}

func (d *denials) answer(o client.Object, patch client.Patch) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if patch != nil && d.specOnly {
		if data, err := patch.Data(o); err != nil || !strings.Contains(string(data), `"path":"/spec/`) {
			return err
		}
	}
	d.tries[o.GetName()]++
	return d.of[o.GetName()]
}

// set has the writes for a cluster answered with an error; nil lets them pass.
func (d *denials) set(cluster string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[placementv1beta1.BindingName("crp", "crp-uid", cluster)] = err
}

func (d *denials) triesOf(cluster string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tries[placementv1beta1.BindingName("crp", "crp-uid", cluster)]
}

// denying puts a webhook before the hub.
func (r *rollout) denying() *denials {
	d := &denials{of: map[string]error{}, tries: map[string]int{}}
	r.WithWatch = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := d.answer(o, patch); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := d.answer(o, nil); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	})
	return d
}

// answers is an error as the API server answers with a code.
func answers(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: denial}}
}

// told returns what the placement tells of refused writes.
func (r *rollout) told() rules.RefusedWrites {
	r.t.Helper()
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(r.t, r.Get(r.t.Context(), client.ObjectKey{Name: "crp"}, p))
	return rules.RefusedWritesOf(p)
}

// A webhook answers with 403, an admission policy as a failed test of a patch does: with 422.
func TestARefusedWriteKeepsNobodyWaitingAndIsTriedAgainInTime(t *testing.T) {
	for sentence, err := range map[string]error{
		"by a webhook": answers(http.StatusForbidden, metav1.StatusReasonForbidden), "by a policy": answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot))
			r.roll(2, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("2")})
			r.prompt = true
			denied := r.denying()
			denied.set("a", err)
			decided := r.advance(wf.AdvanceRequest{})
			require.Len(t, decided.Next, 2)

			under := r.waiting(wf.AdvanceRequest{Batch: decided.Next})
			assert.Equal(t, newSnapshot, r.binding("b").Spec.ResourceSnapshotName, "the other cluster goes on")
			since := r.clock.Now().UTC()
			require.Len(t, r.told().Clusters, 1)
			told := r.told().Clusters[0]
			assert.Equal(t, []any{"a", denial, since, since.Add(time.Second)}, []any{told.Cluster, told.Why, told.Since, told.Until})
			assert.Equal(t, 2, denied.triesOf("a"), "it is sent once, and so is what takes the claim back")
			r.clock.Step(time.Second)
			result := r.ended(under)
			require.Len(t, result.Next, 1)
			assert.Equal(t, "a", result.Next[0].Cluster)
			assert.False(t, result.Settled)

			under = r.waiting(wf.AdvanceRequest{Batch: result.Next})
			assert.Equal(t, 4, denied.triesOf("a"))
			assert.Equal(t, since, r.told().Clusters[0].Since, "since the first")
			r.set("a", func(b *placementv1beta1.ClusterResourceBinding) { b.Labels["frozen"] = "no" })
			result = r.ended(under)
			require.Len(t, result.Next, 1, "another object may pass")

			denied.set("a", nil)
			result = r.advance(wf.AdvanceRequest{Batch: result.Next})
			assert.True(t, result.Settled)
			assert.Zero(t, result.Refused)
			assert.Equal(t, newSnapshot, r.binding("a").Spec.ResourceSnapshotName)
			assert.Empty(t, r.told())
		})
	}
}

func TestAnotherProcessKnowsWhatIsRefused(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot))
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
	denied := r.denying()
	denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	next := r.advance(wf.AdvanceRequest{}).Next
	for range 2 {
		under := r.waiting(wf.AdvanceRequest{Batch: next})
		r.clock.Step(time.Second)
		next = r.ended(under).Next
		require.Len(t, next, 1)
	}
	under := r.waiting(wf.AdvanceRequest{Batch: next, WakeAt: r.clock.Now()})
	r.clock.Step(time.Second)
	require.Empty(t, r.ended(under).Next, "after two seconds of refusals it is as long until the next try")
	require.Equal(t, 6, denied.triesOf("a"))

	r.rolling = &rollingupdate.Activities{Client: r, Live: r, Works: r, Notifier: r.rolling.Notifier, Clock: r.clock}
	under = r.waiting(wf.AdvanceRequest{})
	assert.Equal(t, 6, denied.triesOf("a"))
	require.Len(t, r.told().Clusters, 1)
	r.clock.SetTime(r.told().Clusters[0].Until)
	require.Len(t, r.ended(under).Next, 1)
}

// An attempt that was left over may still write to a cluster that could not be taken back: the claim keeps it.
func TestTheClaimKeepsAClusterThatCannotBeTakenBack(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), scheduled("b"))
	r.roll(3, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("3")})
	r.prompt = true
	denied := r.denying()
	denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	decided := r.advance(wf.AdvanceRequest{})
	require.NotEmpty(t, decided.Next)
	under := r.waiting(wf.AdvanceRequest{Batch: decided.Next})
	require.NoError(t, r.Create(t.Context(), scheduled("c")))
	r.tell(scheduled("c"), func() client.Object { c := scheduled("c"); c.Generation = 2; return c }())
	result := r.ended(under)
	require.Len(t, result.Next, 1)
	assert.Equal(t, "c", result.Next[0].Cluster)
	under = r.waiting(wf.AdvanceRequest{Batch: result.Next})
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: "crp"}, p))
	assert.Contains(t, p.Annotations[placementv1beta1.RolloutClaimAnnotation], `"a":`)
	assert.Contains(t, p.Annotations[placementv1beta1.RolloutClaimAnnotation], `"c":`)
	assert.Equal(t, 2, denied.triesOf("a"))
	r.clock.Step(time.Second)
	result = r.ended(under)
	require.Len(t, result.Next, 1)
	assert.Equal(t, "a", result.Next[0].Cluster)
}

// What cannot be removed keeps no one else either.
func TestARefusedRemovalIsTriedAgainInTime(t *testing.T) {
	r := newRollout(t, unscheduled("a"), bound("b", oldSnapshot))
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("1")})
	r.prompt = true
	denied := r.denying()
	denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	decided := r.advance(wf.AdvanceRequest{})
	require.NotEmpty(t, decided.Next)
	under := r.waiting(wf.AdvanceRequest{Batch: decided.Next})
	assert.Equal(t, 2, denied.triesOf("a"))
	denied.set("a", nil)
	r.clock.Step(time.Second)
	result := r.ended(under)
	require.Len(t, result.Next, 1)
	assert.Equal(t, "a", result.Next[0].Cluster)
}

// What is refused gives its place under maxUnavailable back: nothing of the cluster was changed, and no attempt can change it any more.
func TestARefusedClusterLeavesItsPlaceToOthers(t *testing.T) {
	for sentence, err := range map[string]error{
		"by a webhook": answers(http.StatusForbidden, metav1.StatusReasonForbidden), "by a policy": answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot), bound("d", oldSnapshot))
			r.roll(4, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("25%")})
			r.prompt = true
			denied := r.denying()
			denied.specOnly = true
			denied.set("a", err)
			result := r.advance(wf.AdvanceRequest{})
			for _, cluster := range []string{"a", "b", "c"} {
				require.Equal(t, []string{"update " + cluster}, steps(result), "one at a time")
				result = r.advance(wf.AdvanceRequest{Batch: result.Next, WakeAt: r.clock.Now()})
			}
			require.Equal(t, []string{"update d"}, steps(result))
			under := r.waiting(wf.AdvanceRequest{Batch: result.Next})
			require.Len(t, r.told().Clusters, 1)
			assert.Equal(t, "a", r.told().Clusters[0].Cluster)
			assert.Equal(t, 1, denied.triesOf("a"), "it is tried again in time, though what takes its claim back was written")
			r.clock.Step(time.Second)
			assert.Equal(t, []string{"update a"}, steps(r.ended(under)))
			assert.Equal(t, oldSnapshot, r.binding("a").Spec.ResourceSnapshotName)
		})
	}
}

// A claim that cannot be given back either keeps its place, and those that wait for it say so.
func TestAClaimThatIsRefusedTooSaysWhatItHolds(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot))
	r.roll(2, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
	r.denying().set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	result := r.advance(wf.AdvanceRequest{})
	for range 2 {
		require.Equal(t, []string{"update a"}, steps(result))
		under := r.waiting(wf.AdvanceRequest{Batch: result.Next})
		r.clock.Step(time.Second)
		result = r.ended(under)
	}
	under := r.waiting(wf.AdvanceRequest{Batch: result.Next, WakeAt: r.clock.Now()})
	r.clock.Step(time.Second)
	result = r.ended(under)
	assert.Empty(t, result.Next)
	assert.Equal(t, 1, result.Blocked)
	assert.Contains(t, result.Held, "cluster a, whose refused write cannot be taken back,")
}

// Many refused clusters cost no requests as long as they are not tried again.
func TestRefusedClustersAreNotReadAgain(t *testing.T) {
	const clusters = 20
	var bindings []*placementv1beta1.ClusterResourceBinding
	for i := range clusters {
		bindings = append(bindings, bound(fmt.Sprintf("c%02d", i), oldSnapshot))
	}
	r := newRollout(t, append(bindings, scheduled("x"))...)
	r.roll(clusters+1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("100%")})
	r.prompt = true
	denied := r.denying()
	for i := range clusters {
		denied.set(fmt.Sprintf("c%02d", i), answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	}
	under := r.waiting(wf.AdvanceRequest{Batch: r.advance(wf.AdvanceRequest{}).Next})
	var reads atomic.Int64
	r.rolling.Live = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*placementv1beta1.ClusterResourceBinding); ok {
				reads.Add(1)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	require.NoError(t, r.Create(t.Context(), scheduled("y")))
	r.tell(scheduled("y"), func() client.Object { y := scheduled("y"); y.Generation = 2; return y }())
	result := r.ended(under)
	require.Equal(t, []string{"add y"}, steps(result))
	r.waiting(wf.AdvanceRequest{Batch: result.Next})
	assert.Less(t, reads.Load(), int64(clusters))
}

// The replacement may have been written a moment before: that is no refusal to remove what it replaces.
func TestWhatCannotBeHandedOverIsNoRefusedRemoval(t *testing.T) {
	r := newRollout(t, leftAt("a", now), scheduledTo("n"))
	r.failsOver(placementv1beta1.ClusterFailover{
		PurgeMode:         placementv1beta1.PurgeDirectly,
		StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.job}"}}},
	})
	work := &placementv1beta1.Work{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "fleet-member-a", Name: "crp-work"}, work))
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier:  placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
		StateValues: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}},
	}}
	require.NoError(t, r.Status().Update(t.Context(), work))
	result := r.advance(wf.AdvanceRequest{})
	require.Equal(t, []string{"remove a"}, steps(result))
	r.WithWatch = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if o.GetName() == r.binding("n").Name && r.binding("n").Spec.ResourceSnapshotName == "" {
				written := r.binding("n")
				written.Spec.ResourceSnapshotName = newSnapshot
				written.Spec.State = placementv1beta1.BindingStateBound
				require.NoError(t, c.Update(ctx, written))
			}
			return c.Patch(ctx, o, patch, options...)
		},
	})
	r.advance(wf.AdvanceRequest{Batch: result.Next, WakeAt: now})
	assert.Empty(t, r.told())
}

// A user who may annotate placements delays no write for longer than a refusal does.
func TestWhatAPlacementTellsIsBounded(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot))
	r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
	denied := r.denying()
	denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	r.waiting(wf.AdvanceRequest{Batch: r.advance(wf.AdvanceRequest{}).Next})
	told := r.told()
	require.Len(t, told.Clusters, 1)
	told.Clusters[0].Until = now.Add(1000 * time.Hour)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Annotations[placementv1beta1.RefusedWritesAnnotation] = told.Encode()
	})
	r.rolling = &rollingupdate.Activities{Client: r, Live: r, Works: r, Notifier: r.rolling.Notifier, Clock: r.clock}
	under := r.waiting(wf.AdvanceRequest{})
	r.clock.Step(30 * time.Second)
	assert.Equal(t, []string{"update a"}, steps(r.ended(under)))
}

// What is left to update runs, or is not to be written any more, is not told for ever.
func TestARefusalIsForgottenOnceNothingIsToBeWritten(t *testing.T) {
	refused := func(t *testing.T) *rollout {
		r := newRollout(t, bound("a", oldSnapshot))
		r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
		denied := r.denying()
		denied.specOnly = true
		denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
		under := r.waiting(wf.AdvanceRequest{Batch: r.advance(wf.AdvanceRequest{}).Next})
		r.clock.Step(time.Second)
		r.ended(under)
		require.NotEmpty(t, r.told())
		return r
	}
	t.Run("External", func(t *testing.T) {
		r := refused(t)
		r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
		})
		assert.True(t, r.advance(wf.AdvanceRequest{}).Changed)
		assert.Empty(t, r.told())
	})
	t.Run("an eviction that is taken back", func(t *testing.T) {
		r := newRollout(t, bound("a", newSnapshot), bound("b", newSnapshot))
		r.roll(2, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
		r.edit(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy = nil })
		denied := r.denying()
		denied.specOnly = true
		denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
		e := eviction("a", 1)
		r.ask(e)
		result := r.advance(wf.AdvanceRequest{})
		require.Equal(t, []string{"evict a"}, steps(result))
		under := r.waiting(wf.AdvanceRequest{Batch: result.Next})
		require.NotEmpty(t, r.told())
		r.clock.Step(time.Second)
		r.ended(under)
		require.NoError(t, r.Delete(t.Context(), e))
		assert.True(t, r.advance(wf.AdvanceRequest{}).Settled)
		assert.Empty(t, r.told())
	})
}

// The claim is an annotation, for all of which the API server has 256 KiB.
func TestAClaimHasRoom(t *testing.T) {
	const clusters = 900
	name := func(i int) string { return fmt.Sprintf("c%03d-%s", i, strings.Repeat("x", 240)) }
	var bindings []*placementv1beta1.ClusterResourceBinding
	for i := range clusters {
		bindings = append(bindings, scheduled(name(i)))
	}
	r := newRollout(t, bindings...)
	r.roll(clusters, placementv1beta1.RollingUpdateConfig{MaxSurge: percentOrNumber("100%")})
	decided := r.advance(wf.AdvanceRequest{})
	assert.NotEmpty(t, decided.Next)
	assert.Less(t, len(decided.Next), 200*1024/len(name(0)))
}

// A claim that is refused for what it is was not overtaken by another: to plan anew would be refused again, at once.
func TestAClaimThatIsRefusedFails(t *testing.T) {
	for sentence, refusal := range map[string]error{
		"it is too long": apierrors.NewInvalid(schema.GroupKind{}, "crp", field.ErrorList{field.TooLong(field.NewPath("metadata", "annotations"), "", 256*1024)}),
		"by a policy":    answers(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid),
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRollout(t, bound("a", oldSnapshot))
			r.roll(1, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
			decided := r.advance(wf.AdvanceRequest{})
			r.WithWatch = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					if o.GetName() == "crp" {
						return refusal
					}
					return c.Patch(ctx, o, patch, options...)
				},
			})
			_, err := r.attempt(wf.AdvanceRequest{Snapshot: newSnapshot, Batch: decided.Next, Epoch: r.claimed() + 1})
			assert.ErrorContains(t, err, "claiming clusters on placement crp: "+refusal.Error())
		})
	}
}

// The cache may not show yet that a claim was given back.
func TestAClaimThatWasGivenBackIsNotClaimedAgain(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot), bound("c", oldSnapshot))
	r.roll(3, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1")})
	r.prompt = true
	denied := r.denying()
	denied.specOnly = true
	denied.set("a", answers(http.StatusForbidden, metav1.StatusReasonForbidden))
	stale := r.binding("a")
	result := r.advance(wf.AdvanceRequest{Batch: r.advance(wf.AdvanceRequest{}).Next})
	require.Equal(t, []string{"update b"}, steps(result))
	r.rolling.Client = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if b, is := o.(*placementv1beta1.ClusterResourceBinding); is && key.Name == stale.Name {
				stale.DeepCopyInto(b)
				return nil
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	r.advance(wf.AdvanceRequest{Batch: result.Next, WakeAt: r.clock.Now()})
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: "crp"}, p))
	assert.Contains(t, p.Annotations[placementv1beta1.RolloutClaimAnnotation], `"b":`)
	assert.NotContains(t, p.Annotations[placementv1beta1.RolloutClaimAnnotation], `"a":`)
}
