package workmodel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatIsStillToBeRemovedIsRolledUp(t *testing.T) {
	pending := func(reason, message string) placementv1beta1.Work {
		w := placementv1beta1.Work{}
		w.Status.Conditions = []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeRemovalPending, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		}}
		return w
	}
	assert.Nil(t, RemovalPending([]placementv1beta1.Work{{}}), "nothing is said when nothing is left")
	got := RemovalPending([]placementv1beta1.Work{
		{}, pending(placementv1beta1.ReasonWaitingForFinalizers, "b waits"), pending(placementv1beta1.ReasonRemovalRefused, "a is refused"),
	})
	require.NotNil(t, got)
	assert.Equal(t, placementv1beta1.ReasonRemovalRefused, got.Reason, "what a user has to mend comes first")
	assert.Equal(t, "a is refused; b waits", got.Message)

	binding := &placementv1beta1.ClusterResourceBinding{}
	binding.Generation = 2
	binding.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied}, {Type: placementv1beta1.ConditionTypeRemovalPending}}
	kept := WithRemoval(binding, nil, metav1.Now())
	require.Len(t, kept, 2)
	assert.Equal(t, placementv1beta1.ReasonResolved, kept[1].Reason, "what is over is said to be")
	kept = WithRemoval(binding, []placementv1beta1.Work{pending(placementv1beta1.ReasonInUse, "n")}, metav1.Now())
	require.Len(t, kept, 2)
	assert.Equal(t, int64(2), kept[1].ObservedGeneration)
}
