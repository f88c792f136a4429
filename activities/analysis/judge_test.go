package analysis_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func judgeOf(t *testing.T, metric fleetflowv1alpha1.AnalysisMetric, args map[string]string) *analysis.Judge {
	t.Helper()
	judge, problem := analysis.NewJudge(fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric, Args: args})
	require.Empty(t, problem)
	return judge
}

func values(all ...float64) analysis.Reading {
	var reading analysis.Reading
	for _, v := range all {
		reading.Samples = append(reading.Samples, analysis.Sample{Value: v})
	}
	return reading
}

func TestAnAnswerIsJudged(t *testing.T) {
	type metric = fleetflowv1alpha1.AnalysisMetric
	args := map[string]string{"max": "0.01"}
	for sentence, test := range map[string]struct {
		metric  metric
		reading analysis.Reading
		want    fleetflowv1alpha1.AnalysisOutcome
		message string
	}{
		"within the bound":                      {metric{Success: "result <= double(args.max)"}, values(0.002), good, ""},
		"beyond it, without failure":            {metric{Success: "result <= double(args.max)"}, values(0.02), bad, ""},
		"neither good nor bad":                  {metric{Success: "result <= 0.01", Failure: "result > 0.05"}, values(0.02), neither, ""},
		"both good and bad":                     {metric{Success: "result <= 0.1", Failure: "result > 0.05"}, values(0.07), bad, ""},
		"failure alone":                         {metric{Failure: "result > 0.05"}, values(0.02), good, ""},
		"no sample":                             {metric{Success: "result <= 0.01"}, values(), neither, "no data"},
		"no number":                             {metric{Success: "result <= 0.01"}, values(math.NaN()), neither, "no data"},
		"an infinite number":                    {metric{Success: "result <= 0.01"}, values(math.Inf(1)), neither, "no data"},
		"no data that is success":               {metric{Success: "result <= 0.01", NoData: good}, values(), good, "no data"},
		"no data that is failure":               {metric{Success: "result <= 0.01", NoData: bad}, values(), bad, "no data"},
		"many samples have no result":           {metric{Success: "result <= 0.01"}, values(1, 2), broken, "no such attribute"},
		"many samples":                          {metric{Success: "samples.all(s, s < 3.0)"}, values(1, 2), good, "2 samples"},
		"an expression that fails":              {metric{Success: "result <= double(args.min)"}, values(1), broken, "no such key: min"},
		"a source that does not answer":         {metric{Success: "result <= 0.01"}, analysis.Reading{Problem: "the source answers 500"}, broken, "the source answers 500"},
		"a webhook that decides":                {metric{Webhook: &fleetflowv1alpha1.WebhookCall{}}, analysis.Reading{Decided: bad, Message: "smoke"}, bad, "smoke"},
		"a webhook that answers":                {metric{Webhook: &fleetflowv1alpha1.WebhookCall{}}, analysis.Reading{}, good, ""},
		"a webhook whose answer is judged":      {metric{Webhook: &fleetflowv1alpha1.WebhookCall{}, Success: "response.errors < 3.0"}, analysis.Reading{Response: map[string]any{"errors": 5.0}}, bad, ""},
		"an answer without what is asked for":   {metric{Webhook: &fleetflowv1alpha1.WebhookCall{}, Success: "response.errors < 3.0"}, analysis.Reading{Response: map[string]any{}}, broken, "no such key: errors"},
		"an expression that would take forever": {metric{Success: "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))"}, values(1), broken, "gives an error"},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := judgeOf(t, test.metric, args).Judge(t.Context(), test.reading, nil)
			assert.Equal(t, test.want, m.Outcome, m.Message)
			assert.Contains(t, m.Message, test.message)
		})
	}
}

// perCluster is an answer in which the first clusters are good and the last ones, of as many as bad says, are not.
func perCluster(total, bad int) (reading analysis.Reading, clusters []string) {
	for i := range total {
		name := fmt.Sprintf("member-%04d", i)
		value := 0.001
		if i >= total-bad {
			value = 0.034
		}
		clusters = append(clusters, name)
		reading.Samples = append(reading.Samples, analysis.Sample{Labels: map[string]string{"cluster": name}, Value: value})
	}
	return reading, clusters
}

