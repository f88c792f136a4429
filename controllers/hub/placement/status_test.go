package placement

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	earlier = metav1.NewTime(time.Date(2025, 3, 12, 23, 1, 32, 0, time.UTC))
	now     = metav1.NewTime(time.Date(2025, 3, 17, 21, 37, 14, 0, time.UTC))
)

const uid = types.UID("placement-uid")

// situation builds facts step by step.
type situation struct {
	*Facts
	Placement *placementv1beta1.ClusterResourcePlacement
	Policy    *placementv1beta1.ClusterSchedulingPolicySnapshot
}

func newSituation(clusters ...string) situation {
	placement := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: uid, Generation: 1},
		Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{
			Type: placementv1beta1.RollingUpdateRolloutStrategyType,
		}},
	}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	s := situation{&Facts{
		Placement: placement,
		Verdict:   snapshot.Verdict{Generation: 1, Snapshot: "crp-0-snapshot"},
		Snapshots: map[string]Snapshot{},
		Policy:    policy,
	}, placement, policy}
	s.Policy.Status.ObservedCRPGeneration = 1
	s.snapshot(0)
	for _, cluster := range clusters {
		s.pick(cluster)
	}
	s.fulfilled()
	return s
}

func (s situation) fulfilled() {
	n := len(s.Bindings)
	meta.SetStatusCondition(&s.Policy.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonSchedulingPolicyFulfilled,
		Message: fmt.Sprintf("found all cluster needed as specified by the scheduling policy, found %d cluster(s)", n),
	})
}

// delegated leaves the clusters to another scheduler: the placement is of a generation, its policy snapshot made for one, and picked for one.
func (s situation) delegated(generation, made, picked int64) situation {
	s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{SchedulerName: "theirs"}
	s.Placement.Generation, s.Verdict.Generation, s.Policy.Status.ObservedCRPGeneration = generation, generation, picked
	s.Policy.Name = "crp-0"
	s.Policy.Annotations = map[string]string{placementv1beta1.CRPGenerationAnnotation: fmt.Sprint(made)}
	return s
}

func (s situation) unfulfilled(want int, rejected ...placementv1beta1.ClusterDecision) situation {
	s.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(want))}
	s.Policy.Status.ClusterDecisions = append(s.Policy.Status.ClusterDecisions, rejected...)
	meta.SetStatusCondition(&s.Policy.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonSchedulingPolicyUnfulfilled,
		Message: fmt.Sprintf("could not find all clusters needed as specified by the scheduling policy, found %d cluster(s) instead", len(s.Bindings)),
	})
	return s
}

func (s situation) snapshot(index int) situation {
	s.Latest = Snapshot{Name: placementv1beta1.ResourceSnapshotName("crp", index, 0), Index: index, UID: types.UID(fmt.Sprint(index)), Parts: 1, Created: earlier}
	s.Snapshots[s.Latest.Name] = s.Latest
	return s
}

func (s situation) external() situation {
	s.Placement.Spec.Strategy.Type = placementv1beta1.ExternalRolloutStrategyType
	return s
}

func (s situation) applyStrategy(strategy placementv1beta1.ApplyStrategyType) situation {
	s.Placement.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: strategy}
	for i := range s.Bindings {
		s.Bindings[i].GetBindingSpec().ApplyStrategy = s.Placement.Spec.Strategy.ApplyStrategy
	}
	return s
}

func (s situation) pick(cluster string) {
	decision := placementv1beta1.ClusterDecision{
		ClusterName: cluster, Selected: true,
		Reason: fmt.Sprintf("Successfully scheduled resources for placement in %q (affinity score: 0, topology spread score: 0): picked by scheduling policy", cluster),
	}
	s.Policy.Status.ClusterDecisions = append(s.Policy.Status.ClusterDecisions, decision)
	s.Bindings = append(s.Bindings, &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: placementv1beta1.BindingName("crp", uid, cluster), UID: types.UID("binding " + cluster), Generation: 2,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: placementv1beta1.BindingStateScheduled, TargetCluster: cluster, ClusterDecision: decision,
		},
	})
}

