package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// FieldManager is the field manager of the member agent's writes.
const FieldManager = "work-api-agent"

// maxAttempts is how often an operation is tried at once when another client wrote in between.
const maxAttempts = 3

// atOnce makes these attempts without a pause.
var atOnce = wait.Backoff{Steps: maxAttempts}

// Engine applies manifests to the member and removes the applied objects. It reads past any cache
// and keeps no state.
type Engine struct {
	// Client reads and writes the member's objects; its reads must not come from a cache.
	Client client.Client
	// Mapper knows which kinds the member has.
	Mapper meta.RESTMapper
	// Rivals finds the other AppliedWorks that own an object.
	Rivals RivalFinder
	// Veto is what the owner of the member does not let the fleet place.
	Veto Veto
}

// RivalFinder finds the AppliedWorks that the owner references of an object name.
type RivalFinder interface {
	// Find returns the references that point to an AppliedWork that exists; the others are
	// dangling. Me is the AppliedWork whose manifest is to be applied.
	Find(ctx context.Context, me metav1.OwnerReference, object Key, refs []metav1.OwnerReference) ([]Rival, error)
}

// Request is one manifest to apply.
type Request struct {
	Manifest Manifest
	// Owner is the AppliedWork that is to own the object.
	Owner    metav1.OwnerReference
	Strategy placementv1beta1.ApplyStrategy
	// KeepContent forbids to write the object's content: another client keeps overwriting it, and
	// both would go on without end.
	KeepContent bool
	// Contested is whether it is to be told in what an object differs before it is corrected: it has been corrected often.
	Contested bool
	// Done is whether the cluster has had the object made of this manifest and removes such objects
	// by itself: if it is gone, it is not created again.
	Done bool
	// Answered is the sum of the object as the API server answered to the last write of this
	// manifest, if the object was not as wanted then. As long as it is the same, nothing is sent.
	Answered string
}

// Result is an object as it is on the member, whether it was applied or not.
type Result struct {
	// Object is nil if it does not exist, also because it is done, or could not be read.
	Object *unstructured.Unstructured
	// Wrote is whether anything was written.
	Wrote bool
	// Findings are the fields in which the object differs from the manifest, if it was compared.
	Findings Findings
	// Differences are what the object lacks of the manifest although it was applied.
	Differences Differences
	// Overwritten is in what the object differed when it was read, if the request is contested or its content was to be kept.
	Overwritten Differences
	// Answered is to be in the next request for the same manifest.
	Answered string
}

// Resource finds the resource of an object's kind. A kind that the member does not serve, or cannot
// tell about, is a problem and not an error, and so is an object that contradicts the scope of its
// kind: the hub lets an author of namespaced objects place nothing else, and the API server would
// take a cluster-scoped object with a namespace and drop the namespace.
func (e *Engine) Resource(id placementv1beta1.WorkResourceIdentifier) (schema.GroupVersionResource, *Problem, error) {
	gvk := schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
	mapping, err := e.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case err == nil:
		return mapping.Resource, scopeProblem(id, mapping.Scope), nil
	case isUnknownKind(err):
		return schema.GroupVersionResource{}, unknownKindProblem(gvk), nil
	case isUnreachable(err):
		return schema.GroupVersionResource{}, nil, fmt.Errorf("finding out how the cluster serves %s: %w", gvk, err)
	default:
		return schema.GroupVersionResource{}, applyFailedProblem(fmt.Sprintf("Failed to find out how the cluster serves %s: %v", gvk, err)), nil
	}
}

func isUnknownKind(err error) bool {
	if failed, ok := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err); ok {
		for _, cause := range *failed {
			if !meta.IsNoMatchError(cause) && !apierrors.IsNotFound(cause) {
				return false
			}
		}
		return true
	}
	return meta.IsNoMatchError(err)
}

// Apply makes the member's object equal to the manifest, as the strategy says. It returns the
// object as it is afterwards, and the problem that prevented the apply, if any. It writes nothing
// if nothing differs. An error means that the cluster could not be reached, which says nothing
// about the manifest.
func (e *Engine) Apply(ctx context.Context, req Request) (Result, *Problem, error) {
	if problem := quantityProblem(req.Manifest.Object); problem != nil {
		return Result{}, problem, nil
	}
	result, problem, err := retryOnConflict(func() (Result, *Problem, error) { return e.applyOnce(ctx, req) })
	switch {
	case err == nil:
		return result, problem, nil
	case isUnreachable(err):
		return Result{}, nil, fmt.Errorf("applying %s: %w", KeyOf(req.Manifest.Identifier), err)
	case isUnknownKind(err) || isUnknownPath(err):
		return Result{}, unknownKindProblem(req.Manifest.Object.GroupVersionKind()), nil
	case errors.Is(err, errComparison):
		return Result{Object: result.Object}, comparisonProblem(err, req, result.Object), nil
	default:
		return result, refusalProblem(err, req.Manifest, result.Object), nil
	}
}

