package rollingupdate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestWhatARolloutWaitsForIsNamed(t *testing.T) {
	since := metav1.NewTime(time.Date(2025, 3, 17, 21, 0, 0, 0, time.UTC))
	binding := func(cluster string, after time.Duration, failed ...placementv1beta1.FailedResourcePlacement) *placementv1beta1.ClusterResourceBinding {
		b := &placementv1beta1.ClusterResourceBinding{}
		b.Spec.TargetCluster = cluster
		b.Status.Conditions = []metav1.Condition{
			{Type: "Applied", Status: metav1.ConditionTrue, Reason: "AllWorkHaveBeenApplied", LastTransitionTime: since},
			{Type: "Available", Status: metav1.ConditionFalse, Reason: "NotAllWorkAreAvailable", LastTransitionTime: metav1.NewTime(since.Add(after))},
		}
		b.Status.FailedPlacements = failed
		return b
	}
	front := placementv1beta1.FailedResourcePlacement{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "front"},
		Condition:          metav1.Condition{Reason: "ManifestNotAvailableYet", Message: "1 of 3 pods are ready"},
	}
	leaving := binding("leaving", 0)
	leaving.DeletionTimestamp = new(since)
	waiting := []placementv1beta1.BindingObject{binding("later", time.Minute), binding("first", time.Second, front), leaving}
	assert.Equal(t, []wf.Waiting{
		{Cluster: "leaving", Since: since.Time, Step: "Removed"},
		{Cluster: "first", Since: since.Add(time.Second), Step: "Available", Reason: "ManifestNotAvailableYet", Object: "Deployment web/front"},
		{Cluster: "later", Since: since.Add(time.Minute), Step: "Available", Reason: "NotAllWorkAreAvailable"},
	}, describeWaiting(waiting, nil, since.Time))
	for i := range 100 {
		waiting = append(waiting, binding(fmt.Sprint(i), time.Hour))
	}
	assert.Len(t, describeWaiting(waiting, nil, since.Time), maxWaiting)
}
