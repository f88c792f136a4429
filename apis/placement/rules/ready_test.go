package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhenAClusterIsReady(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC))
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, LastTransitionTime: since}
	}
	for sentence, test := range map[string]struct {
		strategy  placementv1beta1.ApplyStrategyType
		condition metav1.Condition
		minReady  time.Duration
		at        time.Time
		known     bool
	}{
		"after it has been available for the time": {condition: condition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, 2), minReady: time.Minute,
			at: since.Add(time.Minute), known: true},
		"at once without a time":                        {condition: condition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, 2), known: true},
		"unknown while it is not available":             {condition: condition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, 2), minReady: time.Minute},
		"unknown while nothing is said of its spec":     {condition: condition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, 1), minReady: time.Minute},
		"at once where differences are only reported":   {strategy: placementv1beta1.ApplyStrategyTypeReportDiff, condition: condition(placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue, 2), minReady: time.Minute, known: true},
		"after the time if it is applied by the server": {strategy: placementv1beta1.ApplyStrategyTypeServerSideApply, condition: condition(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, 2), minReady: time.Second, at: since.Add(time.Second), known: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			if test.strategy != "" {
				b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: test.strategy}
			}
			b.Status.Conditions = []metav1.Condition{test.condition}
			at, known := ReadyAt(b, test.minReady)
			assert.Equal(t, test.known, known)
			assert.True(t, test.at.Equal(at), "%s", at)
		})
	}
}
