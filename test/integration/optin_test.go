//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// shortDeadline is for clusters that never become available; the others are within it even on a busy machine.
const shortDeadline = 10 * time.Second

// budget lets a stage go on without clusters that miss the deadline.
func budget(stage placementv1beta1.StageConfig, most int, beyond placementv1beta1.FailureBudgetAction) placementv1beta1.StageConfig {
	failures := intstr.FromInt(most)
	stage.ClusterDeadlineSeconds = new(int32(shortDeadline / time.Second))
	stage.FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: &failures, OnExceeded: beyond}
	return stage
}

// latecomer is an object that snapshot 1 brings along.
func (s *spec) latecomer() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "latecomer", Namespace: s.name}}
}

// obstructed places snapshot 0 everywhere and lets the next, 1, be one that a member cannot apply: something of that name is
// there, and it is not to be taken over.
func (s *spec) obstructed(member string, stages ...placementv1beta1.StageConfig) {
	s.Helper()
	s.externalPlacement(func(p *placementv1beta1.PlacementSpec) {
		p.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
	})
	s.strategy(stages...)
	s.awaitSucceeded(s.startRun("first", "0"))
	require.NoError(s, s.member(member).Create(s.Context(), s.latecomer()))
	s.create(s.latecomer())
}

// requireIndexes asserts which resource snapshot each of member-1, member-2 and member-3 is bound to.
func (s *spec) requireIndexes(want ...string) {
	s.Helper()
	got := map[string]string{}
	for _, b := range s.bindings() {
		got[b.Spec.TargetCluster] = b.Spec.ResourceSnapshotName
	}
	for i, index := range want {
		require.Equal(s, s.name+"-"+index+"-snapshot", got[fmt.Sprintf("member-%d", i+1)], "member-%d", i+1)
	}
}

// outcome is what a run says of the end of a cluster, as its reason.
func outcome(run *placementv1beta1.ClusterStagedUpdateRun, cluster string) string {
	for i := range run.Status.StagesStatus {
		for _, c := range run.Status.StagesStatus[i].Clusters {
			if c.ClusterName != cluster {
				continue
			}
			if succeeded := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded); succeeded != nil {
				return succeeded.Reason
			}
		}
	}
	return ""
}

func (s *spec) awaitProgressing(run *placementv1beta1.ClusterStagedUpdateRun, reason string) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to say "+reason, func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if c := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeProgressing); c != nil && c.Reason == reason {
			return nil
		}
		return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
	})
}

// ask gives a run actions for its clusters.
func (s *spec) ask(run *placementv1beta1.ClusterStagedUpdateRun, actions ...placementv1beta1.ClusterAction) {
	s.Helper()
	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ClusterActions = actions })
}

func saidAtTheEnd(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) string {
	s.Helper()
	c := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	require.NotNil(s, c)
	return c.Message
}

func stageGoesOnWithinItsBudget(s *spec) {
	s.obstructed("member-3", staging(), budget(canary(), 1, placementv1beta1.FailureBudgetAbort))
	run := s.awaitSucceeded(s.startRun("second", ""))
	require.Equal(s, "All stages are completed successfully, 1 failed within the failure budget (member-3)", saidAtTheEnd(s, run))
	require.Equal(s, "ClusterUpdatingFailed", outcome(run, "member-3"))
	require.Equal(s, "ClusterUpdatingSucceeded", outcome(run, "member-1"), "it comes after the one that failed")
	s.requireIndexes("1", "1", "1")
}

func clustersAreDoneOnceTheyHaveBeenAvailable(s *spec) {
	const minReady = 3
	s.externalPlacement()
	first := staging()
	first.MinReadySeconds = new(int32(minReady))
	s.strategy(first, canary())
	run := s.awaitSucceeded(s.startRun("first", "0"))
	for i, least := range []time.Duration{minReady * time.Second, 0} {
		for _, cluster := range run.Status.StagesStatus[i].Clusters {
			began := meta.FindStatusCondition(cluster.Conditions, placementv1beta1.ConditionTypeStarted)
			ended := meta.FindStatusCondition(cluster.Conditions, placementv1beta1.ConditionTypeSucceeded)
			require.NotNil(s, began, cluster.ClusterName)
			require.NotNil(s, ended, cluster.ClusterName)
			require.GreaterOrEqual(s, ended.LastTransitionTime.Sub(began.LastTransitionTime.Time), least, cluster.ClusterName)
		}
	}
}

