package stagedupdate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const clientError = " (cannot continue the ClusterStagedUpdateRun: failed to initialize the clusterStagedUpdateRun: failed to process the request due to a client error)"

// notStarted and outdated are the messages of a run that is not begun, and of one whose plan does not hold any more.
func notStarted(why string) string { return "Cannot start: " + why + clientError }
func outdated(why string) string   { return "Cannot go on: " + why + clientError }

// initialize runs InitializeRun where nothing has to be waited for.
func initialize(h *hub, run string) wf.RunState {
	h.t.Helper()
	return must(h, h.acts.InitializeRun, refOf(run)).State
}

// initializeInVain is initialize; where it waits for the scheduler, its patience
// is used up.
func initializeInVain(h *hub, run string) wf.RunState {
	h.t.Helper()
	done := background(h, func() wf.RunState { return must(h, h.acts.InitializeRun, refOf(run)).State })
	h.untilItWaits()
	h.clock.Step(time.Minute)
	return <-done
}

func TestInitializationFailsWithTheMessageOfTheReference(t *testing.T) {
	strategy := func(change func(*placementv1beta1.ClusterStagedUpdateStrategy)) func(*hub) {
		return func(h *hub) {
			edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), change)
		}
	}
	cluster := func(name string, change func(*clusterv1beta1.MemberCluster)) func(*hub) {
		return func(h *hub) { edit(h, get(h, &clusterv1beta1.MemberCluster{}, "", name), change) }
	}
	placement := func(change func(*placementv1beta1.ClusterResourcePlacement)) func(*hub) {
		return func(h *hub) {
			edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), change)
		}
	}
	policy := func(change func(*placementv1beta1.ClusterSchedulingPolicySnapshot)) func(*hub) {
		return func(h *hub) {
			editStatus(h, get(h, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, "", "example-placement-0"), change)
		}
	}
	run := func(change func(*placementv1beta1.ClusterStagedUpdateRun)) func(*hub) {
		return func(h *hub) { edit(h, h.run("example-run-2"), change) }
	}
	for sentence, test := range map[string]struct {
		spoil func(*hub)
		want  string
		// counted says that what was found before stays in the status.
		counted bool
	}{
		"there is no such placement": {
			spoil: run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.PlacementName = "other" }),
			want:  "parent clusterResourcePlacement not found",
		},
		"the placement rolls out by itself": {
			spoil: placement(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy.Type = "RollingUpdate" }),
			want:  "parent clusterResourcePlacement does not have an external rollout strategy, current strategy: RollingUpdate; set spec.strategy.type to External",
		},
		"the placement has no strategy, which means the same": {
			spoil: placement(func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Strategy = nil }),
			want:  "parent clusterResourcePlacement does not have an external rollout strategy, current strategy: RollingUpdate; set spec.strategy.type to External",
		},
		"there is no latest policy snapshot": {
			spoil: func(h *hub) {
				edit(h, get(h, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, "", "example-placement-0"), func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
					p.Labels[placementv1beta1.IsLatestSnapshotLabel] = "false"
				})
			},
			want: "no latest policy snapshot found for clusterResourcePlacement `example-placement`",
		},
		"the policy is not fulfilled": {
			spoil: policy(func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) {
				p.Status.Conditions[0].Status = metav1.ConditionFalse
			}),
			want: "policy snapshot `example-placement-0` not fully scheduled yet",
		},
		"the scheduler has not seen the placement as it is": {
			spoil: placement(func(p *placementv1beta1.ClusterResourcePlacement) { p.Generation = 2 }),
			want:  "policy snapshot `example-placement-0` not fully scheduled yet",
		},
		"no cluster is picked": {
			spoil: func(h *hub) {
				for _, name := range []string{"member1", "member2", "member3"} {
					require.NoError(h.t, h.WithWatch.Delete(h.t.Context(), h.binding(name)))
				}
			},
			want: "no scheduled or to-be-deleted clusterResourceBindings found for the latest policy snapshot example-placement-0",
		},
		"there is no such strategy": {
			spoil: run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.StagedUpdateStrategyName = "other" }),
			want:  "referenced clusterStagedUpdateStrategy not found: `other`", counted: true,
		},
		"two stages have one name": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) { s.Spec.Stages[1].Name = "staging" }),
			want:  "stage name `staging` is used more than once", counted: true,
		},
		"two tasks have one type": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
				tasks := &s.Spec.Stages[1].AfterStageTasks
				*tasks = append(*tasks, placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval})
			}),
			want: "afterStageTasks of stage `canary` cannot have two tasks of the same type: Approval", counted: true,
		},
		"a timed wait without a time": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
				s.Spec.Stages[0].AfterStageTasks[0].WaitTime = nil
			}),
			want: "task 0 of stage `staging`: a TimedWait needs a waitTime above 0", counted: true,
		},
		"an approval with a time": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
				s.Spec.Stages[1].AfterStageTasks[0].WaitTime = &metav1.Duration{Duration: time.Minute}
			}),
			want: "task 0 of stage `canary`: an Approval has no waitTime", counted: true,
		},
		"a selector that cannot be": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
				s.Spec.Stages[0].LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
			}),
			want: "the stage label selector of stage `staging` is invalid: \"Near\" is not a valid label selector operator", counted: true,
		},
		"a cluster in two stages": {
			spoil: strategy(func(s *placementv1beta1.ClusterStagedUpdateStrategy) { s.Spec.Stages[0].LabelSelector = nil }),
			want:  "cluster `member1` appears in more than one stages: its labels match those of `staging` and of `canary`, narrow the labelSelector of one", counted: true,
		},
		"a sorting label that is no integer": {
			spoil: cluster("member3", func(c *clusterv1beta1.MemberCluster) { c.Labels["order"] = "first" }),
			want:  "the sorting label `order:first` on cluster `member3` is not valid: it must be an integer", counted: true,
		},
		"a cluster in no stage": {
			spoil: cluster("member3", func(c *clusterv1beta1.MemberCluster) { c.Labels["environment"] = "prod" }),
			want:  "some clusters are not placed in any stage, total 1, showing up to 10: member3", counted: true,
		},
		"an index that is no number": {
			spoil: run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "latest" }),
			want:  "invalid resource snapshot index `latest` provided, expected an integer >= 0", counted: true,
		},
		"an index below zero": {
			spoil: run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "-1" }),
			want:  "invalid resource snapshot index `-1` provided, expected an integer >= 0", counted: true,
		},
		"an index that there is not": {
			spoil: run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "7" }),
			want:  "no clusterResourceSnapshots with index `7` found for clusterResourcePlacement `example-placement`", counted: true,
		},
		"an override that the placement requires": {
			spoil: func(h *hub) {
				h.latest.Invalid = true
				h.latest.OverridesLacking = []string{"ClusterResourceOverride cro"}
				h.lacking = []string{"ClusterResourceOverride cro"}
				run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "" })(h)
			},
			want: "spec.requiredOverrides names overrides that do not exist or are not valid: ClusterResourceOverride cro; create or correct them, or no longer require them", counted: true,
		},
		"selectors that cannot be resolved": {
			spoil: func(h *hub) {
				h.latest = wf.SelectResult{Invalid: true}
				run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "" })(h)
			},
			want: "the resource selectors of clusterResourcePlacement `example-placement` are invalid, see its condition ClusterResourcePlacementScheduled", counted: true,
		},
		"a selection whose losses are held": {
			spoil: func(h *hub) {
				h.latest = wf.SelectResult{LossHeld: true}
				run(func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "" })(h)
			},
			want: "clusterResourcePlacement `example-placement` holds removals, see its condition RemovalsHeld: accept them with kubectl fleet migrate accept example-placement, " +
				"or name a resourceSnapshotIndex to go on with a snapshot that there is", counted: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := howTo(t)
			test.spoil(h)
			state := initializeInVain(h, "example-run-2")
			assert.True(t, state.Terminal)
			assert.False(t, state.Initialized)
			run := h.run("example-run-2")
			assert.Equal(t, "Initialized=False UpdateRunInitializedFailed: "+notStarted(test.want), conditionOf(run.Status.Conditions, "Initialized"))
			assert.Len(t, run.Status.Conditions, 1)
			assert.Empty(t, run.Status.StagesStatus)
			if test.counted {
				assert.Equal(t, 3, run.Status.PolicyObservedClusterCount)
				assert.Equal(t, "0", run.Status.PolicySnapshotIndexUsed)
				require.NotNil(t, run.Status.DeletionStageStatus)
				assert.Equal(t, "kubernetes-fleet.io/deleteStage", run.Status.DeletionStageStatus.StageName)
			}
			assert.Equal(t, []string{"Warning example-run-2 UpdateRunInitializedFailed: " + notStarted(test.want)}, h.events)
		})
	}
}

