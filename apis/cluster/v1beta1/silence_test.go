package v1beta1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSinceWhenAMemberIsSilent(t *testing.T) {
	heard := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	judged := time.Date(2026, 3, 1, 10, 1, 0, 0, time.UTC)
	of := func(reason string, agents ...AgentStatus) *MemberCluster {
		return &MemberCluster{Status: MemberClusterStatus{AgentStatus: agents, Conditions: []metav1.Condition{
			{Type: ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: reason, LastTransitionTime: metav1.NewTime(judged)},
		}}}
	}
	agent := AgentStatus{Type: MemberAgent, LastReceivedHeartbeat: metav1.NewTime(heard)}
	since, silent := SilentSince(of(ReasonMemberClusterHeartbeatMissed, AgentStatus{Type: "Other", LastReceivedHeartbeat: metav1.NewTime(judged)}, agent))
	assert.True(t, silent)
	assert.Equal(t, heard, since, "since its last report")
	since, silent = SilentSince(of(ReasonMemberClusterHeartbeatMissed))
	assert.True(t, silent)
	assert.Equal(t, judged, since, "or else since the hub noted it")
	assert.False(t, IsSilent(of("MemberClusterHealthy", agent)))
	assert.False(t, IsSilent(&MemberCluster{}))
	assert.Equal(t, "member-2 has not reported since 2026-03-01 10:00:00 UTC", DescribeSilence("member-2", heard))
}

func TestWhyWhatAMemberReportedMayNotHold(t *testing.T) {
	noted := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	of := func(status metav1.ConditionStatus, reason string) *MemberCluster {
		return &MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-2"}, Status: MemberClusterStatus{Conditions: []metav1.Condition{
			{Type: ConditionTypeHealthy, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noted)},
		}}}
	}
	doubt, is := DoubtOf(of(metav1.ConditionUnknown, ReasonMemberClusterHeartbeatMissed))
	assert.True(t, is)
	assert.Equal(t, Doubt{ReasonMemberClusterHeartbeatMissed, "member-2 has not reported since 2026-03-01 10:00:00 UTC"}, doubt)
	doubt, is = DoubtOf(of(metav1.ConditionFalse, ReasonMemberClusterOutOfReach))
	assert.True(t, is)
	assert.Equal(t, Doubt{ReasonMemberClusterOutOfReach, "member-2 has not been healthy since 2026-03-01 10:00:00 UTC"}, doubt)
	for _, member := range []*MemberCluster{{}, of(metav1.ConditionTrue, "MemberClusterHealthy"), of(metav1.ConditionFalse, "MemberClusterUnhealthy")} {
		_, is := DoubtOf(member)
		assert.False(t, is)
	}
	assert.True(t, IsDoubt(ReasonMemberClusterHeartbeatMissed) && IsDoubt(ReasonMemberClusterOutOfReach))
	assert.False(t, IsDoubt("MemberClusterUnhealthy"))
}
