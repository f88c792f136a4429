package fleetview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// An approval that was written after the time does not count, whatever its condition says.
func TestARequestThatHasExpiredIsNotShownAsApproved(t *testing.T) {
	for state, request := range map[string]placementv1beta1.ApprovalRequestStatus{
		"expired": {Conditions: []metav1.Condition{
			{Type: "Approved", Status: metav1.ConditionTrue, Reason: "lgtm"}, {Type: "ApprovalAccepted", Status: metav1.ConditionFalse, Reason: "RequestExpired"},
		}},
		"approved": {Conditions: []metav1.Condition{{Type: "Approved", Status: metav1.ConditionTrue, Reason: "lgtm"}}},
	} {
		object := &placementv1beta1.ClusterApprovalRequest{Status: request}
		assert.Equal(t, state, fleetview.ApprovalOf(hub.ApprovalOf(object), nil, time.Now()).State)
	}
}