func TestARunThatNamesASnapshotGoesOnWhileLossesAreHeld(t *testing.T) {
	h := howTo(t)
	h.latest = wf.SelectResult{LossHeld: true}
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "0" })
	state := initialize(h, "example-run-2")
	assert.True(t, state.Initialized)
	assert.Equal(t, "0", state.SnapshotIndex)
}

func TestInitializationFreezesThePlan(t *testing.T) {
	h := howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, "example-placement-1-snapshot"))
	edit(h, get(h, &placementv1beta1.ClusterResourcePlacement{}, "", "example-placement"), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply}
	})
	state := initialize(h, "example-run-2")
	assert.Equal(t, wf.RunState{
		Found: true, UID: "uid-example-run-2", Placement: "example-placement", Generation: 1, Initialized: true, SnapshotIndex: "0",
		Stages: []wf.StageState{
			{Name: "staging", Phase: wf.PhasePending, Clusters: 1, TasksAfter: []string{"TimedWait"}},
			{Name: "canary", Phase: wf.PhasePending, Clusters: 2, TasksAfter: []string{"Approval"}},
		},
	}, state)
	status := h.run("example-run-2").Status
	assert.Equal(t, &placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ApplyStrategyTypeServerSideApply, ComparisonOption: placementv1beta1.ComparisonOptionTypePartialComparison,
		WhenToApply: placementv1beta1.WhenToApplyTypeAlways, WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways,
	}, status.ApplyStrategy, "what is in force, defaults included")
	assert.Equal(t, "member3", status.StagesStatus[1].Clusters[0].ClusterName)
	require.Len(t, status.DeletionStageStatus.Clusters, 1)
	assert.Equal(t, "member4", status.DeletionStageStatus.Clusters[0].ClusterName)

	h.edited()
	again := initialize(h, "example-run-2")
	assert.Equal(t, state, again, "a plan is frozen once")
}

