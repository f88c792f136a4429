package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// MaxDetails is how many fields of one object are reported.
	MaxDetails = 100
	// MaxValue is how many bytes of a value are reported.
	MaxValue = 512
	// WholeObject stands for an object that one side does not have.
	WholeObject = "(the whole object)"
	// Redacted stands for a value that nobody may see.
	Redacted = "(redacted for security reasons)"
)

// Report is in which fields two objects differ.
type Report struct {
	// Details are the fields, ordered by path; no more than MaxDetails.
	Details []placementv1beta1.PatchDetail
	// Omitted is how many more there are.
	Omitted int
}

// Empty tells whether there is no difference.
func (r Report) Empty() bool { return len(r.Details) == 0 }

// Absent is the report on an object that the member does not have.
func Absent() Report {
	return Report{Details: []placementv1beta1.PatchDetail{{Path: "/", ValueInHub: WholeObject}}}
}

// Objects compares what the member has with what it shall have. Wanted is the manifest itself if
// every field counts, or the object as applying the manifest would leave it if only those count
// that the manifest sets. Neither object is changed.
func Objects(manifest, wanted, member *unstructured.Unstructured) Report {
	d := differ{secret: isSecret(manifest)}
	d.maps("", relevant(manifest, wanted), relevant(manifest, member))
	return d.report
}

func isSecret(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Secret" && object.GroupVersionKind().Group == ""
}

// differ walks over two values at once.
type differ struct {
	secret bool
	report Report
}

func (d *differ) values(path string, hub, member any) {
	switch h := hub.(type) {
	case map[string]any:
		if m, ok := member.(map[string]any); ok {
			d.maps(path, h, m)
			return
		}
	case []any:
		if m, ok := member.([]any); ok {
			d.lists(path, h, m)
			return
		}
	default:
		if equalScalars(hub, member) {
			return
		}
	}
	d.add(path, hub, member)
}

func (d *differ) maps(path string, hub, member map[string]any) {
	keys := slices.Collect(maps.Keys(hub))
	for key := range member {
		if _, ok := hub[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		d.values(path+"/"+escape(key), hub[key], member[key])
	}
}

func (d *differ) lists(path string, hub, member []any) {
	for i := range max(len(hub), len(member)) {
		var h, m any
		if i < len(hub) {
			h = hub[i]
		}
		if i < len(member) {
			m = member[i]
		}
		d.values(path+"/"+strconv.Itoa(i), h, m)
	}
}

func (d *differ) add(path string, hub, member any) {
	if len(d.report.Details) == MaxDetails {
		d.report.Omitted++
		return
	}
	d.report.Details = append(d.report.Details, placementv1beta1.PatchDetail{
		Path: path, ValueInHub: d.shown(path, hub), ValueInMember: d.shown(path, member),
	})
}

// shown is a value as it is reported; a null is a field that is not there.
func (d *differ) shown(path string, value any) string {
	if value == nil {
		return ""
	}
	if d.secret && isContent(path) {
		return Redacted
	}
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			data = fmt.Append(nil, value) // nothing that was read from JSON
		}
		text = string(data)
	}
	if len(text) <= MaxValue {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:MaxValue], ""), len(text))
}

// isContent tells whether a path is in what a Secret keeps.
func isContent(path string) bool {
	for _, field := range []string{"/data", "/stringData"} {
		if path == field || strings.HasPrefix(path, field+"/") {
			return true
		}
	}
	return false
}

// equalScalars compares numbers by their value: JSON does not tell 1 from 1.0.
func equalScalars(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if a == b {
		return true
	}
	x, isNumber := number(a)
	y, areNumbers := number(b)
	return isNumber && areNumbers && x == y
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	default:
		return 0, false
	}
}

// escape makes a key a part of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
