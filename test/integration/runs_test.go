//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func olderIndexRollsBack(s *spec) {
	s.externalPlacement()
	s.changeTo(value2)
	s.awaitIndex("1")
	s.strategy(staging(), canary())
	s.awaitSucceeded(s.startRun("forward", "1"))
	s.awaitValue(value2, allMembers...)

	back := s.awaitSucceeded(s.startRun("back", "0"))
	require.Equal(s, "0", back.Status.ResourceSnapshotIndexUsed)
	s.awaitValue(value1, allMembers...)
	s.requireAvailable(s.awaitAvailable("0"), "0", ", resourceSnapshotIndex: 0, clusterStagedUpdateRun: "+back.Name, allMembers...)
	s.requireSnapshots(map[string]string{"0": "false", "1": "true"})
	for _, b := range s.bindings() {
		require.Equal(s, back.Name, b.Annotations[placementv1beta1.UpdateRunAnnotation])
		require.Equal(s, s.name+"-1-snapshot", b.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation])
	}
}

// omittedIndexTakesTheLatest creates each run right after a change, before the placement has had time to see it.
func omittedIndexTakesTheLatest(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	for i, value := range []string{value2, "value3", "value4"} {
		s.changeTo(value)
		run := s.awaitSucceeded(s.startRun(fmt.Sprintf("run%d", i), ""))
		require.Equal(s, fmt.Sprint(i+1), run.Status.ResourceSnapshotIndexUsed)
		s.awaitValue(value, allMembers...)
	}
}

func deletionStageClearsWhatIsNoLongerPicked(s *spec) {
	s.externalPlacement(pickFixed(allMembers...))
	s.strategy(everywhere())
	s.awaitSucceeded(s.startRun("first", "0"))
	s.awaitValue(value1, allMembers...)

	s.shrinkTo("member-1", "member-2")
	s.requireUnscheduled("member-3")
	s.awaitValue(value1, "member-3")

	second := s.awaitSucceeded(s.startRun("second", "0"))
	require.Equal(s, []string{"member-1", "member-2"}, clusterNames(&second.Status.StagesStatus[0]))
	require.Equal(s, []string{"member-3"}, clusterNames(second.Status.DeletionStageStatus))
	s.requireClustersDone(second.Status.DeletionStageStatus, second.Generation)
	s.requireNothingOn("member-3")
	s.awaitValue(value1, "member-1", "member-2")
	require.Len(s, s.bindings(), 2)
}

// shrinkTo gives a PickFixed placement another list of clusters and waits until they are picked.
func (s *spec) shrinkTo(names ...string) {
	s.Helper()
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.ClusterNames = names })
	await(s, s.hub, s.placement(), "to be scheduled anew", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeScheduled), p.Generation)
	})
}

// requireUnscheduled asserts which clusters keep what they have though they are no longer picked.
func (s *spec) requireUnscheduled(want ...string) {
	s.Helper()
	var got []string
	for _, b := range s.bindings() {
		if b.Spec.State == placementv1beta1.BindingStateUnscheduled {
			got = append(got, b.Spec.TargetCluster)
		}
	}
	require.ElementsMatch(s, want, got)
}

func deletedRunTakesItsRequestsAlong(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	request := s.awaitRequest(run, "staging")

	s.delete(s.hub, run)
	awaitGone(s, s.hub, run)
	awaitGone(s, s.hub, request)
	s.awaitClosed(workflowOf(run))
	for _, b := range s.bindings() {
		if b.Spec.TargetCluster == "member-2" {
			require.Equal(s, placementv1beta1.BindingStateBound, b.Spec.State)
			require.Equal(s, s.name+"-0-snapshot", b.Spec.ResourceSnapshotName)
		} else {
			require.Empty(s, b.Spec.ResourceSnapshotName, "cluster %s was never started", b.Spec.TargetCluster)
		}
	}
	s.awaitValue(value1, "member-2")
	s.requireNothingOn("member-1", "member-3")
	s.requireQuiet()
}

