package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// beforeFirstApply is the manager that the API server gives fields without one when an object is
// first applied server-side.
const beforeFirstApply = "before-first-apply"

// impossibleVersion is a version that no object ever has: the API server's versions begin higher.
// An apply with it creates the object, and is refused if another client has created it meanwhile.
// Without it, that object would become ours although its ownership was never decided.
const impossibleVersion = "1"

// applyServerSide applies a manifest server-side. Live is nil if the object does not exist.
func (e *Engine) applyServerSide(ctx context.Context, req Request, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object := Marked(req.Manifest, req.Owner)
	if live == nil {
		object.SetResourceVersion(impossibleVersion)
	} else {
		retainReplicas(live, object)
		// KubeFleet's hash does not tell manifests apart that differ in what it leaves out.
		if isLastAppliedTo(live, req.Manifest) && isUpToDateServerSide(live, object) {
			return live, nil
		}
		if e.bringsNothing(ctx, req, object, live, Patch{}, true) {
			return live.DeepCopy(), nil // it is not live itself, so that the answer is kept
		}
		merged, done, err := replaceSources(ctx, e.Client, req, live, object)
		if done {
			return merged, err
		}
		live = merged
		if err := e.claimFields(ctx, req, live, object); err != nil {
			return nil, err
		}
		if err := adoptFields(ctx, e.Client, live); err != nil {
			return nil, err
		}
		// Replicas that are carried over, and fields that were compared, must not have changed in
		// between.
		if carryReplicas(live, object) || req.Strategy.WhenToApply == placementv1beta1.WhenToApplyTypeIfNotDrifted {
			object.SetResourceVersion(live.GetResourceVersion())
		}
	}
	options := applyOptions(req.Strategy, live)
	wanted := object.DeepCopy()
	err := e.sendApply(ctx, object, options)
	switch {
	case live != nil && isRefusedAsApply(err):
		merged, err := e.mergeInstead(ctx, live, withBase(req, wanted, live), err)
		return merged.DeepCopy(), err // it is not live itself, so that the answer is kept
	case err == nil && needsSecondApply(live, object, wanted):
		object, err = e.applyOnceMore(ctx, wanted, object, options)
	}
	if err != nil {
		return object, err
	}
	return object, dropBase(ctx, e.Client, object)
}

// dropBase takes the manifest as last applied client-side off an object that was applied server-side, if it is still there: another
// manager holds it, too. It is no base of the next merge any more, and its labels and annotations are not those of this manifest.
func dropBase(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if _, stays := object.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]; !stays {
		return nil
	}
	if err := patchAtVersion(ctx, c, object, baseRemoval); err != nil {
		return fmt.Errorf("taking off the manifest that was applied client-side: %w", err)
	}
	return nil
}

// isSetOnlyByPatches reports whether this agent has set fields of an object and has applied none server-side.
func isSetOnlyByPatches(live *unstructured.Unstructured) bool {
	return slices.ContainsFunc(live.GetManagedFields(), isOurEntry) && !slices.ContainsFunc(live.GetManagedFields(), isAppliedByUs)
}

// needsSecondApply reports whether an object is not yet as wanted after a server-side apply: it has an item whose key is null in
// the manifest, which is taken out of what is wanted, or it has lost a map or list that the manifest has empty.
func needsSecondApply(live, answer, wanted *unstructured.Unstructured) bool {
	return removeNullKeys(wanted, answer) || live != nil && hasEmpty(wanted.Object) && !isUpToDateServerSide(answer, wanted)
}

// sendApply sends a server-side apply of an object, which is the API server's answer afterwards.
func (e *Engine) sendApply(ctx context.Context, object *unstructured.Unstructured, options []client.PatchOption) error {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	return e.Client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), options...)
}

// applyOnceMore applies a manifest again that has an empty map or list, or had a null as a key. A map that has lost its last field by a
// server-side apply is taken off the object, although the manifest has it. The next apply finds nothing to remove and sets it.
func (e *Engine) applyOnceMore(
	ctx context.Context, wanted, answer *unstructured.Unstructured, options []client.PatchOption,
) (*unstructured.Unstructured, error) {
	object := wanted.DeepCopy()
	object.SetResourceVersion(answer.GetResourceVersion())
	return object, e.sendApply(ctx, object, options)
}

// hasEmpty reports whether a value has an empty map or list in it.
func hasEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(v)), hasEmpty)
	case []any:
		return len(v) == 0 || slices.ContainsFunc(v, hasEmpty)
	default:
		return false
	}
}

