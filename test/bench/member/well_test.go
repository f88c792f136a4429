//go:build bench

package member

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/onemember"
)

const (
	wellNamespace = "well"
	// wellLabel marks the Works of Deployments that all become available.
	wellLabel = "bench.example.com/well"
)

// TestAllWell has Works with a ConfigMap and a Deployment each, which all become available: that the agent would look for the cause if one
// did not costs no request then. Controllers run, as they make Deployments available; they have listed Pods before.
//
//	FLEETFLOW_BENCH_WORKS=1000 go test -count=1 -tags bench -timeout 30m -v -run TestAllWell ./test/bench/member
func TestAllWell(t *testing.T) {
	b := &bench{T: t}
	ctx := b.context()
	require.NoError(b, rig.Do(ctx, control.Start, onemember.Controllers))
	t.Cleanup(func() { _ = rig.Do(context.WithoutCancel(ctx), control.Stop, onemember.Controllers) }) // it ends with the rig anyway
	require.NoError(b, rig.Member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: wellNamespace}}))
	create := func(i int) error {
		name := fmt.Sprintf("well-%05d", i)
		work := onemember.Work(name, twoObjects(wellNamespace, name, "v")...)
		work.Labels[wellLabel] = "true"
		return rig.Hub.Create(ctx, work)
	}
	require.NoError(b, create(works)) // one more, after which the controllers have begun
	b.awaitWell(ctx, 1)
	b.settle(ctx, b.calls(ctx))
	before := b.calls(ctx)
	b.each(create)
	b.awaitWell(ctx, works+1)
	b.settle(ctx, before)
	ended := time.Now().Add(watched)
	b.poll(ctx, "the time to pass", func() bool { return time.Now().After(ended) })
	asked := b.calls(ctx).since(before)
	b.tell("%d MiB resident; for Pods: %d requests; %s", rig.Process(onemember.Agent).Memory>>20, asked.member.Of("pods").Total(), asked)
	require.Zero(b, asked.member.Of("pods", "pods/log").Total(), "nobody asks for Pods while all is well")
}

// awaitWell returns when a number of Works are available, and no other is not.
func (b *bench) awaitWell(ctx context.Context, count int) {
	b.Helper()
	b.poll(ctx, "all Works to be available", func() bool {
		list := &placementv1beta1.WorkList{}
		require.NoError(b, rig.Hub.List(ctx, list, client.InNamespace(onemember.Namespace), client.MatchingLabels{wellLabel: "true"}))
		for i := range list.Items {
			if !isAvailable(&list.Items[i], list.Items[i].Generation) {
				return false
			}
		}
		return len(list.Items) == count
	})
}
