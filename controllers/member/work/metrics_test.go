package work

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/cause"
)

func TestPassesAreCountedByTheReasonsTheyLeadTo(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason, ObservedGeneration: 2}
	}
	applied := condition("Applied", metav1.ConditionTrue, "Applied")
	m := NewMetrics()
	status := &placementv1beta1.WorkStatus{
		Conditions: []metav1.Condition{
			condition("Applied", metav1.ConditionFalse, "SomeManifestsAreNotApplied"), condition("Available", metav1.ConditionUnknown, "ItIsNotSaid"),
		},
		ManifestConditions: []placementv1beta1.ManifestCondition{
			{Conditions: []metav1.Condition{applied, condition("Available", metav1.ConditionTrue, placementv1beta1.ReasonNotTrackable)}},
			{Conditions: []metav1.Condition{condition("Applied", metav1.ConditionFalse, "FoundDrifts")}, DiffDetails: &placementv1beta1.DiffDetails{}},
			{Conditions: []metav1.Condition{condition("DiffReported", metav1.ConditionTrue, "NoDiffFound")}},
			{Conditions: []metav1.Condition{applied, condition("Available", metav1.ConditionTrue, "Available")}, DriftDetails: &placementv1beta1.DriftDetails{}},
		},
	}
	m.countPass(2, status)
	m.countPass(3, status) // what it says is of another generation
	m.observeFirstApply(time.Second)
	registry := prometheus.NewPedanticRegistry()
	for _, c := range m.Collectors() {
		registry.MustRegister(c)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP fleet_manifest_processing_requests_total Manifests in those passes, by the reasons of their conditions.
# TYPE fleet_manifest_processing_requests_total counter
fleet_manifest_processing_requests_total{apply_status="Applied",availability_status="Available",diff_detection_status="NotFound",diff_reporting_status="Skipped",drift_detection_status="Found"} 1
fleet_manifest_processing_requests_total{apply_status="Applied",availability_status="NotTrackable",diff_detection_status="NotFound",diff_reporting_status="Skipped",drift_detection_status="NotFound"} 1
fleet_manifest_processing_requests_total{apply_status="FoundDrifts",availability_status="Skipped",diff_detection_status="Found",diff_reporting_status="Skipped",drift_detection_status="NotFound"} 1
fleet_manifest_processing_requests_total{apply_status="Skipped",availability_status="Skipped",diff_detection_status="NotFound",diff_reporting_status="NoDiffFound",drift_detection_status="NotFound"} 1
# HELP fleet_work_processing_requests_total Passes over Works, by the reasons of the conditions that they led to.
# TYPE fleet_work_processing_requests_total counter
fleet_work_processing_requests_total{apply_status="SomeManifestsAreNotApplied",availability_status="Unknown",diff_reporting_status="Skipped"} 1
`), "fleet_manifest_processing_requests_total", "fleet_work_processing_requests_total"))
	assert.Equal(t, 1, testutil.CollectAndCount(m.applyTime))
}

// A Work that is gone, or whose objects are well again, takes along what was counted of it.
func TestObjectsThatFailAreCountedByReason(t *testing.T) {
	m := NewMetrics()
	count := func(reason string) float64 { return testutil.ToFloat64(m.failing.WithLabelValues(reason)) }
	failsFor := func(reason string) *step {
		s := unavailable(false, "")
		s.outcome.failing.told = cause.Cause{Reason: reason}
		return s
	}
	m.replaceFailing("web", countReasons([]*step{failsFor("CrashLoop"), failsFor("CrashLoop"), failsFor("ImageNotPulled"), failsFor("")}))
	m.replaceFailing("shop", countReasons([]*step{failsFor("CrashLoop")}))
	assert.InDelta(t, 3, count("CrashLoop"), 0)
	assert.InDelta(t, 1, count("ImageNotPulled"), 0)
	m.replaceFailing("web", countReasons([]*step{failsFor("CrashLoop"), failsFor("")}))
	assert.InDelta(t, 2, count("CrashLoop"), 0)
	assert.Zero(t, count("ImageNotPulled"))

	r := &Reconciler{Options: Options{Metrics: m}}
	forgetCauses("web", r.Options)
	forgetCauses("shop", r.Options)
	forgetCauses("shop", r.Options)
	assert.Zero(t, count("CrashLoop"))
	assert.Empty(t, m.failingOf)
}

func TestWithoutMetricsNothingIsCounted(t *testing.T) {
	var none *Metrics
	assert.NotPanics(t, func() {
		none.observeFirstApply(time.Second)
		none.countPass(1, &placementv1beta1.WorkStatus{})
		none.replaceFailing("web", map[string]int{"CrashLoop": 1})
	})
}
