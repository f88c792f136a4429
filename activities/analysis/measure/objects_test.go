package measure_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// looks is a metric that looks at an object in namespace web.
func looks(from fleetflowv1alpha1.ObjectsFrom, apiVersion, kind, success string) fleetflowv1alpha1.AnalysisMetric {
	metric := fleetflowv1alpha1.AnalysisMetric{
		Name: "looks", Success: success,
		Objects: &fleetflowv1alpha1.ObjectReading{From: from, APIVersion: apiVersion, Kind: kind, Namespace: "web", Name: "web"},
	}
	if from == fleetflowv1alpha1.ObjectsFromWorks {
		metric.PerCluster = &fleetflowv1alpha1.PerCluster{Missing: fleetflowv1alpha1.OutcomeFailure}
	}
	zero := int32(0)
	metric.ConsecutiveErrorLimit = &zero
	return metric
}

// work is what placement web has on member-1: a Deployment, a ConfigMap and a Secret.
func work(change func(*placementv1beta1.Work)) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-member-member-1", Name: "web-work", Generation: 4, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"},
	}}
	for _, manifest := range []string{
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "namespace": "web"}, "data": {"a": "cGxhbnRlZA=="}}`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "web", "annotations": {"a": "planted"}}, "data": {"a": "planted"}}`,
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "web", "labels": {"app": "web"}}, "spec": {"replicas": 3}}`,
	} {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	w.Spec.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackStrategyTypeMirror}
	applied := metav1.Condition{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, ObservedGeneration: 4}
	available := metav1.Condition{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue}
	w.Status.Conditions = []metav1.Condition{applied}
	for i := range w.Spec.Workload.Manifests {
		w.Status.ManifestConditions = append(w.Status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: i}, Conditions: []metav1.Condition{applied, available},
		})
	}
	w.Status.ManifestConditions[2].BackReportedStatus = &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{
		Raw: []byte(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "web"}, "status": {"readyReplicas": 3}}`),
	}}
	change(w)
	return w
}

func TestWorksAreMeasured(t *testing.T) {
	const works = fleetflowv1alpha1.ObjectsFromWorks
	same := func(*placementv1beta1.Work) {}
	ready := looks(works, "apps/v1", "Deployment", `object.status.readyReplicas == object.spec.replicas && conditions.Available == "True" && object.metadata.labels.app == "web"`)
	for sentence, test := range map[string]struct {
		metric  fleetflowv1alpha1.AnalysisMetric
		work    func(*placementv1beta1.Work)
		phase   fleetflowv1alpha1.AnalysisPhase
		message string
	}{
		"what the member reports is good": {ready, same, "Succeeded", "1 of 1 pass"},
		"it is bad": {ready, func(w *placementv1beta1.Work) {
			w.Status.ManifestConditions[2].BackReportedStatus.ObservedStatus.Raw = []byte(`{"status": {"readyReplicas": 2}}`)
		}, "Failed", "on member-1 (0 of 1 pass)"},
		"it is about an earlier generation of the Work": {ready, func(w *placementv1beta1.Work) { w.Generation++ }, "Failed", "on member-1 (0 of 1 pass)"},
		"the Work is of another placement": {ready, func(w *placementv1beta1.Work) {
			w.Labels[placementv1beta1.ParentPlacementLabel] = "other"
		}, "Failed", "on member-1 (0 of 1 pass)"},
		"the Work is of a placement in a namespace": {ready, func(w *placementv1beta1.Work) {
			w.Labels[placementv1beta1.ParentNamespaceLabel] = "team"
		}, "Failed", "on member-1 (0 of 1 pass)"},
		"the status is not reported": {ready, func(w *placementv1beta1.Work) {
			w.Spec.ReportBackStrategy = nil
			w.Status.ManifestConditions[2].BackReportedStatus = nil
		}, "Error", "needs reportBackStrategy: {type: Mirror, destination: WorkAPI}"},
		"it is not reported yet": {ready, func(w *placementv1beta1.Work) {
			w.Status.ManifestConditions[2].BackReportedStatus = nil
		}, "Failed", "on member-1 (0 of 1 pass)"},
		"the status is not asked for": {looks(works, "apps/v1", "Deployment", `conditions.Applied == "True"`), func(w *placementv1beta1.Work) {
			w.Spec.ReportBackStrategy = nil
			w.Status.ManifestConditions[2].BackReportedStatus = nil
		}, "Succeeded", "1 of 1 pass"},
		"a Secret":                    {looks(works, "v1", "Secret", `object.data.a == "cGxhbnRlZA=="`), same, "Error", "no metric reads a Secret"},
		"the data of a ConfigMap":     {looks(works, "v1", "ConfigMap", `object.data.a == "planted"`), same, "Error", "no such key: data"},
		"annotations":                 {looks(works, "v1", "ConfigMap", `object.metadata.annotations.a == "planted"`), same, "Error", "no such key: annotations"},
		"an object that is not there": {looks(works, "apps/v1", "StatefulSet", "object.spec.replicas > 0"), same, "Failed", "on member-1 (0 of 1 pass)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), test.metric)
			f.acts.Objects = metricsource.Objects{Live: f.Client, Reach: analysis.Reach{Works: true}}
			require.NoError(t, f.Create(t.Context(), work(test.work)))
			_, _, got := f.measure()
			assert.Equal(t, test.phase, fleetflowv1alpha1.PhaseOfAttempt(got), fleetflowv1alpha1.MessageOfAttempt(got))
			assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), test.message)
			assert.Contains(t, got.Status.Metrics[0].Query, "/"+test.metric.Objects.Kind+" web/web")
		})
	}
}

