package resourcewatch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

func TestOnlyWhatSelectingNeedsIsKeptOfAnObject(t *testing.T) {
	full := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "app", Name: "s", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"},
			Annotations:     map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 5000)},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "d", UID: "owner"}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
	require.NoError(t, err)
	content["spec"] = map[string]any{"text": strings.Repeat("x", 5000)}
	for name, tc := range map[string]struct {
		gk     schema.GroupKind
		object metav1.Object
	}{
		"its metadata": {schema.GroupKind{Kind: "ConfigMap"}, full},
		"its content":  {schema.GroupKind{Kind: "Service"}, &unstructured.Unstructured{Object: content}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := reduceMetadata(tc.gk)(tc.object)
			require.NoError(t, err)
			want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "app", Name: "s", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
				Annotations:     map[string]string{versionKey: snapshot.Version(tc.gk, tc.object)},
				OwnerReferences: []metav1.OwnerReference{{UID: "owner"}},
			}}
			assert.Empty(t, cmp.Diff(want, kept))
			again, err := reduceMetadata(tc.gk)(kept)
			require.NoError(t, err)
			assert.Same(t, kept, again, "an informer may transform an object twice")
		})
	}
}
