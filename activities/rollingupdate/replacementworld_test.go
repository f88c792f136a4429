package rollingupdate_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// swapping is a hub on which clusters are replaced by others at random, and of which every write to a binding is judged: it takes no copy
// away that is available unless one that is takes its place, or the cluster itself goes.
type swapping struct {
	*rollout
	random *rand.Rand
	names  []string
	// wanted is how many clusters the placement picks; as many as there are if it picks all.
	wanted int
	// storing is held from a write until it is judged.
	storing sync.Mutex
	depth   int
	uids    int
	broken  error
	journal []string
	// left are the bindings whose cluster has begun to leave the fleet since.
	left map[types.UID]bool
	// written counts the writes to bindings, removed the available copies that were taken away.
	written, removed int
}

func newSwapping(t *testing.T, seed uint64) *swapping {
	t.Helper()
	w := &swapping{rollout: newRollout(t), random: rand.New(rand.NewPCG(seed, 23)), left: map[types.UID]bool{}}
	for i := range 3 + w.random.IntN(3) {
		w.names = append(w.names, string(rune('a'+i)))
		w.join(w.names[i])
	}
	w.wanted = 1 + w.random.IntN(2)
	w.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		surges := []string{"1", "2"}
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(w.wanted))}
		switch w.random.IntN(5) {
		case 0:
			p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
			w.wanted = len(w.names)
			surges = append(surges, "0") // a PickN placement stays then
		case 1:
			p.Spec.Policy.ScaleDownOrder = placementv1beta1.ScaleDownBySpread
			p.Spec.Policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{{
				TopologyKey: "region", WhenUnsatisfiable: placementv1beta1.ScheduleAnyway, MaxSkew: new(int32(1))}}
		}
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
			MaxUnavailable: percentOrNumber([]string{"0", "1", "100%"}[w.random.IntN(3)]), MaxSurge: percentOrNumber(surges[w.random.IntN(len(surges))]),
		}}
	})
	w.rolling.Clock = impatient{w.clock}
	w.converge()
	return w
}

// join has a cluster become a member.
func (w *swapping) join(name string) {
	w.uids++
	m := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("member-%d", w.uids)), Finalizers: []string{"example.com/stays"},
			Labels: map[string]string{"region": []string{"east", "west"}[int(name[0])%2]}},
		Status: clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-time.Second)),
			Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue}},
		}}},
	}
	for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	require.NoError(w.t, w.Create(w.t.Context(), m))
}

// findMember returns a member; nil if it is gone.
func (w *swapping) findMember(name string) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{}
	if w.Get(w.t.Context(), client.ObjectKey{Name: name}, m) != nil {
		return nil
	}
	return m
}

// stored returns the bindings that are stored.
func (w *swapping) stored() []placementv1beta1.ClusterResourceBinding {
	var list placementv1beta1.ClusterResourceBindingList
	require.NoError(w.t, w.List(w.t.Context(), &list))
	return list.Items
}

// listUp returns the clusters of the fleet whose copies are available, as the hub has it.
func (w *swapping) listUp() map[string]bool {
	up := map[string]bool{}
	for _, b := range w.stored() {
		var works placementv1beta1.WorkList
		require.NoError(w.t, w.List(w.t.Context(), &works, client.InNamespace("fleet-member-"+b.Spec.TargetCluster),
			client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.Name}))
		m := w.findMember(b.Spec.TargetCluster)
		if m != nil && m.DeletionTimestamp.IsZero() && b.DeletionTimestamp.IsZero() && b.Spec.ResourceSnapshotName != "" &&
			workmodel.StateOf(&b, works.Items).Available {
			up[b.Spec.TargetCluster] = true
		}
	}
	return up
}

// judge makes a write to a binding, and judges it by what is stored before and after.
func (w *swapping) judge(o client.Object, write func() error) error {
	written, is := o.(*placementv1beta1.ClusterResourceBinding)
	if !is {
		return write()
	}
	w.storing.Lock()
	defer w.storing.Unlock()
	w.written++
	before := w.listUp()
	was := &placementv1beta1.ClusterResourceBinding{}
	there := w.Get(w.t.Context(), client.ObjectKeyFromObject(written), was) == nil
	err := write()
	after := w.listUp()
	cluster := written.Spec.TargetCluster
	if there {
		cluster = was.Spec.TargetCluster
	}
	w.note("writes %s, which was %s waiting for %q, up %v, then %v: %v", cluster, was.Spec.State, rules.ReplacedBy(was),
		slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)), err)
	if !before[cluster] || after[cluster] || w.left[was.UID] {
		return err
	}
	w.removed++
	by := rules.ReplacedBy(was)
	taker := w.findMember(by)
	if (!after[by] || taker == nil || !clusterrules.IsFit(taker)) && len(after) < w.wanted && w.broken == nil {
		w.broken = fmt.Errorf("the copy on %s is taken away while those on %v are available", cluster, slices.Sorted(maps.Keys(after)))
	}
	return err
}

