package placement

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one step of a JSON patch (RFC 6902). A patch whose tests fail
// changes nothing, which is how a write is pinned to what the decision was based on.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func test(path string, value any) operation    { return operation{"test", path, value} }
func replace(path string, value any) operation { return operation{"replace", path, value} }

// jsonPatch joins operations to a patch of an object with this uid.
func jsonPatch(uid types.UID, operations ...operation) (client.Patch, error) {
	data, err := json.Marshal(append([]operation{test("/metadata/uid", uid)}, operations...))
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}

// annotate sets an annotation on an object last seen with these annotations,
// provided that nobody has changed that annotation since.
func annotate(annotations map[string]string, key, value string) []operation {
	if len(annotations) == 0 {
		return []operation{
			test("/metadata/annotations", nil),
			{"add", "/metadata/annotations", map[string]string{key: value}},
		}
	}
	path := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	var old any
	if current, ok := annotations[key]; ok {
		old = current
	}
	return []operation{test(path, old), {"add", path, value}}
}
