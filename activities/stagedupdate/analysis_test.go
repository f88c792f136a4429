package stagedupdate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const theAnalysis = "example-run-2-canary-after"

// analysed is a hub whose strategy has an analysis after the stage canary.
func analysed(t *testing.T, config placementv1beta1.AnalysisConfig) *hub {
	t.Helper()
	source := &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: "central"},
		Spec: fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: "https://prometheus.invalid"}}
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "errors", Generation: 4}}
	template.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "max"}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{
		Name: "ratio", Success: "result <= double(args.max)", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `errors{run="$(run)"}`},
	}}
	h := howTo(t, source, template)
	if config.Templates == nil {
		config.Templates = []placementv1beta1.AnalysisTemplate{{Name: "errors"}}
	}
	if config.Args == nil {
		config.Args = []placementv1beta1.AnalysisArgument{{Name: "max", Value: "0.01"}}
	}
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].AfterStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &config}}
	})
	return h
}

// awaitsAnalysis has updated all clusters of both stages, and waits for the analysis.
func awaitsAnalysis(t *testing.T, config placementv1beta1.AnalysisConfig) *hub {
	t.Helper()
	h := analysed(t, config)
	require.True(t, initialize(h, "example-run-2").Initialized, "%+v", h.run("example-run-2").Status.Conditions)
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	h.events = nil
	return h
}

func (h *hub) analysis() *fleetflowv1alpha1.ClusterStageAnalysisRun {
	h.t.Helper()
	return get(h, &fleetflowv1alpha1.ClusterStageAnalysisRun{}, "", theAnalysis)
}

// measuredAs ends the newest attempt.
func (h *hub) measuredAs(phase fleetflowv1alpha1.AnalysisPhase) {
	h.t.Helper()
	editStatus(h, h.analysis(), func(r *fleetflowv1alpha1.ClusterStageAnalysisRun) {
		fleetflowv1alpha1.SetPhase(r, phase, "ratio 0.034", h.clock.Now())
	})
}

func (h *hub) taskCondition(kind string) string {
	h.t.Helper()
	return conditionOf(h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions, kind)
}

func TestAnAnalysisIsPreparedBeforeAnyClusterChanges(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	require.True(t, initialize(h, "example-run-2").Initialized)
	run := h.analysis()
	assert.Equal(t, fleetflowv1alpha1.AnalysisPending, fleetflowv1alpha1.PhaseOfAttempt(run))
	assert.Equal(t, `errors{run="example-run-2"}`, run.Spec.Metrics[0].Prometheus.Query)
	assert.Equal(t, map[string]string{"max": "0.01"}, run.Spec.Metrics[0].Args)
	assert.Equal(t, []fleetflowv1alpha1.AnalysisTemplateUsed{{Name: "errors", Generation: 4}}, run.Spec.Templates)
	assert.Equal(t, theAnalysis, h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0].AnalysisRunName)
}

func TestARunIsNotInitializedIfItsAnalysisCannotBe(t *testing.T) {
	for sentence, test := range map[string]struct {
		config placementv1beta1.AnalysisConfig
		change func(*fleetflowv1alpha1.StageAnalysis)
		want   string
	}{
		"no such template":  {config: placementv1beta1.AnalysisConfig{Templates: []placementv1beta1.AnalysisTemplate{{Name: "none"}}}, want: "StageAnalysis `none` not found"},
		"an argument more":  {config: placementv1beta1.AnalysisConfig{Args: []placementv1beta1.AnalysisArgument{{Name: "max", Value: "1"}, {Name: "min", Value: "1"}}}, want: "the analysis after stage `canary`: no template of the analysis takes an argument min"},
		"A9.10: bad CEL":    {change: func(a *fleetflowv1alpha1.StageAnalysis) { a.Spec.Metrics[0].Success = "result <" }, want: "StageAnalysis `errors` is not valid: metric ratio: the expression \"result <\" is not valid CEL"},
		"no such source":    {change: func(a *fleetflowv1alpha1.StageAnalysis) { a.Spec.Metrics[0].Prometheus.SourceRef.Name = "none" }, want: "there is no MetricSource none"},
		"it asks of Secret": {change: func(a *fleetflowv1alpha1.StageAnalysis) { a.Spec.Metrics[0].Success = `secrets["a"] == ""` }, want: "undeclared reference to 'secrets'"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := analysed(t, test.config)
			if test.change != nil {
				edit(h, get(h, &fleetflowv1alpha1.StageAnalysis{}, "", "errors"), test.change)
			}
			assert.True(t, initialize(h, "example-run-2").Terminal)
			assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), test.want)
		})
	}
}

