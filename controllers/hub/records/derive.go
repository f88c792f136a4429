package records

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxAsked is of how many clusters of a run it is recorded that users have asked for something.
const maxAsked = 100

// World is what is known of a run.
type World struct {
	Run placementv1beta1.UpdateRunObject
	// Requests are the approval requests of the run, by name.
	Requests map[string]placementv1beta1.ApprovalRequestObject
	// Records are those of the run, as they were written.
	Records []fleetflowv1alpha1.AuditRecord
	// Now is the time of facts that have none of their own.
	Now time.Time
}

// Derive returns what there has to be a record of, in the order in which it happened, whether there is one or not. It is pure. What a
// run has not had since its status says otherwise, such as a second pause within the time of one crash, nothing tells any more.
func Derive(w World) []fleetflowv1alpha1.AuditRecordSpec {
	spec := w.Run.GetUpdateRunSpec()
	f := &facts{Run: w.Run, Requests: w.Requests, teller: teller{
		subject:   referenceTo(w.Run, placementv1beta1.ScopeOf(w.Run).UpdateRunKind()),
		placement: spec.PlacementName, run: w.Run.GetName(), planHash: w.Run.GetUpdateRunStatus().PlanHash, records: w.Records, now: w.Now,
	}}
	f.created()
	f.planned()
	for i := range f.status().StagesStatus {
		f.stage(&f.status().StagesStatus[i])
	}
	if stage := f.status().DeletionStageStatus; stage != nil && len(stage.Clusters) > 0 {
		f.stage(stage)
	}
	f.asked()
	f.held()
	f.moved()
	f.ended()
	f.deleted()
	return f.inOrder()
}

// facts are those of one run.
type facts struct {
	teller
	Run      placementv1beta1.UpdateRunObject
	Requests map[string]placementv1beta1.ApprovalRequestObject
}

func (f *facts) status() *placementv1beta1.UpdateRunStatus { return f.Run.GetUpdateRunStatus() }

// created tells who has created the run, as far as the hub's API server has noted it.
func (f *facts) created() {
	spec := f.Run.GetUpdateRunSpec()
	annotations := f.Run.GetAnnotations()
	why := ""
	if spec.RollbackOf != "" {
		why = annotations[placementv1beta1.ReasonAnnotation]
	}
	f.add(fact{
		kind: fleetflowv1alpha1.RecordRunCreated, at: f.Run.GetCreationTimestamp().Time, by: creatorOf(f.Run), comment: why, planHash: &spec.ExpectedPlanHash,
		data: map[string]string{
			"strategy": spec.StagedUpdateStrategyName, "askedSnapshot": spec.ResourceSnapshotIndex, "rollbackOf": spec.RollbackOf,
		},
	})
	if why := rules.WhyRunEnds(f.Run); why != "" && !rules.IsRunOver(f.Run) {
		f.add(fact{
			kind: fleetflowv1alpha1.RecordRunTakenOver, at: f.now, message: why,
			data: map[string]string{
				"rolledBackBy":      annotations[placementv1beta1.RolledBackByAnnotation],
				"supersededByIndex": annotations[placementv1beta1.SupersededByAnnotation],
			},
		})
	}
}

// creatorOf returns who has created a run. That the fleet has, an annotation says that users can write, too.
func creatorOf(run placementv1beta1.UpdateRunObject) *fleetflowv1alpha1.AuditActor {
	annotations := run.GetAnnotations()
	switch by := annotations[placementv1beta1.CreatorAnnotation]; {
	case by != "":
		return &fleetflowv1alpha1.AuditActor{Username: bounded(by, maxName), Verified: true}
	case annotations[placementv1beta1.TriggeredByAnnotation] != "", annotations[placementv1beta1.RollbackOfUIDAnnotation] != "":
		return &fleetflowv1alpha1.AuditActor{Username: fleetflowv1alpha1.AuditedFleet}
	}
	return unknown()
}