func (s situation) binding(cluster string) *placementv1beta1.ClusterResourceBinding {
	for i := range s.Bindings {
		if s.Bindings[i].GetBindingSpec().TargetCluster == cluster {
			return s.Bindings[i].(*placementv1beta1.ClusterResourceBinding)
		}
	}
	panic("no binding to " + cluster)
}

// bound makes clusters run a snapshot, with the conditions their bindings have:
// all true but the last, which is as given.
func (s situation) bound(index int, last metav1.Condition, clusters ...string) situation {
	for _, cluster := range clusters {
		binding := s.binding(cluster)
		binding.Spec.State = placementv1beta1.BindingStateBound
		binding.Spec.ResourceSnapshotName = placementv1beta1.ResourceSnapshotName("crp", index, 0)
		binding.Spec.ApplyStrategy = s.Facts.applyStrategy()
		binding.Status.Conditions = nil
		for _, condition := range []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeRolloutStarted, Reason: placementv1beta1.ReasonRolloutStarted, Message: "Detected the new changes on the resources and started the rollout process"},
			{Type: placementv1beta1.ConditionTypeOverridden, Reason: placementv1beta1.ReasonNoOverrideSpecified, Message: "No override rules are configured for the selected resources"},
			{Type: placementv1beta1.ConditionTypeWorkSynchronized, Reason: placementv1beta1.ReasonAllWorkSynced, Message: "All of the works are synchronized to the latest"},
			{Type: placementv1beta1.ConditionTypeApplied, Reason: placementv1beta1.ReasonAllWorkHaveBeenApplied, Message: "All corresponding work objects are applied"},
		} {
			condition.Status = metav1.ConditionTrue
			if condition.Type == last.Type || last.Type == placementv1beta1.ConditionTypeDiffReported && condition.Type == placementv1beta1.ConditionTypeApplied {
				break
			}
			binding.Status.Conditions = append(binding.Status.Conditions, condition)
		}
		binding.Status.Conditions = append(binding.Status.Conditions, last)
		for i := range binding.Status.Conditions {
			binding.Status.Conditions[i].ObservedGeneration = binding.Generation
			binding.Status.Conditions[i].LastTransitionTime = earlier
		}
	}
	return s
}

var (
	up = metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonAllWorkAreAvailable, Message: "All corresponding work objects are available"}
	notUp = metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonNotAllWorkAreAvailable, Message: "Work object crp-work is not yet available"}
	notApplied = metav1.Condition{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonNotAllWorkHaveBeenApplied, Message: "Work object crp-work has failed to apply"}
	diffed = metav1.Condition{Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonAllWorkHaveDiffReported, Message: "All corresponding work objects have reported diff"}
)

