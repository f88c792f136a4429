package apply

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// shortSecret is up to which length a value of a Secret is left in a message: it may as well be
// a word of it.
const shortSecret = 3

// withoutSecrets takes out of a message what Secrets keep, in all the ways in which API servers and
// those they ask are known to write it.
func withoutSecrets(message string, objects ...*unstructured.Unstructured) string {
	var values []string
	for _, object := range objects {
		if object == nil || object.GetKind() != "Secret" || object.GroupVersionKind().Group != "" {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			values = append(values, leaves(object.Object[field])...)
		}
	}
	var written []string
	for _, value := range values {
		written = append(written, waysToWrite(value)...)
	}
	// The longest first, as one may be a part of another.
	slices.SortFunc(written, func(a, b string) int { return len(b) - len(a) })
	for _, text := range written {
		if len(text) > shortSecret {
			message = strings.ReplaceAll(message, text, compare.Redacted)
		}
	}
	return message
}

// leaves returns all that is no map and no list. Whatever is wrong with a Secret, it may hold any.
func leaves(value any) []string {
	var out []string
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for _, item := range v {
			out = append(out, leaves(item)...)
		}
	case []any:
		for _, item := range v {
			out = append(out, leaves(item)...)
		}
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// waysToWrite returns a value as it is and decoded, each plain, encoded, as a list of bytes, and as
// Go and JSON quote it.
func waysToWrite(value string) []string {
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
