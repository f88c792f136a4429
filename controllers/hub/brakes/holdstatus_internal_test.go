package brakes

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var now = metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))

// held is the condition of what waits.
var held = metav1.Condition{Type: fleetflowv1alpha1.ConditionTypeHeld, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonHoldInForce}

// sampleFleet has placement web on w1 and e1, of which e1 is in flight, and a held run of it that waits for w1.
func sampleFleet() *fleet {
	web := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "web"}}}
	web.Status.Conditions = []metav1.Condition{held}
	waiting := held
	waiting.Type = placementv1beta1.ConditionTypeRolloutStarted
	web.Status.ObservedResourceIndex = "0"
	web.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "w1", Conditions: []metav1.Condition{waiting}}}
	binding := func(cluster string, available metav1.ConditionStatus) placementv1beta1.BindingObject {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.TargetCluster = cluster
		b.Spec.ResourceSnapshotName = "web-0-snapshot"
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: available}}
		return b
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
	run.Spec.PlacementName = "web"
	run.Status.Conditions = []metav1.Condition{held}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "w1"}}}}
	return &fleet{
		labels:     map[string]map[string]string{"w1": {"region": "west"}, "e1": {"region": "east"}},
		placements: []placementv1beta1.PlacementObject{web, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "other"}}},
		bindings:   byPlacement([]placementv1beta1.BindingObject{binding("w1", metav1.ConditionTrue), binding("e1", metav1.ConditionFalse)}),
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
			status := describeHold(&fleetflowv1alpha1.RolloutHold{Spec: test.spec}, sampleFleet(), now)
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

func TestAHoldCountsOnlyWhatItClosesItself(t *testing.T) {
	of := func(starts ...fleetflowv1alpha1.Start) fleetflowv1alpha1.RolloutHoldSpec {
		return fleetflowv1alpha1.RolloutHoldSpec{Starts: starts}
	}
	web := types.NamespacedName{Name: "web"}
	for sentence, test := range map[string]struct {
		spec             fleetflowv1alpha1.RolloutHoldSpec
		change           func(*fleet)
		placements, runs int32
	}{
		"a hold of evictions beside what holds updates": {of(fleetflowv1alpha1.StartEvictions), func(*fleet) {}, 0, 0},
		"a hold of evictions, and one that waits": {of(fleetflowv1alpha1.StartEvictions), func(f *fleet) {
			f.evictions = map[types.NamespacedName][]string{web: {"w1"}}
		}, 1, 0},
		"an eviction from a cluster that has nothing of it": {of(fleetflowv1alpha1.StartEvictions), func(f *fleet) {
			f.evictions = map[types.NamespacedName][]string{web: {"w2"}}
		}, 0, 0},
		"a hold of first placements, beside updates that wait": {of(fleetflowv1alpha1.StartFirstPlacements), func(*fleet) {}, 0, 0},
		"a hold of updates": {of(fleetflowv1alpha1.StartUpdates), func(*fleet) {}, 1, 1},
		"a cluster that the status has no room for": {of(fleetflowv1alpha1.StartUpdates), func(f *fleet) {
			f.placements[0].GetPlacementStatus().PerClusterPlacementStatuses = nil
			f.bindings[web][0].GetBindingSpec().ResourceSnapshotName = "web-7-snapshot"
		}, 1, 1},
		"an update of what is current waits for nothing": {of(fleetflowv1alpha1.StartUpdates), func(f *fleet) {
			f.placements[0].GetPlacementStatus().PerClusterPlacementStatuses = nil
		}, 0, 1},
		"a removal that waits": {of(fleetflowv1alpha1.StartRemovals), func(f *fleet) {
			f.bindings[web][0].GetBindingSpec().State = placementv1beta1.BindingStateUnscheduled
		}, 1, 0},
		"a later stage does not wait yet": {of(), func(f *fleet) {
			status := f.runs[0].GetUpdateRunStatus()
			status.StagesStatus = append([]placementv1beta1.StageUpdatingStatus{{StageName: "first", Clusters: []placementv1beta1.ClusterUpdatingStatus{{
				ClusterName: "e1", Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}},
			}}}}, status.StagesStatus...)
		}, 1, 0},
		"a cluster that has left the fleet is not gated": {of(), func(f *fleet) { delete(f.labels, "w1") }, 0, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := sampleFleet()
			test.change(f)
			status := describeHold(&fleetflowv1alpha1.RolloutHold{Spec: test.spec}, f, now)
			assert.Equal(t, test.placements, status.HeldPlacements, "placements")
			assert.Equal(t, test.runs, status.HeldRuns, "runs")
		})
	}
}

