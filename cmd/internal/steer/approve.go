package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// approvedReason is the reason of the condition that approves.
	approvedReason = "ApprovedWithKubectlFleet"
	// approvedMessage is its message if the approver has nothing to say.
	approvedMessage = "Approved with kubectl fleet"
)

// Approve approves the stage that a run waits at.
func Approve() Verb {
	return Verb{
		Name: "approve", Takes: "RUN", Group: GroupRollout, Kinds: []hub.Kind{hub.KindRun}, Completes: waitsForApproval, Asks: true,
		Short: "Approve the stage that a run waits at",
		Long: `Approve the stage that a staged update run waits at, by setting the condition Approved on its approval request. The hub
records who approved, and when. Approving twice does no harm; an approval that the run has accepted cannot be taken
back. On a terminal the command asks first; a script is not asked. kubectl fleet reject is the other answer.

The approval counts for the plan that the run has when the command looks at it, or for that of --plan. If a user has a
cluster skipped or retried before the run takes the approval up, it does not count: look at the plan and approve again.

Where the strategy asks for several users (required, groups or requireGroups of the task), this is your vote: one a user, for one plan.
The hub counts it, and the stage is approved once the votes are complete.`,
		Example: `  # Approve what the run waits for
  kubectl fleet approve web-17 --comment "error rate is fine"

  # Only if that is stage canary, for a script
  kubectl fleet approve web-17 --stage canary

  # Only if the plan is the one that was looked at
  kubectl fleet approve web-17 --plan sha256:9f3c2a1b7d04

  # By the name of the approval request
  kubectl fleet approve careq/web-17-canary`,
		CheckArguments: exactlyOne("approve", "a run", "approve web-17"),
		New: func() *Request {
			a := &answer{}
			return &Request{Prepare: a.prepareApproval, Fields: []Field{
				{Name: "stage", Into: &a.stage, Hidden: true, Usage: "The stage to approve: an error if the run waits for another.",
					Complete: waitingStages},
				{Name: "plan", Into: &a.plan, Hidden: true, Usage: "The hash of the plan to approve, or its first 12 digits: an error if the run has another by now."},
				{Name: "comment", Short: "c", Into: &a.comment, Usage: "What to keep on record with the approval.", Label: "Comment",
					Hint: "It is kept on record with the approval.", Long: true},
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindRun},
			Links: func(target hub.Found) []Link {
				var links []Link
				for _, gate := range GatesOf(*target.Run) {
					if gate.Waits && isUnderWay(*target.Run) {
						links = append(links, Link{Label: "Approve stage " + gate.Stage, Query: url.Values{"stage": {gate.Stage}}})
					}
				}
				return links
			},
			Rights: func(target hub.Found) []Right {
				request := placementv1beta1.ScopeOf(target.Run.Object).NewApprovalRequest("")
				request.SetNamespace(target.Run.Namespace)
				return []Right{{Verb: "patch", Object: request, Subresource: "status"}}
			},
		},
	}
}

// answer is the answer to an approval request.
type answer struct {
	stage, comment, plan string
	// byPlan says that the user has named the plan.
	byPlan bool
}

// Gate is an approval that a run needs.
type Gate struct {
	Stage, Request string
	// Begun says that the stage has come to it, and Waits that a user can answer it now, since Since.
	Begun, Approved, Waits bool
	Since                  time.Time
	// Lacks says what an approval that was given, or votes, lack for the stage to be approved, and when the request for it expires; empty
	// if there is nothing to say.
	Lacks string
}

// GatesOf returns the approvals that a run needs, in their order.
func GatesOf(run hub.Run) []Gate {
	var all []Gate
	for _, stage := range updaterun.Read(run.Object).Stages {
		for _, task := range stage.Tasks() {
			if task.Approvable {
				all = append(all, Gate{Stage: stage.Name, Request: task.Subject, Begun: !task.Begun.IsZero(), Approved: task.Done(),
					Waits: task.Waiting(),
					Since: task.WaitsSince, Lacks: task.Detail()})
			}
		}
	}
	return all
}

// chooseGate returns the gate that the run waits at. With a stage, one that is approved already is as good.
func chooseGate(run hub.Run, stage string) (Gate, error) {
	var waiting, ahead []string
	var passed *Gate
	for _, g := range GatesOf(run) {
		switch {
		case g.Begun && !g.Approved && (stage == "" || stage == g.Stage):
			return g, nil
		case g.Begun && !g.Approved:
			waiting = append(waiting, g.Stage)
		case g.Approved && g.Stage == stage:
			passed = &g
		case !g.Begun:
			ahead = append(ahead, g.Stage)
		}
	}
	switch {
	case passed != nil:
		return *passed, nil
	case len(waiting) > 0:
		return Gate{}, fmt.Errorf("%s does not wait for an approval of stage %q but of %s", run.Ref, stage, strings.Join(waiting, ", "))
	case len(ahead) > 0:
		return Gate{}, fmt.Errorf("%s does not wait for an approval yet: it will for stage %s; kubectl fleet status %s shows where it is",
			run.Ref, strings.Join(ahead, ", "), run.Flags())
	default:
		return Gate{}, fmt.Errorf("%s does not wait for an approval, and will not; kubectl fleet status %s shows where it is", run.Ref,
			run.Flags())
	}
}

// findGate returns the gate that is answered, and its approval request.
func (a *answer) findGate(ctx context.Context, call *Call, run hub.Run) (Gate, placementv1beta1.ApprovalRequestObject, error) {
	if err := checkUnderWay(run); err != nil {
		return Gate{}, nil, err
	}
	g, err := chooseGate(run, a.stage)
	if err != nil {
		return g, nil, err
	}
	object, err := readRequest(ctx, call.Client, run, g.Request)
	return g, object, err
}

func (a *answer) prepareApproval(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	run := *target.Run
	g, object, err := a.findGate(ctx, call, run)
	if err != nil {
		return Deed{}, err
	}
	if expires := object.GetApprovalRequestSpec().ExpirationTime; expires != nil && !stagetask.IsAccepted(object) && !call.Clock.Now().Before(expires.Time) {
		return Deed{}, fmt.Errorf("stage %s of %s was not approved in time, its request has expired at %s: kubectl fleet resume %s has the run ask again, once it has stopped",
			g.Stage, run.Ref, expires.UTC().Format(time.RFC3339), run.Flags())
	}
	if err := a.holdToPlan(run, g.Stage); err != nil {
		return Deed{}, err
	}
	if object.GetApprovalRequestSpec().Votes != nil {
		return a.prepareVote(run, g, object, call)
	}
	deed := Deed{Do: func(ctx context.Context) (Result, error) {
		accepted, err := a.writeApproval(ctx, call, object)
		if err != nil {
			return Result{}, fmt.Errorf("approving %q: %w", g.Request, err)
		}
		if accepted != nil {
			return resultSaying("stage %s of %s is approved already%s", g.Stage, run.Ref, approvedBy(*accepted)), nil
		}
		return resultSaying("stage %s of %s approved", g.Stage, run.Ref), nil
	}}
	if !isApproved(object) {
		deed.OnTerminal = true
		ofPlan := ""
		if a.plan != "" {
			ofPlan = " by plan " + planhash.Short(a.plan)
		}
		deed.Question = fmt.Sprintf("Approve stage %s of %s, which rolls out %s%s? What the run has accepted cannot be taken back.",
			g.Stage, run.Ref, run.Placement(), ofPlan)
	}
	return deed, nil
}

// holdToPlan has the approval count for the plan that the run has, which is to be the one that is named.
func (a *answer) holdToPlan(run hub.Run, stage string) error {
	now := planhash.Effective(run.Object, stage)
	a.byPlan = a.plan != ""
	if a.byPlan && !strings.HasPrefix(a.plan, planhash.Prefix) { // as people read and copy it
		a.plan = planhash.Prefix + a.plan
	}
	if a.byPlan && !planhash.Matches(a.plan, now) {
		return fmt.Errorf("the plan of %s is %q, not %q: look at it again, and approve that one; kubectl fleet plan %s shows it",
			run.Ref, now, a.plan, run.Flags())
	}
	a.plan = now
	return nil
}

// isApproved reports whether an approval request is approved.
func isApproved(object placementv1beta1.ApprovalRequestObject) bool {
	return meta.IsStatusConditionTrue(object.GetApprovalRequestStatus().Conditions, placementv1beta1.ConditionTypeApproved)
}

// readRequest reads an approval request of a run. One of an earlier run of its name does not count.
func readRequest(ctx context.Context, c client.Reader, run hub.Run, name string) (placementv1beta1.ApprovalRequestObject, error) {
	scope := placementv1beta1.ScopeOf(run.Object)
	object := scope.NewApprovalRequest(name)
	err := c.Get(ctx, scope.Key(name), object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("approval request %q of %s is gone: the hub will make it anew, try again in a moment", name, run.Ref)
	}
	if err != nil {
		return nil, fmt.Errorf("reading approval request %q: %w", name, err)
	}
	if uid := object.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation]; uid != "" && uid != string(run.Object.GetUID()) {
		return nil, fmt.Errorf("approval request %q is of an earlier %s: the hub will replace it, try again in a moment", name, run.Ref)
	}
	return object, nil
}

