package planhash_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// world is all that a plan is made from.
type world struct {
	status placementv1beta1.UpdateRunStatus
	facts  planhash.Facts
}

func (w *world) hash() string { return planhash.Make(&w.status, w.facts).Hash() }

func (w *world) stage(i int) *placementv1beta1.StageConfig {
	return &w.status.UpdateStrategySnapshot.Stages[i]
}

func (w *world) cluster(i int) *placementv1beta1.ClusterUpdatingStatus {
	return &w.status.StagesStatus[1].Clusters[i]
}

// usual is a world with something in every list.
func usual() *world {
	task := func(kind placementv1beta1.StageTaskType) placementv1beta1.StageTask {
		return placementv1beta1.StageTask{Type: kind}
	}
	measured := task(placementv1beta1.StageTaskTypeAnalysis)
	measured.Analysis = &placementv1beta1.AnalysisConfig{
		Templates: []placementv1beta1.AnalysisTemplate{{Name: "errors"}, {Name: "latency"}},
		Args:      []placementv1beta1.AnalysisArgument{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
	}
	approved := task(placementv1beta1.StageTaskTypeApproval)
	approved.StartsAfter = []placementv1beta1.StageTaskType{placementv1beta1.StageTaskTypeAnalysis, placementv1beta1.StageTaskTypeTimedWait}
	soaked := task(placementv1beta1.StageTaskTypeTimedWait)
	soaked.WaitTime = &metav1.Duration{Duration: time.Minute}
	half := intstr.FromString("50%")
	cluster := func(name string) placementv1beta1.ClusterUpdatingStatus {
		return placementv1beta1.ClusterUpdatingStatus{
			ClusterName: name, ClusterResourceOverrideSnapshots: []string{"cro-0", "cro-1"},
			ResourceOverrideSnapshots: []placementv1beta1.NamespacedName{{Namespace: "a", Name: "ro-0"}, {Namespace: "b", Name: "ro-0"}},
		}
	}
	w := &world{facts: planhash.Facts{
		Placement: &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid"}},
		Bases:     map[string]string{"member-1": "web-3-snapshot@0a1b2c3d4e5f", "member-9": "web-3-snapshot@aa1b2c3d4e5f"},
		Resources: map[string]string{"3": "three", "4": "four"},
	}}
	w.status = placementv1beta1.UpdateRunStatus{
		PolicySnapshotIndexUsed: "0", ResourceSnapshotIndexUsed: "4",
		ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeClientSideApply},
		UpdateStrategySnapshot: &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
			{Name: "canary", AfterStageTasks: []placementv1beta1.StageTask{soaked, measured, approved}},
			{
				Name: "prod", MaxConcurrency: &half, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
				BeforeStageTasks: []placementv1beta1.StageTask{task(placementv1beta1.StageTaskTypeApproval), task(placementv1beta1.StageTaskTypeRehearsal)},
			},
		}},
		StagesStatus: []placementv1beta1.StageUpdatingStatus{
			{StageName: "canary", Clusters: []placementv1beta1.ClusterUpdatingStatus{cluster("member-1")}},
			{StageName: "prod", Clusters: []placementv1beta1.ClusterUpdatingStatus{cluster("member-2"), cluster("member-3")}},
		},
		DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{Clusters: []placementv1beta1.ClusterUpdatingStatus{
			{ClusterName: "member-8"}, {ClusterName: "member-9"},
		}},
	}
	return w
}

