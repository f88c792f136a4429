package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestReport(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := metav1.NewTime(before.Add(time.Minute))
	wellKnown := Survey{NodeCount: 3, Version: "v1.36.3", EntryPoint: "https://member"}
	tests := map[string]struct {
		stage         Phase
		remaining     []string
		survey        Survey
		joined        metav1.ConditionStatus
		joinedReason  string
		message       string
		healthy       metav1.ConditionStatus
		healthyReason string
	}{
		"a cluster that is fine": {
			survey: wellKnown, joined: metav1.ConditionTrue, joinedReason: clusterv1beta1.ReasonInternalMemberClusterJoined,
			healthy: metav1.ConditionTrue, healthyReason: clusterv1beta1.ReasonInternalMemberClusterHealthy,
		},
		"a cluster whose API server is not ready": {
			survey: Survey{Unhealthy: "etcd failed"}, joined: metav1.ConditionTrue, joinedReason: clusterv1beta1.ReasonInternalMemberClusterJoined,
			healthy: metav1.ConditionFalse, healthyReason: clusterv1beta1.ReasonInternalMemberClusterUnhealthy,
		},
		"a cluster on its way out has not left yet": {
			stage: PhaseLeaving, remaining: []string{"a", "b", "c", "d", "e", "f"}, survey: wellKnown,
			joined: metav1.ConditionTrue, joinedReason: clusterv1beta1.ReasonInternalMemberClusterJoined, message: "6 Works have placed: a, b, c, d, e …",
			healthy: metav1.ConditionTrue, healthyReason: clusterv1beta1.ReasonInternalMemberClusterHealthy,
		},
		"a cluster that has left": {
			stage: PhaseLeft, survey: wellKnown, joined: metav1.ConditionFalse, joinedReason: clusterv1beta1.ReasonInternalMemberClusterLeft,
			healthy: metav1.ConditionTrue, healthyReason: clusterv1beta1.ReasonInternalMemberClusterHealthy,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Report(Progress{Phase: tc.stage, Remaining: tc.remaining}, tc.survey, clusterv1beta1.InternalMemberClusterStatus{}, 4, now)
			require.Len(t, got.AgentStatus, 1)
			agent := got.AgentStatus[0]
			assert.Equal(t, clusterv1beta1.MemberAgent, agent.Type)
			assert.Equal(t, now, agent.LastReceivedHeartbeat)
			joined := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeJoined)
			require.NotNil(t, joined)
			assert.Equal(t, tc.joined, joined.Status)
			assert.Equal(t, tc.joinedReason, joined.Reason)
			assert.Contains(t, joined.Message, tc.message)
			assert.EqualValues(t, 4, joined.ObservedGeneration)
			healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeHealthy)
			require.NotNil(t, healthy)
			assert.Equal(t, tc.healthy, healthy.Status)
			assert.Equal(t, tc.healthyReason, healthy.Reason)
		})
	}
}

func TestReportKeepsWhatHasNotChanged(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := metav1.NewTime(before.Add(time.Minute))
	first := Report(Progress{}, Survey{NodeCount: 3, Version: "v1.36.3"}, clusterv1beta1.InternalMemberClusterStatus{
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.ServiceExportImportAgent}},
		Namespaces:  map[string]string{"a": "work"},
	}, 1, before)
	second := Report(Progress{}, Survey{NodeCount: 4, Unhealthy: "away"}, first, 1, now)

	require.Len(t, second.AgentStatus, 2, "the reports of other agents stay")
	conditions := second.AgentStatus[1].Conditions
	assert.Equal(t, before, meta.FindStatusCondition(conditions, clusterv1beta1.ConditionTypeJoined).LastTransitionTime)
	assert.Equal(t, now, meta.FindStatusCondition(conditions, clusterv1beta1.ConditionTypeHealthy).LastTransitionTime)
	assert.Equal(t, "4", second.Properties[clusterv1beta1.NodeCountProperty].Value)
	assert.NotContains(t, second.Properties, clusterv1beta1.KubernetesVersionProperty, "what could not be read is not reported")
	assert.Nil(t, second.Namespaces, "of an agent that does not report them, an earlier report is taken back")
	assert.Equal(t, before, first.AgentStatus[1].LastReceivedHeartbeat, "the earlier status is not changed")
}