// planned tells that the plan is frozen, or that there can be none.
func (f *facts) planned() {
	initialized := meta.FindStatusCondition(f.status().Conditions, placementv1beta1.ConditionTypeInitialized)
	switch {
	case initialized == nil:
	case initialized.Status == metav1.ConditionTrue:
		clusters := 0
		for i := range f.status().StagesStatus {
			clusters += len(f.status().StagesStatus[i].Clusters)
		}
		f.add(fact{
			kind: fleetflowv1alpha1.RecordRunInitialized, at: initialized.LastTransitionTime.Time, message: initialized.Message,
			data: map[string]string{
				"snapshot": f.status().ResourceSnapshotIndexUsed, "policySnapshot": f.status().PolicySnapshotIndexUsed,
				"stages": strconv.Itoa(len(f.status().StagesStatus)), "clusters": strconv.Itoa(clusters),
			},
		})
	case initialized.Status == metav1.ConditionFalse:
		f.add(fact{
			kind: fleetflowv1alpha1.RecordRunRefused, at: initialized.LastTransitionTime.Time, message: initialized.Message,
		})
	}
}

// stage tells how far a stage and its tasks have come.
func (f *facts) stage(stage *placementv1beta1.StageUpdatingStatus) {
	for _, side := range stagetask.Sides() {
		for _, task := range tasksOf(stage, side) {
			f.approval(stage, side, task)
			f.analysis(stage, side, task)
		}
	}
	name := stage.StageName
	if stage.StartTime != nil && len(stage.Clusters) > 0 {
		f.add(fact{
			kind: fleetflowv1alpha1.RecordStageStarted, which: []string{name}, at: stage.StartTime.Time, stage: name,
			data: map[string]string{"clusters": strconv.Itoa(len(stage.Clusters))},
		})
	}
	succeeded := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeSucceeded)
	if succeeded == nil {
		return
	}
	ended := fact{which: []string{name}, at: succeeded.LastTransitionTime.Time, stage: name, message: succeeded.Message, data: countsOf(stage)}
	switch {
	case succeeded.Reason == placementv1beta1.ReasonStageUpdatingSkippedNoClusters:
		ended.kind = fleetflowv1alpha1.RecordStageSkipped
	case succeeded.Status == metav1.ConditionTrue:
		ended.kind = fleetflowv1alpha1.RecordStageSucceeded
	case succeeded.Status == metav1.ConditionFalse:
		ended.kind = fleetflowv1alpha1.RecordStageFailed
	default:
		return
	}
	f.add(ended)
}

// asked tells which clusters users have asked the run to skip or to retry, the first of them. The same may be asked for again
// after something else was: the generation tells it, as long as the API server notes it.
func (f *facts) asked() {
	spec := f.Run.GetUpdateRunSpec()
	for _, action := range spec.ClusterActions[:min(len(spec.ClusterActions), maxAsked)] {
		attempt := strconv.Itoa(int(max(action.Attempt, 1)))
		found := fact{
			kind: fleetflowv1alpha1.RecordClusterSkipped, which: []string{action.Cluster, attempt}, at: f.now,
			data: map[string]string{clusterKey: action.Cluster, attemptKey: attempt},
		}
		if action.Action == placementv1beta1.ClusterActionRetry {
			found.kind = fleetflowv1alpha1.RecordClusterRetried
		} else if spec.RollbackOf == "" {
			found.comment = f.Run.GetAnnotations()[placementv1beta1.ReasonAnnotation]
		}
		by, generation := changerOf(f.Run, rules.WantedOf(action))
		if generation == "" && f.hasAsked(found) {
			continue
		}
		found.by = by
		found.which = append(found.which, generation)
		f.add(found)
	}
}

// hasAsked reports whether there is a record of what users have asked for about a cluster.
func (f *facts) hasAsked(asked fact) bool {
	return slices.ContainsFunc(f.records, func(record fleetflowv1alpha1.AuditRecord) bool {
		return record.Spec.Type == asked.kind && string(record.Spec.Data[clusterKey]) == asked.data[clusterKey] &&
			string(record.Spec.Data[attemptKey]) == asked.data[attemptKey]
	})
}

