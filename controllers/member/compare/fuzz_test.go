package compare

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzCompare compares any two objects. Whatever they contain, an object does not differ from
// itself, both directions find the same paths, every path points to a value, and no Secret is
// shown.
func FuzzCompare(f *testing.F) {
	f.Add(`{"data":{"x":"1"}}`, `{"data":{"x":"2","y/z":"~"}}`, false)
	f.Add(`{"data":{"x":"c2VjcmV0"}}`, `{"data":{"x":"b3RoZXI="},"type":null}`, true)
	f.Add(`{"metadata":{"labels":{"kubernetes.io/a":"b"},"annotations":{"a":1}}}`, `{"metadata":{"labels":{"c":null}}}`, false)
	f.Add(`{"spec":{"ports":[{"port":80,"nodePort":1}],"list":[[1],{"a":[]}]}}`, `{"spec":{"ports":"x","list":[[1.0,2]]}}`, false)
	f.Fuzz(func(t *testing.T, hubText, memberText string, secret bool) {
		hub := parseObject(hubText, secret)
		member := parseObject(memberText, secret)
		if hub == nil || member == nil {
			return
		}
		if r := Objects(hub, hub, hub); !r.Empty() {
			t.Fatalf("an object differs from itself: %v", r.Details)
		}
		forth := Objects(hub, hub, member)
		back := Objects(hub, member, hub)
		for i := range back.Details {
			d := &back.Details[i]
			d.ValueInHub, d.ValueInMember = d.ValueInMember, d.ValueInHub
		}
		if diff := cmp.Diff(forth, back); diff != "" {
			t.Fatalf("the directions differ: %s", diff)
		}
		if len(forth.Details) > MaxDetails || forth.Omitted > 0 && len(forth.Details) < MaxDetails {
			t.Fatalf("%d details, %d omitted", len(forth.Details), forth.Omitted)
		}
		for _, d := range forth.Details {
			if !pointsToValue(hub.Object, d.Path) && !pointsToValue(member.Object, d.Path) {
				t.Fatalf("%q leads nowhere", d.Path)
			}
			if secret && isSecretValue(d.Path) && strings.TrimPrefix(d.ValueInHub+d.ValueInMember, Redacted) != "" &&
				d.ValueInHub+d.ValueInMember != Redacted+Redacted {
				t.Fatalf("%q is shown", d.Path)
			}
		}
	})
}

// parseObject is an object of any content, nil if the text is none.
func parseObject(text string, secret bool) *unstructured.Unstructured {
	var content map[string]any
	if json.Unmarshal([]byte(text), &content) != nil || content == nil {
		return nil
	}
	content["apiVersion"], content["kind"] = "v1", "Service"
	if secret {
		content["kind"] = "Secret"
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil
	}
	out := &unstructured.Unstructured{}
	if out.UnmarshalJSON(data) != nil {
		return nil
	}
	return out
}

// pointsToValue tells whether a JSON pointer points to a value.
func pointsToValue(value any, path string) bool {
	for _, token := range strings.Split(path, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(v) {
				return false
			}
			value = v[i]
		default:
			return false
		}
	}
	return true
}

// FuzzUnmet judges any answer to any manifest. Whatever they contain, an object is what it says itself, neither is changed, what the
// cluster adds is no difference, and no Secret is shown.
func FuzzUnmet(f *testing.F) {
	f.Add(`{"data":{"x":"1"}}`, `{"data":{"x":"2","y/z":"~"}}`, false)
	f.Add(`{"data":{"x":"c2VjcmV0"}}`, `{"data":{"x":"b3RoZXI="},"type":null}`, true)
	f.Add(`{"spec":{"ports":[{"port":80,"nodePort":1},{"port":80,"protocol":""}],"type":""}}`, `{"spec":{"ports":[{"port":0}],"type":"ClusterIP"}}`, false)
	f.Add(`{"spec":{"list":[[1],{"a":[]},0,false,""]},"metadata":{"labels":{"c":null}}}`, `{"spec":{"list":[[1.0,2]]}}`, false)
	f.Fuzz(func(t *testing.T, manifestText, answerText string, secret bool) {
		manifest := parseObject(manifestText, secret)
		answer := parseObject(answerText, secret)
		if manifest == nil || answer == nil {
			return
		}
		before := manifest.DeepCopy()
		answered := answer.DeepCopy()
		if r := Unmet(manifest, manifest, nil); !r.Empty() {
			t.Fatalf("an object is not what it says itself: %v", r.Details)
		}
		for _, d := range Unmet(manifest, answer, nil).Details {
			if secret && isSecretValue(d.Path) && strings.ReplaceAll(d.ValueInHub+d.ValueInMember, Redacted, "") != "" {
				t.Fatalf("%q is shown", d.Path)
			}
		}
		if diff := cmp.Diff(before, manifest) + cmp.Diff(answered, answer); diff != "" {
			t.Fatalf("an object was changed: %s", diff)
		}
		before.SetKind("Widget") // of which no field is left out because of others
		answered.SetKind("Widget")
		if hasAll(before.Object, answered.Object) {
			if r := judgeFields(before, answered, nil); !r.Empty() {
				t.Fatalf("an object that has all differs: %v", r.Details)
			}
		}
		if spec, ok := manifest.Object["spec"].(map[string]any); ok || manifest.Object["spec"] == nil {
			more := manifest.DeepCopy()
			if !ok {
				spec = map[string]any{}
			}
			added := map[string]any{"fromTheCluster": "1"}
			maps.Copy(added, spec)
			more.Object["spec"] = added
			if _, says := spec["fromTheCluster"]; !says {
				if r := Unmet(manifest, more, nil); !r.Empty() {
					t.Fatalf("what the cluster adds is a difference: %v", r.Details)
				}
			}
		}
	})
}
