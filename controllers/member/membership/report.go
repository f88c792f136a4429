package membership

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Survey is the facts about the cluster for one report.
type Survey struct {
	// NodeCount is the number of nodes.
	NodeCount int
	// Usage sums up the nodes' resources; empty if they are unknown.
	Usage clusterv1beta1.ResourceUsage
	// Location are the properties that tell where the nodes are, and whose.
	Location map[clusterv1beta1.PropertyName]string
	// LargestPod is how much of each resource a single pod can request so that it still fits on a node; nil if that is not known.
	LargestPod corev1.ResourceList
	// UsageUnknown is why the resources could not be summed up; empty if they were.
	UsageUnknown string
	// Version is the Kubernetes version, empty if it could not be read.
	Version string
	// Kinds are those that can be created in the cluster, as they are reported; empty if they are not known.
	Kinds string
	// Agent is what this agent says of itself: its version, its image and the like.
	Agent map[clusterv1beta1.PropertyName]string
	// EntryPoint is the address of the API server.
	EntryPoint string
	// CertificateAuthority is the API server's CA bundle, base64; empty if there is none.
	CertificateAuthority string
	// Unhealthy is why the API server is not ready; empty if it is.
	Unhealthy string
	// Properties are those of the property provider; they take precedence over the agent's own.
	Properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
	// Conditions describe the state of the property provider, and what else went wrong; none without either.
	Conditions []metav1.Condition
	// Busy is what the owner of the cluster asks; nil if the fleet may begin what it has to.
	Busy *clusterv1beta1.BusyRequest
	// Namespaces are those of the cluster, each with the AppliedWork that owns it; nil if they are not reported.
	Namespaces map[string]string
}

// Shape is what of a cluster is reported soon after it changes.
type Shape struct {
	// Nodes is the number of nodes.
	Nodes int
	// Namespaces is a fingerprint of the namespaces; empty if they are not reported.
	Namespaces string
}

// Phase is how far the cluster has joined or left the fleet.
type Phase int

const (
	// PhaseJoined is for a cluster that is part of the fleet.
	PhaseJoined Phase = iota
	// PhaseLeaving is for a cluster that is removing the objects that were placed on it.
	PhaseLeaving
	// PhaseLeft is for a cluster that has left.
	PhaseLeft
)

// String names the phase for logs.
func (p Phase) String() string {
	return [...]string{"joined", "leaving", "left"}[p]
}

// Progress is the phase of the cluster, and what keeps it from leaving.
type Progress struct {
	Phase Phase
	// Remaining are the Works that still have objects on a cluster that is leaving.
	Remaining []string
	// RemainingUnknown is why the remaining Works are unknown; empty if they are known.
	RemainingUnknown string
}

// Report makes the status of the InternalMemberCluster. It keeps the reports of other agents, and
// the transition time of conditions that have not changed.
func Report(
	p Progress, s Survey, previous clusterv1beta1.InternalMemberClusterStatus, generation int64, now metav1.Time,
) clusterv1beta1.InternalMemberClusterStatus {
	status := *previous.DeepCopy()
	status.Properties = mergeProperties(s, now)
	keepKinds(status.Properties, previous.Properties)
	status.ResourceUsage = s.Usage
	status.Busy = s.Busy
	status.Namespaces = nil
	if s.Namespaces != nil {
		var collected metav1.Condition
		status.Namespaces, collected = ReportNamespaces(s.Namespaces, previous.Namespaces)
		s.Conditions = append(slices.Clone(s.Conditions), collected)
	}
	status.Conditions = providerConditions(withResolved(s.Conditions, previous.Conditions), previous.Conditions, generation, now)
	agent := agentStatus(&status)
	for _, c := range []metav1.Condition{joinedCondition(p), healthyCondition(s)} {
		c.ObservedGeneration = generation
		c.LastTransitionTime = now
		meta.SetStatusCondition(&agent.Conditions, c)
	}
	agent.LastReceivedHeartbeat = now
	clusterrules.FitReport(&status)
	return status
}

// withResolved adds that the token for the hub is renewed to what a survey tells, if the hub was told that it is not.
func withResolved(told, previous []metav1.Condition) []metav1.Condition {
	if meta.FindStatusCondition(previous, clusterv1beta1.ConditionTypeHubTokenRenewed) == nil ||
		meta.FindStatusCondition(told, clusterv1beta1.ConditionTypeHubTokenRenewed) != nil {
		return told
	}
	return append(slices.Clone(told), metav1.Condition{
		Type: clusterv1beta1.ConditionTypeHubTokenRenewed, Status: metav1.ConditionTrue,
		Reason: clusterv1beta1.ReasonHubTokenRenewed, Message: "The member agent's token for the hub is in order",
	})
}

