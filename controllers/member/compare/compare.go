package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// MaxDetails is how many fields of one object are reported.
	MaxDetails = 100
	// MaxValue is how many bytes of a value are reported.
	MaxValue = 512
	// WholeObject stands for an object that one side does not have.
	WholeObject = "(the whole object)"
	// Marks stands for the labels, annotations and owners by which the fleet knows an object.
	Marks = "(what marks the object as placed)"
	// Redacted stands for a secret value.
	Redacted = "(redacted for security reasons)"
)

// Report lists the fields in which two objects differ.
type Report struct {
	// Details are the fields, ordered by path; at most MaxDetails.
	Details []placementv1beta1.PatchDetail
	// Omitted is how many more fields differ.
	Omitted int
}

// Empty reports whether there is no difference.
func (r Report) Empty() bool { return len(r.Details) == 0 }

// Absent returns the report on an object that the member does not have.
func Absent() Report {
	return Report{Details: []placementv1beta1.PatchDetail{{Path: "/", ValueInHub: WholeObject}}}
}

// Unmarked returns the report on an object that has lost what marks it as placed.
func Unmarked() Report {
	return Report{Details: []placementv1beta1.PatchDetail{{Path: "/metadata", ValueInHub: Marks}}}
}

// Objects compares the member's object with the wanted one. Wanted is the manifest itself if every
// field counts, or the result of applying the manifest if only the fields in the manifest count. It
// changes neither object.
func Objects(manifest, wanted, member *unstructured.Unstructured) Report {
	d := differ{secret: isSecret(manifest)}
	d.compareMaps("", relevantFields(manifest, wanted), relevantFields(manifest, member))
	d.addKept(manifest, member)
	return d.report
}

func isSecret(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Secret" && object.GroupVersionKind().Group == ""
}

// differ walks two values in parallel and collects their differences.
type differ struct {
	secret bool
	report Report
}

func (d *differ) compareValues(path string, hub, member any) {
	switch h := hub.(type) {
	case map[string]any:
		if m, ok := member.(map[string]any); ok {
			d.compareMaps(path, h, m)
			return
		}
	case []any:
		if m, ok := member.([]any); ok {
			d.compareLists(path, h, m)
			return
		}
	default:
		if equalScalars(hub, member) {
			return
		}
	}
	d.addDetail(path, hub, member)
}

func (d *differ) compareMaps(path string, hub, member map[string]any) {
	keys := slices.Collect(maps.Keys(hub))
	for key := range member {
		if _, ok := hub[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		d.compareValues(path+"/"+escapeKey(key), hub[key], member[key])
	}
}

func (d *differ) compareLists(path string, hub, member []any) {
	for i := range max(len(hub), len(member)) {
		var h, m any
		if i < len(hub) {
			h = hub[i]
		}
		if i < len(member) {
			m = member[i]
		}
		d.compareValues(path+"/"+strconv.Itoa(i), h, m)
	}
}

func (d *differ) addDetail(path string, hub, member any) {
	if len(d.report.Details) == MaxDetails {
		d.report.Omitted++
		return
	}
	d.report.Details = append(d.report.Details, placementv1beta1.PatchDetail{
		Path: path, ValueInHub: d.formatValue(path, hub), ValueInMember: d.formatValue(path, member),
	})
}

// formatValue returns a value as it is reported; a null is a missing field.
func (d *differ) formatValue(path string, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && isSecretValue(path) {
		return Redacted
	}
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			data = fmt.Append(nil, value) // the value was not read from JSON
		}
		text = string(data)
	}
	if len(text) <= MaxValue {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", clusterv1beta1.FirstBytes(text, MaxValue), len(text))
}

// isSecretValue reports whether a path is inside the values of a Secret, or in its annotations, in which programs keep copies of them.
func isSecretValue(path string) bool {
	for _, field := range []string{"/data", "/stringData", "/metadata/annotations"} {
		if path == field || strings.HasPrefix(path, field+"/") {
			return true
		}
	}
	return false
}

// equalScalars compares numbers by their value: JSON does not distinguish 1 from 1.0.
func equalScalars(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b || equalNumbers(a, b)
}

// equalNumbers compares whole numbers digit by digit: as floating-point numbers, large ones would be the same as their neighbours.
func equalNumbers(a, b any) bool {
	x, isWhole := a.(int64)
	y, areWhole := b.(int64)
	if isWhole && areWhole {
		return x == y
	}
	f, isNumber := floatOf(a)
	g, areNumbers := floatOf(b)
	return isNumber && areNumbers && f == g
}

func floatOf(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// Same reports whether two values of JSON are the same, whichever way their numbers are written.
func Same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Same)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	default:
		return equalScalars(a, b)
	}
}

// escapeKey makes a key a token of a JSON pointer.
func escapeKey(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
