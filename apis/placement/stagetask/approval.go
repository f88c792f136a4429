package stagetask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// approval waits until the user approves: the run makes an approval request, and reads from it.
type approval struct{}

// Validate implements Type.
func (approval) Validate(_ Side, config placementv1beta1.StageTask) string {
	if config.WaitTime != nil && config.WaitTime.Duration > 0 {
		return "an Approval has no waitTime"
	}
	return ""
}

// Freeze implements Type.
func (approval) Freeze(names Names, stage string, side Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{
		Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: names.ApprovalRequest(stage, side),
	}
}

// Names makes the names of what a run needs for its tasks.
type Names struct {
	// Namespace is that of a StagedUpdateRun.
	Namespace  string
	Run        string
	Vocabulary placementv1beta1.Vocabulary
}

// NamesOf makes them for a run that has begun.
func NamesOf(run placementv1beta1.UpdateRunObject) Names {
	return Names{Namespace: run.GetNamespace(), Run: run.GetName(), Vocabulary: placementv1beta1.VocabularyOf(run)}
}

// ApprovalRequest returns the name of the request to approve what comes before or after a stage.
func (n Names) ApprovalRequest(stage string, side Side) string {
	if side == Before {
		return placementv1beta1.BeforeStageApprovalName(n.Run, stage)
	}
	return placementv1beta1.AfterStageApprovalName(n.Vocabulary.Words(), n.Run, stage)
}

// ApprovalRequestName returns the name of the approval request of a stage of a run. The run has recorded it when it began; the
// rule counts only if it has not.
func ApprovalRequestName(run placementv1beta1.UpdateRunObject, stage string, side Side) string {
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		if stages[i].StageName != stage {
			continue
		}
		for _, status := range *statusesOf(&stages[i], side) {
			if status.Type == placementv1beta1.StageTaskTypeApproval && status.ApprovalRequestName != "" {
				return status.ApprovalRequestName
			}
		}
	}
	return NamesOf(run).ApprovalRequest(stage, side)
}

// Describe implements Type.
func (approval) Describe(task Task) State {
	state := State{Title: "approval", Subject: task.Status.ApprovalRequestName, RunPhase: "WaitingApproval", Approvable: true}
	if created := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated); created != nil {
		state.Begun = created.LastTransitionTime.Time
	}
	state.readDone(task.Status, placementv1beta1.ConditionTypeApprovalRequestApproved)
	if state.Done() {
		return state
	}
	refused := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
	if refused != nil && refused.Status == metav1.ConditionFalse {
		state.Message = refused.Message
		state.Failed = refused.Reason == placementv1beta1.ReasonRequestExpired
	}
	if expires := task.Status.ExpirationTime; expires != nil && !state.Failed {
		state.Expires = expires.Time
	}
	return state
}

// Check implements Type: it makes the request, and accepts an approval that it finds on it.
func (approval) Check(ctx context.Context, check Check) (Outcome, error) {
	c := approvalCheck{Check: check}
	reasonCreated, reasonApproved := c.reasons()
	created := metav1.Condition{
		Type: placementv1beta1.ConditionTypeApprovalRequestCreated, Status: metav1.ConditionTrue,
		Reason: reasonCreated, Message: "ApprovalRequest object is created",
	}
	if c.isRecorded() && !c.Anew {
		// Accepted once, it cannot be taken back, nor by deleting the request.
		return Outcome{Conditions: []metav1.Condition{created}}, nil
	}
	c.isAsked = c.asksAgain()
	request, ended, err := c.ask(ctx)
	if ended != nil {
		return *ended, err
	}
	c.Config = WithVotesOf(c.Config, request)
	expires := c.expiresAt(request)
	outcome, err := c.checkRequest(ctx, request, expires, created, reasonApproved)
	if err == nil && !outcome.RunEnded && c.isRecorded() && hasOtherEnd(request, expires) {
		c.isAsked = true
		if request, ended, err = c.ask(ctx); ended != nil {
			return *ended, err
		}
	}
	if !IsAccepted(request) {
		outcome.Expires = expires
		outcome.CheckAgain = earlierOf(outcome.CheckAgain, expires)
	}
	return outcome, err
}