func TestClustersAreJudgedOneByOne(t *testing.T) {
	percent := intstr.FromString("95%")
	metric := fleetflowv1alpha1.AnalysisMetric{Success: "result <= 0.01", PerCluster: &fleetflowv1alpha1.PerCluster{MinPassing: &percent}}
	judge := judgeOf(t, metric, nil)

	reading, clusters := perCluster(50, 2)
	m := judge.Judge(t.Context(), reading, clusters)
	assert.Equal(t, good, m.Outcome, "A9.9: 48 of 50 are 95%% rounded up")
	assert.Equal(t, "48 of 50 pass", m.Message)

	reading, clusters = perCluster(50, 3)
	m = judge.Judge(t.Context(), reading, clusters)
	assert.Equal(t, bad, m.Outcome, "A9.9: 47 are not")
	assert.Equal(t, "on member-0047 0.034, member-0048 0.034, member-0049 0.034 (47 of 50 pass)", m.Message)

	reading.Samples = reading.Samples[:47]
	m = judge.Judge(t.Context(), reading, clusters)
	assert.Equal(t, neither, m.Outcome, "those that are missing could be good")
	assert.EqualValues(t, 3, m.Clusters.Missing)
	assert.EqualValues(t, 3, m.Clusters.Unknown)

	m = judge.Judge(t.Context(), analysis.Reading{}, clusters)
	assert.Equal(t, neither, m.Outcome)
	assert.Equal(t, "no data", m.Message)

	reading, clusters = perCluster(3, 0)
	reading.Samples = append(reading.Samples, reading.Samples[0])
	assert.Equal(t, broken, judge.Judge(t.Context(), reading, clusters).Outcome, "two samples of one cluster")

	missing := judgeOf(t, fleetflowv1alpha1.AnalysisMetric{Success: "result <= 0.01", PerCluster: &fleetflowv1alpha1.PerCluster{Missing: bad}}, nil)
	reading, clusters = perCluster(3, 0)
	reading.Samples = reading.Samples[:2]
	assert.Equal(t, bad, missing.Judge(t.Context(), reading, clusters).Outcome, "one that has no sample is bad here")
}

func TestAThousandClustersAreJudgedQuickly(t *testing.T) {
	judge := judgeOf(t, fleetflowv1alpha1.AnalysisMetric{Success: "result <= 0.01", PerCluster: &fleetflowv1alpha1.PerCluster{}}, nil)
	reading, clusters := perCluster(1000, 100)
	began := time.Now()
	m := judge.Judge(t.Context(), reading, clusters)
	t.Logf("A9.8: 1,000 clusters took %s", time.Since(began))
	assert.Equal(t, bad, m.Outcome)
	assert.Len(t, m.Clusters.Worst, 20)
}

func TestATemplateIsChecked(t *testing.T) {
	for sentence, test := range map[string]struct {
		metric fleetflowv1alpha1.AnalysisMetric
		reason string
		text   string
	}{
		"as it should be":               {metric: fleetflowv1alpha1.AnalysisMetric{Success: "result <= double(args.max)", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `up{app="$(args.app)",cluster=~"$(clusters)"}`}}},
		"A9.10: no CEL":                 {fleetflowv1alpha1.AnalysisMetric{Success: "result <", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}}}, "InvalidExpression", `metric m: the expression "result <" is not valid CEL`},
		"no bool":                       {fleetflowv1alpha1.AnalysisMetric{Success: "result + 1.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}}}, "InvalidExpression", "gives double, not bool"},
		"a Secret":                      {fleetflowv1alpha1.AnalysisMetric{Success: `object.kind == "Secret"`, Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}}}, "InvalidExpression", "undeclared reference to 'object'"},
		"an argument that there is not": {fleetflowv1alpha1.AnalysisMetric{Success: "result < double(args.min)", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}}}, "UnknownArgument", "names args.min"},
		"a variable that there is not":  {fleetflowv1alpha1.AnalysisMetric{Success: "result < 1.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "up{a=\"$(namespace)\"}"}}, "UnknownArgument", "there is no variable $(namespace)"},
		"clusters in a path":            {fleetflowv1alpha1.AnalysisMetric{Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "smoke"}, Path: "/$(clusters)"}}, "UnknownArgument", "there is no variable $(clusters)"},
		"a source that there is not":    {fleetflowv1alpha1.AnalysisMetric{Success: "result < 1.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "other"}}}, "UnknownSource", "there is no MetricSource other"},
		"a source of another type":      {fleetflowv1alpha1.AnalysisMetric{Success: "result < 1.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "smoke"}}}, "UnknownSource", "is of type Webhook, not Prometheus"},
		"a source for others":           {fleetflowv1alpha1.AnalysisMetric{Success: "result < 1.0", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "theirs"}}}, "UnknownSource", "does not allow the template: see its allowedTemplates"},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.metric.Name = "m"
			problem := analysis.CheckTemplate(templateOf("errors", test.metric))
			if test.reason == "" {
				require.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, test.reason, problem.Reason)
			assert.Contains(t, problem.Text, test.text)
		})
	}
}

