package work

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Metrics are those of applying Works. What is counted has KubeFleet's names and values. The time has no label for the Work: a
// member may have thousands.
type Metrics struct {
	applyTime *prometheus.HistogramVec
	works     *prometheus.CounterVec
	manifests *prometheus.CounterVec
	pending   *prometheus.GaugeVec
	contested *prometheus.CounterVec
	failing   *prometheus.GaugeVec

	mu sync.Mutex
	// failingOf has how many objects of each Work fail for each reason.
	failingOf map[string]map[string]int
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		applyTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetflow_work_apply_duration_seconds",
			Help:    "How long it took to apply a Work for the first time at a generation, and to report that.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, nil),
		works: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleet_work_processing_requests_total",
			Help: "Passes over Works, by the reasons of the conditions that they led to.",
		}, []string{"apply_status", "availability_status", "diff_reporting_status"}),
		manifests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleet_manifest_processing_requests_total",
			Help: "Manifests in those passes, by the reasons of their conditions.",
		}, []string{"apply_status", "availability_status", "diff_reporting_status", "drift_detection_status", "diff_detection_status"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_member_removals_pending",
			Help: "Objects that are not wanted any more and still there, as the Works say in RemovalPending, by reason.",
		}, []string{"reason"}),
		contested: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_member_contested_repairs_total",
			Help: "Repairs of objects that another client keeps overwriting, from the eighth one on.",
		}, []string{"kind", "namespace", "name"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fleetflow_member_failing_objects",
			Help: "Objects that are not available and whose manifests have the condition Failing, by its reason.",
		}, []string{"reason"}),
		failingOf: map[string]map[string]int{},
	}
}

// Collectors returns all the metrics.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.applyTime, m.works, m.manifests, m.pending, m.contested, m.failing}
}

// countContestedRepair counts a repair of an object that another client keeps overwriting.
func (m *Metrics) countContestedRepair(id placementv1beta1.WorkResourceIdentifier) {
	if m != nil {
		m.contested.WithLabelValues(id.Kind, id.Namespace, id.Name).Inc()
	}
}

// observeFirstApply observes the duration of the first pass at a generation.
func (m *Metrics) observeFirstApply(took time.Duration) {
	if m != nil {
		m.applyTime.WithLabelValues().Observe(took.Seconds())
	}
}

// countPass counts a pass over a Work of a generation, by the status that it led to. A status that is of another generation is not
// counted.
func (m *Metrics) countPass(generation int64, status *placementv1beta1.WorkStatus) {
	if m == nil || slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
		return slices.Contains(countedConditions, c.Type) && c.ObservedGeneration != generation
	}) {
		return
	}
	m.works.WithLabelValues(reasonLabels(status.Conditions)...).Inc()
	for i := range status.ManifestConditions {
		c := &status.ManifestConditions[i]
		m.manifests.WithLabelValues(append(reasonLabels(c.Conditions), foundLabel(c.DriftDetails != nil),
			foundLabel(c.DiffDetails != nil))...).Inc()
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

// replaceFailing counts for which reasons objects of a Work fail now, instead of what was counted before. The reasons are those of the
// condition Failing, a list that is fixed.
func (m *Metrics) replaceFailing(work string, reasons map[string]int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for reason, count := range m.failingOf[work] {
		m.failing.WithLabelValues(reason).Sub(float64(count))
	}
	for reason, count := range reasons {
		m.failing.WithLabelValues(reason).Add(float64(count))
	}
	delete(m.failingOf, work)
	if len(reasons) > 0 {
		m.failingOf[work] = reasons
	}
}

// Values of labels where there is no reason to tell.
const (
	labelSkipped = "Skipped" // the condition does not apply
	labelUnknown = "Unknown"
)

// countedConditions are the conditions whose reasons are labels, in the order of the labels.
var countedConditions = []string{
	placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported,
}

// reasonLabels returns the values of labels that conditions stand for.
func reasonLabels(conditions []metav1.Condition) []string {
	labels := make([]string, len(countedConditions), len(countedConditions)+2)
	for i, name := range countedConditions {
		switch c := meta.FindStatusCondition(conditions, name); {
		case c == nil:
			labels[i] = labelSkipped
		case c.Status == metav1.ConditionUnknown || c.Reason == "":
			labels[i] = labelUnknown
		default:
			labels[i] = c.Reason
		}
	}
	return labels
}

func foundLabel(found bool) string {
	if found {
		return "Found"
	}
	return "NotFound"
}
