package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// maxTold is how many fields a message names.
const maxTold = 3

// Differences are the fields in which an applied object is not what its manifest says.
type Differences struct {
	compare.Report
	// Message names the first of them, and who holds them.
	Message string
}

// judgeAnswer compares what the API server has returned with the manifest, without a further request.
func judgeAnswer(m Manifest, object *unstructured.Unstructured) Differences {
	return judgeObject(m, object, "The API server took the manifest, and the object differs from it")
}

// judgeOverwritten compares an object that another client keeps overwriting with its manifest, before it is corrected.
func judgeOverwritten(m Manifest, object *unstructured.Unstructured) Differences {
	return judgeObject(m, object, "Another client of the member's API server keeps overwriting the object, so that it is corrected after "+
		"longer and longer pauses, at least once a minute; end one of the two, or leave the fields to that client and out of the manifest. When it was looked at last")
}

// keptRemoved says that another client keeps removing an object.
const keptRemoved = "Another client of the member's API server keeps removing the object, so that it is created again after longer and longer " +
	"pauses, at least once a minute; end that client, or leave the object out of the placement"

// judgeRemoved says that an object that another client keeps removing was not there, before it is created again.
func judgeRemoved() Differences { return Differences{Report: compare.Absent(), Message: keptRemoved} }

// JudgeUnmarked says that another client keeps removing what marks an object as placed, of which the manifest says nothing.
func JudgeUnmarked() Differences {
	return Differences{Report: compare.Unmarked(), Message: "Another client of the member's API server keeps removing what marks the object " +
		"as placed, so that it is written after longer and longer pauses, at least once a minute; end one of the two, or leave the object " +
		"out of the placement"}
}

// judgeObject compares an object with its manifest and says why it may differ.
func judgeObject(m Manifest, object *unstructured.Unstructured, why string) Differences {
	report := unmet(m.Object, object)
	if report.Empty() {
		return Differences{}
	}
	var told []string
	for _, detail := range report.Details[:min(maxTold, len(report.Details))] {
		told = append(told, describeDetail(m, object, detail))
	}
	if more := len(report.Details) + report.Omitted - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more fields", more))
	}
	return Differences{Report: report, Message: why + ": " + strings.Join(told, "; ")}
}

// unmet lists the fields in which an object is not what its manifest says, also lists that are to be empty and have items of others.
func unmet(manifest, object *unstructured.Unstructured) compare.Report {
	return compare.Unmet(manifest, object, func(path string) bool { return len(holdersOf(object, path)) > 0 })
}

// describeDetail describes one field: what it is, what it is to be, and who or what makes it so.
func describeDetail(m Manifest, object *unstructured.Unstructured, detail placementv1beta1.PatchDetail) string {
	if detail.ValueInHub == "" && compare.IsKept(m.Kind(), detail.Path) {
		return fmt.Sprintf("%s stays %s although the manifest does not set it any more: it cannot be changed once the object exists; set it on the hub, "+
			"or delete the object on the cluster to have it created anew", detail.Path, cutValue(detail.ValueInMember))
	}
	if detail.ValueInHub == "" {
		return fmt.Sprintf("%s stays %s although the manifest does not set it, %s", detail.Path, cutValue(detail.ValueInMember),
			describeHolders(holdersOf(object, detail.Path)))
	}
	return fmt.Sprintf("%s is %s and not %s, %s", detail.Path, cutValue(detail.ValueInMember), cutValue(detail.ValueInHub),
		describeHolders(holdersOf(object, detail.Path)))
}

// maxToldValue is how many bytes of a value a message has; the details have more.
const maxToldValue = 64

func cutValue(value string) string {
	switch {
	case value == "":
		return "not set"
	case len(value) > maxToldValue:
		return fmt.Sprintf("%q…", clusterv1beta1.FirstBytes(value, maxToldValue))
	default:
		return fmt.Sprintf("%q", value)
	}
}

func describeHolders(managers []string) string {
	if len(managers) == 0 {
		return "by the cluster's admission or definitions"
	}
	return "held by " + strings.Join(managers, ", ")
}

// holdersOf returns the managers except this agent that hold a field, or something in the list that it is in.
func holdersOf(object *unstructured.Unstructured, pointer string) []string {
	var path fieldpath.Path
	value := any(object.Object)
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		fields, isMap := value.(map[string]any)
		if !isMap {
			break
		}
		name := strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		path = append(path, fieldpath.FieldNameElement(name))
		value = fields[name]
	}
	managers := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		set, ok := fieldsOf(entry)
		if ok && entry.Manager != FieldManager && entry.Subresource == "" && hasAny(set, path) {
			managers[entry.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(managers))
}

// hasAny reports whether a set of fields has one, or something below it.
func hasAny(set *fieldpath.Set, path fieldpath.Path) bool {
	return set.Has(path) || !leadTo(set, path).Empty()
}

// leadTo returns what a set of fields has below a path.
func leadTo(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return set
}

// contentOf returns what an object contains, of all managers.
func contentOf(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, field)
		}
		content["metadata"] = metadata
	}
	return content
}

// foresaw reports whether the API server made of the object what the patch was to make of it.
func (p Patch) foresaw(answer *unstructured.Unstructured) bool {
	return compare.Same(contentOf(p.Result), contentOf(answer))
}

// isFilledIn reports whether the API server has only added fields to an object that it was sent, so that a merge of what was sent and of
// what is there changes nothing. It says no where that is not certain.
func isFilledIn(sent, answer *unstructured.Unstructured) bool {
	var lookup strategicpatch.LookupPatchMeta
	if typed, err := scheme.Scheme.New(sent.GroupVersionKind()); err == nil {
		if lookup, err = strategicpatch.NewPatchMetaFromStruct(typed); err != nil {
			return false
		}
	}
	return areFieldsFilledIn(lookup, sent.Object, answer.Object)
}