func shuffle[T any](list []T) {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// Acceptance 1 of plan-bound approvals: the same facts in any order are one plan.
func TestAcceptance1ThousandOrdersOfTheSameFactsAreOneHash(t *testing.T) {
	want := usual().hash()
	require.True(t, planhash.IsHash(want))
	for range 1000 {
		w := usual()
		shuffle(w.status.DeletionStageStatus.Clusters)
		shuffle(w.stage(0).AfterStageTasks)
		shuffle(w.stage(1).BeforeStageTasks)
		for i := range w.stage(0).AfterStageTasks {
			shuffle(w.stage(0).AfterStageTasks[i].StartsAfter)
			if measured := w.stage(0).AfterStageTasks[i].Analysis; measured != nil {
				shuffle(measured.Templates)
				shuffle(measured.Args)
			}
		}
		for i := range w.status.StagesStatus {
			for j := range w.status.StagesStatus[i].Clusters {
				shuffle(w.status.StagesStatus[i].Clusters[j].ClusterResourceOverrideSnapshots)
				shuffle(w.status.StagesStatus[i].Clusters[j].ResourceOverrideSnapshots)
			}
		}
		require.Equal(t, want, w.hash())
	}
}

// Acceptance 1 of plan-bound approvals, the other half.
func TestAcceptance1EveryChangeOfAFactIsAnotherHash(t *testing.T) {
	three := int32(3)
	seen := map[string]string{usual().hash(): "nothing"}
	for sentence, change := range map[string]func(w *world){
		"another placement":               func(w *world) { w.facts.Placement.SetName("api") },
		"in a namespace":                  func(w *world) { w.facts.Placement.SetNamespace("shop") },
		"created again":                   func(w *world) { w.facts.Placement.SetUID("other") },
		"a rollback":                      func(w *world) { w.facts.RollbackOf = "web-1" },
		"another policy":                  func(w *world) { w.status.PolicySnapshotIndexUsed = "1" },
		"another apply strategy":          func(w *world) { w.status.ApplyStrategy.Type = placementv1beta1.ApplyStrategyTypeServerSideApply },
		"other members may join":          func(w *world) { w.status.UpdateStrategySnapshot.OnMembershipChange = "Continue" },
		"clusters in no stage":            func(w *world) { w.status.UpdateStrategySnapshot.UnassignedClusters = "Ignore" },
		"what becomes of held clusters":   func(w *world) { w.status.UpdateStrategySnapshot.HeldClusters = "Skip" },
		"a rollback without approvals":    func(w *world) { w.status.UpdateStrategySnapshot.RollbackApprovals = "Skip" },
		"another snapshot":                func(w *world) { w.status.ResourceSnapshotIndexUsed = "3" },
		"other resources":                 func(w *world) { w.facts.Resources["4"] = "five" },
		"the name of a stage":             func(w *world) { w.stage(0).Name = "first" },
		"how many at once":                func(w *world) { w.stage(1).MaxConcurrency = new(intstr.FromInt32(1)) },
		"a deadline":                      func(w *world) { w.stage(0).ClusterDeadlineSeconds = &three },
		"how long a cluster is available": func(w *world) { w.stage(0).MinReadySeconds = &three },
		"a failure budget": func(w *world) {
			w.stage(0).FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: new(intstr.FromInt32(1))}
		},
		"a task less":              func(w *world) { w.stage(0).AfterStageTasks = w.stage(0).AfterStageTasks[1:] },
		"a shorter soak":           func(w *world) { w.stage(0).AfterStageTasks[0].WaitTime.Duration = time.Second },
		"another analysis":         func(w *world) { w.stage(0).AfterStageTasks[1].Analysis.Templates[0].Name = "none" },
		"an argument":              func(w *world) { w.stage(0).AfterStageTasks[1].Analysis.Args[0].Value = "9" },
		"what a task starts after": func(w *world) { w.stage(0).AfterStageTasks[2].StartsAfter = nil },
		"who may approve": func(w *world) {
			w.stage(0).AfterStageTasks[2].Approval = &placementv1beta1.ApprovalConfig{PlanHash: placementv1beta1.PlanHashRequired}
		},
		"a task during a stage": func(w *world) { w.stage(0).DuringStageTasks = w.stage(0).AfterStageTasks[1:2] },
		"the order of stages": func(w *world) {
			slices.Reverse(w.status.StagesStatus)
			slices.Reverse(w.status.UpdateStrategySnapshot.Stages)
		},
		"a cluster more": func(w *world) {
			w.status.StagesStatus[0].Clusters = append(w.status.StagesStatus[0].Clusters, *w.cluster(0))
		},
		"a cluster less":                       func(w *world) { w.status.StagesStatus[1].Clusters = w.status.StagesStatus[1].Clusters[1:] },
		"another cluster":                      func(w *world) { w.cluster(0).ClusterName = "member-4" },
		"the order of clusters":                func(w *world) { slices.Reverse(w.status.StagesStatus[1].Clusters) },
		"a cluster with a snapshot of its own": func(w *world) { w.cluster(0).ResourceSnapshotIndex = "3" },
		"an override":                          func(w *world) { w.cluster(0).ClusterResourceOverrideSnapshots[0] = "cro-9" },
		"an override in a namespace":           func(w *world) { w.cluster(0).ResourceOverrideSnapshots[0].Namespace = "c" },
		"a cluster that has something":         func(w *world) { w.facts.Bases["member-2"] = "web-3-snapshot@0a1b2c3d4e5f" },
		"a cluster that has something else":    func(w *world) { w.facts.Bases["member-1"] = "web-2-snapshot@0a1b2c3d4e5f" },
		"a cluster with another revision":      func(w *world) { w.facts.Bases["member-1"] = "web-3-snapshot@ffffffffffff" },
		"a cluster that has nothing":           func(w *world) { delete(w.facts.Bases, "member-1") },
		"no removal":                           func(w *world) { w.status.DeletionStageStatus.Clusters = nil },
		"another removal":                      func(w *world) { w.status.DeletionStageStatus.Clusters[0].ClusterName = "member-7" },
		"a removal of something else":          func(w *world) { w.facts.Bases["member-9"] = "web-2-snapshot@0a1b2c3d4e5f" },
	} {
		w := usual()
		change(w)
		hash := w.hash()
		assert.NotContains(t, seen, hash, "%s is told from %s", sentence, seen[hash])
		seen[hash] = sentence
		if differences := planhash.Make(&usual().status, usual().facts).Outline().Differences(planhash.Make(&w.status, w.facts).Outline()); !assert.NotEmpty(t, differences, sentence) {
			t.Log(sentence)
		}
	}
}

