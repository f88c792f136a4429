package records_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/records"
)

var began = time.Date(2026, 11, 21, 21, 52, 14, 0, time.UTC)

// after is so many seconds after the run was created.
func after(seconds int) metav1.Time {
	return metav1.NewTime(began.Add(time.Duration(seconds) * time.Second))
}

func condition(kind string, status metav1.ConditionStatus, reason string, seconds int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: after(seconds), ObservedGeneration: 1, Message: "says " + reason}
}

func newRun() *placementv1beta1.ClusterStagedUpdateRun {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{
		Name: "web-2", UID: "run-uid", CreationTimestamp: after(0), Generation: 1, Finalizers: []string{placementv1beta1.UpdateRunFinalizer},
		Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane@example.com"},
	}}
	run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "stages"}
	return run
}

const planHash = "sha256:9f3c2a7be1d04c559f3c2a7be1d04c559f3c2a7be1d04c559f3c2a7be1d04c55"

// newFullRun is a run of two stages that has succeeded: the first is approved before it starts, the second analysed after.
func newFullRun() (*placementv1beta1.ClusterStagedUpdateRun, *placementv1beta1.ClusterApprovalRequest) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	run := newRun()
	done := []metav1.Condition{condition("Succeeded", yes, placementv1beta1.ReasonClusterUpdatingSucceeded, 5)}
	skipped := []metav1.Condition{condition("Succeeded", no, placementv1beta1.ReasonClusterUpdatingSkipped, 5)}
	start, next := after(4), after(7)
	run.Status = placementv1beta1.UpdateRunStatus{
		PlanHash: planHash, ResourceSnapshotIndexUsed: "1",
		Conditions: []metav1.Condition{
			condition("Initialized", yes, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, 1),
			condition("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 2),
			condition("Succeeded", yes, placementv1beta1.ReasonUpdateRunSucceeded, 10),
		},
		StagesStatus: []placementv1beta1.StageUpdatingStatus{{
			StageName: "staging", StartTime: &start,
			Clusters:   []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-1", Conditions: done}, {ClusterName: "member-2", Conditions: skipped}},
			Conditions: []metav1.Condition{condition("Succeeded", yes, placementv1beta1.ReasonStageUpdatingSucceeded, 6)},
			BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{{
				Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: "web-2-before-staging",
				Conditions: []metav1.Condition{
					condition(placementv1beta1.ConditionTypeApprovalRequestCreated, yes, "", 2),
					condition(placementv1beta1.ConditionTypeApprovalRequestApproved, yes, "", 4),
				},
			}},
		}, {
			StageName: "prod", StartTime: &next,
			Clusters:   []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-3", Conditions: done}},
			Conditions: []metav1.Condition{condition("Succeeded", yes, placementv1beta1.ReasonStageUpdatingSucceeded, 9)},
			AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{
				Type: placementv1beta1.StageTaskTypeAnalysis, AnalysisRunName: "web-2-prod",
				Conditions: []metav1.Condition{
					condition(placementv1beta1.ConditionTypeAnalysisStarted, yes, placementv1beta1.ReasonStageTaskAnalysisStarted, 8),
					condition(placementv1beta1.ConditionTypeAnalysisSucceeded, yes, placementv1beta1.ReasonStageTaskAnalysisSucceeded, 9),
				},
			}},
		}},
	}
	request := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "web-2-before-staging", Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "web-2"},
		Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: "run-uid", placementv1beta1.PlanHashAnnotation: planHash},
	}}
	request.Status.Approval = &placementv1beta1.ApprovalRecord{
		Username: "joe@example.com", At: after(3), Channel: placementv1beta1.ApprovalChannelKubectl, Verified: true, Comment: "CAB-17", PlanHash: planHash[:20],
	}
	return run, request
}

// told prints what facts tell, a line each.
func told(specs []fleetflowv1alpha1.AuditRecordSpec) []string {
	var lines []string
	for i := range specs {
		spec := &specs[i]
		record := fleetflowv1alpha1.AuditRecord{Spec: *spec}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s by %s %s", spec.Time.UTC().Format("04:05"), spec.Type, spec.StageName, record.Actor(), spec.Comment)))
	}
	return lines
}

