package apply

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// maxPlainLength is the length up to which a value of a Secret stays in a message: it may also be a
// part of a common word.
const maxPlainLength = 3

// isSecret reports whether an object is a Secret in any version.
func isSecret(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// showsSecret reports whether an object is a Secret with a copy of its values in an annotation: KubeFleet's agent and earlier
// ones of ours have left it there as the base of their next merge.
func showsSecret(object *unstructured.Unstructured) bool {
	_, shown := object.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]
	return shown && isSecret(object)
}

// redactSecrets removes the values of Secrets from a message, in all forms in which API servers and
// webhooks are known to write them.
func redactSecrets(message string, objects ...*unstructured.Unstructured) string {
	var values []string
	for _, object := range objects {
		if object == nil || !isSecret(object) {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			values = append(values, scalarTexts(object.Object[field])...)
		}
	}
	return hideValues(message, values)
}

// hideValues removes values from a message, in all forms in which API servers and webhooks are known to write them.
func hideValues(message string, values []string) string {
	var written []string
	for _, value := range values {
		written = append(written, spellings(value)...)
	}
	// The longest come first, as one may be part of another.
	slices.SortFunc(written, func(a, b string) int { return len(b) - len(a) })
	for _, text := range written {
		if len(text) > maxPlainLength {
			message = strings.ReplaceAll(message, text, compare.Redacted)
		}
	}
	return message
}

// scalarTexts returns all values in a tree that are neither maps nor lists. A malformed Secret may
// have any shape.
func scalarTexts(value any) []string {
	var out []string
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for _, item := range v {
			out = append(out, scalarTexts(item)...)
		}
	case []any:
		for _, item := range v {
			out = append(out, scalarTexts(item)...)
		}
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// spellings returns a value as it is and decoded, each plain, encoded, as a list of bytes, and
// quoted as Go and JSON do.
func spellings(value string) []string {
	texts := []string{value}
	if clear, err := base64.StdEncoding.DecodeString(value); err == nil {
		texts = append(texts, string(clear))
	}
	var out []string
	for _, text := range texts {
		quoted := strconv.Quote(text)
		out = append(out, text, base64.StdEncoding.EncodeToString([]byte(text)), fmt.Sprintf("%d", []byte(text)), quoted[1:len(quoted)-1])
		if inJSON, err := json.Marshal(text); err == nil {
			out = append(out, string(inJSON[1:len(inJSON)-1]))
		}
	}
	return out
}
