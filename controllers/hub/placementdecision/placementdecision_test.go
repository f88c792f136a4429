package placementdecision

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// bench is a Reconciler on a fake hub that counts its writes.
type bench struct {
	*Reconciler
	hub    client.Client
	writes int
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t)
	require.NoError(t, inventoryv1alpha1.AddToScheme(scheme))
	b := &bench{}
	builder := fixture.NewClientBuilder(scheme).WithObjects(objects...)
	for _, index := range fieldindex.All() {
		if index.Field == fieldindex.ByPlacement {
			if _, is := index.Object.(placementv1beta1.BindingObject); is {
				builder = builder.WithIndex(index.Object, index.Field, index.Extract)
			}
		}
	}
	b.hub = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			b.writes++
			o.SetUID("uid") // the fake gives none
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			b.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			b.writes++
			return c.Delete(ctx, o, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.hub, "fleet-system")
	return b
}

func (b *bench) reconcile(t *testing.T, namespace, placement string) {
	t.Helper()
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: placement}})
	require.NoError(t, err)
}

// decisions returns the clusters of each decision, by its name.
func (b *bench) decisions(t *testing.T) map[string][]string {
	t.Helper()
	list := &inventoryv1alpha1.PlacementDecisionList{}
	require.NoError(t, b.hub.List(t.Context(), list))
	found := map[string][]string{}
	for _, decision := range list.Items {
		names := []string{}
		for _, one := range decision.Decisions {
			names = append(names, one.ClusterProfileRef.Name)
		}
		found[decision.Namespace+"/"+decision.Name] = names
	}
	return found
}

func placement(namespace, name string) placementv1beta1.PlacementObject {
	return placementv1beta1.Scope{Namespace: namespace}.NewPlacement(name)
}

func binding(namespace, placement, cluster string) placementv1beta1.BindingObject {
	b := placementv1beta1.Scope{Namespace: namespace}.NewBinding(placement + "-" + cluster)
	b.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: placement})
	spec := b.GetBindingSpec()
	spec.TargetCluster = cluster
	spec.State = placementv1beta1.BindingStateBound
	spec.ClusterDecision.Reason = "picked " + cluster
	return b
}

func TestAPlacementHasADecisionWhileItIsThere(t *testing.T) {
	gone := binding("", "web", "d")
	gone.GetBindingSpec().State = placementv1beta1.BindingStateUnscheduled
	b := newBench(t, placement("", "web"), binding("", "web", "b"), binding("", "web", "a"), gone, binding("", "other", "c"))
	b.reconcile(t, "", "web")
	require.Equal(t, map[string][]string{"fleet-system/crp-web-0": {"a", "b"}}, b.decisions(t))

	decision := &inventoryv1alpha1.PlacementDecision{}
	key := client.ObjectKey{Namespace: "fleet-system", Name: "crp-web-0"}
	require.NoError(t, b.hub.Get(t.Context(), key, decision))
	assert.Equal(t, "crp-web", decision.Labels[inventoryv1alpha1.DecisionKeyLabel])
	assert.Equal(t, "0", decision.Labels[inventoryv1alpha1.DecisionIndexLabel])
	assert.Equal(t, "kubefleet", decision.SchedulerName)
	assert.Equal(t, "picked a", decision.Decisions[0].Reason)
	require.Equal(t, 1, b.writes)
	b.reconcile(t, "", "web")
	assert.Equal(t, 1, b.writes, "nothing has changed")

	decision.Decisions = nil
	delete(decision.Labels, inventoryv1alpha1.DecisionIndexLabel)
	require.NoError(t, b.hub.Update(t.Context(), decision))
	b.reconcile(t, "", "web")
	require.Equal(t, map[string][]string{"fleet-system/crp-web-0": {"a", "b"}}, b.decisions(t), "what somebody changed is put right")
	assert.Equal(t, []string{"web"}, requested(b.placementOfDecision(t.Context(), decision)))

	require.NoError(t, b.hub.Delete(t.Context(), placement("", "web")))
	b.reconcile(t, "", "web")
	assert.Empty(t, b.decisions(t))
}