// What the data of a record has about a cluster.
const (
	clusterKey = "cluster"
	attemptKey = "attempt"
)

// tasksOf returns the tasks of a stage on one of its sides.
func tasksOf(stage *placementv1beta1.StageUpdatingStatus, side stagetask.Side) []placementv1beta1.StageTaskStatus {
	switch side {
	case stagetask.Before:
		return stage.BeforeStageTaskStatus
	case stagetask.During:
		return stage.DuringStageTaskStatus
	default:
		return stage.AfterStageTaskStatus
	}
}

// countsOf counts the clusters of a stage, and names those that it has not brought the change to, the first of them.
func countsOf(stages ...*placementv1beta1.StageUpdatingStatus) map[string]string {
	succeeded := 0
	var failed, skipped []string
	for _, stage := range stages {
		succeeded += updaterun.CountIn(stage, updaterun.PhaseSucceeded)
		failed = append(failed, updaterun.NamesIn(stage, updaterun.PhaseFailed)...)
		skipped = append(skipped, updaterun.NamesIn(stage, updaterun.PhaseSkipped)...)
	}
	return map[string]string{
		"succeeded": strconv.Itoa(succeeded), "failed": updaterun.ListNames(failed), "skipped": updaterun.ListNames(skipped),
	}
}

// approval tells that a task asks for an approval, and who has given it.
func (f *facts) approval(stage *placementv1beta1.StageUpdatingStatus, side stagetask.Side, task placementv1beta1.StageTaskStatus) {
	if task.Type != placementv1beta1.StageTaskTypeApproval {
		return
	}
	name := task.ApprovalRequestName
	which := []string{stage.StageName, side.Position()}
	data := map[string]string{"approvalRequest": name, "position": side.Position()}
	request := f.Requests[name]
	if asked := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated); isTrue(asked) {
		at := asked.LastTransitionTime.Time
		if request != nil && task.ExpirationTime != nil && request.GetCreationTimestamp().After(at) { // it was asked for before
			at = request.GetCreationTimestamp().Time
		}
		f.add(fact{kind: fleetflowv1alpha1.RecordApprovalRequested, which: slices.Concat(which, limitOf(task)), at: at, stage: stage.StageName, data: data})
	}
	if request != nil {
		f.votes(stage.StageName, which, request, data)
	}
	if given := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved); isTrue(given) {
		by, comment, planHash, at := approvedBy(request)
		if at.IsZero() {
			at = given.LastTransitionTime.Time
		}
		f.add(fact{
			kind: fleetflowv1alpha1.RecordApprovalGiven, which: slices.Concat(which, []string{instant(given)}), at: at, stage: stage.StageName, by: by, comment: comment,
			planHash: &planHash, data: withVoters(data, request),
		})
	}
	f.expired(stage.StageName, which, task, data)
	if request != nil {
		f.voided(stage.StageName, which, request, data)
	}
}

// expired tells that an approval was not given in time.
func (f *facts) expired(stage string, which []string, task placementv1beta1.StageTaskStatus, data map[string]string) {
	said := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
	if said == nil || said.Reason != placementv1beta1.ReasonRequestExpired || task.ExpirationTime == nil {
		return
	}
	f.add(fact{
		kind: fleetflowv1alpha1.RecordApprovalExpired, which: slices.Concat(which, limitOf(task)), at: task.ExpirationTime.Time, inOrder: true,
		stage: stage, message: said.Message, data: data,
	})
}

