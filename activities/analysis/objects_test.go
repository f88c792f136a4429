package analysis_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestKindsOfTheHubAreReadFromAFlag(t *testing.T) {
	for text, refused := range map[string]string{
		"Deployment.apps":                    "",
		"web/ConfigMap":                      "",
		"Node":                               "",
		"Secret":                             "hold copies of Secrets",
		"web/Secret":                         "hold copies of Secrets",
		"Work.placement.kubernetes-fleet.io": "hold copies of Secrets",
		"ResourceSnapshot.placement.kubernetes-fleet.io": "hold copies of Secrets",
		"deployments.apps": "names no kind",
		"*":                "names no kind",
		"web/":             "names no kind",
		"a/b/Node":         "names no kind",
	} {
		_, err := analysis.ParseHubKinds([]string{text})
		if refused == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, refused, text)
		}
	}
}

// objectOf reads an object in namespace web.
func objectOf(from fleetflowv1alpha1.ObjectsFrom, apiVersion, kind string) fleetflowv1alpha1.AnalysisMetric {
	return fleetflowv1alpha1.AnalysisMetric{
		Name: "m", Success: "object.spec.replicas > 0",
		Objects: &fleetflowv1alpha1.ObjectReading{From: from, APIVersion: apiVersion, Kind: kind, Namespace: "web", Name: "web"},
	}
}

func TestNoMetricReadsAnObjectThatIsNotForMetrics(t *testing.T) {
	kinds, err := analysis.ParseHubKinds([]string{"Deployment.apps", "web/ConfigMap", "other/Service"})
	require.NoError(t, err)
	const works, hub = fleetflowv1alpha1.ObjectsFromWorks, fleetflowv1alpha1.ObjectsFromHub
	for sentence, test := range map[string]struct {
		metric  fleetflowv1alpha1.AnalysisMetric
		kinds   analysis.HubKinds
		refused string
	}{
		"an object on clusters":                              {objectOf(works, "apps/v1", "Deployment"), nil, ""},
		"an object on clusters, of which none are looked at": {objectOf(works, "apps/v1", "Deployment"), kinds, "have the operator of the hub agent set --analysis-works"},
		"a Secret on clusters":                               {objectOf(works, "v1", "Secret"), kinds, "no metric reads a Secret"},
		"a Secret of the hub":                                {objectOf(hub, "v1", "Secret"), kinds, "no metric reads a Secret"},
		"a Secret, whatever is allowed":                      {objectOf(hub, "v1", "Secret"), analysis.Anywhere.HubKinds, "no metric reads a Secret"},
		"what holds Secrets":                                 {objectOf(hub, "placement.kubernetes-fleet.io/v1beta1", "ResourceSnapshot"), analysis.Anywhere.HubKinds, "no metric reads a ResourceSnapshot"},
		"an allowed kind":                                    {objectOf(hub, "apps/v1", "Deployment"), kinds, ""},
		"one that is allowed in the namespace":               {objectOf(hub, "v1", "ConfigMap"), kinds, ""},
		"one that is allowed in another":                     {objectOf(hub, "v1", "Service"), kinds, "objects of kind Service in namespace web are not for metrics"},
		"one that is not allowed":                            {objectOf(hub, "batch/v1", "Job"), kinds, "objects of kind Job.batch in namespace web are not for metrics"},
		"nothing is allowed":                                 {objectOf(hub, "apps/v1", "Deployment"), nil, "have the operator of the hub agent add them to --analysis-hub-kinds"},
	} {
		t.Run(sentence, func(t *testing.T) {
			template := templateOf("ready", test.metric)
			template.Reach = analysis.Reach{Works: sentence != "an object on clusters, of which none are looked at", HubKinds: test.kinds}
			problem := analysis.CheckTemplate(template)
			if test.refused == "" {
				require.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, fleetflowv1alpha1.ReasonObjectRefused, problem.Reason)
			assert.Contains(t, problem.Text, test.refused)
		})
	}
}

