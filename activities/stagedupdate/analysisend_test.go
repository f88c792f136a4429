package stagedupdate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// measures is a hub whose run waits for its analysis, which has measured once.
func measures(t *testing.T) *hub {
	t.Helper()
	h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{})
	require.NotNil(t, h.gates("canary", 1).Measure)
	editStatus(h, h.analysis(), func(r *fleetflowv1alpha1.ClusterStageAnalysisRun) {
		fleetflowv1alpha1.SetPhase(r, fleetflowv1alpha1.AnalysisRunning, "ratio 0.001", h.clock.Now())
		r.Status.Metrics = []fleetflowv1alpha1.AnalysisMetricStatus{{Name: "ratio", Phase: fleetflowv1alpha1.AnalysisRunning, Measured: 1, Succeeded: 1}}
	})
	return h
}

// supersede has another resource snapshot take the place of the run's, which ends it.
func (h *hub) supersede() {
	h.t.Helper()
	edit(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
		r.Annotations = map[string]string{placementv1beta1.SupersededByAnnotation: "3"}
	})
}

func TestAnAnalysisIsStoppedWhenItsRunHasEndedFirst(t *testing.T) {
	h := measures(t)
	h.supersede()
	h.events = nil
	require.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)

	run := h.analysis()
	assert.Equal(t, fleetflowv1alpha1.AnalysisStopped, fleetflowv1alpha1.PhaseOfAttempt(run))
	assert.Equal(t, "The run has ended first: Cannot go on: resource snapshot 3 takes the place of the one that it rolls out", fleetflowv1alpha1.MessageOfAttempt(run))
	assert.NotNil(t, run.Status.EndTime)
	assert.Nil(t, run.Status.NextMeasurementTime)
	assert.Equal(t, fleetflowv1alpha1.AnalysisStopped, run.Status.Metrics[0].Phase)
	assert.Equal(t, int32(1), run.Status.Metrics[0].Measured, "what was measured stays")
	assert.Equal(t, "AnalysisSucceeded=False StageTaskAnalysisStopped: The run has ended first", h.taskCondition("AnalysisSucceeded"))
	assert.Len(t, h.events, 1, "the end of the run is told, and nothing besides: %s", h.events)

	before := h.writes
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, before, h.writes, "once")
}

func TestAnAnalysisThatHasNotBegunIsStoppedToo(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.supersede()
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, fleetflowv1alpha1.AnalysisStopped, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
	assert.Empty(t, h.run("example-run-2").Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions, "the stage never waited for it")
}

