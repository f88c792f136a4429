package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// approvedReason is the reason of the condition that approves.
	approvedReason = "ApprovedWithKubectlFleet"
	// approvedMessage is its message if the approver has nothing to say.
	approvedMessage = "Approved with kubectl fleet"
)

// NewApprove returns `kubectl fleet approve`.
func NewApprove(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var stage, comment, name string
	s := &steering{factory: f, streams: streams}
	cmd := &cobra.Command{
		Use:   "approve RUN",
		Short: "Approve the stage that a run waits at",
		Long: `Approve the stage that a staged update run waits at, by setting the condition Approved on its approval request. The hub
records who approved, and when. Approving twice does no harm; an approval that the run has accepted cannot be taken
back. On a terminal the command asks first; a script is not asked. kubectl fleet reject is the other answer.`,
		Example: `  # Approve what the run waits for
  kubectl fleet approve web-17 --comment "error rate is fine"

  # Only if that is stage canary, for a script
  kubectl fleet approve web-17 --stage canary

  # By the name of the approval request
  kubectl fleet approve careq/web-17-canary`,
		Args:              approvalArgs(&name),
		ValidArgsFunction: completeRuns(f, waitsForApproval),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.approveNamed(cmd.Context(), args[0], name, stage, comment)
		},
	}
	s.AddFlags(cmd)
	cmd.Flags().StringVar(&stage, "stage", "", "The stage to approve: an error if the run waits for another.")
	_ = cmd.RegisterFlagCompletionFunc("stage", completed(f, waitingStages)) // fails only for a flag that is not there
	cmd.Flags().StringVarP(&comment, "comment", "c", "", "What to keep on record with the approval.")
	cmd.Flags().StringVar(&name, "name", "", "The approval request, for scripts that name it so.")
	asInKubeFleet(f, cmd, "name")
	waitsForNothing(cmd)
	return cmd
}

// approveNamed approves what an argument names: a run, or the approval request itself.
func (s *steering) approveNamed(ctx context.Context, arg, name, stage, comment string) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	if request, namespaced, is := requestOf(arg, name); is {
		if arg, stage, err = s.runAndStage(ctx, c, request, namespaced); err != nil {
			return err
		}
	}
	found, err := find(ctx, s.factory, c, arg, hub.KindRun)
	if err != nil {
		return err
	}
	return s.approve(ctx, c, *found.Run, stage, comment)
}

// gate is an approval that a run needs.
type gate struct {
	stage, request  string
	begun, approved bool
}

// gates are the approvals that a run needs, in their order.
func gates(run hub.Run) []gate {
	var all []gate
	for _, stage := range updaterun.Read(run.Object).Stages {
		for _, task := range stage.Tasks() {
			if task.Approvable {
				all = append(all, gate{stage: stage.Name, request: task.Subject, begun: !task.Begun.IsZero(), approved: task.Done()})
			}
		}
	}
	return all
}

// choose returns the gate that the run waits at. With a stage, one that is approved already is as good.
func choose(run hub.Run, stage string) (gate, error) {
	var waiting, ahead []string
	var passed *gate
	for _, g := range gates(run) {
		switch {
		case g.begun && !g.approved && (stage == "" || stage == g.stage):
			return g, nil
		case g.begun && !g.approved:
			waiting = append(waiting, g.stage)
		case g.approved && g.stage == stage:
			passed = &g
		case !g.begun:
			ahead = append(ahead, g.stage)
		}
	}
	switch {
	case passed != nil:
		return *passed, nil
	case len(waiting) > 0:
		return gate{}, fmt.Errorf("%s does not wait for an approval of stage %q but of %s", run.Ref, stage, strings.Join(waiting, ", "))
	case len(ahead) > 0:
		return gate{}, fmt.Errorf("%s does not wait for an approval yet: it will for stage %s; kubectl fleet status %s shows where it is",
			run.Ref, strings.Join(ahead, ", "), run.Flags())
	default:
		return gate{}, fmt.Errorf("%s does not wait for an approval, and will not; kubectl fleet status %s shows where it is", run.Ref,
			run.Flags())
	}
}

func (s *steering) approve(ctx context.Context, c client.WithWatch, run hub.Run, stage, comment string) error {
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
	if !meta.IsStatusConditionTrue(hub.ApprovalOf(object).Status.Conditions, placementv1beta1.ConditionTypeApproved) {
		question := fmt.Sprintf("Approve stage %s of %s, which rolls out %s? What the run has accepted cannot be taken back.", g.stage, run.Ref,
			run.Placement())
		if err := s.AskOnTerminal(s.streams, question); err != nil {
			return err
		}
	}
	accepted, err := s.writeApproval(ctx, c, object, comment)
	if err != nil {
		return fmt.Errorf("approving %q: %w", g.request, err)
	}
	if accepted != nil {
		s.Done(s.streams, "stage %s of %s is approved already%s", g.stage, run.Ref, approvedBy(*accepted))
		return nil
	}
	s.Done(s.streams, "stage %s of %s approved", g.stage, run.Ref)
	return nil
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

// askWhoIAm asks the API server for the user that it knows the sender as; without a name where the server does not tell.
func askWhoIAm(ctx context.Context, c client.Client) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	if apierrors.IsForbidden(err) || hub.Unserved(err) || apierrors.IsNotFound(err) {
		return authenticationv1.UserInfo{}, nil
	}
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("asking the hub who you are: %w", err)
	}
	return review.Status.UserInfo, nil
}

// recordOf is the record of an approval, which the API server checks, or writes itself where it can; nil if it is not known
// who approves.
func recordOf(condition metav1.Condition, who authenticationv1.UserInfo) *placementv1beta1.ApprovalRecord {
	if who.Username == "" {
		return nil
	}
	channel := placementv1beta1.ApprovalChannelKubectl
	if slices.Contains(who.Extra[placementv1beta1.ApprovalChannelExtra], string(placementv1beta1.ApprovalChannelDashboard)) {
		channel = placementv1beta1.ApprovalChannelDashboard
	}
	return &placementv1beta1.ApprovalRecord{
		Username: who.Username, At: condition.LastTransitionTime, Channel: channel, Verified: true, Comment: condition.Message,
	}
}

// writeApproval approves a request, or returns the request if it is approved already.
func (s *steering) writeApproval(ctx context.Context, c client.WithWatch, object placementv1beta1.ApprovalRequestObject,
	comment string) (approved *hub.Approval, err error) {
	who, err := askWhoIAm(ctx, c)
	if err != nil {
		return nil, err
	}
	decide := func(before placementv1beta1.ApprovalRequestObject) (client.Patch, error) {
		object = before.DeepCopyObject().(placementv1beta1.ApprovalRequestObject)
		request := hub.ApprovalOf(object)
		if meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved) {
			approved = &request
			return nil, nil
		}
		if !s.Sends() {
			return nil, nil
		}
		condition := metav1.Condition{
			Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: approvedReason,
			Message:            cmp.Or(comment, approvedMessage),
			ObservedGeneration: object.GetGeneration(), LastTransitionTime: metav1.NewTime(s.factory.Clock.Now()),
		}
		meta.SetStatusCondition(&request.Status.Conditions, condition)
		request.Status.Approval = recordOf(condition, who)
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
		return s.writer(c).Status().Patch(ctx, object, patch)
	}
	return approved, changeObject(ctx, c, object, decide, write)
}
