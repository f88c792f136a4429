package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// secretName is what fields, keys and variables are called that most likely have a credential.
var secretName = regexp.MustCompile(`(?i)passw(or)?d|passphrase|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|connection[-_.]?string`)

// plainNames are fields that are called so and have no credential: names of objects, and switches.
var plainNames = regexp.MustCompile(`(?i)(name|names|ref|refs|secrets|path|namespace|type|class|policy|seconds|enabled|mode|provider|url|audience|kind)$`)

// maskMark follows a hidden value while objects are compared, so that two different values still differ.
var maskMark = regexp.MustCompile(`#[0-9a-f]{0,64}`)

// masker hides the values of an object that are named like a credential, and remembers them.
type masker struct{ values []string }

// masked returns a copy of an object without these values.
func (m *masker) masked(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	m.maskMap(out.Object)
	return out
}

func (m *masker) maskMap(fields map[string]any) {
	variable, _ := fields["name"].(string) // an item as of env has its value beside its name
	for key, value := range fields {
		isNamed := isSecretName(key) || key == "value" && isSecretName(variable)
		switch v := value.(type) {
		case string:
			if isNamed || strings.Contains(v, "PRIVATE KEY-----") {
				fields[key] = m.hide(v)
			}
		default:
			m.maskValue(value)
		}
	}
}

func (m *masker) maskValue(value any) {
	switch v := value.(type) {
	case map[string]any:
		m.maskMap(v)
	case []any:
		for _, item := range v {
			m.maskValue(item)
		}
	}
}

// hasPartIn reports whether a text has one of the hidden values, or the beginning of one: the text may be cut off.
func (m *masker) hasPartIn(text string) bool {
	return slices.ContainsFunc(m.values, func(value string) bool {
		return len(value) > maxPlainLength && strings.Contains(text, value[:min(len(value), maskedBeginning)])
	})
}

// maskedBeginning is how many bytes of a value tell it from others.
const maskedBeginning = 16

func (m *masker) hide(value string) string {
	m.values = append(m.values, value)
	sum := sha256.Sum256([]byte(value))
	return compare.Redacted + "#" + hex.EncodeToString(sum[:])
}

func isSecretName(name string) bool {
	return secretName.MatchString(name) && !plainNames.MatchString(name)
}

// withoutMarks returns a value of a masked object as it is told.
func withoutMarks(value string) string {
	if !strings.Contains(value, compare.Redacted) {
		return value
	}
	parts := strings.Split(value, compare.Redacted)
	for i := 1; i < len(parts); i++ {
		if at := maskMark.FindStringIndex(parts[i]); at != nil && at[0] == 0 {
			parts[i] = parts[i][at[1]:]
		}
	}
	return strings.Join(parts, compare.Redacted)
}
