package analysis_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	good    = fleetflowv1alpha1.OutcomeSuccess
	bad     = fleetflowv1alpha1.OutcomeFailure
	neither = fleetflowv1alpha1.OutcomeInconclusive
	broken  = fleetflowv1alpha1.OutcomeError
)

func every(interval time.Duration) *fleetflowv1alpha1.Duration {
	return &fleetflowv1alpha1.Duration{Duration: interval}
}

// simulate takes one measurement after the other, and returns how the metric ends, after how many, and when.
func simulate(metric fleetflowv1alpha1.AnalysisMetric, outcomes ...fleetflowv1alpha1.AnalysisOutcome) (phase fleetflowv1alpha1.AnalysisPhase, taken int, took time.Duration) {
	var counted fleetflowv1alpha1.AnalysisMetricStatus
	phase, next := analysis.Assess(metric, counted, begin)
	now := next
	for _, outcome := range outcomes {
		if phase.IsOver() {
			break
		}
		now = next
		analysis.Count(&counted, outcome, now)
		taken++
		phase, next = analysis.Assess(metric, counted, begin)
		counted.Phase = phase
	}
	return phase, taken, now.Sub(begin)
}

func TestAMetricEndsByTheFirstRuleThatHolds(t *testing.T) {
	type outcomes = []fleetflowv1alpha1.AnalysisOutcome
	for sentence, test := range map[string]struct {
		metric   fleetflowv1alpha1.AnalysisMetric
		outcomes outcomes
		phase    fleetflowv1alpha1.AnalysisPhase
		taken    int
		took     time.Duration
	}{
		"never measured is never succeeded":          {phase: "Running"},
		"one good measurement is enough by default":  {outcomes: outcomes{good}, phase: "Succeeded", taken: 1},
		"A9.1: three good ones take two intervals":   {metric: fleetflowv1alpha1.AnalysisMetric{Count: 3, Interval: every(5 * time.Second)}, outcomes: outcomes{good, good, good}, phase: "Succeeded", taken: 3, took: 10 * time.Second},
		"A9.2: bad bad good bad with failureLimit 2": {metric: fleetflowv1alpha1.AnalysisMetric{Count: 10, Interval: every(time.Minute), FailureLimit: 2}, outcomes: outcomes{bad, bad, good, bad, good}, phase: "Failed", taken: 4, took: 3 * time.Minute},
		"A9.3: three errors, then answers":           {metric: fleetflowv1alpha1.AnalysisMetric{}, outcomes: outcomes{broken, broken, broken, good}, phase: "Succeeded", taken: 4, took: 70 * time.Second},
		"A9.3: five errors":                          {metric: fleetflowv1alpha1.AnalysisMetric{}, outcomes: outcomes{broken, broken, broken, broken, broken}, phase: "Error", taken: 5, took: 130 * time.Second},
		"errors are tried again within the interval": {metric: fleetflowv1alpha1.AnalysisMetric{Count: 2, Interval: every(5 * time.Second)}, outcomes: outcomes{broken, broken, good, good}, phase: "Succeeded", taken: 4, took: 15 * time.Second},
		"errors in between are not in a row":         {metric: fleetflowv1alpha1.AnalysisMetric{Count: 3, ConsecutiveErrorLimit: new(int32(1)), Interval: every(time.Minute)}, outcomes: outcomes{broken, good, broken, good, broken, good}, phase: "Succeeded", taken: 6, took: 150 * time.Second},
		"A9.4: four inconclusive ones, three may be": {metric: fleetflowv1alpha1.AnalysisMetric{Count: 10, InconclusiveLimit: 3, Interval: every(time.Minute)}, outcomes: outcomes{neither, neither, neither, neither, good}, phase: "Inconclusive", taken: 4, took: 3 * time.Minute},
		"failures in a row":                          {metric: fleetflowv1alpha1.AnalysisMetric{Count: 10, FailureLimit: 9, ConsecutiveFailureLimit: new(int32(1)), Interval: every(time.Minute)}, outcomes: outcomes{bad, good, bad, bad}, phase: "Failed", taken: 4, took: 3 * time.Minute},
		"successes in a row end it":                  {metric: fleetflowv1alpha1.AnalysisMetric{Count: 10, FailureLimit: 9, ConsecutiveSuccessLimit: 2, Interval: every(time.Minute)}, outcomes: outcomes{good, bad, good, good, good}, phase: "Succeeded", taken: 4, took: 3 * time.Minute},
		"successes in a row that never came":         {metric: fleetflowv1alpha1.AnalysisMetric{Count: 3, FailureLimit: 9, ConsecutiveSuccessLimit: 2, Interval: every(time.Minute)}, outcomes: outcomes{good, bad, good}, phase: "Inconclusive", taken: 3, took: 2 * time.Minute},
		"failure comes before inconclusive":          {metric: fleetflowv1alpha1.AnalysisMetric{Count: 3, InconclusiveLimit: 1, Interval: every(time.Minute)}, outcomes: outcomes{neither, bad}, phase: "Failed", taken: 2, took: time.Minute},
		"the first may wait":                         {metric: fleetflowv1alpha1.AnalysisMetric{InitialDelay: every(2 * time.Minute)}, outcomes: outcomes{good}, phase: "Succeeded", taken: 1, took: 2 * time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			phase, taken, took := simulate(test.metric, test.outcomes...)
			assert.Equal(t, test.phase, phase)
			assert.Equal(t, test.taken, taken)
			assert.Equal(t, test.took, took)
		})
	}
}