func deployment(replicas, ready int64, available string) analysis.Object {
	return analysis.Object{
		Fields:     map[string]any{"spec": map[string]any{"replicas": replicas}, "status": map[string]any{"readyReplicas": ready}},
		Conditions: map[string]string{"Available": available},
	}
}

func TestObjectsOnClustersAreJudged(t *testing.T) {
	metric := objectOf(fleetflowv1alpha1.ObjectsFromWorks, "apps/v1", "Deployment")
	two := intstr.FromInt32(2)
	metric.PerCluster = &fleetflowv1alpha1.PerCluster{MinPassing: &two, Missing: bad}
	metric.Success = `object.status.readyReplicas >= object.spec.replicas && conditions.Available == "True" && cluster != "never"`
	judge := judgeOf(t, metric, nil)
	clusters := []string{"a", "b", "c"}
	good3 := map[string]analysis.Object{"a": deployment(2, 2, "True"), "b": deployment(1, 1, "True"), "c": deployment(1, 0, "True")}
	m := judge.Judge(t.Context(), analysis.Reading{Objects: good3}, clusters)
	assert.Equal(t, good, m.Outcome, m.Message)
	assert.Equal(t, "2 of 3 pass", m.Message)

	delete(good3, "a")
	m = judge.Judge(t.Context(), analysis.Reading{Objects: good3}, clusters)
	assert.Equal(t, bad, m.Outcome)
	assert.Equal(t, "on a, c (1 of 3 pass)", m.Message)
	assert.EqualValues(t, 1, m.Clusters.Missing)

	m = judge.Judge(t.Context(), analysis.Reading{}, clusters)
	assert.Equal(t, bad, m.Outcome, "the object is nowhere, and missing says that this is bad")
	assert.Equal(t, "on a, b, c (0 of 3 pass)", m.Message)

	nowhere := metric
	nowhere.NoData = neither
	m = judgeOf(t, nowhere, nil).Judge(t.Context(), analysis.Reading{}, clusters)
	assert.Equal(t, neither, m.Outcome, "unless noData says what it is if no cluster has it")
	assert.Equal(t, "no data", m.Message)
	assert.EqualValues(t, 3, m.Clusters.Missing)

	good3["a"] = analysis.Object{Fields: map[string]any{"spec": map[string]any{}}, Conditions: map[string]string{}}
	m = judge.Judge(t.Context(), analysis.Reading{Objects: good3}, clusters)
	assert.Equal(t, broken, m.Outcome)
	assert.Contains(t, m.Message, "cluster a: ")
	assert.Contains(t, m.Message, "no such key: status")
}

// TestTheExampleOfTheGuideIsNoError has the expression of deploy/docs/analysis.md judge an object of which nothing is reported yet.
func TestTheExampleOfTheGuideIsNoError(t *testing.T) {
	metric := objectOf(fleetflowv1alpha1.ObjectsFromWorks, "apps/v1", "Deployment")
	metric.PerCluster = &fleetflowv1alpha1.PerCluster{Missing: bad}
	guide, err := os.ReadFile("../../deploy/docs/analysis.md")
	require.NoError(t, err)
	_, example, found := strings.Cut(string(guide), "  success: object.status.")
	require.True(t, found)
	example, _, _ = strings.Cut("object.status."+example, "\n")
	metric.Success = example
	judge := judgeOf(t, metric, nil)
	fresh := analysis.Object{Fields: map[string]any{"spec": map[string]any{"replicas": int64(1)}, "status": map[string]any{}}, Conditions: map[string]string{}}
	m := judge.Judge(t.Context(), analysis.Reading{Objects: map[string]analysis.Object{"a": fresh}}, []string{"a"})
	assert.Equal(t, bad, m.Outcome, m.Message)
	m = judge.Judge(t.Context(), analysis.Reading{Objects: map[string]analysis.Object{"a": deployment(1, 1, "True")}}, []string{"a"})
	assert.Equal(t, good, m.Outcome, m.Message)
}

