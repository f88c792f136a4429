package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Doubt is the reason why the last report of a member may be outdated: since then the member is silent, or its agent does not see it.
type Doubt struct {
	// Reason is that of Healthy on the MemberCluster.
	Reason string
	// Text names the member, and since when.
	Text string
}

// DoubtOf returns why what a member has reported may not hold any more, if that is so: it is silent, or its agent does not reach it.
func DoubtOf(member *clusterv1beta1.MemberCluster) (Doubt, bool) {
	if since, silent := SilentSince(member); silent {
		return Doubt{clusterv1beta1.ReasonMemberClusterHeartbeatMissed, DescribeSilence(member.Name, since)}, true
	}
	healthy := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil || healthy.Reason != clusterv1beta1.ReasonMemberClusterOutOfReach {
		return Doubt{}, false
	}
	return Doubt{healthy.Reason, member.Name + " has not been healthy since " + formatSince(healthy.LastTransitionTime.Time)}, true
}

// IsDoubt says of the reason of a condition that it is a Doubt.
func IsDoubt(reason string) bool {
	return reason == clusterv1beta1.ReasonMemberClusterHeartbeatMissed || reason == clusterv1beta1.ReasonMemberClusterOutOfReach
}

// SilentSince returns since when a member has not reported, and whether it has been silent for too long. The hub agent decides
// that and notes it on the member; all others read it here.
func SilentSince(member *clusterv1beta1.MemberCluster) (since time.Time, silent bool) {
	healthy := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil || healthy.Reason != clusterv1beta1.ReasonMemberClusterHeartbeatMissed {
		return time.Time{}, false
	}
	for _, agent := range member.Status.AgentStatus {
		if agent.Type == clusterv1beta1.MemberAgent && !agent.LastReceivedHeartbeat.IsZero() {
			return agent.LastReceivedHeartbeat.Time, true
		}
	}
	return healthy.LastTransitionTime.Time, true
}

// IsSilent reports whether a member has not reported for too long.
func IsSilent(member *clusterv1beta1.MemberCluster) bool {
	_, silent := SilentSince(member)
	return silent
}

// DescribeSilence says in a condition or an event that a member is silent. The time is a date, as the text is stored.
func DescribeSilence(cluster string, since time.Time) string {
	return cluster + " has not reported since " + formatSince(since)
}

func formatSince(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