// isRefusedAsApply reports whether the API server refuses the content of a server-side apply. It says so with an internal error where it
// cannot tell the items of a list apart, which a patch may well bring.
func isRefusedAsApply(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	return apierrors.IsInvalid(err) || status.Status().Code == http.StatusInternalServerError
}

// mergeInstead applies a manifest that is refused as a server-side apply by a patch, and returns the refusal if that is refused as
// well: a map that has lost its last field server-side is null, and so are nulls of the manifest, which few definitions allow.
func (e *Engine) mergeInstead(
	ctx context.Context, live, wanted *unstructured.Unstructured, refusal error, options ...client.PatchOption,
) (*unstructured.Unstructured, error) {
	merged, err := merge(ctx, e.Client, live, wanted, options...)
	if err != nil {
		return live, refusal
	}
	return merged, nil
}

// merge applies a manifest by a patch. It may change what is wanted.
func merge(
	ctx context.Context, c client.Client, live, wanted *unstructured.Unstructured, options ...client.PatchOption,
) (*unstructured.Unstructured, error) {
	wanted.SetOwnerReferences(live.GetOwnerReferences())
	patch, err := ThreeWay(live, wanted)
	if err != nil || patch.Empty() {
		return live, err // the object is as the manifest says
	}
	data, err := patch.atVersion(live)
	if err != nil {
		return live, err
	}
	out := live.DeepCopy()
	if err := c.Patch(ctx, out, client.RawPatch(patch.Type, data), append(options, client.FieldOwner(FieldManager))...); err != nil {
		return live, err
	}
	return out, nil
}

// replaceSources applies a manifest by a patch where a server-side apply would leave the source of a volume. It returns the object, and
// whether nothing else is to be sent: an object of which nothing was applied server-side has that done next, as its fields are known by that. A patch that
// the API server refuses changes what cannot be changed: the apply is sent all the same, and the source is told.
func replaceSources(
	ctx context.Context, c client.Client, req Request, live, object *unstructured.Unstructured,
) (*unstructured.Unstructured, bool, error) {
	if !keepsSources(live, object) || !mustForce(req.Strategy, live) {
		return live, false, nil
	}
	merged, err := merge(ctx, c, live, withBase(req, object.DeepCopy(), live))
	if isRefusedAsApply(err) {
		return live, false, nil
	}
	done := err != nil || slices.ContainsFunc(merged.GetManagedFields(), isAppliedByUs)
	return merged.DeepCopy(), done, err // it is not live itself, so that the answer is kept
}

// keepsSources reports whether a server-side apply would leave the source of a volume for which the manifest names none: it takes off
// only what this agent alone has set. A merge takes it off in any case.
func keepsSources(live, wanted *unstructured.Unstructured) bool {
	return slices.ContainsFunc(compare.KeptSources(wanted, live), func(kept compare.KeptSource) bool {
		path := append(pathOf(kept.Volumes), fieldpath.KeyElementByFields("name", kept.Name), fieldpath.FieldNameElement(kept.Field))
		var managers []string
		for _, entry := range live.GetManagedFields() {
			if set, ok := fieldsOf(entry); ok && entry.Subresource == "" && hasAny(set, path) {
				managers = append(managers, entry.Manager)
			}
		}
		return len(managers) == 0 || slices.ContainsFunc(managers, func(manager string) bool { return manager != FieldManager })
	})
}

// withBase adds to an object that is merged the manifest as last applied, if there is room for it: what an earlier way has left there
// is no base of the next merge any more. Where there is too little room, its long texts are left out, and else all of it: then the managers
// of the fields are the base.
func withBase(req Request, object, live *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := object.GetAnnotations()
	manifest := marked(req.Manifest, req.Owner, annotations[placementv1beta1.ManifestHashAnnotation])
	base, err := manifest.MarshalJSON()
	if err != nil || isSecret(object) {
		return object
	}
	annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(base)
	if !fitsWith(live, annotations) {
		data, err := json.Marshal(withoutLongTexts(manifest.Object))
		annotations[placementv1beta1.LastAppliedConfigAnnotation] = string(data)
		if err != nil || !fitsWith(live, annotations) {
			annotations[placementv1beta1.LastAppliedConfigAnnotation] = "" // that of an earlier manifest would be a wrong base
		}
	}
	object.SetAnnotations(annotations)
	keepLastApplied(live, object)
	return object
}

// maxBaseText is how long a text of a manifest as last applied may be that has too little room, in bytes.
const maxBaseText = 1024

