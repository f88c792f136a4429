//go:build bench

package member

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/onemember"
)

const (
	samples = 20
	// writers is how many Works the test writes at once.
	writers = 8
	// askEvery is how often the test asks whether something has come about, where a watch would take more than the
	// agent does.
	askEvery = 2 * time.Second
	// quiet is how long nothing must be asked for it to count as the end.
	quiet = 3 * time.Second
	// watched is how long nothing is to happen when nothing is to happen.
	watched = 30 * time.Second
)

func (b *bench) latency() {
	ctx := b.context()
	namespace := "latency"
	require.NoError(b, rig.Member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	var times []time.Duration
	for i := range samples {
		name := fmt.Sprintf("latency-%d", i)
		work := onemember.Work(name, onemember.ConfigMap(namespace, name, "v"))
		began := time.Now()
		require.NoError(b, rig.Hub.Create(ctx, work))
		b.awaitAvailable(ctx, work)
		times = append(times, time.Since(began))
	}
	b.judge(times[1:], appliedWithin) // the first also starts a watch
}

func (b *bench) awaitAvailable(ctx context.Context, work *placementv1beta1.Work) {
	b.Helper()
	_, err := access.Await(ctx, rig.Hub, client.ObjectKeyFromObject(work), func(w *placementv1beta1.Work) string {
		if isAvailable(w, work.Generation) {
			return ""
		}
		return "it is not available"
	})
	require.NoError(b, err)
}

func isAvailable(w *placementv1beta1.Work, generation int64) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

func (b *bench) correction() {
	ctx := b.context()
	var times []time.Duration
	for i := range samples {
		name := fmt.Sprintf("latency-%d", i)
		began := b.spoil(ctx, "latency", name, "spoilt")
		_, err := access.Await(ctx, rig.Member, client.ObjectKey{Namespace: "latency", Name: name}, func(m *corev1.ConfigMap) string {
			if m.Data["key"] == "v" {
				return ""
			}
			return "it is still spoilt"
		})
		require.NoError(b, err)
		times = append(times, time.Since(began))
	}
	b.judge(times, noticedWithin)
}

// spoil changes a ConfigMap on the member and returns when it began to.
func (b *bench) spoil(ctx context.Context, namespace, name, value string) time.Time {
	b.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	began := time.Now()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"key":%q}}`, value))
	require.NoError(b, rig.Member.Patch(ctx, m, patch))
	return began
}

func (b *bench) report() {
	ctx := b.context()
	name := "reported"
	work := onemember.Work(name, onemember.ConfigMap("latency", name, "v"))
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}
	require.NoError(b, rig.Hub.Create(ctx, work))
	b.awaitAvailable(ctx, work)
	var times []time.Duration
	for i := range samples {
		value := fmt.Sprintf("spoilt-%d", i)
		began := b.spoil(ctx, "latency", name, value)
		_, err := access.Await(ctx, rig.Hub, onemember.Key(name), func(w *placementv1beta1.Work) string {
			for _, m := range w.Status.ManifestConditions {
				if d := m.DriftDetails; d != nil && len(d.ObservedDrifts) == 1 && d.ObservedDrifts[0].ValueInMember == value {
					return ""
				}
			}
			return "the drift is not reported"
		})
		require.NoError(b, err)
		times = append(times, time.Since(began))
	}
	b.judge(times, noticedWithin)
}

func (b *bench) fill() {
	ctx := b.context()
	require.NoError(b, rig.Member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "load"}}))
	before := b.calls(ctx)
	began := time.Now()
	b.each(func(i int) error {
		name := loadName(i)
		work := onemember.Work(name, onemember.ConfigMap("load", name, "v"))
		work.Labels[loadLabel] = "true"
		return rig.Hub.Create(ctx, work)
	})
	created := time.Since(began)
	b.awaitAll(ctx)
	took := time.Since(began)
	b.tell("all created after %s, all reported after %s (%.0f a second)", round(created), round(took), float64(works)/took.Seconds())
	b.tell("%s", b.calls(ctx).since(before))
}

func loadName(i int) string { return fmt.Sprintf("load-%05d", i) }

// loadLabel marks the Works that are many.
const loadLabel = "bench.example.com/load"

// each does something for every Work, some at once.
func (b *bench) each(do func(i int) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(writers)
	for i := range works {
		group.Go(func() error { return do(i) })
	}
	require.NoError(b, group.Wait())
}

// awaitAll returns when every Work is available. It asks seldom, so that it is not what is measured.
func (b *bench) awaitAll(ctx context.Context) {
	b.Helper()
	b.poll(ctx, "all Works to be available", func() bool {
		list := &placementv1beta1.WorkList{}
		require.NoError(b, rig.Hub.List(ctx, list, client.InNamespace(onemember.Namespace)))
		for i := range list.Items {
			if w := &list.Items[i]; w.Name[0] == 'l' && !isAvailable(w, w.Generation) {
				return false
			}
		}
		return true
	})
}

func (b *bench) poll(ctx context.Context, what string, done func() bool) {
	b.Helper()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			require.NoError(b, ctx.Err(), "waiting for %s", what)
		case <-ticker.C:
		}
	}
}

// settle returns what was asked until nothing was asked for a while.
func (b *bench) settle(ctx context.Context, before calls) (calls, time.Duration) {
	b.Helper()
	began := time.Now()
	last := before.since(before)
	changed := began
	b.poll(ctx, "the agent to settle", func() bool {
		if now := b.calls(ctx).since(before); now.total() != last.total() {
			last = now
			changed = time.Now()
		}
		return time.Since(changed) >= quiet
	})
	return last, changed.Sub(began)
}

func (b *bench) idle() {
	ctx := b.context()
	b.settle(ctx, b.calls(ctx))
	before := b.calls(ctx)
	used := agentCPU(b)
	began := time.Now()
	ended := began.Add(watched)
	b.poll(ctx, "the time to pass", func() bool { return time.Now().After(ended) })
	share := (agentCPU(b) - used) / time.Since(began).Seconds()
	asked := b.calls(ctx).since(before)
	memory := rig.Process(onemember.Agent).Memory
	b.tell("%d MiB resident; target <= %d%s", memory>>20, memoryAtMost>>20, told(memory > memoryAtMost))
	b.tell("%.2f %% of a core; target <= %.0f %%%s", share*100, idleAtMost*100, told(share > idleAtMost))
	b.tell("in %s: %s", watched, asked)
	require.Empty(b, asked.hub.Writes())
	require.Empty(b, asked.member.Writes())
	require.LessOrEqual(b, memory, int64(memoryAtMost))
}

func (b *bench) changeOne() {
	ctx := b.context()
	b.changeTo(ctx, loadName(works/2), onemember.ConfigMap("load", loadName(works/2), "changed"))
}

// changeTo changes a Work and holds what that costs the agent against the target.
func (b *bench) changeTo(ctx context.Context, name string, objects ...map[string]any) {
	b.Helper()
	work := &placementv1beta1.Work{}
	require.NoError(b, rig.Hub.Get(ctx, onemember.Key(name), work))
	work.Spec.Workload.Manifests = onemember.Manifests(objects...)
	before := b.calls(ctx)
	require.NoError(b, rig.Hub.Update(ctx, work))
	asked, _ := b.settle(ctx, before)
	require.NoError(b, rig.Hub.Get(ctx, onemember.Key(name), work))
	require.True(b, isAvailable(work, work.Generation), "it is applied")
	total := asked.total() - 1 // ours
	b.tell("%d calls; target %d (and the change itself): %s", total, callsAtMost, asked)
	require.LessOrEqual(b, total, callsAtMost)
}

func (b *bench) changeOneOfMany() {
	ctx := b.context()
	objects := make([]map[string]any, 100)
	for i := range objects {
		objects[i] = onemember.ConfigMap("latency", fmt.Sprintf("many-%03d", i), "v")
	}
	work := onemember.Work("many", objects...)
	require.NoError(b, rig.Hub.Create(ctx, work))
	b.awaitAvailable(ctx, work)
	b.settle(ctx, b.calls(ctx))
	objects[50] = onemember.ConfigMap("latency", "many-050", "changed")
	b.changeTo(ctx, "many", objects...)
}

func (b *bench) driftOne() {
	ctx := b.context()
	before := b.calls(ctx)
	b.spoil(ctx, "load", loadName(works/3), "spoilt")
	asked, _ := b.settle(ctx, before)
	total := asked.total() - 1 // ours
	b.tell("%d calls; target %d (and the change itself): %s", total, callsAtMost, asked)
	require.Equal(b, 2, asked.member.Writes().Total(), "the change, and what undoes it")
	require.LessOrEqual(b, total, callsAtMost)
}

func (b *bench) coldStart() {
	ctx := b.context()
	require.NoError(b, rig.Do(ctx, control.Stop, onemember.Agent))
	before := b.calls(ctx)
	began := time.Now()
	require.NoError(b, rig.Do(ctx, control.Start, onemember.Agent))
	b.poll(ctx, "the agent to begin", func() bool { return b.calls(ctx).since(before).member.Of("configmaps").Total() > 0 })
	reads := time.Since(began)
	asked, settled := b.settle(ctx, before)
	took := reads + settled
	memory := rig.Process(onemember.Agent).Memory
	b.tell("at rest %s after its start; target <= %s%s", round(took), startsWithin, told(took > startsWithin))
	b.tell("%d MiB resident; target <= %d%s; %.2f s of CPU: %s", memory>>20, memoryAtMost>>20, told(memory > memoryAtMost), agentCPU(b), asked)
	require.Empty(b, asked.member.Writes(), "on the member, nothing but reads")
	writes := asked.hub.Writes()
	require.Equal(b, writes.Of("internalmemberclusters").Total(), writes.Total(), "on the hub, nothing is written but the heartbeat")
}

func (b *bench) removeAll() {
	ctx := b.context()
	before := b.calls(ctx)
	began := time.Now()
	b.each(func(i int) error {
		return rig.Hub.Delete(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: onemember.Namespace, Name: loadName(i)}})
	})
	b.poll(ctx, "all Works to be gone", func() bool {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
		require.NoError(b, rig.Hub.List(ctx, list, client.InNamespace(onemember.Namespace), client.MatchingLabels{loadLabel: "true"}, client.Limit(1)))
		return len(list.Items) == 0
	})
	took := time.Since(began)
	maps := &corev1.ConfigMapList{}
	require.NoError(b, rig.Member.List(ctx, maps, client.InNamespace("load")))
	for i := range maps.Items {
		require.Equal(b, "kube-root-ca.crt", maps.Items[i].Name, "all that was applied is gone")
	}
	speed := float64(works) / took.Seconds()
	b.tell("all gone after %s, %.0f a second; target %d: %s", round(took), speed, removedASecond, b.calls(ctx).since(before))
	require.GreaterOrEqual(b, speed, float64(removedASecond))
}
