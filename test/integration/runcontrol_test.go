//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// setState asks a run to stop or to go on.
func (s *spec) setState(run *placementv1beta1.ClusterStagedUpdateRun, state placementv1beta1.UpdateRunState) {
	s.Helper()
	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = state })
}

func (s *spec) awaitStopped(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to be stopped", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if r.Spec.State != placementv1beta1.StateStop {
			return fmt.Errorf("its state is %q", r.Spec.State)
		}
		c := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeProgressing)
		if c == nil || c.Reason != placementv1beta1.ReasonUpdateRunStopped {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
}

func stoppedRunGoesOnWhenResumed(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.setState(run, placementv1beta1.StateStop)
	s.awaitStopped(run)
	kubectlChannel.approve(s, run, "staging")
	s.requireQuiet()
	s.requireNothingOn("member-1", "member-3")

	s.setState(run, placementv1beta1.StateRun)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
}

// cancelFromTemporalStopsTheRun cancels the workflow with the Temporal CLI: the run is stopped, and can be resumed.
func cancelFromTemporalStopsTheRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	out, err := s.command(s.Context(), "temporal", "workflow", "cancel", "--workflow-id", workflowOf(run), "--identity", approver)
	require.NoError(s, err, out)
	s.awaitStopped(run)
	s.requireNothingOn("member-1", "member-3")

	s.setState(run, placementv1beta1.StateRun)
	signalWhenOpen(s, run, "staging")
	s.awaitSucceeded(run)
}

// signalWhenOpen approves a stage of a run that was stopped once it waits again.
func signalWhenOpen(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to be under way again", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		c := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeProgressing)
		if c.Reason == placementv1beta1.ReasonUpdateRunStopped {
			return fmt.Errorf("it is still stopped")
		}
		return nil
	})
	signalChannel.approve(s, run, stage)
}

func gateBeforeAStageHoldsIt(s *spec) {
	s.externalPlacement()
	held := canary(approval)
	held.BeforeStageTasks = []placementv1beta1.StageTask{approval}
	s.strategy(staging(), held)
	run := s.startRun("run", "0")
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-before-canary"}}
	request = await(s, s.hub, request, "to be made", func(*placementv1beta1.ClusterApprovalRequest) error { return nil })
	require.Equal(s, "beforeStage", request.Labels["kubernetes-fleet.io/taskType"])
	require.Equal(s, "true", request.Labels["kubernetes-fleet.io/isLatestUpdateRunApproval"])
	s.awaitValue(value1, "member-2")
	s.requireNothingOn("member-1", "member-3")

	kubectlChannel.approve(s, run, "before-canary")
	s.awaitRequest(run, "canary")
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKeyFromObject(request), request))
	require.Equal(s, "false", request.Labels["kubernetes-fleet.io/isLatestUpdateRunApproval"], "only one request of a stage is the latest")
	kubectlChannel.approve(s, run, "canary")
	ended := s.awaitSucceeded(run)
	stage := &ended.Status.StagesStatus[1]
	s.requireConditions(stage.BeforeStageTaskStatus[0].Conditions, ended.Generation,
		said{"ApprovalRequestCreated", "True", "StageTaskApprovalRequestCreated", ""},
		said{"ApprovalRequestApproved", "True", "StageTaskApprovalRequestApproved", ""})
	s.requireApproved(run, "before-canary", kubectlChannel)
}

func changedPolicyEndsTheRun(s *spec) {
	s.externalPlacement(pickFixed(allMembers...))
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.ClusterNames = []string{"member-2", "member-3"}
	})
	ended := s.awaitEnd(run)
	failed := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	require.NotNil(s, failed)
	require.Equal(s, metav1.ConditionFalse, failed.Status)
	require.Equal(s, "UpdateRunFailed", failed.Reason)
	require.Contains(s, failed.Message, "outdated")
	s.requireNothingOn("member-1", "member-3")
	s.requireQuiet()
}

func changedStrategyDoesNotConcernARun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	update(s, s.hub, strategy, func(st *placementv1beta1.ClusterStagedUpdateStrategy) {
		st.Spec.Stages = []placementv1beta1.StageConfig{everywhere()}
	})
	kubectlChannel.approve(s, run, "staging")
	ended := s.awaitSucceeded(run)
	require.Len(s, ended.Status.StagesStatus, 2)
	require.Equal(s, []string{"member-3", "member-1"}, clusterNames(&ended.Status.StagesStatus[1]))
}

func maxConcurrencyBoundsAStage(s *spec) {
	s.externalPlacement()
	stage := everywhere()
	// Two thirds of three clusters, rounded down.
	percent := intstr.FromString("67%")
	stage.MaxConcurrency = &percent
	s.strategy(stage)
	s.awaitSucceeded(s.startRun("first", "0"))
	s.changeTo(value2)
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	works := s.record(s.hub, &placementv1beta1.Work{}, s.mine())
	s.awaitSucceeded(s.startRun("second", ""))
	s.awaitAvailable("1")
	changes := bindings.upTo(s, newestOf(s.bindings()))
	requireWindow(s, initialClusters(bindings, works), merge(changes, works.upTo(s, newestWork(s))), 2)
	order := writes(changes, bindings.initial)
	require.ElementsMatch(s, []string{"member-1", "member-2"}, order[:2], "the first two are started together")
	require.Equal(s, "member-3", order[2])
}

// laterRunTakesOver starts a run while an earlier one is under way with the same cluster.
func laterRunTakesOver(s *spec) {
	s.externalPlacement()
	s.changeTo(value2)
	s.awaitIndex("1")
	s.strategy(staging(), canary())
	s.stop("member-2/agent")
	first := s.startRun("first", "0")
	s.awaitStarted(first, "member-2")
	// Of two runs of the same second neither counts as the later one to whoever looks at them.
	<-time.After(time.Until(first.CreationTimestamp.Add(time.Second)))
	second := s.startRun("second", "1")
	ended := s.awaitEnd(first)
	taken := fmt.Sprintf("Cannot go on: the later run `%[2]s` has taken cluster `member-2` of stage `staging`: kubectl fleet status %[2]s shows it "+
		"(cannot continue the ClusterStagedUpdateRun: unexpected behavior which cannot be handled by the controller: "+
		"the clusterResourceBinding of the updating cluster `member-2` in the stage `staging` does not have expected status: "+
		"binding spec diff: binding has different resourceSnapshotName, want: %[1]s-0-snapshot, got: %[1]s-1-snapshot; "+
		"binding state (want Bound): Bound; binding RolloutStarted (want true): true, please check if there is concurrent clusterStagedUpdateRun `%[2]s`)", s.name, second.Name)
	s.requireConditions(ended.Status.Conditions, ended.Generation,
		said{"Initialized", "True", "UpdateRunInitializedSuccessfully", ""},
		said{"Progressing", "False", "UpdateRunFailed", taken + ". The stages are aborted due to a non-recoverable error"},
		said{"Succeeded", "False", "UpdateRunFailed", taken})

	s.start("member-2/agent")
	s.awaitSucceeded(second)
	s.awaitValue(value2, allMembers...)
	for _, b := range s.bindings() {
		require.Equal(s, second.Name, b.Annotations[placementv1beta1.UpdateRunAnnotation])
	}
}
