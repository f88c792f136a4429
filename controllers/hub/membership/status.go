package membership

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Reasons of the condition Healthy on a MemberCluster.
const (
	// ReasonHealthy means the member's agent says so.
	ReasonHealthy = "MemberClusterHealthy"
	// ReasonUnhealthy means the member's agent says the opposite.
	ReasonUnhealthy = "MemberClusterUnhealthy"
	// ReasonHealthUnknown means the agent has not said anything about it yet.
	ReasonHealthUnknown = "MemberClusterHealthUnknown"
)

// Report is what is known of a member when its status is worked out.
type Report struct {
	// Mailbox is the member's InternalMemberCluster, nil before there is one.
	Mailbox *clusterv1beta1.InternalMemberCluster
	// Obstacle says why the member cannot join yet; empty if it can.
	Obstacle string
	// Heard is when the agent last reported, by the hub's clock; zero if that does not matter.
	Heard metav1.Time
	// HeartbeatsMissed says that reports have stayed away too long.
	HeartbeatsMissed bool
	// OutOfReach says that the agent has not found its cluster healthy for too long.
	OutOfReach bool
	// Replacement is how far the replacement of the member is; nil if none is asked for.
	Replacement *Replacement
	// Now is the time given to conditions that changed.
	Now metav1.Time
}

// Project computes the status of a member. It is pure.
func Project(member *clusterv1beta1.MemberCluster, report Report) clusterv1beta1.MemberClusterStatus {
	status := *member.Status.DeepCopy()
	if box := report.Mailbox; box != nil {
		reported := box.Status.DeepCopy()
		status.Properties = reported.Properties
		status.ResourceUsage = reported.ResourceUsage
		status.Namespaces = reported.Namespaces
		status.AgentStatus = reported.AgentStatus
		if agent := memberAgentOf(status.AgentStatus); agent != nil && !report.Heard.IsZero() {
			agent.LastReceivedHeartbeat = report.Heard // the one reported is by the member's clock
		}
		// A provider that is gone reports nothing any more; its last conditions must not seem to hold.
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
			return !isHubCondition(c.Type) && meta.FindStatusCondition(reported.Conditions, c.Type) == nil
		})
		for _, condition := range reported.Conditions {
			if !isHubCondition(condition.Type) {
				setMemberCondition(&status, member, report.Now, condition)
			}
		}
	}
	setMemberCondition(&status, member, report.Now, readyToJoinCondition(report))
	setMemberCondition(&status, member, report.Now, joinedCondition(report.Mailbox))
	setMemberCondition(&status, member, report.Now, healthyCondition(report))
	projectBusy(&status, member, report)
	projectReplacement(&status, member, report)
	return status
}

// projectBusy has the status say until when nothing begins on the cluster because its owner asks for that.
func projectBusy(status *clusterv1beta1.MemberClusterStatus, member *clusterv1beta1.MemberCluster, report Report) {
	var asked *clusterv1beta1.BusyRequest
	if report.Mailbox != nil {
		asked = report.Mailbox.Status.Busy
	}
	var refusal string
	status.Busy, refusal = clusterrules.GrantBusy(member.Status.Busy, asked, report.Now.Time)
	condition := metav1.Condition{
		Type: clusterv1beta1.ConditionTypeBusy, Status: metav1.ConditionFalse,
		Reason: clusterv1beta1.ReasonResolved, Message: "The owner of the cluster does not ask that nothing begins on it",
	}
	switch {
	case status.Busy.IsNow(report.Now.Time):
		condition.Status = metav1.ConditionTrue
		condition.Reason = clusterv1beta1.ReasonBusyAsked
		condition.Message = clusterrules.DescribeBusy(status.Busy)
	case refusal != "":
		condition.Reason = clusterv1beta1.ReasonBusyNotGranted
		condition.Message = "The owner of the cluster asks that nothing begins on it, which does not count: " + refusal
	case meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeBusy) == nil:
		return
	}
	setMemberCondition(status, member, report.Now, condition)
}

// isHubCondition reports whether the hub itself computes a condition.
func isHubCondition(conditionType string) bool {
	switch conditionType {
	case clusterv1beta1.ConditionTypeReadyToJoin, clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy,
		clusterv1beta1.ConditionTypeBusy, clusterv1beta1.ConditionTypeReplaced:
		return true
	}
	return false
}