func TestAGoodAnalysisLetsTheStagePass(t *testing.T) {
	h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{})
	state := h.gates("canary", 1)
	assert.Equal(t, &wf.MeasureRequest{Run: refOf("example-run-2"), Analysis: theAnalysis, Stage: "canary"}, state.Measure)
	assert.Equal(t, []wf.TaskWait{{Type: "Analysis", Title: "analysis", Subject: theAnalysis, Phase: "Analyzing"}}, state.Waits)
	assert.Equal(t, "AnalysisSucceeded=Unknown StageTaskAnalysisStarted: What is measured has not been enough yet", h.taskCondition("AnalysisSucceeded"))
	before := h.writes
	h.gates("canary", 1)
	assert.Equal(t, before, h.writes, "looking again writes nothing")
	h.measuredAs(fleetflowv1alpha1.AnalysisSucceeded)
	assert.True(t, h.gates("canary", 1).Open)
	assert.Equal(t, "AnalysisSucceeded=True StageTaskAnalysisSucceeded: ratio 0.034", h.taskCondition("AnalysisSucceeded"))
	assert.Contains(t, strings.Join(h.events, "\n"), "Normal example-run-2 AnalysisStarted")
	assert.Contains(t, strings.Join(h.events, "\n"), "Normal example-run-2 AnalysisSucceeded")
}

func TestWhatFollowsFromAnAnalysisThatHasNotPassed(t *testing.T) {
	type config = placementv1beta1.AnalysisConfig
	for sentence, test := range map[string]struct {
		config config
		phase  fleetflowv1alpha1.AnalysisPhase
		paused bool
		fails  string
		back   bool
		passes string
	}{
		"a failure pauses by default":               {phase: fleetflowv1alpha1.AnalysisFailed, paused: true},
		"no data pauses by default":                 {phase: fleetflowv1alpha1.AnalysisInconclusive, paused: true},
		"a broken endpoint pauses":                  {phase: fleetflowv1alpha1.AnalysisError, paused: true},
		"a broken endpoint takes nothing back":      {config: config{OnFailure: placementv1beta1.AnalysisRollback, OnError: placementv1beta1.AnalysisRollback}, phase: fleetflowv1alpha1.AnalysisError, paused: true},
		"a failure ends the run":                    {config: config{OnFailure: placementv1beta1.AnalysisAbort}, phase: fleetflowv1alpha1.AnalysisFailed, fails: "has ended as Failed: ratio 0.034"},
		"a failure takes the clusters back":         {config: config{OnFailure: placementv1beta1.AnalysisRollback}, phase: fleetflowv1alpha1.AnalysisFailed, fails: "takes its clusters back", back: true},
		"no data is let through where it says so":   {config: config{OnInconclusive: placementv1beta1.AnalysisProceed}, phase: fleetflowv1alpha1.AnalysisInconclusive, passes: "StageTaskAnalysisInconclusive: ratio 0.034; the strategy says Proceed"},
		"a dry run passes whatever it has measured": {config: config{DryRun: true, OnFailure: placementv1beta1.AnalysisRollback}, phase: fleetflowv1alpha1.AnalysisFailed, passes: "StageTaskAnalysisDryRun: A dry run, which passes; it has ended as Failed: ratio 0.034"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := awaitsAnalysis(t, test.config)
			h.gates("canary", 1)
			h.measuredAs(test.phase)
			state := h.gates("canary", 1)
			run := h.run("example-run-2")
			assert.Equal(t, test.passes != "", state.Open)
			assert.Equal(t, test.paused, run.Spec.State == placementv1beta1.StateStop)
			assert.Equal(t, test.fails != "", meta.IsStatusConditionFalse(run.Status.Conditions, "Succeeded"))
			assert.Contains(t, conditionOf(run.Status.Conditions, "Succeeded"), test.fails)
			assert.Contains(t, h.taskCondition("AnalysisSucceeded"), test.passes)
			if test.passes == "" {
				assert.Contains(t, h.taskCondition("AnalysisSucceeded"), "AnalysisSucceeded=False StageTaskAnalysis"+string(test.phase)+": ratio 0.034", "it is recorded before anything is done about it")
				assert.Contains(t, strings.Join(h.events, "\n"), "Warning example-run-2 Analysis"+string(test.phase))
			}
			var runs placementv1beta1.ClusterStagedUpdateRunList
			require.NoError(t, h.List(t.Context(), &runs))
			assert.Equal(t, test.back, len(runs.Items) == 2, "a run that takes them back")
		})
	}
}