func deletedPlacementEndsItsRun(s *spec) {
	placement := s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")

	s.delete(s.hub, placement)
	ended := s.awaitEnd(run)
	s.requireConditions(ended.Status.Conditions, ended.Generation,
		said{"Initialized", "True", "UpdateRunInitializedSuccessfully", ""},
		said{"Progressing", "False", "UpdateRunFailed", "Cannot go on: parent clusterResourcePlacement not found" + clientError + ". The stages are aborted due to a non-recoverable error"},
		said{"Succeeded", "False", "UpdateRunFailed", "Cannot go on: parent clusterResourcePlacement not found" + clientError})
	s.awaitClosed(workflowOf(run))
	awaitGone(s, s.hub, placement)
	s.awaitCleared(allMembers...)
	s.requireNoneLeft()
}

// leftoverApprovalDoesNotCount puts an approved request of the right name in the run's way, as one of an earlier run of
// the same name would be.
func leftoverApprovalDoesNotCount(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.run("run", "0")
	leftover := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-staging", Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: "another"}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: run.Name, TargetStage: "staging"},
	}
	s.create(leftover)
	meta.SetStatusCondition(&leftover.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: "lgtm", ObservedGeneration: 1,
	})
	require.NoError(s, s.hub.Status().Update(s.Context(), leftover))

	s.create(run)
	request := s.awaitRequest(run, "staging")
	require.NotEqual(s, leftover.UID, request.UID)
	require.Empty(s, request.Status.Conditions)
	s.requireNothingOn("member-1", "member-3")
	kubectlChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
}

// maxEvents bounds the history of a run of one stage of three clusters, and that of its stage.
const maxEvents = 60

func historyStaysShort(s *spec) {
	s.externalPlacement()
	s.strategy(everywhere())
	run := s.awaitSucceeded(s.startRun("run", "0"))
	s.awaitClosed(workflowOf(run))
	own := len(s.history(workflowOf(run)).GetEvents())
	stage := len(s.history(wf.StageID(workflowOf(run), "everywhere")).GetEvents())
	s.Logf("events of a run over one stage of 3 clusters: %d in the run, %d in the stage", own, stage)
	require.LessOrEqual(s, own, maxEvents)
	require.LessOrEqual(s, stage, maxEvents)
}

// everyLookUpOfTheHowToWorks runs the commands that the documents print.
func everyLookUpOfTheHowToWorks(s *spec) {
	s.externalPlacement()
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	for _, args := range [][]string{
		{"get", "crp", s.name}, {"describe", "crp", s.name},
		{"get", "clusterresourcesnapshots", "--show-labels"}, {"get", "clusterresourcesnapshots", s.name + "-0-snapshot", "-o", "yaml"},
		{"get", "csur", run.Name}, {"describe", "csur", run.Name}, {"get", "csur", run.Name, "-o", "yaml"},
		{"get", "clusterapprovalrequest"}, {"get", "clusterresourcebindings"}, {"get", "csus", s.name},
	} {
		out, err := s.command(s.Context(), "kubectl", args...)
		require.NoError(s, err, "kubectl %v: %s", args, out)
		require.Contains(s, out, s.name, "kubectl %v", args)
	}
	s.requireColumns()
}

func (s *spec) requireColumns() {
	s.Helper()
	for kind, columns := range map[string][]string{
		"crp":                    {"NAME", "GEN", "SCHEDULED", "SCHEDULED-GEN", "AVAILABLE", "AVAILABLE-GEN", "AGE"},
		"csur":                   {"NAME", "PLACEMENT", "RESOURCE-SNAPSHOT", "POLICY-SNAPSHOT", "INITIALIZED", "SUCCEEDED", "AGE"},
		"clusterapprovalrequest": {"NAME", "UPDATE-RUN", "STAGE", "APPROVED", "APPROVALACCEPTED", "AGE"},
	} {
		out, err := s.command(s.Context(), "kubectl", "get", kind)
		require.NoError(s, err, out)
		for _, column := range columns {
			require.Contains(s, out, column, "columns of %s", kind)
		}
	}
}
