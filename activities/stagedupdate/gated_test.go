package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// hold stops the line, as a user does, and lets the informer tell.
func (h *hub) hold(change func(*fleetflowv1alpha1.RolloutHoldSpec)) *fleetflowv1alpha1.RolloutHold {
	h.t.Helper()
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}
	if change != nil {
		change(&hold.Spec)
	}
	require.NoError(h.t, h.unwatched.Create(h.t.Context(), hold))
	h.tell(&fleetflowv1alpha1.RolloutHold{}, nil, hold)
	return hold
}

// release lets go on what a hold has stopped.
func (h *hub) release(hold *fleetflowv1alpha1.RolloutHold) {
	h.t.Helper()
	require.NoError(h.t, h.unwatched.Delete(h.t.Context(), hold))
	h.tell(&fleetflowv1alpha1.RolloutHold{}, nil, hold)
}

const (
	waitsForIncident = "of 2 cluster(s) of stage canary wait for hold incident (payments down)"
	standsStill      = "Progressing=False UpdateRunWaiting: The updateRun is waiting: 2 " + waitsForIncident
)

// heldBy is what a workflow is told that waits for the hold.
func heldBy(until time.Time) []wf.TaskWait {
	return []wf.TaskWait{{Type: "RolloutHold", Title: "hold incident", Phase: "Held", Until: until, CheckAt: until}}
}

const isReleased = "Held=False Resolved: No cluster waits because of a hold or a window"

func TestARunStartsNothingWhileAHoldIsInForceAndStandsStill(t *testing.T) {
	h := initialized(t)
	hold := h.hold(nil)
	assert.Equal(t, wf.StageDelta{NotStarted: names("member3"), Held: heldBy(time.Time{})}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName, "nothing is written to it")
	assert.Equal(t, standsStill, progressingOf(h))
	run := h.run("example-run-2")
	assert.Equal(t, "Held=True HoldInForce: 2 "+waitsForIncident, conditionOf(run.Status.Conditions, "Held"))
	assert.Empty(t, h.canaryCondition("member3", "Started"), "it has not had its turn")
	assert.Equal(t, names("Normal example-run-2 RolloutHeld: 2 "+waitsForIncident), h.events)

	version := run.ResourceVersion
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.Equal(t, version, h.run("example-run-2").ResourceVersion, "to wait on is nothing to write")
	assert.Len(t, h.events, 1)

	h.release(hold)
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.NotEmpty(t, delta.NextAt)
	assert.Empty(t, delta.Held)
	assert.Equal(t, isStarted, progressingOf(h))
	assert.Equal(t, isReleased, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
	assert.Contains(t, h.events, "Normal example-run-2 RolloutReleased: The run is held no longer")
}

func TestWhatIsUnderWayEndsWhileAHoldIsInForce(t *testing.T) {
	h := initialized(t)
	h.stuck["member3"] = true
	advanced := h.advancing(canaryAdvance(names("member3"), nil, nil))
	hold := h.hold(nil)
	delta := <-advanced
	assert.Equal(t, "member3", delta.Waiting, "the workflow is told that others are next no more")
	assert.Empty(t, delta.NextAt)
	assert.Empty(t, delta.Held, "it is waited for")
	assert.Equal(t, isStarted, progressingOf(h))

	advanced = h.advancing(canaryAdvance(nil, names("member3"), nil))
	assert.Equal(t, "Held=True HoldInForce: 1 "+waitsForIncident, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
	h.recover("member3")
	delta = <-advanced
	assert.Equal(t, names("member3"), delta.Recorded, "the run stands still from then on")
	assert.Equal(t, heldBy(time.Time{}), delta.Held)
	h.release(hold)
}

func TestARunWaitsUntilAHoldExpires(t *testing.T) {
	h := initialized(t)
	until := h.clock.Now().Add(time.Hour).UTC()
	h.hold(func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = &metav1.Time{Time: until} })
	assert.Equal(t, heldBy(until), must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Held)
	h.clock.Step(time.Hour)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil)).NextAt)
}