func TestARunThatIsResumedIsAnalysedAnew(t *testing.T) {
	h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{})
	h.gates("canary", 1)
	for attempt := int32(1); attempt <= 2; attempt++ {
		h.measuredAs(fleetflowv1alpha1.AnalysisFailed)
		require.False(t, h.gates("canary", 1).Open)
		require.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State, "attempt %d", attempt)
		edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Spec.State = placementv1beta1.StateRun
			r.Generation = r.Generation + 2
		})
		edit(h, get(h, &fleetflowv1alpha1.StageAnalysis{}, "", "errors"), func(a *fleetflowv1alpha1.StageAnalysis) { a.Generation++ })

		assert.NotNil(t, h.gates("canary", 1).Measure)
		assert.Equal(t, attempt+1, h.analysis().Spec.Attempt)
		assert.Equal(t, int64(4+attempt), h.analysis().Spec.Templates[0].Generation, "with the template as it is now")
		assert.Equal(t, fleetflowv1alpha1.AnalysisPending, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
		h.gates("canary", 1)
		assert.Equal(t, attempt+1, h.analysis().Spec.Attempt, "once")
	}
	h.measuredAs(fleetflowv1alpha1.AnalysisSucceeded)
	assert.True(t, h.gates("canary", 1).Open)
}

func TestTheAnalysisOfAnEarlierRunOfTheNameDoesNotCount(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	left := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: theAnalysis}}
	left.Spec.RunRef = fleetflowv1alpha1.UpdateRunReference{Name: "example-run-2", UID: "earlier"}
	left.Spec.Stage = "canary"
	left.Spec.Position = fleetflowv1alpha1.PositionAfter
	left.Spec.Attempt = 1
	fleetflowv1alpha1.SetPhase(left, fleetflowv1alpha1.AnalysisSucceeded, "", h.clock.Now())
	require.NoError(t, h.unwatched.Create(t.Context(), left))
	initialize(h, "example-run-2")
	assert.Equal(t, fleetflowv1alpha1.AnalysisPending, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
}

func TestARunOwnsItsAnalysisAndTakesNoneOfANamespaceForIt(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	other := &fleetflowv1alpha1.StageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: theAnalysis}}
	other.Spec.RunRef = fleetflowv1alpha1.UpdateRunReference{Name: "example-run-2", UID: "another"}
	require.NoError(t, h.unwatched.Create(t.Context(), other))
	require.True(t, initialize(h, "example-run-2").Initialized)
	run := h.run("example-run-2")
	assert.Equal(t, fleetflowv1alpha1.UpdateRunReference{Name: run.Name, UID: run.UID}, h.analysis().Spec.RunRef)
	assert.True(t, metav1.IsControlledBy(h.analysis(), run))
	assert.Equal(t, other.UID, get(h, &fleetflowv1alpha1.StageAnalysisRun{}, "team", theAnalysis).UID, "that of the team's run stays")
}

func TestAnAnalysisIsWaivedByAnExemption(t *testing.T) {
	fromCanary := fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: "canary"}
	for _, failed := range []bool{false, true} {
		h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{})
		h.gates("canary", 1)
		if failed {
			h.measuredAs(fleetflowv1alpha1.AnalysisFailed)
			h.gates("canary", 1)
			require.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
			edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
		}
		h.exempt("jane", fromCanary)
		assert.True(t, h.gates("canary", 1).Open, "nothing is measured any more")
		const record = "exemption hotfix: jane exempts run/example-run-2 from analysis/canary until "
		assert.Contains(t, h.taskCondition("AnalysisSucceeded"), "AnalysisSucceeded=True StageTaskAnalysisWaived: Waived: "+record)
		assert.Contains(t, h.taskCondition("AnalysisSucceeded"), ": CVE-2026-1 (INC-9)")
		assert.Equal(t, fleetflowv1alpha1.AnalysisWaived, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
		assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(h.analysis()), record)
		assert.NotNil(t, h.analysis().Status.EndTime)
		assert.Contains(t, strings.Join(h.events, "\n"), "Warning example-run-2 AnalysisWaived")
	}
}

func TestAnExemptionOfAnotherStageWaivesNothing(t *testing.T) {
	h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{})
	h.exempt("jane", fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: "staging"})
	assert.False(t, h.gates("canary", 1).Open)
	assert.NotEqual(t, fleetflowv1alpha1.AnalysisWaived, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
}

