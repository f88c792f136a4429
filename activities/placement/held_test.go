package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/placement"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// restarted are the activities of a hub agent that has just started.
func (h *hub) restarted() *placement.Activities {
	h.t.Helper()
	a := h.activities()
	a.Catch = &bind.SafetyCatch{Cached: h}
	require.NoError(h.t, a.Catch.Start(h.t.Context()))
	return a
}

// onTenClusters is a hub whose placement has been scheduled to ten clusters.
func onTenClusters(t *testing.T) *hub {
	t.Helper()
	objects := []runtime.Object{crp()}
	for i := range 10 {
		objects = append(objects, member(fmt.Sprintf("member-%d", i)))
	}
	h := newHub(t, objects...)
	require.Equal(t, 10, h.schedule().Created)
	return h
}

// loseClusters takes clusters away as if their objects had never been restored.
func (h *hub) loseClusters(n int) {
	h.t.Helper()
	for i := range n {
		require.NoError(h.t, h.Delete(h.t.Context(), member(fmt.Sprintf("member-%d", i))))
	}
}

func TestALostFleetTakesNothingAwayUntilThatIsAccepted(t *testing.T) {
	h := onTenClusters(t)
	before := h.bindings()
	h.loseClusters(9)
	a := h.restarted()
	result, err := a.ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 9, result.Held)
	assert.Equal(t, before, h.bindings(), "nothing is let go")
	held := rules.HeldRemovalsOf(h.placement())
	require.NotNil(t, held)
	assert.Equal(t, 9, held.Total)

	h.writes = 0
	result, err = h.restarted().ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 9, result.Held, "a restart is no answer")
	assert.Zero(t, h.writes)

	p := h.placement()
	p.Annotations[placementv1beta1.RemovalsAcceptedAnnotation] = held.Token(p)
	require.NoError(t, h.Update(t.Context(), p))
	result, err = a.ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 9, result.Unscheduled)
	assert.NotContains(t, h.placement().Annotations, placementv1beta1.RemovalsHeldAnnotation)
	assert.NotContains(t, h.placement().Annotations, placementv1beta1.RemovalsAcceptedAnnotation, "an answer is good for one time")
}

func TestAnAnswerToAnotherQuestionLetsNothingGo(t *testing.T) {
	h := onTenClusters(t)
	h.loseClusters(7)
	_, err := h.restarted().ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	p := h.placement()
	p.Annotations[placementv1beta1.RemovalsAcceptedAnnotation] = rules.HeldRemovalsOf(p).Token(p)
	require.NoError(t, h.Update(t.Context(), p))
	require.NoError(t, h.Delete(t.Context(), member("member-7")))
	result, err := h.restarted().ScheduleClusters(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, 8, result.Held, "one more than was accepted")
}

func TestWhatUsersDidWhileTheAgentWasAwayIsDone(t *testing.T) {
	t.Run("they have named fewer clusters", func(t *testing.T) {
		h := onTenClusters(t)
		h.edit(pickFixed("member-1"))
		result, err := h.restarted().ScheduleClusters(t.Context(), ref)
		require.NoError(t, err)
		assert.Equal(t, 9, result.Unscheduled)
	})
	t.Run("clusters leave", func(t *testing.T) {
		h := onTenClusters(t)
		for i := range 9 {
			leaving := member(fmt.Sprintf("member-%d", i))
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving))
			leaving.Finalizers = []string{"kubernetes-fleet.io/membercluster-finalizer"}
			require.NoError(t, h.Update(t.Context(), leaving))
			require.NoError(t, h.WithWatch.Delete(t.Context(), leaving))
		}
		result, err := h.restarted().ScheduleClusters(t.Context(), ref)
		require.NoError(t, err)
		assert.Equal(t, 9, result.Unscheduled)
	})
	t.Run("the agent ended before it had let all go", func(t *testing.T) {
		h := onTenClusters(t)
		h.edit(pickFixed("member-1"))
		h.left = 4
		_, err := h.activities().ScheduleClusters(t.Context(), ref)
		require.ErrorIs(t, err, errDied)
		h.left = -1
		result, err := h.restarted().ScheduleClusters(t.Context(), ref)
		require.NoError(t, err)
		assert.Zero(t, result.Held)
		assert.NotEmpty(t, result.Unscheduled)
	})
}
