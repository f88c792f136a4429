package picture

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func measured(minute int, outcome fleetflowv1alpha1.AnalysisOutcome, value, message string) fleetflowv1alpha1.AnalysisMeasurement {
	return fleetflowv1alpha1.AnalysisMeasurement{At: metav1.NewMicroTime(noon.Add(time.Duration(minute) * time.Minute)), Outcome: outcome, Value: value, Message: message}
}

// ratio is an analysis of one metric with a bound and a baseline, the newest measurement first as the status has them.
func ratio(taken ...fleetflowv1alpha1.AnalysisMeasurement) *fleetflowv1alpha1.ClusterStageAnalysisRun {
	run := &fleetflowv1alpha1.ClusterStageAnalysisRun{Spec: fleetflowv1alpha1.StageAnalysisRunSpec{Stage: "canary", Position: "After", Attempt: 1,
		Metrics: []fleetflowv1alpha1.AnalysisRunMetric{{AnalysisMetric: fleetflowv1alpha1.AnalysisMetric{
			Name: "error-ratio", Success: "result <= 0.05 && result < baseline * 2.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{BaselineQuery: "b"},
		}}}}}
	run.Status.ObservedAttempt = 1
	run.Status.Conditions = []metav1.Condition{{Type: "Succeeded", Status: metav1.ConditionUnknown, Reason: "Running"}}
	run.Status.Metrics = []fleetflowv1alpha1.AnalysisMetricStatus{{Name: "error-ratio", Last: taken}}
	return run
}

func TestAMetricIsPlottedAgainstItsBoundWithItsBaseline(t *testing.T) {
	drawn := AnalysisOf(ratio(
		measured(10, fleetflowv1alpha1.OutcomeFailure, "0.1", "against 0.02"), measured(5, fleetflowv1alpha1.OutcomeError, "", "connection refused"), measured(0, fleetflowv1alpha1.OutcomeSuccess, "0", "against 0.01 more"),
	))
	require.Len(t, drawn.Plots, 1)
	p := drawn.Plots[0]
	assert.Equal(t, "M12 128L588 12", p.Line, "from the first to the last, from the lowest to the highest")
	assert.Equal(t, "M12 117L588 105", p.Baseline)
	assert.Equal(t, []Bound{{70, "result <= 0.05"}}, p.Bounds)
	assert.Equal(t, []string{"0", "0.1"}, []string{p.Low, p.High})
	require.Len(t, p.Samples, 3)
	assert.Equal(t, []int{300, 70}, []int{p.Samples[1].X, p.Samples[1].Y}, "what has no number stands in the middle")
	assert.Equal(t, "error-ratio: 3 measurements, 1 success, 1 failure, 1 error, from 0 to 0.1, the last 2026-11-23T12:10:00Z", p.Text)
}

func TestWhatIsNoNumberHasMarksAlone(t *testing.T) {
	assert.Equal(t, "error-ratio: nothing is measured yet", AnalysisOf(ratio()).Plots[0].Text)
	one := AnalysisOf(ratio(measured(0, fleetflowv1alpha1.OutcomeSuccess, "NaN", ""))).Plots[0]
	assert.Empty(t, one.Line)
	assert.Empty(t, one.Bounds)
	assert.Equal(t, plotWidth/2, one.Samples[0].X)
	flat := AnalysisOf(ratio(measured(0, fleetflowv1alpha1.OutcomeSuccess, "0.05", ""), measured(1, fleetflowv1alpha1.OutcomeInconclusive, "0.05", ""))).Plots[0]
	assert.Equal(t, "M12 70L588 70", flat.Line)
	huge := AnalysisOf(ratio(measured(0, fleetflowv1alpha1.OutcomeSuccess, "-1.7e308", ""), measured(1, fleetflowv1alpha1.OutcomeSuccess, "1.7e308", ""))).Plots[0]
	assert.Equal(t, "M12 128L588 12", huge.Line)
	marks := map[string]bool{}
	for _, outcome := range Outcomes() {
		marks[outcome.Mark()] = true
	}
	assert.Len(t, marks, 4, "outcomes differ by shape")
}

func TestBoundsAreFoundWhereAResultIsComparedWithANumber(t *testing.T) {
	assert.Equal(t, map[float64]string{0.01: "result < 0.01", 3: "result >= 3"}, boundsIn("result < 0.01 || (result >= 3)"))
	assert.Empty(t, boundsIn("samples.all(s, s < 3.0)"))
	assert.Empty(t, boundsIn("result < 2.0 * baseline"), "it moves with the baseline")
}