// TestStatusGolden compares with what the documentation prints, in the wording
// of the API reference.
func TestStatusGolden(t *testing.T) {
	cases := map[string]func() (situation, View){
		"pending": func() (situation, View) {
			s := newSituation()
			s.Facts.Policy = nil
			s.Verdict = snapshot.Verdict{}
			s.Latest = Snapshot{}
			return s, View{}
		},
		"pending-while-the-engine-is-away": func() (situation, View) {
			s := newSituation("member1").bound(0, up, "member1")
			s.Placement.Generation = 2
			return s, View{EngineUnreachable: true}
		},
		"invalid-selectors": func() (situation, View) {
			s := newSituation()
			s.Facts.Policy = nil
			s.Latest = Snapshot{}
			s.Verdict.Error = `resourceSelectors[0]: the hub does not serve the kind apps/v3, Kind=Deployment`
			return s, View{}
		},
		"no-cluster": func() (situation, View) { return newSituation(), View{} },
		"scheduled":  func() (situation, View) { return newSituation("member1", "member2"), View{} },
		"available": func() (situation, View) {
			return newSituation("kind-cluster-1", "kind-cluster-2", "kind-cluster-3").
				bound(0, up, "kind-cluster-1", "kind-cluster-2", "kind-cluster-3"), View{}
		},
		"unfulfilled": func() (situation, View) {
			return newSituation("kind-cluster-1").bound(0, up, "kind-cluster-1").unfulfilled(2, placementv1beta1.ClusterDecision{
				ClusterName: "kind-cluster-2", Reason: "ClusterUnschedulable, cluster does not match with any of the required cluster affinity terms",
			}), View{}
		},
		"blocked": func() (situation, View) {
			return newSituation("kind-cluster-1", "kind-cluster-2").bound(0, up, "kind-cluster-1", "kind-cluster-2").
				unfulfilled(3).snapshot(1), View{}
		},
		"apply-failed": func() (situation, View) {
			s := newSituation("kind-cluster-1", "kind-cluster-2").bound(0, up, "kind-cluster-2").bound(0, notApplied, "kind-cluster-1")
			s.binding("kind-cluster-1").Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
				ResourceIdentifier: placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "test-ns"},
				Condition: metav1.Condition{Type: "Applied", Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonFailedToTakeOver,
					LastTransitionTime: earlier, Message: "resource exists and is not managed by the fleet"},
			}}
			return s, View{}
		},
		"not-available": func() (situation, View) {
			return newSituation("kind-cluster-1").bound(0, notUp, "kind-cluster-1"), View{}
		},
		"report-diff": func() (situation, View) {
			return newSituation("member1").applyStrategy(placementv1beta1.ApplyStrategyTypeReportDiff).bound(0, diffed, "member1"), View{}
		},
		"external-before-the-first-run": func() (situation, View) {
			return newSituation("member1", "member2", "member3").external(), View{}
		},
		"external-in-the-middle-of-a-run": func() (situation, View) {
			s := newSituation("member1", "member2").external().snapshot(5).bound(5, up, "member1").bound(4, up, "member2")
			s.binding("member1").Status.Conditions[0].Message += ", resourceSnapshotIndex: 5, clusterStagedUpdateRun: example-run"
			return s, View{}
		},
		"external-after-a-run": func() (situation, View) {
			return newSituation("member1", "member2").external().snapshot(1).bound(1, up, "member1", "member2"), View{}
		},
		"external-in-the-middle-of-a-run-in-kubefleets-words": func() (situation, View) {
			return newSituation("member1", "member2").external().snapshot(5).bound(5, up, "member1").bound(4, up, "member2"), View{Vocabulary: placementv1beta1.VocabularyKubeFleet}
		},
		"external-before-the-first-run-in-kubefleets-words": func() (situation, View) {
			return newSituation("member1", "member2").external(), View{Vocabulary: placementv1beta1.VocabularyKubeFleet}
		},
		"external-rolled-back": func() (situation, View) {
			return newSituation("member1", "member2").external().snapshot(1).bound(0, up, "member1", "member2"), View{}
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			s, view := make()
			view.Now = now
			view.Selected = []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "test-ns"}}
			if Observed(s.Facts).Name == "" {
				view.Selected = nil
			}
			golden(t, name+".yaml", Project(s.Facts, view))
		})
	}
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	require.NoError(t, err)
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(want), string(got)), "run with -update and look at the difference")
}

func TestAStatusThatDoesNotChangeStaysTheSame(t *testing.T) {
	s := newSituation("member1", "member2").bound(0, up, "member1", "member2").unfulfilled(3, placementv1beta1.ClusterDecision{ClusterName: "x", Reason: "y"})
	s.Placement.Status = Project(s.Facts, View{Now: earlier})
	assert.Empty(t, cmp.Diff(s.Placement.Status, Project(s.Facts, View{Now: now})))
}

func TestAStatusNamesTheSnapshotsForThoseWhoMayNotReadThem(t *testing.T) {
	s := newSituation("member1")
	for index := range 120 {
		s.snapshot(index)
	}
	told := Project(s.Facts, View{Now: now}).ResourceSnapshots
	require.Len(t, told, maxSnapshots)
	assert.Equal(t, placementv1beta1.ResourceSnapshotSummary{Index: "20", Name: "crp-20-snapshot", CreationTime: earlier}, told[0])
	assert.Equal(t, "119", told[maxSnapshots-1].Index)
	s.Placement.Status.ResourceSnapshots = told
	assert.Equal(t, told, Deleting(s.Facts, nil, now).ResourceSnapshots, "they are there while the deletion waits")
}

