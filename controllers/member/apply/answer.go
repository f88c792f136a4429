package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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
	report := compare.Unmet(m.Object, object)
	if report.Empty() {
		return Differences{}
	}
	var told []string
	for _, detail := range report.Details[:min(maxTold, len(report.Details))] {
		told = append(told, fmt.Sprintf("%s is %s and not %s, %s", detail.Path, cutValue(detail.ValueInMember), cutValue(detail.ValueInHub),
			describeHolders(holdersOf(object, detail.Path))))
	}
	if more := len(report.Details) + report.Omitted - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more fields", more))
	}
	return Differences{Report: report, Message: "The API server took the manifest, and the object differs from it: " + strings.Join(told, "; ")}
}

// maxToldValue is how many bytes of a value a message has; the details have more.
const maxToldValue = 64

func cutValue(value string) string {
	switch {
	case value == "":
		return "not set"
	case len(value) > maxToldValue:
		return fmt.Sprintf("%q…", strings.ToValidUTF8(value[:maxToldValue], ""))
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

// holdersOf returns the managers besides this agent that hold a field, or something in the list that it is in.
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
		if ok && entry.Manager != FieldManager && entry.Subresource == "" && (set.Has(path) || !leadTo(set, path).Empty()) {
			managers[entry.Manager] = true
		}
	}
	return slices.Sorted(maps.Keys(managers))
}

// leadTo returns what a set of fields has below a path.
func leadTo(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return set
}

// contentOf returns what an object contains, whoever set it and whatever became of it since.
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

// foresaw tells whether the API server made of the object what the patch was to make of it.
func (p Patch) foresaw(answer *unstructured.Unstructured) bool {
	return compare.Same(contentOf(p.Result), contentOf(answer))
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

// isAnswered tells whether an object is still what the API server made of the manifest when it was last applied: to send it again
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
