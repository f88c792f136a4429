package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// rejectedMessage is its message if the user has nothing to say.
	rejectedMessage = "Rejected with kubectl fleet"
)

// NewReject returns `kubectl fleet reject`.
func NewReject(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var stage, comment string
	cmd := steeringVerb(f, streams, hub.KindRun, &cobra.Command{
		Use:   "reject RUN",
		Short: "Refuse the approval that a run waits for, and stop the run",
		Long: `Refuse the approval that a staged update run waits for: the run is stopped (spec.state Stop), and its approval request says
why (condition Approved is False). What the run has updated stays as it is; kubectl fleet rollback takes it back.

It can be reconsidered: kubectl fleet resume and then kubectl fleet approve have the run go on.`,
		Example: `  # The canaries fail
  kubectl fleet reject web-17 --comment "error rate doubled on canary"

  # Only if the run waits for stage canary, for a script
  kubectl fleet reject web-17 --stage canary`,
		Args: exactlyOne("a run", "kubectl fleet reject web-17"),
	}, func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, _ []string) error {
		return s.reject(ctx, c, *found.Run, stage, comment)
	})
	cmd.Flags().StringVar(&stage, "stage", "", "The stage to refuse: an error if the run waits for another.")
	cmd.ValidArgsFunction = completeRuns(f, waitsForApproval)
	_ = cmd.RegisterFlagCompletionFunc("stage", completed(f, waitingStages)) // fails only for a flag that is not there
	cmd.Flags().StringVarP(&comment, "comment", "c", "", "Why, for those who look at the run.")
	return cmd
}

// reject stops a run and has its approval request say why. The run is stopped first: a request that says no to a run
// which goes on would be the worse half.
func (s *steering) reject(ctx context.Context, c client.WithWatch, run hub.Run, stage, comment string) error {
	if err := unfinished(run); err != nil {
		return err
	}
	g, err := choose(run, stage)
	if err != nil {
		return err
	}
	object, err := readRequest(ctx, c, run, g.request)
	if err != nil {
		return err
	}
	if g.approved || meta.IsStatusConditionTrue(hub.ApprovalOf(object).Status.Conditions, placementv1beta1.ConditionTypeApproved) {
		return fmt.Errorf("stage %s of %s is approved already%s: kubectl fleet stop %s keeps it from going on", g.stage, run.Ref,
			approvedBy(hub.ApprovalOf(object)), run.Flags())
	}
	if run.Spec.State != placementv1beta1.StateStop {
		if err := s.patchRun(ctx, c, run, fence.Add("/spec/state", placementv1beta1.StateStop)); err != nil {
			return err
		}
	}
	if err := s.writeRejection(ctx, c, object, comment); err != nil {
		return fmt.Errorf("%s is stopped, but approval request %q does not say why: %w", run.Ref, g.request, err)
	}
	s.Done(s.streams, "stage %s of %s rejected: the run stops; kubectl fleet rollback %s takes back what it has done", g.stage, run.Ref,
		run.Flags())
	return nil
}

func (s *steering) writeRejection(ctx context.Context, c client.WithWatch, object placementv1beta1.ApprovalRequestObject,
	comment string) error {
	decide := func(before placementv1beta1.ApprovalRequestObject) (client.Patch, error) {
		object = before.DeepCopyObject().(placementv1beta1.ApprovalRequestObject)
		conditions := &hub.ApprovalOf(object).Status.Conditions
		if !s.Sends() || meta.IsStatusConditionTrue(*conditions, placementv1beta1.ConditionTypeApproved) {
			return nil, nil // another client was quicker; the run is stopped in any case
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionFalse, Reason: fleetview.ReasonRejected,
			Message:            cmp.Or(comment, rejectedMessage),
			ObservedGeneration: object.GetGeneration(), LastTransitionTime: metav1.NewTime(s.factory.Clock.Now()),
		})
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		data, err := patch.Data(object)
		if err != nil {
			return nil, fmt.Errorf("comparing: %w", err)
		}
		return client.RawPatch(patch.Type(), data), nil
	}
	write := func(object placementv1beta1.ApprovalRequestObject, patch client.Patch) error {
		return s.writer(c).Status().Patch(ctx, object, patch)
	}
	return changeObject(ctx, c, object, decide, write)
}