func TestWhatIsSelectedAndMissingIsToldOf(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Verdict.Note = `resourceSelectors[0] selects Namespace (v1) "test-ns", which does not exist on the hub; it is placed as soon as it does`
	scheduled := Project(s.Facts, View{Now: now}).Conditions[0]
	assert.Equal(t, metav1.ConditionTrue, scheduled.Status)
	assert.Contains(t, scheduled.Message, "; "+s.Verdict.Note)
	s.Verdict.Generation--
	assert.NotContains(t, Project(s.Facts, View{Now: now}).Conditions[0].Message, s.Verdict.Note, "the selectors have changed since")
}

func TestWhatIsToldOfASelectionStaysUntilTheNextAndIsThenResolved(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	project := func() *metav1.Condition {
		s.Placement.Status = Project(s.Facts, View{Now: now})
		return meta.FindStatusCondition(s.Placement.Status.Conditions, placementv1beta1.ConditionTypeKindsHeld)
	}
	require.Nil(t, project(), "there was nothing to tell")
	s.Verdict.Held = []string{"configmaps"}
	told := *project()
	assert.Equal(t, metav1.ConditionTrue, told.Status)
	s.Placement.Generation++
	assert.Equal(t, told, *project(), "nothing was selected for the new generation")
	s.Verdict.Generation = s.Placement.Generation
	s.Verdict.Held = nil
	over := *project()
	assert.Equal(t, metav1.ConditionFalse, over.Status)
	assert.Equal(t, placementv1beta1.ReasonResolved, over.Reason)
	assert.Equal(t, s.Placement.Generation, over.ObservedGeneration)
	assert.Equal(t, over, *project(), "it is written once")
	s.Verdict.Held = []string{"configmaps"}
	assert.Equal(t, metav1.ConditionTrue, project().Status)
}

func TestAnObjectThatIsTooLargeIsNoSuccess(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	find := func(name string) *metav1.Condition {
		status := Project(s.Facts, View{Now: now})
		for i := range status.Conditions {
			if strings.HasSuffix(status.Conditions[i].Type, name) {
				return &status.Conditions[i]
			}
		}
		return nil
	}
	require.Equal(t, metav1.ConditionTrue, find("Available").Status)
	require.Nil(t, find("ResourcesLeftOut"), "it is there once there was something to tell")
	s.Verdict.TooLarge = `ConfigMap (v1) "b32/angle" has 2400000 bytes`
	left := find("ResourcesLeftOut")
	require.NotNil(t, left)
	assert.Equal(t, placementv1beta1.ReasonObjectTooLarge, left.Reason)
	assert.Contains(t, left.Message, s.Verdict.TooLarge)
	assert.Equal(t, metav1.ConditionFalse, find("Available").Status)
	assert.Equal(t, placementv1beta1.ReasonObjectTooLarge, find("Available").Reason)
}

func TestHeldRemovalsAreToldOfWithWhatLetsThemGo(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Facts.Held = rules.NewHeldRemovals(s.Placement, []rules.HeldRemoval{{Binding: "b", Cluster: "member1", Why: "it is gone"}})
	held := meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	require.NotNil(t, held)
	assert.Contains(t, held.Message, "would take the placement off 1 cluster(s)")
	assert.Contains(t, held.Message, "member1 (it is gone)")
	assert.Contains(t, held.Message, "kubectl fleet migrate accept "+s.Placement.Name)
}

func TestALossOfTheSelectionIsToldOfWithWhatLetsItGo(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1").losing()
	held := func() *metav1.Condition {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	}
	require.NotNil(t, held())
	assert.Equal(t, metav1.ConditionTrue, held().Status)
	assert.Equal(t, placementv1beta1.ReasonSelectionEmptied, held().Reason)
	assert.Equal(t, "2 of 2 objects are no longer selected, though no change of the resource selectors explains it: Deployment web/front, Namespace web. "+
		"The clusters keep them, and no change is placed, until they are there again, or this is accepted: kubectl fleet migrate accept crp", held().Message)

	var lost []snapshot.Identity
	for i := range 40 {
		lost = append(lost, snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "web", Name: fmt.Sprintf("c%02d", i)})
	}
	s.Verdict.Lost = snapshot.NewLoss(placementv1beta1.ReasonSelectionShrunk, 50, lost)
	assert.Equal(t, placementv1beta1.ReasonSelectionShrunk, held().Reason)
	assert.Contains(t, held().Message, "40 of 50 objects are no longer selected")
	assert.Contains(t, held().Message, "ConfigMap web/c04, and 35 more. ")

	s.Facts.Held = rules.NewHeldRemovals(s.Placement, []rules.HeldRemoval{{Binding: "b", Cluster: "member1", Why: "it is gone"}})
	assert.Equal(t, placementv1beta1.ReasonUnexplainedRemovals, held().Reason, "whole clusters are more than objects")
	s.Facts.Held = nil
	s.Verdict.Lost = nil
	assert.Nil(t, held())
}

