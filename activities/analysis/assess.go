package analysis

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// How soon a measurement that could not be taken is tried again: the first time, and at the latest.
const (
	firstRetry = 10 * time.Second
	lastRetry  = time.Minute
)

// withoutInterval is how often a metric is measured during a stage that is to be measured once elsewhere.
const withoutInterval = time.Minute

// defaultErrorLimit is how many errors in a row are borne if a metric does not say.
const defaultErrorLimit = 4

// manyMeasurements is more than any metric takes.
const manyMeasurements = math.MaxInt32

// During returns a metric as it counts while the clusters of its stage are updated: it is measured until all are, and then has passed
// if it was measured at all. One that was not is measured at once.
func During(metric fleetflowv1alpha1.AnalysisMetric, updated bool) fleetflowv1alpha1.AnalysisMetric {
	metric.ConsecutiveSuccessLimit = 0
	metric.Count = manyMeasurements
	if updated {
		metric.Count = 1
		metric.InitialDelay = nil
	}
	return metric
}

// Assess returns how far a metric is after what was counted, and when its next measurement is due: that is zero if there is none.
// A metric that is over stays so.
func Assess(metric fleetflowv1alpha1.AnalysisMetric, counted fleetflowv1alpha1.AnalysisMetricStatus,
	startedAt time.Time) (fleetflowv1alpha1.AnalysisPhase, time.Time) {
	if counted.Phase.IsOver() {
		return counted.Phase, time.Time{}
	}
	if phase := verdict(metric, counted); phase.IsOver() {
		return phase, time.Time{}
	}
	return fleetflowv1alpha1.AnalysisRunning, nextMeasurement(metric, counted, startedAt)
}

// verdict returns the table of the phases of a metric: the first rule that holds counts. A metric that was never measured has not
// succeeded.
func verdict(metric fleetflowv1alpha1.AnalysisMetric, counted fleetflowv1alpha1.AnalysisMetricStatus) fleetflowv1alpha1.AnalysisPhase {
	enough := counted.Measured >= max(metric.Count, 1)
	switch {
	case counted.Failed > metric.FailureLimit,
		metric.ConsecutiveFailureLimit != nil && counted.ConsecutiveFailures > *metric.ConsecutiveFailureLimit:
		return fleetflowv1alpha1.AnalysisFailed
	case counted.ConsecutiveErrors > errorLimitOf(metric):
		return fleetflowv1alpha1.AnalysisError
	case counted.Inconclusive > metric.InconclusiveLimit:
		return fleetflowv1alpha1.AnalysisInconclusive
	case metric.ConsecutiveSuccessLimit > 0 && counted.ConsecutiveSuccesses >= metric.ConsecutiveSuccessLimit:
		return fleetflowv1alpha1.AnalysisSucceeded
	case enough && metric.ConsecutiveSuccessLimit > 0:
		return fleetflowv1alpha1.AnalysisInconclusive
	case enough:
		return fleetflowv1alpha1.AnalysisSucceeded
	}
	return fleetflowv1alpha1.AnalysisRunning
}

func errorLimitOf(metric fleetflowv1alpha1.AnalysisMetric) int32 {
	if metric.ConsecutiveErrorLimit == nil {
		return defaultErrorLimit
	}
	return *metric.ConsecutiveErrorLimit
}

func nextMeasurement(metric fleetflowv1alpha1.AnalysisMetric, counted fleetflowv1alpha1.AnalysisMetricStatus,
	startedAt time.Time) time.Time {
	if counted.LastMeasurementTime == nil {
		return startedAt.Add(durationOf(metric.InitialDelay))
	}
	wait := durationOf(metric.Interval)
	if wait == 0 && metric.Count > 1 {
		wait = withoutInterval
	}
	if counted.ConsecutiveErrors > 0 {
		retry := min(firstRetry<<min(counted.ConsecutiveErrors-1, 10), lastRetry)
		if wait == 0 || retry < wait {
			wait = retry
		}
	}
	return counted.LastMeasurementTime.Add(wait)
}

func durationOf(d *fleetflowv1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// Count adds a measurement to what was counted.
func Count(counted *fleetflowv1alpha1.AnalysisMetricStatus, outcome fleetflowv1alpha1.AnalysisOutcome, at time.Time) {
	taken := metav1.NewMicroTime(at)
	counted.LastMeasurementTime = &taken
	if outcome == fleetflowv1alpha1.OutcomeError {
		counted.Errors++
		counted.ConsecutiveErrors++
		return
	}
	successes := counted.ConsecutiveSuccesses
	failures := counted.ConsecutiveFailures
	counted.Measured++
	counted.ConsecutiveSuccesses = 0
	counted.ConsecutiveFailures = 0
	counted.ConsecutiveErrors = 0
	switch outcome {
	case fleetflowv1alpha1.OutcomeSuccess:
		counted.Succeeded++
		counted.ConsecutiveSuccesses = successes + 1
	case fleetflowv1alpha1.OutcomeFailure:
		counted.Failed++
		counted.ConsecutiveFailures = failures + 1
	default:
		counted.Inconclusive++
	}
}

// severity orders the phases of metrics that are over: an analysis is as good as the worst.
var severity = map[fleetflowv1alpha1.AnalysisPhase]int{
	fleetflowv1alpha1.AnalysisSucceeded:    0,
	fleetflowv1alpha1.AnalysisInconclusive: 1,
	fleetflowv1alpha1.AnalysisError:        2,
	fleetflowv1alpha1.AnalysisFailed:       3,
}

// Conclude returns how far an analysis is, and which of its metrics makes it so. It ends with the first metric that has failed,
// and otherwise once all have ended; metrics of a dry run decide nothing, but are waited for.
func Conclude(metrics []fleetflowv1alpha1.AnalysisRunMetric,
	counted []fleetflowv1alpha1.AnalysisMetricStatus) (phase fleetflowv1alpha1.AnalysisPhase, worst int) {
	phase = fleetflowv1alpha1.AnalysisSucceeded
	running := false
	for i := range metrics {
		switch of := counted[i].Phase; {
		case !of.IsOver():
			running = true
		case metrics[i].DryRun:
		case severity[of] > severity[phase]:
			phase = of
			worst = i
		}
	}
	if running && phase != fleetflowv1alpha1.AnalysisFailed {
		return fleetflowv1alpha1.AnalysisRunning, worst
	}
	return phase, worst
}
