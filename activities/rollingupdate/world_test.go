package rollingupdate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	k8sclock "k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/promise"
)

// impatient is a clock on which every wait is over at once.
type impatient struct{ *waitClock }

func (c impatient) NewTimer(time.Duration) k8sclock.Timer {
	timer := c.FakeClock.NewTimer(0)
	c.Step(0)
	return timer
}

// world is a fleet in which everything happens at random, and whose every write is judged.
type world struct {
	*rollout
	random   *rand.Rand
	checker  *promise.Checker
	broken   error
	journal  []string
	clusters []string
	snapshot int
	counter  int
	// all says that all clusters are asked for that there are.
	all bool
	// stale is what caches have of bindings and Works.
	mu       sync.Mutex
	bindings map[string]placementv1beta1.ClusterResourceBinding
	works    map[client.ObjectKey]placementv1beta1.Work
	depth    atomic.Int32
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	w := &world{random: r, snapshot: 1}
	var start []*placementv1beta1.ClusterResourceBinding
	for i := range 3 + r.IntN(4) {
		name := string(rune('a' + i))
		w.clusters = append(w.clusters, name)
		start = append(start, []*placementv1beta1.ClusterResourceBinding{
			bound(name, oldSnapshot), bound(name, oldSnapshot), bound(name, newSnapshot), unscheduled(name), scheduled(name),
		}[r.IntN(5)])
	}
	w.rollout = newRollout(t, start...)
	for i, name := range w.clusters {
		require.NoError(t, w.Create(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelsOf(i)}}))
	}
	n := max(1, len(start)-r.IntN(2))
	w.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy = w.anyPolicy(n)
		p.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{
			MaxUnavailable: w.anyLimit(0, 3), MaxSurge: w.anyLimit(1, 3),
		}}
		w.holdBack(p.Spec.Strategy.RollingUpdate)
		if r.IntN(4) == 0 {
			p.Spec.Strategy.Suspension = &placementv1beta1.Suspension{ClusterNames: w.clusters[:1+r.IntN(2)]}
		}
		p.Spec.Strategy.Lifecycle = w.anyHooks()
	})
	w.rolling.Clock = impatient{w.clock}
	w.seed(t)
	if r.IntN(2) == 0 {
		b := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "crp"}}
		b.Spec.MaxUnavailable = w.anyLimit(0, 3)
		if r.IntN(2) == 0 {
			b.Spec.MaxUnavailable = nil
			b.Spec.MinAvailable = w.anyLimit(0, n+1)
		}
		w.ask(b)
	}
	return w
}

// labelsOf are those of a member cluster.
func labelsOf(i int) map[string]string {
	return map[string]string{"region": []string{"east", "west"}[i%2]}
}

// stopTheLine makes a hold of any kind, or ends one. An attempt that is under way may write the batch that it has begun: that is
// not judged here, so holds come between attempts.
func (w *world) stopTheLine() {
	if w.depth.Load() > 0 {
		return
	}
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("hold-%d", w.random.IntN(2))}}
	if w.Get(w.t.Context(), client.ObjectKeyFromObject(hold), hold) == nil {
		require.NoError(w.t, w.Delete(w.t.Context(), hold))
		return
	}
	hold.Spec.Message = "the fleet stands still"
	if w.random.IntN(2) == 0 {
		hold.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}}
	}
	for _, start := range fleetflowv1alpha1.AllStarts() {
		if w.random.IntN(2) == 0 {
			hold.Spec.Starts = append(hold.Spec.Starts, start)
		}
	}
	require.NoError(w.t, w.Create(w.t.Context(), hold))
}

// anyPolicy asks for about n clusters, or for all.
func (w *world) anyPolicy(n int) *placementv1beta1.PlacementPolicy {
	switch w.random.IntN(4) {
	case 0:
		w.all = true
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	case 1:
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: w.clusters[:n]}
	}
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(n))}
}

// holdBack makes a rollout hold clusters back, in about half of the worlds.
func (w *world) holdBack(config *placementv1beta1.RollingUpdateConfig) {
	if w.random.IntN(2) == 0 {
		return
	}
	config.Partition = w.anyLimit(0, 4)
	config.Paused = w.random.IntN(4) == 0
	config.Order = &placementv1beta1.ClusterOrder{
		Priority: &placementv1beta1.ClusterPriority{Labels: []placementv1beta1.ClusterOrderLabel{{Key: "wave"}}},
		Scatter:  []placementv1beta1.ClusterScatter{{Key: "region", MaxInFlight: new(int32(1 + w.random.IntN(2)))}},
	}
}

// hookLabel and hookFinalizer are what the hooks of the worlds name.
const hookLabel, hookFinalizer = "example.com/in-service", "example.com/drain"