func (w *swapping) note(format string, args ...any) {
	w.journal = append(w.journal, fmt.Sprintf("%*s", 2*w.depth, "")+fmt.Sprintf(format, args...))
}

// process is a client of one process, which may die after some writes; before any, others may go on.
func (w *swapping) process(writes int) client.WithWatch {
	var mu sync.Mutex
	// One write of the process goes on at a time, and the others of the world while it is held up.
	carryOut := func(calm bool, write func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if writes == 0 {
			return errKilled
		}
		writes--
		w.meanwhile(calm)
		return write()
	}
	return interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return carryOut(false, func() error {
				return w.judge(o, func() error {
					w.uids++
					o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
					return c.Create(ctx, o, opts...)
				})
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return carryOut(false, func() error { return w.judge(o, func() error { return c.Patch(ctx, o, p, opts...) }) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return carryOut(true, func() error { return w.judge(o, func() error { return c.Delete(ctx, o, opts...) }) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return carryOut(false, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// meanwhile lets others go on while a write is held up. While a copy is about to be deleted no cluster leaves or falls ill: nothing can keep one
// from doing so between the last look and the write.
func (w *swapping) meanwhile(calm bool) {
	if w.depth != 1 || w.random.IntN(4) > 0 {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for range w.random.IntN(3) {
		w.happen(calm)
	}
	w.turn(w.random.IntN(8) - 1)
}

// turn is one execution of the workflow: it schedules, and then rolls out in some calls; it dies after some writes if that is not negative.
func (w *swapping) turn(writes int) {
	w.depth++
	defer func() { w.depth-- }()
	process := w.process(writes)
	w.note("turn with %d writes", writes)
	if _, err := placement.NewActivities(process, process, nil, w.clock).ScheduleClusters(w.t.Context(), ref); err != nil {
		return
	}
	request := wf.AdvanceRequest{}
	rolling := &rollingupdate.Activities{Client: process, Live: process, Works: w, Notifier: w.rolling.Notifier, Clock: w.rolling.Clock}
	calls := 6
	if writes >= 0 {
		calls = 1 + w.random.IntN(3)
	}
	for range calls {
		request.Snapshot, request.Placement = "crp-1-snapshot", ref
		request.WakeAt = w.clock.Now().Add(time.Second)
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivityWithOptions(rolling.AdvancePlacement, activity.RegisterOptions{Name: "advance"})
		value, err := env.ExecuteActivity("advance", request)
		if err != nil {
			w.note("advance: %v", err)
			return
		}
		var result wf.AdvanceResult
		require.NoError(w.t, value.Get(&result))
		if result.Changed || result.Gone {
			return
		}
		request = wf.AdvanceRequest{Batch: result.Next, InFlight: result.InFlight, Epoch: result.Epoch, Basis: result.Basis}
	}
}

// happen lets something happen that is not the hub's; while it is calm, no cluster leaves or falls ill.
func (w *swapping) happen(calm bool) {
	name := w.names[w.random.IntN(len(w.names))]
	other := w.names[w.random.IntN(len(w.names))]
	m := w.findMember(name)
	kind := w.random.IntN(16)
	w.storing.Lock()
	defer w.storing.Unlock()
	w.note("happens %d to %s (%s)", kind, name, other)
	switch {
	case calm && (kind == 6 || kind == 7 || kind == 14):
	case kind < 6:
		w.says(name, metav1.ConditionTrue)
	case kind == 6:
		w.says(name, metav1.ConditionFalse)
	case kind == 7 && m != nil && m.DeletionTimestamp.IsZero():
		for _, b := range w.stored() {
			w.left[b.UID] = w.left[b.UID] || b.Spec.TargetCluster == name
		}
		require.NoError(w.t, w.Delete(w.t.Context(), m))
	case kind == 8:
		w.finish(name)
	case kind == 9 && m == nil:
		w.join(name)
	case m == nil:
	case kind < 13 && name != other:
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, other)
		require.NoError(w.t, w.Update(w.t.Context(), m))
	case kind == 13:
		delete(m.Annotations, clusterv1beta1.ReplacedByAnnotation)
		require.NoError(w.t, w.Update(w.t.Context(), m))
	case kind == 14:
		status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[w.random.IntN(3)]
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: status, Reason: "Said"})
		require.NoError(w.t, w.Update(w.t.Context(), m))
	case kind == 15:
		m.Spec.Taints = nil
		if w.random.IntN(2) == 0 {
			m.Spec.Taints = []clusterv1beta1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		}
		require.NoError(w.t, w.Update(w.t.Context(), m))
	}
}

// says has a member report of what it has, if it has anything.
func (w *swapping) says(cluster string, available metav1.ConditionStatus) {
	for _, b := range w.stored() {
		if b.Spec.TargetCluster == cluster && b.Spec.ResourceSnapshotName != "" && b.DeletionTimestamp.IsZero() {
			require.NoError(w.t, w.Sync(w.t.Context(), &b)) // the binding controller repairs
			w.report(cluster, available)
			meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: available, Reason: "Reported",
				ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(w.clock.Now())})
			require.NoError(w.t, w.Status().Update(w.t.Context(), &b))
		}
	}
}

// finish removes what is left of a copy that goes, and of a cluster that leaves.
func (w *swapping) finish(cluster string) {
	for _, b := range w.stored() {
		if b.Spec.TargetCluster == cluster && !b.DeletionTimestamp.IsZero() {
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-" + cluster, Name: "crp-work"}}
			require.NoError(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), work)))
			b.Finalizers = nil
			require.NoError(w.t, w.Update(w.t.Context(), &b))
		}
	}
	if m := w.findMember(cluster); m != nil && !m.DeletionTimestamp.IsZero() {
		m.Finalizers = nil
		require.NoError(w.t, w.Update(w.t.Context(), m))
	}
}

// converge lets the hub go on while all is well, until nothing is left to write.
func (w *swapping) converge() {
	for quiet := 0; quiet < 2; quiet++ {
		for _, name := range w.names {
			w.finish(name)
			w.says(name, metav1.ConditionTrue)
		}
		before := w.written
		if w.turn(-1); w.written != before {
			quiet = -1
		}
	}
}

// calm has every cluster be there, and well.
func (w *swapping) calm() {
	for _, name := range w.names {
		w.finish(name)
		m := w.findMember(name)
		if m == nil {
			w.join(name)
			continue
		}
		m.Spec.Taints = nil
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue, Reason: "Said"})
		require.NoError(w.t, w.Update(w.t.Context(), m))
	}
}

