package v1beta1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// ReasonMemberClusterHeartbeatMissed means that the agent of a member has not reported for too long. It is the reason of Healthy
// on the MemberCluster, and of every condition that rests on what the member reports.
const ReasonMemberClusterHeartbeatMissed = "MemberClusterHeartbeatMissed"

// ReasonMemberClusterOutOfReach means that the agent of a member reports, and that it has not found its cluster healthy for too long, as
// when the API server there is away. It is the reason of Healthy on the MemberCluster, and of conditions that rest on what the agent sees.
const ReasonMemberClusterOutOfReach = "MemberClusterOutOfReach"

// Doubt is the reason why the last report of a member may be outdated: since then the member is silent, or its agent does not see it.
// +kubebuilder:object:generate=false
type Doubt struct {
	// Reason is that of Healthy on the MemberCluster.
	Reason string
	// Text names the member, and since when.
	Text string
}

// DoubtOf returns why what a member has reported may not hold any more, if that is so: it is silent, or its agent does not reach it.
func DoubtOf(member *MemberCluster) (Doubt, bool) {
	if since, silent := SilentSince(member); silent {
		return Doubt{ReasonMemberClusterHeartbeatMissed, DescribeSilence(member.Name, since)}, true
	}
	healthy := meta.FindStatusCondition(member.Status.Conditions, ConditionTypeHealthy)
	if healthy == nil || healthy.Reason != ReasonMemberClusterOutOfReach {
		return Doubt{}, false
	}
	return Doubt{healthy.Reason, member.Name + " has not been healthy since " + formatSince(healthy.LastTransitionTime.Time)}, true
}

// IsDoubt says of the reason of a condition that it is a Doubt.
func IsDoubt(reason string) bool {
	return reason == ReasonMemberClusterHeartbeatMissed || reason == ReasonMemberClusterOutOfReach
}

// SilentSince returns since when a member has not reported, and whether it has been silent for too long. The hub agent decides
// that and notes it on the member; all others read it here.
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

// IsSilent reports whether a member has not reported for too long.
func IsSilent(member *MemberCluster) bool {
	_, silent := SilentSince(member)
	return silent
}

// DescribeSilence says in a condition or an event that a member is silent. The time is a date, as the text is stored.
func DescribeSilence(cluster string, since time.Time) string {
	return cluster + " has not reported since " + formatSince(since)
}

func formatSince(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