// ask makes sure of the request. With an error, without a request or with one that is refused, it returns with what the check ends.
func (c approvalCheck) ask(ctx context.Context) (request placementv1beta1.ApprovalRequestObject, ended *Outcome, err error) {
	request, refused, err := c.ensureRequest(ctx)
	if err != nil || refused != "" || request == nil {
		return nil, &Outcome{Refused: refused, RunEnded: request == nil && refused == ""}, err
	}
	return request, nil, nil
}

// reasons returns those of the conditions that a request is there and is approved.
func (c approvalCheck) reasons() (created, approved string) {
	if c.Side == Before {
		return placementv1beta1.ReasonStageTaskApprovalRequestCreated, placementv1beta1.ReasonStageTaskApprovalRequestApproved
	}
	words := placementv1beta1.VocabularyOf(c.Run).Words()
	return words.RequestCreated, words.RequestApproved
}

// hasOtherEnd reports whether a request that is not accepted can be approved until another instant than the run records now. That instant of a
// request is for good, and users see it: it takes another request.
func hasOtherEnd(request placementv1beta1.ApprovalRequestObject, expires time.Time) bool {
	return !IsAccepted(request) && !timeOrNil(expires).Equal(request.GetApprovalRequestSpec().ExpirationTime)
}

// checkRequest looks whether a request that can be approved until an instant has been, in time.
func (c approvalCheck) checkRequest(ctx context.Context, request placementv1beta1.ApprovalRequestObject, expires time.Time, created metav1.Condition,
	reasonApproved string) (Outcome, error) {
	switch {
	case !expires.IsZero() && !c.Now.Before(expires) && !IsAccepted(request):
		return c.expire(ctx, request, expires, created)
	case VoteRulesOf(c.Config) != nil:
		return c.checkVotes(ctx, request, created, reasonApproved)
	}
	return c.checkApproval(ctx, request, created, reasonApproved)
}

// checkApproval looks for the approval of one user.
func (c approvalCheck) checkApproval(ctx context.Context, request placementv1beta1.ApprovalRequestObject, created metav1.Condition,
	reasonApproved string) (Outcome, error) {
	if !isApproved(request) {
		return c.waitFor(ctx, request, created)
	}
	refusal, gone, err := c.refuseApproval(ctx, request)
	if err != nil || gone {
		return Outcome{RunEnded: gone}, err
	}
	if refusal.Why != "" {
		return Outcome{Conditions: []metav1.Condition{created, notApproved(refusal.Reason, refusal.Why)}}, c.voidApproval(ctx, request, refusal)
	}
	if err := c.acceptApproval(ctx, request); err != nil {
		return Outcome{}, err
	}
	return Outcome{Conditions: []metav1.Condition{created, approvedBy(request, reasonApproved)}}, nil
}

// approvedBy returns what a task records of a request that is approved.
func approvedBy(request placementv1beta1.ApprovalRequestObject, reason string) metav1.Condition {
	message := "ApprovalRequest object is approved"
	status := request.GetApprovalRequestStatus()
	if by := status.Approval; by != nil {
		how := by.How()
		if len(status.Votes) > 1 {
			how = fmt.Sprintf("by %s (%s votes)", VotersOf(status.Votes), status.Tally)
		}
		message += fmt.Sprintf(" %s at %s", how, by.At.UTC().Format(time.RFC3339))
	}
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeApprovalRequestApproved, Status: metav1.ConditionTrue, Reason: reason, Message: message,
	}
}