func runBeyondItsBudgetIsRolledBack(s *spec) {
	s.obstructed("member-3", staging(), budget(canary(), 0, placementv1beta1.FailureBudgetRollback))
	run := s.awaitEnd(s.startRun("second", ""))
	require.Contains(s, saidAtTheEnd(s, run), "the failure budget of stage `canary` is exceeded: member-3 failed (1, at most 0 may); clusterStagedUpdateRun `"+run.Name+"-rollback` takes its clusters back")
	back := s.run("second-rollback", "")
	ended := s.awaitSucceeded(back)
	require.Equal(s, []string{"member-3"}, clusterNames(&ended.Status.StagesStatus[0]), "member-1 was never started")
	require.Equal(s, []string{"member-2"}, clusterNames(&ended.Status.StagesStatus[1]))
	require.Equal(s, "0", ended.Status.ResourceSnapshotIndexUsed)
	s.requireIndexes("0", "0", "0")
	awaitGone(s, s.member("member-2"), s.latecomer())
	s.awaitClosed(workflowOf(run))
	s.requireQuiet()
}

func pausedRunGoesOnOnceFailuresAreDealtWith(s *spec) {
	s.obstructed("member-3", staging(), budget(canary(), 0, placementv1beta1.FailureBudgetPause))
	run := s.startRun("second", "")
	s.awaitStopped(run)
	s.requireIndexes("0", "1", "1")

	require.NoError(s, s.member("member-3").Delete(s.Context(), s.latecomer()))
	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Spec.State = placementv1beta1.StateRun
		r.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-3", Action: placementv1beta1.ClusterActionRetry}}
	})
	ended := s.awaitSucceeded(run)
	require.Equal(s, "All stages are completed successfully", saidAtTheEnd(s, ended))
	require.Equal(s, "ClusterUpdatingSucceeded", outcome(ended, "member-3"))
	s.requireIndexes("1", "1", "1")
}

func clusterIsSkippedAndAnotherRolledBack(s *spec) {
	stage := canary()
	stage.ClusterDeadlineSeconds = new(int32(shortDeadline / time.Second))
	s.obstructed("member-3", staging(), stage)
	run := s.startRun("second", "")
	s.awaitProgressing(run, placementv1beta1.ReasonUpdateRunStuck)
	s.ask(run, placementv1beta1.ClusterAction{Cluster: "member-3", Action: placementv1beta1.ClusterActionSkip})
	ended := s.awaitSucceeded(run)
	require.Equal(s, "All stages are completed successfully, 1 skipped (member-3)", saidAtTheEnd(s, ended))
	s.requireIndexes("1", "1", "1")

	back := s.run("back", "")
	back.Spec.RollbackOf = run.Name
	s.create(back)
	s.awaitSucceeded(back)
	s.requireIndexes("0", "0", "0")
}

// runUnderWayIsRolledBack rolls back a run that waits at a gate, and then one that stands still.
func runUnderWayIsRolledBack(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	first := s.startRun("first", "0")
	s.awaitRequest(first, "staging")
	kubectlChannel.approve(s, first, "staging")
	s.awaitSucceeded(first)
	s.changeTo(value2)
	for _, stops := range []bool{false, true} {
		run := s.startRun(fmt.Sprintf("run-%t", stops), "")
		s.awaitRequest(run, "staging")
		s.requireIndexes("0", "1", "0")
		if stops {
			s.setState(run, placementv1beta1.StateStop)
			s.awaitStopped(run)
		}
		back := s.run(fmt.Sprintf("back-%t", stops), "")
		back.Spec.RollbackOf = run.Name
		s.create(back)
		s.awaitRequest(back, "staging")
		kubectlChannel.approve(s, back, "staging")
		s.awaitSucceeded(back)
		s.requireIndexes("0", "0", "0")
		require.Contains(s, saidAtTheEnd(s, s.awaitEnd(run)), "clusterStagedUpdateRun `"+back.Name+"` rolls it back")
		s.awaitClosed(workflowOf(run))
	}
}

