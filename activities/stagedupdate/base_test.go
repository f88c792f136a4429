package stagedupdate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// verifying is a hub whose run verifies what clusters have, with tasks before canary.
func verifying(t *testing.T, before ...placementv1beta1.StageTask) *hub {
	t.Helper()
	h := howTo(t)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.VerifyBase = true
		s.Spec.Stages[0].AfterStageTasks = nil
		s.Spec.Stages[1].AfterStageTasks = nil
		s.Spec.Stages[1].BeforeStageTasks = before
	})
	initialize(h, "example-run-2")
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	h.gates("staging", 0)
	h.events = nil
	return h
}

// changeBase gives a cluster something else, as an earlier run does.
func (h *hub) changeBase(cluster string) {
	h.t.Helper()
	edit(h, h.binding(cluster), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.ResourceSnapshotName = "example-placement-7-snapshot"
		b.Annotations = map[string]string{placementv1beta1.UpdateRunAnnotation: "other-run"}
	})
}

func (h *hub) heldCondition() string {
	h.t.Helper()
	return conditionOf(h.run("example-run-2").Status.Conditions, "Held")
}

// outdatedText is what a run says of member3 that has something else.
func (h *hub) outdatedText(planned string) string {
	return "1 of 2 cluster(s) of stage canary wait for a retry of cluster member3 (it had " + planned + " when the plan was made, and has " +
		planning.BaseOf(h.binding("member3")) + " now, which run other-run has written last)"
}

// retry has a cluster retried.
func (h *hub) retry(cluster string, attempt int32) {
	h.t.Helper()
	h.ask(placementv1beta1.ClusterAction{Cluster: cluster, Action: placementv1beta1.ClusterActionRetry, Attempt: attempt})
}

// Acceptance 6 of plan-bound approvals.
func TestAcceptance6AClusterThatHasSomethingElseIsNotWritten(t *testing.T) {
	h := verifying(t, placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval})
	assert.True(t, h.beforeCanary().NeedsApproval())
	planned := h.canaryCluster("member3").Base
	assert.Equal(t, planning.BaseOf(h.binding("member3")), planned)
	seen := h.shownPlan()
	h.approvePlan(seen)
	assert.True(t, h.beforeCanary().Open)

	h.changeBase("member3")
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, names("member3"), delta.NotStarted)
	assert.Empty(t, delta.Held, "member1 can go")
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member3").Spec.ResourceSnapshotName, "it is not written")
	assert.Equal(t, "Held=True PlanOutdated: "+h.outdatedText(planned), h.heldCondition())
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member1").Spec.ResourceSnapshotName, "all others are")
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member3").Spec.ResourceSnapshotName)
	stands := must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	require.Len(t, stands.Held, 1)
	assert.Equal(t, wf.TaskWait{Type: "PlanBase", Title: "a retry of cluster member3", Phase: "Held"}, stands.Held[0])
	assert.Equal(t, "Progressing=False UpdateRunWaiting: The updateRun is waiting: "+h.outdatedText(planned), progressingOf(h))
	assert.Contains(t, h.events, "Normal example-run-2 RolloutHeld: "+h.outdatedText(planned))
	version := h.run("example-run-2").ResourceVersion
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.Equal(t, version, h.run("example-run-2").ResourceVersion, "to wait on is nothing to write")

	h.retry("member3", 1)
	assert.NotEqual(t, seen, planhash.Effective(h.run("example-run-2"), "canary"))
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil)), "the run looks what the stage waits for")
	state := must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, wf.PhaseBeforeGate, state.Stages[1].Phase)
	assert.Equal(t, names("Approval"), state.Stages[1].TasksBefore)
	assert.True(t, h.beforeCanary().NeedsApproval(), "the approval was for another base")
	assert.NotEqual(t, seen, h.shownPlan())
	h.approvePlan(seen)
	assert.True(t, h.beforeCanary().NeedsApproval(), "it is not for the plan that was seen before")
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member3").Spec.ResourceSnapshotName)
	h.approvePlan(h.shownPlan())
	assert.True(t, h.beforeCanary().Open)

	assert.Equal(t, wf.PhaseUpdating, must(h, h.acts.LoadRun, refOf("example-run-2")).Stages[1].Phase)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Empty(t, h.heldCondition() == "Held=True", "nothing holds it")
}

