package metricsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// jobLookFirst and jobLookLast are after how long a Job is looked at again that has not ended: one that has begun just now, and at
	// the latest. It is less than a minute: within that, the activity waits itself.
	jobLookFirst = 5 * time.Second
	jobLookLast  = 40 * time.Second
	// jobLookShare is after which part of the time that a Job has taken it is looked at again.
	jobLookShare = 4
	// jobKept is for how long one that has ended is kept, for people who want to see its log.
	jobKept = time.Hour
	// jobSlack is how much longer than its timeout a Job may take, until it counts as one that is not ended: a hub may have no
	// controller of Jobs.
	jobSlack = time.Minute
	// jobMetric is how much of a metric's name a Job has in its own.
	jobMetric = 30
)

// Jobs runs the Jobs that metrics ask for.
type Jobs struct {
	Client client.Client
	Live   client.Reader
	// Reach is what metrics may reach on the hub.
	Reach analysis.Reach
	Clock clock.PassiveClock
}

// Read runs the Job of a question, or looks how it is. Later, if it is not zero, is after how long to look again.
func (j Jobs) Read(ctx context.Context, q Question) (reading analysis.Reading, later time.Duration, err error) {
	if why := j.Reach.Refuse(q.Metric.AnalysisMetric); why != "" {
		return analysis.Reading{Problem: why}, 0, nil
	}
	key := types.NamespacedName{Namespace: q.Metric.Job.Namespace, Name: nameOfJob(q)}
	var job batchv1.Job
	err = j.Live.Get(ctx, key, &job)
	switch {
	case apierrors.IsNotFound(err):
		return j.createJob(ctx, q, key)
	case err != nil:
		return reading, 0, fmt.Errorf("reading Job %s of metric %s: %w", key, q.Metric.Name, err)
	case !isOf(&job, q.Of):
		return analysis.Reading{Problem: fmt.Sprintf("there is a Job %s that is not of this analysis", key)}, 0, nil
	}
	return j.readJob(ctx, &job, timeoutOf(&job, q.Metric.Job))
}

// nameOfJob returns the name of the Job of a measurement: looking twice finds the same one.
func nameOfJob(q Question) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%s", q.Of.GetUID(), q.Of.GetStageAnalysisRunSpec().Attempt, q.Metric.Name))
	return fmt.Sprintf("%s-%s-%d", q.Metric.Name[:min(len(q.Metric.Name), jobMetric)], hex.EncodeToString(sum[:4]), q.Sequence)
}

func isOf(job *batchv1.Job, of fleetflowv1alpha1.StageAnalysisRunObject) bool {
	return job.Annotations[jobAnalysisAnnotation] == string(of.GetUID())
}

// createJob makes the Job, as kubectl create job --from does. It goes with its analysis where one can own the other.
func (j Jobs) createJob(ctx context.Context, q Question, key types.NamespacedName) (reading analysis.Reading, later time.Duration, err error) {
	if waits, err := j.isWaitedFor(ctx, q.Of); err != nil || !waits {
		return reading, jobLookFirst, err // a Job made now would stay: that of the ended attempt has been deleted
	}
	wanted := q.Metric.Job
	var cron batchv1.CronJob
	err = j.Live.Get(ctx, types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.FromCronJob}, &cron)
	if apierrors.IsNotFound(err) {
		return analysis.Reading{Problem: fmt.Sprintf("there is no CronJob %s/%s", wanted.Namespace, wanted.FromCronJob)}, 0, nil
	}
	if err != nil {
		return reading, 0, fmt.Errorf("reading CronJob %s/%s of metric %s: %w", wanted.Namespace, wanted.FromCronJob, q.Metric.Name, err)
	}
	if cron.Annotations[fleetflowv1alpha1.AnalysesMayRunAnnotation] != "true" {
		return analysis.Reading{Problem: fmt.Sprintf("CronJob %s/%s is not for analyses: its owner lets them run it by the annotation %s: \"true\"",
			wanted.Namespace, wanted.FromCronJob, fleetflowv1alpha1.AnalysesMayRunAnnotation)}, 0, nil
	}
	if cron.Spec.Suspend == nil || !*cron.Spec.Suspend {
		return analysis.Reading{Problem: fmt.Sprintf("CronJob %s/%s is not suspended: it runs by itself, too", wanted.Namespace,
			wanted.FromCronJob)}, 0, nil
	}
	err = j.Client.Create(ctx, newJob(&cron, q, key))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return reading, jobLookFirst, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return analysis.Reading{Problem: fmt.Sprintf("the hub refuses the Job: %s", apierrors.ReasonForError(err))}, 0, nil
	}
	return reading, 0, fmt.Errorf("creating Job %s of metric %s: %w", key, q.Metric.Name, err)
}

// isWaitedFor asks the hub whether an attempt is still to be measured: since the measuring activity has read it, it may have been
// stopped or waived.
func (j Jobs) isWaitedFor(ctx context.Context, of fleetflowv1alpha1.StageAnalysisRunObject) (bool, error) {
	run := fleetflowv1alpha1.NewStageAnalysisRun(of.GetNamespace(), of.GetName())
	err := j.Live.Get(ctx, client.ObjectKeyFromObject(of), run)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading analysis %s: %w", client.ObjectKeyFromObject(of), err)
	}
	return err == nil && run.GetUID() == of.GetUID() && run.GetStageAnalysisRunSpec().Attempt == of.GetStageAnalysisRunSpec().Attempt &&
		!fleetflowv1alpha1.PhaseOfAttempt(run).IsOver(), nil
}