// voided tells that the hub agent has taken an approval back that does not count.
func (f *facts) voided(stage string, which []string, request placementv1beta1.ApprovalRequestObject, data map[string]string) {
	said := placementv1beta1.ConditionTypeApproved
	if request.GetApprovalRequestSpec().Votes != nil {
		said = placementv1beta1.ConditionTypeApprovalAccepted
	}
	voided := meta.FindStatusCondition(request.GetConditions(), said)
	if voided != nil && voided.Status == metav1.ConditionFalse && slices.Contains([]string{
		placementv1beta1.ReasonApproverNotAllowed, placementv1beta1.ReasonPlanChanged, placementv1beta1.ReasonPlanHashMissing,
		placementv1beta1.ReasonCommentMissing, placementv1beta1.ReasonVoteExpired,
	}, voided.Reason) {
		which = slices.Concat(which, []string{instant(voided)})
		if said == placementv1beta1.ConditionTypeApprovalAccepted {
			which = append(which, voided.Message) // votes of several users may be refused within a second
		}
		data["reason"] = voided.Reason
		f.add(fact{
			kind: fleetflowv1alpha1.RecordApprovalVoided, which: which, at: voided.LastTransitionTime.Time,
			stage: stage, message: voided.Message, data: data,
		})
	}
}

// limitOf tells one request for the approval of a task from the next, which a run makes once one has expired.
func limitOf(task placementv1beta1.StageTaskStatus) []string {
	if task.ExpirationTime == nil {
		return nil
	}
	return []string{strconv.FormatInt(task.ExpirationTime.Unix(), 10)}
}

// votes tells who has voted for a stage, and who against it. Only the hub agent writes what it has counted, and the API server has compared
// each voter with the sender.
func (f *facts) votes(stage string, which []string, request placementv1beta1.ApprovalRequestObject, data map[string]string) {
	status := request.GetApprovalRequestStatus()
	for i := range status.Votes {
		vote := &status.Votes[i]
		at := ptr.Deref(vote.At, metav1.Time{})
		planHash := planOf(request, vote.PlanHash)
		f.add(fact{
			kind: fleetflowv1alpha1.RecordApprovalVoted, which: slices.Concat(which, []string{vote.Username, strconv.FormatInt(at.Unix(), 10)}),
			at: at.Time, stage: stage, comment: vote.Comment, planHash: &planHash, data: data,
			by: &fleetflowv1alpha1.AuditActor{
				Username: bounded(vote.Username, maxName), Verified: true, Channel: string(vote.Channel), Groups: slices.Clone(vote.Groups),
			},
		})
	}
	against := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeApproved)
	if against == nil || against.Status != metav1.ConditionFalse || against.Reason != placementv1beta1.ReasonVoteRejected {
		return
	}
	f.add(fact{
		kind: fleetflowv1alpha1.RecordApprovalRejected, which: slices.Concat(which, []string{instant(against), against.Message}),
		at: against.LastTransitionTime.Time, stage: stage, message: against.Message, data: data,
		by: unknown(), // the vote itself is not kept; the message names who has cast it
	})
}

// withVoters adds to the data of an approval who has voted for it, where the stage takes votes.
func withVoters(data map[string]string, request placementv1beta1.ApprovalRequestObject) map[string]string {
	if request == nil || len(request.GetApprovalRequestStatus().Votes) == 0 {
		return data
	}
	status := request.GetApprovalRequestStatus()
	names := make([]string, 0, len(status.Votes))
	for i := range status.Votes {
		names = append(names, status.Votes[i].Username)
	}
	data = maps.Clone(data)
	data["voters"] = strings.Join(names, ", ")
	data["votes"] = status.Tally
	return data
}

// planOf returns the plan that an approval is for. One that names none, or its beginning only, is for the one that was shown.
func planOf(request placementv1beta1.ApprovalRequestObject, named string) string {
	if shown := request.GetAnnotations()[placementv1beta1.PlanHashAnnotation]; planhash.IsHash(shown) && strings.HasPrefix(shown, named) {
		return shown
	}
	return named
}

// approvedBy returns who has approved, what was said to it, for which plan and when, as the approval request tells it. It is the one
// place that knows who counts. Of a request that is gone it is not known any more.
func approvedBy(request placementv1beta1.ApprovalRequestObject) (by *fleetflowv1alpha1.AuditActor, comment, planHash string, at time.Time) {
	if request == nil || request.GetApprovalRequestStatus().Approval == nil {
		return unknown(), "", "", time.Time{}
	}
	given := request.GetApprovalRequestStatus().Approval
	return &fleetflowv1alpha1.AuditActor{
		Username: bounded(given.Username, maxName), Verified: given.Verified && given.Username != "", Channel: string(given.Channel),
	}, given.Comment, planOf(request, given.PlanHash), given.At.Time
}

