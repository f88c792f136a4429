//go:build integration

package security

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// spec is one attack on the fleet.
type spec struct {
	*testing.T
	*fleet
}

// attacks are specs by the sentence that says what the attacker does.
type attacks map[string]func(*spec)

// attempt makes every attack, one after the other: they are after the same victims.
func attempt(t *testing.T, all attacks) {
	t.Helper()
	for sentence, attack := range all {
		t.Run(sentence, func(t *testing.T) { attack(&spec{T: t, fleet: target}) })
	}
}

// deed is what an attacker tries with his client of the hub. It returns the object that would be new.
type deed func(context.Context, client.Client) (*unstructured.Unstructured, error)

// refused says that the hub's API server refuses a deed, with a sentence.
func refused(by *attacker, do deed, sentence string) func(*spec) {
	return func(s *spec) { s.requireRefusal(by, do, sentence) }
}

// notAllowed is what RBAC says.
const notAllowed = "cannot "

// forbidden says that RBAC does not grant a deed: none of the attacker's rights reaches so far.
func forbidden(by *attacker, do deed) func(*spec) { return refused(by, do, notAllowed) }

// requireRefusal has an attacker try, and asserts that the server itself refuses, and says why. What is admitted against
// all expectation is removed. An attacker whom another writer was faster than tries again: a conflict is no refusal.
func (s *spec) requireRefusal(by *attacker, do deed, sentence string) {
	s.Helper()
	session := by.session(s)
	var object *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		object, err = do(s.Context(), session)
		return err
	})
	if err == nil && object != nil {
		assert.NoError(s, client.IgnoreNotFound(s.hub.Delete(s.Context(), object)))
	}
	require.Error(s, err, "%s may do it, but expected: %s", by.name, sentence)
	var status apierrors.APIStatus
	require.ErrorAs(s, err, &status)
	require.True(s, apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "refused for another reason: %v", err)
	assert.Contains(s, err.Error(), sentence)
}

// parse decodes one manifest.
func parse(manifest string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	err := yaml.UnmarshalStrict([]byte(manifest), &object.Object)
	return object, err
}

// creates tries to create what a manifest says.
func creates(manifest string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		object, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		return object, c.Create(ctx, object)
	}
}

// patches tries to change an object, named by a manifest without content, or its sub-resource, by a merge patch.
func patches(manifest, patch string, subresource ...string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		object, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		content, err := yaml.YAMLToJSONStrict([]byte(patch))
		if err != nil {
			return nil, err
		}
		merge := client.RawPatch(types.MergePatchType, content)
		for _, name := range subresource {
			return nil, c.SubResource(name).Patch(ctx, object, merge)
		}
		return nil, c.Patch(ctx, object, merge)
	}
}

// deletes tries to delete an object, named by a manifest without content.
func deletes(manifest string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		object, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		return nil, c.Delete(ctx, object)
	}
}

// reads tries to read an object, named by a manifest without content.
func reads(manifest string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		object, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		return nil, c.Get(ctx, client.ObjectKeyFromObject(object), object)
	}
}

// lists tries to list the objects of a kind in a namespace, or in all.
func lists(manifest, namespace string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		object, err := parse(manifest)
		if err != nil {
			return nil, err
		}
		list := &unstructured.UnstructuredList{Object: object.Object}
		list.SetKind(object.GetKind() + "List")
		return nil, c.List(ctx, list, client.InNamespace(namespace))
	}
}