func approvedBy(request hub.Approval) string {
	if record := request.Status.Approval; record != nil {
		return fmt.Sprintf(", %s at %s", record.How(), record.At.UTC().Format("15:04:05Z"))
	}
	return ""
}

// recordOf returns the record of an approval, which the API server checks, or writes itself where it can; nil if it is not known
// who approves.
func (a *answer) recordOf(condition metav1.Condition, who authenticationv1.UserInfo) *placementv1beta1.ApprovalRecord {
	if who.Username == "" {
		return nil
	}
	return &placementv1beta1.ApprovalRecord{
		Username: who.Username, At: condition.LastTransitionTime, Channel: channelOf(who), Verified: true, Comment: condition.Message,
		PlanHash: a.plan,
	}
}

// writeApproval approves a request, or returns the request if it is approved already.
func (a *answer) writeApproval(ctx context.Context, call *Call,
	object placementv1beta1.ApprovalRequestObject) (approved *hub.Approval, err error) {
	who, err := askWhoIAm(ctx, call.Client)
	if err != nil {
		return nil, err
	}
	if who.Username == "" && a.plan != "" {
		const why = "the approval cannot name its plan, as the hub does not say who you are: "
		if a.byPlan {
			return nil, errors.New(why + "have an administrator let you create SelfSubjectReviews, or approve without naming a plan")
		}
		call.Warn(why + "it counts for whatever the plan is when the run takes it up")
	}
	condition := metav1.Condition{Status: metav1.ConditionTrue, Reason: approvedReason, Message: cmp.Or(a.comment, approvedMessage)}
	before, err := a.writeAnswer(ctx, call, object, condition, func(request hub.Approval, written metav1.Condition) {
		request.Status.Approval = a.recordOf(written, who)
	})
	if before == nil || err != nil {
		return nil, err
	}
	request := hub.ApprovalOf(before)
	return &request, nil
}

