package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// fieldOwner is who the plugin writes as.
const fieldOwner = "kubectl-fleet"

// steering is what verbs that change something share.
type steering struct {
	cli.Consent
	factory *cli.Factory
	streams genericiooptions.IOStreams
	// reason is why, as the user says; empty if the user does not.
	reason string
}

// reasonFlag takes a reason that can be kept on record.
type reasonFlag struct{ reason *string }

func (f reasonFlag) String() string {
	if f.reason == nil {
		return ""
	}
	return *f.reason
}

func (f reasonFlag) Set(text string) (err error) {
	*f.reason, err = placementv1beta1.CheckReason(text)
	return err
}

func (f reasonFlag) Type() string { return "string" }

// addReason lets the user say why; on says where that is kept.
func (s *steering) addReason(cmd *cobra.Command, on string) {
	cmd.Flags().Var(reasonFlag{&s.reason}, "reason", fmt.Sprintf("Why, for the record: it is kept in the annotation %s of %s.",
		placementv1beta1.ReasonAnnotation, on))
}

// annotate keeps the reason on an object that is yet to be created.
func (s *steering) annotate(object client.Object) {
	if s.reason == "" {
		return
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.ReasonAnnotation] = s.reason
	object.SetAnnotations(annotations)
}

// keepReason keeps the reason on the very object that was looked at, before something is done to it: who reads the hub's audit log finds
// it there even if the object is deleted then.
func (s *steering) keepReason(ctx context.Context, c client.WithWatch, object client.Object) error {
	if s.reason == "" || !s.Sends() {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "annotations": map[string]string{placementv1beta1.ReasonAnnotation: s.reason},
	}})
	if err != nil {
		return fmt.Errorf("writing the reason: %w", err)
	}
	changed, is := object.DeepCopyObject().(client.Object)
	if !is {
		return nil
	}
	if err := s.writer(c).Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("keeping the reason on %s: %w", object.GetName(), err)
	}
	return nil
}

// writer returns the client for writes. A field that the hub does not know is an error, not dropped: a rollback, say,
// that loses what it rolls back would be a rollout.
func (s *steering) writer(c client.WithWatch) client.Client {
	return client.WithFieldOwner(client.WithFieldValidation(s.Consent.Client(c), metav1.FieldValidationStrict), fieldOwner)
}

// steeringVerb makes a command about one object of a kind: do changes it once it is found.
func steeringVerb(f *cli.Factory, streams genericiooptions.IOStreams, kind hub.Kind, cmd *cobra.Command,
	do func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found, args []string) error) *cobra.Command {
	return (&steering{factory: f, streams: streams}).about(kind, cmd, do)
}

// about makes a command about one object of a kind, which steers.
func (s *steering) about(kind hub.Kind, cmd *cobra.Command, do func(ctx context.Context, s *steering, c client.WithWatch, found hub.Found,
	args []string) error) *cobra.Command {
	cmd.ValidArgsFunction = completeRefs(s.factory, kind)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, found, err := s.findOne(cmd.Context(), args[0], kind)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s, c, found, args[1:])
	}
	s.AddFlags(cmd)
	return cmd
}

// connect checks what the user wants and returns a client of the hub.
func (s *steering) connect() (client.WithWatch, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.factory.Client()
}

// findOne checks what the user wants and returns a client of the hub, and the one object of some kinds that an argument names.
func (s *steering) findOne(ctx context.Context, arg string, kinds ...hub.Kind) (client.WithWatch, hub.Found, error) {
	c, err := s.connect()
	if err != nil {
		return nil, hub.Found{}, err
	}
	found, err := find(ctx, s.factory, c, arg, kinds...)
	return c, found, err
}

// patchRun changes the spec of a run, unless the spec has been changed in the meantime. The status of a run
// that is under way changes all the time, which is no reason to give up.
func (s *steering) patchRun(ctx context.Context, c client.WithWatch, run hub.Run, operation fence.Op) error {
	if !s.Sends() {
		return nil
	}
	decide := func(fresh placementv1beta1.UpdateRunObject) ([]fence.Op, error) {
		if fresh.GetGeneration() != run.Object.GetGeneration() {
			return nil, errChanged
		}
		return []fence.Op{operation}, nil
	}
	if err := changeSpec(ctx, s.writer(c), run.Object, decide); err != nil {
		return fmt.Errorf("changing %s: %w", run.Ref, err)
	}
	return nil
}

// unfinished is an error if a run has ended.
func unfinished(run hub.Run) error {
	if outcome := run.Outcome(); outcome != "" {
		word := "succeeded"
		if outcome == metav1.ConditionFalse {
			word = "failed"
		}
		return fmt.Errorf("%s has ended (%s): create a new run, as with kubectl fleet run %s", run.Ref, word, run.Placement().Flags())
	}
	return nil
}
