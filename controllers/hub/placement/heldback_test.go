package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func (s situation) rolling(config placementv1beta1.RollingUpdateConfig) situation {
	s.Placement.Spec.Strategy.RollingUpdate = &config
	return s
}

// threeOfFive has five clusters, of which two have the latest snapshot.
func threeOfFive(config placementv1beta1.RollingUpdateConfig) situation {
	s := newSituation("a", "b", "c", "d", "e").snapshot(1).rolling(config)
	return s.bound(1, up, "a", "b").bound(0, up, "c", "d", "e")
}

func TestWhatIsHeldBackIsTold(t *testing.T) {
	started := placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted)
	partition := func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	for sentence, test := range map[string]struct {
		config          placementv1beta1.RollingUpdateConfig
		status          metav1.ConditionStatus
		reason, message string
		ofCluster       string // reason of a cluster at the older snapshot
		index           string // the snapshot it is said to have
		needs           bool
	}{
		"a partition that is reached": {
			placementv1beta1.RollingUpdateConfig{Partition: partition(3)}, metav1.ConditionTrue,
			placementv1beta1.ReasonPartitionReached, "2 of 5 cluster(s) updated, 3 held by partition", placementv1beta1.ReasonHeldByPartition, "0", false,
		},
		"also during a pause": {
			placementv1beta1.RollingUpdateConfig{Partition: partition(4), Paused: true}, metav1.ConditionTrue,
			placementv1beta1.ReasonPartitionReached, "2 of 5 cluster(s) updated, 3 held by partition", placementv1beta1.ReasonHeldByPartition, "0", false,
		},
		"one that is not reached": {
			placementv1beta1.RollingUpdateConfig{Partition: partition(2)}, metav1.ConditionFalse,
			placementv1beta1.ReasonRolloutNotStartedYet, "The rollout is being blocked by the rollout strategy in 3 cluster(s)", placementv1beta1.ReasonRolloutNotStartedYet, "1", true,
		},
		"a pause": {
			placementv1beta1.RollingUpdateConfig{Paused: true}, metav1.ConditionFalse, placementv1beta1.ReasonRolloutPaused,
			"2 of 5 cluster(s) updated, the rollout is paused: set strategy.rollingUpdate.paused to false to go on", placementv1beta1.ReasonRolloutPaused, "1", false,
		},
		"neither": {
			placementv1beta1.RollingUpdateConfig{}, metav1.ConditionFalse,
			placementv1beta1.ReasonRolloutNotStartedYet, "The rollout is being blocked by the rollout strategy in 3 cluster(s)", placementv1beta1.ReasonRolloutNotStartedYet, "1", true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := threeOfFive(test.config)
			s.Verdict.Snapshot = s.Latest.Name
			s.Verdict.Index = 1
			status := Project(s.Facts, View{Now: now})
			said := meta.FindStatusCondition(status.Conditions, started)
			require.NotNil(t, said)
			assert.Equal(t, []any{test.status, test.reason, test.message}, []any{said.Status, said.Reason, said.Message})
			held := meta.FindStatusCondition(status.PerClusterPlacementStatuses[4].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
			require.NotNil(t, held)
			assert.Equal(t, test.ofCluster, held.Reason)
			assert.Equal(t, test.index, status.PerClusterPlacementStatuses[4].ObservedResourceIndex)
			available := meta.FindStatusCondition(status.Conditions, placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeAvailable))
			assert.Equal(t, test.status == metav1.ConditionTrue, available != nil, "what comes after is told once the rollout is where it shall be")
			assert.Equal(t, test.needs, rolloutPending(s.Facts), "only a change of the placement takes on what is held back")
		})
	}
}

func TestAPauseIsNotStuck(t *testing.T) {
	s := threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true, MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))})
	s.Placement.Status = Project(s.Facts, View{Now: earlier})
	status := Project(s.Facts, View{Now: metav1.NewTime(earlier.Add(time.Hour))})
	for _, condition := range status.Conditions {
		assert.NotContains(t, condition.Message, "; stuck")
	}
}

func TestAPauseIsAnEventOnce(t *testing.T) {
	s := threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true})
	s.Verdict.Snapshot = s.Latest.Name
	s.Verdict.Index = 1
	status := Project(s.Facts, View{Now: now})
	assert.Contains(t, newlyHeld(s.Placement, status, placementv1beta1.ReasonRolloutPaused), "the rollout is paused")
	assert.Empty(t, newlyHeld(s.Placement, status, placementv1beta1.ReasonPartitionReached))
	s.Placement.Status = status
	assert.Empty(t, newlyHeld(s.Placement, status, placementv1beta1.ReasonRolloutPaused))
}

