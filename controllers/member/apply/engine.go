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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// FieldManager is the name under which the member agent writes.
const FieldManager = "work-api-agent"

// attempts is how often an apply is repeated at once when somebody else wrote in between.
const attempts = 3

// Engine applies manifests to the member and removes what was applied. It reads live and
// keeps no state.
type Engine struct {
	// Client reads and writes the member's objects; its reads must not come from a cache.
	Client client.Client
	// Mapper knows which kinds the member has.
	Mapper meta.RESTMapper
	// Rivals looks into the other AppliedWorks that own an object.
	Rivals RivalFinder
	// Propagation is what becomes of what depends on a removed object; empty is in the
	// background.
	Propagation metav1.DeletionPropagation
}

// RivalFinder looks into the AppliedWorks an object's owner references name.
type RivalFinder interface {
	// Find tells which of the references point to an AppliedWork that exists; those it leaves
	// out are dangling. Me is the AppliedWork that reaches for the object.
	Find(ctx context.Context, me metav1.OwnerReference, object Key, refs []metav1.OwnerReference) ([]Rival, error)
}

// Request is one manifest to apply.
type Request struct {
	// Manifest is what to apply.
	Manifest Manifest
	// Owner is the AppliedWork that shall own the object.
	Owner metav1.OwnerReference
	// Strategy says how.
	Strategy placementv1beta1.ApplyStrategy
	// Hold keeps from writing content: somebody else keeps writing it differently, and both
	// would go on for ever as fast as they can.
	Hold bool
}

// Result is an object as it stands, be it applied or not.
type Result struct {
	// Object is the object as it stands; nil if there is none, or it could not be read.
	Object *unstructured.Unstructured
	// Wrote is whether anything had to be written.
	Wrote bool
	// Findings is in which fields it differs from the manifest, if it was compared.
	Findings Findings
}

// Resource finds out as what the member serves the kind of an object. A kind the member does
// not have, or cannot tell about, is a problem, not an error.
func (e *Engine) Resource(id placementv1beta1.WorkResourceIdentifier) (schema.GroupVersionResource, *Problem, error) {
	gvk := schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
	mapping, err := e.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case err == nil:
		return mapping.Resource, nil, nil
	case isUnknownKind(err):
		return schema.GroupVersionResource{}, unknownKind(gvk), nil
	case isUnreachable(err):
		return schema.GroupVersionResource{}, nil, fmt.Errorf("finding out how the cluster serves %s: %w", gvk, err)
	default:
		return schema.GroupVersionResource{}, failed(fmt.Sprintf("Failed to find out how the cluster serves %s: %v", gvk, err)), nil
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

// Apply makes the member's object what the manifest says. It returns the object as it stands
// afterwards, and the problem that kept it from being applied, if any. Nothing is written if
// nothing differs. An error means that the cluster could not be asked, which says nothing about
// the manifest.
func (e *Engine) Apply(ctx context.Context, req Request) (Result, *Problem, error) {
	result, problem, err := retrying(func() (Result, *Problem, error) { return e.applyOnce(ctx, req) })
	switch {
	case err == nil:
		return result, problem, nil
	case isUnreachable(err):
		return Result{}, nil, fmt.Errorf("applying %s: %w", KeyOf(req.Manifest.Identifier), err)
	case isUnknownKind(err) || isUnknownPath(err):
		return Result{}, unknownKind(req.Manifest.Object.GroupVersionKind()), nil
	case errors.Is(err, errComparison):
		return Result{}, uncompared(err, req, result.Object), nil
	default:
		return result, refused(err, req.Manifest, result.Object), nil
	}
}

// retrying tries again at once if somebody else wrote in between.
func retrying(try func() (Result, *Problem, error)) (result Result, problem *Problem, err error) {
	for range attempts {
		result, problem, err = try()
		if err == nil || isFieldConflict(err) || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return result, problem, err
}

// Diff tells in which fields the member's object differs from the manifest, whoever owns it, and
// writes nothing. The problem is what kept it from being compared.
func (e *Engine) Diff(ctx context.Context, req Request) (Result, *Problem, error) {
	result, problem, err := retrying(func() (Result, *Problem, error) {
		live, err := e.get(ctx, req.Manifest.Identifier)
		if apierrors.IsNotFound(err) || isUnknownKind(err) {
			return Result{Findings: Findings{Report: compare.Absent()}}, nil, nil
		}
		if err != nil {
			return Result{}, nil, err
		}
		findings, err := e.compare(ctx, req, live)
		return Result{Object: live, Findings: findings}, nil, err
	})
	switch {
	case err == nil:
		return result, problem, nil
	case isUnreachable(err):
		return Result{}, nil, fmt.Errorf("comparing %s: %w", KeyOf(req.Manifest.Identifier), err)
	default:
		return Result{}, uncompared(err, req, result.Object), nil
	}
}

// uncompared says that an object could not be compared.
func uncompared(err error, req Request, live *unstructured.Unstructured) *Problem {
	p := &Problem{Reason: placementv1beta1.ReasonFailedToRunDriftDetection, Message: fmt.Sprintf("%s: %v", unapplied, err)}
	switch {
	case req.Strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff:
		p.Reason = placementv1beta1.ReasonFailedToReportDiff
		p.Message = fmt.Sprintf("Failed to report the differences: %v", err)
	case errors.Is(err, errTakeOver):
		p.Reason = placementv1beta1.ReasonFailedToTakeOver
	}
	p.Message = withoutSecrets(p.Message, req.Manifest.Object, live)
	return p
}

// isUnreachable tells an API server that gave no answer from one that gave a bad one. An answer
// that the API is busy or not available is about one object, as each may be served by another
// server: the API server speaks for those behind aggregated APIs.
func isUnreachable(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isUnavailable tells an API that cannot answer for now from one that says no.
func isUnavailable(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

func (e *Engine) applyOnce(ctx context.Context, req Request) (Result, *Problem, error) {
	live, err := e.get(ctx, req.Manifest.Identifier)
	switch {
	case isUnreachable(err) || isUnavailable(err) || isUnknownKind(err) || isUnknownPath(err):
		return Result{}, nil, err // Apply tells one from the other
	case apierrors.IsNotFound(err) && req.Hold:
		return Result{}, failed("Somebody else keeps removing the object; it is created again in a while"), nil
	case apierrors.IsNotFound(err):
		object, err := e.create(ctx, req)
		return Result{Object: object, Wrote: true}, nil, err
	case err != nil:
		return Result{}, &Problem{
			Reason:  placementv1beta1.ReasonFailedToFindObjInMemberCluster,
			Message: fmt.Sprintf("Failed to read the object on the cluster: %v", err),
		}, nil
	case live.GetDeletionTimestamp() != nil:
		return Result{}, failed("The object on the cluster is being deleted; it is created again once it is gone"), nil
	}
	return e.reconcile(ctx, req, live)
}

// reconcile applies the manifest to an object that exists, if that is wanted.
func (e *Engine) reconcile(ctx context.Context, req Request, live *unstructured.Unstructured) (Result, *Problem, error) {
	object, findings, problem, err := e.own(ctx, req, live)
	if problem != nil || err != nil {
		return Result{Object: live, Findings: findings}, problem, err
	}
	if req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted && isOf(object, req.Manifest) {
		findings, err := e.compare(ctx, req, object)
		if err != nil {
			return Result{Object: object}, nil, err
		}
		if !findings.Empty() {
			return Result{Object: object, Findings: findings}, drifted(findings), nil
		}
	}
	before := object
	if !req.Hold {
		if object, err = e.update(ctx, req, object); err != nil {
			return Result{Object: before}, nil, err
		}
	}
	result := Result{Object: object, Wrote: object.GetResourceVersion() != live.GetResourceVersion()}
	if req.Strategy.ComparisonOption == placementv1beta1.ComparisonOptionTypeFullComparison {
		result.Findings, err = e.compare(ctx, req, object)
	}
	return result, nil, err
}

// drifted says that an object was changed on the cluster and is left alone.
func drifted(findings Findings) *Problem {
	p := &Problem{
		Reason: placementv1beta1.ReasonFoundDrifts, Stands: true,
		Message: findings.found(unapplied + " (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster): " +
			"the object is left alone until they are gone, the manifest changes, or whenToApply is Always"),
	}
	if findings.Degraded {
		p.Reason = placementv1beta1.ReasonFoundDriftsInDegradedMode
	}
	return p
}

// differing says that an object is not taken over as it differs from its manifest.
func differing(findings Findings) *Problem {
	return &Problem{
		Reason: placementv1beta1.ReasonFailedToTakeOver, Stands: true,
		Message: findings.found(unapplied + " (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster): " +
			"it is taken over once they are gone, or if whenToTakeOver is Always"),
	}
}

func failed(message string) *Problem {
	return &Problem{Reason: placementv1beta1.ReasonManifestApplyFailed, Message: message}
}

func (e *Engine) get(ctx context.Context, id placementv1beta1.WorkResourceIdentifier) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind})
	return live, e.Client.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, live)
}