// retryOnConflict tries again at once if another client wrote in between.
func retryOnConflict(attempt func() (Result, *Problem, error)) (result Result, problem *Problem, err error) {
	overtaken := func(err error) bool {
		return !isFieldConflict(err) && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
	}
	err = retry.OnError(atOnce, overtaken, func() (err error) {
		result, problem, err = attempt()
		return err
	})
	return result, problem, err
}

// Diff compares the object with its manifest, without regard to owners, and writes nothing. The
// problem says why it could not be compared: that the cluster has no such object is a difference,
// that it does not serve the kind is none, as nothing can be compared.
func (e *Engine) Diff(ctx context.Context, req Request) (Result, *Problem, error) {
	if problem := quantityProblem(req.Manifest.Object); problem != nil {
		return Result{}, problem, nil
	}
	result, problem, err := retryOnConflict(func() (Result, *Problem, error) {
		live, err := e.readObject(ctx, req.Manifest.Identifier)
		if apierrors.IsNotFound(err) && !isUnknownPath(err) {
			return Result{Findings: Findings{Report: compare.Absent()}}, nil, nil
		}
		if err != nil {
			return Result{}, nil, err
		}
		req.Manifest = req.Manifest.withHashOn(live)
		findings, err := e.compareObject(ctx, req, live)
		return Result{Object: live, Findings: findings}, nil, err
	})
	switch {
	case err == nil:
		return result, problem, nil
	case isUnreachable(err):
		return Result{}, nil, fmt.Errorf("comparing %s: %w", KeyOf(req.Manifest.Identifier), err)
	case isUnknownKind(err) || isUnknownPath(err):
		return Result{}, unknownKindProblem(req.Manifest.Object.GroupVersionKind()), nil
	default:
		return Result{Object: result.Object}, comparisonProblem(err, req, result.Object), nil
	}
}

// comparisonProblem returns why an object could not be compared.
func comparisonProblem(err error, req Request, live *unstructured.Unstructured) *Problem {
	p := &Problem{Reason: placementv1beta1.ReasonFailedToRunDriftDetection, Message: fmt.Sprintf("%s: %v", notAppliedText, err), cause: err}
	switch {
	case req.Strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff:
		p.Reason = placementv1beta1.ReasonFailedToReportDiff
		p.Message = fmt.Sprintf("Failed to report the differences: %v", err)
	case errors.Is(err, errTakeOver):
		p.Reason = placementv1beta1.ReasonFailedToTakeOver
	}
	p.Message = redactSecrets(p.Message, req.Manifest.Object, live)
	return p
}

