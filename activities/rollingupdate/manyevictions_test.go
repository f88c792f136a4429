package rollingupdate_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// requests to a hub, as far as they cost it something.
type requests struct{ writes, lists atomic.Int64 }

// counted has the requests of the activity counted.
func (r *rollout) counted() *requests {
	n := &requests{}
	r.rolling.Client = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			n.writes.Add(1)
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			n.writes.Add(1)
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			n.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*placementv1beta1.ClusterResourcePlacementEvictionList); ok {
				n.lists.Add(1)
			}
			return c.List(ctx, list, opts...)
		},
	})
	return n
}

// A thousand evictions at once cost one write each for the outcome, one for each binding that
// goes, and a claim for each batch; a budget is spent once, however many ask.
func TestAThousandEvictionsAtOnce(t *testing.T) {
	const clusters, each, budget = 100, 10, 30
	var bindings []*placementv1beta1.ClusterResourceBinding
	for i := range clusters {
		bindings = append(bindings, bound(fmt.Sprintf("c%03d", i), newSnapshot))
	}
	r := newRollout(t, bindings...)
	r.budget(0)
	r.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.NumberOfClusters = new(int32(clusters))
	})
	stored := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: "crp"}, stored))
	stored.Spec.MaxUnavailable = new(intstr.FromInt(budget))
	require.NoError(t, r.Update(t.Context(), stored))
	var all []*placementv1beta1.ClusterResourcePlacementEviction
	for i := range clusters * each {
		e := eviction(fmt.Sprintf("c%03d", i%clusters), i)
		all = append(all, e)
		r.ask(e)
	}
	n := r.counted()
	r.evictAll()

	assert.Len(t, r.left(), clusters-budget)
	outcomes := map[string]int{}
	for _, e := range all {
		outcomes[fmt.Sprint(r.said(e)[0:len(r.said(e))-1])]++
	}
	assert.Equal(t, budget, outcomes["[Valid True Executed True]"], "%v", outcomes)
	assert.Equal(t, budget*(each-1), outcomes["[Valid False]"], "nothing is there any more: %v", outcomes)
	assert.Equal(t, (clusters-budget)*each, outcomes["[Valid True Executed False]"], "%v", outcomes)
	most := int64(clusters*each + budget + 10)
	assert.LessOrEqual(t, n.writes.Load(), most, "writes")
	assert.LessOrEqual(t, n.lists.Load(), int64(60), "lists of evictions")

	before := n.writes.Load()
	r.evictAll()
	assert.Equal(t, before, n.writes.Load(), "what has an outcome keeps it")
}
