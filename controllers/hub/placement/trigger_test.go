package placement

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// triggering lets a situation have its update runs created, with strategy gated, which exists.
func (s situation) triggering(whenRunning placementv1beta1.WhenRunning) situation {
	s.external().Placement.Spec.Strategy.External = &placementv1beta1.ExternalRolloutConfig{
		StrategyName: "gated", Trigger: placementv1beta1.UpdateRunTriggerOnChange, WhenRunning: whenRunning,
	}
	s.Trigger.HasStrategy = true
	return s
}

// runOf is a run that a user has created for a resource snapshot.
func runOf(name, index string) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "crp", ResourceSnapshotIndex: index, StagedUpdateStrategyName: "gated", State: placementv1beta1.StateRun},
	}
}

// triggered is a run that the fleet has created for a resource snapshot.
func triggered(name, index string) *placementv1beta1.ClusterStagedUpdateRun {
	run := runOf(name, index)
	run.Annotations = map[string]string{placementv1beta1.TriggeredByAnnotation: string(uid)}
	return run
}

// ended lets a run be over.
func ended(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, Reason: "UpdateRunSucceeded"})
	return run
}

func edited(run *placementv1beta1.ClusterStagedUpdateRun, edit func(*placementv1beta1.ClusterStagedUpdateRun)) *placementv1beta1.ClusterStagedUpdateRun {
	edit(run)
	return run
}

func TestEachResourceSnapshotGetsOneRun(t *testing.T) {
	const finish, supersede = placementv1beta1.WhenRunningFinish, placementv1beta1.WhenRunningSupersede
	stopped := func(run *placementv1beta1.ClusterStagedUpdateRun) { run.Spec.State = placementv1beta1.StateStop }
	for sentence, test := range map[string]struct {
		when       placementv1beta1.WhenRunning
		runs       []*placementv1beta1.ClusterStagedUpdateRun
		edit       func(situation)
		creates    bool
		recorded   string
		superseded []string
		held       string
	}{
		"a new snapshot gets a run":                     {creates: true},
		"one that an earlier run has nothing to say of": {runs: []*placementv1beta1.ClusterStagedUpdateRun{ended(triggered("crp-1", "1"))}, creates: true},
		"a run of it that is there is its run":          {runs: []*placementv1beta1.ClusterStagedUpdateRun{triggered("crp-2", "2")}, recorded: "crp-2"},
		"also one that a user has created":              {runs: []*placementv1beta1.ClusterStagedUpdateRun{ended(runOf("mine", "2"))}, recorded: "mine"},
		"also one that took the latest": {runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(runOf("mine", ""), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Status.ResourceSnapshotIndexUsed = "2"
		})}, recorded: "mine"},
		"a rollback to it is not": {runs: []*placementv1beta1.ClusterStagedUpdateRun{ended(edited(runOf("back", ""), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Spec.RollbackOf = "crp-1"
			r.Status.ResourceSnapshotIndexUsed = "2"
		}))}, creates: true},
		"one that has had its run gets no other": {edit: func(s situation) { s.Latest.TriggeredRun = "crp-2" }},
		"a run under way is waited for": {runs: []*placementv1beta1.ClusterStagedUpdateRun{triggered("crp-1", "1")},
			held: "Resource snapshot 2 waits for its update run until run crp-1 is over"},
		"one that is being deleted, too": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(triggered("crp-1", "1"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.DeletionTimestamp = &now
		})}, held: "Resource snapshot 2 waits for its update run until run crp-1 is over"},
		"one that stands still waits for a person": {when: finish, runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(triggered("crp-1", "1"), stopped)},
			held: "Resource snapshot 2 waits for its update run until run crp-1 is over, whose state is Stop: let it run, or delete it"},
		"also where snapshots supersede each other": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(triggered("crp-1", "1"), stopped)},
			held: "Resource snapshot 2 waits for its update run until run crp-1 is over, whose state is Stop: let it run, or delete it"},
		"a run of an older snapshot is superseded": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{triggered("crp-1", "1")},
			superseded: []string{"crp-1"}, held: "Resource snapshot 2 takes the place of an older one, and waits until run crp-1 has ended"},
		"it is told once": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(triggered("crp-1", "1"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Annotations[placementv1beta1.SupersededByAnnotation] = "2"
		})}, held: "Resource snapshot 2 takes the place of an older one, and waits until run crp-1 has ended"},
		"a run of a user is never superseded": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{runOf("mine", "1")},
			held: "Resource snapshot 2 waits for its update run until run mine is over"},
		"a run of an earlier placement of the same name is not, either": {when: supersede, runs: []*placementv1beta1.ClusterStagedUpdateRun{edited(triggered("crp-1", "1"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Annotations[placementv1beta1.TriggeredByAnnotation] = "another"
		})}, held: "Resource snapshot 2 waits for its update run until run crp-1 is over"},
		"the strategy has to exist": {edit: func(s situation) { s.Trigger.HasStrategy = false },
			held: "Resource snapshot 2 waits for its update run: there is no ClusterStagedUpdateStrategy gated, which spec.strategy.external.strategyName names"},
		"users create the runs otherwise": {edit: func(s situation) {
			s.Placement.Spec.Strategy.External.Trigger = placementv1beta1.UpdateRunTriggerManual
		}},
		"also if nothing is said": {edit: func(s situation) { s.Placement.Spec.Strategy.External = nil }},
		"nothing is created before the placement was selected as it is now": {edit: func(s situation) { s.Facts.Verdict.Generation = 0 }},
		"nor with selectors that are wrong":                                 {edit: func(s situation) { s.Facts.Verdict.Error = "wrong" }},
		"nor before it was scheduled":                                       {edit: func(s situation) { s.Policy.Status.ObservedCRPGeneration = 0 }},
		"nor while clusters are missing":                                    {edit: func(s situation) { s.unfulfilled(3) }},
		"nor before every cluster has its binding":                          {edit: func(s situation) { s.Facts.Bindings = s.Facts.Bindings[:1] }},
		"nor without a snapshot":                                            {edit: func(s situation) { s.Facts.Latest = Snapshot{} }},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSituation("member1", "member2").snapshot(2).triggering(test.when)
			for _, run := range test.runs {
				s.Trigger.Runs = append(s.Trigger.Runs, run)
			}
			if test.edit != nil {
				test.edit(s)
			}
			plan := planTrigger(s.Facts)
			var superseded []string
			for _, run := range plan.Superseded {
				superseded = append(superseded, run.GetName())
			}
			assert.Equal(t, test.creates, plan.Creates)
			assert.Equal(t, test.recorded, plan.Recorded)
			assert.Equal(t, test.superseded, superseded)
			assert.Equal(t, test.held, plan.Held)
			condition := meta.FindStatusCondition(Project(s.Facts, View{Now: now}).Conditions, placementv1beta1.ConditionTypeUpdateRunHeld)
			assert.Equal(t, test.held != "", condition != nil)
		})
	}
}