func TestARunRecordsTheApplyStrategyThatThePlacementLeavesOut(t *testing.T) {
	h := howTo(t)
	initialize(h, "example-run-2")
	assert.Equal(t, &placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ApplyStrategyTypeClientSideApply, ComparisonOption: placementv1beta1.ComparisonOptionTypePartialComparison,
		WhenToApply: placementv1beta1.WhenToApplyTypeAlways, WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways,
	}, h.run("example-run-2").Status.ApplyStrategy)
}

func TestConcurrentRunsUseOneStrategy(t *testing.T) {
	for sentence, test := range map[string]struct {
		change  func(other *placementv1beta1.ClusterStagedUpdateRun)
		refused bool
	}{
		"an older one with another strategy": {func(*placementv1beta1.ClusterStagedUpdateRun) {}, true},
		"one with the same strategy": {func(other *placementv1beta1.ClusterStagedUpdateRun) {
			other.Spec.StagedUpdateStrategyName = "example-strategy"
		}, false},
		"one of another placement": {func(other *placementv1beta1.ClusterStagedUpdateRun) { other.Spec.PlacementName = "other" }, false},
		"a later one":              {func(other *placementv1beta1.ClusterStagedUpdateRun) { other.Name = "example-run-9" }, false},
		"one of the same second that has begun": {func(other *placementv1beta1.ClusterStagedUpdateRun) {
			other.Name = "example-run-9"
			other.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionTrue}}
		}, true},
		"one that has ended": {func(other *placementv1beta1.ClusterStagedUpdateRun) {
			other.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue}}
		}, false},
		"one that could not begin": {func(other *placementv1beta1.ClusterStagedUpdateRun) {
			other.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionFalse}}
		}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			other := runObject("example-run-1", "1")
			other.Spec.StagedUpdateStrategyName = "another-strategy"
			test.change(other)
			h := howTo(t, other)
			initialize(h, "example-run-2")
			initialized := conditionOf(h.run("example-run-2").Status.Conditions, placementv1beta1.ConditionTypeInitialized)
			assert.Equal(t, test.refused, strings.Contains(initialized, "Cannot start: clusterStagedUpdateRun `"+other.Name+"` of the same placement has not ended and uses clusterStagedUpdateStrategy `another-strategy`"), initialized)
		})
	}
}