// keyNames are the fields by which a merge tells the items of a list of a built-in kind apart.
var keyNames = []string{"name", "mountPath", "devicePath", "key", "topologyKey", "type", "ip", "uid"}

// withoutLongTexts returns a value whose fields have no long texts. A merge asks of a field that was applied before only whether it was
// there; a text by which items are told apart stays.
func withoutLongTexts(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			if text, is := field.(string); is && len(text) > maxBaseText && !slices.Contains(keyNames, key) {
				field = ""
			}
			out[key] = withoutLongTexts(field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutLongTexts(v[i])
		}
		return out
	default:
		return value
	}
}

// isUpToDateServerSide reports whether an object was applied server-side and has every field of the
// manifest.
func isUpToDateServerSide(live, object *unstructured.Unstructured) bool {
	if !slices.ContainsFunc(live.GetManagedFields(), isAppliedByUs) || isClaimed(live) {
		return false
	}
	wanted := object.DeepCopy()
	wanted.SetOwnerReferences(live.GetOwnerReferences()) // they include ours already
	if isFilledIn(wanted, live) {
		return true
	}
	patch, err := threeWayPatch(nil, live, wanted)
	return err == nil && patch.Empty()
}

// applyOptions returns the options of a server-side apply to an object.
func applyOptions(strategy placementv1beta1.ApplyStrategy, live *unstructured.Unstructured) []client.PatchOption {
	options := []client.PatchOption{client.FieldOwner(FieldManager)}
	if mustForce(strategy, live) {
		options = append(options, client.ForceOwnership)
	}
	return options
}

// mustForce reports whether to take fields from other managers. Without the setting
// serverSideApplyConfig.force, only our own managers' fields are taken: a conflict with ourselves
// would be pointless. A manifest that is too large to be applied client-side overwrites the changes
// of others, as a client-side apply does.
func mustForce(strategy placementv1beta1.ApplyStrategy, live *unstructured.Unstructured) bool {
	if strategy.Type != placementv1beta1.ApplyStrategyTypeServerSideApply ||
		strategy.ServerSideApplyConfig != nil && strategy.ServerSideApplyConfig.ForceConflicts {
		return true
	}
	return live != nil && onlyOurs(live.GetManagedFields())
}

func onlyOurs(fields []metav1.ManagedFieldsEntry) bool {
	for _, entry := range fields {
		if entry.Subresource == "" && entry.Manager != FieldManager && entry.Manager != beforeFirstApply {
			return false
		}
	}
	return true
}

// adoptFields moves the fields that this agent once set client-side to its server-side manager.
// Otherwise they would stay for ever when they leave the manifest. A Secret loses the copy of its
// values, which the fields' managers replace as the base of the next apply.
func adoptFields(ctx context.Context, c client.Client, live *unstructured.Unstructured) error {
	var operations []map[string]any
	if entries, changed := adoptedEntries(live); changed {
		operations = append(operations, map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries})
	}
	if showsSecret(live) {
		operations = append(operations, baseRemoval)
	}
	if len(operations) == 0 {
		return nil
	}
	if err := patchAtVersion(ctx, c, live, operations...); err != nil {
		return fmt.Errorf("taking over the fields applied client-side: %w", err)
	}
	return nil
}

// baseRemoval is the operation of a JSON patch that takes the manifest as last applied off an object.
var baseRemoval = map[string]any{
	"op": "remove", "path": "/metadata/annotations/" + escapePointer(placementv1beta1.LastAppliedConfigAnnotation),
}

// patchAtVersion sends a JSON patch of an object as it was read, which is the API server's answer afterwards.
func patchAtVersion(ctx context.Context, c client.Client, object *unstructured.Unstructured, operations ...map[string]any) error {
	version := map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()}
	data, err := json.Marshal(append([]map[string]any{version}, operations...))
	if err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	return c.Patch(ctx, object, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(FieldManager))
}

// claimFields makes an object of ours equal to the manifest of which the API server does not note whose fields are whose, and has it note
// that from then on. This is so after a restore, or where another tool has created the object. To the first server-side apply, all that is
// there would be another client's: what leaves the manifest then or later would stay. It is also so of fields that were applied in several
// versions, client-side at last, as no entry of a server-side apply can have all of them, and of a field that leaves and has another name
// in the version before. A claim that no apply has followed is made again, as the manifest may be another one since. Where fields of
// others are not to be taken, the apply that follows has to find the conflict. The fields that it will have noted are claimed, so that they
// are known even if it does not follow and no annotation has the manifest.
func (e *Engine) claimFields(ctx context.Context, req Request, live, object *unstructured.Unstructured) error {
	if !isOurs(req, live) ||
		!isUnclaimed(req, live) && !isAppliedInVersions(live) && !hasAppliedAnnotation(live, claimMark) && !leavesRenamed(live, object) {
		return nil
	}
	foreseen, err := e.dryRunPatch(ctx, object, live, Patch{}, true)
	if err != nil {
		foreseen = &unstructured.Unstructured{} // the marks alone are noted
	}
	patch, err := claimPatch(live, withBase(req, object.DeepCopy(), live), fieldSetsOf(foreseen).applied)
	if err != nil {
		return err
	}
	return e.Client.Patch(ctx, live, client.RawPatch(patch.Type, patch.Data), client.FieldOwner(FieldManager))
}