// What says which clusters a stage has is in the plan as its clusters; windows are looked at when a cluster starts.
func TestWhatIsNoPartOfAPlan(t *testing.T) {
	want := usual().hash()
	for sentence, change := range map[string]func(w *world){
		"which labels a stage selects": func(w *world) { w.stage(1).LabelSelector = nil },
		"a sample":                     func(w *world) { w.stage(1).Sample = &placementv1beta1.ClusterSample{Percent: 5} },
		"a sorting label":              func(w *world) { w.stage(1).SortingLabelKey = new("a") },
		"an order":                     func(w *world) { w.stage(1).Order = &placementv1beta1.ClusterOrder{} },
		"windows":                      func(w *world) { w.stage(1).Windows = []string{"night"} },
		"vocabulary":                   func(w *world) { w.status.Vocabulary = placementv1beta1.VocabularyKubeFleet },
		"conditions":                   func(w *world) { w.status.Conditions = []metav1.Condition{{Type: "Progressing"}} },
	} {
		w := usual()
		change(w)
		assert.Equal(t, want, w.hash(), sentence)
	}
}

// A field that is added to a strategy is part of the plan by itself; one that is no part of it is named in the package, and here.
func TestEveryFieldOfAStrategyIsPartOfAPlanOrNamed(t *testing.T) {
	want := usual().hash()
	named := []string{"LabelSelector", "Sample", "SortingLabelKey", "Order", "Windows"}
	for sentence, of := range map[string]func(w *world) any{
		"stage":    func(w *world) any { return w.stage(0) },
		"strategy": func(w *world) any { return w.status.UpdateStrategySnapshot },
	} {
		for i := range reflect.TypeOf(of(usual())).Elem().NumField() {
			w := usual()
			fields := reflect.ValueOf(of(w)).Elem()
			field := fields.Field(i)
			switch field.Kind() {
			case reflect.Pointer:
				field.Set(reflect.New(field.Type().Elem()))
			case reflect.Slice:
				field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			case reflect.String:
				field.SetString("other")
			case reflect.Bool:
				field.SetBool(true)
			default:
				require.Fail(t, "a field of another kind", fields.Type().Field(i).Name)
			}
			name := fields.Type().Field(i).Name
			assert.Equal(t, slices.Contains(named, name), want == w.hash(), "%s of a %s", name, sentence)
		}
	}
}