func TestAnObjectOfTheHubIsJudged(t *testing.T) {
	metric := objectOf(fleetflowv1alpha1.ObjectsFromHub, "apps/v1", "Deployment")
	metric.Success = "object.spec.replicas > 1 && double(object.spec.replicas) < double(args.max)"
	metric.NoData = bad
	judge := judgeOf(t, metric, map[string]string{"max": "3.5"})
	object := deployment(2, 2, "")
	assert.Equal(t, good, judge.Judge(t.Context(), analysis.Reading{Object: &object}, nil).Outcome)
	object = deployment(1, 1, "")
	assert.Equal(t, bad, judge.Judge(t.Context(), analysis.Reading{Object: &object}, nil).Outcome)
	m := judge.Judge(t.Context(), analysis.Reading{}, nil)
	assert.Equal(t, bad, m.Outcome, "noData decides about an object that is not there")
	assert.Contains(t, m.Message, "the object is not there")
}

func TestFewObservationsAreNoData(t *testing.T) {
	query := &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "errors", SamplesQuery: "requests", MinSamples: 100}
	judge := judgeOf(t, fleetflowv1alpha1.AnalysisMetric{Prometheus: query, Success: "result <= 0.01"}, nil)
	reading := values(0.5)
	m := judge.Judge(t.Context(), reading, nil)
	assert.Equal(t, neither, m.Outcome, "nothing was counted at all")
	reading.Observations = values(40, 59).Samples
	m = judge.Judge(t.Context(), reading, nil)
	assert.Equal(t, neither, m.Outcome)
	assert.Equal(t, "no data: 99 observations, at least 100 are wanted", m.Message)
	reading.Observations = values(41, 59).Samples
	assert.Equal(t, bad, judge.Judge(t.Context(), reading, nil).Outcome)

	byCluster := judgeOf(t, fleetflowv1alpha1.AnalysisMetric{Prometheus: query, Success: "result <= 0.01", PerCluster: &fleetflowv1alpha1.PerCluster{}}, nil)
	reading, clusters := perCluster(3, 1)
	for i, name := range clusters {
		reading.Observations = append(reading.Observations, analysis.Sample{Labels: map[string]string{"cluster": name}, Value: float64(100 - i)})
	}
	m = byCluster.Judge(t.Context(), reading, clusters)
	assert.Equal(t, neither, m.Outcome, "the bad cluster had too little traffic to say so")
	assert.EqualValues(t, 2, m.Clusters.Missing)
	assert.EqualValues(t, 1, m.Clusters.Passing)

	for _, none := range []float64{math.NaN(), math.Inf(1)} {
		reading.Observations[0].Value = none
		m = byCluster.Judge(t.Context(), reading, clusters)
		assert.EqualValues(t, 3, m.Clusters.Missing, "%v observations are no number of them", none)
		whole := values(0.5)
		whole.Observations = values(none).Samples
		assert.Equal(t, neither, judge.Judge(t.Context(), whole, nil).Outcome, "%v observations of all", none)
	}
}

func TestTheArgumentsOfAnObjectGiveAName(t *testing.T) {
	metric := objectOf(fleetflowv1alpha1.ObjectsFromWorks, "apps/v1", "Deployment")
	metric.PerCluster = &fleetflowv1alpha1.PerCluster{}
	metric.Objects.Name = "$(args.app)"
	for value, refused := range map[string]bool{"web": false, "a/b": true, "..": true, "": true} {
		template := templateOf("ready", metric)
		template.Object.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "app"}}
		spec, problem := analysis.Resolve(analysis.Subject{Run: "web-17"}, []analysis.Template{template}, map[string]string{"app": value}, false)
		if !refused {
			require.Nil(t, problem)
			assert.Equal(t, value, spec.Metrics[0].Objects.Name)
			continue
		}
		require.NotNil(t, problem, value)
		assert.Contains(t, problem.Text, "is no name of an object")
	}
}