// writeAnswer answers a request with the condition Approved, to which record adds what belongs to it. It returns a request that is approved
// already, and leaves that as it is.
func (a *answer) writeAnswer(ctx context.Context, call *Call, object placementv1beta1.ApprovalRequestObject, answer metav1.Condition,
	record func(hub.Approval, metav1.Condition)) (approved placementv1beta1.ApprovalRequestObject, err error) {
	answer.Type = placementv1beta1.ConditionTypeApproved
	answer.LastTransitionTime = metav1.NewTime(call.Clock.Now())
	decide := func(before placementv1beta1.ApprovalRequestObject) (client.Patch, error) {
		if isApproved(before) {
			approved = before
			return nil, nil
		}
		if !call.Sends() {
			return nil, nil
		}
		object := before.DeepCopyObject().(placementv1beta1.ApprovalRequestObject)
		request := hub.ApprovalOf(object)
		answer.ObservedGeneration = object.GetGeneration()
		meta.SetStatusCondition(&request.Status.Conditions, answer)
		record(request, answer)
		// Conditions are a list, which is replaced as a whole: what another client has approved meanwhile must not get lost.
		// Only approvals move the version of a request.
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		data, err := patch.Data(object)
		if err != nil {
			return nil, fmt.Errorf("comparing: %w", err)
		}
		return client.RawPatch(patch.Type(), data), nil
	}
	write := func(object placementv1beta1.ApprovalRequestObject, patch client.Patch) error {
		return call.Writer().Status().Patch(ctx, object, patch)
	}
	return approved, changeObject(ctx, call.Writer(), object, decide, write)
}
