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

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// soakTime is long enough to be seen and to disturb, short enough to wait for.
const soakTime = 3 * time.Second

// channel is a way in which a stage is approved.
type channel struct {
	name placementv1beta1.ApprovalChannel
	// by is who is recorded, verified whether somebody vouches for that.
	by       string
	verified bool
	approve  func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, stage string)
}

// approver is who the Temporal CLI says is calling.
const approver = "alice"

// administrator is whom the kubeconfig of the fleet belongs to, as the hub's API server knows.
const administrator = "fleet-admin"

var kubectlChannel = channel{placementv1beta1.ApprovalChannelKubectl, administrator, true, func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"lgtm","message":"lgtm","lastTransitionTime":"%s","observedGeneration":1}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	out := ""
	s.eventually("kubectl to be heard", func() (err error) {
		out, err = s.command(s.Context(), "kubectl", "patch", "clusterapprovalrequests", run.Name+"-"+stage, "--type=merge", "-p", patch, "--subresource=status")
		// An API server that has just started refuses for some seconds what mutating policies are to look at: it does not know
		// the types yet. A person would try again.
		if err != nil && strings.Contains(out, "(ServiceUnavailable)") {
			return fmt.Errorf("%w: %s", err, out)
		}
		require.NoError(s, err, out)
		return nil
	})
	require.Contains(s, out, "clusterapprovalrequest.placement.kubernetes-fleet.io/"+run.Name+"-"+stage+" patched")
}}

var signalChannel = channel{placementv1beta1.ApprovalChannelTemporalSignal, approver, false, func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	out, err := s.command(s.Context(), "temporal", "workflow", "signal", "--workflow-id", workflowOf(run), "--name", "approve",
		"--input", approvalInput(stage), "--identity", approver)
	require.NoError(s, err, out)
}}

var updateChannel = channel{placementv1beta1.ApprovalChannelTemporalUpdate, approver, false, func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	out, err := s.command(s.Context(), "temporal", "workflow", "update", "execute", "--workflow-id", workflowOf(run), "--name", "approve",
		"--input", approvalInput(stage), "--identity", approver)
	require.NoError(s, err, out)
	require.Contains(s, out, "approved by "+approver)
}}

func approvalInput(stage string) string {
	return fmt.Sprintf(`{"stage":%q,"comment":"lgtm"}`, stage)
}

// bothGatesOpenThrough is the how-to's run with a soak and an approval after its first stage and an approval after its
// second, all given through one channel.
func bothGatesOpenThrough(d channel) func(*spec) {
	return func(s *spec) {
		s.externalPlacement()
		s.changeTo(value2)
		s.awaitIndex("1")
		s.strategy(staging(soak(soakTime), approval), canary(approval))
		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		run := s.startRun("run", "1")

		s.awaitRequest(run, "staging")
		s.awaitValue(value2, "member-2")
		s.requireNothingOn("member-1", "member-3")
		d.approve(s, run, "staging")
		s.requireApproved(run, "staging", d)

		s.awaitRequest(run, "canary")
		s.awaitValue(value2, allMembers...)
		d.approve(s, run, "canary")

		ended := s.awaitSucceeded(run)
		s.requireApproved(run, "canary", d)
		s.requireHowToStatus(ended)
		s.requireGatesKept(ended)
		placed := s.awaitAvailable("1")
		s.requireAvailable(placed, "1", ", resourceSnapshotIndex: 1, clusterStagedUpdateRun: "+run.Name, allMembers...)
		changes := bindings.upTo(s, newestOf(s.bindings()))
		require.Equal(s, []string{"member-2", "member-3", "member-1"}, writes(changes, bindings.initial), "order of the clusters")
	}
}

func newestOf(bindings []*placementv1beta1.ClusterResourceBinding) uint64 {
	newest := uint64(0)
	for _, b := range bindings {
		newest = max(newest, revisionOf(b))
	}
	return newest
}

// awaitRequest waits until a stage asks for an approval.
func (s *spec) awaitRequest(run *placementv1beta1.ClusterStagedUpdateRun, stage string) *placementv1beta1.ClusterApprovalRequest {
	s.Helper()
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-" + stage}}
	request = await(s, s.hub, request, "to be made", func(r *placementv1beta1.ClusterApprovalRequest) error {
		if r.Annotations[placementv1beta1.ApprovalRunUIDAnnotation] != string(run.UID) {
			return fmt.Errorf("it is of another run")
		}
		return nil
	})
	require.Equal(s, placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: run.Name, TargetStage: stage}, request.Spec)
	require.Subset(s, request.Labels, map[string]string{
		"kubernetes-fleet.io/targetupdaterun": run.Name, "kubernetes-fleet.io/targetUpdateRun": run.Name,
		"kubernetes-fleet.io/targetUpdatingStage": stage, "kubernetes-fleet.io/isLatestUpdateRunApproval": "true",
		"kubernetes-fleet.io/taskType": "afterStage",
	})
	// The run says what it waits for once the request is written, so signals sent before that are early.
	await(s, s.hub, run.DeepCopy(), "to wait for the approval of "+stage, func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		for i := range r.Status.StagesStatus {
			if st := &r.Status.StagesStatus[i]; st.StageName == stage {
				return isTrue(taskOf(st, placementv1beta1.StageTaskTypeApproval).Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated, r.Generation)
			}
		}
		return fmt.Errorf("it has no stage %s", stage)
	})
	return request
}

func taskOf(stage *placementv1beta1.StageUpdatingStatus, kind placementv1beta1.StageTaskType) placementv1beta1.StageTaskStatus {
	for _, task := range stage.AfterStageTaskStatus {
		if task.Type == kind {
			return task
		}
	}
	return placementv1beta1.StageTaskStatus{}
}

