package override

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestReconcileSurvivesDeathAfterAnyWrite(t *testing.T) {
	// Ten snapshots, the first of them named, two more in force; then the content changes.
	prepare := func(t *testing.T) *bench {
		b := newBench(t, clusterOverride(0, "cro", "r0"))
		for i := range 11 {
			if i > 0 {
				b.edit(t, cro, fmt.Sprintf("r%d", i))
			}
			b.settled(t, cro)
		}
		require.NoError(t, b.hub.Create(t.Context(), binding("b", "cro-1")))
		old := &placementv1beta1.ClusterResourceOverrideSnapshot{}
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "cro-3"}, old))
		old.Labels[placementv1beta1.IsLatestSnapshotLabel] = "true"
		require.NoError(t, b.hub.Update(t.Context(), old))
		b.edit(t, cro, "new")
		return b
	}
	writes := 0
	for k := 0; ; k++ {
		b := prepare(t)
		b.left = k
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		if err == nil {
			writes = k
			break
		}
		require.ErrorIs(t, err, errDied)
		require.Contains(t, b.taken(t), "*", "one is in force")
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, content changed meanwhile: %t", k, changed), func(t *testing.T) {
				b := prepare(t)
				b.left = k
				_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
				require.ErrorIs(t, err, errDied)
				want := "cro-11:new*"
				if changed {
					if strings.Contains(b.taken(t), "cro-11:new") {
						want = "cro-12:newer*"
					} else {
						want = "cro-11:newer*"
					}
					b.edit(t, cro, "newer")
				}
				b.start(b.hub)
				b.settled(t, cro)
				taken := b.taken(t)
				assert.Equal(t, 1, strings.Count(taken, "*"), taken)
				assert.Contains(t, taken, want)
				assert.Len(t, strings.Fields(taken), 11, "ten, and the one that is named: %s", taken)
				assert.Contains(t, taken, "cro-1:r1")
			})
		}
	}
	assert.GreaterOrEqual(t, writes, 4, "create, two labels, one deletion and the status")
}

func TestDeletionSurvivesDeathAfterAnyWrite(t *testing.T) {
	for k := 0; ; k++ {
		b := newBench(t, clusterOverride(0, "cro", "a"))
		b.settled(t, cro)
		b.edit(t, cro, "b")
		b.settled(t, cro)
		o := &placementv1beta1.ClusterResourceOverride{}
		require.NoError(t, b.hub.Get(t.Context(), cro, o))
		require.NoError(t, b.hub.Delete(t.Context(), o))
		b.left = k
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		if err == nil {
			assert.Equal(t, 3, k, "two snapshots and the finalizer")
			return
		}
		require.ErrorIs(t, err, errDied)
		require.NoError(t, b.hub.Get(t.Context(), cro, o), "it waits for its snapshots")
		b.start(b.hub)
		b.settled(t, cro)
		assert.Empty(t, b.taken(t))
		require.True(t, isGone(b.hub.Get(t.Context(), cro, o)))
	}
}

func TestACacheThatLagsBehindMisleadsNobody(t *testing.T) {
	earlier := func(t *testing.T, objects ...client.Object) client.WithWatch { return newBench(t, objects...).hub }
	t.Run("it has not seen the last edits", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "cro", "a"))
		b.settled(t, cro)
		b.edit(t, cro, "b")
		b.settled(t, cro)
		b.start(earlier(t, clusterOverride(0, "cro", "a")))
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		require.NoError(t, err)
		assert.Equal(t, "cro-0:a cro-1:b*", b.taken(t))
	})
	t.Run("it has not seen the override of another name that is in the way", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "old", "x"), clusterOverride(1, "cro", "x"))
		b.start(earlier(t, clusterOverride(1, "cro", "x")))
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		require.NoError(t, err)
		assert.Empty(t, b.taken(t))
	})
	t.Run("it has not seen the override yet", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "cro", "a"))
		b.settled(t, cro)
		s := &placementv1beta1.ClusterResourceOverrideSnapshot{}
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "cro-0"}, s))
		s.ResourceVersion = ""
		b.start(earlier(t, s))
		_, err := b.cluster.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		require.NoError(t, err)
		assert.Equal(t, "cro-0:a*", b.taken(t))
	})
	t.Run("it has not seen the binding that names an old snapshot", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "cro", "r0"))
		for i := range 11 {
			if i > 0 {
				b.edit(t, cro, fmt.Sprintf("r%d", i))
			}
			if i == 10 {
				cached := b.hub
				require.NoError(t, b.hub.Create(t.Context(), binding("b", "cro-0")))
				b.start(interceptor.NewClient(cached, interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						if _, ok := list.(*placementv1beta1.ClusterResourceBindingList); ok {
							return nil
						}
						return c.List(ctx, list, opts...)
					},
				}))
			}
			b.settled(t, cro)
		}
		assert.Contains(t, b.taken(t), "cro-0:r0")
	})
}

func TestWhoIsOvertakenLooksAgain(t *testing.T) {
	overtaking := func(b *bench, once func()) {
		b.cluster.live = interceptor.NewClient(b.hub, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				err := c.List(ctx, list, opts...)
				if _, ok := list.(*placementv1beta1.ClusterResourceOverrideSnapshotList); ok && once != nil {
					do := once
					once = nil
					do()
				}
				return err
			},
		})
	}
	t.Run("by one with the same content", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "cro", "a"))
		slow := b.cluster
		writes := 0
		overtaking(b, func() {
			b.start(b.hub)
			b.settled(t, cro)
			writes = b.writes
		})
		_, err := slow.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		require.NoError(t, err)
		assert.Equal(t, "cro-0:a*", b.taken(t))
		assert.Positive(t, writes)
	})
	t.Run("by one with later content", func(t *testing.T) {
		b := newBench(t, clusterOverride(0, "cro", "a"))
		slow := b.cluster
		overtaking(b, func() {
			b.edit(t, cro, "b")
			b.start(b.hub)
			b.settled(t, cro)
		})
		_, err := slow.Reconcile(t.Context(), ctrl.Request{NamespacedName: cro})
		require.NoError(t, err)
		assert.Equal(t, "cro-0:b*", b.taken(t))
	})
}
