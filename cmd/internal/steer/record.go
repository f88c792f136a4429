package steer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Record keeps the objects that a dry run would write, each as it would be in the end. What would be deleted is not in it.
type Record struct {
	Objects []*unstructured.Unstructured
}

// recorder is a client for writes that keeps them in a record and stores nothing.
type recorder struct {
	// Client has the API server check what it is given, and store nothing of it.
	client.Client
	*Record
	// sends says that the API server is asked; otherwise changes are worked out here.
	sends bool
}

// statusRecorder is the recorder of changes of a status.
type statusRecorder struct {
	client.SubResourceWriter
	of recorder
}

// Create keeps a new object. Its status is left out, as the API server would.
func (r recorder) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if r.sends {
		if err := r.Client.Create(ctx, object, options...); err != nil {
			return err
		}
	}
	content, err := r.contentOf(object)
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content.Object, "status")
	r.keepObject(content)
	return nil
}

// Patch keeps a changed object.
func (r recorder) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return r.keepPatched(object, patch, func() error { return r.Client.Patch(ctx, object, patch, options...) })
}

// Delete drops what was kept of an object.
func (r recorder) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if r.sends {
		if err := r.Client.Delete(ctx, object, options...); err != nil {
			return err
		}
	}
	content, err := r.contentOf(object)
	if err == nil {
		r.Objects = slices.DeleteFunc(r.Objects, sameAs(content))
	}
	return err
}

// Status returns a client for changes of the status.
func (r recorder) Status() client.SubResourceWriter { return statusRecorder{r.Client.Status(), r} }

// Patch keeps an object whose status is changed.
func (s statusRecorder) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.of.keepPatched(object, patch, func() error { return s.SubResourceWriter.Patch(ctx, object, patch, options...) })
}

// keepPatched keeps what a patch makes of an object. The API server knows nothing of earlier changes of a dry run: a second one is worked
// out here.
func (r recorder) keepPatched(object client.Object, patch client.Patch, send func() error) error {
	data, err := patch.Data(object)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	before, err := r.contentOf(object)
	if err != nil {
		return err
	}
	if r.sends {
		if err := send(); err != nil {
			return err
		}
	}
	at := slices.IndexFunc(r.Objects, sameAs(before))
	switch {
	case at >= 0:
		before = r.Objects[at]
	case r.sends:
		answer, err := r.contentOf(object)
		if err == nil {
			r.keepObject(answer)
		}
		return err
	}
	after, err := applyPatch(before, patch.Type(), data)
	if err == nil {
		r.keepObject(after)
	}
	return err
}

// contentOf returns an object as people write it: with its kind, without the fields of which each client is the owner.
func (r recorder) contentOf(object client.Object) (*unstructured.Unstructured, error) {
	kind, err := r.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %s: %w", object.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind.Kind, object.GetName(), err)
	}
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	if object.GetCreationTimestamp().Time.IsZero() {
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	}
	written := &unstructured.Unstructured{Object: content}
	written.SetGroupVersionKind(kind)
	return written, nil
}

// keepObject keeps an object in the place of what was kept of it before.
func (r *Record) keepObject(object *unstructured.Unstructured) {
	if at := slices.IndexFunc(r.Objects, sameAs(object)); at >= 0 {
		r.Objects[at] = object
		return
	}
	r.Objects = append(r.Objects, object)
}

// sameAs reports of objects whether each is the given one, by kind and name.
func sameAs(object *unstructured.Unstructured) func(*unstructured.Unstructured) bool {
	return func(other *unstructured.Unstructured) bool {
		return other.GroupVersionKind() == object.GroupVersionKind() && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(object)
	}
}

// applyPatch returns an object with a patch applied, as the API server would.
func applyPatch(object *unstructured.Unstructured, of types.PatchType, data []byte) (*unstructured.Unstructured, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", object.GetName(), err)
	}
	switch of {
	case types.MergePatchType:
		content, err = jsonpatch.MergePatch(content, data)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(data); err == nil {
			content, err = operations.Apply(content)
		}
	default:
		err = fmt.Errorf("a patch of type %s cannot be worked out here: use --dry-run=server", of)
	}
	changed := &unstructured.Unstructured{}
	if err == nil {
		err = changed.UnmarshalJSON(content)
	}
	if err != nil {
		return nil, fmt.Errorf("working out what becomes of %s: %w", object.GetName(), err)
	}
	return changed, nil
}