func TestObjectsOfTheHubAreMeasured(t *testing.T) {
	const hub = fleetflowv1alpha1.ObjectsFromHub
	allowed, err := analysis.ParseHubKinds([]string{"web/ConfigMap"})
	require.NoError(t, err)
	for sentence, test := range map[string]struct {
		metric  fleetflowv1alpha1.AnalysisMetric
		kinds   analysis.HubKinds
		phase   fleetflowv1alpha1.AnalysisPhase
		message string
	}{
		"an allowed kind":              {looks(hub, "v1", "ConfigMap", `object.data.approved == "yes"`), allowed, "Succeeded", "1 of 1 good"},
		"it says no":                   {looks(hub, "v1", "ConfigMap", `object.data.approved == "no"`), allowed, "Failed", "1 bad"},
		"one that is not there":        {looks(hub, "v1", "ConfigMap", `object.data.approved == "yes"`), allowed, "Inconclusive", "the object is not there"},
		"not allowed any more":         {looks(hub, "v1", "ConfigMap", `object.data.approved == "yes"`), nil, "Error", "are not for metrics"},
		"an envelope":                  {looks(hub, "v1", "ConfigMap", `object.data.approved == "yes"`), allowed, "Error", "it is an envelope, which may hold Secrets"},
		"a Secret, allowed by a trick": {looks(hub, "v1", "Secret", `object.data.approved == "yes"`), analysis.Anywhere.HubKinds, "Error", "no metric reads a Secret"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if sentence == "one that is not there" {
				test.metric.Objects.Name = "other"
			}
			f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), test.metric)
			f.acts.Objects = metricsource.Objects{Live: f.Client, Reach: analysis.Reach{HubKinds: test.kinds}}
			read := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web"}, Data: map[string]string{"approved": "yes"}}
			if sentence == "an envelope" {
				read.Annotations = map[string]string{placementv1beta1.EnvelopeConfigMapAnnotation: "true"}
			}
			require.NoError(t, f.Create(t.Context(), read))
			_, _, got := f.measure()
			assert.Equal(t, test.phase, fleetflowv1alpha1.PhaseOfAttempt(got), fleetflowv1alpha1.MessageOfAttempt(got))
			assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), test.message)
		})
	}
}

func TestObservationsAreCounted(t *testing.T) {
	s := newServer(t, vector("5"))
	metric := errors(1)
	metric.Prometheus.SamplesQuery = `requests{cluster=~"$(clusters)"}`
	metric.Prometheus.MinSamples = 100
	f := newFleet(t, local, sourceAt(s.URL), metric)
	_, _, got := f.measure()
	assert.Equal(t, fleetflowv1alpha1.AnalysisInconclusive, fleetflowv1alpha1.PhaseOfAttempt(got))
	assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), "5 observations, at least 100 are wanted")
	assert.Contains(t, s.bodies[1], "requests")
	assert.Contains(t, s.bodies[1], "member-1")
}
