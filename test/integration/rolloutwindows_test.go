//go:build integration

package integration

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
			Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, Stages: []string{late.Name}, TimeZone: "UTC", Message: "change 17",
			Dates: opening(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, time.January, 2, 0, 0, 0, 0, time.UTC)),
		},
	}
	s.create(window)
	await(s, s.hub, window.DeepCopy(), "to be closed for good", func(w *fleetflowv1alpha1.RolloutWindow) error {
		reachable := meta.FindStatusCondition(w.Status.Conditions, fleetflowv1alpha1.ConditionTypeReachable)
		if reachable == nil || reachable.Status != metav1.ConditionFalse || w.Status.Active || w.Status.NextOpenTime != nil {
			return fmt.Errorf("its status is %+v", w.Status)
		}
		return isTrue(w.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted, w.Generation)
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
	opens := time.Now().UTC().Truncate(time.Second).Add(reopensIn)
	update(s, s.hub, window.DeepCopy(), func(w *fleetflowv1alpha1.RolloutWindow) {
		w.Spec.Type = fleetflowv1alpha1.WindowDeny
		w.Spec.Dates = nil
		w.Spec.Cron = []fleetflowv1alpha1.CronOpening{{
			Expression: fmt.Sprintf("%d %d %d %d *", began.Minute(), began.Hour(), began.Day(), began.Month()), Duration: fleetflowv1alpha1.Duration{Duration: opens.Sub(began)},
		}}
	})
	s.awaitHeld(run, fleetflowv1alpha1.ReasonWindowClosed, "wait for window "+s.name+" (change 17): ends "+opens.Format(time.RFC3339))
	await(s, s.hub, window.DeepCopy(), "to end", func(w *fleetflowv1alpha1.RolloutWindow) error {
		if w.Status.Active || w.Generation < 2 {
			return fmt.Errorf("its status is %+v", w.Status)
		}
		return nil
	})
	ended := s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	require.True(s, meta.IsStatusConditionFalse(ended.Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld))
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

// window creates a window for the stages that name it; it is open, unless it is changed.
func (s *spec) window(change func(*fleetflowv1alpha1.RolloutWindowSpec)) *fleetflowv1alpha1.RolloutWindow {
	s.Helper()
	window := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, TimeZone: "UTC", Message: "change 17",
		Dates: opening(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), time.Date(2120, time.January, 1, 0, 0, 0, 0, time.UTC)),
	}}
	if change != nil {
		change(&window.Spec)
	}
	s.create(window)
	return window
}

// windowClosesOnARun is acceptance B7.4 and B7.7: a window that its strategy names closes on a run with one cluster done and one
// in flight. That one ends, the last one waits, with the same end in sight whatever process dies meanwhile, and starts when
// the clock says so.
func windowClosesOnARun(s *spec) {
	all := everywhere()
	all.Windows = []string{s.name}
	s.externalPlacement()
	s.strategy(all)
	window := s.window(nil)
	s.stop("member-2/agent")
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-2")
	far := time.Date(2126, time.January, 1, 0, 0, 0, 0, time.UTC)
	update(s, s.hub, window.DeepCopy(), func(w *fleetflowv1alpha1.RolloutWindow) {
		w.Spec.Type = fleetflowv1alpha1.WindowDeny
		w.Spec.Dates = opening(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), far)
	})
	waits := "1 of 3 cluster(s) of stage everywhere wait for window " + s.name + " (change 17): ends "
	s.awaitHeld(run, fleetflowv1alpha1.ReasonWindowClosed, waits+far.Format(time.RFC3339))
	s.start("member-2/agent")
	s.awaitValue(value1, "member-1", "member-2")
	s.awaitStandsStill(run)
	events := s.requireIdle(run)

	for _, disturb := range []disturbance{killHubAgent, wipeTemporal} {
		disturb(s)
		s.awaitHeld(run, fleetflowv1alpha1.ReasonWindowClosed, waits+far.Format(time.RFC3339))
		s.requireNothingOn("member-3")
	}

	// The Deny ends in some seconds.
	began := time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
	opens := time.Now().UTC().Truncate(time.Second).Add(reopensIn)
	update(s, s.hub, window.DeepCopy(), func(w *fleetflowv1alpha1.RolloutWindow) {
		w.Spec.Dates = nil
		w.Spec.Cron = []fleetflowv1alpha1.CronOpening{{
			Expression: fmt.Sprintf("%d %d %d %d *", began.Minute(), began.Hour(), began.Day(), began.Month()), Duration: fleetflowv1alpha1.Duration{Duration: opens.Sub(began)},
		}}
	})
	s.awaitHeld(run, fleetflowv1alpha1.ReasonWindowClosed, waits+opens.Format(time.RFC3339))
	held := len(s.history(workflowOf(run)).GetEvents())
	ended := s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	started := meta.FindStatusCondition(ended.Status.StagesStatus[0].Clusters[2].Conditions, placementv1beta1.ConditionTypeStarted)
	require.NotNil(s, started)
	require.False(s, started.LastTransitionTime.Time.Before(opens), "member-3 started at %s, the window ends at %s", started.LastTransitionTime, opens)
	require.LessOrEqual(s, started.LastTransitionTime.Sub(opens), onAt, "it starts when the window ends")
	s.Logf("started %s after the end of the window; %d events when it stood still first, %d before it waited for the clock, %d in the end",
		started.LastTransitionTime.Sub(opens), events, held, len(s.history(workflowOf(run)).GetEvents()))
	s.delete(s.hub, window)
}

