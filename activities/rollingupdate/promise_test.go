package rollingupdate_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// flow is one execution of the workflow, as far as it concerns rollouts.
type flow struct {
	*world
	request wf.AdvanceRequest
}

// step runs the activity once, in a process that dies after some writes if that is not
// negative. A process that died is followed by another attempt, or by another execution
// that knows nothing.
func (f *flow) step(writes int) bool {
	rolling := &rollingupdate.Activities{
		Client: f.process(writes), Live: f.world, Works: f.world, Notifier: f.rolling.Notifier, Clock: f.rolling.Clock,
	}
	f.request.Snapshot, f.request.Placement = fmt.Sprintf("crp-%d-snapshot", f.snapshot), ref
	f.request.WakeAt = f.clock.Now().Add(time.Second)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(rolling.AdvancePlacement, activity.RegisterOptions{Name: "advance"})
	value, err := env.ExecuteActivity("advance", f.request)
	if err != nil {
		if f.random.IntN(2) == 0 {
			f.request = wf.AdvanceRequest{}
		}
		return false
	}
	var result wf.AdvanceResult
	require.NoError(f.t, value.Get(&result))
	if result.Changed || result.Gone {
		f.request = wf.AdvanceRequest{}
		return false
	}
	f.request = wf.AdvanceRequest{Batch: result.Next, InFlight: result.InFlight, Epoch: result.Epoch, Basis: result.Basis}
	return result.Settled
}

// happen lets something happen that the rollout has no part in. Members report only
// between attempts, and are heard at once: nothing can keep a member from reporting between
// the look of an attempt and its write.
func (w *world) happen(calm bool) {
	ctx := w.t.Context()
	cluster := w.clusters[w.random.IntN(len(w.clusters))]
	name := placementv1beta1.BindingName("crp", "crp-uid", cluster)
	b := &placementv1beta1.ClusterResourceBinding{}
	there := w.Get(ctx, client.ObjectKey{Name: name}, b) == nil
	kind := w.random.IntN(19)
	switch {
	case kind >= 17:
		w.stopTheLine()
	case kind >= 15:
		w.divide(b, there)
	case kind >= 13:
		if there {
			w.answer(b)
		}
	case kind < 4 && w.depth.Load() == 0:
		w.member(cluster, metav1.ConditionTrue)
	case kind == 4 && w.depth.Load() == 0 && !calm:
		w.member(cluster, metav1.ConditionFalse)
	case kind == 5 && !calm:
		w.snapshot++
		old := &placementv1beta1.ClusterResourceSnapshot{}
		require.NoError(w.t, w.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("crp-%d-snapshot", w.snapshot-1)}, old))
		old.Labels[placementv1beta1.IsLatestSnapshotLabel] = "false"
		require.NoError(w.t, w.Update(ctx, old))
		w.ask(snapshotNamed(fmt.Sprintf("crp-%d-snapshot", w.snapshot), "true"))
	case kind == 6 && !calm:
		w.counter++
		w.ask(eviction(cluster, w.counter))
	case kind == 10 && there && !calm:
		w.lose(b)
	case kind >= 11: // between two attempts the user may change how many are held back
		if w.depth.Load() == 0 && !calm {
			w.edit(func(p *placementv1beta1.ClusterResourcePlacement) { w.holdBack(p.Spec.Strategy.RollingUpdate) })
		}
	case kind >= 7 && w.counts() && w.depth.Load() > 0:
	case kind == 7 && there && !calm && b.Spec.ResourceSnapshotName != "":
		b.Spec.State = map[placementv1beta1.BindingState]placementv1beta1.BindingState{
			placementv1beta1.BindingStateBound: placementv1beta1.BindingStateUnscheduled, placementv1beta1.BindingStateUnscheduled: placementv1beta1.BindingStateBound,
		}[b.Spec.State]
		b.Generation++
		require.NoError(w.t, w.Update(ctx, b))
		w.hear(b)
	case kind >= 8 && kind <= 10 && !there:
		w.counter++
		fresh := scheduled(cluster)
		fresh.UID = types.UID(fmt.Sprintf("%d-again-%s", w.counter, cluster))
		w.ask(fresh)
		w.hear(fresh)
	default:
		w.catchUp(0.5)
	}
}