func TestUntilReport(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	last := LastReport{At: now.Add(-10 * time.Second), Next: now.Add(20 * time.Second), Shape: Shape{Nodes: 3}, Generation: 2}
	lately := last
	nearly := last
	lately.At = now.Add(-2 * time.Second)
	nearly.At = now.Add(-2 * time.Second)
	nearly.Next = now.Add(time.Second)
	tests := map[string]struct {
		last       LastReport
		stage      Phase
		shape      Shape
		generation int64
		now        time.Time
		want       time.Duration
	}{
		"the first report is made at once":       {LastReport{}, PhaseJoined, Shape{Nodes: 3}, 2, now, 0},
		"without news it waits for its time":     {last, PhaseJoined, Shape{Nodes: 3}, 2, now, 20 * time.Second},
		"when the time has come it is made":      {last, PhaseJoined, Shape{Nodes: 3}, 2, now.Add(20 * time.Second), 0},
		"also if the time is long over":          {last, PhaseJoined, Shape{Nodes: 3}, 2, now.Add(time.Hour), 0},
		"another number of nodes is news":        {last, PhaseJoined, Shape{Nodes: 4}, 2, now, 0},
		"and so are other namespaces":            {last, PhaseJoined, Shape{3, "a,b"}, 2, now, 0},
		"but not at once after a report":         {lately, PhaseJoined, Shape{Nodes: 4}, 2, now, minShapeReportInterval - 2*time.Second},
		"a heartbeat that is due is not put off": {nearly, PhaseJoined, Shape{Nodes: 4}, 2, now, time.Second},
		"another wish of the hub is news":        {last, PhaseJoined, Shape{Nodes: 3}, 3, now, 0},
		"so is another stage of joining":         {last, PhaseLeft, Shape{Nodes: 3}, 2, now, 0},
		"the hub does not wait for its wish":     {lately, PhaseLeft, Shape{Nodes: 3}, 3, now, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, UntilReport(tc.last, tc.stage, tc.shape, tc.generation, tc.now))
		})
	}
}

func TestSpread(t *testing.T) {
	assert.Equal(t, 95*time.Second, Spread(100*time.Second, 0))
	assert.Equal(t, 100*time.Second, Spread(100*time.Second, 0.5))
	assert.Equal(t, 105*time.Second, Spread(100*time.Second, 1))
}

func TestAReportShowsHowTheProviderFares(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := metav1.NewTime(before.Add(time.Minute))
	started := metav1.Condition{Type: clusterv1beta1.ConditionTypeClusterPropertyProviderStarted, Status: metav1.ConditionTrue, Reason: "Started"}
	survey := Survey{
		NodeCount: 3, Version: "v1.36.3", Conditions: []metav1.Condition{started},
		Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
			clusterv1beta1.NodeCountProperty: {Value: "5", ObservationTime: before}, "example.com/racks": {Value: "2"},
		},
	}
	first := Report(Progress{}, survey, clusterv1beta1.InternalMemberClusterStatus{}, 1, before)
	second := Report(Progress{}, survey, first, 2, now)
	require.Len(t, second.Conditions, 1)
	assert.Equal(t, before, second.Conditions[0].LastTransitionTime)
	assert.EqualValues(t, 2, second.Conditions[0].ObservedGeneration)
	assert.Equal(t, clusterv1beta1.PropertyValue{Value: "5", ObservationTime: before}, second.Properties[clusterv1beta1.NodeCountProperty], "the provider knows better")
	assert.Equal(t, clusterv1beta1.PropertyValue{Value: "2", ObservationTime: now}, second.Properties["example.com/racks"], "a time is filled in, as the hub wants one")
	assert.Equal(t, "v1.36.3", second.Properties[clusterv1beta1.KubernetesVersionProperty].Value, "what it leaves out is the agent's")

	third := Report(Progress{}, Survey{NodeCount: 3}, second, 3, now)
	assert.Empty(t, third.Conditions, "there is no provider any more")
	assert.NotContains(t, third.Properties, clusterv1beta1.PropertyName("example.com/racks"))
}
