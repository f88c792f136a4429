package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// One API server of several may not serve a kind yet of which another has stored objects.
func TestADefinitionOfWhichTheObjectsAreNotShownIsNotTakenForOneWithout(t *testing.T) {
	definition := func(established string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
			"spec": map[string]any{
				"group": "example.com", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
				"versions": []any{map[string]any{"name": "v1", "served": true}},
			},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
		}}
	}
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	objects := metadatafake.NewSimpleMetadataClient(scheme)
	objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "")
	})
	lister := &contentLister{metadata: objects}
	look := func(schema.GroupKind, *metav1.PartialObjectMetadata) (bool, error) { return true, nil }
	require.ErrorIs(t, lister.visit(t.Context(), definition("True"), look), errNotServed)
	assert.NoError(t, lister.visit(t.Context(), definition("False"), look), "another definition has its names: it has no objects")
}

// A definition goes before the Namespace of the same Work, and an API of an operator may say that it serves what it does not.
func TestAKindThatIsNotServedHidesNothingInANamespace(t *testing.T) {
	a := newAgent(t, nil, nil)
	a.has(metadataOf("ServiceAccount", "mine"))
	objects := a.contents.metadata.(*metadatafake.FakeMetadataClient)
	objects.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "")
	})
	var seen []string
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "n"}}}
	require.NoError(t, a.contents.visit(t.Context(), namespace, func(_ schema.GroupKind, o *metav1.PartialObjectMetadata) (bool, error) {
		seen = append(seen, o.Name)
		return true, nil
	}))
	assert.Equal(t, []string{"mine"}, seen)
}