// requireApproved asserts that an approval is accepted, with who gave it through which channel.
func (s *spec) requireApproved(run *placementv1beta1.ClusterStagedUpdateRun, stage string, d channel) {
	s.Helper()
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-" + stage}}
	request = await(s, s.hub, request, "to be accepted", func(r *placementv1beta1.ClusterApprovalRequest) error {
		return isTrue(r.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted, r.Generation)
	})
	require.NoError(s, isTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved, request.Generation))
	record := request.Status.Approval
	require.NotNil(s, record)
	require.Equal(s, d.name, record.Channel)
	require.Equal(s, d.by, record.Username)
	require.Equal(s, d.verified, record.Verified)
	require.Equal(s, "lgtm", record.Comment)
	require.False(s, record.At.IsZero())
}

// requireHowToStatus asserts the whole status of a succeeded run of the how-to's stages, as the documents print it.
func (s *spec) requireHowToStatus(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	g := run.Generation
	s.requireConditions(run.Status.Conditions, g,
		said{"Initialized", "True", "UpdateRunInitializedSuccessfully", "ClusterStagedUpdateRun initialized successfully"},
		said{"Progressing", "True", "UpdateRunStarted", ""},
		said{"Succeeded", "True", "UpdateRunSucceeded", ""})
	require.Equal(s, 3, run.Status.PolicyObservedClusterCount)
	require.Equal(s, "0", run.Status.PolicySnapshotIndexUsed)
	require.Equal(s, "1", run.Status.ResourceSnapshotIndexUsed)
	require.Len(s, run.Status.StagesStatus, 2)
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		s.requireConditions(stage.Conditions, g,
			said{"Progressing", "False", "StageUpdatingWaiting", ""}, said{"Succeeded", "True", "StageUpdatingSucceeded", ""})
		s.requireConditions(taskOf(stage, placementv1beta1.StageTaskTypeApproval).Conditions, g,
			said{"ApprovalRequestCreated", "True", "AfterStageTaskApprovalRequestCreated", ""},
			said{"ApprovalRequestApproved", "True", "AfterStageTaskApprovalRequestApproved", ""})
		require.Equal(s, run.Name+"-"+stage.StageName, taskOf(stage, placementv1beta1.StageTaskTypeApproval).ApprovalRequestName)
		s.requireClustersDone(stage, g)
	}
	s.requireConditions(taskOf(&run.Status.StagesStatus[0], placementv1beta1.StageTaskTypeTimedWait).Conditions, g,
		said{"WaitTimeElapsed", "True", "AfterStageTaskWaitTimeElapsed", ""})
	require.Equal(s, []string{"member-2"}, clusterNames(&run.Status.StagesStatus[0]))
	require.Equal(s, []string{"member-3", "member-1"}, clusterNames(&run.Status.StagesStatus[1]), "by the sorting label")

	deletion := run.Status.DeletionStageStatus
	require.Equal(s, "kubernetes-fleet.io/deleteStage", deletion.StageName)
	require.Empty(s, deletion.Clusters)
	s.requireConditions(deletion.Conditions, g,
		said{"Progressing", "True", "StageUpdatingStarted", ""}, said{"Succeeded", "True", "StageUpdatingSucceeded", ""})
}

func (s *spec) requireClustersDone(stage *placementv1beta1.StageUpdatingStatus, generation int64) {
	s.Helper()
	require.NotNil(s, stage.StartTime)
	require.NotNil(s, stage.EndTime)
	for _, c := range stage.Clusters {
		s.requireConditions(c.Conditions, generation,
			said{"Started", "True", "ClusterUpdatingStarted", ""}, said{"Succeeded", "True", "ClusterUpdatingSucceeded", ""})
	}
}

func clusterNames(stage *placementv1beta1.StageUpdatingStatus) []string {
	var names []string
	for _, c := range stage.Clusters {
		names = append(names, c.ClusterName)
	}
	return names
}

// requireGatesKept asserts that no stage started before the gates of the one before it were open: soaked in full, and
// approved. Both are counted from what is stored, to the second.
func (s *spec) requireGatesKept(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	for i := 1; i < len(run.Status.StagesStatus); i++ {
		before := &run.Status.StagesStatus[i-1]
		after := &run.Status.StagesStatus[i]
		if until := soakedUntil(run, i-1); until != nil {
			require.False(s, after.StartTime.Time.Before(*until), "stage %s started at %s, %s soaks until %s", after.StageName, after.StartTime, before.StageName, until)
		}
		gate := taskOf(before, placementv1beta1.StageTaskTypeApproval)
		if gate.Type == "" {
			continue
		}
		var request placementv1beta1.ClusterApprovalRequest
		require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: gate.ApprovalRequestName}, &request))
		require.False(s, after.StartTime.Before(&request.Status.Approval.At), "stage %s started at %s, approval at %s", after.StageName, after.StartTime, request.Status.Approval.At)
	}
}

// soakedUntil is when the timed wait after a stage is over, as stored; nil if the stage has none.
func soakedUntil(run *placementv1beta1.ClusterStagedUpdateRun, stage int) *time.Time {
	for _, task := range run.Status.UpdateStrategySnapshot.Stages[stage].AfterStageTasks {
		if task.Type == placementv1beta1.StageTaskTypeTimedWait {
			began := meta.FindStatusCondition(run.Status.StagesStatus[stage].Conditions, placementv1beta1.ConditionTypeProgressing).LastTransitionTime
			until := began.Add(task.WaitTime.Duration)
			return &until
		}
	}
	return nil
}
