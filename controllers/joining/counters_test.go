package joining

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestMembersAreCountedWhenTheyHaveJoinedAndLeft(t *testing.T) {
	joined := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: status}}
	}
	for sentence, test := range map[string]struct {
		before, after []metav1.Condition
		joins, leaves float64
	}{
		"a new member that has joined":      {nil, joined(metav1.ConditionTrue), 1, 0},
		"a member that was asked to join":   {joined(metav1.ConditionUnknown), joined(metav1.ConditionTrue), 1, 0},
		"a member that has left":            {joined(metav1.ConditionTrue), joined(metav1.ConditionFalse), 0, 1},
		"a member that joins again":         {joined(metav1.ConditionFalse), joined(metav1.ConditionTrue), 1, 0},
		"a member that stays":               {joined(metav1.ConditionTrue), joined(metav1.ConditionTrue), 0, 0},
		"a member of which nothing is said": {joined(metav1.ConditionTrue), nil, 0, 0},
		"a member that is not known":        {joined(metav1.ConditionTrue), joined(metav1.ConditionUnknown), 0, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := NewCounters()
			c.Observe(test.before, test.after)
			assert.InDelta(t, test.joins, testutil.ToFloat64(c.joins.WithLabelValues(success)), 0)
			assert.InDelta(t, test.leaves, testutil.ToFloat64(c.leaves.WithLabelValues(success)), 0)
		})
	}
	var none *Counters
	assert.NotPanics(t, func() { none.Observe(nil, joined(metav1.ConditionTrue)) })
}