// The command that accepts is the end of the message: it must not be cut off, however long the names are.
func TestALossOfLongNamesStillSaysWhatLetsItGo(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	var lost []snapshot.Identity
	for i := range 6 {
		lost = append(lost, snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: strings.Repeat("n", 63), Name: strings.Repeat("c", 252) + fmt.Sprint(i)})
	}
	s.Verdict.Lost = snapshot.NewLoss(placementv1beta1.ReasonSelectionShrunk, 6, lost)
	held := meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
	require.NotNil(t, held)
	assert.LessOrEqual(t, len(held.Message), maxNote)
	assert.Contains(t, held.Message, "kubectl fleet migrate accept crp")
}

func TestChangesThatTakeManyBytesToWriteAreToldOfUntilTheyAreTakenUp(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	held := func() *metav1.Condition {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeChangesHeld)
	}
	s.Verdict.Due = now.Add(40 * time.Second)
	assert.Nil(t, held(), "the usual pace is no news")
	s.Verdict.Excess = "a snapshot of 800 KiB"
	require.NotNil(t, held())
	assert.Equal(t, metav1.ConditionTrue, held().Status)
	assert.Equal(t, placementv1beta1.ReasonTooManyBytes, held().Reason)
	assert.Equal(t, "Changes of the selected resources wait until "+s.Verdict.Due.UTC().Format(time.RFC3339)+
		", and are then taken up together: a snapshot of 800 KiB", held().Message)
	s.Verdict.Generation--
	assert.Nil(t, held(), "the selectors have changed since")
}

func TestKindsWhosePropagationIsDisabledAreNamed(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	held := func() *metav1.Condition {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeKindsHeld)
	}
	assert.Nil(t, held())
	for want, kinds := range map[string][]string{
		"1 kind held: configmaps. Members keep what they have of this; to let changes reach them: kubectl fleet enable configmaps":           {"configmaps"},
		"2 kinds held: configmaps, secrets. Members keep what they have of this; to let changes reach them: kubectl fleet enable configmaps": {"configmaps", "secrets"},
	} {
		s.Verdict.Held = kinds
		require.NotNil(t, held())
		assert.Equal(t, metav1.ConditionTrue, held().Status)
		assert.Equal(t, placementv1beta1.ReasonPropagationDisabled, held().Reason)
		assert.Equal(t, want, held().Message)
	}
	s.Verdict.Generation--
	assert.Nil(t, held(), "the selectors have changed since")
}

func TestDependenciesThatAreMissingAreToldOf(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	missing := func() *metav1.Condition {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeDependenciesMissing)
	}
	assert.Nil(t, missing())
	s.Verdict.MissingDependencies = `Deployment app/web names Secret "s", which does not exist`
	require.NotNil(t, missing())
	assert.Equal(t, metav1.ConditionTrue, missing().Status)
	assert.Equal(t, placementv1beta1.ReasonDependenciesNotFound, missing().Reason)
	assert.Equal(t, "Everything else is placed; create what is missing, and it follows by itself: "+s.Verdict.MissingDependencies, missing().Message)
	assert.True(t, meta.IsStatusConditionTrue(Project(s.Facts, View{Now: now}).Conditions, "ClusterResourcePlacementAvailable"), "nothing is kept back")
	s.Verdict.Generation--
	assert.Nil(t, missing(), "the selectors have changed since")
}

