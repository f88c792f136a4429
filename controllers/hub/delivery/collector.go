package delivery

import (
	"github.com/prometheus/client_golang/prometheus"
)

// labels name a destination.
var labels = []string{"kind", "name"}

var (
	pending = prometheus.NewDesc("fleetflow_audit_pending",
		"How many AuditRecords wait to be delivered to a sink or a channel.", labels, nil)
	oldestPending = prometheus.NewDesc("fleetflow_audit_oldest_pending_seconds",
		"For how long the oldest AuditRecord has waited to be delivered to a sink or a channel; 0 if none does.", labels, nil)
	delivered = prometheus.NewDesc("fleetflow_audit_delivered_total",
		"How many AuditRecords a sink or a channel has taken, since this agent leads.", labels, nil)
	givenUp = prometheus.NewDesc("fleetflow_audit_given_up_total",
		"How many AuditRecords a sink or a channel will never get, since this agent leads.", labels, nil)
)

// Collector has the metrics of an engine.
type Collector struct{ engine *Engine }

// NewCollector makes a Collector.
func NewCollector(engine *Engine) *Collector { return &Collector{engine} }

// Describe names the metrics.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pending, oldestPending, delivered, givenUp} {
		descriptions <- d
	}
}

// Collect reads the metrics.
func (c *Collector) Collect(found chan<- prometheus.Metric) {
	now := c.engine.Clock.Now()
	for key, report := range c.engine.Reports() {
		tell := func(d *prometheus.Desc, kind prometheus.ValueType, value float64) {
			found <- prometheus.MustNewConstMetric(d, kind, value, key.Kind, key.Name)
		}
		age := 0.0
		if !report.OldestPending.IsZero() {
			age = max(now.Sub(report.OldestPending).Seconds(), 0)
		}
		tell(pending, prometheus.GaugeValue, float64(report.Pending))
		tell(oldestPending, prometheus.GaugeValue, age)
		tell(delivered, prometheus.CounterValue, float64(report.Delivered))
		tell(givenUp, prometheus.CounterValue, float64(report.GivenUp))
	}
}
