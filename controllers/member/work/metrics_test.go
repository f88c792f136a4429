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
)

func TestReportsAreCountedByWhatTheySay(t *testing.T) {
	condition := func(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason}
	}
	applied := condition("Applied", metav1.ConditionTrue, "")
	m := NewMetrics()
	m.countReport(&placementv1beta1.WorkStatus{
		Conditions: []metav1.Condition{condition("Applied", metav1.ConditionFalse, ""), condition("Available", metav1.ConditionFalse, "")},
		ManifestConditions: []placementv1beta1.ManifestCondition{
			{Conditions: []metav1.Condition{applied, condition("Available", metav1.ConditionTrue, placementv1beta1.ReasonNotTrackable)}},
			{Conditions: []metav1.Condition{condition("Applied", metav1.ConditionFalse, "")}, DiffDetails: &placementv1beta1.DiffDetails{}},
			{Conditions: []metav1.Condition{condition("DiffReported", metav1.ConditionTrue, "")}},
			{Conditions: []metav1.Condition{applied, condition("Available", metav1.ConditionTrue, "")}, DriftDetails: &placementv1beta1.DriftDetails{}},
		},
	})
	m.observeFirstApply(time.Second)
	registry := prometheus.NewPedanticRegistry()
	for _, c := range m.Collectors() {
		registry.MustRegister(c)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP fleet_manifest_processing_requests_total Manifests in those reports, by what they said.
# TYPE fleet_manifest_processing_requests_total counter
fleet_manifest_processing_requests_total{apply_status="applied",availability_status="available",diff_detection_status="not_found",diff_reporting_status="skipped",drift_detection_status="found"} 1
fleet_manifest_processing_requests_total{apply_status="applied",availability_status="untrackable",diff_detection_status="not_found",diff_reporting_status="skipped",drift_detection_status="not_found"} 1
fleet_manifest_processing_requests_total{apply_status="failed",availability_status="skipped",diff_detection_status="found",diff_reporting_status="skipped",drift_detection_status="not_found"} 1
fleet_manifest_processing_requests_total{apply_status="skipped",availability_status="skipped",diff_detection_status="not_found",diff_reporting_status="reported",drift_detection_status="not_found"} 1
# HELP fleet_work_processing_requests_total Reports on Works that said something new, by what they said.
# TYPE fleet_work_processing_requests_total counter
fleet_work_processing_requests_total{apply_status="failed",availability_status="failed",diff_reporting_status="skipped"} 1
`), "fleet_manifest_processing_requests_total", "fleet_work_processing_requests_total"))
	assert.Equal(t, 1, testutil.CollectAndCount(m.applyTime))
}

func TestWithoutMetricsNothingIsCounted(t *testing.T) {
	var none *Metrics
	assert.NotPanics(t, func() {
		none.observeFirstApply(time.Second)
		none.countReport(&placementv1beta1.WorkStatus{})
	})
}
