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

// Result is an object that is applied.
type Result struct {
	// Object is the object as it stands.
	Object *unstructured.Unstructured
	// Wrote is whether anything had to be written.
	Wrote bool
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
		return schema.GroupVersionResource{}, &Problem{
			Reason: placementv1beta1.ReasonDecodingErred,
			Message: fmt.Sprintf("The cluster has no kind %s in %s; the object is applied once the cluster has it, for example after its CustomResourceDefinition is installed",
				gvk.Kind, gvk.GroupVersion()),
		}, nil
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
// afterwards, or the problem that kept it from being applied. Nothing is written if nothing
// differs. An error means that the cluster could not be asked, which says nothing about the
// manifest.
func (e *Engine) Apply(ctx context.Context, req Request) (Result, *Problem, error) {
	var err error
	for range attempts {
		var result Result
		var problem *Problem
		result, problem, err = e.applyOnce(ctx, req)
		if err == nil {
			return result, problem, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if isUnreachable(err) {
		return Result{}, nil, fmt.Errorf("applying %s: %w", KeyOf(req.Manifest.Identifier), err)
	}
	return Result{}, &Problem{
		Reason:  placementv1beta1.ReasonManifestApplyFailed,
		Message: fmt.Sprintf("Failed to apply the manifest: %v", err),
	}, nil
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
	case apierrors.IsNotFound(err) && req.Hold:
		return Result{}, failed("Somebody else keeps removing the object; it is created again in a while"), nil
	case apierrors.IsNotFound(err):
		object, err := e.create(ctx, req)
		return Result{Object: object, Wrote: true}, nil, err
	case isUnreachable(err) || isUnavailable(err):
		return Result{}, nil, err // Apply tells one from the other
	case err != nil:
		return Result{}, &Problem{
			Reason:  placementv1beta1.ReasonFailedToFindObjInMemberCluster,
			Message: fmt.Sprintf("Failed to read the object on the cluster: %v", err),
		}, nil
	case live.GetDeletionTimestamp() != nil:
		return Result{}, failed("The object on the cluster is being deleted; it is created again once it is gone"), nil
	}
	object, problem, err := e.own(ctx, req, live)
	if problem != nil || err != nil {
		return Result{}, problem, err
	}
	if !req.Hold {
		if object, err = e.update(ctx, req, object); err != nil {
			return Result{}, nil, err
		}
	}
	return Result{Object: object, Wrote: object.GetResourceVersion() != live.GetResourceVersion()}, nil, nil
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
func (e *Engine) own(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, *Problem, error) {
	refs := live.GetOwnerReferences()
	owners := OwnersOf(refs, req.Owner)
	var rivals []Rival
	if len(owners.Before) > 0 {
		found, err := e.Rivals.Find(ctx, req.Owner, KeyOf(req.Manifest.Identifier), owners.Before)
		if err != nil {
			return nil, nil, fmt.Errorf("looking into the other owners: %w", err)
		}
		rivals = found
	}
	if problem := Judge(owners, rivals, req.Strategy); problem != nil {
		return nil, problem, nil
	}
	// All AppliedWorks before us are dangling or yield, else there would be a problem.
	drop := map[types.UID]bool{}
	for _, ref := range append(owners.Before, owners.Former...) {
		drop[ref.UID] = true
	}
	want := WithOwner(refs, req.Owner, drop)
	if equality.Semantic.DeepEqual(refs, want) {
		return live, nil, nil
	}
	owned, err := e.writeOwners(ctx, live, want)
	return owned, nil, err
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
	patch, err := ThreeWay(live, desired)
	if err != nil || patch.Empty() {
		return live, err
	}
	out := live.DeepCopy()
	return out, e.Client.Patch(ctx, out, client.RawPatch(patch.Type, patch.Data), client.FieldOwner(FieldManager))
}
