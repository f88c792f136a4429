// Package fence builds JSON patches (RFC 6902) that pin what a decision was based on: a patch whose tests fail changes nothing. The
// resourceVersion is no such fence on an object with several writers, because each status write moves it.
//
// It writes the status and the finalizers of objects that other controllers, activities and users write to as well. Each such write is
// one patch that pins only what it rests on, so that it is neither refused because of another write nor overwrites one.
package fence

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Op is one operation of a patch.
type Op struct {
	Op   string
	Path string
	// Value is left out of the patch for "remove" only: a test for null is one.
	Value any
}

// MarshalJSON writes the operation as the RFC has it.
func (o Op) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != "remove" {
		fields["value"] = o.Value
	}
	return json.Marshal(fields)
}

// Test makes the whole patch fail unless the path has the value; nil stands for
// a path that is not there.
func Test(path string, value any) Op { return Op{"test", path, value} }

// Add sets a field or a map's key, there or not.
func Add(path string, value any) Op { return Op{"add", path, value} }

// Replace sets a field that is there.
func Replace(path string, value any) Op { return Op{"replace", path, value} }

// Remove takes away a field that is there.
func Remove(path string) Op { return Op{Op: "remove", Path: path} }

// Untrack makes the API server forget which client has written which field of an object (metadata.managedFields), and stop noting
// it. For a binding or a Work it is a third to a half of what is stored and sent, and of what each write costs the API server. If
// a user has applied a part of the object on the server side, who has written what stays: the API server needs it to take away
// what the user applies no more. It has no effect on a status subresource. The source is "Clearing managedFields" in Kubernetes'
// page on server-side apply.
func Untrack(object client.Object) []Op {
	if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply
	}) {
		return nil
	}
	return []Op{Add("/metadata/managedFields", []metav1.ManagedFieldsEntry{{}})}
}

// AnnotationPath returns the path of an annotation, LabelPath that of a label.
func AnnotationPath(key string) string { return "/metadata/annotations/" + escapePointer(key) }

// LabelPath returns the path of a label.
func LabelPath(key string) string { return "/metadata/labels/" + escapePointer(key) }

// escapePointer makes a key usable in a JSON pointer (RFC 6901).
func escapePointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// Annotate sets an annotation on an object last seen with these annotations,
// provided that it has not been changed since.
func Annotate(seen map[string]string, key, value string) []Op {
	if len(seen) == 0 {
		return []Op{Test("/metadata/annotations", nil), Add("/metadata/annotations", map[string]string{key: value})}
	}
	var old any
	if current, ok := seen[key]; ok {
		old = current
	}
	return []Op{Test(AnnotationPath(key), old), Add(AnnotationPath(key), value)}
}

// Patch joins operations to a patch of the object with this uid, and of no
// other that may have come to its name.
func Patch(uid types.UID, operations ...Op) (client.Patch, error) {
	data, err := json.Marshal(append([]Op{Test("/metadata/uid", uid)}, operations...))
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}
