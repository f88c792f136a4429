//go:build bench

package member

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/onemember"
)

const (
	cpuNamespace = "cpu"
	// ticks is how many units of CPU time Linux counts in a second.
	ticks = 100
	// manyObjects is how many objects the large Work has.
	manyObjects = 700
)

// TestCPU tells what the agent costs, with a ConfigMap and a Deployment in each Work. It has no targets: two commits are compared
// by runs of both in turn, on a machine that does little else:
//
//	FLEETFLOW_BENCH_WORKS=1000 go test -count=1 -tags bench -timeout 30m -v -run TestCPU ./test/bench/member
func TestCPU(t *testing.T) {
	b := &bench{T: t}
	ctx := b.context()
	require.NoError(b, rig.Member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cpuNamespace}}))
	b.part(fmt.Sprintf("%d Works are created", works), func(b *bench) {
		b.measure(func(ctx context.Context) {
			b.each(func(i int) error {
				return rig.Hub.Create(ctx, onemember.Work(loadName(i), twoObjects(cpuNamespace, loadName(i), "v")...))
			})
			b.awaitApplied(ctx)
		})
	})
	b.part("they are at rest", func(b *bench) {
		b.settle(b.context(), b.calls(b.context()))
		b.measure(func(ctx context.Context) {
			ended := time.Now().Add(watched)
			b.poll(ctx, "the time to pass", func() bool { return time.Now().After(ended) })
		})
	})
	b.part("each is changed once", func(b *bench) {
		b.measure(func(ctx context.Context) {
			b.each(func(i int) error {
				work := onemember.Work(loadName(i), twoObjects(cpuNamespace, loadName(i), "v")...)
				before := client.MergeFrom(work.DeepCopy())
				work.Spec.Workload.Manifests = onemember.Manifests(twoObjects(cpuNamespace, loadName(i), "changed")...)
				return rig.Hub.Patch(ctx, work, before)
			})
			b.awaitApplied(ctx)
		})
	})
	b.part("the agent starts with all of them applied", func(b *bench) {
		b.settle(b.context(), b.calls(b.context()))
		require.NoError(b, rig.Do(b.context(), control.Stop, onemember.Agent))
		before := b.calls(b.context())
		require.NoError(b, rig.Do(b.context(), control.Start, onemember.Agent))
		b.poll(b.context(), "the agent to begin", func() bool { return b.calls(b.context()).since(before).member.Of("configmaps").Total() > 0 })
		asked, _ := b.settle(b.context(), before)
		b.tell("%.2f s of CPU; %s", agentCPU(b), asked)
	})
	b.part(fmt.Sprintf("a Work of %d objects", manyObjects), func(b *bench) {
		objects := make([]map[string]any, manyObjects)
		for i := range objects {
			objects[i] = onemember.ConfigMap(cpuNamespace, fmt.Sprintf("large-%03d", i), "v")
		}
		b.measure(func(ctx context.Context) {
			work := onemember.Work("large", objects...)
			require.NoError(b, rig.Hub.Create(ctx, work))
			b.awaitAvailable(ctx, work)
		})
	})
}

// measure tells what something costs the agent, how long it takes, and what is asked meanwhile.
func (b *bench) measure(do func(context.Context)) {
	b.Helper()
	ctx := b.context()
	before := b.calls(ctx)
	used := agentCPU(b)
	began := time.Now()
	do(ctx)
	took := time.Since(began)
	asked, _ := b.settle(ctx, before)
	b.tell("%.2f s of CPU, after %s; %s", agentCPU(b)-used, round(took), asked)
}

// agentCPU is how many seconds of CPU time the agent has had.
func agentCPU(b *bench) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", rig.Process(onemember.Agent).PID))
	require.NoError(b, err, "CPU times are read as Linux tells them")
	// The name of the program stands in brackets and may have spaces; user and system time are the 12th and 13th field after it.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var user, system float64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(b, err)
	return (user + system) / ticks
}

// twoObjects are a ConfigMap and a Deployment without pods.
func twoObjects(namespace, name, value string) []map[string]any {
	labels := map[string]any{"app": name}
	return []map[string]any{
		onemember.ConfigMap(namespace, name, value),
		{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
			"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
				"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{
					"name": "c", "image": "example.com/web:1", "env": []any{map[string]any{"name": "MODE", "value": value}},
					"ports":     []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}},
					"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
				}}}},
			},
		},
	}
}

// awaitApplied returns when every Work is applied at its generation. It asks seldom, so that it is not what is measured.
func (b *bench) awaitApplied(ctx context.Context) {
	b.Helper()
	b.poll(ctx, "all Works to be applied", func() bool {
		list := &placementv1beta1.WorkList{}
		require.NoError(b, rig.Hub.List(ctx, list, client.InNamespace(onemember.Namespace)))
		for i := range list.Items {
			w := &list.Items[i]
			if c := meta.FindStatusCondition(w.Status.Conditions, placementv1beta1.ConditionTypeApplied); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != w.Generation {
				return false
			}
		}
		return true
	})
}