func TestAPlacementInANamespaceHasADecisionOfItsOwn(t *testing.T) {
	b := newBench(t, placement("", "web"), placement("team", "web"), binding("team", "web", "a"), binding("team-2", "web", "b"))
	b.reconcile(t, "", "web")
	b.reconcile(t, "team", "web")
	require.Equal(t, map[string][]string{"fleet-system/crp-web-0": {}, "fleet-system/rp-team.web-0": {"a"}}, b.decisions(t), "one that is on no cluster says so")
	decision := &inventoryv1alpha1.PlacementDecision{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "rp-team.web-0"}, decision))
	assert.Equal(t, []string{"team/web"}, requested(b.placementOfDecision(t.Context(), decision)))
	decision.Namespace = "elsewhere"
	assert.Empty(t, b.placementOfDecision(t.Context(), decision))
}

func TestADecisionOfWhichTheCacheDoesNotKnowYetIsNoError(t *testing.T) {
	b := newBench(t, placement("", "web"), binding("", "web", "a"))
	b.reconcile(t, "", "web")
	behind := interceptor.NewClient(b.hub.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*inventoryv1alpha1.PlacementDecisionList); is {
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
	b.Reconciler = NewReconciler(behind, b.hub, "fleet-system")
	require.NoError(t, b.hub.Create(t.Context(), binding("", "web", "b")))
	b.reconcile(t, "", "web")
	require.Equal(t, map[string][]string{"fleet-system/crp-web-0": {"a", "b"}}, b.decisions(t))

	decision := &inventoryv1alpha1.PlacementDecision{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "crp-web-0"}, decision))
	decision.Annotations = nil
	require.NoError(t, b.hub.Update(t.Context(), decision))
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "web"}})
	require.ErrorContains(t, err, "creating placement decision fleet-system/crp-web-0", "it is another's")
}

func requested(requests []ctrl.Request) []string {
	var names []string
	for _, one := range requests {
		names = append(names, strings.TrimPrefix(one.String(), "/"))
	}
	return names
}

func TestADecisionTakesAHundredClusters(t *testing.T) {
	objects := []client.Object{placement("", "web")}
	for i := range 205 {
		objects = append(objects, binding("", "web", fmt.Sprintf("c%03d", i)))
	}
	b := newBench(t, objects...)
	b.reconcile(t, "", "web")
	found := b.decisions(t)
	require.Len(t, found, 3)
	for slice, size := range []int{100, 100, 5} {
		assert.Len(t, found[fmt.Sprintf("fleet-system/crp-web-%d", slice)], size)
	}
	before := b.writes
	for i := range 105 {
		require.NoError(t, b.hub.Delete(t.Context(), binding("", "web", fmt.Sprintf("c%03d", i+100))))
	}
	writes := b.writes
	b.reconcile(t, "", "web")
	require.Len(t, b.decisions(t), 1, "slices that have no clusters any more go")
	assert.Equal(t, 2, b.writes-writes, "and what has stayed the same is not written")
	assert.Equal(t, 3, before)
}

func TestDecisionsOfOthersAreLeftAlone(t *testing.T) {
	theirs := &inventoryv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-system", Name: "theirs", Labels: map[string]string{inventoryv1alpha1.DecisionKeyLabel: "crp-web"},
	}, Decisions: []inventoryv1alpha1.ClusterDecision{}}
	b := newBench(t, theirs)
	b.reconcile(t, "", "web")
	assert.Contains(t, b.decisions(t), "fleet-system/theirs")
}

func TestNamesOfDecisionsFit(t *testing.T) {
	long := strings.Repeat("a", 200)
	for _, scope := range []placementv1beta1.Scope{{}, {Namespace: strings.Repeat("n", 60)}, {Namespace: strings.Repeat("n", 42)}} {
		key := KeyOf(scope, long)
		assert.Empty(t, validation.IsValidLabelValue(key))
		assert.Empty(t, validation.IsDNS1123Subdomain(key+"-12"))
		assert.NotEqual(t, key, KeyOf(scope, long+"b"))
	}
	assert.NotEqual(t, KeyOf(placementv1beta1.Scope{}, "a.b"), KeyOf(placementv1beta1.Scope{Namespace: "a"}, "b"))
}

func TestARolloutIsNoOtherDecision(t *testing.T) {
	before := binding("", "web", "a")
	after := binding("", "web", "a")
	after.GetBindingSpec().ResourceSnapshotName = "web-2-snapshot"
	assert.False(t, decidesOtherwise(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	after.GetBindingSpec().State = placementv1beta1.BindingStateUnscheduled
	assert.True(t, decidesOtherwise(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
}
