// Package clustereligibility keeps placements off clusters that cannot take anything
// now: not joined, out of reach, or unhealthy for long.
package clustereligibility

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// patience is how long a cluster may be silent or unhealthy before nothing new is
// placed on it.
const patience = 5 * time.Minute

// notConnected begins the reasons that are about the member agent.
const notConnected = "cluster is not connected to the fleet: "

type plugin struct{}

// New returns the plug-in.
func New() framework.Plugin { return plugin{} }

// Name of the plug-in.
func (plugin) Name() string { return "ClusterEligibility" }

// Filter spares clusters that hold the placement already: a cluster that is out of
// reach for a while keeps what it has.
func (plugin) Filter(c *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if c.Holds(cluster.Name) {
		return ""
	}
	return Ineligible(cluster, c.Now)
}

// Watches is interested in whether a cluster can take anything.
func (plugin) Watches(*framework.Cycle) []framework.Interest {
	return []framework.Interest{framework.Standing}
}

// Ineligible returns why nothing new can be placed on a cluster at this time, or
// nothing if it can.
func Ineligible(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	if cluster.DeletionTimestamp != nil {
		return "cluster has left the fleet"
	}
	if by := clusterrules.ReplacedBy(cluster); by != "" {
		return "cluster is being replaced by " + by
	}
	return outOfReach(cluster, now)
}

// Amiss returns why a cluster does not count for a placement that has it already, or nothing if it does. That it is to be replaced is no reason:
// what is there is as good as before.
func Amiss(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	if cluster.DeletionTimestamp != nil {
		return Ineligible(cluster, now)
	}
	return outOfReach(cluster, now)
}

// outOfReach returns why the agent of a cluster can take nothing at this time, or nothing if it can.
func outOfReach(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	agent := memberAgent(cluster)
	if agent == nil {
		return notConnected + "member agent not online yet"
	}
	if silent := now.Sub(agent.LastReceivedHeartbeat.Time); silent > silenceOf(cluster) {
		return fmt.Sprintf(notConnected+"no recent heartbeat signals (last received %.2f minutes ago)", silent.Minutes())
	}
	if !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionTypeJoined) {
		return notConnected + "member agent not joined yet"
	}
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil {
		return notConnected + "health condition from member agent is not available yet"
	}
	if unhealthy := now.Sub(conditionSince(cluster, healthy)); healthy.Status == metav1.ConditionFalse && unhealthy > patience {
		return fmt.Sprintf(notConnected+"unhealthy for a prolonged period of time (last transitioned %.2f minutes ago)", unhealthy.Minutes())
	}
	return ""
}

// Until returns the last instant at which a cluster that is eligible now stays so by itself, if it does not report again.
func Until(cluster *clusterv1beta1.MemberCluster) time.Time {
	agent := memberAgent(cluster)
	if agent == nil {
		return time.Time{}
	}
	until := agent.LastReceivedHeartbeat.Add(silenceOf(cluster))
	healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil || healthy.Status != metav1.ConditionFalse {
		return until
	}
	if sick := conditionSince(cluster, healthy).Add(patience); sick.Before(until) {
		return sick
	}
	return until
}

// silenceOf returns how long a cluster may stay silent: three of its heartbeats in any case, which may be ten minutes apart.
func silenceOf(cluster *clusterv1beta1.MemberCluster) time.Duration {
	return max(patience, 3*time.Duration(cluster.Spec.HeartbeatPeriodSeconds)*time.Second)
}

// conditionSince returns when an agent's condition became what it is: by the hub's clock if the hub
// has copied it, as the agent's may be wrong.
func conditionSince(cluster *clusterv1beta1.MemberCluster, said *metav1.Condition) time.Time {
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
