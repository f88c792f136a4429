package membership

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Survey is what was found out about the cluster for one report.
type Survey struct {
	// NodeCount is the number of nodes.
	NodeCount int
	// Usage sums up the nodes' resources; empty if it is not known.
	Usage clusterv1beta1.ResourceUsage
	// UsageUnknown is why the resources could not be summed up; empty if they were.
	UsageUnknown string
	// Version is the Kubernetes version, empty if it could not be read.
	Version string
	// EntryPoint is the address of the API server.
	EntryPoint string
	// CertificateAuthority is the API server's CA bundle, base64; empty if there is none.
	CertificateAuthority string
	// Unhealthy is why the API server is not ready; empty if it is.
	Unhealthy string
	// Properties are what the property provider reports; they go before those above.
	Properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
	// Conditions say how the property provider fares; none without one.
	Conditions []metav1.Condition
}

// Stage is how far the cluster is on its way into or out of the fleet.
type Stage int

const (
	// StageJoined is for a cluster that is part of the fleet.
	StageJoined Stage = iota
	// StageLeaving is for a cluster that is removing what was placed on it.
	StageLeaving
	// StageLeft is for a cluster that has left.
	StageLeft
)

// String names the stage for logs.
func (s Stage) String() string {
	return [...]string{"joined", "leaving", "left"}[s]
}

// Progress is how far the cluster has come on its way.
type Progress struct {
	// Stage is what it has come to.
	Stage Stage
	// Remaining are the Works of which something is still to be removed before it has left.
	Remaining []string
	// Stuck is why it is not known what remains; empty if it is.
	Stuck string
}

// Report makes the status of the InternalMemberCluster. What other agents report is kept, and
// so is the transition time of conditions that have not changed.
func Report(p Progress, s Survey, previous clusterv1beta1.InternalMemberClusterStatus, generation int64, now metav1.Time) clusterv1beta1.InternalMemberClusterStatus {
	status := *previous.DeepCopy()
	status.Properties = properties(s, now)
	status.ResourceUsage = s.Usage
	status.Conditions = conditions(s.Conditions, previous.Conditions, generation, now)
	agent := agentOf(&status)
	for _, c := range []metav1.Condition{joined(p), healthy(s)} {
		c.ObservedGeneration = generation
		c.LastTransitionTime = now
		meta.SetStatusCondition(&agent.Conditions, c)
	}
	agent.LastReceivedHeartbeat = now
	return status
}

// agentOf returns this agent's entry, made if need be.
func agentOf(status *clusterv1beta1.InternalMemberClusterStatus) *clusterv1beta1.AgentStatus {
	for i := range status.AgentStatus {
		if status.AgentStatus[i].Type == clusterv1beta1.MemberAgent {
			return &status.AgentStatus[i]
		}
	}
	status.AgentStatus = append(status.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent})
	return &status.AgentStatus[len(status.AgentStatus)-1]
}

func properties(s Survey, now metav1.Time) map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
	out := map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.NodeCountProperty: {Value: strconv.Itoa(s.NodeCount), ObservationTime: now},
	}
	for name, value := range map[clusterv1beta1.PropertyName]string{
		clusterv1beta1.KubernetesVersionProperty:           s.Version,
		clusterv1beta1.ClusterEntryPointProperty:           s.EntryPoint,
		clusterv1beta1.ClusterCertificateAuthorityProperty: s.CertificateAuthority,
	} {
		if value != "" {
			out[name] = clusterv1beta1.PropertyValue{Value: value, ObservationTime: now}
		}
	}
	for name, property := range s.Properties {
		if property.ObservationTime.IsZero() {
			property.ObservationTime = now
		}
		out[name] = property
	}
	return out
}

// conditions are those of a survey. What is no longer said, as there is no provider any more, is dropped.
func conditions(said, previous []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range said {
		if before := meta.FindStatusCondition(previous, c.Type); before != nil {
			meta.SetStatusCondition(&out, *before)
		}
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		meta.SetStatusCondition(&out, c)
	}
	return out
}

func joined(p Progress) metav1.Condition {
	switch p.Stage {
	case StageLeft:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionFalse,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterLeft,
			Message: "The member agent has left the fleet",
		}
	case StageLeaving:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
			Message: "The member agent is leaving the fleet; " + waitingFor(p),
		}
	default:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
			Message: "The member agent has joined the fleet",
		}
	}
}

// waitingFor names at most a few Works, as there may be thousands.
func waitingFor(p Progress) string {
	const named = 5
	remaining := p.Remaining
	if p.Stuck != "" {
		return "what it still has to remove is not known: " + p.Stuck
	}
	shown := remaining[:min(len(remaining), named)]
	text := fmt.Sprintf("it still removes what %d Works have placed: %s", len(remaining), strings.Join(shown, ", "))
	if len(remaining) > named {
		text += " …"
	}
	return text
}

func healthy(s Survey) metav1.Condition {
	if s.Unhealthy != "" {
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterUnhealthy,
			Message: "The cluster's API server is not ready: " + s.Unhealthy,
		}
	}
	message := "The cluster's API server is ready"
	if s.UsageUnknown != "" {
		message += "; its resource usage is not known: " + s.UsageUnknown
	}
	return metav1.Condition{
		Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionTrue,
		Reason:  clusterv1beta1.ReasonInternalMemberClusterHealthy,
		Message: message,
	}
}

// newsGap is the least time between two reports of another number of nodes: a cluster that scales all the time must not
// have the hub written all the time.
const newsGap = 5 * time.Second

// Last is what was reported last.
type Last struct {
	// At is when that was; zero if nothing was reported since the agent started.
	At time.Time
	// Next is when the next heartbeat is due.
	Next time.Time
	// Stage, NodeCount and Generation are what was reported then.
	Stage      Stage
	NodeCount  int
	Generation int64
	// Box is the letter box it was reported in: another one has no report yet, though it may look the same.
	Box types.UID
}

// UntilReport is how long to wait before the next report: not at all if there is news the hub waits for, and not until
// the next heartbeat if the number of nodes is another.
func UntilReport(last Last, stage Stage, nodes int, generation int64, now time.Time) time.Duration {
	if last.At.IsZero() || last.Stage != stage || last.Generation != generation {
		return 0
	}
	due := last.Next
	if soon := last.At.Add(newsGap); last.NodeCount != nodes && soon.Before(due) {
		due = soon
	}
	return max(0, due.Sub(now))
}

// Spread varies a period by up to 5 % either way, so that the members of a fleet do not report
// in step. The fraction is a random number from 0 to 1.
func Spread(period time.Duration, fraction float64) time.Duration {
	const share = 0.05
	factor := 1 - share + 2*share*math.Max(0, math.Min(1, fraction))
	return time.Duration(float64(period) * factor)
}