func templateOf(name string, metrics ...fleetflowv1alpha1.AnalysisMetric) analysis.Template {
	object := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	object.Spec.Metrics = metrics
	object.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "app"}, {Name: "max", Default: new("0.01")}}
	return analysis.Template{Object: object, Sources: map[string]*fleetflowv1alpha1.MetricSource{
		"central": {Spec: fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus}},
		"smoke":   {Spec: fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourceWebhook}},
		"theirs": {Spec: fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus,
			AllowedTemplates: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}}},
	}}
}

func TestTemplatesAndArgumentsArePutTogether(t *testing.T) {
	query := &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `x{app="$(args.app)",run="$(run)",s="$(snapshot)",cluster=~"$(clusters)"}`}
	errors := fleetflowv1alpha1.AnalysisMetric{Name: "errors", Prometheus: query, Success: "result <= double(args.max)"}
	hook := fleetflowv1alpha1.AnalysisMetric{Name: "smoke", Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "smoke"}, Path: "/$(args.app)", Body: map[string]string{"stage": "$(stage)"}}}
	of := analysis.Subject{Run: "web-17", Placement: "web", Stage: "canary", Position: "after", Snapshot: "4", Clusters: []string{"a.b", "c"}}

	spec, problem := analysis.Resolve(of, []analysis.Template{templateOf("errors", errors, hook)}, map[string]string{"app": "shop"}, false)
	require.Nil(t, problem)
	assert.Equal(t, `x{app="shop",run="web-17",s="4",cluster=~"$(clusters)"}`, spec.Metrics[0].Prometheus.Query)
	assert.Equal(t, `x{app="shop",run="web-17",s="4",cluster=~"a\\.b|c"}`, analysis.Query(spec.Metrics[0].Prometheus.Query, of.Clusters, nil))
	assert.Equal(t, `x{cluster=~"a"}/x{cluster=~"b|c"}`, analysis.Query(`x{cluster=~"$(clusters)"}/x{cluster=~"$(control)"}`, []string{"a"}, []string{"b", "c"}))
	assert.Equal(t, map[string]string{"stage": "canary"}, spec.Metrics[1].Webhook.Body)
	assert.Equal(t, map[string]string{"app": "shop", "max": "0.01"}, spec.Metrics[0].Args)
	assert.Equal(t, []fleetflowv1alpha1.AnalysisTemplateUsed{{Name: "errors", Generation: 3}}, spec.Templates)
	assert.Equal(t, `result <= double("0.01")`, analysis.FilledBound(spec.Metrics[0]))

	for sentence, test := range map[string]struct {
		templates []analysis.Template
		given     map[string]string
		want      string
	}{
		"an argument is missing":       {[]analysis.Template{templateOf("errors", errors)}, nil, "StageAnalysis errors needs an argument app"},
		"an argument that none takes":  {[]analysis.Template{templateOf("errors", errors)}, map[string]string{"app": "a", "ap": "b"}, "no template of the analysis takes an argument ap"},
		"a variable in an argument":    {[]analysis.Template{templateOf("errors", errors)}, map[string]string{"app": "$(control)"}, `the value "$(control)" of argument app is none`},
		"an argument that ends a text": {[]analysis.Template{templateOf("errors", errors)}, map[string]string{"app": `a"} or vector(0)`}, "of argument app is none"},
		"a long argument":              {[]analysis.Template{templateOf("errors", errors)}, map[string]string{"app": strings.Repeat("a", 257)}, "up to 256 letters"},
		"two metrics of one name":      {[]analysis.Template{templateOf("errors", errors), templateOf("more", errors)}, map[string]string{"app": "a"}, "StageAnalyses errors and more both have a metric errors"},
		"a way out of the path":        {[]analysis.Template{templateOf("errors", hook)}, map[string]string{"app": "../admin"}, "has .. in it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problem := analysis.Resolve(of, test.templates, test.given, false)
			require.NotNil(t, problem)
			assert.Contains(t, problem.Text, test.want)
		})
	}
	of.Clusters = make([]string, 10000)
	for i := range of.Clusters {
		of.Clusters[i] = fmt.Sprintf("member-%d", i)
	}
	_, problem = analysis.Resolve(of, []analysis.Template{templateOf("errors", errors)}, map[string]string{"app": "a"}, false)
	require.NotNil(t, problem)
	assert.Equal(t, "QueryTooLong", problem.Reason)
}

