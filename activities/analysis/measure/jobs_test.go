package measure_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// ending ends the Jobs that are made on the hub, the first as the first ending says, and so on.
type ending struct {
	client.Client
	t       *testing.T
	endings []batchv1.JobCondition
	made    []*batchv1.Job
	// only, if it is set, is how the names of the Jobs begin that are ended.
	only  string
	ended int
	mu    sync.Mutex
}

func (e *ending) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	job, is := object.(*batchv1.Job)
	if !is {
		return e.Client.Create(ctx, object, options...)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended < len(e.endings) && strings.HasPrefix(job.Name, e.only) {
		job.Status.Conditions = []batchv1.JobCondition{e.endings[e.ended]}
		e.ended++
	}
	job.CreationTimestamp = metav1.NewTime(begin)
	e.made = append(e.made, job.DeepCopy())
	return e.Client.Create(ctx, object, options...)
}

func ended(kind batchv1.JobConditionType, reason string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason}
}

func runsJob(count int32) fleetflowv1alpha1.AnalysisMetric {
	zero := int32(0)
	return fleetflowv1alpha1.AnalysisMetric{
		Name: "e2e", Count: count, Interval: &fleetflowv1alpha1.Duration{Duration: 5 * time.Second}, ConsecutiveErrorLimit: &zero,
		Job: &fleetflowv1alpha1.JobRun{Namespace: "jobs", FromCronJob: "e2e", Timeout: &fleetflowv1alpha1.Duration{Duration: 2 * time.Minute}},
	}
}

// cronJob is one that analyses may run.
func cronJob() *batchv1.CronJob {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "jobs", Name: "e2e", Annotations: map[string]string{fleetflowv1alpha1.AnalysesMayRunAnnotation: "true"},
	}, Spec: batchv1.CronJobSpec{Suspend: new(true)}}
	cron.Spec.JobTemplate.Labels = map[string]string{"app": "e2e"}
	cron.Spec.JobTemplate.Spec.Template.Spec.Containers = []corev1.Container{{Name: "e2e", Image: "e2e:1"}}
	return cron
}

func TestAJobDecides(t *testing.T) {
	complete := ended(batchv1.JobComplete, "")
	failed := ended(batchv1.JobFailed, "BackoffLimitExceeded")
	for sentence, test := range map[string]struct {
		count      int32
		endings    []batchv1.JobCondition
		change     func(*batchv1.CronJob)
		namespaces []string
		phase      fleetflowv1alpha1.AnalysisPhase
		message    string
		jobs       int
	}{
		"it succeeds":                {1, []batchv1.JobCondition{complete}, nil, []string{"jobs"}, "Succeeded", "1 of 1 good", 1},
		"it succeeds twice":          {2, []batchv1.JobCondition{complete, complete}, nil, []string{"jobs"}, "Succeeded", "2 of 2 good", 2},
		"it fails":                   {1, []batchv1.JobCondition{failed}, nil, []string{"jobs"}, "Failed", "BackoffLimitExceeded", 1},
		"its deadline ends it":       {1, []batchv1.JobCondition{ended(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)}, nil, []string{"jobs"}, "Error", "has not ended within 2m0s", 1},
		"nothing ends it":            {1, nil, nil, []string{"jobs"}, "Error", "has not ended within 2m0s", 1},
		"the CronJob runs by itself": {1, nil, func(c *batchv1.CronJob) { c.Spec.Suspend = new(false) }, []string{"jobs"}, "Error", "is not suspended", 0},
		"its owner has not said that analyses may run it": {1, nil, func(c *batchv1.CronJob) { c.Annotations = nil }, []string{"jobs"}, "Error", `its owner lets them run it by the annotation fleetflow.io/analyses-may-run: "true"`, 0},
		"its owner has said that they may not":            {1, nil, func(c *batchv1.CronJob) { c.Annotations[fleetflowv1alpha1.AnalysesMayRunAnnotation] = "false" }, []string{"jobs"}, "Error", "is not for analyses", 0},
		"no Jobs may run in its namespace":                {1, nil, nil, []string{"others"}, "Error", "no Jobs for metrics run in namespace jobs", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), runsJob(test.count))
			cron := cronJob()
			if test.change != nil {
				test.change(cron)
			}
			require.NoError(t, f.Create(t.Context(), cron))
			hub := &ending{Client: f.Client, t: t, endings: test.endings}
			f.acts.Jobs = metricsource.Jobs{Client: hub, Live: f.Client, Reach: analysis.Reach{JobNamespaces: test.namespaces}, Clock: f.clock}
			_, _, got := f.measure()
			assert.Equal(t, test.phase, fleetflowv1alpha1.PhaseOfAttempt(got), fleetflowv1alpha1.MessageOfAttempt(got))
			assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), test.message)
			require.Len(t, hub.made, test.jobs)
			if test.jobs == 0 {
				return
			}
			job := hub.made[0]
			assert.Equal(t, "e2e:1", job.Spec.Template.Spec.Containers[0].Image)
			assert.Equal(t, "e2e", job.Labels["app"])
			assert.EqualValues(t, 120, *job.Spec.ActiveDeadlineSeconds)
			assert.EqualValues(t, 3600, *job.Spec.TTLSecondsAfterFinished, "an hour after it has ended it is deleted")
			assert.Equal(t, got.Name, job.OwnerReferences[0].Name, "it goes with the analysis")
			assert.Equal(t, "canary", job.Spec.Template.Annotations["fleetflow.io/stage"])
			assert.Equal(t, "web", job.Spec.Template.Annotations["fleetflow.io/placement"])
		})
	}
}

