package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// anAnalysis is one that has failed, of run web-17 in a namespace.
func anAnalysis(namespace, position string) fleetflowv1alpha1.StageAnalysisRunObject {
	a := fleetflowv1alpha1.NewStageAnalysisRun(namespace, fleetflowv1alpha1.AnalysisRunName("web-17", "canary", position))
	metric := fleetflowv1alpha1.AnalysisRunMetric{Args: map[string]string{"max": "0.01"}}
	metric.Name = "error-ratio"
	metric.Success = "result <= double(args.max)"
	metric.Count = 10
	metric.FailureLimit = 2
	metric.Prometheus = &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "errors"}
	*a.GetStageAnalysisRunSpec() = fleetflowv1alpha1.StageAnalysisRunSpec{
		RunRef: fleetflowv1alpha1.UpdateRunReference{Name: "web-17", UID: "uid-1"}, Stage: "canary", Position: position, Attempt: 2,
		Metrics: []fleetflowv1alpha1.AnalysisRunMetric{metric},
	}
	fleetflowv1alpha1.SetPhase(a, fleetflowv1alpha1.AnalysisFailed, "error-ratio 0.034", time.Now())
	a.GetStageAnalysisRunStatus().Metrics = []fleetflowv1alpha1.AnalysisMetricStatus{{
		Name: "error-ratio", Phase: fleetflowv1alpha1.AnalysisFailed, Measured: 4, Succeeded: 1, Failed: 3, Errors: 1,
		Last: []fleetflowv1alpha1.AnalysisMeasurement{{Outcome: fleetflowv1alpha1.OutcomeFailure, Value: "0.034"}},
	}}
	return a
}

func TestAnalysesShowValuesAgainstBounds(t *testing.T) {
	again := anAnalysis("", fleetflowv1alpha1.PositionAfter)
	again.GetStageAnalysisRunSpec().Attempt = 3
	c := newConsole(t, again, anAnalysis("", fleetflowv1alpha1.PositionDuring), anAnalysis("team", fleetflowv1alpha1.PositionAfter))
	require.NoError(t, c.run("analysis"))
	assert.Equal(t, `RUN           STAGE    WHEN     ATTEMPT   STATE     MESSAGE
team/web-17   canary   after    2         Failed    error-ratio 0.034
web-17        canary   after    3         Pending   -
web-17        canary   during   2         Failed    error-ratio 0.034
`, c.Out.String())
	require.NoError(t, c.run("analysis", "show", "web-17"))
	assert.Equal(t, `after canary: Pending, attempt 3
METRIC        STATE     VALUE   WANTED                     MEASURED   BAD             INCONCLUSIVE    ERRORS
error-ratio   Pending   -       result <= double("0.01")   0 of 10    0 (at most 2)   0 (at most 0)   0

during canary: Failed, attempt 2
METRIC        STATE    VALUE   WANTED                     MEASURED   BAD             INCONCLUSIVE    ERRORS
error-ratio   Failed   0.034   result <= double("0.01")   4          3 (at most 2)   0 (at most 0)   1
`, c.Out.String())
	require.NoError(t, c.run("analysis", "show", "run/web-17", "-n", "team"))
	assert.Contains(t, c.Out.String(), "4 of 10")
	assert.ErrorContains(t, c.run("analysis", "show", "web-18"), "run web-18 has no analyses, or is not there")
}

func TestAStoppedAnalysisSaysWhy(t *testing.T) {
	stopped := anAnalysis("", fleetflowv1alpha1.PositionAfter)
	*stopped.GetStageAnalysisRunStatus() = fleetflowv1alpha1.StageAnalysisRunStatus{}
	fleetflowv1alpha1.SetPhase(stopped, fleetflowv1alpha1.AnalysisStopped, "The run has ended first: run b rolls it back", time.Now())
	c := newConsole(t, stopped)
	require.NoError(t, c.run("analysis", "show", "web-17"))
	assert.Equal(t, `after canary: Stopped, attempt 2. The run has ended first: run b rolls it back
METRIC        STATE     VALUE   WANTED                     MEASURED   BAD             INCONCLUSIVE    ERRORS
error-ratio   Stopped   -       result <= double("0.01")   0 of 10    0 (at most 2)   0 (at most 0)   0
`, c.Out.String())
}

