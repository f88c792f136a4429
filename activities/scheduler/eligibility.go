package scheduler

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// patience is how long a cluster may be silent or unhealthy before nothing new is
// placed on it.
const patience = 5 * time.Minute

// notConnected begins the reasons that are about the member agent.
const notConnected = "cluster is not connected to the fleet: "

// eligibility is the filter for clusters that cannot take anything now. It spares
// clusters that hold the placement already: a cluster that is out of reach for a
// while keeps what it has.
type eligibility struct{}

func (eligibility) reject(c *cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.held(cluster.Name) {
		return ""
	}
	return Ineligible(cluster, c.facts.Now)
}

// Ineligible says why nothing new can be placed on a cluster at this time, or
// nothing if it can.
func Ineligible(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	if cluster.DeletionTimestamp != nil {
		return "cluster has left the fleet"
	}
	agent := memberAgent(cluster)
	if agent == nil {
		return notConnected + "member agent not online yet"
	}
	if silent := now.Sub(agent.LastReceivedHeartbeat.Time); silent > patience {
		return fmt.Sprintf(notConnected+"no recent heartbeat signals (last received %.2f minutes ago)", silent.Minutes())
	}
	if !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionTypeJoined) {
		return notConnected + "member agent not joined yet"
	}
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil {
		return notConnected + "health condition from member agent is not available yet"
	}
	if unhealthy := now.Sub(since(cluster, healthy)); healthy.Status == metav1.ConditionFalse && unhealthy > patience {
		return fmt.Sprintf(notConnected+"unhealthy for a prolonged period of time (last transitioned %.2f minutes ago)", unhealthy.Minutes())
	}
	return ""
}

// since is when an agent's condition became what it is: by the hub's clock if the hub
// has copied it, as the agent's may be wrong.
func since(cluster *clusterv1beta1.MemberCluster, said *metav1.Condition) time.Time {
	copied := meta.FindStatusCondition(cluster.Status.Conditions, said.Type)
	if copied != nil && copied.Status == said.Status {
		return copied.LastTransitionTime.Time
	}
	return said.LastTransitionTime.Time
}

func memberAgent(cluster *clusterv1beta1.MemberCluster) *clusterv1beta1.AgentStatus {
	for i := range cluster.Status.AgentStatus {
		if cluster.Status.AgentStatus[i].Type == clusterv1beta1.MemberAgent {
			return &cluster.Status.AgentStatus[i]
		}
	}
	return nil
}
