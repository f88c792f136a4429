package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// Findings is in which fields an object differs from its manifest.
type Findings struct {
	compare.Report
	// Degraded is whether the API server refused the object as it is to be, so that it could
	// not tell what applying the manifest comes to.
	Degraded bool
}

var (
	// errComparison is wrapped around what kept an object from being compared.
	errComparison = errors.New("comparing the object with its manifest")
	// errTakeOver is wrapped around it if the object was to be taken over.
	errTakeOver = errors.New("cannot tell whether the object can be taken over")
)

// compare tells in which fields an object differs from its manifest, as the strategy compares.
// Nothing is written.
//
// A partial comparison asks what applying the manifest would change: a server knows the defaults
// and the ways to write a value, and which items of a list are the same. It is only asked if there
// may be a difference.
func (e *Engine) compare(ctx context.Context, req Request, live *unstructured.Unstructured) (Findings, error) {
	manifest := req.Manifest.Object
	if req.Strategy.ComparisonOption == placementv1beta1.ComparisonOptionTypeFullComparison {
		return Findings{Report: compare.Objects(manifest, manifest, live)}, nil
	}
	desired := manifest.DeepCopy()
	retainReplicas(live, desired)
	serverSide := comparesServerSide(req, live)
	if !serverSide {
		retainFinalizers(live, desired)
	}
	patch, err := ThreeWay(live, desired)
	if err != nil {
		return Findings{}, fmt.Errorf("%w: %w", errComparison, err)
	}
	if patch.Empty() && (!serverSide || !mayDropFields(req.Manifest, live)) {
		return Findings{}, nil
	}
	wanted, err := e.rehearse(ctx, desired, live, patch, serverSide)
	switch {
	case err == nil:
		return Findings{Report: compare.Objects(manifest, wanted, live)}, nil
	case apierrors.IsInvalid(err):
		return Findings{Report: compare.Objects(manifest, patch.Result, live), Degraded: true}, nil
	default:
		return Findings{}, fmt.Errorf("%w: %w", errComparison, err)
	}
}

// comparesServerSide tells whether a server-side apply is rehearsed. If differences are only
// reported, it is, unless the object was applied client-side before and has a base for that.
func comparesServerSide(req Request, live *unstructured.Unstructured) bool {
	switch req.Strategy.Type {
	case placementv1beta1.ApplyStrategyTypeServerSideApply:
		return true
	case placementv1beta1.ApplyStrategyTypeReportDiff:
		return len(lastApplied(live)) == 0
	default:
		_, fits, err := Desired(req.Manifest, req.Owner, nil)
		return err == nil && !fits
	}
}

// mayDropFields tells whether a server-side apply of a manifest may remove fields, as those that
// an earlier one has set.
func mayDropFields(m Manifest, live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), isOurs) && !isOf(live, m)
}

// isOf tells whether this very manifest was the last to be applied to an object.
func isOf(live *unstructured.Unstructured, m Manifest) bool {
	return live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation] == m.Hash
}

// rehearse has the API server tell how the object would stand, without storing it.
func (e *Engine) rehearse(ctx context.Context, desired, live *unstructured.Unstructured, patch Patch, serverSide bool) (*unstructured.Unstructured, error) {
	out := live.DeepCopy()
	options := []client.PatchOption{client.FieldOwner(FieldManager), client.DryRunAll}
	if !serverSide {
		data, err := patch.atVersion(live)
		if err != nil {
			return nil, err
		}
		return out, e.Client.Patch(ctx, out, client.RawPatch(patch.Type, data), options...)
	}
	object := desired.DeepCopy()
	carryReplicas(live, object)
	object.SetResourceVersion(live.GetResourceVersion())
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return out, e.Client.Patch(ctx, out, client.RawPatch(types.ApplyPatchType, data), append(options, client.ForceOwnership)...)
}

// found says that an object differs from its manifest.
func (f Findings) found(what string) string {
	if f.Omitted == 0 {
		return what
	}
	return fmt.Sprintf("%s; %d more fields differ than are listed", what, f.Omitted)
}