// analyses are what the reasons of tasks of type Analysis are recorded as.
var analyses = map[string]fleetflowv1alpha1.AuditRecordType{
	placementv1beta1.ReasonStageTaskAnalysisSucceeded:    fleetflowv1alpha1.RecordAnalysisPassed,
	placementv1beta1.ReasonStageTaskAnalysisDryRun:       fleetflowv1alpha1.RecordAnalysisPassed,
	placementv1beta1.ReasonStageTaskAnalysisFailed:       fleetflowv1alpha1.RecordAnalysisFailed,
	placementv1beta1.ReasonStageTaskAnalysisInconclusive: fleetflowv1alpha1.RecordAnalysisInconclusive,
	placementv1beta1.ReasonStageTaskAnalysisError:        fleetflowv1alpha1.RecordAnalysisError,
	placementv1beta1.ReasonStageTaskAnalysisWaived:       fleetflowv1alpha1.RecordAnalysisWaived,
}

// analysis tells that a task measures, and what it has found.
func (f *facts) analysis(stage *placementv1beta1.StageUpdatingStatus, side stagetask.Side, task placementv1beta1.StageTaskStatus) {
	if task.Type != placementv1beta1.StageTaskTypeAnalysis {
		return
	}
	data := map[string]string{"analysisRun": task.AnalysisRunName, "position": side.Position()}
	if started := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeAnalysisStarted); isTrue(started) {
		f.add(fact{
			kind: fleetflowv1alpha1.RecordAnalysisStarted, which: []string{stage.StageName, side.Position(), instant(started)},
			at: started.LastTransitionTime.Time, stage: stage.StageName, data: data,
		})
	}
	judged := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded)
	if judged == nil || judged.Status == metav1.ConditionUnknown {
		return
	}
	kind, known := analyses[judged.Reason]
	if !known {
		return
	}
	f.add(fact{
		kind: kind, which: []string{stage.StageName, side.Position(), instant(judged), judged.Reason},
		at: judged.LastTransitionTime.Time, stage: stage.StageName, message: judged.Message,
		data: map[string]string{
			"analysisRun": task.AnalysisRunName, "position": side.Position(), "passes": strconv.FormatBool(judged.Status == metav1.ConditionTrue),
		},
	})
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// instant tells a condition from the same one at another time.
func instant(c *metav1.Condition) string {
	return strconv.FormatInt(c.LastTransitionTime.Unix(), 10)
}

// held tells that a hold, a window or another brake closes clusters of the run, and that it does no more.
func (f *facts) held() {
	held := meta.FindStatusCondition(f.status().Conditions, fleetflowv1alpha1.ConditionTypeHeld)
	if held == nil || held.Status == metav1.ConditionUnknown {
		return
	}
	found := fact{
		kind: fleetflowv1alpha1.RecordRunHeld, which: []string{instant(held)}, at: held.LastTransitionTime.Time, message: held.Message,
		data: map[string]string{"reason": held.Reason},
	}
	if held.Status == metav1.ConditionFalse {
		found.kind = fleetflowv1alpha1.RecordRunReleased
	}
	f.add(found)
}