func TestInitializationFreezesTheOverridesOfEachCluster(t *testing.T) {
	made := placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "cro-0"}}
	made.Spec.OverrideSpec.Policy.OverrideRules = []placementv1beta1.OverrideRule{{
		ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "canary"}}},
		}},
	}}
	h := howTo(t)
	h.overrides = override.Picked([]placementv1beta1.OverrideSnapshotObject{&made})
	initialize(h, "example-run-2")
	stages := h.run("example-run-2").Status.StagesStatus
	assert.Empty(t, stages[0].Clusters[0].ClusterResourceOverrideSnapshots, "it is for canary")
	for _, cluster := range stages[1].Clusters {
		assert.Equal(t, []string{"cro-0"}, cluster.ClusterResourceOverrideSnapshots, cluster.ClusterName)
	}
}

// Its clusters would be updated up to the one whose outcome the API server could not store.
func TestARunWhoseStatusCouldNotBeStoredDoesNotBegin(t *testing.T) {
	h := manyClusters(t, 600)
	var long []placementv1beta1.OverrideSnapshotObject
	for i := range 10 {
		snapshot := &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(strings.Repeat("long-", 48), i)}}
		snapshot.Spec.OverrideSpec.Policy.OverrideRules = []placementv1beta1.OverrideRule{{ClusterSelector: &placementv1beta1.ClusterSelector{}}}
		long = append(long, snapshot)
	}
	h.overrides = override.Picked(long)
	initialize(h, "example-run")
	status := h.run("example-run").Status
	failed := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeInitialized)
	require.NotNil(t, failed)
	assert.Equal(t, metav1.ConditionFalse, failed.Status)
	assert.Regexp(t, `the status of a clusterStagedUpdateRun of 600 clusters would become [0-9]+ KiB, and has room for 1280 KiB: let several placements select the clusters`, failed.Message)
	assert.Empty(t, status.StagesStatus)
}

// edited changes everything a plan is made from.
func (h *hub) edited() {
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages = s.Spec.Stages[:1]
	})
	edit(h, get(h, &clusterv1beta1.MemberCluster{}, "", "member3"), func(c *clusterv1beta1.MemberCluster) { c.Labels["order"] = "9" })
}

func TestARunWithoutAnIndexTakesWhatIsSelectedNow(t *testing.T) {
	h := howTo(t)
	h.latest = wf.SelectResult{Index: 5}
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.ResourceSnapshotIndex = "" })
	assert.Equal(t, "5", initialize(h, "example-run-2").SnapshotIndex)
}

func TestStateInitializeDoesNotCallTheRunStarted(t *testing.T) {
	h := howTo(t)
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateInitialize })
	initialize(h, "example-run-2")
	assert.Empty(t, conditionOf(h.run("example-run-2").Status.Conditions, "Progressing"))
}

func TestInitializationWaitsForASchedulerThatIsAtIt(t *testing.T) {
	h := howTo(t)
	policy := get(h, &placementv1beta1.ClusterSchedulingPolicySnapshot{}, "", "example-placement-0")
	editStatus(h, policy, func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) { p.Status.ObservedCRPGeneration = 0 })
	done := background(h, func() wf.RunState { return must(h, h.acts.InitializeRun, refOf("example-run-2")).State })
	h.untilItWaits()
	editStatus(h, policy, func(p *placementv1beta1.ClusterSchedulingPolicySnapshot) { p.Status.ObservedCRPGeneration = 1 })
	h.tell(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, policy, policy)
	assert.True(t, (<-done).Initialized)
}

func TestInitializationOfAnotherRunOfTheNameDoesNothing(t *testing.T) {
	h := howTo(t)
	ref := refOf("example-run-2")
	ref.UID = "an earlier one"
	assert.Equal(t, wf.InitializeResult{}, must(h, h.acts.InitializeRun, ref))
	assert.Zero(t, h.writes)
}
