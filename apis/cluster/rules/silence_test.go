package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestSinceWhenAMemberIsSilent(t *testing.T) {
	heard := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	judged := time.Date(2026, 3, 1, 10, 1, 0, 0, time.UTC)
	of := func(reason string, agents ...clusterv1beta1.AgentStatus) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{AgentStatus: agents, Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: reason, LastTransitionTime: metav1.NewTime(judged)},
		}}}
	}
	agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(heard)}
	since, silent := SilentSince(of(clusterv1beta1.ReasonMemberClusterHeartbeatMissed, clusterv1beta1.AgentStatus{Type: "Other", LastReceivedHeartbeat: metav1.NewTime(judged)}, agent))
	assert.True(t, silent)
	assert.Equal(t, heard, since, "since its last report")
	since, silent = SilentSince(of(clusterv1beta1.ReasonMemberClusterHeartbeatMissed))
	assert.True(t, silent)
	assert.Equal(t, judged, since, "or else since the hub noted it")
	assert.False(t, IsSilent(of("MemberClusterHealthy", agent)))
	assert.False(t, IsSilent(&clusterv1beta1.MemberCluster{}))
	assert.Equal(t, "member-2 has not reported since 2026-03-01 10:00:00 UTC", DescribeSilence("member-2", heard))
}

func TestWhyWhatAMemberReportedMayNotHold(t *testing.T) {
	noted := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	of := func(status metav1.ConditionStatus, reason string) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-2"}, Status: clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionTypeHealthy, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noted)},
		}}}
	}
	doubt, is := DoubtOf(of(metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterHeartbeatMissed))
	assert.True(t, is)
	assert.Equal(t, Doubt{clusterv1beta1.ReasonMemberClusterHeartbeatMissed, "member-2 has not reported since 2026-03-01 10:00:00 UTC"}, doubt)
	doubt, is = DoubtOf(of(metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterOutOfReach))
	assert.True(t, is)
	assert.Equal(t, Doubt{clusterv1beta1.ReasonMemberClusterOutOfReach, "member-2 has not been healthy since 2026-03-01 10:00:00 UTC"}, doubt)
	for _, member := range []*clusterv1beta1.MemberCluster{{}, of(metav1.ConditionTrue, "MemberClusterHealthy"), of(metav1.ConditionFalse, "MemberClusterUnhealthy")} {
		_, is := DoubtOf(member)
		assert.False(t, is)
	}
	assert.True(t, IsDoubt(clusterv1beta1.ReasonMemberClusterHeartbeatMissed) && IsDoubt(clusterv1beta1.ReasonMemberClusterOutOfReach))
	assert.False(t, IsDoubt("MemberClusterUnhealthy"))
}
