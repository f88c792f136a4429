package rollingupdate_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const denial = `admission webhook "freeze.example.com" denied the request: not on Saturdays`

// denials are somebody's webhook or policy that refuses each write to the binding of a cluster, and how often it was asked.
type denials struct {
	mu    sync.Mutex
	of    map[string]error
	tries map[string]int
}

func (d *denials) answer(o client.Object) error {
	d.mu.Lock()
	defer d.mu.Unlock()
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
			if err := d.answer(o); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := d.answer(o); err != nil {
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
			assert.Equal(t, 1, denied.triesOf("a"), "nothing is sent again, not even to take the claim back")
			r.clock.Step(time.Second)
			result := r.ended(under)
			require.Len(t, result.Next, 1)
			assert.Equal(t, "a", result.Next[0].Cluster)
			assert.False(t, result.Settled)

			under = r.waiting(wf.AdvanceRequest{Batch: result.Next})
			assert.Equal(t, 2, denied.triesOf("a"))
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
	require.Empty(t, r.ended(under).Next, "after two seconds of refusals it is two seconds until the next try")
	require.Equal(t, 3, denied.triesOf("a"))

	r.rolling = &rollingupdate.Activities{Client: r, Live: r, Works: r, Notifier: r.rolling.Notifier, Clock: r.clock}
	under = r.waiting(wf.AdvanceRequest{})
	assert.Equal(t, 3, denied.triesOf("a"))
	assert.Len(t, r.told().Clusters, 1)
	r.clock.Step(time.Second)
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
	assert.Equal(t, 1, denied.triesOf("a"))
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
	assert.Equal(t, 1, denied.triesOf("a"))
	denied.set("a", nil)
	r.clock.Step(time.Second)
	result := r.ended(under)
	require.Len(t, result.Next, 1)
	assert.Equal(t, "a", result.Next[0].Cluster)
}