// moved tells that the run has stopped, moves on again or is stuck. The condition may have been False for another reason before, and then
// keeps the time of that: what was recorded last was before.
func (f *facts) moved() {
	progressing := meta.FindStatusCondition(f.status().Conditions, placementv1beta1.ConditionTypeProgressing)
	if progressing == nil {
		return
	}
	found := fact{at: progressing.LastTransitionTime.Time, inOrder: true, message: progressing.Message}
	stop := f.openStop()
	switch {
	case progressing.Reason == placementv1beta1.ReasonUpdateRunStopped:
		// One that was recorded, and that nothing has ended since, is the same. That it stood still before it was resumed is old.
		if stop == "" && progressing.ObservedGeneration <= f.resumed() {
			return
		}
		stop = cmp.Or(stop, strconv.FormatInt(progressing.ObservedGeneration, 10))
		found.kind = fleetflowv1alpha1.RecordRunStopped
	case progressing.Reason == placementv1beta1.ReasonUpdateRunStuck:
		stuck := found
		stuck.kind = fleetflowv1alpha1.RecordRunStuck
		stuck.which = []string{instant(progressing)}
		f.add(stuck)
		fallthrough
	case progressing.Reason != placementv1beta1.ReasonUpdateRunStopping:
		if stop == "" || f.Run.GetUpdateRunSpec().State == placementv1beta1.StateStop || rules.IsRunOver(f.Run) {
			return
		}
		found.kind = fleetflowv1alpha1.RecordRunResumed
		found.message = ""
	default:
		return
	}
	wanted := placementv1beta1.StateStop
	if found.kind == fleetflowv1alpha1.RecordRunResumed {
		wanted = f.Run.GetUpdateRunSpec().State
	}
	found.by, _ = changerOf(f.Run, rules.WantedState(wanted))
	if found.by == nil && found.kind == fleetflowv1alpha1.RecordRunStopped {
		found.by = unknown() // the agent stops it for users, too, who cancel its workflow
	}
	found.which = []string{stop}
	found.data = map[string]string{generationKey: stop}
	if found.kind == fleetflowv1alpha1.RecordRunResumed {
		found.data[resumedKey] = strconv.FormatInt(progressing.ObservedGeneration, 10)
	}
	f.add(found)
}

// openStop returns which stop of the run was recorded and not ended since; empty if none was.
func (f *facts) openStop() string {
	for i := len(f.records) - 1; i >= 0; i-- {
		switch spec := &f.records[i].Spec; spec.Type {
		case fleetflowv1alpha1.RecordRunResumed:
			return ""
		case fleetflowv1alpha1.RecordRunStopped:
			return string(spec.Data[generationKey])
		}
	}
	return ""
}

// resumed returns with which generation the run was resumed last, as far as that is recorded.
func (f *facts) resumed() (generation int64) {
	for i := range f.records {
		if told, err := strconv.ParseInt(string(f.records[i].Spec.Data[resumedKey]), 10, 64); err == nil {
			generation = max(generation, told)
		}
	}
	return generation
}

// resumedKey has, in the data of a record, the generation with which a run goes on again.
const resumedKey = "resumedGeneration"

// generationKey has, in the data of a record, the generation of the object; of a run that has stopped, it tells one stop from another.
const generationKey = "generation"

// ended tells how the run has ended.
func (f *facts) ended() {
	succeeded := meta.FindStatusCondition(f.status().Conditions, placementv1beta1.ConditionTypeSucceeded)
	if succeeded == nil || succeeded.Status == metav1.ConditionUnknown {
		return
	}
	kind := fleetflowv1alpha1.RecordRunSucceeded
	if succeeded.Status == metav1.ConditionFalse {
		kind = fleetflowv1alpha1.RecordRunFailed
	}
	var stages []*placementv1beta1.StageUpdatingStatus
	for i := range f.status().StagesStatus {
		stages = append(stages, &f.status().StagesStatus[i])
	}
	f.add(fact{kind: kind, at: succeeded.LastTransitionTime.Time, message: succeeded.Message, data: countsOf(stages...)})
}

// deleted tells that the run is deleted: after its end, or before it.
func (f *facts) deleted() {
	if !rules.IsDeleting(f.Run) {
		return
	}
	kind := fleetflowv1alpha1.RecordRunDeleted
	if !rules.IsRunOver(f.Run) {
		kind = fleetflowv1alpha1.RecordRunAbandoned
	}
	why := f.Run.GetAnnotations()[placementv1beta1.ReasonAnnotation]
	if f.Run.GetUpdateRunSpec().RollbackOf != "" {
		why = "" // the annotation says why the run was created
	}
	f.add(fact{kind: kind, at: f.Run.GetDeletionTimestamp().Time, by: unknown(), comment: why})
}
