//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// prometheus is a server in this process that answers queries as Prometheus does.
type prometheus struct {
	*httptest.Server
	value  atomic.Pointer[string]
	broken atomic.Bool
	asked  atomic.Int64
}

func (s *spec) startPrometheus(value string) *prometheus {
	s.Helper()
	p := &prometheus{}
	p.value.Store(&value)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.asked.Add(1)
		if p.broken.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, *p.value.Load())
	}))
	s.Cleanup(p.Close)
	return p
}

// analysisDecides lets a stage pass whose figures are good, stops a run while the figures cannot be had, and takes a stage back
// whose figures are bad.
func analysisDecides(s *spec) {
	p := s.startPrometheus("0.002")
	source := &fleetflowv1alpha1.MetricSource{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec:       fleetflowv1alpha1.MetricSourceSpec{Type: fleetflowv1alpha1.MetricSourcePrometheus, URL: p.URL, AllowPlainText: true},
	}
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	template.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "max"}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{
		Name: "error-ratio", Prometheus: &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: s.name}, Query: `errors{cluster=~"$(clusters)"}`},
		Success: "result <= double(args.max)", Count: 3, Interval: &fleetflowv1alpha1.Duration{Duration: 5 * time.Second}, ConsecutiveErrorLimit: new(int32(0)),
	}}
	s.create(source)
	s.create(template)
	defer s.delete(s.hub, source)
	defer s.delete(s.hub, template)
	await(s, s.hub, template.DeepCopy(), "to be valid", func(a *fleetflowv1alpha1.StageAnalysis) error {
		return isTrue(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted, a.Generation)
	})
	await(s, s.hub, source.DeepCopy(), "to be ready", func(m *fleetflowv1alpha1.MetricSource) error {
		return isTrue(m.Status.Conditions, fleetflowv1alpha1.ConditionTypeReady, m.Generation)
	})
	s.externalPlacement()
	s.strategy(staging(placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &placementv1beta1.AnalysisConfig{
		Templates: []placementv1beta1.AnalysisTemplate{{Name: s.name}},
		Args:      []placementv1beta1.AnalysisArgument{{Name: "max", Value: "0.01"}}, OnFailure: placementv1beta1.AnalysisRollback,
	}}), canary())

	// Good figures. The source is away at first: the run stops, and goes on when it is told to.
	p.broken.Store(true)
	run := s.startRun("good", "0")
	stopped := await(s, s.hub, run.DeepCopy(), "to stop, as nothing can be measured", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if r.Spec.State != placementv1beta1.StateStop {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
	task := stopped.Status.StagesStatus[0].AfterStageTaskStatus[0]
	require.Equal(s, s.name+"-good-staging-after", task.AnalysisRunName)
	require.Equal(s, placementv1beta1.ReasonStageTaskAnalysisError, meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded).Reason)
	s.requireNothingOn("member-1", "member-3")
	p.broken.Store(false)
	before := len(s.history(workflowOf(run)).GetEvents())
	update(s, s.hub, run.DeepCopy(), func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.State = placementv1beta1.StateRun })
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	measured := await(s, s.hub, &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: task.AnalysisRunName}}, "to have passed", func(a *fleetflowv1alpha1.ClusterStageAnalysisRun) error {
		if fleetflowv1alpha1.PhaseOfAttempt(a) != fleetflowv1alpha1.AnalysisSucceeded {
			return fmt.Errorf("its status is %+v", a.Status)
		}
		return nil
	})
	s.kubectl("wait", "--for=condition=Succeeded", "clusterstageanalysisrun/"+measured.Name, "--timeout=60s")
	require.EqualValues(s, 2, measured.Status.ObservedAttempt)
	require.EqualValues(s, 3, measured.Status.Metrics[0].Measured)
	require.Equal(s, `errors{cluster=~"member-2"}`, measured.Status.Metrics[0].Query)
	require.Equal(s, `error-ratio 0.002 (want result <= double("0.01")): 3 of 3 good`, fleetflowv1alpha1.MessageOfAttempt(measured))
	took := measured.Status.EndTime.Sub(measured.Status.StartTime.Time)
	require.GreaterOrEqual(s, took, 10*time.Second)
	s.Logf("events of the run: %d when it had stopped, %d in the end, for the analysis and a stage of two clusters; measured for %s", before, len(s.history(workflowOf(run)).GetEvents()), took)

	// Bad figures take the stage back, and the next one is not begun.
	bad := "0.034"
	p.value.Store(&bad)
	s.changeTo(value2)
	run = s.startRun("bad", "")
	ended := s.awaitEnd(run)
	failed := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	require.Equal(s, metav1.ConditionFalse, failed.Status)
	require.Contains(s, failed.Message, `error-ratio 0.034 (want result <= double("0.01")): 0 of 1 good, 1 bad (at most 0)`)
	s.kubectl("wait", "--for=condition=Succeeded=False", "clusterstageanalysisrun/"+s.name+"-bad-staging-after", "--timeout=60s")
	back := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-rollback"}}
	s.awaitSucceeded(back)
	s.awaitValue(value1, allMembers...)
	require.Nil(s, ended.Status.StagesStatus[1].StartTime, "stage canary was not begun")

	// What was measured goes with the run.
	s.delete(s.hub, run)
	awaitGone(s, s.hub, &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-bad-staging-after"}})
}