// isUnreachable reports whether the API server gave no answer. The answer that the API is busy or not
// available concerns one object only, because another server may be behind each aggregated API.
func isUnreachable(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isUnavailable reports whether the API cannot answer for now, in contrast to a refusal.
func isUnavailable(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func (e *Engine) applyOnce(ctx context.Context, req Request) (Result, *Problem, error) {
	live, err := e.readObject(ctx, req.Manifest.Identifier)
	switch {
	case isUnreachable(err) || isUnavailable(err) || isUnknownKind(err) || isUnknownPath(err):
		return Result{}, nil, err // Apply distinguishes these
	case apierrors.IsNotFound(err) && req.Done:
		return Result{}, nil, nil
	case apierrors.IsNotFound(err) && req.KeepContent:
		return Result{}, applyFailedProblem(keptRemoved), nil
	case apierrors.IsNotFound(err):
		result, err := e.create(ctx, req)
		return result, nil, err
	case err != nil:
		return Result{}, &Problem{
			Reason:  placementv1beta1.ReasonFailedToFindObjInMemberCluster,
			Message: fmt.Sprintf("Failed to read the object on the cluster: %v", err),
			cause:   err,
		}, nil
	case live.GetDeletionTimestamp() != nil && isRemovingItself(live, req.Manifest):
		return Result{Object: live}, nil, nil
	case live.GetDeletionTimestamp() != nil:
		return Result{}, applyFailedProblem("The object on the cluster is being deleted; it is created again once it is gone"), nil
	}
	return e.applyToExisting(ctx, req, live)
}

// create creates the object, and judges what the API server made of it.
func (e *Engine) create(ctx context.Context, req Request) (Result, error) {
	object, foreseen, err := e.createObject(ctx, req)
	if err != nil {
		return Result{Object: object, Wrote: true}, err
	}
	result := Result{Object: object, Wrote: true, Differences: judgeAnswer(req.Manifest, object)}
	if req.Contested {
		result.Overwritten = judgeRemoved()
	}
	if result.Differences.Empty() && !foreseen { // otherwise a write may yet bring about what the creation did not
		result.Answered = answerTo(req, object)
	}
	return result, nil
}

// applyToExisting applies the manifest to an object that exists, if the strategy allows it.
func (e *Engine) applyToExisting(ctx context.Context, req Request, live *unstructured.Unstructured) (Result, *Problem, error) {
	if problem := e.Veto.refusalOf(req.Manifest.Identifier, live); problem != nil {
		return Result{Object: live}, problem, nil
	}
	req.Manifest = req.Manifest.withHashOn(live)
	object, findings, problem, err := e.ensureOwned(ctx, req, live)
	if problem != nil || err != nil {
		return Result{Object: live, Findings: findings}, problem, err
	}
	if !isLeftByKubeFleet(object, req.Manifest) {
		if object, err = eraseShownSecret(ctx, e.Client, object); err != nil {
			return Result{Object: live}, nil, err
		}
	}
	if req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted && isLastAppliedTo(object, req.Manifest) {
		findings, err := e.compareObject(ctx, req, object)
		if err != nil {
			return Result{Object: object}, nil, err
		}
		if !findings.Empty() {
			return Result{Object: object, Findings: findings}, driftProblem(findings), nil
		}
	}
	result, err := e.writeContent(ctx, req, object)
	if err != nil {
		return result, nil, err
	}
	result.Wrote = result.Object.GetResourceVersion() != live.GetResourceVersion()
	if req.Strategy.ComparisonOption == placementv1beta1.ComparisonOptionTypeFullComparison {
		result.Findings, err = e.compareObject(ctx, req, result.Object)
	}
	return result, nil, err
}

// writeContent makes an object that is ours equal to the manifest, unless that is forbidden for now or is known to change nothing,
// and judges what the API server made of it.
func (e *Engine) writeContent(ctx context.Context, req Request, live *unstructured.Unstructured) (Result, error) {
	if req.KeepContent {
		return Result{Object: live, Overwritten: judgeOverwritten(req.Manifest, live)}, nil
	}
	if req.isAnswered(live) {
		return Result{Object: live, Differences: judgeAnswer(req.Manifest, live), Answered: req.Answered}, nil
	}
	object, foreseen, err := e.updateObject(ctx, req, live)
	if err != nil {
		return Result{Object: live}, err
	}
	result := Result{Object: object, Differences: judgeAnswer(req.Manifest, object)}
	if req.Contested {
		result.Overwritten = judgeOverwritten(req.Manifest, live)
	}
	if !foreseen {
		result.Answered = answerTo(req, object)
	}
	return result, nil
}

// driftProblem says that an object was changed on the cluster and is left alone.
func driftProblem(findings Findings) *Problem {
	p := &Problem{
		Reason: placementv1beta1.ReasonFoundDrifts, NoRetry: true,
		Message: findings.describeFindings(notAppliedText + " (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster): " +
			"the object is left alone until they are gone, the manifest changes, or whenToApply is Always"),
	}
	if findings.Degraded {
		p.Reason = placementv1beta1.ReasonFoundDriftsInDegradedMode
	}
	return p
}

// takeOverProblem says that an object is not taken over because it differs from its manifest.
func takeOverProblem(findings Findings) *Problem {
	return &Problem{
		Reason: placementv1beta1.ReasonFailedToTakeOver, NoRetry: true,
		Message: findings.describeFindings(notAppliedText + " (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster): " +
			"it is taken over once they are gone, or if whenToTakeOver is Always"),
	}
}

func applyFailedProblem(message string) *Problem {
	return &Problem{Reason: placementv1beta1.ReasonManifestApplyFailed, Message: message}
}

func (e *Engine) readObject(ctx context.Context, id placementv1beta1.WorkResourceIdentifier) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind})
	return live, e.Client.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, live)
}