// triggeringHub is the hub of a placement whose snapshot 0 is to get its run.
func triggeringHub(t *testing.T, more ...client.Object) *bench {
	t.Helper()
	objects := append(stored(newSituation("member1").triggering(placementv1beta1.WhenRunningSupersede)),
		&placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "gated"}})
	return newBench(t, append(objects, more...)...)
}

func (b *bench) runNamed(t *testing.T, name string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: name}, run))
	return run
}

func (b *bench) recordedRun(t *testing.T) string {
	t.Helper()
	snapshot := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "crp-0-snapshot"}, snapshot))
	return snapshot.Annotations[placementv1beta1.TriggeredRunAnnotation]
}

func TestARunIsCreatedOnceWhateverBecomesOfIt(t *testing.T) {
	b := triggeringHub(t)
	b.reconcile(t)
	run := b.runNamed(t, "crp-0")
	assert.Equal(t, placementv1beta1.UpdateRunSpec{
		PlacementName: "crp", ResourceSnapshotIndex: "0", StagedUpdateStrategyName: "gated", State: placementv1beta1.StateRun,
	}, run.Spec)
	assert.Equal(t, "crp-0", b.recordedRun(t))
	assert.Contains(t, b.told(), "UpdateRunCreated")

	require.NoError(t, b.hub.Delete(t.Context(), run))
	b.reconcile(t)
	runs := &placementv1beta1.ClusterStagedUpdateRunList{}
	require.NoError(t, b.hub.List(t.Context(), runs))
	assert.Empty(t, runs.Items, "a user has deleted it")
}

func TestACrashBetweenTheRunAndItsRecordMakesNoSecondRun(t *testing.T) {
	b := triggeringHub(t, triggered("crp-0", "0"))
	facts, err := Gather(t.Context(), b.hub, b.placement(t), Gates{})
	require.NoError(t, err)
	facts.Trigger.Runs = nil // the cache does not know it yet
	require.NoError(t, b.triggerRun(t.Context(), facts))
	assert.Equal(t, "crp-0", b.recordedRun(t))
	assert.NotContains(t, b.told(), "UpdateRunCreated")
}

func TestANameThatIsTakenIsNotUsed(t *testing.T) {
	other := runOf("crp-0", "0")
	other.Spec.PlacementName = "another"
	b := triggeringHub(t, other)
	b.reconcile(t)
	name := placementv1beta1.TriggeredRunNames("crp", uid, 0)[1]
	assert.Equal(t, "crp", b.runNamed(t, name).Spec.PlacementName)
	assert.Equal(t, name, b.recordedRun(t))
}

func TestARunOfAnOlderSnapshotIsToldToEnd(t *testing.T) {
	b := triggeringHub(t, triggered("crp-7", "7"))
	b.reconcile(t)
	assert.Equal(t, "0", b.runNamed(t, "crp-7").Annotations[placementv1beta1.SupersededByAnnotation])
	assert.Empty(t, b.recordedRun(t), "it has not ended yet")
	condition := meta.FindStatusCondition(b.placement(t).Status.Conditions, placementv1beta1.ConditionTypeUpdateRunHeld)
	require.NotNil(t, condition)
	assert.Equal(t, placementv1beta1.ReasonEarlierRunUnderWay, condition.Reason)

	require.NoError(t, b.hub.Update(t.Context(), ended(b.runNamed(t, "crp-7"))))
	b.reconcile(t)
	assert.Equal(t, "crp-0", b.recordedRun(t))
}

func TestNamesOfTriggeredRunsFit(t *testing.T) {
	long := strings.Repeat("a", 62)
	assert.Equal(t, "web-12", placementv1beta1.TriggeredRunNames("web", "uid-1", 12)[0])
	for _, name := range placementv1beta1.TriggeredRunNames(long, "uid-1", 12) {
		assert.LessOrEqual(t, len(name), 63)
	}
	assert.Len(t, placementv1beta1.TriggeredRunNames(long, "uid-1", 12), 1)
	assert.NotEqual(t, placementv1beta1.TriggeredRunNames(long, "uid-1", 12), placementv1beta1.TriggeredRunNames(long, "uid-2", 12))
}