func TestTheTimeoutOfAJobIsTheOneThatEndsIt(t *testing.T) {
	f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), runsJob(1))
	cron := cronJob()
	cron.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = new(int64(30))
	require.NoError(t, f.Create(t.Context(), cron))
	hub := &ending{Client: f.Client, t: t, endings: []batchv1.JobCondition{ended(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)}}
	f.acts.Jobs = metricsource.Jobs{Client: hub, Live: f.Client, Reach: analysis.Reach{JobNamespaces: []string{"jobs"}}, Clock: f.clock}
	_, _, got := f.measure()
	assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), "has not ended within 30s")
}

func TestAJobThatRunsIsLookedAtLessAndLessAndWritesNothing(t *testing.T) {
	metric := runsJob(1)
	metric.Job.Timeout = &fleetflowv1alpha1.Duration{Duration: time.Hour}
	f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), metric)
	require.NoError(t, f.Create(t.Context(), cronJob()))
	hub := &ending{Client: f.Client, t: t}
	looks := 0
	writes := 0
	watched := interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*batchv1.Job); is {
				looks++
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	f.onStatus(func(write func() error) error { writes++; return write() })
	f.acts.Jobs = metricsource.Jobs{Client: hub, Live: watched, Reach: analysis.Reach{JobNamespaces: []string{"jobs"}}, Clock: f.clock}
	_, _, got := f.measure()
	assert.Contains(t, fleetflowv1alpha1.MessageOfAttempt(got), "has not ended within 1h0m0s")
	assert.LessOrEqual(t, looks, 110, "once in 40 s")
	assert.LessOrEqual(t, writes, 3, "when it begins, and when it ends")
}

func TestTheJobsOfAnAnalysisThatIsOverAreDeletedUnlessTheyHaveEnded(t *testing.T) {
	quick := runsJob(2)
	slow := runsJob(1)
	slow.Name = "slow"
	f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), quick, slow)
	require.NoError(t, f.Create(t.Context(), cronJob()))
	hub := &ending{Client: f.Client, t: t, only: "e2e", endings: []batchv1.JobCondition{ended(batchv1.JobFailed, "BackoffLimitExceeded")}}
	f.acts.Jobs = metricsource.Jobs{Client: hub, Live: f.Client, Reach: analysis.Reach{JobNamespaces: []string{"jobs"}}, Clock: f.clock}
	_, _, got := f.measure()
	require.Equal(t, fleetflowv1alpha1.AnalysisFailed, fleetflowv1alpha1.PhaseOfAttempt(got))
	var left batchv1.JobList
	require.NoError(t, f.List(t.Context(), &left))
	require.Len(t, left.Items, 2)
	require.NoError(t, f.acts.Jobs.DeleteUnended(t.Context(), got))
	require.NoError(t, f.List(t.Context(), &left))
	require.Len(t, left.Items, 1, "whose log people want to see")
	assert.Contains(t, left.Items[0].Name, "e2e")
}

func TestNoJobIsMadeForAnAnalysisThatIsStoppedWhileItIsMeasured(t *testing.T) {
	f := newFleet(t, local, sourceAt("http://127.0.0.1:1"), runsJob(1))
	require.NoError(t, f.Create(t.Context(), cronJob()))
	jobs := metricsource.Jobs{Client: f.Client, Live: f.Client, Reach: analysis.Reach{JobNamespaces: []string{"jobs"}}, Clock: f.clock}
	of := &fleetflowv1alpha1.ClusterStageAnalysisRun{}
	require.NoError(t, f.Get(t.Context(), client.ObjectKey{Name: "web-17-canary-after"}, of))
	question := metricsource.Question{Metric: of.Spec.Metrics[0], Of: of.DeepCopy(), Sequence: metricsource.NextSequence(&fleetflowv1alpha1.AnalysisMetricStatus{})}
	made := func() int {
		var list batchv1.JobList
		require.NoError(t, f.List(t.Context(), &list))
		return len(list.Items)
	}
	_, later, err := jobs.Read(t.Context(), question)
	require.NoError(t, err)
	require.NotZero(t, later)
	require.Equal(t, 1, made())

	fleetflowv1alpha1.SetPhase(of, fleetflowv1alpha1.AnalysisStopped, "", time.Now())
	require.NoError(t, f.Status().Update(t.Context(), of))
	require.NoError(t, jobs.DeleteUnended(t.Context(), of), "nothing had been written of it")
	require.Zero(t, made())
	_, later, err = jobs.Read(t.Context(), question)
	require.NoError(t, err)
	assert.NotZero(t, later, "it is not known how it would have ended")
	assert.Zero(t, made())
}