func TestARunTellsEachFactOnceInItsOrder(t *testing.T) {
	run, request := newFullRun()
	world := records.World{Run: run, Requests: map[string]placementv1beta1.ApprovalRequestObject{request.Name: request}, Now: after(20).Time}
	specs := records.Derive(world)
	assert.Equal(t, []string{
		"52:14 run.created  by jane@example.com",
		"52:15 run.initialized  by fleet",
		"52:16 approval.requested staging by fleet",
		"52:17 approval.given staging by joe@example.com CAB-17",
		"52:18 stage.started staging by fleet",
		"52:20 stage.succeeded staging by fleet",
		"52:21 stage.started prod by fleet",
		"52:22 analysis.started prod by fleet",
		"52:23 analysis.passed prod by fleet",
		"52:23 stage.succeeded prod by fleet",
		"52:24 run.succeeded  by fleet",
	}, told(specs))
	assert.Equal(t, planHash, specs[3].PlanHash, "the beginning of a hash stands for the plan that was shown")
	assert.Empty(t, specs[0].PlanHash, "the plan was made after that")
	assert.Equal(t, fleetflowv1alpha1.AuditValue("member-2"), specs[5].Data["skipped"])
	seen := map[string]bool{}
	for i := range specs {
		assert.False(t, seen[specs[i].ID], "%s has an ID of its own", specs[i].Type)
		seen[specs[i].ID] = true
	}
	world.Now = after(3600).Time
	assert.Equal(t, specs, records.Derive(world), "the same world has the same facts, whenever it is looked at")
}

