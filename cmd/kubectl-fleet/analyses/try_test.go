package analyses

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

func TestASourceIsAskedWithItsCredential(t *testing.T) {
	var sent string
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(prometheus.Close)
	source := &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: "central"}, Spec: fleetflowv1alpha1.MetricSourceSpec{
		Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: prometheus.URL, AllowPlainText: true,
		Auth: &fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: &fleetflowv1alpha1.MetricSourceSecret{Name: "central", Key: "token"}},
	}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "central",
		Labels:      map[string]string{fleetflowv1alpha1.MetricSourceLabel: "central"},
		Annotations: map[string]string{fleetflowv1alpha1.MetricSourceURLAnnotation: prometheus.URL}}, Data: map[string][]byte{"token": []byte("s3cr3t-t0ken")}}
	hub := fake.NewClientBuilder().WithScheme(cli.Scheme()).WithObjects(source, secret).Build()
	asks := asker{
		sources: metricsource.NewSources(hub, "fleet-system", outbound.Guard{AllowLoopback: true}),
		by:      map[string]*fleetflowv1alpha1.MetricSource{"central": source},
	}
	_, err := asks.ask(t.Context(), metricsource.Question{Metric: fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: fleetflowv1alpha1.AnalysisMetric{
		Name: "ratio", Success: "result <= 0.01",
		Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "errors"},
	}}})
	require.NoError(t, err)
	assert.Equal(t, "Bearer s3cr3t-t0ken", sent)
}
