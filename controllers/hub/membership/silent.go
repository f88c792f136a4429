package membership

import (
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Silent says whether a member's agent has not been heard of for too long.
func Silent(member *clusterv1beta1.MemberCluster) bool {
	healthy := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	return healthy != nil && healthy.Reason == ReasonHeartbeatMissed
}
