package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const hasLeft = "Succeeded=False ClusterUpdatingSkipped: The cluster is no longer selected for the placement"

func frozen(t *testing.T) *hub {
	t.Helper()
	return withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		s.OnMembershipChange = placementv1beta1.MembershipChangeContinue
	})
}

// picks lets the scheduler pick other clusters, for another policy.
func (h *hub) picks(clusters ...string) {
	h.t.Helper()
	require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), policyObject()))
	policy := policyObject(clusters...)
	policy.Name = "example-placement-1"
	policy.UID = "policy-1"
	policy.Labels[placementv1beta1.PolicyIndexLabel] = "1"
	require.NoError(h.t, h.WithWatch.Create(h.t.Context(), policy))
}

func (h *hub) unpick(cluster string) {
	h.t.Helper()
	before := h.binding(cluster)
	now := edit(h, h.binding(cluster), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateUnscheduled
	})
	h.tell(&placementv1beta1.ClusterResourceBinding{}, before, now)
}

func TestAFrozenRunGoesOnWithTheClustersThereWere(t *testing.T) {
	h := frozen(t)
	h.picks("member1", "member2", "member9")
	h.unpick("member3")
	delta := must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	assert.Equal(t, wf.StageDelta{Skipped: names("member3"), NextAt: "1"}, delta)
	assert.Equal(t, hasLeft, h.canaryCondition("member3", "Succeeded"))
	assert.Empty(t, h.canaryCondition("member3", "Started"), "it was not")
	assert.Equal(t, placementv1beta1.BindingStateUnscheduled, h.binding("member3").Spec.State)
	assert.Equal(t, names("Normal example-run-2 ClusterSkipped: Cluster member3 in stage canary is skipped: it is no longer selected for the placement"), h.events)
	assert.Equal(t, wf.StageDelta{Recorded: names("member1")}, must(h, h.acts.AdvanceStage, withoutFirst(canaryAdvance(names("member1"), nil, nil))))
	assert.True(t, must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1)}).NeedsApproval())
}

func TestAFrozenRunGoesOnWithoutAClusterThatLeavesInFlight(t *testing.T) {
	h := frozen(t)
	h.stuck["member3"] = true
	delta := h.advancing(canaryAdvance(names("member3"), nil, nil))
	h.unpick("member3")
	assert.Equal(t, names("member3"), (<-delta).Skipped)
	assert.Equal(t, hasLeft, h.canaryCondition("member3", "Succeeded"))
}

func TestARunThatIsNotFrozenEndsWhenOthersArePicked(t *testing.T) {
	h := withStrategy(t, func(s *placementv1beta1.UpdateStrategySpec) {
		s.OnMembershipChange = placementv1beta1.MembershipChangeAbort
	})
	h.picks("member1", "member2", "member9")
	assert.Equal(t, wf.StageDelta{Ended: true}, must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil)))
	assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "the policy snapshot index used in the clusterStagedUpdateRun is outdated")
}

func TestClustersInNoStage(t *testing.T) {
	unassigned := func(t *testing.T, policy placementv1beta1.UnassignedClustersPolicy) (*hub, wf.RunState) {
		h := howTo(t)
		edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
			s.Spec.UnassignedClusters = policy
			s.Spec.Stages = s.Spec.Stages[:1] // there is a stage for member2 only
			s.Spec.Stages[0].ClusterDeadlineSeconds = minutes(7)
		})
		return h, initialize(h, "example-run-2")
	}
	for sentence, policy := range map[string]placementv1beta1.UnassignedClustersPolicy{
		"are refused by default": "", "are refused": placementv1beta1.UnassignedClustersFail,
	} {
		t.Run(sentence, func(t *testing.T) {
			h, state := unassigned(t, policy)
			assert.True(t, state.Terminal)
			assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), "some clusters are not placed in any stage, total 2, showing up to 10: member1, member3")
		})
	}
	t.Run("are ignored", func(t *testing.T) {
		h, state := unassigned(t, placementv1beta1.UnassignedClustersIgnore)
		require.True(t, state.Initialized)
		assert.Len(t, state.Stages, 1)
		assert.Equal(t, "Initialized=True UpdateRunInitializedSuccessfully: ClusterStagedUpdateRun initialized successfully; 2 clusters are in no stage and are left as they are: member1, member3",
			conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"))
		d := &driver{hub: h, run: "example-run-2"}
		d.stage("staging", 0)
		assert.Equal(t, newSnapshot, h.binding("member2").Spec.ResourceSnapshotName)
		assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
	})
	t.Run("are ignored, but one that is in a stage is not", func(t *testing.T) {
		h, _ := unassigned(t, placementv1beta1.UnassignedClustersIgnore)
		require.NoError(t, h.WithWatch.Delete(t.Context(), policyObject()))
		require.NoError(t, h.WithWatch.Create(t.Context(), policyObject("member1", "member3", "member9")))
		in := wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")}
		assert.True(t, must(h, h.acts.AdvanceStage, in).Ended)
		assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "have changed: `member2` is no longer one of them")
	})
	t.Run("come last", func(t *testing.T) {
		h, state := unassigned(t, placementv1beta1.UnassignedClustersLast)
		require.True(t, state.Initialized)
		require.Len(t, state.Stages, 2)
		assert.Equal(t, "unassigned", state.Stages[1].Name)
		assert.Empty(t, state.Stages[1].TasksAfter, "without the tasks of the last stage")
		run := h.run("example-run-2")
		assert.Equal(t, minutes(7), run.Status.UpdateStrategySnapshot.Stages[1].ClusterDeadlineSeconds)
		assert.Empty(t, run.Status.UpdateStrategySnapshot.UnassignedClusters)
		d := &driver{hub: h, run: "example-run-2"}
		d.stage("unassigned", 1)
		assert.True(t, d.gates("unassigned", 1).Open)
		assert.Equal(t, newSnapshot, h.binding("member1").Spec.ResourceSnapshotName)
		assert.Equal(t, newSnapshot, h.binding("member3").Spec.ResourceSnapshotName)
	})
}

func TestARunWithFrozenMembershipEndsThoughAClusterItWasToClearIsPickedAgain(t *testing.T) {
	begun := func(t *testing.T) *hub {
		h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot))
		edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
			s.Spec.OnMembershipChange = placementv1beta1.MembershipChangeContinue
		})
		require.True(t, initialize(h, "example-run-2").Initialized)
		edit(h, h.binding("member4"), func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateScheduled
		})
		return h
	}
	says := func(h *hub) string {
		return conditionOf(h.run("example-run-2").Status.DeletionStageStatus.Clusters[0].Conditions, "Succeeded")
	}
	const again = "Succeeded=False ClusterUpdatingSkipped: The cluster is selected for the placement again"
	h := begun(t)
	ended := background(h, func() bool { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Done })
	select {
	case done := <-ended:
		assert.True(t, done)
	case <-time.After(10 * time.Minute):
		t.Fatal("it must not wait")
	}
	assert.Equal(t, again, says(h))
	assert.Equal(t, placementv1beta1.BindingStateScheduled, h.binding("member4").Spec.State)
	assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Succeeded)
}