func TestSelectorsThatNameWhatIsNotThereAreToldOf(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	missing := func() *metav1.Condition {
		return meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeResourcesMissing)
	}
	assert.Nil(t, missing())
	s.Verdict.Note = "nothing on the hub matches the resource selectors"
	require.NotNil(t, missing())
	assert.Equal(t, metav1.ConditionTrue, missing().Status)
	assert.Equal(t, placementv1beta1.ReasonResourcesNotFound, missing().Reason)
	assert.Equal(t, "Not all that the selectors name is placed: "+s.Verdict.Note, missing().Message)
	assert.True(t, meta.IsStatusConditionTrue(Project(s.Facts, View{Now: now}).Conditions, "ClusterResourcePlacementAvailable"), "as in KubeFleet")
	s.Verdict.Generation--
	assert.Nil(t, missing(), "the selectors have changed since")
}

func TestARolloutThatWaitsForRequiredOverridesSaysForWhich(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Overrides.Lacking = []string{"ClusterResourceOverride cro", "ResourceOverride app/ro"}
	conditions := Project(s.Facts, View{Now: now}).Conditions
	said := meta.FindStatusCondition(conditions, "ClusterResourcePlacementOverridden")
	require.NotNil(t, said)
	assert.Equal(t, metav1.ConditionFalse, said.Status)
	assert.Equal(t, placementv1beta1.ReasonRequiredOverrideMissing, said.Reason)
	assert.Equal(t, "Nothing is written to clusters: spec.requiredOverrides names overrides that do not exist or are not valid: "+
		"ClusterResourceOverride cro, ResourceOverride app/ro; create or correct them, or no longer require them", said.Message)
	assert.Nil(t, meta.FindStatusCondition(conditions, "ClusterResourcePlacementApplied"))
	assert.NotNil(t, meta.FindStatusCondition(conditions, "ClusterResourcePlacementRolloutStarted"))
}

func TestWhatIsOtherwiseAboutSchedulingIsToldOf(t *testing.T) {
	scheduled := func(s situation) metav1.Condition {
		return *meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, "ClusterResourcePlacementScheduled")
	}
	t.Run("a policy that waits", func(t *testing.T) {
		s := newSituation("member1").bound(0, up, "member1")
		s.Placement.Generation, s.Verdict.Generation, s.Policy.Status.ObservedCRPGeneration = 2, 2, 2
		s.Policy.Annotations = map[string]string{placementv1beta1.PolicyWaitsAnnotation: "0", placementv1beta1.CRPGenerationAnnotation: "1"}
		said := scheduled(s)
		assert.EqualValues(t, 1, said.ObservedGeneration)
		assert.Equal(t, metav1.ConditionTrue, said.Status)
		assert.Contains(t, said.Message, "; the changed policy waits for the next change of the selected resources, as policy.activation is Lazy")
	})
	t.Run("another scheduler that is to pick", func(t *testing.T) {
		said := scheduled(newSituation("member1").bound(0, up, "member1").delegated(2, 2, 1))
		assert.Equal(t, metav1.ConditionUnknown, said.Status)
		assert.Equal(t, placementv1beta1.ReasonWaitingForScheduler, said.Reason)
		assert.Equal(t, `Scheduler "theirs" is to pick the clusters, by the status of policy snapshot crp-0: its targetClusters, and its observedCRPGeneration 2. What is placed stays`, said.Message)
	})
	t.Run("a PriorityClass that does not exist", func(t *testing.T) {
		s := newSituation("member1").bound(0, up, "member1")
		s.NoPriorityClass = "urgent"
		assert.Contains(t, scheduled(s).Message, `; there is no PriorityClass "urgent" on the hub, so that the placement is worked on in the usual order`)
	})
	t.Run("a request to reschedule that is no time", func(t *testing.T) {
		s := newSituation("member1").bound(0, up, "member1")
		s.Placement.Annotations = map[string]string{placementv1beta1.RescheduleAtAnnotation: "now"}
		assert.Contains(t, scheduled(s).Message, `; annotation fleetflow.io/reschedule-at is "now", which is no time like 2026-01-31T12:00:00Z: it has no effect`)
	})
}

