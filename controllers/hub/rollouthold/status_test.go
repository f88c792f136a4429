package rollouthold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var now = metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

// held is the condition of what waits.
var held = metav1.Condition{Type: fleetflowv1alpha1.ConditionTypeHeld, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonHoldInForce}

// sampleFleet has placement web on w1 and e1, of which e1 is in flight, and a held run of it that waits for w1.
func sampleFleet() fleet {
	web := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "web"}}}
	web.Status.Conditions = []metav1.Condition{held}
	waiting := held
	waiting.Type = placementv1beta1.ConditionTypeRolloutStarted
	web.Status.PlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "w1", Conditions: []metav1.Condition{waiting}}}
	binding := func(cluster string, available metav1.ConditionStatus) placementv1beta1.BindingObject {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
		b.Spec.TargetCluster, b.Spec.ResourceSnapshotName = cluster, "web-0-snapshot"
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: available}}
		return b
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
	run.Spec.PlacementName = "web"
	run.Status.Conditions = []metav1.Condition{held}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "w1"}}}}
	return fleet{
		labels:     map[string]map[string]string{"w1": {"region": "west"}, "e1": {"region": "east"}},
		placements: []placementv1beta1.PlacementObject{web, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "other"}}},
		bindings:   []placementv1beta1.BindingObject{binding("w1", metav1.ConditionTrue), binding("e1", metav1.ConditionFalse)},
		runs:       []placementv1beta1.UpdateRunObject{run},
	}
}

func TestTheStatusOfAHoldCountsWhatWaitsAndWhatIsUnderWay(t *testing.T) {
	in := func(region string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}
	}
	for sentence, test := range map[string]struct {
		spec                       fleetflowv1alpha1.RolloutHoldSpec
		runs, placements, inFlight int32
		reasons                    []string
	}{
		"all of the fleet":                     {fleetflowv1alpha1.RolloutHoldSpec{}, 1, 1, 1, []string{"Accepted", "HoldInForce", "ChangesInFlight"}},
		"the west, where nothing is under way": {fleetflowv1alpha1.RolloutHoldSpec{ClusterSelector: in("west")}, 1, 1, 0, []string{"Accepted", "HoldInForce", "NothingInFlight"}},
		"the east, where nothing waits":        {fleetflowv1alpha1.RolloutHoldSpec{ClusterSelector: in("east")}, 0, 0, 1, []string{"Accepted", "HoldInForce", "ChangesInFlight"}},
		"placements that there are not":        {fleetflowv1alpha1.RolloutHoldSpec{PlacementSelector: in("west")}, 0, 0, 0, []string{"Accepted", "HoldInForce", "NothingInFlight"}},
		"a selector that cannot be read selects all": {fleetflowv1alpha1.RolloutHoldSpec{PlacementSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}},
			1, 1, 1, []string{"InvalidSelector", "HoldInForce", "ChangesInFlight"}},
		"placements of no Namespace, by labels of one": {fleetflowv1alpha1.RolloutHoldSpec{NamespaceSelector: in("west")}, 0, 0, 0, []string{"Accepted", "HoldInForce", "NothingInFlight"}},
		"one that has expired counts nothing":          {fleetflowv1alpha1.RolloutHoldSpec{ExpirationTime: &now}, 0, 0, 0, []string{"Accepted", "HoldExpired", "HoldExpired"}},
		"one that expires later is still a hold":       {fleetflowv1alpha1.RolloutHoldSpec{ExpirationTime: &metav1.Time{Time: now.Add(time.Second)}}, 1, 1, 1, []string{"Accepted", "HoldInForce", "ChangesInFlight"}},
		"the run is no rollback, so it must wait":      {fleetflowv1alpha1.RolloutHoldSpec{Rollbacks: fleetflowv1alpha1.RollbacksExempt}, 1, 1, 1, []string{"Accepted", "HoldInForce", "ChangesInFlight"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			status := describe(&fleetflowv1alpha1.RolloutHold{Spec: test.spec}, sampleFleet(), now)
			assert.Equal(t, test.runs, status.HeldRuns)
			assert.Equal(t, test.placements, status.HeldPlacements)
			assert.Equal(t, test.inFlight, status.InFlight)
			var reasons []string
			for _, c := range status.Conditions {
				reasons = append(reasons, c.Reason)
			}
			assert.Equal(t, test.reasons, reasons)
		})
	}
}