func TestASentenceShowsValuesAgainstBounds(t *testing.T) {
	metric := fleetflowv1alpha1.AnalysisRunMetric{
		AnalysisMetric: fleetflowv1alpha1.AnalysisMetric{Name: "error-ratio", Success: "result <= double(args.max)", FailureLimit: 2}, Args: map[string]string{"max": "0.01"},
	}
	var counted fleetflowv1alpha1.AnalysisMetricStatus
	for range 3 {
		analysis.Count(&counted, bad, begin)
	}
	analysis.Note(&counted, analysis.Measurement{Outcome: bad, Value: "0.034"}, begin, "q", 1)
	counted.Phase = fleetflowv1alpha1.AnalysisFailed
	assert.Equal(t, `error-ratio 0.034 (want result <= double("0.01")): 0 of 3 good, 3 bad (at most 2)`,
		analysis.Explain(counted.Phase, 0, []fleetflowv1alpha1.AnalysisRunMetric{metric}, []fleetflowv1alpha1.AnalysisMetricStatus{counted}))
}

func TestAMeasurementIsComparedWithTheClustersThatHaveNotChanged(t *testing.T) {
	metric := fleetflowv1alpha1.AnalysisMetric{
		Name: "errors", Success: "result <= 1.5 * baseline",
		Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "a", BaselineQuery: "b"},
	}
	judge, problem := analysis.NewJudge(fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric})
	require.Empty(t, problem)
	for sentence, test := range map[string]struct {
		result, baseline float64
		none             bool
		want             fleetflowv1alpha1.AnalysisOutcome
		message          string
	}{
		"alike":                 {result: 0.014, baseline: 0.01, want: good, message: "against 0.01"},
		"worse":                 {result: 0.016, baseline: 0.01, want: bad, message: "against 0.01"},
		"nothing to compare":    {result: 0.016, none: true, want: neither, message: "no data to compare with"},
		"compared with no rate": {result: 0.016, baseline: math.NaN(), want: neither, message: "no data to compare with"},
	} {
		t.Run(sentence, func(t *testing.T) {
			reading := analysis.Reading{Samples: []analysis.Sample{{Value: test.result}}, Baseline: &test.baseline}
			if test.none {
				reading.Baseline = nil
			}
			got := judge.Judge(t.Context(), reading, nil)
			assert.Equal(t, test.want, got.Outcome)
			assert.Equal(t, test.message, got.Message)
			baseline, compared := analysis.BaselineOf(fleetflowv1alpha1.AnalysisMeasurement{Message: got.Message})
			assert.Equal(t, test.want != neither, compared)
			if compared {
				assert.InDelta(t, test.baseline, baseline, 0)
			}
		})
	}
}

func TestAnExpressionSeesOnlyWhatItsSourceAnswers(t *testing.T) {
	query := &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "x"}
	for success, metric := range map[string]fleetflowv1alpha1.AnalysisMetric{
		"result <= baseline":     {Prometheus: query},
		"response.ok":            {Prometheus: query},
		`cluster == "a"`:         {Prometheus: query},
		"result < 1.0":           {Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "smoke"}}},
		`object.data["a"] == ""`: {Prometheus: query},
	} {
		metric.Success = success
		_, problem := analysis.NewJudge(fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric})
		assert.Contains(t, problem, "undeclared reference", success)
	}
}
