package workmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatASilentMemberReportedIsNotKnownToHold(t *testing.T) {
	const text = "member-2 has not reported since 2026-03-01 10:00:00 UTC"
	now := metav1.NewTime(time.Date(2026, 3, 1, 10, 1, 0, 0, time.UTC))
	yes := metav1.ConditionTrue
	no := metav1.ConditionFalse
	unknown := metav1.ConditionUnknown
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	failed := []placementv1beta1.FailedResourcePlacement{{}}
	for sentence, tc := range map[string]struct {
		said, want metav1.Condition
		failed     []placementv1beta1.FailedResourcePlacement
	}{
		"a change that nobody has taken up": {
			condition("Applied", no, "ApplyInProgress", "Resources are being applied"), condition("Applied", unknown, "MemberClusterHeartbeatMissed", text), nil},
		"what was applied stays so": {
			condition("Applied", yes, "AllWorkHaveBeenApplied", "all"), condition("Applied", yes, "AllWorkHaveBeenApplied", "all"), nil},
		"what was available may not be so": {
			condition("Available", yes, "AllWorkAreAvailable", "all"), condition("Available", unknown, "MemberClusterHeartbeatMissed", text), nil},
		"a difference may have come": {
			condition("DiffReported", yes, "AllWorkHaveDiffReported", "all"), condition("DiffReported", unknown, "MemberClusterHeartbeatMissed", text), nil},
		"a failure that was reported keeps its objects": {
			condition("Applied", no, "NotAllWorkHaveBeenApplied", "refused"), condition("Applied", no, "NotAllWorkHaveBeenApplied", text+"; before that: refused"), failed},
		"what the hub itself does is known": {
			condition("WorkSynchronized", no, "SyncWorkFailed", "too large"), condition("WorkSynchronized", no, "SyncWorkFailed", "too large"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			binding := &placementv1beta1.ClusterResourceBinding{Spec: placementv1beta1.ResourceBindingSpec{TargetCluster: "member-2"}}
			status := &placementv1beta1.ResourceBindingStatus{Conditions: []metav1.Condition{tc.said}, FailedPlacements: tc.failed}
			workmodel.MarkDoubted(binding, status, clusterrules.Doubt{Reason: "MemberClusterHeartbeatMissed", Text: text}, now)
			tc.want.LastTransitionTime = now
			assert.Equal(t, []metav1.Condition{tc.want}, status.Conditions)
			assert.Equal(t, tc.want.Reason == "MemberClusterHeartbeatMissed", workmodel.FindDoubt(status.Conditions) != nil)
		})
	}
}