// watched is a hub whose strategy has an analysis during the stage canary, of which the first cluster is being updated.
func watched(t *testing.T, config placementv1beta1.AnalysisConfig) *hub {
	t.Helper()
	h := analysed(t, config)
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		s.Spec.Stages[1].DuringStageTasks, s.Spec.Stages[1].AfterStageTasks = s.Spec.Stages[1].AfterStageTasks, nil
	})
	require.True(t, initialize(h, "example-run-2").Initialized, "%+v", h.run("example-run-2").Status.Conditions)
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	h.gates("staging", 0)
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	return h
}

func (h *hub) during() wf.GateState {
	h.t.Helper()
	return must(h, h.acts.CheckGates, wf.GateRequest{StageRequest: stageOf("example-run-2", "canary", 1), During: true})
}

// watchedAs ends the newest attempt of the analysis during the stage canary.
func (h *hub) watchedAs(phase fleetflowv1alpha1.AnalysisPhase) {
	h.t.Helper()
	editStatus(h, get(h, &fleetflowv1alpha1.ClusterStageAnalysisRun{}, "", "example-run-2-canary-during"), func(r *fleetflowv1alpha1.ClusterStageAnalysisRun) {
		fleetflowv1alpha1.SetPhase(r, phase, "ratio 0.034", h.clock.Now())
	})
}

func TestAnAnalysisDuringAStageActsAtOnce(t *testing.T) {
	for action, check := range map[placementv1beta1.AnalysisAction]func(*testing.T, *hub){
		placementv1beta1.AnalysisPause: func(t *testing.T, h *hub) {
			assert.Equal(t, placementv1beta1.StateStop, h.run("example-run-2").Spec.State)
		},
		placementv1beta1.AnalysisRollback: func(t *testing.T, h *hub) {
			assert.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Succeeded"), "takes its clusters back")
			assert.Equal(t, "example-run-2", get(h, &placementv1beta1.ClusterStagedUpdateRun{}, "", "example-run-2-rollback").Spec.RollbackOf)
		},
	} {
		t.Run(string(action), func(t *testing.T) {
			h := watched(t, placementv1beta1.AnalysisConfig{OnFailure: action})
			progressing := conditionOf(h.run("example-run-2").Status.Conditions, "Progressing")
			state := h.during()
			assert.Equal(t, &wf.MeasureRequest{Run: refOf("example-run-2"), Analysis: "example-run-2-canary-during", Stage: "canary"}, state.Measure)
			assert.Equal(t, progressing, conditionOf(h.run("example-run-2").Status.Conditions, "Progressing"), "the run goes on meanwhile")
			h.watchedAs(fleetflowv1alpha1.AnalysisFailed)
			assert.False(t, h.during().Open)
			check(t, h)
			assert.Equal(t, oldSnapshot, h.binding("member1").Spec.ResourceSnapshotName, "the next cluster is as it was")
		})
	}
}

func TestAStageWaitsForTheAnalysisDuringIt(t *testing.T) {
	h := watched(t, placementv1beta1.AnalysisConfig{})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.True(t, h.during().Open, "once all clusters are updated, the end of the stage is checked instead")
	state := h.gates("canary", 1)
	assert.False(t, state.Open)
	assert.NotNil(t, state.Measure)
	h.watchedAs(fleetflowv1alpha1.AnalysisSucceeded)
	assert.True(t, h.gates("canary", 1).Open)
	assert.True(t, meta.IsStatusConditionTrue(h.run("example-run-2").Status.StagesStatus[1].Conditions, "Succeeded"))
}

func TestAnApprovalIsAskedForOnceWhatComesBeforeItIsDone(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		approval := placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval, StartsAfter: []placementv1beta1.StageTaskType{placementv1beta1.StageTaskTypeAnalysis}}
		s.Spec.Stages[1].AfterStageTasks = append([]placementv1beta1.StageTask{approval}, s.Spec.Stages[1].AfterStageTasks...)
	})
	require.True(t, initialize(h, "example-run-2").Initialized, "%+v", h.run("example-run-2").Status.Conditions)
	must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf("example-run-2", "staging", 0), Start: names("member2")})
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member3"), nil, nil))
	must(h, h.acts.AdvanceStage, canaryAdvance(names("member1"), nil, names("member3")))
	assert.False(t, h.gates("canary", 1).NeedsApproval())
	var requests placementv1beta1.ClusterApprovalRequestList
	require.NoError(t, h.List(t.Context(), &requests))
	assert.Empty(t, requests.Items)
	h.measuredAs(fleetflowv1alpha1.AnalysisSucceeded)
	assert.True(t, h.gates("canary", 1).NeedsApproval(), "in the very check that finds the analysis done")
	require.NoError(t, h.List(t.Context(), &requests))
	assert.Len(t, requests.Items, 1)
}
