package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestNeedsWork(t *testing.T) {
	deleting := func(s situation, cluster string) { s.binding(cluster).DeletionTimestamp = new(now) }
	cases := map[string]struct {
		change func(situation) situation
		cause  string
		// quiet says that a need waits until nothing moves.
		quiet bool
	}{
		"a settled placement needs nothing": {},
		"a placement being deleted needs nothing": {change: func(s situation) situation {
			s.Placement.DeletionTimestamp = new(now)
			s.Placement.Generation = 2
			return s
		}},
		"a new generation has not been selected for": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Placement.Generation = 2
			return s
		}},
		"a placement without a verdict": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Verdict.Generation = 0
			return s
		}},
		"a placement without a policy snapshot": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Facts.Policy = nil
			return s
		}},
		"a new generation has not been scheduled": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Placement.Generation, s.Verdict.Generation = 2, 2
			return s
		}},
		"another placement with a priority has other objects": {cause: wf.CauseResources, change: func(s situation) situation {
			s.Verdict.Rivals, s.Rivals = "before", "now"
			return s
		}},
		"what was selected knew the other placements with a priority": {change: func(s situation) situation {
			s.Verdict.Rivals, s.Rivals = "now", "now"
			return s
		}},
		"a user asks to reschedule": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Placement.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: "2026-01-31T12:00:00Z"}
			return s
		}},
		"a request to reschedule that was carried out": {change: func(s situation) situation {
			s.Placement.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: "2026-01-31T12:00:00Z"}
			s.Facts.Policy.SetAnnotations(s.Placement.Annotations)
			return s
		}},
		"a request to reschedule that is no time": {change: func(s situation) situation {
			s.Placement.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: "now"}
			return s
		}},
		"another scheduler has picked by another policy, the same clusters": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Facts.Policy.GetPolicySnapshotStatus().Conditions = nil
			return s.delegated(2, 2, 2)
		}},
		"another scheduler picks no more what is told to be missing": {cause: wf.CauseBindings, change: func(s situation) situation {
			s = s.delegated(2, 2, 2)
			s.Policy.Annotations[placementv1beta1.ClustersNotFoundAnnotation] = "nowhere"
			return s
		}},
		"another scheduler has picked a cluster that is missing, and it is told": {change: func(s situation) situation {
			s = s.delegated(2, 2, 2)
			s.Policy.Annotations[placementv1beta1.ClustersNotFoundAnnotation] = "nowhere"
			s.Policy.Status.ClusterDecisions = append(s.Policy.Status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: "nowhere", Selected: true})
			return s
		}},
		"another scheduler has picked, and it is told": {change: func(s situation) situation { return s.delegated(2, 2, 2) }},
		"replicas could be scaled": {cause: wf.CauseReplicas, change: func(s situation) situation {
			s.Scalable = []workmodel.AssignmentChange{{Binding: s.Bindings[0]}}
			return s
		}},
		"replicas could be scaled, and required overrides are missing": {change: func(s situation) situation {
			s.Scalable = []workmodel.AssignmentChange{{Binding: s.Bindings[0]}}
			s.Overrides.Lacking = []string{"ClusterResourceOverride cro"}
			s.Verdict.OverridesLacking = []string{"ClusterResourceOverride cro"}
			return s
		}},
		"a policy that waits for another snapshot": {change: func(s situation) situation {
			s.Facts.Policy.SetAnnotations(map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0"})
			return s
		}},
		"a policy that has waited for the snapshot": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Facts.Policy.SetAnnotations(map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0"})
			s.snapshot(1)
			s.Verdict.Index = 1
			s.Verdict.Snapshot = "crp-1-snapshot"
			return s
		}},
		"another scheduler needs the policy snapshot": {cause: wf.CauseSpec, change: func(s situation) situation {
			return s.delegated(2, 1, 1)
		}},
		"another scheduler is to pick": {change: func(s situation) situation {
			return s.delegated(2, 2, 1)
		}},
		"another scheduler has picked what is there": {change: func(s situation) situation {
			return s.delegated(2, 2, 2)
		}},
		"another scheduler has picked another cluster": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Facts.Policy.GetPolicySnapshotStatus().ClusterDecisions[0].ClusterName = "other"
			return s.delegated(2, 2, 2)
		}},
		"another scheduler has picked what is not there": {change: func(s situation) situation {
			status := s.Facts.Policy.GetPolicySnapshotStatus()
			status.ClusterDecisions = append(status.ClusterDecisions, placementv1beta1.ClusterDecision{ClusterName: "nowhere", Selected: true})
			s = s.delegated(2, 2, 2)
			s.Facts.Policy.GetAnnotations()[placementv1beta1.ClustersNotFoundAnnotation] = "nowhere"
			return s
		}},
		"a rollout without a required override waits": {change: func(s situation) situation {
			s.snapshot(1)
			s.Verdict.Snapshot = "crp-1-snapshot"
			s.Verdict.Index = 1
			s.Overrides.Lacking = []string{"ClusterResourceOverride cro"}
			s.Verdict.OverridesLacking = []string{"ClusterResourceOverride cro"}
			return s
		}},
		"a required override that is there now": {cause: wf.CauseOverrides, change: func(s situation) situation {
			s.Verdict.OverridesLacking = []string{"ClusterResourceOverride cro"}
			return s
		}},
		"replicas that have not been divided": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Verdict.Demand = "3 replicas"
			return s
		}},
		"replicas that have been divided": {change: func(s situation) situation {
			s.Verdict.Demand = "3 replicas"
			s.Facts.Policy.SetAnnotations(map[string]string{placementv1beta1.ReplicaDemandAnnotation: "3 replicas"})
			return s
		}},
		"replicas that can come into force": {cause: wf.CauseReplicas, change: func(s situation) situation {
			s.Scalable = []workmodel.AssignmentChange{{Binding: s.binding("member2")}}
			return s
		}},
		"replicas that can come into force while a rollout is pending": {cause: wf.CauseReplicas, change: func(s situation) situation {
			s.Scalable = []workmodel.AssignmentChange{{Binding: s.binding("member2")}}
			return s.snapshot(1)
		}},
		"pods that no node takes": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Unlearnt = []string{"a apps/Deployment web/front 10"}
			return s
		}},
		"removals only a user can accept": {cause: wf.CauseSpec, quiet: true, change: func(s situation) situation {
			s.Facts.Policy, s.Facts.Held = nil, rules.NewHeldRemovals(s.Placement, []rules.HeldRemoval{{Binding: "b"}})
			return s
		}},
		"removals that a user has accepted": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Facts.Held = rules.NewHeldRemovals(s.Placement, []rules.HeldRemoval{{Binding: "b"}})
			s.Placement.Annotations = map[string]string{placementv1beta1.RemovalsAcceptedAnnotation: s.Facts.Held.Token(s.Placement)}
			return s
		}},
		"a loss of the selection only a user can accept": {change: func(s situation) situation {
			return s.losing()
		}},
		"a loss that a user has accepted": {cause: wf.CauseSpec, change: func(s situation) situation {
			s = s.losing()
			s.Placement.Annotations = map[string]string{placementv1beta1.SelectionLossAcceptedAnnotation: s.Verdict.Lost.Token(s.Placement, s.Verdict.Index)}
			return s
		}},
		"a loss that was accepted of an earlier snapshot": {change: func(s situation) situation {
			s = s.losing()
			s.Placement.Annotations = map[string]string{placementv1beta1.SelectionLossAcceptedAnnotation: s.Verdict.Lost.Token(s.Placement, s.Verdict.Index-1)}
			return s
		}},
		"a loss of a placement that opts out since": {cause: wf.CauseSpec, change: func(s situation) situation {
			s = s.losing()
			s.Placement.Annotations = map[string]string{placementv1beta1.AcceptRemovalsAnnotation: "true"}
			return s
		}},
		"an acceptance that is done with": {change: func(s situation) situation {
			s = s.losing()
			s.Placement.Annotations = map[string]string{placementv1beta1.SelectionLossAcceptedAnnotation: s.Verdict.Lost.Token(s.Placement, s.Verdict.Index)}
			s.Verdict.Lost = nil
			return s
		}},
		"selectors only the user can mend": {change: func(s situation) situation {
			s.Verdict.Error = "no such kind"
			s.Facts.Policy = nil
			return s
		}},
		"a cluster that waits for the latest resources": {cause: wf.CauseAvailability, change: func(s situation) situation {
			return s.snapshot(1)
		}},
		"a cluster that waits for its first resources": {cause: wf.CauseAvailability, change: func(s situation) situation {
			s.binding("member2").Spec.State = placementv1beta1.BindingStateScheduled
			s.binding("member2").Spec.ResourceSnapshotName = ""
			return s
		}},
		"a cluster that waits for another way of applying": {cause: wf.CauseAvailability, change: func(s situation) situation {
			s.Placement.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
			return s
		}},
		"what is placed on a cluster has not been available for too long": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Overdue = "abc"
			return s.failingOver()
		}},
		"and the last decision knew that": {change: func(s situation) situation {
			s.Overdue = "abc"
			s.Facts.Policy.SetAnnotations(map[string]string{placementv1beta1.OverdueAnnotation: "abc"})
			return s.failingOver()
		}},
		"one has recovered that is held": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Facts.Held = rules.NewHeldRemovals(s.Placement, []rules.HeldRemoval{{Binding: "b"}})
			s.Facts.Policy.SetAnnotations(map[string]string{placementv1beta1.OverdueAnnotation: "abc"})
			return s.failingOver()
		}},
		"replicas were withheld for what is not placed any more": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.binding("member2").Spec.ClusterDecision.Withheld = &placementv1beta1.WithheldReplicas{Because: placementv1beta1.CauseApplication, ResourceSnapshotName: "earlier"}
			return s.failingOver()
		}},
		"replicas are withheld for what is placed": {change: func(s situation) situation {
			s.binding("member2").Spec.ClusterDecision.Withheld = &placementv1beta1.WithheldReplicas{
				Because: placementv1beta1.CauseApplication, ResourceSnapshotName: snapshot.LatestOf(s.Placement),
			}
			return s.failingOver()
		}},
		"replicas are withheld for an ill cluster": {change: func(s situation) situation {
			s.binding("member2").Spec.ClusterDecision.Withheld = &placementv1beta1.WithheldReplicas{Because: placementv1beta1.CauseCluster}
			return s.failingOver()
		}},
		"a copy that stays until it is evicted": {change: func(s situation) situation {
			s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:1]
			s.binding("member2").Spec.State = placementv1beta1.BindingStateUnscheduled
			s.binding("member2").Annotations = map[string]string{placementv1beta1.SupersededAnnotation: "2026-01-02T03:04:05Z"}
			return s
		}},
		"a cluster to be removed": {cause: wf.CauseAvailability, change: func(s situation) situation {
			s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:1]
			s.binding("member2").Spec.State = placementv1beta1.BindingStateUnscheduled
			return s
		}},
		"a cluster on its way out": {change: func(s situation) situation {
			s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:1]
			s.binding("member2").Spec.State = placementv1beta1.BindingStateUnscheduled
			deleting(s, "member2")
			return s
		}},
		"a picked cluster whose binding is being deleted": {cause: wf.CauseBindings, change: func(s situation) situation {
			deleting(s, "member2")
			return s
		}},
		"a picked cluster whose binding is gone": {cause: wf.CauseBindings, change: func(s situation) situation {
			s.Bindings = s.Bindings[:1]
			return s
		}},
		"PickN has more clusters than it asks for": {cause: wf.CauseBindings, quiet: true, change: func(s situation) situation {
			s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(1))}
			return s
		}},
		"PickN has as many clusters as it asks for beside one on its way out": {change: func(s situation) situation {
			s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(1))}
			s.Policy.Status.ClusterDecisions = s.Policy.Status.ClusterDecisions[:1]
			deleting(s, "member2")
			return s
		}},
		"PickFixed has a cluster that it does not name": {cause: wf.CauseBindings, quiet: true, change: func(s situation) situation {
			s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"member1", "member3"}}
			return s
		}},
		"PickFixed has the clusters that it names": {change: func(s situation) situation {
			s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"member1", "member2", "member3"}}
			return s
		}},
		"an eviction waits for its outcome": {cause: wf.CauseEvictions, change: func(s situation) situation {
			s.Eviction = "uid"
			return s
		}},
		"an eviction waits for its outcome while a rollout is pending": {cause: wf.CauseEvictions, change: func(s situation) situation {
			s.Eviction = "uid"
			return s.snapshot(1)
		}},
		"an eviction from a placement that was changed as well": {cause: wf.CauseSpec, change: func(s situation) situation {
			s.Placement.Generation = 2
			s.Eviction = "uid"
			return s
		}},
		"an override was made that has not been seen": {cause: wf.CauseOverrides, change: func(s situation) situation {
			s.Overrides.Made = "abc"
			return s
		}},
		"an override that was picked is gone": {cause: wf.CauseOverrides, change: func(s situation) situation {
			s.Overrides.Gone = true
			return s
		}},
		"an override that was seen": {change: func(s situation) situation {
			s.Overrides.Made = "abc"
			s.Verdict.OverridesMade = "abc"
			return s
		}},
		"a cluster that waits for an override": {cause: wf.CauseAvailability, change: func(s situation) situation {
			s.Overrides.Applicable = map[string]override.Applicable{"member2": {ClusterResourceOverrideSnapshots: []string{"cro-0"}}}
			return s
		}},
		"overrides are for a run to bring": {change: func(s situation) situation {
			s = s.external()
			s.Overrides.Gone = true
			return s
		}},
		"the latest resources are for a run to bring": {change: func(s situation) situation {
			return s.external().snapshot(1)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSituation("member1", "member2").bound(0, up, "member1", "member2")
			if tc.change != nil {
				s = tc.change(s)
			}
			need := NeedsWork(s.Facts)
			assert.Equal(t, tc.cause, need.Cause)
			assert.Equal(t, tc.cause != "" && tc.cause != wf.CauseAvailability && !tc.quiet, need.Demand != "")
		})
	}
}