// reopensIn is after how long a window opens again: a busy machine has to tell the run and its condition before.
const reopensIn = 12 * time.Second

// onAt is how long after an opening a run goes on, at most, on a busy machine. B7.4 asks for two seconds, and the log says how many
// they were.
const onAt = 10 * time.Second

// awaitStandsStill waits until a run says that it waits with nothing in flight.
func (s *spec) awaitStandsStill(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	s.awaitProgressing(run, placementv1beta1.ReasonUpdateRunWaiting)
}

// stageGoesOnWithTheOpenClusters has a strategy skip a cluster that a hold closes; it has its turn when it is released.
func stageGoesOnWithTheOpenClusters(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	update(s, s.hub, &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, func(o *placementv1beta1.ClusterStagedUpdateStrategy) {
		o.Spec.HeldClusters = placementv1beta1.HeldClustersSkip
	})
	hold := s.stopTheLine(func(h *fleetflowv1alpha1.RolloutHoldSpec) { h.ClusterSelector = in("staging") })
	run := s.startRun("run", "0")
	s.awaitValue(value1, "member-1", "member-3")
	s.awaitStandsStill(run)
	s.awaitHeld(run, fleetflowv1alpha1.ReasonHoldInForce, "1 of 3 cluster(s) of stage everywhere wait for hold "+s.name)
	s.requireNothingOn("member-2")
	s.delete(s.hub, hold)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
}

// rollbackPassesAFreeze is acceptance B7.6: a rollback goes during a Deny that exempts rollbacks, waits for a hold, and goes with an exemption from it,
// of which the record has who, why and the ticket.
func rollbackPassesAFreeze(s *spec) {
	s.externalPlacement()
	all := everywhere()
	all.Windows = []string{s.name}
	window := s.window(nil)
	s.strategy(all)
	s.awaitSucceeded(s.startRun("first", "0"))
	s.changeTo(value2)
	forward := s.startRun("run", "") // takes what there is by then
	s.awaitSucceeded(forward)
	update(s, s.hub, window.DeepCopy(), func(w *fleetflowv1alpha1.RolloutWindow) {
		w.Spec.Type = fleetflowv1alpha1.WindowDeny
		w.Spec.Rollbacks = fleetflowv1alpha1.RollbacksExempt
	})
	s.stopTheLine(nil)
	back := s.run("back", "")
	back.Spec.RollbackOf = forward.Name
	s.create(back)
	s.awaitHeld(back, fleetflowv1alpha1.ReasonHoldInForce, "of 3 cluster(s) of stage everywhere wait for hold "+s.name)
	s.awaitValue(value2, allMembers...)
	s.steer("exempt", "run/"+back.Name, "--from", "hold/"+s.name, "--reason", "payments are back", "--ticket", "INC-9", "--for", "1h", "--name", s.name, "--yes")
	s.awaitSucceeded(back)
	s.awaitValue(value1, allMembers...)
	exemption := &fleetflowv1alpha1.RolloutExemption{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: s.name}, exemption))
	by, verified := exemption.MadeBy()
	require.True(s, verified)
	await(s, s.hub, exemption, "to be in the record", func(e *fleetflowv1alpha1.RolloutExemption) error {
		var events corev1.EventList
		if err := s.hub.List(s.Context(), &events, client.MatchingFields{"involvedObject.name": back.Name}); err != nil {
			return err
		}
		for i := range events.Items {
			if event := &events.Items[i]; event.Reason == "RolloutExempted" && event.Message == e.Record() {
				return nil
			}
		}
		return fmt.Errorf("none of the %d events of the run is %q", len(events.Items), e.Record())
	})
	require.Contains(s, exemption.Record(), by+" exempts run/"+back.Name+" from hold/"+s.name)
	require.Contains(s, exemption.Record(), "payments are back (INC-9)")
	s.delete(s.hub, exemption)
	s.delete(s.hub, window)
}
