package worker

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Metrics are those of the workers themselves; Temporal's SDK has metrics of workflows and
// activities. The metrics of scheduling have KubeFleet's names.
type Metrics struct {
	running prometheus.Gauge
	// namesSenders has no value while it is not known.
	namesSenders *prometheus.GaugeVec
	scheduling   prometheus.Gauge
	cycles       *prometheus.HistogramVec
	panics       *prometheus.CounterVec
	failingAgain *prometheus.CounterVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fleetflow_temporal_workers_running", Help: "1 while the Temporal workers of this process run, else 0.",
		}),
		namesSenders: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_temporal_names_senders",
			Help: "1 if Temporal names the senders of approvals, which --temporal-approvals=verified needs, else 0; without a value where that is not known.",
		}, nil),
		scheduling: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduling_active_workers", Help: "Placements that are being scheduled now.",
		}),
		cycles: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "scheduling_cycle_duration_milliseconds", Help: "How long it took to schedule a placement once.",
			Buckets: []float64{10, 50, 100, 500, 1000, 5000, 10000, 50000},
		}, []string{"is_failed", "needs_requeue"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_activity_panics_total", Help: "Attempts of activities that panicked; the log has the stack.",
		}, []string{"activity_type"}),
		failingAgain: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_activity_repeated_failures_total",
			Help: "Attempts of activities that failed, from the tenth in a row on; an event on the object says why.",
		}, []string{"activity_type"}),
	}
	for _, name := range activityNames() {
		m.panics.WithLabelValues(name) // from the beginning, so that the first one is an increase
		m.failingAgain.WithLabelValues(name)
	}
	return m
}

// countPanic counts an attempt that panicked.
func (m *Metrics) countPanic(name string) {
	if m != nil {
		m.panics.WithLabelValues(name).Inc()
	}
}

// Collectors returns all the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.running, m.namesSenders, m.scheduling, m.cycles, m.panics, m.failingAgain}
}

// countFailingAgain counts an attempt that failed after many others.
func (m *Metrics) countFailingAgain(name string) {
	if m != nil {
		m.failingAgain.WithLabelValues(name).Inc()
	}
}

// meter measures the activities that have metrics of their own.
type meter struct {
	interceptor.WorkerInterceptorBase
	metrics *Metrics
}

// InterceptActivity wraps every activity of the worker.
func (m *meter) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &meteredActivity{metrics: m.metrics}
	a.Next = next
	return a
}

type meteredActivity struct {
	interceptor.ActivityInboundInterceptorBase
	metrics *Metrics
}

// ExecuteActivity runs the activity, and measures it if it schedules.
func (a *meteredActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if a.metrics == nil || activity.GetInfo(ctx).ActivityType.Name != wf.ScheduleClusters {
		return a.Next.ExecuteActivity(ctx, in)
	}
	a.metrics.scheduling.Inc()
	defer a.metrics.scheduling.Dec()
	began := time.Now()
	result, err := a.Next.ExecuteActivity(ctx, in)
	failed := "false"
	if err != nil {
		failed = "true" // Temporal retries it
	}
	a.metrics.cycles.WithLabelValues(failed, failed).Observe(float64(time.Since(began)) / float64(time.Millisecond))
	return result, err
}