// own makes us an owner of an existing object if we may be. The owner references are written
// on their own, before anything else and only at the version that was judged, so that of two
// AppliedWorks that reach for an object at the same time one gets it.
func (e *Engine) own(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, Findings, *Problem, error) {
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
	problem, unseen := Judge(owners, rivals, req.Strategy)
	if problem != nil {
		return nil, Findings{}, problem, nil
	}
	if unseen {
		findings, err := e.compare(ctx, req, live)
		if err != nil {
			return nil, Findings{}, nil, fmt.Errorf("%w: %w", errTakeOver, err)
		}
		if !findings.Empty() {
			return nil, findings, differing(findings), nil
		}
	}
	// All AppliedWorks before us are dangling or yield, else there would be a problem.
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

func (e *Engine) writeOwners(ctx context.Context, live *unstructured.Unstructured, refs []metav1.OwnerReference) (*unstructured.Unstructured, error) {
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

func (e *Engine) create(ctx context.Context, req Request) (*unstructured.Unstructured, error) {
	if req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply {
		return e.serverSide(ctx, req, nil)
	}
	desired, fits, err := Desired(req.Manifest, req.Owner, []metav1.OwnerReference{req.Owner})
	if err != nil {
		return nil, err
	}
	if !fits {
		return e.serverSide(ctx, req, nil)
	}
	return desired, e.Client.Create(ctx, desired, client.FieldOwner(FieldManager))
}

func (e *Engine) update(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply {
		return e.serverSide(ctx, req, live)
	}
	desired, fits, err := Desired(req.Manifest, req.Owner, live.GetOwnerReferences())
	if err != nil {
		return nil, err
	}
	if !fits {
		return e.serverSide(ctx, req, live)
	}
	retainReplicas(live, desired)
	retainFinalizers(live, desired)
	patch, err := ThreeWay(live, desired)
	if err != nil || patch.Empty() {
		return live, err
	}
	data := patch.Data
	if req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted {
		// What somebody changed since it was compared is not overwritten.
		if data, err = patch.atVersion(live); err != nil {
			return nil, err
		}
	}
	out := live.DeepCopy()
	return out, e.Client.Patch(ctx, out, client.RawPatch(patch.Type, data), client.FieldOwner(FieldManager))
}