// Whatever becomes of the clusters, wherever processes die and whatever the user wants next: what is available on a cluster that is replaced
// stays until it is available on another. In the end, once all is well, nothing is left over.
func TestACopyThatIsAvailableStaysUntilAnotherIs(t *testing.T) {
	const chunks = 8
	per := max(1, worlds(t)/4/chunks)
	var mu sync.Mutex
	removed := 0
	t.Run("worlds", func(t *testing.T) {
		for chunk := range chunks {
			t.Run(fmt.Sprint(chunk), func(t *testing.T) {
				t.Parallel()
				for i := range per {
					w := liveSwapping(t, uint64(chunk*per+i))
					mu.Lock()
					removed += w.removed
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d available copies were taken away in %d fleets", removed, per*chunks)
	require.Greater(t, removed, per*chunks/4)
}

func liveSwapping(t *testing.T, seed uint64) *swapping {
	t.Helper()
	w := newSwapping(t, seed)
	for range 8 + w.random.IntN(8) {
		for range w.random.IntN(4) {
			w.happen(false)
		}
		w.turn(w.random.IntN(10) - 1)
		require.NoError(t, w.broken, "seed %d:\n%s", seed, w.tail())
	}
	w.calm()
	w.note("all is well")
	w.depth = 5
	w.converge()
	require.NoError(t, w.broken, "seed %d:\n%s", seed, w.tail())
	up := w.listUp()
	require.Len(t, w.stored(), len(up), "seed %d: nothing is left over\n%s", seed, w.tail())
	require.GreaterOrEqual(t, len(up), min(w.wanted, 1), "seed %d", seed)
	if w.wanted < len(w.names) {
		require.Len(t, up, w.wanted, "seed %d\n%s", seed, w.tail())
	}
	w.checkReplaced(up)
	return w
}

// checkReplaced judges that what is to be replaced has been, where the replacement has a meaning and the new cluster had no copy of its own.
func (w *swapping) checkReplaced(up map[string]bool) {
	var fleet clusterv1beta1.MemberClusterList
	require.NoError(w.t, w.List(w.t.Context(), &fleet))
	for i := range fleet.Items {
		m := &fleet.Items[i]
		by := clusterrules.ReplacedBy(m)
		if by == "" || clusterrules.RefuseReplacement(m, by, fleet.Items) != "" || !up[m.Name] {
			continue
		}
		require.True(w.t, up[by] && w.wanted < len(w.names), "%s is not replaced by %s\n%s", m.Name, by, w.tail())
	}
}

func (w *swapping) tail() string {
	out := ""
	for _, line := range w.journal[max(0, len(w.journal)-60):] {
		out += line + "\n"
	}
	return out
}