// isOurs reports whether an object has had a manifest applied, and the fields of it may be taken.
func isOurs(req Request, live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation] != "" && mustForce(req.Strategy, live)
}

// isUnclaimed reports whether the API server does not note which fields of an object of ours are whose. That it is to write the owners
// is noted all the same.
func isUnclaimed(req Request, live *unstructured.Unstructured) bool {
	return isOurs(req, live) && !slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isOurEntry(entry) && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(placementv1beta1.ManifestHashAnnotation))
	})
}

// claimPatch returns the patch that makes an object equal to the manifest, and has fields and the marks noted as applied.
func claimPatch(live, wanted *unstructured.Unstructured, fields *fieldpath.Set) (Patch, error) {
	wanted.SetOwnerReferences(live.GetOwnerReferences())
	base := mergeBase(live)
	removeShared(base, fieldSetsOf(live).others)
	merged, err := threeWayPatch(base, live, keepOtherMetadata(base, live, wanted))
	if err != nil {
		return Patch{}, err
	}
	claimed := merged.Result.DeepCopy()
	others := slices.DeleteFunc(claimed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isOurEntry(entry) || entry.Manager == beforeFirstApply // what it has is no client's
	})
	marks := &fieldpath.Set{}
	for _, mark := range []string{claimMark, placementv1beta1.ManifestHashAnnotation, placementv1beta1.LastAppliedConfigAnnotation} {
		marks.Insert(fieldpath.MakePathOrDie("metadata", "annotations", mark))
	}
	noted, err := fields.Union(marks).ToJSON()
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the fields that are claimed: %w", err)
	}
	claimed.SetManagedFields(append(others, metav1.ManagedFieldsEntry{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(string(noted)),
	}))
	patch, err := exactPatch(live, claimed.Object)
	if err != nil {
		return Patch{}, fmt.Errorf("encoding the patch that claims the fields: %w", err)
	}
	return patch, nil
}

// claimMark is noted as an annotation that was applied, which no object has, with a claim. The next server-side apply takes it out of the
// fields that are noted.
const claimMark = "fleetflow.io/claimed"

// isClaimed reports whether fields of an object were claimed, or taken over from a client-side apply, and the server-side apply that was to
// follow was not sent: the mark of a claim, or the manifest as last applied client-side, is among the fields that this agent has applied
// server-side, which no such apply has.
func isClaimed(live *unstructured.Unstructured) bool {
	return hasAppliedAnnotation(live, claimMark) || hasAppliedAnnotation(live, placementv1beta1.LastAppliedConfigAnnotation)
}

// hasAppliedAnnotation reports whether an annotation is among the fields of an object that this agent has applied server-side.
func hasAppliedAnnotation(live *unstructured.Unstructured, key string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		if !isAppliedByUs(entry) || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(key)) {
			return false // there is no need to read the fields
		}
		set, ok := fieldsOf(entry)
		return ok && set.Has(fieldpath.MakePathOrDie("metadata", "annotations", key))
	})
}

// isAppliedInVersions reports whether entries of several versions have the fields that this agent has applied, and the manifest as last
// applied tells what leaves.
func isAppliedInVersions(live *unstructured.Unstructured) bool {
	versions := map[string]bool{}
	for _, entry := range live.GetManagedFields() {
		if isOurEntry(entry) {
			versions[entry.APIVersion] = true
		}
	}
	return len(versions) > 1 && len(lastApplied(live)) > 0
}

// isOurEntry reports whether an entry of managedFields is this agent's.
func isOurEntry(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Subresource == ""
}

// eraseShownSecret takes the copy of its values off a Secret that is ours, whether or not anything
// else is to be written to it.
func eraseShownSecret(ctx context.Context, c client.Client, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !showsSecret(live) {
		return live, nil
	}
	erased := live.DeepCopy()
	return erased, adoptFields(ctx, c, erased)
}
