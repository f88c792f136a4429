package stageanalysis

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// deleted are the analyses whose Jobs were deleted.
type deleted []string

func (d *deleted) DeleteUnended(_ context.Context, run fleetflowv1alpha1.StageAnalysisRunObject) error {
	*d = append(*d, run.GetName())
	return nil
}

func TestJobsGoWithWhatTheyMeasureFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type analysed = fleetflowv1alpha1.ClusterStageAnalysisRun
	type updating = placementv1beta1.ClusterStagedUpdateRun
	over := func(r *updating) {
		r.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}}
	}
	for sentence, test := range map[string]struct {
		analysis func(*analysed)
		run      func(*updating)
		deletes  bool
		again    time.Duration
	}{
		"it measures": {},
		"it has failed": {analysis: func(a *analysed) {
			fleetflowv1alpha1.SetPhase(a, fleetflowv1alpha1.AnalysisFailed, "", now.Add(-time.Hour))
		}, deletes: true},
		"it has been waived":       {analysis: func(a *analysed) { fleetflowv1alpha1.SetPhase(a, fleetflowv1alpha1.AnalysisWaived, "", now) }, deletes: true, again: time.Minute},
		"there is another attempt": {analysis: func(a *analysed) { a.Spec.Attempt = 2 }, deletes: true},
		"the run has been aborted": {run: over, deletes: true, again: time.Minute},
		"the run is another":       {run: func(r *updating) { r.UID = "uid-2" }, deletes: true},
		"it runs no Jobs, and ends": {analysis: func(a *analysed) {
			fleetflowv1alpha1.SetPhase(a, fleetflowv1alpha1.AnalysisFailed, "", now)
			a.Spec.Metrics[0].Job = nil
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &analysed{ObjectMeta: metav1.ObjectMeta{Name: "web-17-canary-after"}}
			a.Spec = fleetflowv1alpha1.StageAnalysisRunSpec{RunRef: fleetflowv1alpha1.UpdateRunReference{Name: "web-17", UID: "uid-1"}, Stage: "canary", Position: "After", Attempt: 1, Metrics: make([]fleetflowv1alpha1.AnalysisRunMetric, 1)}
			a.Spec.Metrics[0].Job = &fleetflowv1alpha1.JobRun{Namespace: "jobs", FromCronJob: "e2e"}
			fleetflowv1alpha1.SetPhase(a, fleetflowv1alpha1.AnalysisRunning, "", now)
			run := &updating{ObjectMeta: metav1.ObjectMeta{Name: "web-17", UID: "uid-1"}}
			run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{{AnalysisRunName: a.Name}}}}
			if test.analysis != nil {
				test.analysis(a)
			}
			if test.run != nil {
				test.run(run)
			}
			requests := analysesOf(t.Context(), run)
			require.Equal(t, []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(a)}}, requests)
			var got deleted
			r := &jobs{fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(a, run).Build(), &got, clocktesting.NewFakePassiveClock(now)}
			result, err := r.Reconcile(t.Context(), requests[0])
			require.NoError(t, err)
			assert.Equal(t, test.deletes, len(got) > 0)
			assert.Equal(t, test.again, result.RequeueAfter, "what still measures may begin another")
		})
	}
}
