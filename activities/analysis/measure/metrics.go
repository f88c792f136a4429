package measure

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Metrics count what is measured. Nothing is counted without them.
type Metrics struct {
	measurements *prometheus.CounterVec
	runs         *prometheus.CounterVec
	requests     *prometheus.HistogramVec
	putOff       *prometheus.CounterVec
}

// outcomes are what a measurement can come to, and endings what an attempt can, once it has begun to measure.
var (
	outcomes = []fleetflowv1alpha1.AnalysisOutcome{
		fleetflowv1alpha1.OutcomeSuccess, fleetflowv1alpha1.OutcomeFailure, fleetflowv1alpha1.OutcomeInconclusive, fleetflowv1alpha1.OutcomeError,
	}
	endings = []fleetflowv1alpha1.AnalysisPhase{
		fleetflowv1alpha1.AnalysisSucceeded, fleetflowv1alpha1.AnalysisFailed, fleetflowv1alpha1.AnalysisInconclusive,
		fleetflowv1alpha1.AnalysisError,
	}
)

// NewMetrics makes them; they are yet to be registered. What can be counted starts at zero: an alert on an increase would not
// see the first of a series that begins with one.
func NewMetrics() *Metrics {
	m := &Metrics{
		measurements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_analysis_measurements_total", Help: "Measurements of analyses, by what they came to and by what was asked.",
		}, []string{"outcome", "provider"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_analysis_runs_total", Help: "Attempts of analyses that have ended, by phase.",
		}, []string{"phase"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fleetflow_analysis_request_duration_seconds", Help: "How long requests to metric sources take, with the wait for their turn.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60},
		}, []string{"source"}),
		putOff: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_analysis_put_off_total", Help: "Requests to metric sources that asked to be left alone for a while (429 or 503 with Retry-After), by source.",
		}, []string{"source"}),
	}
	for _, outcome := range outcomes {
		for _, provider := range analysis.Providers() {
			m.measurements.WithLabelValues(string(outcome), provider)
		}
	}
	for _, phase := range endings {
		m.runs.WithLabelValues(string(phase))
	}
	return m
}

// Collectors returns what to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.measurements, m.runs, m.requests, m.putOff}
}

func (m *Metrics) countMeasurement(outcome fleetflowv1alpha1.AnalysisOutcome, provider string) {
	if m != nil {
		m.measurements.WithLabelValues(string(outcome), provider).Inc()
	}
}

func (m *Metrics) countRun(phase fleetflowv1alpha1.AnalysisPhase) {
	if m != nil {
		m.runs.WithLabelValues(string(phase)).Inc()
	}
}

func (m *Metrics) observeRequest(source string, took time.Duration) {
	if m != nil {
		m.requests.WithLabelValues(source).Observe(took.Seconds())
		m.putOff.WithLabelValues(source) // starts at zero
	}
}

func (m *Metrics) countPutOff(source string) {
	if m != nil {
		m.putOff.WithLabelValues(source).Inc()
	}
}

func metav1Time(t time.Time) metav1.Time { return metav1.NewTime(t) }

// microTime returns an instant as the API has it; nil for none.
func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewMicroTime(t)
	return &at
}