// anyHooks are the lifecycle hooks of about a third of the worlds.
func (w *world) anyHooks() *placementv1beta1.ClusterLifecycle {
	if w.random.IntN(3) > 0 {
		return nil
	}
	label := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{hookLabel: "yes"}}
	hooks := &placementv1beta1.ClusterLifecycle{PreUpdate: &placementv1beta1.ClusterDrainHook{ClusterHook: label}}
	if w.random.IntN(2) == 0 {
		hooks.PreRemove = &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}}
	}
	if w.random.IntN(2) == 0 {
		hooks.PreAvailable = &label
	}
	return hooks
}

// answer is a controller of the user's that puts marks of hooks on a binding or, as what takes a cluster out of service is heard
// at once, takes them off between two attempts; or the hub's, which writes the state that follows by itself.
func (w *world) answer(b *placementv1beta1.ClusterResourceBinding) {
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: "crp"}, p))
	if p.Spec.Strategy.Lifecycle == nil {
		return
	}
	take := w.random.IntN(2) == 0 && w.depth.Load() == 0
	switch state, _ := rules.LifecycleStateOf(b); w.random.IntN(3) {
	case 0:
		b.Labels[hookLabel] = "yes"
		if take {
			delete(b.Labels, hookLabel)
		}
	case 1:
		b.Finalizers = slices.DeleteFunc(b.Finalizers, func(f string) bool { return f == hookFinalizer })
		if !take && b.DeletionTimestamp == nil {
			b.Finalizers = append(b.Finalizers, hookFinalizer)
		}
	default:
		w.mu.Lock() // writes that go on at the same time tell the checker of what they wrote
		available := w.checker.Available(b)
		w.mu.Unlock()
		next := rules.NextState(p.Spec.Strategy.Lifecycle, b, available)
		if next == state {
			return
		}
		b.Labels[placementv1beta1.LifecycleStateLabel] = string(next)
	}
	require.NoError(w.t, w.Update(w.t.Context(), b))
	if now := (&placementv1beta1.ClusterResourceBinding{}); w.Get(w.t.Context(), client.ObjectKeyFromObject(b), now) == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bindings[now.Name] = *now
	}
}

// anyLimit is a number from least up to most, or a percentage.
func (w *world) anyLimit(least, most int) *intstr.IntOrString {
	if w.random.IntN(3) == 0 {
		return new(intstr.FromString(fmt.Sprintf("%d%%", 100*least/10+w.random.IntN(60))))
	}
	return new(intstr.FromInt(least + w.random.IntN(most-least)))
}

