// Package joining counts the members that have joined and left, under KubeFleet's names. Both agents do.
package joining

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// success is the only result: what does not succeed is tried again.
const success = "success"

// Counters count by the condition Joined. Nothing is counted without them.
type Counters struct {
	joins, leaves *prometheus.CounterVec
}

// NewCounters returns counters that are not registered yet. They start at zero.
func NewCounters() *Counters {
	c := &Counters{
		joins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "join_result_counter", Help: "Times that a cluster has joined the fleet.",
		}, []string{"result"}),
		leaves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leave_result_counter", Help: "Times that a cluster has left the fleet.",
		}, []string{"result"}),
	}
	c.joins.WithLabelValues(success)
	c.leaves.WithLabelValues(success)
	return c
}

// Collectors returns what to register.
func (c *Counters) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.joins, c.leaves}
}

// Observe counts what happened between two states of a member.
func (c *Counters) Observe(before, after []metav1.Condition) {
	if c == nil {
		return
	}
	now := meta.FindStatusCondition(after, clusterv1beta1.ConditionTypeJoined)
	if now == nil || meta.IsStatusConditionPresentAndEqual(before, now.Type, now.Status) {
		return
	}
	switch now.Status {
	case metav1.ConditionTrue:
		c.joins.WithLabelValues(success).Inc()
	case metav1.ConditionFalse:
		c.leaves.WithLabelValues(success).Inc()
	}
}