func TestWhatARunTells(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	stopped := condition("Progressing", no, placementv1beta1.ReasonUpdateRunStopped, 30)
	recordOf := func(spec fleetflowv1alpha1.AuditRecordSpec, sequence int64) fleetflowv1alpha1.AuditRecord {
		spec.Sequence = sequence
		return fleetflowv1alpha1.AuditRecord{Spec: spec}
	}
	recordedStop := func() fleetflowv1alpha1.AuditRecord {
		run := newRun()
		run.Status.Conditions = []metav1.Condition{stopped}
		found := records.Derive(records.World{Run: run})
		return recordOf(found[len(found)-1], 2)
	}
	for sentence, test := range map[string]struct {
		change  func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest)
		full    bool
		tells   string
		tellsNo string
	}{
		"a creator that the hub has not noted is unverified": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Annotations = nil
			}, tells: "52:14 run.created  by unverified"},
		"a run that says that a trigger has made it is the fleet's, as it says": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Annotations = map[string]string{placementv1beta1.TriggeredByAnnotation: "uid"}
			}, tells: "52:14 run.created  by fleet (not verified)"},
		"one without a plan is refused": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.Conditions = []metav1.Condition{condition("Initialized", no, placementv1beta1.ReasonUpdateRunInitializedFailed, 1)}
			}, tells: "52:15 run.refused  by fleet"},
		"one that has failed": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.Conditions = []metav1.Condition{condition("Succeeded", no, placementv1beta1.ReasonUpdateRunFailed, 9)}
			}, tells: "52:23 run.failed  by fleet"},
		"one that another rolls back": {
			change: func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Annotations[placementv1beta1.RolledBackByAnnotation] = "web-3"
				w.Now = after(40).Time
			}, tells: "52:54 run.takenOver  by fleet"},
		"one that was over when another was made for a later snapshot": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Annotations[placementv1beta1.RolledBackByAnnotation] = "web-3"
			}, tellsNo: "run.takenOver"},
		"one that was stopped": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.Conditions = []metav1.Condition{stopped}
			}, tells: "52:44 run.stopped  by unverified"},
		"one that goes on after a stop that was recorded": {
			change: func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Records = []fleetflowv1alpha1.AuditRecord{recordedStop()}
				run.Status.Conditions = []metav1.Condition{condition("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 35)}
			}, tells: "52:49 run.resumed  by unverified"},
		"one that is still asked to stop does not go on": {
			change: func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Records = []fleetflowv1alpha1.AuditRecord{recordedStop()}
				run.Spec.State = placementv1beta1.StateStop
				run.Status.Conditions = []metav1.Condition{condition("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 35)}
			}, tellsNo: "run.resumed"},
		"one that waits again after it was resumed is not resumed twice": {
			change: func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Records = []fleetflowv1alpha1.AuditRecord{recordedStop(), {Spec: fleetflowv1alpha1.AuditRecordSpec{Type: fleetflowv1alpha1.RecordRunResumed, Sequence: 3}}}
				run.Status.Conditions = []metav1.Condition{condition("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 35)}
			}, tellsNo: "run.resumed"},
		"a stop after a record of a later time is not before it": {
			change: func(w *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Records = []fleetflowv1alpha1.AuditRecord{{Spec: fleetflowv1alpha1.AuditRecordSpec{Type: fleetflowv1alpha1.RecordRunStuck, Time: after(33), Sequence: 1}}}
				run.Status.Conditions = []metav1.Condition{stopped}
			}, tells: "52:47 run.stopped  by unverified"},
		"one that is held": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.Conditions = []metav1.Condition{condition("Held", yes, "HoldInForce", 5)}
			}, tells: "52:19 run.held  by fleet"},
		"one that is released": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.Conditions = []metav1.Condition{condition("Held", no, "Resolved", 6)}
			}, tells: "52:20 run.released  by fleet"},
		"one that is deleted before its end, with the reason": {
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				at := after(50)
				run.DeletionTimestamp = &at
				run.Annotations[placementv1beta1.ReasonAnnotation] = "wrong branch"
			}, tells: "53:04 run.abandoned  by unverified wrong branch"},
		"the reason of a rollback is not that of its deletion": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				at := after(50)
				run.DeletionTimestamp = &at
				run.Spec.RollbackOf = "web-1"
				run.Annotations[placementv1beta1.ReasonAnnotation] = "errors doubled"
			}, tells: "53:04 run.deleted  by unverified"},
		"one that is deleted after its end": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				at := after(50)
				run.DeletionTimestamp = &at
			}, tells: "53:04 run.deleted  by unverified"},
		"an approval whose request is gone is of nobody knows whom": {full: true,
			change: func(w *records.World, _ *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Requests = nil
			}, tells: "52:18 approval.given staging by unverified"},
		"an approval whose sender nobody vouches for": {full: true,
			change: func(_ *records.World, _ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest) {
				request.Status.Approval.Verified = false
			}, tells: "52:17 approval.given staging by joe@example.com (not verified) CAB-17"},
		"an approval that was taken back": {full: true,
			change: func(_ *records.World, _ *placementv1beta1.ClusterStagedUpdateRun, request *placementv1beta1.ClusterApprovalRequest) {
				request.Status.Approval = nil
				request.Status.Conditions = []metav1.Condition{condition("Approved", no, placementv1beta1.ReasonPlanChanged, 3)}
			}, tells: "52:17 approval.voided staging by fleet"},
		"a stage that was not approved in time": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				at := after(3)
				task := &run.Status.StagesStatus[0].BeforeStageTaskStatus[0]
				task.ExpirationTime = &at
				task.Conditions[1] = condition("ApprovalRequestApproved", no, placementv1beta1.ReasonRequestExpired, 3)
			}, tells: "52:17 approval.expired staging by fleet", tellsNo: "approval.given"},
		"a stage without clusters does not start": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.StagesStatus[1].Clusters = nil
				run.Status.StagesStatus[1].Conditions[0].Reason = placementv1beta1.ReasonStageUpdatingSkippedNoClusters
			}, tells: "52:23 stage.skipped prod by fleet", tellsNo: "stage.started prod"},
		"a run that clears no cluster has no stage for that": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.DeletionStageStatus = run.Status.StagesStatus[1].DeepCopy()
				run.Status.DeletionStageStatus.StageName = placementv1beta1.DeletionStageName
				run.Status.DeletionStageStatus.Clusters = nil
			}, tellsNo: placementv1beta1.DeletionStageName},
		"one that clears some has": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.DeletionStageStatus = run.Status.StagesStatus[1].DeepCopy()
				run.Status.DeletionStageStatus.StageName = placementv1beta1.DeletionStageName
			}, tells: "52:23 stage.succeeded " + placementv1beta1.DeletionStageName + " by fleet"},
		"an analysis that has failed": {full: true,
			change: func(_ *records.World, run *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				run.Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions[1] = condition(placementv1beta1.ConditionTypeAnalysisSucceeded, no,
					placementv1beta1.ReasonStageTaskAnalysisFailed, 9)
			}, tells: "52:23 analysis.failed prod by fleet"},
		"what was deleted after its time is not told again": {full: true,
			change: func(w *records.World, _ *placementv1beta1.ClusterStagedUpdateRun, _ *placementv1beta1.ClusterApprovalRequest) {
				w.Records = []fleetflowv1alpha1.AuditRecord{{Spec: fleetflowv1alpha1.AuditRecordSpec{Type: fleetflowv1alpha1.RecordStageStarted, Time: after(4), Sequence: 5}}}
			}, tells: "52:20 stage.succeeded staging by fleet", tellsNo: "run.created"},
	} {
		t.Run(sentence, func(t *testing.T) {
			run, request := newRun(), &placementv1beta1.ClusterApprovalRequest{}
			if test.full {
				run, request = newFullRun()
			}
			world := records.World{Run: run, Requests: map[string]placementv1beta1.ApprovalRequestObject{request.Name: request}, Now: after(20).Time}
			test.change(&world, run, request)
			lines := told(records.Derive(world))
			if test.tells != "" {
				assert.Contains(t, lines, test.tells)
			}
			if test.tellsNo != "" {
				assert.NotContains(t, strings.Join(lines, "\n"), test.tellsNo)
			}
		})
	}
}