func setMemberCondition(status *clusterv1beta1.MemberClusterStatus, member *clusterv1beta1.MemberCluster, now metav1.Time,
	condition metav1.Condition) {
	condition.ObservedGeneration = member.Generation
	condition.LastTransitionTime = now
	// What a member says is part of some messages, and the API server takes no longer ones.
	condition.Message = clusterv1beta1.CutText(condition.Message, clusterv1beta1.MaxReportedMessage)
	meta.SetStatusCondition(&status.Conditions, condition)
}

func readyToJoinCondition(report Report) metav1.Condition {
	if report.Obstacle != "" {
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeReadyToJoin, Status: metav1.ConditionFalse,
			Reason: clusterv1beta1.ReasonMemberClusterNotReadyToJoin, Message: report.Obstacle,
		}
	}
	return metav1.Condition{
		Type: clusterv1beta1.ConditionTypeReadyToJoin, Status: metav1.ConditionTrue,
		Reason: clusterv1beta1.ReasonMemberClusterReadyToJoin, Message: "Member cluster is ready to join the fleet",
	}
}

func joinedCondition(box *clusterv1beta1.InternalMemberCluster) metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionUnknown,
		Reason: clusterv1beta1.ReasonMemberClusterJoinStateUnknown, Message: "The member agent has not reported yet",
	}
	said := agentCondition(box, clusterv1beta1.ConditionTypeJoined)
	switch {
	case said == nil:
	case said.Status == metav1.ConditionTrue:
		condition.Status = metav1.ConditionTrue
		condition.Reason = clusterv1beta1.ReasonMemberClusterJoined
		condition.Message = "Member cluster has successfully joined the fleet"
	case said.Status == metav1.ConditionFalse && said.Reason == clusterv1beta1.ReasonInternalMemberClusterLeft:
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1beta1.ReasonMemberClusterLeft
		condition.Message = "Member cluster has left the fleet"
	default:
		condition.Message = fmt.Sprintf("The member agent says %s: %s", said.Reason, said.Message)
	}
	return condition
}

func healthyCondition(report Report) metav1.Condition {
	condition := metav1.Condition{
		Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown,
		Reason: ReasonHealthUnknown, Message: "The member agent has not reported yet",
	}
	said := agentCondition(report.Mailbox, clusterv1beta1.ConditionTypeHealthy)
	switch {
	case report.HeartbeatsMissed:
		condition.Reason = clusterv1beta1.ReasonMemberClusterHeartbeatMissed
		condition.Message = clusterrules.DescribeSilence("The member agent", report.Heard.Time)
	case said == nil:
	case said.Status == metav1.ConditionTrue:
		condition.Status = metav1.ConditionTrue
		condition.Reason = ReasonHealthy
		condition.Message = "Member cluster is healthy"
	case said.Status == metav1.ConditionFalse:
		condition.Status = metav1.ConditionFalse
		condition.Reason = ReasonUnhealthy
		condition.Message = "Member cluster is not healthy: " + said.Message
		if report.OutOfReach {
			condition.Reason = clusterv1beta1.ReasonMemberClusterOutOfReach
		}
	}
	return condition
}

// memberAgent returns the report of the agent that applies placements; nil before
// its first.
func memberAgent(box *clusterv1beta1.InternalMemberCluster) *clusterv1beta1.AgentStatus {
	if box == nil {
		return nil
	}
	return memberAgentOf(box.Status.AgentStatus)
}

func memberAgentOf(agents []clusterv1beta1.AgentStatus) *clusterv1beta1.AgentStatus {
	for i := range agents {
		if agents[i].Type == clusterv1beta1.MemberAgent {
			return &agents[i]
		}
	}
	return nil
}

func agentCondition(box *clusterv1beta1.InternalMemberCluster, conditionType string) *metav1.Condition {
	agent := memberAgent(box)
	if agent == nil {
		return nil
	}
	return meta.FindStatusCondition(agent.Conditions, conditionType)
}

// HasLeft reports whether a member's agent is done with the fleet: it says so in its mailbox, or it has never reported
// there, or the mailbox is gone (nil).
func HasLeft(box *clusterv1beta1.InternalMemberCluster) bool {
	said := agentCondition(box, clusterv1beta1.ConditionTypeJoined)
	return said == nil || said.Status == metav1.ConditionFalse && said.Reason == clusterv1beta1.ReasonInternalMemberClusterLeft
}
