package clustereligibility_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clustereligibility"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func unhealthy(since time.Duration) *metav1.Condition {
	return &metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse, LastTransitionTime: ago(since)}
}

func healthy() *metav1.Condition {
	return &metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Hour)}
}

// cluster joined, its agent said something about its health and the hub noted something.
func cluster(beat time.Duration, said, noted *metav1.Condition) *clusterv1beta1.MemberCluster {
	c := &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: ago(beat),
		Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}},
	}}}}
	if said != nil {
		c.Status.AgentStatus[0].Conditions = append(c.Status.AgentStatus[0].Conditions, *said)
	}
	if noted != nil {
		c.Status.Conditions = []metav1.Condition{*noted}
	}
	return c
}

func TestHowLongAClusterIsUnhealthy(t *testing.T) {
	cases := map[string]struct {
		agent, hub *metav1.Condition
		eligible   bool
	}{
		"a short while by the hub's clock":              {unhealthy(time.Hour), unhealthy(time.Minute), true},
		"a long while by the hub's clock":               {unhealthy(time.Minute), unhealthy(time.Hour), false},
		"a long while by the agent's clock alone":       {unhealthy(time.Hour), nil, false},
		"a short while by the agent's clock alone":      {unhealthy(time.Minute), nil, true},
		"not any more, which the agent is first to say": {healthy(), unhealthy(time.Hour), true},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.eligible, clustereligibility.Ineligible(cluster(time.Second, tc.agent, tc.hub), now) == "")
		})
	}
}

func TestAClusterThatReportsSeldomIsEligibleBetweenItsHeartbeats(t *testing.T) {
	seldom := cluster(10*time.Minute, healthy(), nil)
	seldom.Spec.HeartbeatPeriodSeconds = 600
	assert.Empty(t, clustereligibility.Ineligible(seldom, now))
	assert.Equal(t, 20*time.Minute, clustereligibility.Until(seldom).Sub(now), "three heartbeats are allowed for")
	assert.NotEmpty(t, clustereligibility.Ineligible(seldom, now.Add(20*time.Minute+1)))
}

func TestAClusterIsEligibleUntilTheInstantThatIsForetold(t *testing.T) {
	cases := map[string]struct {
		cluster *clusterv1beta1.MemberCluster
		want    time.Duration
	}{
		"five minutes after its last heartbeat":                     {cluster(time.Minute, healthy(), nil), 4 * time.Minute},
		"five minutes after it became unhealthy":                    {cluster(time.Minute, unhealthy(3*time.Minute), nil), 2 * time.Minute},
		"after its last heartbeat if that comes first":              {cluster(4*time.Minute, unhealthy(time.Minute), nil), time.Minute},
		"by the hub's clock rather than by the agent's":             {cluster(time.Minute, unhealthy(time.Hour), unhealthy(4*time.Minute)), time.Minute},
		"what it said of its health before does not count any more": {cluster(time.Minute, healthy(), unhealthy(time.Hour)), 4 * time.Minute},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			until := clustereligibility.Until(tc.cluster)
			assert.Equal(t, tc.want, until.Sub(now))
			assert.Empty(t, clustereligibility.Ineligible(tc.cluster, until))
			assert.NotEmpty(t, clustereligibility.Ineligible(tc.cluster, until.Add(time.Nanosecond)))
		})
	}
	assert.Zero(t, clustereligibility.Until(&clusterv1beta1.MemberCluster{}), "a cluster without an agent never was eligible")
}