func TestWhatUsersSayIsBounded(t *testing.T) {
	run, request := newFullRun()
	request.Status.Approval.Comment = "\x1b[31m" + strings.Repeat("é", 10_000)
	request.Status.Approval.Username = strings.Repeat("u", 1000)
	run.Status.Conditions[2].Message = strings.Repeat("m", 30_000)
	run.Spec.PlacementName = strings.Repeat("p", 255)
	run.Spec.ExpectedPlanHash = strings.Repeat("h", 200)
	request.Status.Approval.PlanHash = ""
	request.Annotations[placementv1beta1.PlanHashAnnotation] = strings.Repeat("9", 1000)
	specs := records.Derive(records.World{Run: run, Requests: map[string]placementv1beta1.ApprovalRequestObject{request.Name: request}})
	given, ended := specs[3], specs[len(specs)-1]
	require.Equal(t, fleetflowv1alpha1.RecordApprovalGiven, given.Type)
	assert.LessOrEqual(t, len(given.Comment), 8192)
	assert.NotContains(t, given.Comment, "\x1b")
	assert.LessOrEqual(t, len(given.Actor.Username), 253)
	assert.LessOrEqual(t, len(ended.Message), 1024)
	assert.LessOrEqual(t, len(ended.PlacementName), 253)
	assert.Empty(t, given.PlanHash, "what the annotation says is no plan")
	for i := range specs {
		assert.LessOrEqual(t, len(specs[i].PlanHash), 71, specs[i].Type)
	}
}

func TestAnApprovalWhoseRequestIsGoneIsForNoPlanThatIsKnown(t *testing.T) {
	run, _ := newFullRun()
	for _, spec := range records.Derive(records.World{Run: run, Now: after(20).Time}) {
		if spec.Type == fleetflowv1alpha1.RecordApprovalGiven {
			assert.Empty(t, spec.PlanHash)
			return
		}
	}
	t.Fatal("the approval is told")
}

// idsOf returns the IDs of the facts of a type.
func idsOf(specs []fleetflowv1alpha1.AuditRecordSpec, kind fleetflowv1alpha1.AuditRecordType) []string {
	var ids []string
	for i := range specs {
		if specs[i].Type == kind {
			ids = append(ids, specs[i].ID)
		}
	}
	return ids
}

