package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestADeletionNamesWhatItWaitsFor(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	placement.Generation = 3
	bindingOn := func(cluster, message string) placementv1beta1.BindingObject {
		b := &placementv1beta1.ClusterResourceBinding{}
		b.Spec.TargetCluster = cluster
		if message != "" {
			b.Status.Conditions = []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeRemovalPending, Status: metav1.ConditionTrue,
				Reason: placementv1beta1.ReasonRemovalRefused, Message: message,
			}}
		}
		return b
	}
	facts := &Facts{Placement: placement, Bindings: []placementv1beta1.BindingObject{
		bindingOn("member-2", ""), bindingOn("member-1", "ConfigMap b41/leaves is still there, as the API server of the cluster refuses: no"),
	}}
	status := Deleting(facts, nil, metav1.Now())
	deleting := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeDeleting)
	require.NotNil(t, deleting)
	assert.Contains(t, deleting.Message, "removed from 2 cluster(s): member-1, member-2. ")
	assert.Contains(t, deleting.Message, "member-1: ConfigMap b41/leaves is still there, as the API server of the cluster refuses: no")
	pending := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
	require.NotNil(t, pending)
	assert.Equal(t, placementv1beta1.ReasonRemovalRefused, pending.Reason)
	assert.Equal(t, int64(3), pending.ObservedGeneration)

	facts.Bindings = facts.Bindings[:1]
	status = Deleting(facts, nil, metav1.Now())
	assert.Nil(t, meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeRemovalPending))
}