// What is hashed is part of the contract with plans in pull requests: change the version with it.
func TestTheFormOfAPlanIsThatOfVersion1(t *testing.T) {
	w := &world{facts: usual().facts}
	w.status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "all"}}}
	w.status.ResourceSnapshotIndexUsed = "4"
	w.status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-1"}, {ClusterName: "member-2"}}}}
	raw, err := json.Marshal(planhash.Make(&w.status, w.facts))
	require.NoError(t, err)
	assert.Equal(t, `{"v":1,"placement":{"namespace":"","name":"web","uid":"uid"},"rollbackOf":"","policyIndex":"","applyStrategy":null,`+
		`"strategy":{"stages":[{"name":"all"}]},"snapshot":{"index":"4","resourceHash":"four"},"stages":[{"name":"all","clusters":[`+
		`{"name":"member-1","from":"web-3-snapshot@0a1b2c3d4e5f","to":"4","toHash":"four","overrides":[]},`+
		`{"name":"member-2","from":"none","to":"4","toHash":"four","overrides":[]}]}],"deletion":[]}`, string(raw))
	assert.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256(raw)), w.hash())
}

func TestWhatAnApprovalMayNameAsAHash(t *testing.T) {
	hash := planhash.Prefix + strings.Repeat("0123456789abcdef", 4)
	for named, want := range map[string]bool{
		hash: true, hash[:7+12]: true, hash[:7+20]: true,
		hash[:7+11]: false, hash + "0": false, "": false, "sha256:": false, strings.TrimPrefix(hash, planhash.Prefix): false,
		strings.ToUpper(hash): false, planhash.Prefix + strings.Repeat("f", 12): false,
	} {
		assert.Equal(t, want, planhash.Matches(named, hash), named)
	}
	assert.Equal(t, "0123456789ab", planhash.Short(hash))
	assert.Empty(t, planhash.Short(""))
}

func runOf(change func(*placementv1beta1.ClusterStagedUpdateRun)) *placementv1beta1.ClusterStagedUpdateRun {
	run := &placementv1beta1.ClusterStagedUpdateRun{Status: usual().status}
	run.Status.PlanHash = usual().hash()
	change(run)
	return run
}

func skippedCondition(why string) []metav1.Condition {
	return []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonClusterUpdatingSkipped, Message: why}}
}

func TestThePlanOfARunChangesWithWhatBecomesOfItsClusters(t *testing.T) {
	skip := func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-2", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
	}
	done := func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Status.StagesStatus[1].Clusters[0].Conditions = skippedCondition("")
	}
	none := runOf(func(*placementv1beta1.ClusterStagedUpdateRun) {})
	assert.Equal(t, none.Status.PlanHash, planhash.Effective(none, "prod"))
	asked := planhash.Effective(runOf(skip), "prod")
	assert.NotEqual(t, none.Status.PlanHash, asked)
	assert.Equal(t, asked, planhash.Effective(runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) { skip(run); done(run) }), "prod"), "done as asked")
	assert.Equal(t, asked, planhash.Effective(runOf(done), "prod"), "and no longer asked for")
	assert.Equal(t, "member-2 is skipped", planhash.Describe(planhash.Changes(runOf(skip))))

	retry := func(attempt int32) string {
		return planhash.Effective(runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) {
			run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-2", Action: placementv1beta1.ClusterActionRetry, Attempt: attempt}}
		}), "prod")
	}
	assert.NotEqual(t, asked, retry(1))
	assert.NotEqual(t, retry(1), retry(2))
	assert.Equal(t, retry(2), planhash.Effective(runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Status.StagesStatus[1].Clusters[0].Attempt = 2
	}), "prod"), "done and no longer asked for")

	over := runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Status.StagesStatus[1].Clusters[0].Attempt = 2
		run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-2", Action: placementv1beta1.ClusterActionRetry, Attempt: 2}}
		done(run)
	})
	assert.Equal(t, "member-2 is skipped", planhash.Describe(planhash.Changes(over)), "the retry that is still asked for has been done")

	assert.Empty(t, planhash.Effective(runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) { skip(run); run.Status.PlanHash = "" }), "prod"))
	assert.Equal(t, none.Status.PlanHash, planhash.Effective(runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) {
		run.Spec.RollbackOf = "web-1"
		done(run)
	}), "prod"), "a rollback leaves it by its plan")
}