func TestTheNextMeasurementIsNeverEarlierThanAnIntervalAfterTheLast(t *testing.T) {
	var counted fleetflowv1alpha1.AnalysisMetricStatus
	analysis.Count(&counted, good, begin.Add(time.Hour))
	_, next := analysis.Assess(fleetflowv1alpha1.AnalysisMetric{Count: 5, Interval: every(time.Minute)}, counted, begin)
	assert.Equal(t, begin.Add(61*time.Minute), next, "whatever the clock says now")
}

func TestAPhaseThatIsOverStays(t *testing.T) {
	counted := fleetflowv1alpha1.AnalysisMetricStatus{Phase: fleetflowv1alpha1.AnalysisFailed, Measured: 1, Succeeded: 1}
	phase, next := analysis.Assess(fleetflowv1alpha1.AnalysisMetric{}, counted, begin)
	assert.Equal(t, fleetflowv1alpha1.AnalysisFailed, phase)
	assert.True(t, next.IsZero())
}

func TestAnAnalysisIsAsGoodAsItsWorstMetric(t *testing.T) {
	for sentence, test := range map[string]struct {
		phases []fleetflowv1alpha1.AnalysisPhase
		dry    []bool
		want   fleetflowv1alpha1.AnalysisPhase
		worst  int
	}{
		"all good":                         {[]fleetflowv1alpha1.AnalysisPhase{"Succeeded", "Succeeded"}, []bool{false, false}, "Succeeded", 0},
		"one goes on":                      {[]fleetflowv1alpha1.AnalysisPhase{"Succeeded", "Running"}, []bool{false, false}, "Running", 0},
		"one has failed and another runs":  {[]fleetflowv1alpha1.AnalysisPhase{"Running", "Failed"}, []bool{false, false}, "Failed", 1},
		"an error waits for the others":    {[]fleetflowv1alpha1.AnalysisPhase{"Running", "Error"}, []bool{false, false}, "Running", 1},
		"an error is worse than no answer": {[]fleetflowv1alpha1.AnalysisPhase{"Inconclusive", "Error"}, []bool{false, false}, "Error", 1},
		"a failure is worse than an error": {[]fleetflowv1alpha1.AnalysisPhase{"Failed", "Error"}, []bool{false, false}, "Failed", 0},
		"a dry run decides nothing":        {[]fleetflowv1alpha1.AnalysisPhase{"Failed", "Succeeded"}, []bool{true, false}, "Succeeded", 0},
		"all dry":                          {[]fleetflowv1alpha1.AnalysisPhase{"Failed", "Error"}, []bool{true, true}, "Succeeded", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			var metrics []fleetflowv1alpha1.AnalysisRunMetric
			var counted []fleetflowv1alpha1.AnalysisMetricStatus
			for i, phase := range test.phases {
				metrics = append(metrics, fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: fleetflowv1alpha1.AnalysisMetric{DryRun: test.dry[i]}})
				counted = append(counted, fleetflowv1alpha1.AnalysisMetricStatus{Phase: phase})
			}
			phase, worst := analysis.Conclude(metrics, counted)
			assert.Equal(t, test.want, phase)
			assert.Equal(t, test.worst, worst)
		})
	}
}

func TestAMetricDuringAStageEndsWithIt(t *testing.T) {
	metric := fleetflowv1alpha1.AnalysisMetric{Count: 2, ConsecutiveSuccessLimit: 1, FailureLimit: 1, Interval: every(10 * time.Second), InitialDelay: every(time.Hour)}
	during := analysis.During(metric, false)
	atTheEnd := analysis.During(metric, true)
	type counted = fleetflowv1alpha1.AnalysisMetricStatus
	for sentence, test := range map[string]struct {
		metric  fleetflowv1alpha1.AnalysisMetric
		counted counted
		phase   fleetflowv1alpha1.AnalysisPhase
		next    time.Duration
	}{
		"good ones are never enough":                 {metric: during, counted: counted{Measured: 9, Succeeded: 9, ConsecutiveSuccesses: 9, LastMeasurementTime: at(time.Hour)}, phase: "Running", next: time.Hour + 10*time.Second},
		"bad ones are":                               {metric: during, counted: counted{Measured: 2, Failed: 2}, phase: "Failed"},
		"it waits at first":                          {metric: during, phase: "Running", next: time.Hour},
		"the end of the stage ends it":               {metric: atTheEnd, counted: counted{Measured: 1, Failed: 1}, phase: "Succeeded"},
		"what was never measured is, at once":        {metric: atTheEnd, phase: "Running"},
		"what cannot be measured is tried once more": {metric: atTheEnd, counted: counted{Errors: 1, ConsecutiveErrors: 1, LastMeasurementTime: at(time.Minute)}, phase: "Running", next: time.Minute + 10*time.Second},
		"without an interval each minute":            {metric: analysis.During(fleetflowv1alpha1.AnalysisMetric{}, false), counted: counted{Measured: 1, Succeeded: 1, LastMeasurementTime: at(0)}, phase: "Running", next: time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			phase, next := analysis.Assess(test.metric, test.counted, begin)
			assert.Equal(t, test.phase, phase)
			if phase.IsOver() {
				assert.Zero(t, next)
				return
			}
			assert.Equal(t, begin.Add(test.next), next)
		})
	}
}

func at(after time.Duration) *metav1.MicroTime {
	instant := metav1.NewMicroTime(begin.Add(after))
	return &instant
}
