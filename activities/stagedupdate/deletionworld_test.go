package stagedupdate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	k8sclock "k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientinterceptor "sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/stagedupdate"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/promise"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// impatient is a clock on which every wait is over at once.
type impatient struct{ *clock }

// NewTimer returns a timer that fires at once.
func (c impatient) NewTimer(time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(0)
	c.Step(0)
	return timer
}

// drainFinalizer is what a hook of the worlds names.
const drainFinalizer = "example.com/drain"

// clearing is a hub in which everything happens at random while the deletion stage of a run clears clusters, and whose every write
// is judged.
type clearing struct {
	*hub
	random   *rand.Rand
	checker  *promise.Checker
	clusters []string
	// storing is held from a write until it is judged: else another attempt, which sees what is stored, would be judged by what it has
	// made of that before.
	storing sync.Mutex
	// mu guards what follows: clusters are written to side by side.
	mu      sync.Mutex
	depth   int
	broken  error
	journal []string
	// cleared are clusters whose binding has been gone, picked those that were picked again.
	cleared, picked map[string]bool
	last            *placementv1beta1.ClusterStagedUpdateRun
	// process makes the attempts until it dies.
	process *stagedupdate.Activities
}

func newClearing(t *testing.T, seed uint64) *clearing {
	t.Helper()
	c := &clearing{random: rand.New(rand.NewPCG(seed, 11)), cleared: map[string]bool{}, picked: map[string]bool{}}
	var objects []client.Object
	for i := range 1 + c.random.IntN(5) {
		name := fmt.Sprintf("member%d", 4+i)
		c.clusters = append(c.clusters, name)
		b := bindingObject(name, placementv1beta1.BindingStateUnscheduled, oldSnapshot)
		if c.random.IntN(2) == 0 {
			b.Finalizers = names(placementv1beta1.WorkFinalizer)
		}
		objects = append(objects, b, clusterObject(name, "region", []string{"east", "west"}[i%2]))
	}
	c.hub = howTo(t, objects...)
	if c.random.IntN(2) == 0 {
		edit(c.hub, get(c.hub, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
			s.Spec.OnMembershipChange = placementv1beta1.MembershipChangeContinue
		})
	}
	require.True(t, initialize(c.hub, "example-run-2").Initialized)
	editStatus(c.hub, c.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		recorder := updaterun.Recorder{Run: r, Now: begin}
		for i := range r.Status.StagesStatus {
			recorder.ClustersSucceeded(recorder.Stage(i), updaterun.ClusterNames(recorder.Stage(i)))
			recorder.StageSucceeded(recorder.Stage(i))
		}
	})
	edit(c.hub, get(c.hub, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Lifecycle = c.anyHooks()
	})
	c.events = nil
	c.process = c.another()
	c.watch(t)
	return c
}

// anyHooks are the lifecycle hooks of half of the worlds.
func (c *clearing) anyHooks() *placementv1beta1.ClusterLifecycle {
	hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{hookMark: "yes"}}
	switch c.random.IntN(4) {
	case 0:
	case 1:
		hook = placementv1beta1.ClusterHook{FinalizersHandler: []string{drainFinalizer}}
	default:
		return nil
	}
	return &placementv1beta1.ClusterLifecycle{PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}}
}