// waitFor returns what a task records while its request has no approval, and takes back what is left of one that the request had.
func (c approvalCheck) waitFor(ctx context.Context, request placementv1beta1.ApprovalRequestObject, created metav1.Condition) (Outcome, error) {
	if err := c.forgetApproval(ctx, request); err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Conditions: []metav1.Condition{created}}
	if c.isAsked {
		outcome.Conditions = append(outcome.Conditions, notApproved(placementv1beta1.ReasonApprovalAskedAgain, "the approval is asked for again"))
	}
	if c.isRecorded() {
		outcome.Conditions = append(outcome.Conditions, notApproved(placementv1beta1.ReasonPlanChanged,
			"the clusters were asked once more, and no approval is there any more: look at the plan and approve again"))
	}
	return outcome, c.showPlan(ctx, request)
}

// notApproved returns what a task records of an approval that does not count.
func notApproved(reason, why string) metav1.Condition {
	return metav1.Condition{
		Type: placementv1beta1.ConditionTypeApprovalRequestApproved, Status: metav1.ConditionFalse, Reason: reason, Message: why,
	}
}

// isRecorded reports whether the run has recorded the approval. It counts for good then, unless it is for what clusters have said and they
// were asked once more: the plan that it names is compared again.
func (c approvalCheck) isRecorded() bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
}

func isApproved(request placementv1beta1.ApprovalRequestObject) bool {
	return meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApproved) || IsAccepted(request)
}

// IsAccepted reports whether the hub has taken up an approval. It has then written down who gave it: the condition alone may be
// another writer's.
func IsAccepted(request placementv1beta1.ApprovalRequestObject) bool {
	return meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApprovalAccepted) &&
		request.GetApprovalRequestStatus().Approval != nil
}

// approvalCheck is one check of an approval.
type approvalCheck struct {
	Check
	// isAsked says that the approval is asked for again, by another request.
	isAsked bool
}

// ensureRequest returns the approval request of this run for the stage, creating it when it is missing; nil
// when the run has ended meanwhile. A leftover of an earlier run of the same name is replaced: its approval
// was not meant for this run.
func (c approvalCheck) ensureRequest(ctx context.Context) (request placementv1beta1.ApprovalRequestObject, refused string, err error) {
	name := c.Status.ApprovalRequestName
	scope := placementv1beta1.ScopeOf(c.Run)
	request = scope.NewApprovalRequest(name)
	err = c.Hub.Get(ctx, scope.Key(name), request)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, "", fmt.Errorf("reading approval request %s: %w", name, err)
	case c.isReplaced(request):
		if err = c.Hub.Delete(ctx, request); err != nil {
			return nil, "", fmt.Errorf("asking again for what approval request %s was for: %w", name, err)
		}
	case c.hasOtherRules(request) && c.refuseForeign(request) == "":
		// The votes of another task would count for this one, or one condition for many votes.
		if err = c.Hub.Delete(ctx, request); err != nil {
			return nil, "", fmt.Errorf("replacing approval request %s, which takes other votes: %w", name, err)
		}
	case c.isOwn(request):
		return request, c.refuseForeign(request), nil
	case c.isInherited(request):
		return request, "", c.signRequest(ctx, request)
	default:
		if refused, err = c.removeLeftover(ctx, request); err != nil || refused != "" {
			return nil, refused, err
		}
	}
	if err = c.supersedeEarlier(ctx); err != nil {
		return nil, "", err
	}
	request, err = c.createRequest(ctx)
	return request, "", err
}

// isOwn reports whether this run has made a request. One that is not younger than the run, and that the run does not know of, is
// not, whatever it says: a user who may annotate requests could give the approval of an earlier run to this one. Times are
// kept to the second, so a request of the same second is made again.
func (c approvalCheck) isOwn(request placementv1beta1.ApprovalRequestObject) bool {
	made := request.GetCreationTimestamp()
	begun := c.Run.GetCreationTimestamp()
	return request.GetDeletionTimestamp().IsZero() &&
		request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation] == string(c.Run.GetUID()) &&
		(made.IsZero() || made.After(begun.Time) || meta.IsStatusConditionTrue(c.Status.Conditions,
			placementv1beta1.ConditionTypeApprovalRequestCreated))
}