func TestWithoutAnApprovalARetryTakesTheNewBaseAtOnce(t *testing.T) {
	h := verifying(t)
	h.changeBase("member3")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	h.retry("member3", 1)
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.False(t, delta.Ended)
	assert.NotEmpty(t, delta.NextAt)
	assert.Equal(t, planning.BaseOf(h.binding("member3")), h.canaryCluster("member3").Base)
	h.changeBase("member1")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Contains(t, h.heldCondition(), "wait for a retry of cluster member1 (")
	h.ask(placementv1beta1.ClusterAction{Cluster: "member1", Action: placementv1beta1.ClusterActionSkip})
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member1").Spec.ResourceSnapshotName, "it is skipped")
	assert.NotContains(t, h.heldCondition(), "Held=True")
}

// The cache does not know of the change yet, which the API server does.
func TestAClusterIsNotWrittenThatHasSomethingElseBehindTheCache(t *testing.T) {
	h := verifying(t)
	h.onGet[h.binding("member3").Name] = func() { h.changeBase("member3") }
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member3").Spec.ResourceSnapshotName, "it is not written")
}

// Between the look and the write, another client changes what the base is of beside the snapshot.
func TestAClusterIsNotWrittenWhoseOverridesChangeBeforeTheWrite(t *testing.T) {
	h := verifying(t)
	b := h.binding("member3")
	h.onPatch[b.Name] = func() {
		other := h.binding("member3")
		other.Spec.ClusterResourceOverrideSnapshots = names("other-override-0")
		require.NoError(t, h.Update(t.Context(), other))
	}
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.NotContains(t, h.onPatch, b.Name)
	assert.Equal(t, b.Spec.ResourceSnapshotName, h.binding("member3").Spec.ResourceSnapshotName, "it is not written")
	assert.Contains(t, h.heldCondition(), "cluster member3 (it had ")
}

func TestWithoutVerifyBaseNothingOfItIsRecorded(t *testing.T) {
	h := initialized(t)
	assert.Empty(t, h.canaryCluster("member3").Base)
	h.changeBase("member3")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

// A replica of an earlier version drops what it does not know with each status that it writes.
func TestAClusterOfWhichIsNotKnownWhatItHadIsNotWritten(t *testing.T) {
	h := verifying(t)
	had := h.binding("member3").Spec.ResourceSnapshotName
	editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		for i := range r.Status.StagesStatus[1].Clusters {
			r.Status.StagesStatus[1].Clusters[i].Base = ""
		}
	})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, had, h.binding("member3").Spec.ResourceSnapshotName, "it is not written")
	assert.Contains(t, h.heldCondition(), "cluster member3 (what it had when the plan was made is not known, and it has "+planning.BaseOf(h.binding("member3"))+" now")
	h.retry("member3", 1)
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.Equal(t, planning.BaseOf(h.binding("member3")), h.canaryCluster("member3").Base)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}

// A user has a cluster retried, and its base changes after that: the retry is not about what nobody has seen.
func TestARetryFromBeforeTheBaseChangedDoesNotTakeIt(t *testing.T) {
	h := verifying(t)
	planned := h.canaryCluster("member3").Base
	h.retry("member3", 1)
	h.changeBase("member3")
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, "example-placement-7-snapshot", h.binding("member3").Spec.ResourceSnapshotName, "it is not written")
	assert.Equal(t, planned, h.canaryCluster("member3").Base)
	assert.EqualValues(t, 1, h.canaryCluster("member3").Attempt)
	assert.Equal(t, "Held=True PlanOutdated: "+h.outdatedText(planned), h.heldCondition())
	h.retry("member3", 2)
	must(h, h.acts.AdvanceStage, canaryAdvance(nil, nil, nil))
	assert.Equal(t, planning.BaseOf(h.binding("member3")), h.canaryCluster("member3").Base)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
}