func TestAnApprovalAfterTheClustersWereAskedOnceMoreIsAnother(t *testing.T) {
	run, request := newFullRun()
	world := records.World{Run: run, Requests: map[string]placementv1beta1.ApprovalRequestObject{request.Name: request}, Now: after(20).Time}
	first := idsOf(records.Derive(world), fleetflowv1alpha1.RecordApprovalGiven)
	require.Len(t, first, 1)
	run.Status.StagesStatus[0].BeforeStageTaskStatus[0].Conditions[1].LastTransitionTime = after(15)
	assert.NotEqual(t, first, idsOf(records.Derive(world), fleetflowv1alpha1.RecordApprovalGiven))
}

func TestEachVoteIsTold(t *testing.T) {
	const no = metav1.ConditionFalse
	run, request := newFullRun()
	world := records.World{Run: run, Requests: map[string]placementv1beta1.ApprovalRequestObject{request.Name: request}, Now: after(20).Time}
	early, late := after(2), after(3)
	request.Spec.Votes = &placementv1beta1.VoteRules{Required: 2}
	request.Status.Tally = "2/2"
	request.Status.Votes = []placementv1beta1.Vote{
		{Username: "ada", Groups: []string{"sre"}, Channel: placementv1beta1.ApprovalChannelDashboard, At: &early, Comment: "lgtm", PlanHash: planHash[:20]},
		{Username: "joe@example.com", Channel: placementv1beta1.ApprovalChannelKubectl, At: &late, Comment: "CAB-17", PlanHash: planHash},
	}
	specs := records.Derive(world)
	lines := told(specs)
	assert.Subset(t, lines, []string{
		"52:16 approval.voted staging by ada lgtm", "52:17 approval.voted staging by joe@example.com CAB-17", "52:17 approval.given staging by joe@example.com CAB-17",
	})
	assert.Equal(t, planHash, specs[3].PlanHash)
	assert.Equal(t, "Dashboard", specs[3].Actor.Channel)
	assert.Equal(t, []string{"sre"}, specs[3].Actor.Groups)
	given := specs[5]
	require.Equal(t, fleetflowv1alpha1.RecordApprovalGiven, given.Type, "after the votes")
	assert.Equal(t, fleetflowv1alpha1.AuditValue("ada, joe@example.com"), given.Data["voters"])
	assert.Equal(t, fleetflowv1alpha1.AuditValue("2/2"), given.Data["votes"])
	before := idsOf(specs, fleetflowv1alpha1.RecordApprovalVoted)
	again := after(5)
	request.Status.Votes[0].At = &again
	assert.NotEqual(t, before, idsOf(records.Derive(world), fleetflowv1alpha1.RecordApprovalVoted), "who votes again has voted twice")

	request.Status = placementv1beta1.ApprovalRequestStatus{Tally: "0/2", Conditions: []metav1.Condition{
		condition("Approved", no, placementv1beta1.ReasonVoteRejected, 6), condition("ApprovalAccepted", no, placementv1beta1.ReasonVoteRejected, 6),
	}}
	request.Status.Conditions[0].Message = "grace rejected it: errors doubled"
	run.Status.StagesStatus[0].BeforeStageTaskStatus[0].Conditions = run.Status.StagesStatus[0].BeforeStageTaskStatus[0].Conditions[:1]
	lines = told(records.Derive(world))
	assert.Contains(t, lines, "52:20 approval.rejected staging by unverified")
	assert.NotContains(t, strings.Join(lines, "\n"), "approval.given")

	for _, reason := range []string{placementv1beta1.ReasonPlanChanged, placementv1beta1.ReasonPlanHashMissing, placementv1beta1.ReasonApproverNotAllowed, placementv1beta1.ReasonCommentMissing,
		placementv1beta1.ReasonVoteExpired} {
		request.Status.Conditions = []metav1.Condition{condition("ApprovalAccepted", no, reason, 7)}
		assert.Contains(t, told(records.Derive(world)), "52:21 approval.voided staging by fleet", reason)
	}
	request.Status.Conditions = []metav1.Condition{condition("ApprovalAccepted", no, placementv1beta1.ReasonVotesMissing, 7)}
	assert.NotContains(t, strings.Join(told(records.Derive(world)), "\n"), "approval.voided")
}