func TestAnAnalysisThatHasEndedStaysAsItIs(t *testing.T) {
	for _, phase := range []fleetflowv1alpha1.AnalysisPhase{fleetflowv1alpha1.AnalysisFailed, fleetflowv1alpha1.AnalysisSucceeded} {
		h := awaitsAnalysis(t, placementv1beta1.AnalysisConfig{OnFailure: placementv1beta1.AnalysisAbort})
		h.gates("canary", 1)
		h.measuredAs(phase)
		if phase == fleetflowv1alpha1.AnalysisSucceeded {
			h.supersede() // before its end was looked at
		} else {
			require.True(t, h.gates("canary", 1).Ended)
		}
		must(h, h.acts.LoadRun, refOf("example-run-2"))
		require.True(t, meta.IsStatusConditionFalse(h.run("example-run-2").Status.Conditions, "Succeeded"))
		assert.Equal(t, phase, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
		assert.Equal(t, "ratio 0.034", fleetflowv1alpha1.MessageOfAttempt(h.analysis()))
	}
}

func TestAnAnalysisIsStoppedThoughTheProcessDiedOnceTheEndWasRecorded(t *testing.T) {
	h := measures(t)
	h.supersede()
	h.left = 1
	_, err := call(h, h.acts.LoadRun, refOf("example-run-2"))
	require.ErrorContains(t, err, errDied.Error(), "Temporal tries it again")
	h.left = -1
	require.True(t, meta.IsStatusConditionFalse(h.run("example-run-2").Status.Conditions, "Succeeded"))
	require.Equal(t, fleetflowv1alpha1.AnalysisRunning, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
	must(h, h.restarted().LoadRun, refOf("example-run-2"))
	assert.Equal(t, fleetflowv1alpha1.AnalysisStopped, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
}

func TestARunEndsThoughTheHubRefusesToStopItsAnalysis(t *testing.T) {
	h := measures(t)
	h.supersede()
	h.refused[theAnalysis] = apierrors.NewForbidden(schema.GroupResource{Group: fleetflowv1alpha1.GroupName, Resource: "clusterstageanalysisruns"}, theAnalysis, errors.New("a policy"))
	assert.True(t, must(h, h.acts.LoadRun, refOf("example-run-2")).Terminal)
	assert.Equal(t, fleetflowv1alpha1.AnalysisRunning, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
}

// readsOfAnalyses calls a function after each live read of an analysis.
type readsOfAnalyses struct {
	client.Reader
	after func()
}

func (r readsOfAnalyses) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, into, options...)
	if _, is := into.(*fleetflowv1alpha1.ClusterStageAnalysisRun); is {
		r.after()
	}
	return err
}

func TestAnAnalysisIsStoppedThoughSomethingIsMeasuredMeanwhile(t *testing.T) {
	h := measures(t)
	h.supersede()
	acts := h.restarted()
	reads := 0
	acts.Live = readsOfAnalyses{h, func() {
		if reads++; reads > 1 {
			return
		}
		run := &fleetflowv1alpha1.ClusterStageAnalysisRun{}
		require.NoError(t, h.unwatched.Get(t.Context(), client.ObjectKey{Name: theAnalysis}, run))
		run.Status.Metrics[0].Measured++
		require.NoError(t, h.unwatched.Status().Update(t.Context(), run))
	}}
	must(h, acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, fleetflowv1alpha1.AnalysisStopped, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
	assert.Equal(t, int32(2), h.analysis().Status.Metrics[0].Measured, "what was measured meanwhile is not lost")
	assert.Equal(t, 2, reads)
}

func TestTheAnalysisOfALaterRunOfTheNameIsNotStopped(t *testing.T) {
	h := measures(t)
	h.supersede()
	edit(h, h.analysis(), func(r *fleetflowv1alpha1.ClusterStageAnalysisRun) {
		r.Spec.RunRef.UID = "later"
	})
	must(h, h.acts.LoadRun, refOf("example-run-2"))
	assert.Equal(t, fleetflowv1alpha1.AnalysisRunning, fleetflowv1alpha1.PhaseOfAttempt(h.analysis()))
}

func TestTheEndOfARunWithoutAnalysesReadsNone(t *testing.T) {
	h := howTo(t)
	require.True(t, initialize(h, "example-run-2").Initialized)
	h.supersede()
	acts := h.restarted()
	acts.Live = readsOfAnalyses{h, func() { t.Error("an analysis was read") }}
	before := h.writes
	require.True(t, must(h, acts.LoadRun, refOf("example-run-2")).Terminal)
	assert.Equal(t, before+1, h.writes, "the end of the run")
}

func TestAPlanThatIsTooLargeLeavesNoAnalysisBehind(t *testing.T) {
	h := analysed(t, placementv1beta1.AnalysisConfig{})
	edit(h, get(h, &placementv1beta1.ClusterStagedUpdateStrategy{}, "", "example-strategy"), func(s *placementv1beta1.ClusterStagedUpdateStrategy) {
		without := metav1.LabelSelectorRequirement{Key: "without", Operator: metav1.LabelSelectorOpNotIn}
		for i := range updaterun.MaxStatus / 50 {
			without.Values = append(without.Values, fmt.Sprintf("%050d", i))
		}
		s.Spec.Stages[1].LabelSelector.MatchExpressions = append(s.Spec.Stages[1].LabelSelector.MatchExpressions, without)
	})
	for i := range 501 { // of which as many are to be cleared
		binding := h.binding("member1").DeepCopy()
		binding.Name, binding.ResourceVersion = fmt.Sprintf("%s-%d", binding.Name, i), ""
		binding.Spec.TargetCluster = fmt.Sprintf("former-%d", i)
		binding.Spec.State = placementv1beta1.BindingStateUnscheduled
		require.NoError(t, h.unwatched.Create(t.Context(), binding))
	}
	require.True(t, initialize(h, "example-run-2").Terminal)
	require.Contains(t, conditionOf(h.run("example-run-2").Status.Conditions, "Initialized"), "would become")
	var left fleetflowv1alpha1.ClusterStageAnalysisRunList
	require.NoError(t, h.List(t.Context(), &left))
	assert.Empty(t, left.Items)
}