// isInherited reports whether a request that does not name this run by its UID is its own all the same: the run says that it has made
// its request. KubeFleet made it then, or the hub was restored from a backup.
func (c approvalCheck) isInherited(request placementv1beta1.ApprovalRequestObject) bool {
	return request.GetDeletionTimestamp().IsZero() && c.refuseForeign(request) == "" &&
		meta.IsStatusConditionTrue(c.Status.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated)
}

// signRequest notes on a request for which run it is.
func (c approvalCheck) signRequest(ctx context.Context, request placementv1beta1.ApprovalRequestObject) error {
	if err := c.Hub.Annotate(ctx, request, placementv1beta1.ApprovalRunUIDAnnotation, string(c.Run.GetUID())); err != nil {
		return fmt.Errorf("adopting approval request %s: %w", request.GetName(), err)
	}
	return nil
}

// removeLeftover deletes a request that was not made by this run, unless another run still needs it: the
// request that run `web` makes before a stage `x` has the name of the one that run `web-before` makes after it.
func (c approvalCheck) removeLeftover(ctx context.Context, request placementv1beta1.ApprovalRequestObject) (refused string, err error) {
	if owner := request.GetApprovalRequestSpec().TargetUpdateRun; owner != c.Run.GetName() {
		uid := types.UID(request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation])
		active, err := c.Hub.RunIsActive(ctx, placementv1beta1.ScopeOf(c.Run).Key(owner), uid)
		if err != nil {
			return "", err
		}
		if active {
			return c.refuseForeign(request), nil
		}
	}
	if err := c.Hub.Delete(ctx, request); err != nil {
		return "", fmt.Errorf("replacing approval request %s of an earlier run: %w", request.GetName(), err)
	}
	return "", nil
}

// refuseForeign returns what is wrong with a request that is not about this stage of this run; empty if it is.
func (c approvalCheck) refuseForeign(request placementv1beta1.ApprovalRequestObject) string {
	spec := request.GetApprovalRequestSpec()
	run := c.Run.GetName()
	stage := c.Stage.StageName
	if spec.TargetUpdateRun == run && spec.TargetStage == stage {
		return ""
	}
	mend := "delete it and create the run again"
	if spec.TargetUpdateRun != run {
		mend = "create the run again under another name"
	}
	return fmt.Sprintf("the approval request `%s` is for stage `%s` of run `%s`, want stage `%s` of run `%s`; %s",
		request.GetName(), spec.TargetStage, spec.TargetUpdateRun, stage, run, mend)
}

// supersedeEarlier takes the label of the latest request from the one before the stage: one request of a
// stage has it at a time.
func (c approvalCheck) supersedeEarlier(ctx context.Context) error {
	if c.Side == Before || len(c.Stage.BeforeStageTaskStatus) == 0 {
		return nil
	}
	earlier := placementv1beta1.ScopeOf(c.Run).NewApprovalRequest(ApprovalRequestName(c.Run, c.Stage.StageName, Before))
	err := c.Hub.Label(ctx, earlier, placementv1beta1.IsLatestUpdateRunApprovalLabel, "false")
	if err != nil {
		return fmt.Errorf("marking approval request %s as not the latest: %w", earlier.GetName(), err)
	}
	return nil
}

