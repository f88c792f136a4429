package bind_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestMoreThanAHandfulIsTooMany(t *testing.T) {
	for _, test := range []struct {
		unexplained, live int
		tooMany           bool
	}{
		{0, 0, false}, {5, 5, false}, {6, 6, true}, {6, 59, true}, {6, 60, false}, {7, 60, true},
		{10, 100, false}, {11, 100, true}, {25, 250, false}, {25, 100_000, false}, {26, 100_000, true},
	} {
		assert.Equal(t, test.tooMany, bind.IsTooMany(test.unexplained, test.live), "%d of %d", test.unexplained, test.live)
	}
}

// fleet is a placement crp on n clusters, of which some are in the fleet.
func fleet(n, present int) []client.Object {
	objects := []client.Object{&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 1}}}
	for i := range n {
		name := fmt.Sprintf("member-%02d", i)
		objects = append(objects, fixture.Binding(name, 1))
		if i < present {
			objects = append(objects, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	return objects
}

// unlabelled takes the labels off bindings, whose policy snapshot says of which placement they are.
func unlabelled(objects []client.Object) []client.Object {
	for _, object := range objects {
		if binding, is := object.(*placementv1beta1.ClusterResourceBinding); is {
			binding.Labels = nil
			binding.Spec.SchedulingPolicySnapshotName = "crp-0"
		}
	}
	return objects
}

func newCatch(t *testing.T, objects []client.Object) *bind.SafetyCatch {
	t.Helper()
	catch := &bind.SafetyCatch{Cached: fixture.APIServer(t, objects...)}
	require.NoError(t, catch.Start(t.Context()))
	return catch
}

func TestOrphansOfALostFleetAreHeld(t *testing.T) {
	unscheduled := fixture.Binding("member-08", 1)
	unscheduled.Spec.State = placementv1beta1.BindingStateUnscheduled
	for sentence, test := range map[string]struct {
		objects []client.Object
		binding placementv1beta1.BindingObject
		held    bool
	}{
		"a handful of clusters is gone":          {fleet(10, 5), fixture.Binding("member-09", 1), false},
		"more clusters are gone":                 {fleet(10, 4), fixture.Binding("member-09", 1), true},
		"a cluster that is there is no matter":   {fleet(10, 4), fixture.Binding("member-00", 1), false},
		"the placement is gone":                  {fleet(10, 10)[1:], fixture.Binding("member-00", 1), true},
		"more clusters are gone, and the labels": {unlabelled(fleet(10, 4)), fixture.Binding("member-09", 1), true},
		"it was let go before":                   {fleet(10, 4), unscheduled, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			held, err := newCatch(t, test.objects).HoldsOrphan(t.Context(), test.binding)
			require.NoError(t, err)
			assert.Equal(t, test.held, held)
		})
	}
}

func TestWhatHappensWhileTheAgentRunsIsNotHeld(t *testing.T) {
	objects := fleet(10, 10)
	hub := fixture.APIServer(t, objects...)
	catch := &bind.SafetyCatch{Cached: hub}
	require.NoError(t, catch.Start(t.Context()))
	require.NoError(t, hub.DeleteAllOf(t.Context(), &clusterv1beta1.MemberCluster{}))
	held, err := catch.HoldsOrphan(t.Context(), fixture.Binding("member-00", 1))
	require.NoError(t, err)
	assert.False(t, held)
	removals, err := catch.HoldRemovals(t.Context(), &placementv1beta1.ClusterResourcePlacement{}, removalsOf(10, scheduler.ClusterGone), uidsOf(10))
	require.NoError(t, err)
	assert.Empty(t, removals)
}

func TestAReplicaThatHasWaitedForLongHoldsNothingThatHasChangedSince(t *testing.T) {
	catch := newCatch(t, fleet(10, 0)) // the clusters were lost when it started
	hold := func(n int) int {
		removals, err := catch.HoldRemovals(t.Context(), placementNamed("crp"), removalsOf(n, scheduler.ClusterGone), uidsOf(10))
		require.NoError(t, err)
		return len(removals)
	}
	assert.Equal(t, 10, hold(10))
	assert.Equal(t, 7, hold(7), "three have been put back")
	assert.Equal(t, 7, hold(10), "and were taken away again, which it has seen")
	held, err := catch.HoldsOrphan(t.Context(), fixture.Binding("member-09", 1))
	require.NoError(t, err)
	assert.False(t, held)
	held, err = catch.HoldsOrphan(t.Context(), fixture.Binding("member-00", 1))
	require.NoError(t, err)
	assert.True(t, held)
}

func removalsOf(n int, why string) []rules.HeldRemoval {
	var all []rules.HeldRemoval
	for i := range n {
		all = append(all, rules.HeldRemoval{Binding: fmt.Sprintf("crp-member-%02d", i), Cluster: fmt.Sprintf("member-%02d", i), Why: why})
	}
	return all
}

func uidsOf(n int) map[string]types.UID {
	uids := map[string]types.UID{}
	for i := range n {
		uids[fmt.Sprintf("crp-member-%02d", i)] = types.UID(fmt.Sprintf("uid-member-%02d", i))
	}
	return uids
}

func TestTheFirstLookAtAPlacementCounts(t *testing.T) {
	catch := newCatch(t, fleet(10, 10))
	first := placementNamed("first")
	second := placementNamed("second")
	hold := func(placement placementv1beta1.PlacementObject, n int) int {
		removals, err := catch.HoldRemovals(t.Context(), placement, removalsOf(n, scheduler.NoLongerPicked), uidsOf(n))
		require.NoError(t, err)
		return len(removals)
	}
	assert.Zero(t, hold(first, 0), "its first look finds nothing")
	assert.Zero(t, hold(first, 10), "later looks are ordinary work")
	assert.Equal(t, 10, hold(second, 10))
	assert.Equal(t, 10, hold(second, 10), "and again")
	held := second.DeepCopy()
	held.Annotations = map[string]string{placementv1beta1.RemovalsHeldAnnotation: rules.NewHeldRemovals(second, removalsOf(3, "")).Encode()}
	catch = newCatch(t, fleet(10, 10))
	assert.Equal(t, 3, hold(held, 3), "what is held stays so, whatever the number")
}

func placementNamed(name string) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
}

func TestWithoutACatchNothingIsHeld(t *testing.T) {
	var none *bind.SafetyCatch
	held, err := none.HoldsOrphan(t.Context(), fixture.Binding("member-00", 1))
	require.NoError(t, err)
	assert.False(t, held)
	removals, err := none.HoldRemovals(t.Context(), placementNamed("crp"), removalsOf(10, scheduler.ClusterGone), nil)
	require.NoError(t, err)
	assert.Empty(t, removals)
}