// failingOver has the placement leave clusters because of what is placed there.
func (s situation) failingOver() situation {
	s.Placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{}}}
	return s
}

// losing has the latest snapshot keep what is selected no more.
func (s situation) losing() situation {
	s.Verdict.Lost = snapshot.NewLoss(placementv1beta1.ReasonSelectionEmptied, 2, []snapshot.Identity{
		{GroupKind: snapshot.NamespaceKind, Name: "web"}, {GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "web", Name: "front"},
	})
	return s
}

func TestCollectedChangesNeedAWorkflowThatIsNotPoked(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	assert.False(t, NeedsWork(s.Facts).HasDeferredChanges)
	s.Verdict.Due = time.Unix(1, 0)
	need := NeedsWork(s.Facts)
	assert.True(t, need.HasDeferredChanges)
	assert.Empty(t, need.Cause)
}

// A rollout that its limits hold back has no workflow after a while: that a cluster has come up
// must be seen as something that moves, or nobody goes on with it.
func TestAClusterThatComesUpIsProgress(t *testing.T) {
	notDiffed := diffed
	notDiffed.Status = metav1.ConditionFalse
	for sentence, tc := range map[string]struct {
		strategy placementv1beta1.ApplyStrategyType
		down, up metav1.Condition
	}{
		"where resources are applied":         {placementv1beta1.ApplyStrategyTypeClientSideApply, notUp, up},
		"where differences are only reported": {placementv1beta1.ApplyStrategyTypeReportDiff, notDiffed, diffed},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSituation("member1", "member2").applyStrategy(tc.strategy).snapshot(1).bound(0, tc.up, "member1")
			before := NeedsWork(s.bound(1, tc.down, "member2").Facts)
			after := NeedsWork(s.bound(1, tc.up, "member2").Facts)
			assert.Equal(t, wf.CauseAvailability, before.Cause)
			assert.NotEqual(t, before.Progress, after.Progress)
		})
	}
}