func TestAnOverrideThatSelectsNothingIsToldOf(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Verdict.OverridesIdle = []string{"ClusterResourceOverrideSnapshot cro-0 selects ClusterRole reader"}
	overridden := meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, "ClusterResourcePlacementOverridden")
	require.NotNil(t, overridden)
	assert.Equal(t, metav1.ConditionTrue, overridden.Status)
	assert.Contains(t, overridden.Message, "; ClusterResourceOverrideSnapshot cro-0 selects ClusterRole reader, which this placement does not place: correct")
}

func TestPickingAClusterAnewDoesNotHideThatItIsAvailable(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Placement.Status = Project(s.Facts, View{Now: earlier})
	s.binding("member1").Generation++ // as when it is pointed to a new policy
	assert.Empty(t, cmp.Diff(s.Placement.Status, Project(s.Facts, View{Now: now})))

	s.snapshot(1)
	s.binding("member1").Spec.ResourceSnapshotName = s.Latest.Name
	entry := Project(s.Facts, View{Now: now}).PerClusterPlacementStatuses[0]
	assert.Nil(t, meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeAvailable), "new resources are another matter")
	assert.True(t, meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted))
}

// The cluster has the same resources, but nobody has seen it apply them in the new way yet: who
// waits for Available of the new generation must not be told of the old one.
func TestAnotherWayOfApplyingIsAnotherMatter(t *testing.T) {
	s := newSituation("member1").bound(0, up, "member1")
	s.Placement.Status = Project(s.Facts, View{Now: earlier})
	s.Placement.Generation, s.Verdict.Generation, s.Policy.Status.ObservedCRPGeneration = 2, 2, 2
	s.applyStrategy(placementv1beta1.ApplyStrategyTypeServerSideApply)
	s.binding("member1").Generation++ // the rollout has written it, and its member has not answered

	status := Project(s.Facts, View{Now: now})
	available := meta.FindStatusCondition(status.PerClusterPlacementStatuses[0].Conditions, placementv1beta1.ConditionTypeAvailable)
	assert.True(t, available == nil || available.Status != metav1.ConditionTrue, "%+v", available)
	assert.False(t, meta.IsStatusConditionTrue(status.Conditions, "ClusterResourcePlacementAvailable"))

	s.bound(0, up, "member1")
	assert.True(t, meta.IsStatusConditionTrue(Project(s.Facts, View{Now: now}).Conditions, "ClusterResourcePlacementAvailable"))
}

func TestOtherOverridesAreAnotherMatter(t *testing.T) {
	for name, change := range map[string]func(*placementv1beta1.ResourceBindingSpec){
		"of cluster-scoped resources": func(b *placementv1beta1.ResourceBindingSpec) { b.ClusterResourceOverrideSnapshots = []string{"cro-0"} },
		"of namespaced resources": func(b *placementv1beta1.ResourceBindingSpec) {
			b.ResourceOverrideSnapshots = []placementv1beta1.NamespacedName{{Namespace: "app", Name: "ro-0"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSituation("member1").bound(0, up, "member1")
			s.Placement.Status = Project(s.Facts, View{Now: earlier})
			binding := s.binding("member1")
			binding.Generation++
			change(&binding.Spec)
			s.Overrides.Applicable = map[string]override.Applicable{"member1": {
				ClusterResourceOverrideSnapshots: binding.Spec.ClusterResourceOverrideSnapshots, ResourceOverrideSnapshots: binding.Spec.ResourceOverrideSnapshots,
			}}
			entry := Project(s.Facts, View{Now: now}).PerClusterPlacementStatuses[0]
			assert.Nil(t, meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeAvailable), "nobody has seen the cluster available with it")
			assert.True(t, meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeOverridden))
		})
	}
}

func many(n int, change func(i int, entry *placementv1beta1.PerClusterPlacementStatus)) placementv1beta1.PlacementStatus {
	status := placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{{Type: "Scheduled", Message: "found all"}}}
	for i := range n {
		entry := placementv1beta1.PerClusterPlacementStatus{ClusterName: fmt.Sprintf("cluster-%04d", i), ObservedResourceIndex: "1"}
		for _, step := range rolloutSteps(false) {
			entry.Conditions = append(entry.Conditions, step.done.newCondition(step.step, metav1.ConditionTrue, 1))
		}
		if change != nil {
			change(i, &entry)
		}
		status.PerClusterPlacementStatuses = append(status.PerClusterPlacementStatuses, entry)
	}
	return status
}