// watch tells the checker what there is, and has it told of every write from now on.
func (c *clearing) watch(t *testing.T) {
	c.checker = promise.New(get(c.hub, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"))
	var bindings placementv1beta1.ClusterResourceBindingList
	require.NoError(t, c.unwatched.List(t.Context(), &bindings))
	for i := range bindings.Items {
		c.checker.Seed(&bindings.Items[i])
	}
	for _, name := range c.clusters {
		c.checker.Labels(name, c.cluster(name).Labels)
	}
	c.last = c.run("example-run-2")
	inner := c.WithWatch
	observe := func(o client.Object, write func() error) error {
		c.storing.Lock()
		defer c.storing.Unlock()
		err := write()
		if apierrors.IsNotFound(err) || err == nil || err.Error() == errDied.Error() {
			c.observe(o)
		}
		return err
	}
	c.WithWatch = clientinterceptor.NewClient(inner, clientinterceptor.Funcs{
		Update: func(ctx context.Context, k client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return observe(o, func() error { return k.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, k client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			c.meanwhile()
			return observe(o, func() error { return k.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, k client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			c.meanwhile()
			return observe(o, func() error { return k.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, k client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			c.meanwhile()
			return observe(o, func() error { return k.SubResource(sub).Update(ctx, o, opts...) })
		},
	})
}

func (c *clearing) cluster(name string) *clusterv1beta1.MemberCluster {
	return get(c.hub, &clusterv1beta1.MemberCluster{}, "", name)
}

// observe judges what is stored after a write.
func (c *clearing) observe(o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	switch o := o.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		err = c.judgeBinding(o)
	case *placementv1beta1.ClusterStagedUpdateRun:
		err = c.judgeRun()
	case *placementv1beta1.ClusterResourcePlacement:
		c.checker.Placement(get(c.hub, &placementv1beta1.ClusterResourcePlacement{}, "", o.Name))
	}
	if c.broken == nil {
		c.broken = err
	}
}

// judgeBinding judges what is stored of a binding.
func (c *clearing) judgeBinding(o *placementv1beta1.ClusterResourceBinding) error {
	now := &placementv1beta1.ClusterResourceBinding{}
	cluster := o.Spec.TargetCluster
	gone := apierrors.IsNotFound(c.unwatched.Get(c.t.Context(), client.ObjectKeyFromObject(o), now))
	if gone {
		now = o.DeepCopy()
		c.cleared[cluster] = true
	}
	c.note("%s: %s deleting %t gone %t", cluster, now.Spec.State, !now.DeletionTimestamp.IsZero(), gone)
	began := c.checker.Judged
	if err := c.checker.BindingOfRun(now, gone); err != nil {
		return err
	}
	if c.checker.Judged == began {
		return nil
	}
	switch run := c.run("example-run-2"); {
	case !slices.Contains(c.clusters, cluster), o.Spec.State != placementv1beta1.BindingStateUnscheduled:
		return fmt.Errorf("%s is cleared, which the placement selects", cluster)
	case updaterun.IsStopping(run):
		return fmt.Errorf("%s is cleared for a run that is to stop", cluster)
	case rules.IsRunOver(c.last): // what is noted as over while this is judged came later
		return fmt.Errorf("%s is cleared for a run that is over", cluster)
	}
	return nil
}

// judgeRun judges what is stored of the run: it only moves on, and says of no cluster that it is cleared that is not.
func (c *clearing) judgeRun() error {
	run := c.run("example-run-2")
	before := c.last
	c.last = run
	if err := promise.Run(run); err != nil {
		return err
	}
	stage := run.Status.DeletionStageStatus
	c.note("run: %s", progressingOf(c.hub))
	for i := range stage.Clusters {
		name := stage.Clusters[i].ClusterName
		was := updaterun.ClusterPhase(&before.Status.DeletionStageStatus.Clusters[i])
		phase := updaterun.ClusterPhase(&stage.Clusters[i])
		c.note("  %s is %s", name, phase)
		switch {
		case was.Over() && phase != was:
			return fmt.Errorf("%s is %s, and was %s before", name, phase, was)
		case phase == updaterun.PhaseSucceeded && !c.cleared[name]:
			return fmt.Errorf("%s is said to be cleared, and is not", name)
		case phase == updaterun.PhaseSkipped && !c.picked[name]:
			return fmt.Errorf("%s is skipped, and was not picked again", name)
		case meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) && !phase.Over():
			return fmt.Errorf("the run has ended well, and %s is %s", name, phase)
		}
	}
	return nil
}

func (c *clearing) note(format string, args ...any) {
	c.journal = append(c.journal, fmt.Sprintf("%*s", 2*c.depth, "")+fmt.Sprintf(format, args...))
}

// meanwhile lets something happen before a write of an attempt: another attempt, or what the fence of the write is for.
func (c *clearing) meanwhile() {
	c.mu.Lock()
	if c.depth != 1 || c.random.IntN(3) > 0 {
		c.mu.Unlock()
		return
	}
	kind := c.random.IntN(4)
	cluster := c.clusters[c.random.IntN(len(c.clusters))]
	c.depth++
	c.mu.Unlock()
	switch kind {
	case 0:
		_, _ = call(c.hub, c.another().AdvanceDeletion, refOf("example-run-2"))
	case 1:
		c.pickAgain(cluster)
	case 2:
		c.finish(cluster)
	default:
		c.mark(cluster, true)
	}
	c.mu.Lock()
	c.depth--
	c.mu.Unlock()
}

// find returns the binding of a cluster; nil if it is gone.
func (c *clearing) find(cluster string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{}
	key := client.ObjectKey{Name: placementv1beta1.BindingName("example-placement", "crp-uid", cluster)}
	if c.unwatched.Get(c.t.Context(), key, b) != nil {
		return nil
	}
	return b
}

// change changes a binding as another process does, unless it is gone.
func (c *clearing) change(cluster string, change func(*placementv1beta1.ClusterResourceBinding)) {
	c.storing.Lock()
	defer c.storing.Unlock()
	if b := c.find(cluster); b != nil {
		change(b)
		if c.unwatched.Update(c.t.Context(), b) == nil {
			c.observe(b)
		}
	}
}

// pickAgain is the scheduler, which picks a cluster again that a run with frozen membership is to clear.
func (c *clearing) pickAgain(cluster string) {
	if c.run("example-run-2").Status.UpdateStrategySnapshot.OnMembershipChange != placementv1beta1.MembershipChangeContinue {
		return
	}
	c.change(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		if b.DeletionTimestamp.IsZero() {
			b.Spec.State = placementv1beta1.BindingStateBound
			c.mu.Lock()
			c.picked[cluster] = true
			c.mu.Unlock()
		}
	})
}

// finish is the binding controller, once a member has nothing left.
func (c *clearing) finish(cluster string) {
	c.change(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		if !b.DeletionTimestamp.IsZero() {
			b.Finalizers = nil
		}
	})
}

// mark is a controller of the user's that puts the marks of hooks on a binding, or takes them off.
func (c *clearing) mark(cluster string, on bool) {
	c.change(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		delete(b.Labels, hookMark)
		b.Finalizers = slices.DeleteFunc(b.Finalizers, func(f string) bool { return f == drainFinalizer })
		if on && b.DeletionTimestamp.IsZero() {
			b.Labels[hookMark] = "yes"
			b.Finalizers = append(b.Finalizers, drainFinalizer)
		}
	})
}

// happen lets something happen between two attempts.
func (c *clearing) happen() {
	cluster := c.clusters[c.random.IntN(len(c.clusters))]
	kind := c.random.IntN(14)
	some := c.clusters[:c.random.IntN(len(c.clusters)+1)]
	c.note("happens: %d %s", kind, cluster)
	switch kind {
	case 0:
		c.suspend(some...)
	case 1:
		c.suspend()
	case 2:
		c.stopTheLine(len(some)%2 == 0)
	case 3:
		c.refuse(cluster, answers(403, metav1.StatusReasonForbidden, denial))
	case 4:
		c.refuse(cluster, nil)
	case 5:
		c.wish(placementv1beta1.StateStop)
	case 6, 7:
		c.wish(placementv1beta1.StateRun)
	case 8:
		c.pickAgain(cluster)
	case 9:
		c.leave(cluster)
	case 10:
		c.mark(cluster, len(some)%2 == 0)
	case 11:
		c.clock.Step(6 * time.Minute)
	default:
		c.finish(cluster)
	}
	c.clock.Step(time.Duration(1+c.random.IntN(40)) * time.Second)
}

// leave takes a member out of the fleet: it waits for nothing.
func (c *clearing) leave(cluster string) {
	if c.random.IntN(3) == 0 && c.unwatched.Delete(c.t.Context(), clusterObject(cluster)) == nil {
		c.checker.Leaves(cluster, true)
	}
}

// stopTheLine makes a hold on removals, or ends one.
func (c *clearing) stopTheLine(everywhere bool) {
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: types.UID("hold")}}
	if c.unwatched.Get(c.t.Context(), client.ObjectKeyFromObject(hold), hold) == nil {
		require.NoError(c.t, c.unwatched.Delete(c.t.Context(), hold))
		c.checker.Hold(hold, true, time.Time{}, 0)
		return
	}
	hold.Spec = fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down", Starts: []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartRemovals}}
	if !everywhere {
		hold.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}}
	}
	require.NoError(c.t, c.unwatched.Create(c.t.Context(), hold))
	c.checker.Hold(hold, false, time.Time{}, 0)
}