// The end of the time after which a cluster counts as available that cannot tell changes no
// object. If the workflow that waits for it was terminated, nothing else starts another.
func TestARolloutThatWaitsForTimeSaysForHowLong(t *testing.T) {
	untrackable := up
	untrackable.Reason = placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable
	for sentence, tc := range map[string]struct {
		last     metav1.Condition
		latest   int
		seconds  *int32
		minReady *int32
		want     time.Duration
	}{
		"a minute if nothing else is asked for": {last: untrackable, latest: 1, want: time.Minute},
		"as long as is asked for":               {last: untrackable, latest: 1, seconds: new(int32(600)), want: 10 * time.Minute},
		"not at all if clusters can tell":       {last: up, latest: 1},
		"not at all if there is nothing to do":  {last: untrackable},
		"minReadySeconds if clusters can tell":  {last: up, latest: 1, minReady: new(int32(30)), want: 30 * time.Second},
		"the longer of the two":                 {last: untrackable, latest: 1, minReady: new(int32(90)), want: 90 * time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSituation("member1", "member2").bound(0, up, "member1").bound(tc.latest, tc.last, "member2").snapshot(tc.latest)
			s.Placement.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{
				UnavailablePeriodSeconds: tc.seconds, MinReadySeconds: tc.minReady,
			}
			assert.Equal(t, tc.want, NeedsWork(s.Facts).Ripens)
		})
	}
}

