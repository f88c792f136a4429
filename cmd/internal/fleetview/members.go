// Package fleetview sums a fleet up in rows: its members, its placements, its staged update runs and what stands beside them. The
// plugin, the pages of the dashboard and its files show these rows by the same tables of columns. It explains why a placement has picked
// a cluster, lists how members differ, and writes down what has become of a placement. What is made of facts is pure.
package fleetview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Member is a row about a member.
type Member struct {
	Name string
	// Joined and Healthy are the statuses of the conditions, Unknown if there are none.
	Joined, Healthy string
	// Heartbeat is how long ago the member agent reported.
	Heartbeat string
	// Late says that it should have reported by now.
	Late  bool
	Nodes string
	// CPU and Memory are what is available of what is allocatable.
	CPU, Memory string
	Version     string
	Taints      []string
	Labels      map[string]string
	Age         string

	// heard is when the member agent last reported.
	heard time.Time
}

const (
	// missedBeats is how many reports may be missing before a member is called late: agents scatter theirs a little.
	missedBeats = 3
	// unknown stands for a condition there is not.
	unknown = "Unknown"
)

// Members sums members up, by name.
func Members(members []clusterv1beta1.MemberCluster, now time.Time) []Member {
	rows := make([]Member, 0, len(members))
	for i := range members {
		rows = append(rows, newMember(&members[i], now))
	}
	slices.SortFunc(rows, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

func newMember(m *clusterv1beta1.MemberCluster, now time.Time) Member {
	row := Member{
		Name:    m.Name,
		Labels:  m.Labels,
		Joined:  statusOf(m.Status.Conditions, clusterv1beta1.ConditionTypeJoined),
		Healthy: statusOf(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy),
		Nodes:   m.Status.Properties[clusterv1beta1.NodeCountProperty].Value,
		Version: m.Status.Properties[clusterv1beta1.KubernetesVersionProperty].Value,
		CPU:     describeUsage(m.Status.ResourceUsage, corev1.ResourceCPU, func(q resource.Quantity) string { return q.String() }),
		Memory:  describeUsage(m.Status.ResourceUsage, corev1.ResourceMemory, formatMebibytes),
		Age:     Age(m.CreationTimestamp.Time, now),
	}
	if !m.DeletionTimestamp.IsZero() {
		row.Joined = "Leaving"
	}
	for _, agent := range m.Status.AgentStatus {
		row.takeAgentStatus(agent, m.Spec.HeartbeatPeriodSeconds, now)
		if agent.Type == clusterv1beta1.MemberAgent && meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy) == nil {
			row.Healthy = statusOf(agent.Conditions, clusterv1beta1.ConditionTypeHealthy) // a hub that does not judge itself
		}
	}
	if row.Late && row.Healthy == string(metav1.ConditionTrue) {
		row.Healthy = unknown // the member has not been looked at, or the hub agent that judges does not work
	}
	for _, taint := range m.Spec.Taints {
		row.Taints = append(row.Taints, taintText(taint))
	}
	return row
}

// takeAgentStatus takes up what the member agent says of itself.
func (m *Member) takeAgentStatus(agent clusterv1beta1.AgentStatus, period int32, now time.Time) {
	if agent.Type != clusterv1beta1.MemberAgent {
		return
	}
	if at := agent.LastReceivedHeartbeat.Time; !at.IsZero() {
		m.heard = at
		m.Heartbeat = Age(at, now)
		m.Late = period > 0 && now.Sub(at) > missedBeats*time.Duration(period)*time.Second
	}
}

func taintText(taint clusterv1beta1.Taint) string {
	if taint.Value == "" {
		return taint.Key + ":" + string(taint.Effect)
	}
	return taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
}

func statusOf(conditions []metav1.Condition, conditionType string) string {
	if condition := meta.FindStatusCondition(conditions, conditionType); condition != nil {
		return string(condition.Status)
	}
	return unknown
}

// describeUsage is available/allocatable of a resource.
func describeUsage(usage clusterv1beta1.ResourceUsage, name corev1.ResourceName, write func(resource.Quantity) string) string {
	allocatable, ok := usage.Allocatable[name]
	if !ok {
		return ""
	}
	if available, ok := usage.Available[name]; ok {
		return write(available) + "/" + write(allocatable)
	}
	return write(allocatable)
}

func formatMebibytes(q resource.Quantity) string {
	const mebi, gibi = 1 << 20, 1 << 30
	value := q.Value()
	if value >= 10*gibi {
		return strconv.FormatInt(value/gibi, 10) + "Gi"
	}
	return strconv.FormatInt(value/mebi, 10) + "Mi"
}

// Age returns how long ago something was, as kubectl writes it.
func Age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at))
}

// formatFraction is part/whole.
func formatFraction(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// Health returns the health of a member in a word.
func (m Member) Health() string {
	switch {
	case m.Joined == "Leaving":
		return "leaving"
	case m.Late:
		return "late"
	case m.Healthy == string(metav1.ConditionTrue):
		return "healthy"
	}
	return "unhealthy"
}
