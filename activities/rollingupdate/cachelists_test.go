package rollingupdate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// With thousands of placements, the cache has too many bindings to go through all of them for each.
func TestTheCacheFindsTheBindingsOfAPlacementByAnIndex(t *testing.T) {
	r := newRollout(t, bound("a", oldSnapshot), bound("b", oldSnapshot))
	r.roll(2, placementv1beta1.RollingUpdateConfig{MaxUnavailable: percentOrNumber("1"), MaxSurge: percentOrNumber("0")})
	lists := 0
	r.rolling.Client = interceptor.NewClient(r.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, bindings := list.(*placementv1beta1.ClusterResourceBindingList); bindings {
				lists++
				asked := (&client.ListOptions{}).ApplyOptions(options)
				assert.NotNil(t, asked.FieldSelector, "the cache goes through all bindings")
			}
			return c.List(ctx, list, options...)
		},
	})
	r.finish()
	assert.Positive(t, lists)
}