func TestStatusWritesAreSpaced(t *testing.T) {
	const progress, outcome = false, true
	l := newStatusLimiter()
	at := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	assert.Zero(t, l.waitBeforeWrite("crp", progress, at(0)), "the first write is made at once")
	l.recordWrite("crp", at(0), pauses{pauseFor(10), pauseFor(10)})
	assert.Equal(t, 900*time.Millisecond, l.waitBeforeWrite("crp", progress, at(100)), "progress is told once a second")
	assert.Zero(t, l.waitBeforeWrite("crp", progress, at(1000)))
	assert.Zero(t, l.waitBeforeWrite("crp", outcome, at(100)), "the outcome does not")
	l.recordWrite("crp", at(100), pauses{pauseFor(10), pauseFor(10)})
	assert.Equal(t, 800*time.Millisecond, l.waitBeforeWrite("crp", outcome, at(200)), "but there are never three in a second")
	assert.Zero(t, l.waitBeforeWrite("crp", outcome, at(1000)))
	assert.Zero(t, l.waitBeforeWrite("another", progress, at(0)))
	l.recordWrite("crp", at(2000), pauses{pauseFor(100 + 18_000/resourcesPerCluster), pauseFor(100 + 18_000/resourcesPerCluster)})
	assert.Equal(t, 7*time.Second, l.waitBeforeWrite("crp", progress, at(2000)), "a large status is written less often")
	l.forgetPlacement("crp")
	assert.Zero(t, l.waitBeforeWrite("crp", progress, at(2000)))
}

