package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestHowLongAClusterIsUnhealthy(t *testing.T) {
	unhealthy := func(since time.Duration) metav1.Condition {
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}
	}
	cases := map[string]struct {
		agent, hub *metav1.Condition
		eligible   bool
	}{
		"a short while by the hub's clock":              {new(unhealthy(time.Hour)), new(unhealthy(time.Minute)), true},
		"a long while by the hub's clock":               {new(unhealthy(time.Minute)), new(unhealthy(time.Hour)), false},
		"a long while by the agent's clock alone":       {new(unhealthy(time.Hour)), nil, false},
		"a short while by the agent's clock alone":      {new(unhealthy(time.Minute)), nil, true},
		"not any more, which the agent is first to say": {&metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue}, new(unhealthy(time.Hour)), true},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			c := cluster("c")
			c.Status.AgentStatus[0].Conditions[1] = *tc.agent
			if tc.hub != nil {
				c.Status.Conditions = []metav1.Condition{*tc.hub}
			}
			assert.Equal(t, tc.eligible, scheduler.Ineligible(&c, now) == "")
		})
	}
}