// createRequest makes the request. A controller that clears up after the run may have looked for requests
// before: so the run is read again, and the request of one that has ended is removed.
func (c approvalCheck) createRequest(ctx context.Context) (placementv1beta1.ApprovalRequestObject, error) {
	request := c.newRequest()
	if err := c.Hub.Create(ctx, request); err != nil {
		return nil, fmt.Errorf("creating approval request %s: %w", request.GetName(), err)
	}
	active, err := c.Hub.RunIsActive(ctx, placementv1beta1.ScopeOf(c.Run).Key(c.Run.GetName()), c.Run.GetUID())
	if err != nil {
		return nil, err
	}
	if !active {
		if err := c.Hub.Delete(ctx, request); err != nil {
			return nil, fmt.Errorf("removing approval request %s of a run that has ended: %w", request.GetName(), err)
		}
		return nil, nil
	}
	note := fmt.Sprintf("Stage %s waits for an approval: approve %s with kubectl, or send approve to workflow updaterun/%s",
		c.Stage.StageName, request.GetName(), c.Run.GetName())
	if rules := request.GetApprovalRequestSpec().Votes; rules != nil {
		note = fmt.Sprintf("Stage %s waits for %s: vote for %s with kubectl fleet approve", c.Stage.StageName,
			strings.Replace(VotesMissing(rules, nil), " more", "", 1), request.GetName())
	}
	c.Hub.Report(placementv1beta1.ConditionTypeApprovalRequestCreated, note)
	return request, nil
}

func (c approvalCheck) newRequest() placementv1beta1.ApprovalRequestObject {
	run := c.Run.GetName()
	stage := c.Stage.StageName
	request := placementv1beta1.ScopeOf(c.Run).NewApprovalRequest(c.Status.ApprovalRequestName)
	request.SetLabels(map[string]string{
		placementv1beta1.TargetUpdateRunLabel:           run,
		placementv1beta1.TargetUpdateRunLowercaseLabel:  run,
		placementv1beta1.TargetUpdatingStageLabel:       stage,
		placementv1beta1.TaskTypeLabel:                  string(c.Side),
		placementv1beta1.IsLatestUpdateRunApprovalLabel: placementv1beta1.LabelValueTrue,
	})
	annotations := map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: string(c.Run.GetUID())}
	if hash := planhash.Effective(c.Run, stage); hash != "" {
		annotations[placementv1beta1.PlanHashAnnotation] = hash
	}
	request.SetAnnotations(annotations)
	*request.GetApprovalRequestSpec() = placementv1beta1.ApprovalRequestSpec{
		TargetUpdateRun: run, TargetStage: stage, Votes: VoteRulesOf(c.Config), ExpirationTime: timeOrNil(c.expiresAt(nil)),
	}
	return request
}

// acceptApproval confirms an approval, after which it cannot be taken back, and records who gave it and how.
func (c approvalCheck) acceptApproval(ctx context.Context, request placementv1beta1.ApprovalRequestObject) error {
	status := request.GetApprovalRequestStatus()
	if IsAccepted(request) {
		return nil
	}
	now := metav1.NewTime(c.Now)
	if status.Approval == nil {
		status.Approval = approvalByCondition(request)
	}
	if created, at := request.GetCreationTimestamp(), status.Approval.At; at.Before(&created) || now.Before(&at) {
		status.Approval.At = now // the author of the condition chose its time: not one that cannot be
	}
	SetRequestCondition(request, placementv1beta1.ConditionTypeApprovalAccepted, placementv1beta1.ReasonApprovalRequestApprovalAccepted,
		"The approval request has been approved and cannot be reverted", c.Now)
	if err := c.Hub.UpdateStatus(ctx, request); err != nil {
		return fmt.Errorf("accepting approval request %s: %w", request.GetName(), err)
	}
	record := request.GetApprovalRequestStatus().Approval
	note := fmt.Sprintf("Stage %s of run %s was approved %s", c.Stage.StageName, c.Run.GetName(), record.How())
	c.Hub.Report(placementv1beta1.ConditionTypeApproved, note)
	c.Hub.ReportOn(request, placementv1beta1.ConditionTypeApproved, "Approve", note)
	return nil
}