func TestTheDeletionStageClearsNothingWhileAHoldIsInForce(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot"))
	initialize(h, "example-run-2")
	require.NoError(t, h.unwatched.Create(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member4"}}))
	hold := h.hold(nil)
	h.events = nil
	assert.Equal(t, wf.DeletionResult{Held: heldBy(time.Time{})}, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")))
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	run := h.run("example-run-2")
	const text = "1 of 1 cluster(s) of the deletion stage wait for hold incident (payments down)"
	assert.Equal(t, "Held=True HoldInForce: "+text, conditionOf(run.Status.Conditions, "Held"))
	assert.Equal(t, "Progressing=False UpdateRunWaiting: The updateRun is waiting: "+text, progressingOf(h))
	assert.Equal(t, names("Normal example-run-2 RolloutHeld: "+text), h.events)
	h.release(hold)
	assert.True(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Succeeded)
	assert.Equal(t, isReleased, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
}

// makeBusy has the owner of a cluster ask that nothing begins on it.
func (h *hub) makeBusy(name string, until metav1.Time) {
	h.t.Helper()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(h.t, h.unwatched.Get(h.t.Context(), client.ObjectKey{Name: name}, member))
	member.Status.Busy = &clusterv1beta1.Busy{Since: metav1.NewTime(h.clock.Now()), Until: until, Message: "month-end"}
	require.NoError(h.t, h.unwatched.Update(h.t.Context(), member))
}

// What is being cleared goes on, and the workflow is not asked again and again meanwhile.
func TestAHoldDoesNotKeepTheDeletionStageFromWaitingForWhatItHasBegun(t *testing.T) {
	h := howTo(t, leaving("member4", "member5")...)
	initialize(h, "example-run-2")
	for _, name := range names("member4", "member5") {
		require.NoError(t, h.unwatched.Create(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	advance := func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done }
	done := background(h, advance)
	h.untilItWaits()
	h.clock.Step(time.Minute)
	h.goes("member5")
	assert.False(t, <-done)
	h.hold(nil)
	done = background(h, advance)
	select {
	case <-done:
		t.Fatal("it must wait until the cluster is cleared")
	case <-h.clock.waits:
	}
	h.clock.Step(time.Minute)
	h.goes("member4")
	assert.True(t, <-done)
}

// exempt lets the run go, as jane does, and lets the informer tell.
func (h *hub) exempt(by string, from ...fleetflowv1alpha1.ExemptFrom) *fleetflowv1alpha1.RolloutExemption {
	h.t.Helper()
	exemption := &fleetflowv1alpha1.RolloutExemption{ObjectMeta: metav1.ObjectMeta{Name: "hotfix"}, Spec: fleetflowv1alpha1.RolloutExemptionSpec{
		TargetRef: fleetflowv1alpha1.ExemptRun("", "example-run-2"), ExemptFrom: from, Message: "CVE-2026-1", Ticket: "INC-9", ExpirationTime: metav1.NewTime(h.clock.Now().Add(time.Hour)),
	}}
	if by != "" {
		exemption.Annotations = map[string]string{placementv1beta1.CreatorAnnotation: by}
	}
	require.NoError(h.t, h.unwatched.Create(h.t.Context(), exemption))
	h.tell(&fleetflowv1alpha1.RolloutExemption{}, nil, exemption)
	return exemption
}

var fromIncident = fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "incident"}

func TestARunThatIsExemptGoesInSpiteOfTheHold(t *testing.T) {
	h := initialized(t)
	h.hold(nil)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Held)
	h.exempt("jane", fromIncident)
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.NotEmpty(t, delta.NextAt)
	assert.Empty(t, delta.Held)
	assert.Equal(t, isReleased, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.NotEqual(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)

	h.clock.Step(time.Hour) // from then on the hold counts again
	assert.Equal(t, heldBy(time.Time{}), must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3"))).Held)
	assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
}

func TestAnExemptionOfNoVerifiedPersonLetsNothingGo(t *testing.T) {
	h := initialized(t)
	h.hold(nil)
	h.exempt("", fromIncident)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Held)
	h.acts.Exemptions.Unverified = true
	assert.Empty(t, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil)).Held, "unless the chart says that it may")
}

// window creates a window that is closed for good, unless it is changed.
func (h *hub) window(change func(*fleetflowv1alpha1.RolloutWindowSpec)) *fleetflowv1alpha1.RolloutWindow {
	h.t.Helper()
	window := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowStage, TimeZone: "UTC",
		Dates: []fleetflowv1alpha1.DatedOpening{{Start: "2020-01-01T00:00", End: "2020-01-02T00:00"}},
	}}
	if change != nil {
		change(&window.Spec)
	}
	require.NoError(h.t, h.unwatched.Create(h.t.Context(), window))
	h.tell(&fleetflowv1alpha1.RolloutWindow{}, nil, window)
	return window
}

// editStrategy changes the strategy of the run.
func (h *hub) editStrategy(change func(*placementv1beta1.UpdateStrategySpec)) {
	h.t.Helper()
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) { change(&s.Spec) })
}

const waitsForNights = "of 2 cluster(s) of stage canary wait for window nights"

