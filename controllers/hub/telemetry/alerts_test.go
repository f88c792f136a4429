package telemetry_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// TestNoAlertOfAPlacementThatWaitsOnPurpose reads which reasons the alert leaves out.
func TestNoAlertOfAPlacementThatWaitsOnPurpose(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "charts", "hub-agent", "monitoring", "alerts.yaml"))
	require.NoError(t, err)
	found := regexp.MustCompile(`fleet_workload_placement_status_last_timestamp_seconds\{conditionType!="Completed",reason!~"([^"]*)"\}\) > 1800`).FindStringSubmatch(string(text))
	require.Len(t, found, 2)
	leftOut := regexp.MustCompile("^(?:" + found[1] + ")$")
	for _, reason := range []string{
		"RolloutStartedUnknown", placementv1beta1.ReasonRolloutControlledByExternalController, fleetflowv1alpha1.ReasonHoldInForce, fleetflowv1alpha1.ReasonWindowClosed,
		fleetflowv1alpha1.ReasonOutsideAllowedWindow, placementv1beta1.ReasonRolloutPaused, placementv1beta1.ReasonPartitionReached, placementv1beta1.ReasonSuspended,
		placementv1beta1.ReasonWaitingForHook,
	} {
		assert.True(t, leftOut.MatchString(reason), reason)
	}
	for _, reason := range []string{"RolloutNotStartedYet", "WorkNotSynchronizedYet", "ApplyFailed", "SchedulingPolicyUnfulfilled", ""} {
		assert.False(t, leftOut.MatchString(reason), reason)
	}
}