// another returns the activities of a process that waits for nothing.
func (c *clearing) another() *stagedupdate.Activities {
	process := c.restarted()
	process.Clock = impatient{c.clock}
	return process
}

// step runs an attempt that dies after some writes if that is not negative.
func (c *clearing) step(writes int) wf.DeletionResult {
	c.depth++
	defer func() { c.depth-- }()
	c.left = writes
	c.lost = c.random.IntN(2) == 0
	c.note("attempt: %d writes, lost %t", c.left, c.lost)
	result, err := call(c.hub, c.process.AdvanceDeletion, refOf("example-run-2"))
	if c.left == 0 {
		c.process = c.another()
	}
	if err == nil && result.Done && c.broken == nil && !rules.IsRunOver(c.run("example-run-2")) {
		c.broken = fmt.Errorf("the run is said to be done, and is not")
	}
	c.left = -1
	return result
}

// calm lets nothing stand in the way of the run any more.
func (c *clearing) calm() {
	c.suspend()
	for range 2 {
		if c.unwatched.Get(c.t.Context(), client.ObjectKey{Name: "incident"}, &fleetflowv1alpha1.RolloutHold{}) == nil {
			c.stopTheLine(true)
		}
	}
	c.wish(placementv1beta1.StateRun)
	for range 12 {
		for _, name := range c.clusters {
			c.refuse(name, nil)
			c.mark(name, false)
			c.finish(name)
		}
		c.clock.Step(time.Minute)
		c.step(-1)
	}
}

