package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// hooked is a placement on two clusters with the latest snapshot but one, the first of which stands somewhere between the hooks.
func hooked(snapshot int, state placementv1beta1.LifecycleState) situation {
	s := newSituation("a", "b").snapshot(1).rolling(placementv1beta1.RollingUpdateConfig{}).bound(snapshot, up, "a", "b")
	hook := placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"example.com/in-service": "yes"}}
	s.Placement.Spec.Strategy.Lifecycle = &placementv1beta1.ClusterLifecycle{
		PreUpdate: &placementv1beta1.ClusterDrainHook{ClusterHook: hook}, PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: hook},
	}
	s.Verdict.Snapshot = s.Latest.Name
	s.Verdict.Index = 1
	b := s.binding("a")
	if b.Labels == nil {
		b.Labels = map[string]string{}
	}
	b.Labels["example.com/in-service"], b.Labels[placementv1beta1.LifecycleStateLabel] = "yes", string(state)
	return s
}

func TestAWaitForAHookIsTold(t *testing.T) {
	s := hooked(0, placementv1beta1.LifecyclePreparingUpdate)
	status := Project(s.Facts, View{Now: now})
	entry := meta.FindStatusCondition(status.PerClusterPlacementStatuses[0].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
	assert.Equal(t, metav1.ConditionFalse, entry.Status)
	assert.Equal(t, placementv1beta1.ReasonWaitingForHook, entry.Reason)
	assert.Contains(t, entry.Message, "waits for label example.com/in-service=yes to be taken off binding "+s.binding("a").Name)
	whole := meta.FindStatusCondition(status.Conditions, placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted))
	require.NotNil(t, whole)
	assert.Contains(t, whole.Message, "; waiting for lifecycle hooks: a waits for label example.com/in-service=yes")
	assert.Len(t, newFindings(nil, status.PerClusterPlacementStatuses, describeHookWait), 1, "an event says it once")
	assert.Empty(t, newFindings(status.PerClusterPlacementStatuses, status.PerClusterPlacementStatuses, describeHookWait))
	assert.Empty(t, newLeavingHook(&placementv1beta1.PlacementStatus{}, &status))
}

func TestTheAnswerToAHookWakesTheWorkflow(t *testing.T) {
	s := hooked(0, placementv1beta1.LifecyclePreparingUpdate)
	before := NeedsWork(s.Facts)
	delete(s.binding("a").Labels, "example.com/in-service")
	assert.NotEqual(t, before.Progress, NeedsWork(s.Facts).Progress)
}

func TestAClusterThatWasPreparedForAnEvictionThatIsGoneNeedsTheWorkflow(t *testing.T) {
	assert.NotEmpty(t, NeedsWork(hooked(1, placementv1beta1.LifecyclePreparingRemove).Facts).Cause)
	assert.Empty(t, NeedsWork(hooked(1, placementv1beta1.LifecycleNormal).Facts).Cause)
	external := hooked(1, placementv1beta1.LifecyclePreparingRemove)
	external.Placement.Spec.Strategy.Type = placementv1beta1.ExternalRolloutStrategyType
	assert.NotEmpty(t, NeedsWork(external.Facts).Cause, "no rollout of its own puts it back")
}