// seed tells the checker what there is, and has it told of every write from now on.
func (w *world) seed(t *testing.T) {
	p := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "crp"}, p))
	w.checker = promise.New(p)
	for i, name := range w.clusters {
		w.checker.Labels(name, labelsOf(i))
	}
	w.bindings = map[string]placementv1beta1.ClusterResourceBinding{}
	w.works = map[client.ObjectKey]placementv1beta1.Work{}
	w.catchUp(1)
	for _, b := range w.bindings {
		w.checker.Seed(&b)
	}
	for _, work := range w.works {
		w.checker.Work(&work, false)
	}
	inner := w.WithWatch
	observe := func(o client.Object, err error) error {
		if err == nil {
			w.observe(inner, o)
		}
		return err
	}
	w.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return observe(o, c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return observe(o, c.Update(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return observe(o, c.Patch(ctx, o, p, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return observe(o, c.Delete(ctx, o, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return observe(o, c.SubResource(sub).Update(ctx, o, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return observe(o, c.SubResource(sub).Patch(ctx, o, p, opts...))
		},
	})
}

// observe shows the checker what is stored after a write.
func (w *world) observe(c client.Client, o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	switch o := o.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		now := &placementv1beta1.ClusterResourceBinding{}
		gone := apierrors.IsNotFound(c.Get(w.t.Context(), client.ObjectKeyFromObject(o), now))
		if gone {
			now = o
		}
		w.journal = append(w.journal, fmt.Sprintf("%*s%s: %s %s epoch %s deleting %t gone %t", 2*int(w.depth.Load()), "", now.Spec.TargetCluster, now.Spec.State, now.Spec.ResourceSnapshotName,
			now.Annotations[placementv1beta1.RolloutEpochAnnotation], now.DeletionTimestamp != nil, gone))
		err = w.checker.Binding(now, gone)
	case *placementv1beta1.Work:
		now := &placementv1beta1.Work{}
		if c.Get(w.t.Context(), client.ObjectKeyFromObject(o), now) == nil {
			w.journal = append(w.journal, fmt.Sprintf("%*swork of %s: generation %d %s", 2*int(w.depth.Load()), "", now.Namespace, now.Generation, saysAvailable(now)))
			w.checker.Work(now, false)
		}
	case *placementv1beta1.ClusterResourcePlacement:
		now := &placementv1beta1.ClusterResourcePlacement{}
		if c.Get(w.t.Context(), client.ObjectKeyFromObject(o), now) == nil {
			w.journal = append(w.journal, fmt.Sprintf("%*sclaim %s", 2*int(w.depth.Load()), "", now.Annotations[placementv1beta1.RolloutClaimAnnotation]))
			w.checker.Placement(now)
		}
	case *placementv1beta1.ClusterResourcePlacementEviction:
		now := &placementv1beta1.ClusterResourcePlacementEviction{}
		if c.Get(w.t.Context(), client.ObjectKeyFromObject(o), now) == nil {
			w.journal = append(w.journal, fmt.Sprintf("%*s%s ended %t", 2*int(w.depth.Load()), "", now.Name, now.Ended()))
			w.checker.Eviction(now)
		}
	case *placementv1beta1.ClusterResourcePlacementDisruptionBudget:
		w.checker.Budget(o)
	case *fleetflowv1alpha1.RolloutHold:
		now := &fleetflowv1alpha1.RolloutHold{}
		gone := apierrors.IsNotFound(c.Get(w.t.Context(), client.ObjectKeyFromObject(o), now))
		if gone {
			now = o
		}
		w.journal = append(w.journal, fmt.Sprintf("%*shold %s %v gone %t", 2*int(w.depth.Load()), "", now.Name, now.Spec, gone))
		w.checker.Hold(now, gone, time.Time{}, 0)
	}
	if w.broken == nil {
		w.broken = err
	}
}

// saysAvailable is what a member has reported last.
func saysAvailable(work *placementv1beta1.Work) string {
	said := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
	if said == nil || said.ObservedGeneration != work.Generation {
		return "not reported"
	}
	return "available " + string(said.Status)
}

// catchUp lets the caches have what is stored, object by object with some probability.
func (w *world) catchUp(probability float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var bindings placementv1beta1.ClusterResourceBindingList
	var works placementv1beta1.WorkList
	if w.rolling.Live.List(w.t.Context(), &bindings) != nil || w.rolling.Live.List(w.t.Context(), &works) != nil {
		return
	}
	likely := func() bool { return probability == 1 || w.random.Float64() < probability }
	there := map[string]bool{}
	for _, b := range bindings.Items {
		there[b.Name] = true
		if likely() {
			w.bindings[b.Name] = b
		}
	}
	for name := range w.bindings {
		if !there[name] && likely() {
			delete(w.bindings, name)
		}
	}
	for _, work := range works.Items {
		if likely() {
			w.works[client.ObjectKeyFromObject(&work)] = work
		}
	}
}

var errKilled = errors.New("the process was killed")

// process is a client of one process: it reads from a cache that lags behind, it may die
// after some writes, and before any write it may be held up while others go on.
func (w *world) process(writes int) client.Client {
	var mu sync.Mutex
	before := func() error {
		mu.Lock()
		defer mu.Unlock()
		if writes == 0 {
			return errKilled
		}
		writes--
		w.meanwhile()
		return nil
	}
	return interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			b, ok := o.(*placementv1beta1.ClusterResourceBinding)
			if !ok {
				return c.Get(ctx, key, o, opts...)
			}
			w.mu.Lock()
			cached, there := w.bindings[key.Name]
			w.mu.Unlock()
			w.lagging(c, key, cached.ResourceVersion)
			if !there {
				return apierrors.NewNotFound(placementv1beta1.GroupVersion.WithResource("clusterresourcebindings").GroupResource(), key.Name)
			}
			cached.DeepCopyInto(b)
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch list := list.(type) {
			case *placementv1beta1.ClusterResourceBindingList:
				for _, b := range w.bindings {
					list.Items = append(list.Items, *b.DeepCopy())
				}
				return nil
			case *placementv1beta1.WorkList:
				o := &client.ListOptions{}
				o.ApplyOptions(opts)
				for key, work := range w.works {
					if key.Namespace == o.Namespace && work.Labels[placementv1beta1.ParentBindingLabel] != "" {
						list.Items = append(list.Items, *work.DeepCopy())
					}
				}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := before(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
}

// lagging lets the caches catch up soon after somebody has read something old from them.
func (w *world) lagging(c client.Client, key client.ObjectKey, version string) {
	live := &placementv1beta1.ClusterResourceBinding{}
	if c.Get(w.t.Context(), key, live) == nil && live.ResourceVersion == version {
		return
	}
	go func() {
		w.catchUp(1)
		news := bound("a", newSnapshot)
		w.tell(news, news)
	}()
}

// meanwhile lets others go on while a write is held up.
func (w *world) meanwhile() {
	if w.depth.Load() > 1 || w.random.IntN(4) > 0 {
		return
	}
	w.depth.Add(1)
	defer w.depth.Add(-1)
	for range w.random.IntN(3) {
		w.happen(false)
	}
	f := &flow{world: w}
	for range 1 + w.random.IntN(3) {
		f.step(w.random.IntN(6) - 1)
	}
}