// Whatever stands in the way, wherever processes die and however many attempts are at work: the deletion stage clears what the
// placement no longer selects and nothing else, nothing that is held, says so truly, and ends once nothing stands in its way.
func TestNoDeletionStageBreaksThePromise(t *testing.T) {
	judged := 0
	for seed := range uint64(150) {
		c := newClearing(t, seed)
		for range 5 + c.random.IntN(8) {
			for range c.random.IntN(3) {
				c.happen()
			}
			c.step(c.random.IntN(8) - 1)
			require.NoError(t, c.broken, "seed %d:\n%s", seed, c.tail())
		}
		c.calm()
		require.NoError(t, c.broken, "seed %d:\n%s", seed, c.tail())
		require.True(t, meta.IsStatusConditionTrue(c.run("example-run-2").Status.Conditions, placementv1beta1.ConditionTypeSucceeded),
			"seed %d: the run does not end:\n%s", seed, c.tail())
		for _, name := range c.clusters {
			require.True(t, c.find(name) == nil || c.picked[name], "seed %d: %s has not been cleared:\n%s", seed, name, c.tail())
		}
		for _, name := range names("member1", "member2", "member3") {
			require.NotNil(t, c.find(name), "seed %d: %s is selected", seed, name)
		}
		judged += c.checker.Judged
	}
	t.Logf("%d deletions were judged", judged)
	require.Greater(t, judged, 150)
}

func (c *clearing) tail() string {
	out := ""
	for _, line := range c.journal[max(0, len(c.journal)-60):] {
		out += line + "\n"
	}
	return out
}
