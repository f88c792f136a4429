package work

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

func TestPathsAreEvaluatedBelowTheStatus(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"job": "no"}, "status": map[string]any{
		"jobStatus":  map[string]any{"jobID": "ea33", "state": nil, "long": strings.Repeat("a", 64), "checkpoint": "s3://bucket/1"},
		"replicas":   int64(12345678901234567),
		"ready":      true,
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Stalled", "status": "False"}},
	}}}
	for path, tc := range map[string]struct{ value, message string }{
		"{.jobStatus.jobID}":                       {value: "ea33"},
		"{ .jobStatus.jobID }":                     {value: "ea33"},
		"{$.jobStatus.jobID}":                      {value: "ea33"},
		"{['jobStatus'].jobID}":                    {value: "ea33"},
		"{.replicas}":                              {value: "12345678901234567"},
		"{.ready}":                                 {value: "true"},
		`{.conditions[?(@.type=="Ready")].status}`: {value: "True"},
		"{.conditions[0].type}":                    {value: "Ready"},
		"{.conditions[-1:].type}":                  {value: "Stalled"},
		"{.conditions[*].type}":                    {message: "it yields 2 values"},
		"{.jobStatus}":                             {message: "it is no text, number or boolean"},
		"{.jobStatus.long}":                        {message: "it has 64 characters, and the value of a label at most 63"},
		"{.jobStatus.checkpoint}":                  {message: "the value of a label consists of letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"},
		"{.jobStatus.none}":                        {},
		"{.jobStatus.state}":                       {},
		"{.spec.job}":                              {},
		"{.conditions[9].type}":                    {message: "the JSONPath cannot be evaluated: array index out of bounds: index 9, length 2"},
		"{.jobStatus":                              {message: "the JSONPath cannot be evaluated: unclosed action"},
	} {
		t.Run(path, func(t *testing.T) {
			var want []placementv1beta1.StateValue
			if tc.value != "" || tc.message != "" {
				want = []placementv1beta1.StateValue{{JSONPath: path, Value: tc.value, Message: tc.message}}
			}
			assert.Equal(t, want, readStateValues(live, []string{path}))
		})
	}
	assert.Empty(t, readStateValues(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}, []string{"{.a}"}), "it has no status")
	assert.Empty(t, readStateValues(live, nil), "nothing is asked for")
	_, err := evaluatePath(nil, "{.a[?(@.b==)]}")
	assert.Error(t, err)
}

func preserving(w *placementv1beta1.Work, paths ...string) *placementv1beta1.Work {
	w.Spec.ReportState = paths
	return w
}

func TestValuesOfTheStatusAreReported(t *testing.T) {
	a := newAgent(t, []client.Object{preserving(workWith("w", plainMap, plainDeployment), "{.observedGeneration}", "{.readyReplicas}")}, nil)
	a.mustReconcile(t, "w")
	said := func() []placementv1beta1.ManifestCondition { return a.work(t, "w").Status.ManifestConditions }
	assert.Empty(t, said()[0].StateValues, "it has no status")
	assert.Empty(t, said()[1].StateValues)

	a.setStatus(t, appsv1.DeploymentStatus{ReadyReplicas: 1})
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Equal(t, []placementv1beta1.StateValue{{JSONPath: "{.readyReplicas}", Value: "1"}}, said()[1].StateValues)
	a.setStatus(t, appsv1.DeploymentStatus{ReadyReplicas: 1, UnavailableReplicas: 1})
	assert.Empty(t, a.mustReconcile(t, "w"), "nothing that is reported has changed")

	a.setStatus(t, appsv1.DeploymentStatus{ReadyReplicas: 2})
	assert.Empty(t, a.mustReconcile(t, "w"), "not more than once a second")
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Equal(t, "2", said()[1].StateValues[0].Value)

	asked := a.work(t, "w")
	asked.Spec.ReportState = nil
	asked.Generation = asked.Generation + 1
	require.NoError(t, a.hub.Update(t.Context(), asked))
	a.mustReconcile(t, "w")
	assert.Empty(t, said()[1].StateValues, "it is not asked for any more")
}

func TestNoValuesAreReportedUnlessAskedFor(t *testing.T) {
	a := newAgent(t, []client.Object{workWith("w", plainDeployment)}, nil)
	a.mustReconcile(t, "w")
	a.setStatus(t, appsv1.DeploymentStatus{ReadyReplicas: 1})
	assert.Empty(t, a.mustReconcile(t, "w"))
	assert.Empty(t, a.work(t, "w").Status.ManifestConditions[0].StateValues)
}

func TestWhatCannotBeAppliedKeepsItsValues(t *testing.T) {
	id := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "m"}
	previous := placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
		Identifier: id, StateValues: []placementv1beta1.StateValue{{JSONPath: "{.a}", Value: "1"}, {JSONPath: "{.b}", Value: "2"}},
	}}}
	status := placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{Identifier: id}}}
	(&reportLimit{}).addStateValues(&status, []string{"{.a}"}, []outcome{{id: id, problem: &apply.Problem{}}}, previous, noon)
	assert.Equal(t, previous.ManifestConditions[0].StateValues[:1], status.ManifestConditions[0].StateValues, "of what is still asked for")
	assert.Len(t, previous.ManifestConditions[0].StateValues, 2)
}

func TestValuesOfTheStatusAreNotTrimmedBeforeConditions(t *testing.T) {
	status := buildApplyStatus(3, manyOutcomes(20, 2, 300), placementv1beta1.WorkStatus{}, noon)
	status.ManifestConditions[19].StateValues = []placementv1beta1.StateValue{{JSONPath: "{.a}", Value: "1"}}
	got := trimStatus(status, placementv1beta1.WorkStatus{}, 2200, 3, metav1.Time{})
	if assert.Len(t, got.ManifestConditions, 3, "those that have failed, and that one") {
		assert.Equal(t, status.ManifestConditions[19].StateValues, got.ManifestConditions[2].StateValues)
		assert.Empty(t, got.ManifestConditions[2].Conditions)
	}
}