func TestWhatClustersHaveSaidIsPartOfWhatIsApproved(t *testing.T) {
	rehearsed := func(digest string) *placementv1beta1.ClusterStagedUpdateRun {
		return runOf(func(run *placementv1beta1.ClusterStagedUpdateRun) {
			run.Status.StagesStatus[1].BeforeStageTaskStatus = []placementv1beta1.StageTaskStatus{
				{Type: placementv1beta1.StageTaskTypeApproval}, {Type: placementv1beta1.StageTaskTypeRehearsal, Rehearsal: &placementv1beta1.StageRehearsal{RehearsalDigest: digest}},
			}
		})
	}
	plain := rehearsed("").Status.PlanHash
	assert.Equal(t, plain, planhash.Effective(rehearsed(""), "prod"), "before all have answered")
	assert.NotEqual(t, plain, planhash.Effective(rehearsed("a"), "prod"))
	assert.NotEqual(t, planhash.Effective(rehearsed("a"), "prod"), planhash.Effective(rehearsed("b"), "prod"))
	assert.Equal(t, plain, planhash.Effective(rehearsed("a"), "canary"), "of another stage")
}

func TestManyChangesAreCounted(t *testing.T) {
	var changes []planhash.Change
	for i := range 12 {
		changes = append(changes, planhash.Change{Cluster: fmt.Sprintf("member-%d", i), Action: "Skip"})
	}
	assert.True(t, strings.HasSuffix(planhash.Describe(changes), "member-9 is skipped, 2 more are skipped or retried"), planhash.Describe(changes))
	assert.Empty(t, planhash.Describe(nil))
}

func TestAnOutlineIsReadIfItHasNamesOnly(t *testing.T) {
	outline := planhash.Make(&usual().status, usual().facts).Outline()
	raw, err := json.Marshal(outline)
	require.NoError(t, err)
	assert.Equal(t, &outline, planhash.ReadOutline(string(raw)))
	assert.Less(t, len(raw), 1000)
	for sentence, text := range map[string]string{
		"nothing": "", "no JSON": "x", "a sentence as an index": strings.Replace(string(raw), `"snapshot":"4"`, `"snapshot":"4, which jane approved"`, 1),
		"a stage that moves the cursor": strings.Replace(string(raw), `"name":"canary"`, `"name":"\u001b[2J"`, 1),
	} {
		assert.Nil(t, planhash.ReadOutline(text), sentence)
	}
}

func TestDifferencesAreSaidOnce(t *testing.T) {
	w := usual()
	before := planhash.Make(&w.status, w.facts).Outline()
	w.status.ResourceSnapshotIndexUsed = "3"
	assert.Equal(t, []string{"resource snapshot 4 -> 3"}, before.Differences(planhash.Make(&w.status, w.facts).Outline()))
	w = usual()
	w.status.StagesStatus[1].Clusters = w.status.StagesStatus[1].Clusters[1:]
	w.facts.Bases["member-1"] = "web-2-snapshot@0a1b2c3d4e5f"
	assert.Equal(t, []string{"clusters of stage canary have something else now", "stage prod has 2 clusters -> 1"},
		before.Differences(planhash.Make(&w.status, w.facts).Outline()))
	later := before
	later.Version++
	assert.Equal(t, []string{"it was reviewed with version 1 of the hash, and this hub has version 2"}, before.Differences(later))
}

// large is a plan of 5,000 clusters, each with overrides.
func large() *world {
	w := usual()
	clusters := make([]placementv1beta1.ClusterUpdatingStatus, 5000)
	for i := range clusters {
		clusters[i] = *w.cluster(0).DeepCopy()
		clusters[i].ClusterName = fmt.Sprintf("member-%04d", i)
		w.facts.Bases[clusters[i].ClusterName] = "web-3-snapshot@0a1b2c3d4e5f"
	}
	w.status.StagesStatus[1].Clusters = clusters
	return w
}

// Acceptance 1 of plan-bound approvals asks for less than 50 ms an operation.
func BenchmarkAcceptance1FiveThousandClusters(b *testing.B) {
	w := large()
	b.ReportAllocs()
	for b.Loop() {
		w.hash()
	}
}