// isAsApplied reports whether an object is what the same manifest has made of it, so that a merge changes nothing: nothing has left the
// manifest, and the object has all of it. It says no where that is not certain.
func isAsApplied(live, desired *unstructured.Unstructured) bool {
	base := live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]
	return base != "" && base == desired.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation] && isFilledIn(desired, live)
}

func areFieldsFilledIn(lookup strategicpatch.LookupPatchMeta, sent, answer map[string]any) bool {
	for key, value := range sent {
		if there, found := answer[key]; !found || !isFieldFilledIn(lookup, key, value, there) {
			return false
		}
	}
	return true
}

// isFieldFilledIn tells it of a field. A map that is replaced as a whole, and a list without keys, must be the same.
func isFieldFilledIn(lookup strategicpatch.LookupPatchMeta, key string, sent, answer any) bool {
	switch s := sent.(type) {
	case map[string]any:
		a, isMap := answer.(map[string]any)
		of, strategies := fieldMeta(lookup, key)
		isMerged := !slices.Contains(strategies, "replace") && !slices.Contains(strategies, "retainKeys")
		return isMap && (isMerged || len(s) == len(a)) && areFieldsFilledIn(of, s, a)
	case []any:
		a, isList := answer.([]any)
		if !isList || len(s) != len(a) {
			return false
		}
		of, how := listMeta(lookup, key)
		return areItemsFilledIn(of, how, s, a)
	default:
		return compare.Same(sent, answer)
	}
}

func areItemsFilledIn(lookup strategicpatch.LookupPatchMeta, how strategicpatch.PatchMeta, sent, answer []any) bool {
	strategies := how.GetPatchStrategies()
	isMerged := slices.Contains(strategies, "merge") && how.GetPatchMergeKey() != ""
	retain := slices.Contains(strategies, "retainKeys")
	for i := range sent {
		item, wasMap := sent[i].(map[string]any)
		there, isMap := answer[i].(map[string]any)
		isFilledIn := isMerged && wasMap && isMap && (!retain || len(item) == len(there)) && areFieldsFilledIn(lookup, item, there)
		if !isFilledIn && !compare.Same(sent[i], answer[i]) {
			return false
		}
	}
	return true
}

// contentSum identifies what an object contains.
func contentSum(object *unstructured.Unstructured) string {
	data, err := json.Marshal(contentOf(object))
	if err != nil {
		return "" // it was not read from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isAnswered reports whether an object is still what the API server made of the manifest when it was last applied: to send it again
// would change nothing.
func (r Request) isAnswered(live *unstructured.Unstructured) bool {
	return r.Answered != "" && isLastAppliedTo(live, r.Manifest) && contentSum(live) == r.Answered
}

// answerTo returns the sum of the API server's answer if the same write would be made again; nothing if it has done what it was to.
func answerTo(req Request, answer *unstructured.Unstructured) string {
	if !isLastAppliedTo(answer, req.Manifest) {
		return "" // a webhook takes our mark off
	}
	desired, fits, err := Desired(req.Manifest, req.Owner, answer)
	if err != nil {
		return ""
	}
	if req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply || !fits {
		wanted := Marked(req.Manifest, req.Owner)
		retainReplicas(answer, wanted)
		if isUpToDateServerSide(answer, wanted) {
			return ""
		}
		return contentSum(answer)
	}
	retainReplicas(answer, desired)
	retainFinalizers(answer, desired)
	keepLastApplied(answer, desired)
	if patch, err := ThreeWay(answer, desired); err != nil || patch.Empty() {
		return ""
	}
	return contentSum(answer)
}

// bringsNothing reports whether to apply once more what was last applied would change nothing. The API server fills in what items of
// lists lack, and what it answered is not known any more after a restart. It is asked by a dry run, and only if the object has all
// that the manifest says. Without an answer, the write shows it. Fields that this agent has set by patches alone are taken over first, and
// those of which nothing tells whose they are, unless the API server cannot read the object with a server-side apply: then it notes no
// client's fields.
func (e *Engine) bringsNothing(ctx context.Context, req Request, desired, live *unstructured.Unstructured, patch Patch,
	serverSide bool) bool {
	if !isLastAppliedTo(live, req.Manifest) || !unmet(req.Manifest.Object, live).Empty() {
		return false
	}
	isUnnoted := serverSide && (isSetOnlyByPatches(live) || isUnclaimed(req, live) && len(lastApplied(live)) == 0)
	if isUnnoted && !isRefusedAsApply(e.sendApply(ctx, desired.DeepCopy(),
		[]client.PatchOption{client.FieldOwner(FieldManager), client.ForceOwnership, client.DryRunAll})) {
		return false
	}
	isSame := func(answer *unstructured.Unstructured, err error) bool {
		return err == nil && compare.Same(contentOf(live), contentOf(answer))
	}
	if isSame(e.dryRunPatch(ctx, desired, live, patch, serverSide)) {
		return true
	}
	// A server-side apply takes an empty map off the object, and a second one sets it, which no dry run shows.
	return serverSide && hasEmpty(desired.Object) &&
		isSame(e.mergeInstead(ctx, live, desired.DeepCopy(), errNothingToMerge, client.DryRunAll))
}

// errNothingToMerge says that a merge is not asked for, as it would change nothing.
var errNothingToMerge = errors.New("there is nothing to merge")