// divide is the scheduler that decides other replicas for a cluster, or a workflow that brings what is decided into force, and may
// die on the way.
func (w *world) divide(b *placementv1beta1.ClusterResourceBinding, there bool) {
	if there && b.DeletionTimestamp == nil && w.random.IntN(2) == 0 {
		b.Spec.ClusterDecision.Assignments = shareOf(w.random.Int32N(9))
		b.Generation++
		require.NoError(w.t, w.Update(w.t.Context(), b))
		return
	}
	scaling := &rollingupdate.Activities{Client: w.process(w.random.IntN(6) - 1), Live: w, Works: w, Clock: w.rolling.Clock}
	_, _ = scaling.ScaleReplicas(w.t.Context(), wf.ScaleRequest{Placement: ref, Snapshot: fmt.Sprintf("crp-%d-snapshot", w.snapshot)}) // it may be killed
}

// lose is somebody who deletes a binding by hand. That is heard at once, too.
func (w *world) lose(b *placementv1beta1.ClusterResourceBinding) {
	if w.depth.Load() > 0 {
		return
	}
	w.checker.UserDeletes(b.Name)
	require.NoError(w.t, w.Delete(w.t.Context(), b))
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.bindings, b.Name)
}

// counts says whether a limit follows from which clusters are selected: then what changes that is
// heard at once, since nothing can keep it from changing between the look of an attempt and its write.
func (w *world) counts() bool {
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: "crp"}, p))
	return w.all || p.Spec.Strategy.RollingUpdate.Partition != nil
}

// hear lets the caches have a binding at once if a limit follows from it.
func (w *world) hear(b *placementv1beta1.ClusterResourceBinding) {
	if !w.counts() {
		return
	}
	now := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(b), now))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bindings[now.Name] = *now
}

// member reports on its Work, as it is now.
func (w *world) member(cluster string, available metav1.ConditionStatus) {
	b := &placementv1beta1.ClusterResourceBinding{}
	if w.Get(w.t.Context(), client.ObjectKey{Name: placementv1beta1.BindingName("crp", "crp-uid", cluster)}, b) != nil || b.Spec.ResourceSnapshotName == "" {
		return
	}
	require.NoError(w.t, w.Sync(w.t.Context(), b)) // the binding controller repairs
	if len(b.Spec.ReplicaAssignments) > 0 {
		replicas := b.Spec.ReplicaAssignments[0].Replicas
		ready := replicas
		if available != metav1.ConditionTrue {
			ready = w.random.Int32N(replicas + 1)
		}
		w.count(cluster, replicas, ready)
	}
	w.report(cluster, available)
	work := &placementv1beta1.Work{}
	key := client.ObjectKey{Namespace: "fleet-member-" + cluster, Name: "crp-work"}
	require.NoError(w.t, w.Get(w.t.Context(), key, work))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.works[key] = *work
}

// worldsVariable sets how many random fleets are tried, for a long run.
const worldsVariable = "FLEETFLOW_PROMISE_WORLDS"

// worlds is how many there are to be.
func worlds(t *testing.T) int {
	t.Helper()
	asked := os.Getenv(worldsVariable)
	if asked == "" {
		return 400
	}
	n, err := strconv.Atoi(asked)
	require.NoError(t, err, worldsVariable)
	return n
}

// Whatever the fleet, whatever happens meanwhile, wherever processes die, however many
// attempts are at work and however old what they read is: no write breaks the promise.
func TestNoWriteBreaksThePromise(t *testing.T) {
	const chunks = 8
	var judged atomic.Int64
	per := worlds(t) / chunks
	t.Run("worlds", func(t *testing.T) {
		for chunk := range chunks {
			t.Run(fmt.Sprint(chunk), func(t *testing.T) {
				t.Parallel()
				for i := range per {
					judged.Add(int64(live(t, uint64(chunk*per+i))))
				}
			})
		}
	})
	t.Logf("%d writes of %d fleets were judged", judged.Load(), per*chunks)
	require.Greater(t, judged.Load(), int64(2*per*chunks))
}

// live lets one world go on for a while, and returns how many writes were judged.
func live(t *testing.T, seed uint64) int {
	t.Helper()
	w := newWorld(t, seed)
	f := &flow{world: w}
	for range 6 + w.random.IntN(8) {
		for range w.random.IntN(3) {
			w.happen(false)
		}
		f.step(w.random.IntN(8) - 1)
		require.NoError(t, w.broken, "seed %d:\n%s", seed, w.tail())
	}
	return w.checker.Judged
}

func (w *world) tail() string {
	out := ""
	for _, line := range w.journal[max(0, len(w.journal)-40):] {
		out += line + "\n"
	}
	return out
}
