package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// fieldOwner is who verbs write as.
const fieldOwner = "kubectl-fleet"

// DryRun is how much of a change is made.
type DryRun string

// Values of DryRun.
const (
	// DryRunNone makes the change.
	DryRunNone DryRun = "none"
	// DryRunClient sends nothing.
	DryRunClient DryRun = "client"
	// DryRunServer has the API server check everything and store nothing.
	DryRunServer DryRun = "server"
)

// Call is who uses a verb, and how.
type Call struct {
	Client client.WithWatch
	Clock  clock.PassiveClock
	DryRun DryRun
	// Record keeps what a dry run would write; nil for none.
	Record *Record
	// Warn reports to the user what is left out, and Progress what is done already. Both may be called more than once.
	Warn, Progress func(sentence string)
	// Wait runs what may take long, and says meanwhile what it is.
	Wait func(doing string, work func() error) error
}

// Dry reports whether nothing is to be changed.
func (c *Call) Dry() bool { return c.DryRun == DryRunClient || c.DryRun == DryRunServer }

// Sends reports whether writes go to the Writer, be it only to be checked by the API server or recorded.
func (c *Call) Sends() bool { return c.DryRun != DryRunClient || c.Record != nil }

// Writer returns the client for writes. A field that the hub does not know is an error, not dropped: a rollback, say,
// that loses what it rolls back would be a rollout.
func (c *Call) Writer() client.Client {
	var writes client.Client = c.Client
	if c.Dry() {
		writes = client.NewDryRunClient(writes)
	}
	if c.Dry() && c.Record != nil {
		writes = recorder{Client: writes, Record: c.Record, sends: c.DryRun == DryRunServer}
	}
	return client.WithFieldOwner(client.WithFieldValidation(writes, metav1.FieldValidationStrict), fieldOwner)
}

// Reason is why a user wants something, as it can be kept on record; empty if the user does not say.
type Reason string

// keptOn returns the field of a reason; on says where it is kept.
func (r *Reason) keptOn(on string) Field {
	return Field{Name: "reason", Into: r, Label: "Reason", Hint: "It is kept on record.", Required: true,
		Usage: fmt.Sprintf("Why, for the record: it is kept in the annotation %s of %s.", placementv1beta1.ReasonAnnotation, on)}
}

// Set takes a reason that can be kept.
func (r *Reason) Set(text string) error {
	kept, err := rules.CheckReason(text)
	*r = Reason(kept)
	return err
}

// String returns the reason.
func (r *Reason) String() string { return string(*r) }

// Type names the type in help.
func (r *Reason) Type() string { return "string" }

// annotateObject keeps a reason on an object that is yet to be created.
func (r *Reason) annotateObject(object client.Object) {
	if *r == "" {
		return
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.ReasonAnnotation] = string(*r)
	object.SetAnnotations(annotations)
}

// keepReason keeps a reason on the very object that was looked at, before something is done to it: who reads the hub's audit log finds
// it there even if the object is deleted then.
func (c *Call) keepReason(ctx context.Context, reason Reason, object client.Object) error {
	if reason == "" || !c.Sends() {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "annotations": map[string]string{placementv1beta1.ReasonAnnotation: string(reason)},
	}})
	if err != nil {
		return fmt.Errorf("writing the reason: %w", err)
	}
	changed, is := object.DeepCopyObject().(client.Object)
	if !is {
		return nil
	}
	if err := c.Writer().Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("keeping the reason on %s: %w", object.GetName(), err)
	}
	return nil
}

// patchRun changes the spec of a run, unless the spec has been changed in the meantime. The status of a run
// that is under way changes all the time, which is no reason to give up.
func (c *Call) patchRun(ctx context.Context, run hub.Run, operation fence.Op) error {
	if !c.Sends() {
		return nil
	}
	decide := func(fresh placementv1beta1.UpdateRunObject) ([]fence.Op, error) {
		if fresh.GetGeneration() != run.Object.GetGeneration() {
			return nil, errChanged
		}
		return []fence.Op{operation}, nil
	}
	if err := ChangeSpec(ctx, c.Writer(), run.Object, decide); err != nil {
		return fmt.Errorf("changing %s: %w", run.Ref, err)
	}
	return nil
}

// ChangeStrategy changes a field of the strategy of a placement, which may have none yet. change sets it, and returns its
// value; nil takes the field away.
func (c *Call) ChangeStrategy(ctx context.Context, p hub.Placement, field string,
	change func(*placementv1beta1.RolloutStrategy) any) error {
	if !c.Sends() {
		return nil
	}
	err := ChangeSpec(ctx, c.Writer(), p.Object, func(object placementv1beta1.PlacementObject) ([]fence.Op, error) {
		strategy := rules.StrategyOf(object)
		value := change(&strategy)
		path := "/spec/strategy/" + field
		switch {
		case object.GetPlacementSpec().Strategy == nil:
			return []fence.Op{fence.Add("/spec/strategy", strategy)}, nil
		case value == nil:
			return []fence.Op{fence.Remove(path)}, nil
		}
		return []fence.Op{fence.Add(path, value)}, nil
	})
	if err != nil {
		return fmt.Errorf("changing %s: %w", p.Ref, err)
	}
	return nil
}

// createRun creates a run of either scope.
func (c *Call) createRun(ctx context.Context, ref hub.Ref, spec placementv1beta1.UpdateRunSpec,
	annotations map[string]string, reason Reason) error {
	if !c.Sends() {
		return nil
	}
	run := placementv1beta1.Scope{Namespace: ref.Namespace}.NewUpdateRun(ref.Name)
	*run.GetUpdateRunSpec() = spec
	run.SetAnnotations(annotations)
	if err := c.signAsCreator(ctx, run); err != nil {
		return err
	}
	reason.annotateObject(run)
	err := c.Writer().Create(ctx, run)
	if hub.Unserved(err) {
		return errors.New("this hub has no staged update runs: it does not serve their kind")
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", ref, err)
	}
	return nil
}

// signAsCreator writes the user's name on an object that is yet to be created; the API server checks it, or writes it itself where it
// can.
func (c *Call) signAsCreator(ctx context.Context, object client.Object) error {
	who, err := askWhoIAm(ctx, c.Client)
	if err == nil && who.Username != "" {
		annotations := maps.Clone(object.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[placementv1beta1.CreatorAnnotation] = who.Username
		object.SetAnnotations(annotations)
	}
	return err
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
