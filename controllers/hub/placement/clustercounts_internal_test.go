package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestAnEntryIsCountedByItsConditions(t *testing.T) {
	said := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	started := said(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionTrue, "")
	applied := said(placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, "")
	available := said(placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, "")
	for name, tc := range map[string]struct {
		index      string
		conditions []metav1.Condition
		want       clusterState
	}{
		"updated and available":        {"3", []metav1.Condition{started, applied, available}, clusterState{updated: true, available: true}},
		"available with an older one":  {"2", []metav1.Condition{started, applied, available}, clusterState{available: true}},
		"not available yet":            {"3", []metav1.Condition{started, applied, said(placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, "")}, clusterState{updated: true}},
		"of which nothing is heard":    {"3", []metav1.Condition{started, said(placementv1beta1.ConditionTypeApplied, metav1.ConditionUnknown, "")}, clusterState{}},
		"that cannot apply":            {"3", []metav1.Condition{started, said(placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, "")}, clusterState{failed: true}},
		"without its overrides":        {"3", []metav1.Condition{started, said(placementv1beta1.ConditionTypeOverridden, metav1.ConditionFalse, "")}, clusterState{failed: true}},
		"compared":                     {"3", []metav1.Condition{started, said(placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue, "")}, clusterState{updated: true}},
		"under the partition":          {"2", []metav1.Condition{said(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionTrue, placementv1beta1.ReasonHeldByPartition), applied, available}, clusterState{available: true, held: true}},
		"suspended":                    {"3", []metav1.Condition{said(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionFalse, placementv1beta1.ReasonSuspended)}, clusterState{held: true}},
		"behind the limits only":       {"3", []metav1.Condition{said(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionFalse, placementv1beta1.ReasonRolloutNotStartedYet)}, clusterState{}},
		"waiting for a lifecycle hook": {"3", []metav1.Condition{said(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionFalse, placementv1beta1.ReasonWaitingForHook)}, clusterState{held: true}},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &placementv1beta1.PerClusterPlacementStatus{ClusterName: "c", ObservedResourceIndex: tc.index, Conditions: tc.conditions}
			assert.Equal(t, tc.want, entryState(entry, Snapshot{Name: "s", Index: 3}))
		})
	}
}
