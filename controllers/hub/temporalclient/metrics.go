package temporalclient

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Metrics are those of the connection to Temporal, of the pokes that go through it, and of Temporal's SDK.
type Metrics struct {
	sdk       *sdkMetrics
	connected prometheus.Collector
	answers   *prometheus.GaugeVec
	pokes     *prometheus.CounterVec
	restarts  *prometheus.CounterVec
	mode      *prometheus.GaugeVec
	// open counts the connections that there are.
	open atomic.Int64
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		sdk: &sdkMetrics{series: map[string]prometheus.Collector{}},
		pokes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_temporal_pokes_total", Help: "Workflows woken for their objects, by whether Temporal took the signal.",
		}, []string{"outcome"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_workflows_restarted_total",
			Help: "Workflows that were ended because their workflow tasks failed again and again, and are started again from their objects.",
		}, []string{"workflow_type"}),
		answers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_temporal_answers",
			Help: "1 if Temporal has answered the last question of this agent with its database, else 0. Only the agent that leads asks; others have no value.",
		}, nil),
		mode: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_temporal_mode", Help: "1 with the mode of Temporal, Bundled or External, as a label.",
		}, []string{"mode"}),
	}
	for _, workflowType := range []string{wf.PlacementWorkflow, wf.UpdateRunWorkflow, wf.StageWorkflow} {
		m.restarts.WithLabelValues(workflowType) // from the beginning, so that the first restart is an increase
	}
	m.connected = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fleetflow_temporal_connected", Help: "1 while this process has a connection to Temporal, else 0.",
	}, func() float64 { return float64(min(m.open.Load(), 1)) })
	return m
}

// Collectors returns all the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.sdk, m.connected, m.answers, m.pokes, m.restarts, m.mode}
}

// SDK returns what the SDK reports to.
func (m *Metrics) SDK() client.MetricsHandler { return &sdkHandler{metrics: m.sdk} }

// countPoke counts a poke by whether Temporal took it.
func (m *Metrics) countPoke(err error) {
	outcome := "taken"
	if err != nil {
		outcome = "failed"
	}
	m.pokes.WithLabelValues(outcome).Inc()
}

// recordAnswer notes whether Temporal has answered the agent that leads.
func (m *Metrics) recordAnswer(err error) {
	value := 1.0
	if err != nil {
		value = 0
	}
	m.answers.WithLabelValues().Set(value)
}

// tellMode notes the mode of Temporal.
func (m *Metrics) tellMode(bundled bool) {
	mode := clusterv1beta1.TemporalExternal
	if bundled {
		mode = clusterv1beta1.TemporalBundled
	}
	m.mode.WithLabelValues(string(mode)).Set(1)
}

// countRestart counts a workflow that was ended so that it is started again.
func (m *Metrics) countRestart(workflowType string) {
	if m != nil {
		m.restarts.WithLabelValues(workflowType).Inc()
	}
}

// sdkMetrics is what the SDK reports to. The SDK's own handler for OpenTelemetry would need
// three modules more for these 100 lines: otel/sdk/metric, otel/exporters/prometheus and
// prometheus/otlptranslator; that for tally, tally and its reporter.
//
// It keeps one collector for each series of the SDK, because one metric may come with different tags. Names are
// those of Temporal's own Prometheus exporters: counters end with _total, timers with _seconds.
type sdkMetrics struct {
	mu     sync.Mutex
	series map[string]prometheus.Collector
}

const sdkHelp = "Metric of Temporal's SDK."

// sdkBuckets are for anything from a call to the wait of a task.
var sdkBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Describe says nothing: which series there are shows when they come.
func (m *sdkMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect collects every series.
func (m *sdkMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.series))
	m.mu.Unlock()
	for _, c := range all {
		c.Collect(metrics)
	}
}

// seriesOf returns the series of a name and tags, a new one if there is none yet.
func seriesOf[T prometheus.Collector](m *sdkMetrics, name string, tags map[string]string, create func(prometheus.Labels) T) (T, bool) {
	var key strings.Builder
	key.WriteString(name)
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		key.WriteString("\x00" + tag + "\x00" + tags[tag])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.series[key.String()]; ok {
		typed, ok := known.(T)
		return typed, ok
	}
	created := create(prometheus.Labels(maps.Clone(tags)))
	m.series[key.String()] = created
	return created, true
}

// sdkHandler is what the SDK reports to, with the tags it has given so far.
type sdkHandler struct {
	metrics *sdkMetrics
	tags    map[string]string
}

// WithTags adds tags.
func (h *sdkHandler) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(h.tags)
	if all == nil {
		all = map[string]string{}
	}
	for tag, value := range tags {
		all[strings.ReplaceAll(tag, "-", "_")] = value
	}
	return &sdkHandler{metrics: h.metrics, tags: all}
}

// Counter returns a counter.
func (h *sdkHandler) Counter(name string) client.MetricsCounter {
	series, ok := seriesOf(h.metrics, name+"_total", h.tags, func(labels prometheus.Labels) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name + "_total", Help: sdkHelp, ConstLabels: labels})
	})
	return counterFunc(func(by int64) {
		if ok && by > 0 {
			series.Add(float64(by))
		}
	})
}

// Gauge returns a gauge.
func (h *sdkHandler) Gauge(name string) client.MetricsGauge {
	series, ok := seriesOf(h.metrics, name, h.tags, func(labels prometheus.Labels) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: sdkHelp, ConstLabels: labels})
	})
	return gaugeFunc(func(value float64) {
		if ok {
			series.Set(value)
		}
	})
}

// Timer returns a timer.
func (h *sdkHandler) Timer(name string) client.MetricsTimer {
	series, ok := seriesOf(h.metrics, name+"_seconds", h.tags, func(labels prometheus.Labels) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name + "_seconds", Help: sdkHelp, ConstLabels: labels, Buckets: sdkBuckets})
	})
	return timerFunc(func(took time.Duration) {
		if ok {
			series.Observe(took.Seconds())
		}
	})
}

type counterFunc func(int64)

// Inc increments.
func (f counterFunc) Inc(by int64) { f(by) }

type gaugeFunc func(float64)

// Update sets.
func (f gaugeFunc) Update(value float64) { f(value) }

type timerFunc func(time.Duration)

// Record observes.
func (f timerFunc) Record(took time.Duration) { f(took) }
