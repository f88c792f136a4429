package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestAnalysesOfTwoRunsOfANamespaceNeverHaveOneName(t *testing.T) {
	assert.Equal(t, "web-canary-after", fleetflowv1alpha1.AnalysisRunName("web", "canary", fleetflowv1alpha1.PositionAfter))
	parts := []string{"web", "team", "canary", "after"}
	runs := slices.Clone(parts)
	for _, a := range parts {
		for _, b := range parts {
			runs = append(runs, a+"-"+b, a+"."+b, a+"-"+b+"-after", a+"."+b+"-after")
		}
	}
	owners := map[string]string{}
	for _, run := range slices.Compact(slices.Sorted(slices.Values(runs))) {
		for _, stage := range []string{"canary", "after"} {
			name := fleetflowv1alpha1.AnalysisRunName(run, stage, fleetflowv1alpha1.PositionAfter)
			owner := run + "/" + stage
			assert.Empty(t, owners[name], "%s is of %s, too", name, owner)
			owners[name] = owner
		}
	}
}

func TestTheNamespaceChoosesTheTwin(t *testing.T) {
	for namespace, kind := range map[string]string{"": "ClusterStageAnalysisRun", "team": "StageAnalysisRun"} {
		run := fleetflowv1alpha1.NewStageAnalysisRun(namespace, "web-canary-after")
		assert.Equal(t, namespace, run.GetNamespace())
		assert.Equal(t, "web-canary-after", run.GetName())
		assert.Equal(t, kind, fleetflowv1alpha1.StageAnalysisRunKind(namespace).Kind)
		assert.Equal(t, kind, reflect.TypeOf(run).Elem().Name())
	}
}

func TestTheLongestNameOfAnAnalysisIsOne(t *testing.T) {
	longest := strings.Repeat("a", 63)
	assert.Empty(t, content.IsDNS1123Subdomain(fleetflowv1alpha1.AnalysisRunName(longest, longest, fleetflowv1alpha1.PositionDuring)))
}

func TestTheConditionOfAnAnalysisSaysHowFarItIs(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for phase, want := range map[fleetflowv1alpha1.AnalysisPhase]metav1.ConditionStatus{
		fleetflowv1alpha1.AnalysisRunning:      metav1.ConditionUnknown,
		fleetflowv1alpha1.AnalysisSucceeded:    metav1.ConditionTrue,
		fleetflowv1alpha1.AnalysisWaived:       metav1.ConditionTrue,
		fleetflowv1alpha1.AnalysisFailed:       metav1.ConditionFalse,
		fleetflowv1alpha1.AnalysisInconclusive: metav1.ConditionFalse,
		fleetflowv1alpha1.AnalysisError:        metav1.ConditionFalse,
		fleetflowv1alpha1.AnalysisStopped:      metav1.ConditionFalse,
	} {
		run := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: fleetflowv1alpha1.StageAnalysisRunSpec{Attempt: 2}}
		assert.Equal(t, fleetflowv1alpha1.AnalysisPending, fleetflowv1alpha1.PhaseOfAttempt(run))
		run.Status.NextMeasurementTime = &metav1.MicroTime{Time: now}
		fleetflowv1alpha1.SetPhase(run, phase, "ratio 0.034", now)
		assert.Equal(t, []metav1.Condition{{
			Type: "Succeeded", Status: want, Reason: string(phase), Message: "ratio 0.034", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(now),
		}}, run.GetConditions())
		assert.Equal(t, phase, fleetflowv1alpha1.PhaseOfAttempt(run))
		assert.Equal(t, "ratio 0.034", fleetflowv1alpha1.MessageOfAttempt(run))
		assert.Equal(t, phase.IsOver(), run.Status.EndTime != nil)
		assert.Equal(t, phase.IsOver(), run.Status.NextMeasurementTime == nil, "nothing is due of one that is over")
	}
}

func TestAnotherAttemptKeepsTheConditionAndForgetsTheMeasurements(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &fleetflowv1alpha1.ClusterStageAnalysisRun{Spec: fleetflowv1alpha1.StageAnalysisRunSpec{Attempt: 1}}
	fleetflowv1alpha1.SetPhase(run, fleetflowv1alpha1.AnalysisFailed, "ratio 0.034", now)
	run.Status.Metrics = []fleetflowv1alpha1.AnalysisMetricStatus{{Name: "ratio", Measured: 4}}
	run.Spec.Attempt = 2
	assert.Equal(t, fleetflowv1alpha1.AnalysisPending, fleetflowv1alpha1.PhaseOfAttempt(run))
	fleetflowv1alpha1.BeginAttempt(run)
	assert.Len(t, run.Status.Conditions, 1)
	assert.Empty(t, run.Status.Metrics)
	assert.Nil(t, run.Status.EndTime)
	fleetflowv1alpha1.SetPhase(run, fleetflowv1alpha1.AnalysisRunning, "", now.Add(time.Minute))
	assert.Equal(t, metav1.ConditionUnknown, run.Status.Conditions[0].Status)
	assert.Equal(t, now.Add(time.Minute), run.Status.Conditions[0].LastTransitionTime.UTC())
}
