package work

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Metrics are those of applying Works, by KubeFleet's names. The time has no label for the Work: a
// member may have thousands.
type Metrics struct {
	applyTime *prometheus.HistogramVec
	works     *prometheus.CounterVec
	manifests *prometheus.CounterVec
	pending   *prometheus.GaugeVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		applyTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "work_apply_time_seconds",
			Help:    "How long it took to apply a Work for the first time at a generation, and to report that.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, nil),
		works: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleet_work_processing_requests_total",
			Help: "Reports on Works that said something new, by what they said.",
		}, []string{"apply_status", "availability_status", "diff_reporting_status"}),
		manifests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleet_manifest_processing_requests_total",
			Help: "Manifests in those reports, by what they said.",
		}, []string{"apply_status", "availability_status", "diff_reporting_status", "drift_detection_status", "diff_detection_status"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_member_removals_pending",
			Help: "Objects that are not wanted any more and still there, as the Works say in RemovalPending, by reason.",
		}, []string{"reason"}),
	}
}

// Collectors are all the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.applyTime, m.works, m.manifests, m.pending}
}

// observeFirstApply observes the duration of the first pass at a generation.
func (m *Metrics) observeFirstApply(took time.Duration) {
	if m != nil {
		m.applyTime.WithLabelValues().Observe(took.Seconds())
	}
}

// countReport counts a status that was written.
func (m *Metrics) countReport(status *placementv1beta1.WorkStatus) {
	if m == nil {
		return
	}
	apply, available, diffed := conditionLabels(status.Conditions)
	m.works.WithLabelValues(apply, available, diffed).Inc()
	for i := range status.ManifestConditions {
		c := &status.ManifestConditions[i]
		apply, available, diffed := conditionLabels(c.Conditions)
		m.manifests.WithLabelValues(apply, available, diffed, foundLabel(c.DriftDetails != nil), foundLabel(c.DiffDetails != nil)).Inc()
	}
}

// replacePending counts what a Work says now of objects that are still there, instead of what it said before.
func (m *Metrics) replacePending(before, after []remnant) {
	if m == nil {
		return
	}
	for _, l := range before {
		m.pending.WithLabelValues(l.reason).Dec()
	}
	for _, l := range after {
		m.pending.WithLabelValues(l.reason).Inc()
	}
}

// conditionLabels are the label values that conditions stand for.
func conditionLabels(conditions []metav1.Condition) (apply, available, diffed string) {
	apply = conditionLabel(conditions, placementv1beta1.ConditionTypeApplied, "applied")
	available = conditionLabel(conditions, placementv1beta1.ConditionTypeAvailable, "available")
	diffed = conditionLabel(conditions, placementv1beta1.ConditionTypeDiffReported, "reported")
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeAvailable); c != nil && c.Status == metav1.ConditionTrue &&
		(c.Reason == placementv1beta1.ReasonNotTrackable || c.Reason == placementv1beta1.ReasonWorkNotTrackable) {
		available = "untrackable"
	}
	return apply, available, diffed
}

func conditionLabel(conditions []metav1.Condition, name, whenTrue string) string {
	c := meta.FindStatusCondition(conditions, name)
	switch {
	case c == nil:
		return "skipped"
	case c.Status == metav1.ConditionTrue:
		return whenTrue
	}
	return "failed"
}

func foundLabel(found bool) string {
	if found {
		return "found"
	}
	return "not_found"
}