// Annotations of the pods of Jobs, for the downward API: what is measured.
const (
	jobAnalysisAnnotation  = fleetflowv1alpha1.GroupName + "/stage-analysis-run-uid" // on the Job itself
	jobRunAnnotation       = fleetflowv1alpha1.GroupName + "/update-run"
	jobPlacementAnnotation = fleetflowv1alpha1.GroupName + "/placement"
	jobStageAnnotation     = fleetflowv1alpha1.GroupName + "/stage"
)

func newJob(cron *batchv1.CronJob, q Question, key types.NamespacedName) *batchv1.Job {
	template := cron.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: template.Spec}
	job.Labels = maps.Clone(template.Labels)
	job.Annotations = maps.Clone(template.Annotations)
	if job.Annotations == nil {
		job.Annotations = map[string]string{}
	}
	job.Annotations[jobAnalysisAnnotation] = string(q.Of.GetUID())
	if namespace := q.Of.GetNamespace(); namespace == "" || namespace == key.Namespace { // nothing owns what is in another namespace
		version, kind := fleetflowv1alpha1.StageAnalysisRunKind(namespace).ToAPIVersionAndKind()
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: q.Of.GetName(), UID: q.Of.GetUID()}}
	}
	seconds := int64(max(q.Metric.Job.EffectiveTimeout().Seconds(), 1))
	if of := job.Spec.ActiveDeadlineSeconds; of == nil || *of > seconds {
		job.Spec.ActiveDeadlineSeconds = &seconds
	}
	kept := int32(jobKept.Seconds())
	job.Spec.TTLSecondsAfterFinished = &kept
	if job.Spec.Template.Annotations == nil {
		job.Spec.Template.Annotations = map[string]string{}
	}
	job.Spec.Template.Annotations[jobRunAnnotation] = q.Of.GetStageAnalysisRunSpec().RunRef.Name
	job.Spec.Template.Annotations[jobPlacementAnnotation] = q.Placement
	job.Spec.Template.Annotations[jobStageAnnotation] = q.Of.GetStageAnalysisRunSpec().Stage
	return job
}

// timeoutOf returns how long a Job may take: what the metric says, or the CronJob, if that is less.
func timeoutOf(job *batchv1.Job, wanted *fleetflowv1alpha1.JobRun) time.Duration {
	if of := job.Spec.ActiveDeadlineSeconds; of != nil {
		return time.Duration(*of) * time.Second
	}
	return wanted.EffectiveTimeout()
}

// readJob returns how a Job has ended, if it has.
func (j Jobs) readJob(ctx context.Context, job *batchv1.Job,
	timeout time.Duration) (reading analysis.Reading, later time.Duration, err error) {
	late := fmt.Sprintf("the Job %s/%s has not ended within %s", job.Namespace, job.Name, timeout)
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return analysis.Reading{Decided: fleetflowv1alpha1.OutcomeSuccess, Message: "Job " + job.Name}, 0, nil
		case c.Type == batchv1.JobFailed && c.Reason == batchv1.JobReasonDeadlineExceeded:
			return analysis.Reading{Problem: late}, 0, nil
		case c.Type == batchv1.JobFailed:
			return analysis.Reading{Decided: fleetflowv1alpha1.OutcomeFailure, Message: fmt.Sprintf("Job %s: %s", job.Name, c.Reason)}, 0, nil
		}
	}
	if taken := j.Clock.Since(job.CreationTimestamp.Time); taken < timeout+jobSlack {
		return reading, min(max(taken/jobLookShare, jobLookFirst), jobLookLast), nil
	}
	if err := j.deleteJob(ctx, job); err != nil {
		return reading, 0, err
	}
	return analysis.Reading{Problem: late}, 0, nil
}

// deleteJob deletes a Job that has not ended, with its pods.
func (j Jobs) deleteJob(ctx context.Context, job *batchv1.Job) error {
	err := j.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s/%s, which has not ended: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// DeleteUnended deletes the Jobs of the attempt of an analysis that its status is about, as far as they have not ended: nothing waits
// for them any more. Those that have ended stay, for people who want to see their logs.
func (j Jobs) DeleteUnended(ctx context.Context, of fleetflowv1alpha1.StageAnalysisRunObject) error {
	run, is := of.DeepCopyObject().(fleetflowv1alpha1.StageAnalysisRunObject)
	if !is {
		return nil
	}
	spec := run.GetStageAnalysisRunSpec()
	status := run.GetStageAnalysisRunStatus()
	spec.Attempt = status.ObservedAttempt
	for i := range spec.Metrics {
		if spec.Metrics[i].Job == nil || j.Reach.Refuse(spec.Metrics[i].AnalysisMetric) != "" {
			continue
		}
		counted := &fleetflowv1alpha1.AnalysisMetricStatus{} // a Job is made before anything is written
		if i < len(status.Metrics) {
			counted = &status.Metrics[i]
		}
		q := Question{Metric: spec.Metrics[i], Of: run, Sequence: NextSequence(counted)}
		key := types.NamespacedName{Namespace: q.Metric.Job.Namespace, Name: nameOfJob(q)}
		var job batchv1.Job
		err := j.Live.Get(ctx, key, &job)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading Job %s of metric %s: %w", key, q.Metric.Name, err)
		case !isOf(&job, run) || hasEnded(&job):
			continue
		}
		if err := j.deleteJob(ctx, &job); err != nil {
			return err
		}
	}
	return nil
}

// hasEnded reports whether a Job is complete or has failed.
func hasEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}