// ensureOwned makes req.Owner an owner of an existing object if that is allowed. The owner
// references are written alone, before anything else, and only to the version that was decided on.
// So if two AppliedWorks want an object at the same time, one gets it.
func (e *Engine) ensureOwned(
	ctx context.Context, req Request, live *unstructured.Unstructured,
) (*unstructured.Unstructured, Findings, *Problem, error) {
	refs := live.GetOwnerReferences()
	owners := OwnersOf(refs, req.Owner)
	var rivals []Rival
	if len(owners.Before) > 0 {
		found, err := e.Rivals.Find(ctx, req.Owner, KeyOf(req.Manifest.Identifier), owners.Before)
		if err != nil {
			return nil, Findings{}, nil, fmt.Errorf("looking into the other owners: %w", err)
		}
		rivals = found
	}
	problem, onlyIfSame := DecideOwnership(owners, rivals, req.Strategy)
	if problem != nil {
		return nil, Findings{}, problem, nil
	}
	if onlyIfSame {
		findings, err := e.compareObject(ctx, req, live)
		if err != nil {
			return nil, Findings{}, nil, fmt.Errorf("%w: %w", errTakeOver, err)
		}
		if !findings.Empty() {
			return nil, findings, takeOverProblem(findings), nil
		}
	}
	// The other AppliedWorks that come first are dangling or yield; otherwise there would be a
	// problem.
	drop := map[types.UID]bool{}
	for _, ref := range append(owners.Before, owners.Former...) {
		drop[ref.UID] = true
	}
	want := WithOwner(refs, req.Owner, drop)
	if equality.Semantic.DeepEqual(refs, want) {
		return live, Findings{}, nil, nil
	}
	owned, err := e.writeOwners(ctx, live, want)
	return owned, Findings{}, nil, err
}

func (e *Engine) writeOwners(
	ctx context.Context, live *unstructured.Unstructured, refs []metav1.OwnerReference,
) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(),
		"ownerReferences": refs,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the owner references: %w", err)
	}
	out := live.DeepCopy()
	if err := e.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, data), client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("writing the owner references: %w", err)
	}
	return out, nil
}

// createObject creates an object. It also tells whether the answer was foreseen, so that the next pass has nothing to write.
func (e *Engine) createObject(ctx context.Context, req Request) (*unstructured.Unstructured, bool, error) {
	desired, fits, err := Desired(req.Manifest, req.Owner, nil)
	if err != nil {
		return nil, false, err
	}
	if !fits || req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply {
		object, err := e.applyServerSide(ctx, req, nil)
		return object, false, err
	}
	sent := desired.DeepCopy()
	err = e.Client.Create(ctx, desired, client.FieldOwner(FieldManager))
	return desired, err == nil && isFilledIn(sent, desired), err
}

// updateObject writes what is to change of an object. It also tells whether the answer was foreseen: nothing was to be written, or
// the object is what the patch was to make of it, so that the next pass has nothing to write.
func (e *Engine) updateObject(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	if req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply {
		object, err := e.applyServerSide(ctx, req, live)
		return object, object == live, err
	}
	desired, fits, err := Desired(req.Manifest, req.Owner, live)
	if err != nil {
		return nil, false, err
	}
	if isLeftByKubeFleet(live, req.Manifest) {
		if patch, err := ThreeWay(live, req.Manifest.Object); err != nil || patch.Empty() {
			return live, true, err
		}
	}
	if !fits {
		object, err := e.applyServerSide(ctx, req, live)
		return object, object == live, err
	}
	retainReplicas(live, desired)
	retainFinalizers(live, desired)
	keepLastApplied(live, desired)
	if isAsApplied(live, desired) {
		return live, true, nil
	}
	patch, err := ThreeWay(live, desired)
	if err != nil || patch.Empty() {
		return live, true, err
	}
	if e.bringsNothing(ctx, req, desired, live, patch, false) {
		return live, false, nil
	}
	data := patch.Data
	if req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted {
		// A change by another client since the comparison must not be overwritten.
		if data, err = patch.atVersion(live); err != nil {
			return nil, false, err
		}
	}
	out := live.DeepCopy()
	err = e.Client.Patch(ctx, out, client.RawPatch(patch.Type, data), client.FieldOwner(FieldManager))
	return out, patch.foresaw(out), err
}
