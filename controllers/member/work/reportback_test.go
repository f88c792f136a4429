package work

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	plainDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"},"spec":{"replicas":1}}`
	plainMap        = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
)

func withMirroring(w *placementv1beta1.Work) *placementv1beta1.Work {
	w.Spec.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{
		Type: placementv1beta1.ReportBackStrategyTypeMirror, Destination: new(placementv1beta1.ReportBackDestinationWorkAPI),
	}
	return w
}

func (a *agent) setStatus(t *testing.T, status appsv1.DeploymentStatus) {
	t.Helper()
	d := &appsv1.Deployment{}
	require.True(t, a.readMember(t, d, "d"))
	d.Status = status
	require.NoError(t, a.member.Status().Update(t.Context(), d))
}

func TestTheStatusOfObjectsIsMirroredOnTheWork(t *testing.T) {
	a := newAgent(t, []client.Object{withMirroring(workWith("w", plainMap, plainDeployment))}, nil)
	a.mustReconcile(t, "w")
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 3})
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))

	conditions := a.work(t, "w").Status.ManifestConditions
	assert.Nil(t, conditions[0].BackReportedStatus, "a ConfigMap has no status")
	require.NotNil(t, conditions[1].BackReportedStatus)
	assert.JSONEq(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"},"status":{"replicas":3}}`,
		string(conditions[1].BackReportedStatus.ObservedStatus.Raw))
	first := conditions[1].BackReportedStatus.ObservationTime

	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	a.memories = newMemories()
	assert.Empty(t, a.mustReconcile(t, "w"), "another agent finds the same and writes nothing")
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 2})
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.True(t, first.Before(&a.work(t, "w").Status.ManifestConditions[1].BackReportedStatus.ObservationTime))
}

func TestAStatusThatChangesAllTheTimeIsMirroredOnceASecond(t *testing.T) {
	a := newAgent(t, []client.Object{withMirroring(workWith("w", plainDeployment))}, nil)
	a.mustReconcile(t, "w")
	for n := range int32(3) {
		a.setStatus(t, appsv1.DeploymentStatus{Replicas: n + 1})
		writes, result, err := a.reconcileByName(t, "w")
		require.NoError(t, err)
		if n > 0 {
			assert.Empty(t, writes)
			assert.Equal(t, reportInterval, result.RequeueAfter)
		}
	}
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	assert.Contains(t, string(a.work(t, "w").Status.ManifestConditions[0].BackReportedStatus.ObservedStatus.Raw), `"replicas":3`, "the last one")
	assert.Empty(t, a.mustReconcile(t, "w"))
}

func TestNothingIsMirroredUnlessAskedFor(t *testing.T) {
	a := newAgent(t, []client.Object{workWith("w", plainDeployment)}, nil)
	a.mustReconcile(t, "w")
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 3})
	assert.Empty(t, a.mustReconcile(t, "w"))
	assert.Nil(t, a.work(t, "w").Status.ManifestConditions[0].BackReportedStatus)
}

func TestMirroredStatusIsLeftOutBeforeAnythingElse(t *testing.T) {
	a := newAgent(t, []client.Object{workWith("w", plainDeployment)}, nil)
	a.mustReconcile(t, "w")
	status := a.work(t, "w").Status
	status.ManifestConditions[0].BackReportedStatus = &placementv1beta1.BackReportedStatus{
		ObservedStatus: runtime.RawExtension{Raw: []byte(`{"status":"` + strings.Repeat("x", 5000) + `"}`)},
	}
	got := trimStatus(status, placementv1beta1.WorkStatus{}, 4000, 1, noon)
	require.Len(t, got.ManifestConditions, 1)
	assert.Nil(t, got.ManifestConditions[0].BackReportedStatus)
	assert.NotEmpty(t, got.ManifestConditions[0].Conditions)
	assert.NotNil(t, status.ManifestConditions[0].BackReportedStatus, "what was given is not changed")
}

func TestTheStatusOfWhatIsOursIsMirroredThoughDifferencesAreReportedOnly(t *testing.T) {
	a := newAgent(t, []client.Object{withMirroring(workWith("w", plainDeployment))}, nil)
	a.mustReconcile(t, "w")
	stranger := withMirroring(workWith("stranger", strings.ReplaceAll(plainDeployment, `"d"`, `"other"`)))
	stranger.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	require.NoError(t, a.hub.Create(t.Context(), stranger))
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "other"}, Status: appsv1.DeploymentStatus{Replicas: 7}}
	require.NoError(t, a.member.Create(t.Context(), other))

	w := a.work(t, "w")
	w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	w.Generation++
	require.NoError(t, a.hub.Update(t.Context(), w))
	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 3})
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	ours := a.work(t, "w").Status.ManifestConditions[0]
	require.NotNil(t, ours.BackReportedStatus)
	assert.Contains(t, string(ours.BackReportedStatus.ObservedStatus.Raw), `"replicas":3`)

	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 4})
	assert.Empty(t, a.mustReconcile(t, "w"), "not more than once a second")
	a.clock.SetTime(a.clock.Now().Add(reportInterval))
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))

	a.mustReconcile(t, "stranger")
	assert.Nil(t, a.work(t, "stranger").Status.ManifestConditions[0].BackReportedStatus, "what is not ours is not for us to tell")
}