// showPlan keeps the hash of the plan as it is now on a request that waits.
func (c approvalCheck) showPlan(ctx context.Context, request placementv1beta1.ApprovalRequestObject) error {
	hash := planhash.Effective(c.Run, c.Stage.StageName)
	if hash == request.GetAnnotations()[placementv1beta1.PlanHashAnnotation] {
		return nil
	}
	if err := c.Hub.Annotate(ctx, request, placementv1beta1.PlanHashAnnotation, hash); err != nil {
		return fmt.Errorf("noting the plan on approval request %s: %w", request.GetName(), err)
	}
	return nil
}

// Refusal is why an approval does not count; an empty one lets it count.
type Refusal struct{ Reason, Why string }

// refuseApproval returns why the approval of a request does not count for its task, unless it was taken up before. The plan is compared
// with the run as it is once the approval is there, so that what a user has changed before that is seen. Gone says that the run is gone.
func (c approvalCheck) refuseApproval(ctx context.Context,
	request placementv1beta1.ApprovalRequestObject) (refusal Refusal, gone bool, err error) {
	record := request.GetApprovalRequestStatus().Approval
	if IsAccepted(request) && !c.isRecorded() {
		return Refusal{}, false, nil
	}
	if why := RefuseApprover(c.Run, c.Config, record); why != "" {
		return Refusal{placementv1beta1.ReasonApproverNotAllowed, why}, false, nil
	}
	run := c.Run
	if record != nil && record.PlanHash != "" {
		run, err = c.readRun(ctx)
		if err != nil || run == nil {
			return Refusal{}, err == nil, err
		}
	}
	return RefusePlan(run, c.Stage.StageName, c.Config, record), false, nil
}

// readRun reads the run as it is now; nil if it is gone.
func (c approvalCheck) readRun(ctx context.Context) (placementv1beta1.UpdateRunObject, error) {
	scope := placementv1beta1.ScopeOf(c.Run)
	run := scope.NewUpdateRun(c.Run.GetName())
	err := c.Hub.Get(ctx, scope.Key(c.Run.GetName()), run)
	if apierrors.IsNotFound(err) || err == nil && run.GetUID() != c.Run.GetUID() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", c.Run.GetName(), err)
	}
	c.showFound(run)
	return run, nil
}

// showFound has a run that was read meanwhile show what the tasks before this one have found just now: it is not recorded yet.
func (c approvalCheck) showFound(run placementv1beta1.UpdateRunObject) {
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		if stages[i].StageName == c.Stage.StageName {
			stages[i].BeforeStageTaskStatus = c.Stage.BeforeStageTaskStatus
		}
	}
}

// RefusePlan returns why an approval does not count for the plan that a run has now.
func RefusePlan(run placementv1beta1.UpdateRunObject, stage string, task placementv1beta1.StageTask,
	record *placementv1beta1.ApprovalRecord) Refusal {
	now := planhash.Effective(run, stage)
	named := ""
	who := "An approver"
	if record != nil {
		named = record.PlanHash
		who = cmp.Or(record.Username, who)
	}
	switch {
	case named == "" && (task.Approval == nil || task.Approval.PlanHash != placementv1beta1.PlanHashRequired):
		return Refusal{}
	case named == "":
		return Refusal{placementv1beta1.ReasonPlanHashMissing, fmt.Sprintf("the approval names no plan, and the approvals of stage %s have to: "+
			"look at the plan and approve with kubectl fleet approve, or send its planHash along, which is %s now", stage, now)}
	case planhash.Matches(named, now):
		return Refusal{}
	case now == "":
		return Refusal{placementv1beta1.ReasonPlanChanged, fmt.Sprintf("%s approved plan %s, and the run has no hash of its plan, "+
			"as it has begun with an earlier hub agent: approve again without a hash", who, planhash.Short(named))}
	}
	because := ""
	if changes := planhash.Describe(planhash.Changes(run)); changes != "" {
		because = ": " + changes
	}
	return Refusal{placementv1beta1.ReasonPlanChanged, fmt.Sprintf("%s approved plan %s, the plan is %s now%s; look at it and approve again",
		who, planhash.Short(named), planhash.Short(now), because)}
}

