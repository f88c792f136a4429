package waker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestThePriorityOfAWorkflowIsThatOfThePriorityClassOfItsPlacement(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, schedulingv1.AddToScheme(scheme))
	var objects []client.Object
	for name, value := range map[string]int32{"critical": 2_000_000_000, "urgent": 1, "zero": 0, "later": -1} {
		objects = append(objects, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	for _, class := range []string{"critical", "urgent", "zero", "later", "unknown", ""} {
		objects = append(objects, &placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + class},
			Spec:       placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{QueuePriorityClassName: class}},
		})
	}
	objects = append(objects,
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "without-policy"}},
		&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "of-urgent"}},
		&placementv1beta1.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "of-later"},
			Spec:       placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{QueuePriorityClassName: "critical"}},
		})
	priorities := waker.Priorities{Cached: fixture.NewClientBuilder(scheme).WithObjects(objects...).Build()}
	for ref, want := range map[wf.Ref]int{
		{Kind: wf.KindClusterResourcePlacement, Name: "of-critical"}:          1,
		{Kind: wf.KindClusterResourcePlacement, Name: "of-urgent"}:            2,
		{Kind: wf.KindClusterResourcePlacement, Name: "of-zero"}:              0,
		{Kind: wf.KindClusterResourcePlacement, Name: "of-later"}:             4,
		{Kind: wf.KindClusterResourcePlacement, Name: "of-unknown"}:           0,
		{Kind: wf.KindClusterResourcePlacement, Name: "of-"}:                  0,
		{Kind: wf.KindClusterResourcePlacement, Name: "without-policy"}:       0,
		{Kind: wf.KindClusterResourcePlacement, Name: "nowhere"}:              0,
		{Kind: wf.KindResourcePlacement, Namespace: "shop", Name: "of-later"}: 2,
		{Kind: wf.KindClusterStagedUpdateRun, Name: "run"}:                    2,
		{Kind: wf.KindClusterStagedUpdateRun, Name: "nowhere"}:                0,
	} {
		assert.Equal(t, want, priorities.KeyOf(t.Context(), ref), "%+v", ref)
	}
}
