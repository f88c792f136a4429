package binding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const hookLabel, hookFinalizer = "example.com/in-service", "example.com/drain"

// hooked is a bench with an available cluster of a placement with hooks, which stands somewhere between them.
func hooked(t *testing.T, state placementv1beta1.LifecycleState) *bench {
	t.Helper()
	b := newBench(t, fleet()...)
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "app"}, placement))
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Lifecycle: &placementv1beta1.ClusterLifecycle{
		PreUpdate: &placementv1beta1.ClusterDrainHook{
			ClusterHook:    placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{hookLabel: "yes"}},
			MarkNotServing: true,
		},
		PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{hookFinalizer}}},
	}}
	require.NoError(t, b.hub.Update(t.Context(), placement))
	b.sync(t)
	b.report(t, metav1.ConditionTrue)
	b.mark(t, func(binding *placementv1beta1.ClusterResourceBinding) {
		binding.Labels[placementv1beta1.LifecycleStateLabel] = string(state)
	})
	return b
}

func (b *bench) mark(t *testing.T, change func(*placementv1beta1.ClusterResourceBinding)) {
	t.Helper()
	binding := b.binding(t)
	change(binding)
	require.NoError(t, b.hub.Update(t.Context(), binding))
}

func (b *bench) stands(t *testing.T) placementv1beta1.LifecycleState {
	t.Helper()
	state, _ := rules.LifecycleStateOf(b.binding(t))
	return state
}

func TestAClusterComesBackIntoServiceAfterAnUpdate(t *testing.T) {
	b := hooked(t, placementv1beta1.LifecycleUpdating)
	b.reconcile(t)
	assert.Equal(t, placementv1beta1.LifecycleUpdated, b.stands(t))
	b.reconcile(t)
	available := b.condition(t, placementv1beta1.ConditionTypeAvailable)
	assert.Equal(t, metav1.ConditionFalse, available.Status)
	assert.Equal(t, placementv1beta1.ReasonWaitingForHook, available.Reason)
	assert.Equal(t, "The cluster waits for label example.com/in-service=yes to be put on binding "+name+" since 2025-03-17T21:00:00Z (hook preUpdate)", available.Message)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeServing).Status)

	b.mark(t, func(binding *placementv1beta1.ClusterResourceBinding) { binding.Labels[hookLabel] = "yes" })
	b.reconcile(t)
	assert.Equal(t, placementv1beta1.LifecycleNormal, b.stands(t))
	b.reconcile(t)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
	writes := b.statusWrites
	b.reconcile(t)
	assert.Equal(t, writes, b.statusWrites, "what does not change is not written")
}

func TestAPreparedClusterSaysThatItServesNobody(t *testing.T) {
	b := hooked(t, placementv1beta1.LifecyclePreparingUpdate)
	b.mark(t, func(binding *placementv1beta1.ClusterResourceBinding) { binding.Labels[hookLabel] = "yes" })
	b.reconcile(t)
	assert.Equal(t, placementv1beta1.LifecyclePreparingUpdate, b.stands(t), "that it is prepared is not for this controller to end")
	serving := b.condition(t, placementv1beta1.ConditionTypeServing)
	assert.Equal(t, metav1.ConditionFalse, serving.Status)
	assert.Equal(t, placementv1beta1.ReasonWaitingForHook, b.condition(t, placementv1beta1.ConditionTypeAvailable).Reason)
	b.later(time.Minute)
	b.reconcile(t)
	assert.Equal(t, serving.LastTransitionTime, b.condition(t, placementv1beta1.ConditionTypeServing).LastTransitionTime, "the grace period counts from then")
}

func TestWithoutHooksNothingOfThemStays(t *testing.T) {
	b := hooked(t, placementv1beta1.LifecyclePreparingUpdate)
	b.reconcile(t)
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "app"}, placement))
	placement.Spec.Strategy = nil
	require.NoError(t, b.hub.Update(t.Context(), placement))
	b.reconcile(t)
	b.reconcile(t)
	assert.NotContains(t, b.binding(t).Labels, placementv1beta1.LifecycleStateLabel)
	assert.NotContains(t, b.binding(t).Annotations, placementv1beta1.LifecycleSinceAnnotation)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeServing).Status)
	assert.Equal(t, metav1.ConditionTrue, b.condition(t, placementv1beta1.ConditionTypeAvailable).Status)
}

func TestTheFinalizerOfAHookHoldsNoBindingWhoseResourcesAreGone(t *testing.T) {
	b := hooked(t, placementv1beta1.LifecycleNormal)
	b.mark(t, func(binding *placementv1beta1.ClusterResourceBinding) {
		binding.Finalizers = append(binding.Finalizers, hookFinalizer)
	})
	require.NoError(t, b.hub.Delete(t.Context(), b.binding(t)))
	b.reconcile(t)
	for _, work := range b.list(t) {
		work.Finalizers = nil
		require.NoError(t, b.hub.Update(t.Context(), &work))
	}
	b.reconcile(t)
	err := b.hub.Get(t.Context(), client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourceBinding{})
	assert.True(t, apierrors.IsNotFound(err))
}
