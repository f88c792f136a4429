package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	act "github.com/fleetflow/fleetflow/activities/contract"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// hold stops the line, as a user does, and lets the informer tell.
func (h *hub) hold(change func(*fleetflowv1alpha1.RolloutHoldSpec)) *fleetflowv1alpha1.RolloutHold {
	h.t.Helper()
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Reason: "payments down"}}
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
func heldBy(until time.Time) []act.TaskWait {
	return []act.TaskWait{{Type: "RolloutHold", Title: "hold incident", Phase: "Held", Until: until, CheckAt: until}}
}

func TestARunStartsNothingWhileAHoldIsInForceAndStandsStill(t *testing.T) {
	h := initialized(t)
	hold := h.hold(nil)
	assert.Equal(t, act.StageDelta{NotStarted: names("member3"), Held: heldBy(time.Time{})}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
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
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
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
	h.hold(func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpiresAt = &metav1.Time{Time: until} })
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
	assert.Equal(t, act.DeletionResult{Held: heldBy(time.Time{})}, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")))
	assert.True(t, h.binding("member4").DeletionTimestamp.IsZero())
	run := h.run("example-run-2")
	const text = "1 of 1 cluster(s) of the deletion stage wait for hold incident (payments down)"
	assert.Equal(t, "Held=True HoldInForce: "+text, conditionOf(run.Status.Conditions, "Held"))
	assert.Equal(t, "Progressing=False UpdateRunWaiting: The updateRun is waiting: "+text, progressingOf(h))
	assert.Equal(t, names("Normal example-run-2 RolloutHeld: "+text), h.events)
	h.release(hold)
	assert.True(t, must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done)
	assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Succeeded)
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
}

// exempt lets the run go, as jane does, and lets the informer tell.
func (h *hub) exempt(by string, from ...fleetflowv1alpha1.ExemptFrom) *fleetflowv1alpha1.RolloutExemption {
	h.t.Helper()
	exemption := &fleetflowv1alpha1.RolloutExemption{ObjectMeta: metav1.ObjectMeta{Name: "hotfix"}, Spec: fleetflowv1alpha1.RolloutExemptionSpec{
		Run: "example-run-2", From: from, Reason: "CVE-2026-1", Ticket: "INC-9", ExpiresAt: metav1.NewTime(h.clock.Now().Add(time.Hour)),
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
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Held"))
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
