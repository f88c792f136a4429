package v1beta1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// ReasonMemberClusterHeartbeatMissed means that the agent of a member has not been heard of for too long. It is the reason of Healthy on
// the MemberCluster, and of every condition that rests on what the member reports.
const ReasonMemberClusterHeartbeatMissed = "MemberClusterHeartbeatMissed"

// SilentSince returns since when a member has not reported, and whether it has been silent for too long. The hub agent decides that and
// notes it on the member; everybody else reads it here.
func SilentSince(member *MemberCluster) (since time.Time, silent bool) {
	healthy := meta.FindStatusCondition(member.Status.Conditions, ConditionTypeHealthy)
	if healthy == nil || healthy.Reason != ReasonMemberClusterHeartbeatMissed {
		return time.Time{}, false
	}
	for _, agent := range member.Status.AgentStatus {
		if agent.Type == MemberAgent && !agent.LastReceivedHeartbeat.IsZero() {
			return agent.LastReceivedHeartbeat.Time, true
		}
	}
	return healthy.LastTransitionTime.Time, true
}

// IsSilent says that a member has not reported for too long.
func IsSilent(member *MemberCluster) bool {
	_, silent := SilentSince(member)
	return silent
}

// DescribeSilence says in a condition or an event that a member is silent. The time is a date, as the text is stored.
func DescribeSilence(cluster string, since time.Time) string {
	return cluster + " has not reported since " + since.UTC().Format("2006-01-02 15:04:05 MST")
}
