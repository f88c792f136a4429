package override

import (
	"fmt"
	"strings"

	apicontent "k8s.io/apimachinery/pkg/api/validate/content"
)

// acceptsValue says whether a value can be put where the path leads: labels and annotations have
// the same form in all objects, so a wrong one is found here rather than on every member.
func (p pointer) acceptsValue(value any) error {
	if !p.inMetadata() {
		return nil
	}
	labels := p.names[1] == "labels"
	if len(p.names) == 3 {
		return checkEntry(labels, p.names[2], value)
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("metadata.%s must be an object of strings, not %s", p.names[1], typeName(value))
	}
	for key, entry := range entries {
		if err := checkEntry(labels, key, entry); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry says whether a label or annotation is one.
func checkEntry(label bool, key string, value any) error {
	what := "annotation"
	if label {
		what = "label"
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("the value of %s %q must be a string, not %s", what, key, typeName(value))
	}
	checked := key
	if !label {
		checked = strings.ToLower(key) // as the API server does
	}
	if wrong := apicontent.IsLabelKey(checked); len(wrong) > 0 {
		return fmt.Errorf("%q cannot be the key of a %s: %s", key, what, strings.Join(wrong, ", "))
	}
	if !label {
		return nil
	}
	if wrong := apicontent.IsLabelValue(text); len(wrong) > 0 {
		return fmt.Errorf("%q cannot be the value of label %q: %s", text, key, strings.Join(wrong, ", "))
	}
	return nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
