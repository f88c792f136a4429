package hub

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheCacheHoldsNoManifestsAndNoManagedFields(t *testing.T) {
	options := CacheOptions()
	managed := []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	work := &placementv1beta1.Work{}
	work.ManagedFields = managed
	work.Spec.Workload.Manifests = make([]placementv1beta1.Manifest, 3)
	work.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{}
	found := false
	for object, by := range options.ByObject {
		if _, ok := object.(*placementv1beta1.Work); ok {
			found = true
			_, err := by.Transform(work)
			require.NoError(t, err)
		}
	}
	require.True(t, found)
	assert.Empty(t, work.Spec.Workload.Manifests)
	assert.NotNil(t, work.Spec.ApplyStrategy)
	assert.Empty(t, work.ManagedFields)

	for name, object := range map[string]client.Object{
		"bindings": &placementv1beta1.ClusterResourceBinding{}, "metadata": &metav1.PartialObjectMetadata{},
	} {
		object.SetManagedFields(managed)
		_, err := options.DefaultTransform(object)
		require.NoError(t, err)
		assert.Empty(t, object.GetManagedFields(), name)
	}
}

// A list that comes as a watch is transformed when it is received, and again when it is taken into the cache.
func TestWhatIsTakenIntoTheCacheTwiceStaysAsItIs(t *testing.T) {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "app-work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: "app-one"}}}
	work.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{
		{Conditions: []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse}}, BackReportedStatus: &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{Raw: []byte(`{"status":{}}`)}}},
		{Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 1}},
	}
	require.False(t, rules.IsSigned(work))
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	binding.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "load-balancer", Operation: metav1.ManagedFieldsOperationApply}}
	for kind, object := range map[string]client.Object{"Work": work, "binding": binding} {
		transform := transformOf(object)
		_, err := transform(object)
		require.NoError(t, err)
		once := object.DeepCopyObject()
		_, err = transform(object)
		require.NoError(t, err)
		assert.Equal(t, once, object, kind)
	}
	assert.Empty(t, fence.Untrack(binding), "that a user has applied a part of it is known")
}

func TestTheCacheHoldsOfAQuestionForImagesOnlyTheirNames(t *testing.T) {
	question := &fleetflowv1alpha1.MemberQuestion{Spec: fleetflowv1alpha1.MemberQuestionSpec{
		PullImages: &fleetflowv1alpha1.PullImagesQuestion{Revision: "1", OmittedImages: 3, Pods: []fleetflowv1alpha1.ImagesOfPods{{
			Namespace: "web", Images: []string{"web:1"}, PullPolicy: corev1.PullAlways, PullSecrets: []string{"s"}, NodeName: "n",
			NodeSelector: map[string]string{"a": "b"}, RequiredNodes: &corev1.NodeSelector{}, Tolerations: []corev1.Toleration{{Key: "k"}},
		}}},
	}}
	for range 2 { // a list that comes as a watch is transformed twice
		_, err := transformOf(question)(question)
		require.NoError(t, err)
		assert.Equal(t, &fleetflowv1alpha1.PullImagesQuestion{Revision: "1", OmittedImages: 3, Pods: []fleetflowv1alpha1.ImagesOfPods{
			{Namespace: "web", Images: []string{"web:1"}},
		}}, question.Spec.PullImages)
	}
}