func TestTemplatesAreLinted(t *testing.T) {
	c := newConsole(t)
	file := func(metrics string) string {
		path := filepath.Join(t.TempDir(), "template.yaml")
		text := "apiVersion: fleetflow.io/v1alpha1\nkind: StageAnalysis\nmetadata: {name: errors}\nspec: {args: [{name: max}], metrics: [" + metrics + "]}\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const good = `{name: ratio, prometheus: {sourceRef: {name: central}, query: 'errors{cluster=~"$(clusters)"}'}, success: result <= double(args.max), initialDelay: 1m, interval: 1m, count: 10}`
	require.NoError(t, c.run("analysis", "lint", "-f", file(good)))
	assert.Equal(t, `TEMPLATE   METRIC   SOURCE    COUNT   EVERY   TAKES   WANTED
errors     ratio    central   10      60s     10m     result <= double(args.max)
`, c.Out.String())
	for metric, want := range map[string]string{
		`{name: a, prometheus: {sourceRef: {name: central}, query: up}, success: result <}`:                     "InvalidExpression: metric a: the expression \"result <\" is not valid CEL",
		`{name: a, prometheus: {sourceRef: {name: central}, query: up}, success: 'secrets.get("token") == ""'}`: "undeclared reference to 'secrets'",
		`{name: a, prometheus: {sourceRef: {name: central}, query: up}, success: result > double(args.min)}`:    "UnknownArgument",
		`{name: a, prometheus: {sourceRef: {name: central}, query: "$(cluster)"}, success: result > 0.0}`:       "there is no variable $(cluster)",
		good + `, {name: a, webhook: {sourceRef: {name: central}}}`:                                             "MetricSource central is of type Prometheus, not Webhook",
		`{name: a, prometheus: {sourceRef: {name: central}, query: up, basline: up}, success: result > 0.0}`:    `unknown field "spec.metrics[0].prometheus.basline"`,
	} {
		err := c.run("analysis", "lint", "-f", file(metric))
		require.Error(t, err, metric)
		assert.Contains(t, c.Err.String()+err.Error(), want)
	}
	assert.ErrorContains(t, c.run("analysis", "lint"), "needs manifests")
}

func TestATemplateIsTriedBeforeARolloutDependsOnIt(t *testing.T) {
	var asked []string
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked = append(asked, r.Form.Get("query")+" "+r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.034"]}]}}`)
	}))
	t.Cleanup(prometheus.Close)
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "errors"}}
	limit := "0.01"
	template.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "max", Default: &limit}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{
		{Name: "ratio", Success: "result <= double(args.max)", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `errors{cluster=~"$(clusters)"}`}},
		{Name: "smoke", Webhook: &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "smoke"}}},
		{Name: "e2e", Job: &fleetflowv1alpha1.JobRun{Namespace: "jobs", FromCronJob: "e2e"}},
	}
	c := newConsole(t, append(smallFleet(), template)...)

	assert.ErrorContains(t, c.run("analysis", "try", "errors"), "UnknownSource: metric ratio: there is no MetricSource central")
	err := c.run("analysis", "try", "errors", "--url", prometheus.URL, "--clusters", "a,b")
	assert.ErrorContains(t, err, "1 of 3 metrics are bad now, or cannot be measured")
	assert.Equal(t, `TEMPLATE   METRIC   OUTCOME   VALUE   WANTED                     MESSAGE
errors     ratio    Failure   0.034   result <= double("0.01")   -
errors     smoke    -         -       -                          not tried: --webhooks calls it
errors     e2e      -         -       -                          not tried: a Job runs in a rollout only
`, c.Out.String())
	require.NoError(t, c.run("analysis", "try", "errors", "--url", prometheus.URL, "--clusters", "a,b", "--arg", "max=0.05"))
	assert.Equal(t, `errors{cluster=~"a|b"} `, asked[len(asked)-1])

	assert.ErrorContains(t, c.run("analysis", "try"), "needs a template")
	assert.ErrorContains(t, c.run("analysis", "try", "errors", "--url", prometheus.URL, "--run", "none"), "reading run none")
	assert.ErrorContains(t, c.run("analysis", "try", "errors", "--url", prometheus.URL, "--arg", "min=1"), "takes an argument min")
}

