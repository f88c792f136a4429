package steer

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// rejectedMessage is the message of a rejection if the user has nothing to say.
const rejectedMessage = "Rejected with kubectl fleet"

// Reject refuses the approval that a run waits for, and stops the run.
func Reject() Verb {
	return Verb{
		Name: "reject", Takes: "RUN", Group: GroupRollout, Kinds: []hub.Kind{hub.KindRun}, Completes: waitsForApproval,
		Short: "Refuse the approval that a run waits for, and stop the run",
		Long: `Refuse the approval that a staged update run waits for: the run is stopped (spec.state Stop), and its approval request says
why (condition Approved is False). What the run has updated stays as it is; kubectl fleet rollback takes it back.

Where the strategy asks for several users, it takes back the votes that there are for the stage.

It can be reconsidered: kubectl fleet resume and then kubectl fleet approve have the run go on.`,
		Example: `  # The canaries fail
  kubectl fleet reject web-17 --comment "error rate doubled on canary"

  # Only if the run waits for stage canary, for a script
  kubectl fleet reject web-17 --stage canary`,
		CheckArguments: exactlyOne("reject", "a run", "reject web-17"),
		New: func() *Request {
			a := &answer{}
			return &Request{Prepare: a.prepareRejection, Fields: []Field{
				{Name: "stage", Into: &a.stage, Usage: "The stage to refuse: an error if the run waits for another.", Complete: waitingStages},
				{Name: "comment", Short: "c", Into: &a.comment, Usage: "Why, for those who look at the run."},
			}}
		},
	}
}

// prepareRejection stops a run and has its approval request say why. The run is stopped first: a request that says no to a run
// which goes on would be the worse half.
func (a *answer) prepareRejection(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	run := *target.Run
	g, object, err := a.findGate(ctx, call, run)
	if err != nil {
		return Deed{}, err
	}
	if g.Approved || isApproved(object) {
		return Deed{}, fmt.Errorf("stage %s of %s is approved already%s: kubectl fleet stop %s keeps it from going on", g.Stage, run.Ref,
			approvedBy(hub.ApprovalOf(object)), run.Flags())
	}
	return Deed{Do: func(ctx context.Context) (Result, error) {
		stop := func() error {
			if run.Spec.State == placementv1beta1.StateStop {
				return nil
			}
			return call.patchRun(ctx, run, fence.Add("/spec/state", placementv1beta1.StateStop))
		}
		if object.GetApprovalRequestSpec().Votes != nil {
			return a.rejectByVote(ctx, call, run, g, object, stop)
		}
		if err := stop(); err != nil {
			return Result{}, err
		}
		condition := metav1.Condition{Status: metav1.ConditionFalse, Reason: fleetview.ReasonRejected,
			Message: cmp.Or(a.comment, rejectedMessage)}
		// Where another client was quicker and has approved, the run is stopped in any case.
		if _, err := a.writeAnswer(ctx, call, object, condition, func(hub.Approval, metav1.Condition) {}); err != nil {
			return Result{}, fmt.Errorf("%s is stopped, but approval request %q does not say why: %w", run.Ref, g.Request, err)
		}
		return resultSaying("stage %s of %s rejected: the run stops; kubectl fleet rollback %s takes back what it has done", g.Stage, run.Ref,
			run.Flags()), nil
	}}, nil
}