func TestAStageWaitsForTheWindowsThatItsStrategyNames(t *testing.T) {
	h := howTo(t)
	window := h.window(nil)
	h.editStrategy(func(s *placementv1beta1.UpdateStrategySpec) { s.Stages[1].Windows = names("nights") })
	require.True(t, initialize(h, "example-run-2").Initialized)
	assert.Equal(t, names("nights"), h.run("example-run-2").Status.UpdateStrategySnapshot.Stages[1].Windows, "as they were when it began")
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Held)
	assert.Equal(t, "Held=True OutsideAllowedWindow: 2 "+waitsForNights, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)

	require.NoError(t, h.unwatched.Delete(t.Context(), window)) // which lets nothing go that named it
	h.tell(&fleetflowv1alpha1.RolloutWindow{}, nil, window)
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Empty(t, delta.NextAt)
	assert.NotEmpty(t, delta.Held)
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Held"), waitsForNights+
		" (it is not valid: it was deleted, and the strategy of the run names it: create it again, or exempt the run from it)")
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)

	h.window(func(s *fleetflowv1alpha1.RolloutWindowSpec) { s.Dates[0].End = "2100-01-01T00:00" })
	delta = must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.NotEmpty(t, delta.NextAt)
	assert.Empty(t, delta.Held)
}

func TestARunIsExemptFromAWindowThatIsGone(t *testing.T) {
	h := howTo(t)
	window := h.window(nil)
	h.editStrategy(func(s *placementv1beta1.UpdateStrategySpec) { s.Stages[1].Windows = names("nights") })
	require.True(t, initialize(h, "example-run-2").Initialized)
	require.NoError(t, h.unwatched.Delete(t.Context(), window))
	h.tell(&fleetflowv1alpha1.RolloutWindow{}, nil, window)
	assert.NotEmpty(t, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)).Held)
	h.exempt("jane", fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow, Name: "nights"})
	assert.Empty(t, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil)).Held)
}

func TestARunIsNotInitializedWithWindowsThatItCannotName(t *testing.T) {
	const why = "stage `canary` names rolloutWindow `nights` in windows: "
	for sentence, c := range map[string]struct {
		window func(*fleetflowv1alpha1.RolloutWindowSpec)
		why    string
	}{
		"there is none": {why: "there is none: create it, or remove the name"},
		"it is of another scope": {
			window: func(s *fleetflowv1alpha1.RolloutWindowSpec) { s.Scope = fleetflowv1alpha1.WindowFleet },
			why:    "its scope is Fleet, and stages name windows of scope Stage: it counts without being named, or create another",
		},
		"it selects placements": {
			window: func(s *fleetflowv1alpha1.RolloutWindowSpec) {
				s.Stages = names("prod")
				s.PlacementSelector = &metav1.LabelSelector{}
			},
			why: "it has a placementSelector, which says what it counts for: remove that, or the name",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t)
			if c.window != nil {
				h.window(c.window)
			}
			h.editStrategy(func(s *placementv1beta1.UpdateStrategySpec) { s.Stages[1].Windows = names("nights") })
			assert.False(t, initialize(h, "example-run-2").Initialized)
			assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), why+c.why)
		})
	}
}

// member3 comes before member1 in the order of the stage.
func TestAStageThatSkipsHeldClustersGoesOnWithThoseThatAreOpen(t *testing.T) {
	h := howTo(t)
	h.editStrategy(func(s *placementv1beta1.UpdateStrategySpec) { s.HeldClusters = placementv1beta1.HeldClustersSkip })
	initialize(h, "example-run-2")
	hold := h.hold(func(s *fleetflowv1alpha1.RolloutHoldSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"order": "1"}}
	})
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, names("member3"), delta.NotStarted)
	assert.Equal(t, names("member1"), delta.NextAt.Of(names("member3", "member1")))
	assert.Empty(t, delta.Held)
	assert.Equal(t, "Held=True HoldInForce: 1 "+waitsForIncident, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))

	delta = must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
	assert.Equal(t, heldBy(time.Time{}), delta.Held, "all that is left is closed")
	assert.Equal(t, names("member1"), delta.Recorded)
	assert.Equal(t, oldSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	h.release(hold)
	assert.Equal(t, names("member3"), must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil)).NextAt.Of(names("member3", "member1")))
}

func TestARollbackKeepsTheWindowsOfItsStages(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetAbort)
	assert.True(t, h.late(names("member1"), nil).Ended)
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Status.UpdateStrategySnapshot.HeldClusters = placementv1beta1.HeldClustersSkip
		r.Status.UpdateStrategySnapshot.Stages[1].Windows = names("gone-by-now")
	})
	must(h, h.acts.InitializeRun, refOfUID(rollback(h)))
	strategy := h.run(back).Status.UpdateStrategySnapshot
	assert.Equal(t, placementv1beta1.HeldClustersSkip, strategy.HeldClusters)
	assert.Equal(t, names("gone-by-now"), strategy.Stages[0].Windows)
}
