package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatAnAbandoningWorkHasBroughtStaysAndIsNobodys(t *testing.T) {
	for sentence, mode := range map[string]Mode{
		"a placement is deleted":                          ModeApply,
		"a placement is deleted while the cluster leaves": ModeLeave,
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
			a.mustReconcile(t, "w")
			work := a.work(t, "w")
			work.Annotations = map[string]string{placementv1beta1.DeletePropagationAnnotation: "Abandon"}
			require.NoError(t, a.hub.Update(t.Context(), work))
			require.NoError(t, a.hub.Delete(t.Context(), work))
			require.NoError(t, a.SetMode(t.Context(), mode))
			a.mustReconcile(t, "w")

			got := &corev1.ConfigMap{}
			for _, name := range []string{"a", "b"} {
				require.True(t, a.readMember(t, got, name))
				assert.Empty(t, got.OwnerReferences, "nobody collects it")
				assert.NotContains(t, got.Annotations, placementv1beta1.LastAppliedConfigAnnotation)
				assert.NotContains(t, got.Annotations, placementv1beta1.ManifestHashAnnotation)
			}
			names, err := a.Remaining(t.Context())
			require.NoError(t, err)
			assert.Empty(t, names, "the AppliedWork is gone")
			err = a.hub.Get(t.Context(), types.NamespacedName{Namespace: testNamespace, Name: "w"}, &placementv1beta1.Work{})
			assert.True(t, apierrors.IsNotFound(err), "and the Work")
		})
	}
}
