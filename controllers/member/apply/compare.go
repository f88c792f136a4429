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

// Findings are the fields in which an object differs from its manifest.
type Findings struct {
	compare.Report
	// Degraded is whether the API server refused the dry run, so that it could not say how the
	// object would be after applying the manifest.
	Degraded bool
}

var (
	// errComparison wraps the reason why an object could not be compared.
	errComparison = errors.New("comparing the object with its manifest")
	// errTakeOver wraps it if the object was to be taken over.
	errTakeOver = errors.New("cannot tell whether the object can be taken over")
)

// compareObject finds the fields in which an object differs from its manifest, as the strategy's
// comparison option says. It writes nothing.
//
// A partial comparison asks the API server what applying the manifest would change: the server
// knows the defaults, the canonical form of values, and the keys of list items. It is asked only if
// there may be a difference.
func (e *Engine) compareObject(ctx context.Context, req Request, live *unstructured.Unstructured) (Findings, error) {
	manifest := req.Manifest.Object
	if req.Strategy.ComparisonOption == placementv1beta1.ComparisonOptionTypeFullComparison {
		return Findings{Report: compare.Objects(manifest, manifest, live)}, nil
	}
	desired := manifest.DeepCopy()
	if isLastAppliedTo(live, req.Manifest) {
		keepHash(live, desired)
	}
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
	wanted, err := e.dryRunPatch(ctx, desired, live, patch, serverSide)
	switch {
	case err == nil:
		report := compare.Objects(manifest, wanted, live)
		if report.Empty() && req.Strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
			report = unmet(manifest, live) // the API server would not do what the manifest says
		}
		return Findings{Report: report}, nil
	case apierrors.IsInvalid(err):
		return Findings{Report: compare.Objects(manifest, patch.Result, live), Degraded: true}, nil
	default:
		return Findings{}, fmt.Errorf("%w: %w", errComparison, err)
	}
}

// keepHash lets a manifest that was the last to be applied to an object state that as the object does: its nulls are not written again.
func keepHash(live, desired *unstructured.Unstructured) {
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[placementv1beta1.ManifestHashAnnotation] = live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]
	desired.SetAnnotations(annotations)
}

// comparesServerSide reports whether the dry run is a server-side apply. If differences are only
// reported, it is, unless the object was applied client-side before and so has a base for a
// client-side merge.
func comparesServerSide(req Request, live *unstructured.Unstructured) bool {
	switch req.Strategy.Type {
	case placementv1beta1.ApplyStrategyTypeServerSideApply:
		return true
	case placementv1beta1.ApplyStrategyTypeReportDiff:
		return len(lastApplied(live)) == 0
	default:
		_, fits, err := Desired(req.Manifest, req.Owner, live)
		return err == nil && !fits
	}
}

// mayDropFields reports whether a server-side apply of a manifest may remove fields that an earlier
// one has set.
func mayDropFields(m Manifest, live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), isAppliedByUs) && !isLastAppliedTo(live, m)
}

// isLastAppliedTo reports whether this very manifest was the last to be applied to an object.
func isLastAppliedTo(live *unstructured.Unstructured, m Manifest) bool {
	if m.stated != "" {
		return live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation] == m.stated
	}
	return m.withHashOn(live).stated != ""
}

// dryRunPatch asks the API server how the object would be after the patch, without storing it. A server-side apply that it refuses is
// merged instead, as it is when the object is written.
func (e *Engine) dryRunPatch(
	ctx context.Context, desired, live *unstructured.Unstructured, patch Patch, serverSide bool,
) (*unstructured.Unstructured, error) {
	out := live.DeepCopy()
	options := []client.PatchOption{client.FieldOwner(FieldManager), client.DryRunAll}
	if !serverSide {
		data, err := patch.atVersion(live)
		if err != nil {
			return nil, err
		}
		return out, e.Client.Patch(ctx, out, client.RawPatch(patch.Type, data), options...)
	}
	object := asAppliedServerSide(desired.DeepCopy())
	carryReplicas(live, object)
	object.SetResourceVersion(live.GetResourceVersion())
	data, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	err = e.Client.Patch(ctx, out, client.RawPatch(types.ApplyPatchType, data), append(options, client.ForceOwnership)...)
	if isRefusedAsApply(err) {
		return e.mergeInstead(ctx, live, object, err, client.DryRunAll)
	}
	return out, err
}

// describeFindings adds to a text how many differing fields are not listed.
func (f Findings) describeFindings(text string) string {
	if f.Omitted == 0 {
		return text
	}
	return fmt.Sprintf("%s; %d more fields differ than are listed", text, f.Omitted)
}