func TestEventsTellHowFarAHoldIs(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason}
	}
	accepted := condition(fleetflowv1alpha1.ConditionTypeAccepted, metav1.ConditionTrue, fleetflowv1alpha1.ReasonAccepted)
	inForce := condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionTrue, fleetflowv1alpha1.ReasonHoldInForce)
	moving := condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionFalse, fleetflowv1alpha1.ReasonChangesInFlight)
	quiet := condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionTrue, fleetflowv1alpha1.ReasonNothingInFlight)
	expired := condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionFalse, fleetflowv1alpha1.ReasonHoldExpired)
	refused := condition(fleetflowv1alpha1.ConditionTypeAccepted, metav1.ConditionFalse, fleetflowv1alpha1.ReasonInvalidSelector)
	for sentence, test := range map[string]struct {
		before, now []metav1.Condition
		told        []string
	}{
		"it begins":            {nil, []metav1.Condition{accepted, inForce, moving}, []string{"Warning HoldInForce HoldInForce: payments down"}},
		"it is quiet":          {[]metav1.Condition{accepted, inForce, moving}, []metav1.Condition{accepted, inForce, quiet}, []string{"Normal HoldQuiet NothingInFlight"}},
		"nothing is new":       {[]metav1.Condition{accepted, inForce, quiet}, []metav1.Condition{accepted, inForce, quiet}, nil},
		"it expires":           {[]metav1.Condition{accepted, inForce, quiet}, []metav1.Condition{accepted, expired}, []string{"Normal HoldExpired HoldExpired"}},
		"it cannot be read so": {[]metav1.Condition{accepted, inForce}, []metav1.Condition{refused, inForce}, []string{"Warning HoldNotAccepted InvalidSelector"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			(&HoldReconciler{events: recorder}).emitHoldEvents(&fleetflowv1alpha1.RolloutHold{Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}, test.before, test.now)
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				told = append(told, event)
			}
			assert.Equal(t, test.told, told)
		})
	}
}

// countedBinding counts how often its spec is looked at.
type countedBinding struct {
	*placementv1beta1.ClusterResourceBinding
	looks *int
}

func (b countedBinding) GetBindingSpec() *placementv1beta1.ResourceBindingSpec {
	*b.looks++
	return b.ClusterResourceBinding.GetBindingSpec()
}

// The work for a status grows with the bindings that there are: each placement, run and eviction looks at bindings of its own alone, and
// a number of times that does not depend on how many there are. Nothing waits for this hold, so that nothing is found early.
func TestTheStatusOfAHoldLooksAtEachBindingAFewTimes(t *testing.T) {
	looksAt := func(placements, clusters int) int {
		looks := 0
		f := &fleet{labels: map[string]map[string]string{}, evictions: map[types.NamespacedName][]string{}}
		var bindings []placementv1beta1.BindingObject
		for p := range placements {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("placement-%d", p)}}
			placement.Status.Conditions = []metav1.Condition{held}
			run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: placement.Name}}
			run.Spec.PlacementName = placement.Name
			run.Status.Conditions = []metav1.Condition{held}
			stage := placementv1beta1.StageUpdatingStatus{StageName: "all"}
			for c := range clusters {
				cluster := fmt.Sprintf("cluster-%d", c)
				f.labels[cluster] = map[string]string{"region": "west"}
				f.evictions[types.NamespacedName{Name: placement.Name}] = append(f.evictions[types.NamespacedName{Name: placement.Name}], cluster)
				stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: cluster})
				binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
					Name: placement.Name + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement.Name},
				}}
				binding.Spec.State = placementv1beta1.BindingStateBound
				binding.Spec.TargetCluster = cluster
				binding.Spec.ResourceSnapshotName = placement.Name + "-0-snapshot"
				bindings = append(bindings, countedBinding{binding, &looks})
			}
			run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{stage}
			f.placements = append(f.placements, placement)
			f.runs = append(f.runs, run)
		}
		f.bindings = byPlacement(bindings)
		for sentence, spec := range map[string]fleetflowv1alpha1.RolloutHoldSpec{
			"of clusters that there are not":    {ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "east"}}},
			"of a start that nothing waits for": {Starts: []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartFirstPlacements}},
		} {
			status := describeHold(&fleetflowv1alpha1.RolloutHold{Spec: spec}, f, now)
			assert.Zero(t, status.HeldPlacements+status.HeldRuns, sentence)
		}
		return looks
	}
	few := looksAt(10, 10)
	assert.LessOrEqual(t, few, 2*6*10*10, "two holds")
	assert.Equal(t, 3*few, looksAt(30, 10), "three times as many placements")
	assert.Equal(t, 3*few, looksAt(10, 30), "three times as many clusters")
}

// BenchmarkTheStatusOfAHoldOfTheWholeFleet looks once at 1,000 placements on 100 clusters each, all of which wait for a hold.
func BenchmarkTheStatusOfAHoldOfTheWholeFleet(b *testing.B) {
	f := &fleet{labels: map[string]map[string]string{}}
	waiting := held
	waiting.Type = placementv1beta1.ConditionTypeRolloutStarted
	var bindings []placementv1beta1.BindingObject
	for c := range 100 {
		f.labels[fmt.Sprintf("cluster-%d", c)] = map[string]string{"region": fmt.Sprintf("r%d", c%5)}
	}
	for p := range 1000 {
		placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("placement-%d", p)}}
		placement.Status.Conditions = []metav1.Condition{held}
		for c := range 100 {
			cluster := fmt.Sprintf("cluster-%d", c)
			placement.Status.PerClusterPlacementStatuses = append(placement.Status.PerClusterPlacementStatuses,
				placementv1beta1.PerClusterPlacementStatus{ClusterName: cluster, Conditions: []metav1.Condition{waiting}})
			binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
				Name: placement.Name + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement.Name},
			}}
			binding.Spec.State = placementv1beta1.BindingStateBound
			binding.Spec.TargetCluster = cluster
			binding.Spec.ResourceSnapshotName = placement.Name + "-0-snapshot"
			binding.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue}}
			bindings = append(bindings, binding)
		}
		f.placements = append(f.placements, placement)
	}
	hold := &fleetflowv1alpha1.RolloutHold{}
	hold.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "r4"}}
	for b.Loop() {
		f.bindings = byPlacement(bindings)
		if status := describeHold(hold, f, now); status.HeldPlacements != 1000 {
			b.Fatalf("%d placements wait", status.HeldPlacements)
		}
	}
}