func frozenRunGoesOnWithTheClustersThereWere(s *spec) {
	s.externalPlacement(pickFixed("member-1", "member-2"))
	s.create(&placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: placementv1beta1.UpdateStrategySpec{
			Stages: []placementv1beta1.StageConfig{staging(approval), canary()}, OnMembershipChange: placementv1beta1.MembershipChangeContinue,
		},
	})
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.shrinkTo("member-2", "member-3")
	kubectlChannel.approve(s, run, "staging")
	ended := s.awaitSucceeded(run)
	require.Equal(s, "All stages are completed successfully, 1 skipped (member-1)", saidAtTheEnd(s, ended))
	s.awaitValue(value1, "member-2")
	s.requireNothingOn("member-1", "member-3")
}

func clustersInNoStageComeLast(s *spec) {
	s.externalPlacement()
	s.create(&placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: placementv1beta1.UpdateStrategySpec{
			Stages: []placementv1beta1.StageConfig{staging()}, UnassignedClusters: placementv1beta1.UnassignedClustersLast,
		},
	})
	ended := s.awaitSucceeded(s.startRun("run", "0"))
	require.Len(s, ended.Status.StagesStatus, 2)
	require.Equal(s, "unassigned", ended.Status.StagesStatus[1].StageName)
	require.Equal(s, []string{"member-1", "member-3"}, clusterNames(&ended.Status.StagesStatus[1]))
	s.awaitValue(value1, allMembers...)
}

// triggering has the runs of an External placement created by the fleet; a later snapshot takes the place of an earlier one.
func (s *spec) triggering(p *placementv1beta1.PlacementSpec) {
	external(p)
	p.Strategy.External = &placementv1beta1.ExternalRolloutConfig{
		StrategyName: s.name, Trigger: placementv1beta1.UpdateRunTriggerOnChange, WhenRunning: placementv1beta1.WhenRunningSupersede,
	}
}

// runsStartByThemselves changes what is placed while the run of the change before waits at its gate: that one ends, and the
// latest change reaches the members. A hub agent that starts again creates no run twice.
func runsStartByThemselves(s *spec) {
	s.namespaceWithConfigMap()
	placement := s.place(s.triggering)
	s.awaitUpdateRunHeld(placement, placementv1beta1.ReasonUpdateStrategyNotFound)
	s.strategy(staging(approval), canary())
	first := s.awaitCreated("0")
	s.awaitRequest(first, "staging")

	s.changeTo(value2)
	require.Contains(s, saidAtTheEnd(s, s.awaitEnd(first)), "resource snapshot 1 takes the place of the one that it rolls out")
	second := s.awaitCreated("1")
	s.approveAndSucceed(second, "staging")
	s.awaitValue(value2, allMembers...)
	s.requireIndexes("1", "1", "1")
	runs := &placementv1beta1.ClusterStagedUpdateRunList{}
	require.NoError(s, s.hub.List(s.Context(), runs))
	var mine []string
	for _, run := range runs.Items {
		if run.Spec.PlacementName == s.name {
			mine = append(mine, run.Name)
		}
	}
	require.ElementsMatch(s, []string{first.Name, second.Name}, mine)
	s.requireQuiet()
}

// awaitCreated waits for the run that the fleet creates for a resource snapshot.
func (s *spec) awaitCreated(index string) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	return await(s, s.hub, s.run(index, ""), "to be created", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if r.Spec.ResourceSnapshotIndex != index {
			return fmt.Errorf("it is for snapshot %s", r.Spec.ResourceSnapshotIndex)
		}
		return nil
	})
}

func (s *spec) awaitUpdateRunHeld(placement *placementv1beta1.ClusterResourcePlacement, reason string) {
	s.Helper()
	await(s, s.hub, placement.DeepCopy(), "to hold its update run back", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if c := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeUpdateRunHeld); c != nil && c.Reason == reason {
			return nil
		}
		return fmt.Errorf("its conditions are %s", spoken(p.Status.Conditions))
	})
}