// RefuseApprover returns why an approver may not approve a task of a run; empty if the approver may.
func RefuseApprover(run placementv1beta1.UpdateRunObject, task placementv1beta1.StageTask, record *placementv1beta1.ApprovalRecord) string {
	if task.Approval == nil || !slices.Contains(task.Approval.ExcludedApprovers, placementv1beta1.ExcludedApproverCreator) {
		return ""
	}
	creator := run.GetAnnotations()[placementv1beta1.CreatorAnnotation]
	switch {
	case creator == "":
		return fmt.Sprintf("it is not known who has created run %s, and its creator may not approve it: create the run again with kubectl fleet run", run.GetName())
	case record == nil || !record.Verified || !record.Channel.Vouched():
		return fmt.Sprintf("the creator of run %s may not approve it, and the hub's API server does not vouch for who did: approve with kubectl fleet approve", run.GetName())
	case record.Username == creator:
		return fmt.Sprintf("%s has created run %s and may not approve it: another user has to", creator, run.GetName())
	}
	return ""
}

// voidApproval takes back an approval that does not count, so that another can be given, and says why.
func (c approvalCheck) voidApproval(ctx context.Context, request placementv1beta1.ApprovalRequestObject, refusal Refusal) error {
	status := request.GetApprovalRequestStatus()
	status.Approval = nil
	kinds := []string{placementv1beta1.ConditionTypeApproved}
	if refusal.Reason != placementv1beta1.ReasonApproverNotAllowed {
		kinds = append(kinds, placementv1beta1.ConditionTypeApprovalAccepted)
	}
	for _, kind := range kinds {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: refusal.Reason, Message: refusal.Why,
			ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Now),
		})
	}
	if err := c.Hub.UpdateStatus(ctx, request); err != nil {
		return fmt.Errorf("taking back the approval of request %s: %w", request.GetName(), err)
	}
	c.Hub.Report(refusal.Reason, fmt.Sprintf("The approval of stage %s does not count: %s", c.Stage.StageName, refusal.Why))
	return c.showPlan(ctx, request)
}

// forgetApproval removes the record of an approval that was taken back. API servers that note no approvers leave it, and it
// must not pass for the record of the next approval.
func (c approvalCheck) forgetApproval(ctx context.Context, request placementv1beta1.ApprovalRequestObject) error {
	status := request.GetApprovalRequestStatus()
	if status.Approval == nil {
		return nil
	}
	status.Approval = nil
	if err := c.Hub.UpdateStatus(ctx, request); err != nil {
		return fmt.Errorf("removing the record of the approval of request %s that was taken back: %w", request.GetName(), err)
	}
	return nil
}

// approvalByCondition returns the record of an approval that came as a condition alone: it has no name, as the API server has not
// noted who set the condition.
func approvalByCondition(request placementv1beta1.ApprovalRequestObject) *placementv1beta1.ApprovalRecord {
	record := &placementv1beta1.ApprovalRecord{Channel: placementv1beta1.ApprovalChannelKubectl}
	if c := meta.FindStatusCondition(request.GetConditions(), placementv1beta1.ConditionTypeApproved); c != nil {
		record.Comment = c.Message
		record.At = c.LastTransitionTime
	}
	return record
}

// ApproverOf returns who approved a request, as far as the hub has recorded it; empty if it is not known.
func ApproverOf(request placementv1beta1.ApprovalRequestObject) string {
	if approval := request.GetApprovalRequestStatus().Approval; approval != nil {
		return approval.Username
	}
	return ""
}

// SetRequestCondition sets a condition of an approval request to True.
func SetRequestCondition(request placementv1beta1.ApprovalRequestObject, name, reason, message string, now time.Time) {
	meta.SetStatusCondition(&request.GetApprovalRequestStatus().Conditions, metav1.Condition{
		Type: name, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
}