// Whatever the number of clusters that flap, a placement's status is written twice a second at
// most, and the less often the larger it is.
func TestAFlappingFleetWritesItsStatusRarely(t *testing.T) {
	for clusters, most := range map[int]int{3: 2, 150: 2, 1000: 1, 10_000: 1} {
		l := newStatusLimiter()
		var written []time.Time
		for step := range 6000 { // a minute in which a cluster flaps every 10 ms, up and down
			at := now.Add(time.Duration(step) * 10 * time.Millisecond)
			if l.waitBeforeWrite("crp", step%2 == 0, at) == 0 {
				l.recordWrite("crp", at, pauses{pauseFor(clusters), pauseFor(clusters)})
				written = append(written, at)
			}
		}
		for i := range written {
			within := 0
			for _, at := range written[i:] {
				if at.Sub(written[i]) < time.Second {
					within++
				}
			}
			assert.LessOrEqual(t, within, 2, "%d clusters", clusters)
		}
		assert.LessOrEqual(t, len(written), most*61, "%d clusters", clusters)
		assert.Greater(t, len(written), 10, "it is written at all")
		if clusters == 1000 {
			assert.LessOrEqual(t, len(written), 36, "a status above 250 KiB is written every three seconds or so")
		}
	}
}

func TestWhatAFlappingFleetWritesIsSmall(t *testing.T) {
	status := fitStatus(many(1000, func(i int, entry *placementv1beta1.PerClusterPlacementStatus) {
		entry.Conditions[4].Status = metav1.ConditionFalse
	}))
	assert.LessOrEqual(t, sizeOf(status), targetBytes+10<<10)
}

func TestAMarkedBindingNeedsTheScheduler(t *testing.T) {
	mark := func(s situation) situation {
		s.binding("b").Labels[placementv1beta1.SpecifiedDeleteLabel] = "true"
		return s
	}
	pickN := func(s situation) situation {
		s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(2))}
		return s
	}
	plain := func() situation { return newSituation("a", "b").bound(0, up, "a", "b") }
	scheduled := func(s situation) string {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeScheduled)).Message
	}
	need := NeedsWork(mark(pickN(plain())).Facts)
	assert.Equal(t, []string{wf.CauseBindings, " marked b"}, []string{need.Cause, need.Demand})
	assert.Contains(t, scheduled(mark(pickN(plain()))), "; b marked to be replaced, which waits until another cluster can take the place")
	assert.Empty(t, NeedsWork(pickN(plain()).Facts).Cause)

	assert.Empty(t, NeedsWork(mark(plain()).Facts).Cause, "every cluster is wanted")
	assert.Contains(t, scheduled(mark(plain())), "label fleetflow.io/specified-delete on the binding(s) of b: every matching cluster is wanted; use a taint, or an eviction")
	assert.NotContains(t, scheduled(plain()), ";")

	s := plain()
	s.binding("a").Annotations = map[string]string{placementv1beta1.ClusterDeletionCostAnnotation: "cheap"}
	assert.Contains(t, scheduled(s), "annotation fleetflow.io/cluster-deletion-cost on the binding(s) of a is no integer of 32 bits, and counts as 0")
	leaving := mark(pickN(plain()))
	leaving.binding("b").Spec.State = placementv1beta1.BindingStateUnscheduled
	assert.NotContains(t, NeedsWork(leaving.Facts).Demand, "marked", "it is being replaced")
}
