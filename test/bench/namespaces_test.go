//go:build bench

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// TestNamespaces has 1,000 application teams: a ResourcePlacement in each of so many namespaces. At rest they cost nothing, and
// what changes in one namespace wakes one workflow.
func TestNamespaces(t *testing.T) {
	f := shared
	size := 3
	names := named("team", scaled(1000, 20))
	f.grow(t, size)
	f.content(t, names...)
	picked := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: f.members.Members()[:size]}
	began := time.Now()
	each(t, names, func(ctx context.Context, _ int, name string) error {
		return f.hub.Create(ctx, &placementv1beta1.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "bench"}},
				Policy:            picked, Strategy: rolling("100%"),
			},
		})
	})
	f.awaitAvailableInNamespaces(t, map[string]int{"0": len(names)})
	f.figures.add(t, fmt.Sprintf("%d placements in %d namespaces, from the first creation to the last Available", len(names), len(names)), "-", seconds(time.Since(began)))
	f.awaitQuiet(t)
	f.rest(t, waitFor) // Go gives back by then what placing them has taken
	f.atRest(t, fmt.Sprintf("%d placements in %d namespaces at rest", len(names), len(names)))

	changed := time.Now().UTC()
	f.change(t, "value-1", names[0])
	f.awaitAvailableInNamespaces(t, map[string]int{"0": len(names) - 1, "1": 1})
	f.awaitNoneOpen(t)
	woken := f.executions(t, fmt.Sprintf(`StartTime > %q`, changed.Format(time.RFC3339Nano)))
	f.figures.add(t, "workflows that a change in one namespace wakes", "1", count(len(woken)))
	assert.Len(t, woken, 1)
}

// awaitAvailableInNamespaces waits until so many placements are available with each resource index.
func (f *fleet) awaitAvailableInNamespaces(t *testing.T, want map[string]int) {
	t.Helper()
	available := placementv1beta1.AnyNamespace.PlacementConditionType(placementv1beta1.ConditionTypeAvailable)
	f.await(t, patience, "placements in namespaces to be available", func() string {
		all := &placementv1beta1.ResourcePlacementList{}
		if err := f.cache.List(t.Context(), all); err != nil {
			return err.Error()
		}
		got := map[string]int{}
		for i := range all.Items {
			if p := &all.Items[i]; meta.IsStatusConditionTrue(p.Status.Conditions, available) {
				got[p.Status.ObservedResourceIndex]++
			}
		}
		if !assert.ObjectsAreEqual(want, got) {
			return fmt.Sprintf("by index: %v of %v", got, want)
		}
		return ""
	})
}