func (s situation) suspending(suspension placementv1beta1.Suspension) situation {
	s.Placement.Spec.Strategy.Suspension = &suspension
	s.Verdict.Snapshot = s.Latest.Name
	s.Verdict.Index = s.Latest.Index
	return s
}

func TestWhatIsSuspendedIsTold(t *testing.T) {
	only := func(clusters ...string) placementv1beta1.Suspension {
		return placementv1beta1.Suspension{ClusterNames: clusters}
	}
	none := placementv1beta1.RollingUpdateConfig{}
	const blocked = "The rollout is being blocked by the rollout strategy in 3 cluster(s)"
	for sentence, test := range map[string]struct {
		situation       situation
		reason, message string
		ofClusters      []string // reasons of a and e
		needs           bool
	}{
		"a cluster with the latest resources, while others wait": {
			threeOfFive(none).suspending(only("a")), placementv1beta1.ReasonRolloutNotStartedYet, blocked,
			[]string{placementv1beta1.ReasonSuspended, placementv1beta1.ReasonRolloutNotStartedYet}, true,
		},
		"clusters without them": {
			threeOfFive(none).suspending(only("c", "d", "e")), placementv1beta1.ReasonSuspended,
			"2 of 5 cluster(s) updated, the others are suspended: leave them out of strategy.suspension to go on",
			[]string{placementv1beta1.ReasonRolloutStarted, placementv1beta1.ReasonSuspended}, false,
		},
		"all clusters": {
			threeOfFive(none).suspending(placementv1beta1.Suspension{All: true}), placementv1beta1.ReasonSuspended,
			"2 of 5 cluster(s) updated, the others are suspended: leave them out of strategy.suspension to go on",
			[]string{placementv1beta1.ReasonSuspended, placementv1beta1.ReasonSuspended}, false,
		},
		"beside a partition": {
			threeOfFive(placementv1beta1.RollingUpdateConfig{Partition: new(intstr.FromInt32(3))}).suspending(only("a")), placementv1beta1.ReasonPartitionReached,
			"2 of 5 cluster(s) updated, 3 held by partition; 1 cluster(s) suspended",
			[]string{placementv1beta1.ReasonSuspended, placementv1beta1.ReasonHeldByPartition}, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := test.situation
			status := Project(s.Facts, View{Now: now})
			said := meta.FindStatusCondition(status.Conditions, placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeRolloutStarted))
			require.NotNil(t, said)
			assert.Equal(t, []any{test.reason, test.message}, []any{said.Reason, said.Message})
			for i, at := range []int{0, 4} {
				of := meta.FindStatusCondition(status.PerClusterPlacementStatuses[at].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
				require.NotNil(t, of)
				assert.Equal(t, test.ofClusters[i], of.Reason, status.PerClusterPlacementStatuses[at].ClusterName)
			}
			assert.Equal(t, test.needs, rolloutPending(s.Facts), "only a change of the placement takes on what is suspended")
			for _, condition := range Project(s.Facts, View{Now: metav1.NewTime(now.Add(time.Hour))}).Conditions {
				assert.NotContains(t, condition.Message, "; stuck on", "nothing is stuck on a suspended cluster")
			}
		})
	}
}

func TestASuspendedClusterThatIsNotPickedAnyMoreIsNamed(t *testing.T) {
	s := threeOfFive(placementv1beta1.RollingUpdateConfig{}).suspending(placementv1beta1.Suspension{ClusterNames: []string{"e"}})
	s.binding("e").Spec.State = placementv1beta1.BindingStateUnscheduled
	s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:4]
	leaving := meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeClustersLeaving)
	require.NotNil(t, leaving)
	assert.Contains(t, leaving.Message, "when strategy.suspension leaves them out from 1 cluster(s), e")
}

func TestASuspensionIsAnEventWhenItBeginsAndWhenItEnds(t *testing.T) {
	s := threeOfFive(placementv1beta1.RollingUpdateConfig{})
	free := Project(s.Facts, View{Now: now}).PerClusterPlacementStatuses
	suspended := Project(s.suspending(placementv1beta1.Suspension{ClusterNames: []string{"a", "e"}}).Facts, View{Now: now}).PerClusterPlacementStatuses
	assert.Equal(t, []string{"a", "e"}, newlySuspended(free, suspended))
	assert.Empty(t, newlySuspended(suspended, suspended))
	assert.Empty(t, newlySuspended(suspended, free))
	assert.Equal(t, []string{"a", "e"}, newlySuspended(free, suspended))
}
