//go:build integration

package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// opening is one opening of a window.
func opening(start, end time.Time) []fleetflowv1alpha1.DatedOpening {
	const layout = "2006-01-02T15:04"
	return []fleetflowv1alpha1.DatedOpening{{Start: start.UTC().Format(layout), End: end.UTC().Format(layout)}}
}

// runWaitsForItsWindow has a stage wait for an Allow that never opens, which becomes a Deny that ends by the clock.
func runWaitsForItsWindow(s *spec) {
	late := canary()
	late.Name = strings.ReplaceAll(s.name, "-", "") // no stage of another spec
	window := &fleetflowv1alpha1.RolloutWindow{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: fleetflowv1alpha1.RolloutWindowSpec{
			Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, Stages: []string{late.Name}, TimeZone: "UTC", Reason: "change 17",
			Dates: opening(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, time.January, 2, 0, 0, 0, 0, time.UTC)),
		},
	}
	s.create(window)
	await(s, s.hub, window.DeepCopy(), "to be closed for good", func(w *fleetflowv1alpha1.RolloutWindow) error {
		reachable := meta.FindStatusCondition(w.Status.Conditions, fleetflowv1alpha1.ConditionTypeReachable)
		if reachable == nil || reachable.Status != metav1.ConditionFalse || w.Status.Open || w.Status.NextOpen != nil {
			return fmt.Errorf("its status is %+v", w.Status)
		}
		return isTrue(w.Status.Conditions, fleetflowv1alpha1.ConditionTypeValid, w.Generation)
	})
	s.externalPlacement()
	s.strategy(staging(), late)
	run := s.startRun("run", "0")
	s.awaitHeld(run, fleetflowv1alpha1.ReasonOutsideAllowedWindow, "2 of 2 cluster(s) of stage "+late.Name+" wait for window "+s.name+" (change 17)")
	s.awaitValue(value1, "member-2")
	s.requireNothingOn("member-1", "member-3")
	events := s.requireIdle(run)

	// The window becomes a Deny that ends in some seconds.
	began := time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
	opens := time.Now().UTC().Truncate(time.Second).Add(6 * time.Second)
	update(s, s.hub, window.DeepCopy(), func(w *fleetflowv1alpha1.RolloutWindow) {
		w.Spec.Type, w.Spec.Dates = fleetflowv1alpha1.WindowDeny, nil
		w.Spec.Cron = []fleetflowv1alpha1.CronOpening{{
			Expression: fmt.Sprintf("%d %d %d %d *", began.Minute(), began.Hour(), began.Day(), began.Month()), Duration: metav1.Duration{Duration: opens.Sub(began)},
		}}
	})
	s.awaitHeld(run, fleetflowv1alpha1.ReasonWindowClosed, "wait for window "+s.name+" (change 17): ends "+opens.Format(time.RFC3339))
	await(s, s.hub, window.DeepCopy(), "to end", func(w *fleetflowv1alpha1.RolloutWindow) error {
		if w.Status.Open || w.Generation < 2 {
			return fmt.Errorf("it is %s", w.Status.Reason)
		}
		return nil
	})
	ended := s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	require.Nil(s, meta.FindStatusCondition(ended.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld))
	for _, cluster := range ended.Status.StagesStatus[1].Clusters {
		started := meta.FindStatusCondition(cluster.Conditions, placementv1beta1.ConditionTypeStarted)
		require.NotNil(s, started)
		require.False(s, started.LastTransitionTime.Time.Before(opens), "%s started at %s, the window ends at %s", cluster.ClusterName, started.LastTransitionTime, opens)
	}
	s.awaitClosed(workflowOf(run))
	s.Logf("events of the run: %d before it waited for the clock, %d in the end; %d of its stage", events, len(s.history(workflowOf(run)).GetEvents()),
		len(s.history(wf.StageID(workflowOf(run), late.Name)).GetEvents()))
	s.delete(s.hub, window)
}

// requireIdle looks until a run that waits writes nothing, in Temporal's history neither, and returns how long that is.
func (s *spec) requireIdle(run *placementv1beta1.ClusterStagedUpdateRun) (events int) {
	s.Helper()
	recordings := []*recording{s.record(s.hub, &placementv1beta1.ClusterStagedUpdateRun{}, client.MatchingFields{"metadata.name": run.Name}), s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())}
	var happened []string
	for range quietTries {
		events = len(s.history(workflowOf(run)).GetEvents())
		happened = s.during(recordings, quietFor)
		if more := len(s.history(workflowOf(run)).GetEvents()) - events; more > 0 {
			happened = append(happened, fmt.Sprintf("%d events", more))
		}
		if len(happened) == 0 {
			return events
		}
	}
	require.Empty(s, happened, "though the run waits")
	return events
}

// awaitHeld waits until a run says in its condition Held what it waits for.
func (s *spec) awaitHeld(run *placementv1beta1.ClusterStagedUpdateRun, reason, message string) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to be held", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		held := meta.FindStatusCondition(r.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld)
		if held == nil || held.Reason != reason || !strings.Contains(held.Message, message) {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
}
