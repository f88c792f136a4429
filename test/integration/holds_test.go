//go:build integration

package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// stopTheLine creates a hold of the spec's placement alone, which other specs do not notice.
func (s *spec) stopTheLine(change func(*fleetflowv1alpha1.RolloutHoldSpec)) *fleetflowv1alpha1.RolloutHold {
	s.Helper()
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Labels = s.mine()
	})
	hold := &fleetflowv1alpha1.RolloutHold{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec:       fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down", PlacementSelector: &metav1.LabelSelector{MatchLabels: s.mine()}},
	}
	if change != nil {
		change(&hold.Spec)
	}
	s.create(hold)
	return hold
}

// isHeld says whether conditions tell that so many clusters wait for the spec's hold.
func (s *spec) isHeld(conditions []metav1.Condition, waiting int) error {
	held := meta.FindStatusCondition(conditions, fleetflowv1alpha1.ConditionTypeHeld)
	switch {
	case waiting == 0 && (held == nil || held.Status == metav1.ConditionFalse):
		return nil
	case waiting > 0 && held != nil && held.Reason == fleetflowv1alpha1.ReasonHoldInForce &&
		strings.HasPrefix(held.Message, fmt.Sprintf("%d of ", waiting)) && strings.Contains(held.Message, "wait for hold "+s.name+" (payments down)"):
		return nil
	}
	return fmt.Errorf("its conditions are %s", spoken(conditions))
}

// awaitHold waits until the status of a hold tells what it holds, and that nothing is under way.
func (s *spec) awaitHold(hold *fleetflowv1alpha1.RolloutHold, runs, placements int32) {
	s.Helper()
	await(s, s.hub, hold.DeepCopy(), "to tell what it holds", func(h *fleetflowv1alpha1.RolloutHold) error {
		if h.Status.HeldRuns != runs || h.Status.HeldPlacements != placements || h.Status.InFlight != 0 {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return isTrue(h.Status.Conditions, fleetflowv1alpha1.ConditionTypeQuiet, h.Generation)
	})
}

// holdStopsARollingUpdate is acceptance B7.5 for a rolling update, a first placement and an eviction: with a hold nothing begins
// and nothing is written, and without it all goes on.
func holdStopsARollingUpdate(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickFixed("member-1", "member-2"))
	s.awaitAvailable("0")
	hold := s.stopTheLine(nil)
	s.changeTo(value2)
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.ClusterNames = []string{"member-2", "member-3"}
	})
	await(s, s.hub, s.placement(), "to be held", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return s.isHeld(p.Status.Conditions, 3) // an update, a first placement, a removal
	})
	s.awaitHold(hold, 0, 1)
	s.requireQuiet()
	s.awaitValue(value1, "member-1", "member-2")
	s.requireNothingOn("member-3")

	s.delete(s.hub, hold)
	released := time.Now()
	s.awaitValue(value2, "member-2", "member-3")
	s.awaitCleared("member-1")
	s.Logf("released, all went on within %s", time.Since(released))
	await(s, s.hub, s.placement(), "to be held no longer", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return s.isHeld(p.Status.Conditions, 0)
	})
}

// holdStopsARun is the same for an update run, whose clusters wait without a workflow that does anything.
func holdStopsARun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	hold := s.stopTheLine(nil)
	run := s.startRun("run", "0")
	await(s, s.hub, run.DeepCopy(), "to be held", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		progressing := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeProgressing)
		if progressing == nil || progressing.Reason != placementv1beta1.ReasonUpdateRunWaiting {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return s.isHeld(r.Status.Conditions, 1)
	})
	s.awaitHold(hold, 1, 0)
	s.requireIdle(run)
	s.requireNothingOn(allMembers...)
	require.EventuallyWithT(s, func(c *assert.CollectT) { // on a busy machine the activity that has recorded it may not have returned
		out, err := s.command(s.Context(), "temporal", "workflow", "query", "--workflow-id", workflowOf(run), "--name", "status")
		require.NoError(c, err, out)
		assert.Contains(c, out, "hold "+s.name)
	}, patience, visibilityEvery)

	s.delete(s.hub, hold)
	ended := s.awaitSucceeded(run)
	require.NoError(s, s.isHeld(ended.Status.Conditions, 0))
	s.awaitValue(value1, allMembers...)
}

// holdThatExpiresLetsGo is a hold that ends by itself, of a run and then of a rolling update.
func holdThatExpiresLetsGo(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	expires := metav1.NewTime(time.Now().Add(8 * time.Second).Truncate(time.Second))
	hold := s.stopTheLine(func(h *fleetflowv1alpha1.RolloutHoldSpec) { h.ExpirationTime = &expires })
	run := s.startRun("run", "0")
	ended := s.awaitSucceeded(run)
	for i := range ended.Status.StagesStatus {
		began := ended.Status.StagesStatus[i].StartTime
		require.False(s, began.Before(&expires), "stage %s began at %s, the hold ends at %s", ended.Status.StagesStatus[i].StageName, began, expires)
	}
	await(s, s.hub, hold, "to have expired", func(h *fleetflowv1alpha1.RolloutHold) error {
		effective := meta.FindStatusCondition(h.Status.Conditions, fleetflowv1alpha1.ConditionTypeEffective)
		if effective == nil || effective.Reason != fleetflowv1alpha1.ReasonHoldExpired {
			return fmt.Errorf("its conditions are %s", spoken(h.Status.Conditions))
		}
		return nil
	})
}
