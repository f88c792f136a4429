package dashboards

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// theirMetric is a metric that KubeFleet's agents serve.
type theirMetric struct {
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Labels  []string  `json:"labels"`
	Buckets []float64 `json:"buckets"`
	// Instead is the metric that says the same here, where no agent serves the one of KubeFleet.
	Instead string `json:"instead"`
}

// variableLabels are the labels in a description.
var variableLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

// shapeOf returns the metric that a description of a collector stands for.
func shapeOf(t *testing.T, of prometheus.Collector, d *prometheus.Desc) theirMetric {
	t.Helper()
	name := family.FindStringSubmatch(d.String())
	labels := variableLabels.FindStringSubmatch(d.String())
	require.NotNil(t, name, d.String())
	require.NotNil(t, labels, d.String())
	shape := theirMetric{Name: name[1], Type: "gauge", Labels: []string{}}
	if labels[1] != "" {
		shape.Labels = strings.Split(labels[1], ",")
	}
	switch vector := of.(type) {
	case *prometheus.CounterVec:
		shape.Type = "counter"
	case *prometheus.HistogramVec:
		shape.Type = "histogram"
		one, ok := vector.WithLabelValues(make([]string, len(shape.Labels))...).(prometheus.Metric)
		require.True(t, ok, shape.Name)
		var written dto.Metric
		require.NoError(t, one.Write(&written))
		for _, b := range written.GetHistogram().GetBucket() {
			shape.Buckets = append(shape.Buckets, b.GetUpperBound())
		}
	}
	return shape
}

func TestMetricsOfKubeFleetAreServedAsKubeFleetServesThem(t *testing.T) {
	content, err := os.ReadFile("testdata/kubefleet-metrics.yaml")
	require.NoError(t, err)
	var theirs []theirMetric
	require.NoError(t, yaml.UnmarshalStrict(content, &theirs))
	require.NotEmpty(t, theirs)

	served := map[string]theirMetric{}
	for _, c := range collectors() {
		for _, d := range descriptionsOf(c) {
			shape := shapeOf(t, c, d)
			served[shape.Name] = shape
		}
	}
	known := map[string]bool{}
	page, err := os.ReadFile("../../deploy/dashboards/README.md")
	require.NoError(t, err)
	for _, metric := range theirs {
		known[metric.Name] = true
		assert.Contains(t, string(page), "`"+metric.Name+"`", "the page on metrics")
		if metric.Instead != "" {
			assert.NotContains(t, served, metric.Name, "with other labels it is another metric")
			assert.Contains(t, string(page), "`"+metric.Instead+"`", "the page on metrics")
			continue
		}
		assert.Equal(t, metric, served[metric.Name])
	}
	for name := range served {
		assert.True(t, known[name] || strings.HasPrefix(name, "fleetflow_"), "%s is not KubeFleet's, and does not say that it is ours", name)
	}
}

func TestTheDashboardAsksForEachMetricOfKubeFleetOnce(t *testing.T) {
	queries, err := Queries(charts)
	require.NoError(t, err)
	asked := map[string]bool{}
	for _, q := range queries {
		if strings.HasPrefix(q.Where, "panel ") {
			for _, m := range Metrics(q.Expression) {
				asked[m] = true
			}
		}
	}
	for name := range own() {
		if !strings.HasPrefix(name, "fleetflow_") {
			assert.True(t, asked[name], "no panel asks for %s", name)
		}
	}
}
