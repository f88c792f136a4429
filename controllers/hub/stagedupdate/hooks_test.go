package stagedupdate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestAClusterThatADeletedRunHasPreparedGoesBackIntoService(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"example.com/in-service": "yes"}}
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{
		Type:      placementv1beta1.ExternalRolloutStrategyType,
		Lifecycle: &placementv1beta1.ClusterLifecycle{PreUpdate: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}},
	}
	binding := func(cluster string, state placementv1beta1.LifecycleState) *placementv1beta1.ClusterResourceBinding {
		return &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, UID: types.UID(cluster), Labels: map[string]string{placementv1beta1.LifecycleStateLabel: string(state)}},
			Spec:       placementv1beta1.ResourceBindingSpec{TargetCluster: cluster},
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	failed := metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}
	preparedSince := func(cluster string, since time.Time) *placementv1beta1.ClusterResourceBinding {
		b := binding(cluster, placementv1beta1.LifecyclePreparingUpdate)
		b.Annotations = map[string]string{placementv1beta1.LifecycleSinceAnnotation: since.Format(time.RFC3339)}
		return b
	}
	started := []metav1.Condition{{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{Clusters: []placementv1beta1.ClusterUpdatingStatus{
		{ClusterName: "prepared", Conditions: started}, {ClusterName: "written", Conditions: started}, {ClusterName: "waiting"},
		{ClusterName: "given-up", Conditions: append(started, failed)}, {ClusterName: "prepared-again", Conditions: append(started, failed)},
	}}}
	objects := []client.Object{
		placement, binding("prepared", placementv1beta1.LifecyclePreparingUpdate), binding("written", placementv1beta1.LifecycleUpdating),
		binding("waiting", placementv1beta1.LifecyclePreparingUpdate),                         // by another run
		preparedSince("given-up", now), preparedSince("prepared-again", now.Add(time.Second)), // the latter by another run
	}
	c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).
		WithIndex(&placementv1beta1.ClusterResourceBinding{}, fieldindex.ByPlacement, func(client.Object) []string { return []string{"web"} }).Build()
	r := New(c, nil, clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))

	fails := errors.New("records cannot be written")
	r.BeforeEnd = func(context.Context, placementv1beta1.UpdateRunObject) error { return fails }
	require.ErrorIs(t, r.releaseRun(t.Context(), run), fails, "the run stays, but service does not wait for records")
	for cluster, want := range map[string]placementv1beta1.LifecycleState{
		"prepared": placementv1beta1.LifecycleUpdated, "written": placementv1beta1.LifecycleUpdating, "waiting": placementv1beta1.LifecyclePreparingUpdate,
		"given-up": placementv1beta1.LifecycleUpdated, "prepared-again": placementv1beta1.LifecyclePreparingUpdate,
	} {
		got := binding(cluster, "")
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(got), got))
		state, _ := rules.LifecycleStateOf(got)
		assert.Equal(t, want, state, cluster)
	}
}

func TestAClusterThatCannotBePutBackKeepsNoOtherOfADeletedRunOutOfService(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"example.com/in-service": "yes"}}
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{
		Type:      placementv1beta1.ExternalRolloutStrategyType,
		Lifecycle: &placementv1beta1.ClusterLifecycle{PreUpdate: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}},
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"}}
	run.Status.StagesStatus = make([]placementv1beta1.StageUpdatingStatus, 1)
	objects := []client.Object{placement}
	conditions := map[string]metav1.Condition{
		"a-refused": {Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue},
		"b-running": {Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue},
		"c-skipped": {Type: placementv1beta1.ConditionTypeBackInService, Status: metav1.ConditionFalse}, // the run could not put it back
	}
	for cluster, said := range conditions {
		run.Status.StagesStatus[0].Clusters = append(run.Status.StagesStatus[0].Clusters,
			placementv1beta1.ClusterUpdatingStatus{ClusterName: cluster, Conditions: []metav1.Condition{said}})
		objects = append(objects, &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, UID: types.UID(cluster),
				Labels: map[string]string{placementv1beta1.LifecycleStateLabel: string(placementv1beta1.LifecyclePreparingUpdate)}},
			Spec: placementv1beta1.ResourceBindingSpec{TargetCluster: cluster},
		})
	}
	refused := true
	c := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).
		WithIndex(&placementv1beta1.ClusterResourceBinding{}, fieldindex.ByPlacement, func(client.Object) []string { return []string{"web"} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if refused && o.GetName() == "web-a-refused" {
					return apierrors.NewForbidden(schema.GroupResource{}, o.GetName(), errors.New("not on Saturdays"))
				}
				return c.Patch(ctx, o, patch, opts...)
			},
		}).Build()
	r := New(c, nil, clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	stands := func(cluster string) placementv1beta1.LifecycleState {
		got := &placementv1beta1.ClusterResourceBinding{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "web-" + cluster}, got))
		state, _ := rules.LifecycleStateOf(got)
		return state
	}

	err := r.putBackPrepared(t.Context(), run)
	require.ErrorContains(t, err, "putting cluster a-refused back into service")
	require.ErrorContains(t, err, "not on Saturdays")
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, stands("a-refused"))
	assert.Equal(t, placementv1beta1.LifecycleUpdated, stands("b-running"))
	assert.Equal(t, placementv1beta1.LifecycleUpdated, stands("c-skipped"))
	refused = false
	require.NoError(t, r.putBackPrepared(t.Context(), run))
	assert.Equal(t, placementv1beta1.LifecycleUpdated, stands("a-refused"))
}

func TestAnErrorNamesTheFirstClustersOnly(t *testing.T) {
	require.NoError(t, joinFirst(nil))
	var many []error
	for range maxTold + 2 {
		many = append(many, errors.New("no"))
	}
	assert.ErrorContains(t, joinFirst(many), "and 2 more clusters")
}