// agentStatus returns this agent's entry, and adds it if it is missing.
func agentStatus(status *clusterv1beta1.InternalMemberClusterStatus) *clusterv1beta1.AgentStatus {
	for i := range status.AgentStatus {
		if status.AgentStatus[i].Type == clusterv1beta1.MemberAgent {
			return &status.AgentStatus[i]
		}
	}
	status.AgentStatus = append(status.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent})
	return &status.AgentStatus[len(status.AgentStatus)-1]
}

// keepKinds keeps what was reported of the kinds of the cluster, and when, until it is known that they are others.
func keepKinds(properties, previous map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) {
	const name = clusterv1beta1.ServedKindsProperty
	before, had := previous[name]
	now, has := properties[name]
	if had && (!has || now.Value == before.Value) {
		properties[name] = before
	}
}

func mergeProperties(s Survey, now metav1.Time) map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
	out := map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.NodeCountProperty: {Value: strconv.Itoa(s.NodeCount), ObservationTime: now},
	}
	own := map[clusterv1beta1.PropertyName]string{
		clusterv1beta1.KubernetesVersionProperty:           s.Version,
		clusterv1beta1.ClusterEntryPointProperty:           s.EntryPoint,
		clusterv1beta1.ClusterCertificateAuthorityProperty: s.CertificateAuthority,
		clusterv1beta1.ServedKindsProperty:                 s.Kinds,
	}
	maps.Copy(own, s.Agent)
	maps.Copy(own, s.Location)
	for name, amount := range s.LargestPod {
		own[clusterv1beta1.LargestPodProperty(name)] = amount.String()
	}
	for name, value := range own {
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

// providerConditions returns the conditions of a survey. Previous conditions that are not in the survey
// are dropped, as there is no provider any more.
func providerConditions(current, previous []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range current {
		if before := meta.FindStatusCondition(previous, c.Type); before != nil {
			meta.SetStatusCondition(&out, *before)
		}
		c.ObservedGeneration = generation
		c.LastTransitionTime = now
		meta.SetStatusCondition(&out, c)
	}
	return out
}

func joinedCondition(p Progress) metav1.Condition {
	switch p.Phase {
	case PhaseLeft:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionFalse,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterLeft,
			Message: "The member agent has left the fleet",
		}
	case PhaseLeaving:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
			Message: "The member agent is leaving the fleet; " + describeRemaining(p),
		}
	default:
		return metav1.Condition{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue,
			Reason:  clusterv1beta1.ReasonInternalMemberClusterJoined,
			Message: "The member agent has joined the fleet",
		}
	}
}

// describeRemaining names at most a few Works, as there may be thousands.
func describeRemaining(p Progress) string {
	const named = 5
	remaining := p.Remaining
	if p.RemainingUnknown != "" {
		return "what it still has to remove is not known: " + p.RemainingUnknown
	}
	shown := remaining[:min(len(remaining), named)]
	text := fmt.Sprintf("it still removes what %d Works have placed: %s", len(remaining), strings.Join(shown, ", "))
	if len(remaining) > named {
		text += " …"
	}
	return text
}

func healthyCondition(s Survey) metav1.Condition {
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

// minShapeReportInterval is the shortest interval between two reports of another shape: a cluster
// that scales all the time must not cause writes to the hub all the time.
const minShapeReportInterval = 5 * time.Second

// LastReport is what was reported last.
type LastReport struct {
	// At is the time of the report; zero if the agent has not reported since it started.
	At time.Time
	// Next is when the next heartbeat is due.
	Next time.Time
	// Phase, Shape and Generation are what was reported then.
	Phase      Phase
	Shape      Shape
	Generation int64
	// InternalMemberClusterUID tells which object was written: a new one has no report yet, though
	// it may have the same generation.
	InternalMemberClusterUID types.UID
	// Findings are the reasons of the other conditions that were reported, and what the agent said of itself.
	Findings string
}

// UntilReport returns how long to wait before the next report: no time if the phase or the generation
// has changed, a short time if the shape has changed, and until the next heartbeat
// otherwise.
func UntilReport(last LastReport, phase Phase, shape Shape, generation int64, now time.Time) time.Duration {
	if last.At.IsZero() || last.Phase != phase || last.Generation != generation {
		return 0
	}
	due := last.Next
	if soon := last.At.Add(minShapeReportInterval); last.Shape != shape && soon.Before(due) {
		due = soon
	}
	return max(0, due.Sub(now))
}

// Spread varies a period by up to 5 % either way, so that the members of a fleet do not all report
// at the same time. The fraction is a random number from 0 to 1.
func Spread(period time.Duration, fraction float64) time.Duration {
	const share = 0.05
	factor := 1 - share + 2*share*math.Max(0, math.Min(1, fraction))
	return time.Duration(float64(period) * factor)
}