func selected(n int, name string) []placementv1beta1.ResourceIdentifier {
	all := make([]placementv1beta1.ResourceIdentifier, n)
	for i := range all {
		all[i] = placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: fmt.Sprintf("%s-%05d", name, i)}
	}
	return all
}

func TestFit(t *testing.T) {
	unsettle := func(entry *placementv1beta1.PerClusterPlacementStatus) {
		entry.Conditions[4].Status = metav1.ConditionFalse
	}
	t.Run("150 clusters are told of in full", func(t *testing.T) {
		status := many(150, nil)
		assert.Empty(t, cmp.Diff(status, fitStatus(status)))
	})
	t.Run("of more, what is not settled comes first and in full", func(t *testing.T) {
		status := fitStatus(many(400, func(i int, entry *placementv1beta1.PerClusterPlacementStatus) {
			if i == 390 {
				unsettle(entry)
			}
		}))
		require.Len(t, status.PerClusterPlacementStatuses, 400)
		assert.Equal(t, "cluster-0390", status.PerClusterPlacementStatuses[0].ClusterName)
		assert.Len(t, status.PerClusterPlacementStatuses[0].Conditions, 5)
		assert.Equal(t, placementv1beta1.PerClusterPlacementStatus{ClusterName: "cluster-0000", ObservedResourceIndex: "1"}, status.PerClusterPlacementStatuses[1])
		assert.Equal(t, "found all", status.Conditions[0].Message)
	})
	t.Run("what does not fit is counted", func(t *testing.T) {
		status := fitStatus(many(5000, func(_ int, entry *placementv1beta1.PerClusterPlacementStatus) { unsettle(entry) }))
		left := 5000 - len(status.PerClusterPlacementStatuses)
		require.Positive(t, left)
		assert.Equal(t, fmt.Sprintf("found all (%d more cluster(s) are not listed here; see the ClusterResourceBindings)", left), status.Conditions[0].Message)
		assert.EqualValues(t, left, status.UnlistedClusters)
		assert.LessOrEqual(t, sizeOf(status), targetBytes+10<<10)
	})
	t.Run("ten thousand selected resources are listed", func(t *testing.T) {
		status := many(3, nil)
		status.SelectedResources = selected(10_000, "configmap")
		assert.Empty(t, cmp.Diff(status, fitStatus(status)))
	})
	t.Run("of more selected resources than there is room for, the rest is counted", func(t *testing.T) {
		for _, clusters := range []int{0, 150, 5000} {
			status := many(clusters, func(_ int, entry *placementv1beta1.PerClusterPlacementStatus) { unsettle(entry) })
			status.SelectedResources = selected(10_000, strings.Repeat("long-name-", 15))
			fitted := fitStatus(status)
			left := 10_000 - len(fitted.SelectedResources)
			require.Positive(t, left)
			assert.Contains(t, fitted.Conditions[0].Message, fmt.Sprintf(" (%d more selected resource(s) are not listed here; see the resource snapshots of the placement)", left))
			assert.LessOrEqual(t, sizeOf(fitted), maxBytes)
			assert.GreaterOrEqual(t, sizeOf(fitted.SelectedResources), selectedBytes*9/10)
		}
	})
	t.Run("single resources are left out before a status gets too large", func(t *testing.T) {
		status := fitStatus(many(100, func(_ int, entry *placementv1beta1.PerClusterPlacementStatus) {
			entry.FailedPlacements = make([]placementv1beta1.FailedResourcePlacement, 100)
			for i := range entry.FailedPlacements {
				entry.FailedPlacements[i].Condition.Message = "a message of some length that says what went wrong with this resource"
			}
		}))
		require.Len(t, status.PerClusterPlacementStatuses, 100)
		assert.LessOrEqual(t, sizeOf(status), maxBytes)
		assert.NotEmpty(t, status.PerClusterPlacementStatuses[0].FailedPlacements)
	})
}