func TestATrialSendsTheCredentialOfTheSource(t *testing.T) {
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
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "errors"}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{
		{Name: "ratio", Success: "result <= 0.01", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: "errors"}},
	}
	source.Spec.TLS = &fleetflowv1alpha1.MetricSourceTLS{CASecret: &fleetflowv1alpha1.MetricSourceSecret{Name: "none", Key: "ca.crt"}}
	c := newConsole(t, append(smallFleet(), template, source, secret)...)
	require.NoError(t, c.run("analysis", "try", "errors", "--url", prometheus.URL), "no data is inconclusive, which is not bad; plain text needs no certificate")
	assert.Contains(t, c.Out.String(), "Inconclusive")
	assert.Empty(t, sent, "another address gets no credential")
	plain := &fleetflowv1alpha1.MetricSource{}
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(source), plain))
	plain.Spec.TLS = nil
	require.NoError(t, c.Hub.Update(t.Context(), plain))
	assert.Error(t, c.run("analysis", "try", "errors"))
	assert.Contains(t, c.Out.String(), "is refused", "a source does not get at what listens on the user's machine")
	assert.Empty(t, sent)
}

func TestATrialIsAboutTheClustersThatARolloutWouldMeasure(t *testing.T) {
	var asked string
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked = r.Form.Get("query")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}))
	t.Cleanup(prometheus.Close)
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "errors"}}
	template.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "app", Default: new("shop")}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{Name: "ratio", Success: "result <= 0.01", Prometheus: &fleetflowv1alpha1.PrometheusQuery{
		SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "central"}, Query: `$(args.app) $(placement) $(clusters) / $(control)`,
	}}}
	run := &placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-17"}}
	run.Spec.PlacementName = "web"
	began := ago(time.Minute)
	succeeded := condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, "", time.Minute)
	started := condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, "", time.Minute)
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{
		{StageName: "canary", StartTime: &began, Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "a", Conditions: []metav1.Condition{started, succeeded}}}},
		{StageName: "prod", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "b"}, {ClusterName: "c"}}},
	}
	objects := []client.Object{template, run}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c := newConsole(t, objects...)
	for arguments, want := range map[string]string{
		"-n team --run web-17 --stage canary": "shop web a / b|c",
		"-n team --run web-17 --stage prod":   "shop web b|c / b|c",
		"--placement db --clusters b":         "shop db b / a|c",
		"--arg app=web":                       "web  a|b|c / ",
	} {
		require.NoError(t, c.run(append([]string{"analysis", "try", "errors", "--url", prometheus.URL}, strings.Fields(arguments)...)...), arguments)
		assert.Equal(t, want, asked, arguments)
	}
	assert.ErrorContains(t, c.run("analysis", "try", "errors", "--url", prometheus.URL, "--arg", "app=$(control)"), `the value "$(control)" of argument app is none`)
}

func TestATrialReadsTheWorksOfAPlacementInANamespace(t *testing.T) {
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: "ready"}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{Name: "ready", Success: "object.spec.replicas == 3", PerCluster: &fleetflowv1alpha1.PerCluster{},
		Objects: &fleetflowv1alpha1.ObjectReading{From: fleetflowv1alpha1.ObjectsFromWorks, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "team", Name: "web"}}}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placementv1beta1.MemberNamespace("a"), Name: "web-work", Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.ParentNamespaceLabel: "team",
	}}}
	work.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: k8sruntime.RawExtension{
		Raw: []byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team"}, "spec": {"replicas": 3}}`),
	}}}
	work.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue}}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 0}}}
	c := newConsole(t, template, work)
	require.NoError(t, c.run("analysis", "try", "ready", "-n", "team", "--placement", "web", "--clusters", "a"))
	assert.Contains(t, c.Out.String(), "1 of 1 pass")
	require.NoError(t, c.run("analysis", "try", "ready", "--placement", "web", "--clusters", "a"))
	assert.NotContains(t, c.Out.String(), "1 of 1 pass", "that would be another placement")
}
