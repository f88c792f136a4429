package clusterwatch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheEndOfABindingAsksForALookAtItsCluster(t *testing.T) {
	cases := map[string]placementv1beta1.BindingState{
		"the rollout removed it":                       placementv1beta1.BindingStateUnscheduled,
		"somebody deleted it":                          placementv1beta1.BindingStateBound,
		"somebody deleted it before it was rolled out": placementv1beta1.BindingStateScheduled,
	}
	for sentence, state := range cases {
		t.Run(sentence, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Request]())
			defer q.ShutDown()
			for _, cluster := range []string{"one", "two", "three"} {
				binding := &placementv1beta1.ClusterResourceBinding{}
				binding.Spec.State, binding.Spec.TargetCluster = state, cluster
				bindingHandler().Delete(t.Context(), event.TypedDeleteEvent[client.Object]{Object: binding}, q)
			}
			var asked []string
			for q.Len() > 0 {
				request, _ := q.Get()
				asked = append(asked, request.Cluster)
			}
			assert.Equal(t, []string{"one", "two", "three"}, asked)
		})
	}
}
