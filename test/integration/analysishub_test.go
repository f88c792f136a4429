//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// template is a StageAnalysis of one metric.
func template(name string, metric fleetflowv1alpha1.AnalysisMetric) *fleetflowv1alpha1.StageAnalysis {
	return &fleetflowv1alpha1.StageAnalysis{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: fleetflowv1alpha1.StageAnalysisSpec{Metrics: []fleetflowv1alpha1.AnalysisMetric{metric}},
	}
}

// onTheHub is a metric that reads an object of the namespace for checks.
func onTheHub(kind, namespace, name string) fleetflowv1alpha1.AnalysisMetric {
	return fleetflowv1alpha1.AnalysisMetric{
		Name: "approved", Success: `object.data.approved == "yes"`,
		Objects: &fleetflowv1alpha1.ObjectReading{From: fleetflowv1alpha1.ObjectsFromHub, APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name},
	}
}

// measuredBy is a task that ends the run unless what a template measures is good.
func measuredBy(template string) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &placementv1beta1.AnalysisConfig{
		Templates: []placementv1beta1.AnalysisTemplate{{Name: template}}, OnFailure: placementv1beta1.AnalysisAbort,
	}}
}

func (s *spec) createValid(template *fleetflowv1alpha1.StageAnalysis) {
	s.Helper()
	s.create(template)
	s.Cleanup(func() { _ = s.hub.Delete(context.WithoutCancel(s.Context()), template) })
	await(s, s.hub, template.DeepCopy(), "to be valid", func(a *fleetflowv1alpha1.StageAnalysis) error {
		return isTrue(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted, a.Generation)
	})
}

// requireFailed waits until a run has failed, and returns it.
func (s *spec) requireFailed(run *placementv1beta1.ClusterStagedUpdateRun, why string) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	ended := s.awaitEnd(run)
	failed := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	require.Equal(s, metav1.ConditionFalse, failed.Status)
	require.Contains(s, failed.Message, why)
	return ended
}

// analysisReadsTheHub lets a run pass because of what an object of the hub says, and ends one because of that. What metrics may not
// read, they do not.
func analysisReadsTheHub(s *spec) {
	require.ErrorContains(s, s.hub.Create(s.Context(), template(s.name+"-secret", onTheHub("Secret", controlplane.ChecksNamespace, s.name))), "no metric reads a Secret")
	outside := template(s.name+"-outside", onTheHub("ConfigMap", s.name, configMapName))
	s.create(outside)
	defer s.delete(s.hub, outside)
	await(s, s.hub, outside.DeepCopy(), "to be refused", func(a *fleetflowv1alpha1.StageAnalysis) error {
		valid := meta.FindStatusCondition(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
		if valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason != fleetflowv1alpha1.ReasonObjectRefused {
			return fmt.Errorf("its conditions are %s", spoken(a.Status.Conditions))
		}
		return nil
	})

	change := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.ChecksNamespace, Name: s.name}, Data: map[string]string{"approved": "yes"}}
	s.create(change)
	defer s.delete(s.hub, change)
	s.createValid(template(s.name, onTheHub("ConfigMap", change.Namespace, change.Name)))
	s.externalPlacement()
	s.strategy(staging(measuredBy(s.name)), canary())
	run := s.startRun("approved", "0")
	s.awaitSucceeded(run)
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisSucceeded)
	s.awaitValue(value1, allMembers...)

	update(s, s.hub, change.DeepCopy(), func(c *corev1.ConfigMap) { c.Data["approved"] = "no" })
	s.changeTo(value2)
	run = s.startRun("refused", "")
	ended := s.requireFailed(run, "approved")
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisFailed)
	require.Nil(s, ended.Status.StagesStatus[1].StartTime, "stage canary was not begun")

	bad := s.name + "-outside"
	s.strategyNamed(bad, staging(measuredBy(bad)), canary())
	run = s.run("outside", "")
	run.Spec.StagedUpdateStrategyName = bad
	s.create(run)
	refused := s.awaitEnd(run)
	require.Contains(s, meta.FindStatusCondition(refused.Status.Conditions, placementv1beta1.ConditionTypeInitialized).Message,
		"objects of kind ConfigMap in namespace "+s.name+" are not for metrics")
}

// analysisRunsAJob lets a run pass because its Job succeeds, and ends one whose Job fails. The hub has the Job controller of
// Kubernetes, and no nodes: this process says how the pods end.
func analysisRunsAJob(s *spec) {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: controlplane.ChecksNamespace, Name: s.name, Annotations: map[string]string{fleetflowv1alpha1.AnalysesMayRunAnnotation: "true"},
	}}
	cron.Spec.Schedule = "@yearly"
	cron.Spec.Suspend = new(true)
	cron.Spec.JobTemplate.Spec.BackoffLimit = new(int32(0))
	cron.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "e2e", Image: "registry.invalid/e2e:1"}},
	}
	s.create(cron)
	defer s.delete(s.hub, cron)
	s.createValid(template(s.name, fleetflowv1alpha1.AnalysisMetric{
		Name: "e2e", Job: &fleetflowv1alpha1.JobRun{Namespace: cron.Namespace, FromCronJob: cron.Name, Timeout: &fleetflowv1alpha1.Duration{Duration: 5 * time.Minute}},
	}))
	s.externalPlacement()
	s.strategy(staging(measuredBy(s.name)), canary(measuredBy(s.name)))

	run := s.startRun("works", "0")
	s.endJobOf(run, "staging", corev1.PodSucceeded)
	s.endJobOf(run, "canary", corev1.PodSucceeded)
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisSucceeded)

	s.changeTo(value2)
	run = s.startRun("breaks", "")
	s.endJobOf(run, "staging", corev1.PodFailed)
	s.requireFailed(run, batchv1.JobReasonBackoffLimitExceeded)
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisFailed)
	stopped := await(s, s.hub, &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-canary-after"}}, "to be stopped",
		func(a *fleetflowv1alpha1.ClusterStageAnalysisRun) error {
			if fleetflowv1alpha1.PhaseOfAttempt(a) != fleetflowv1alpha1.AnalysisStopped {
				return fmt.Errorf("its status is %+v", a.Status)
			}
			return nil
		})
	require.Contains(s, fleetflowv1alpha1.MessageOfAttempt(stopped), "The run has ended first: ")

	// One that is still measuring when its run ends is stopped as well, and its Job goes.
	run = s.startRun("goes-back", "")
	job := s.awaitJobOf(run, "staging")
	out, code := s.kubectlFleet("rollback", run.Name, "--reason", "nobody waits for it", "--yes")
	require.Zero(s, code, out)
	s.requireFailed(run, "rolls it back")
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisStopped)
	awaitGone(s, s.hub, job)
	out, code = s.kubectlFleet("analysis", "show", run.Name)
	require.Zero(s, code, out)
	require.Contains(s, out, "Stopped, attempt 1. The run has ended first: ")
	out, code = s.kubectlFleet("history", s.name, "--only", "run")
	require.Zero(s, code, out)
	require.Contains(s, out, `"nobody waits for it"`)
	s.awaitSucceeded(&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-rollback"}})
}

// awaitJobOf waits for the Job of the analysis after a stage.
func (s *spec) awaitJobOf(run *placementv1beta1.ClusterStagedUpdateRun, stage string) *batchv1.Job {
	s.Helper()
	isOf := func(job *batchv1.Job) bool {
		return slices.ContainsFunc(job.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == run.Name+"-"+stage+"-after" })
	}
	jobs := awaitAll(s, s.hub, "to have that of stage "+stage, func(all []*batchv1.Job) error {
		if !slices.ContainsFunc(all, isOf) {
			return fmt.Errorf("there are %d Jobs", len(all))
		}
		return nil
	}, client.InNamespace(controlplane.ChecksNamespace))
	return jobs[slices.IndexFunc(jobs, isOf)]
}

// endJobOf ends the pod of the Job of the analysis after a stage, as a kubelet does.
func (s *spec) endJobOf(run *placementv1beta1.ClusterStagedUpdateRun, stage string, phase corev1.PodPhase) {
	s.Helper()
	job := s.awaitJobOf(run, stage)
	pods := awaitAll(s, s.hub, "to be one", func(all []*corev1.Pod) error {
		if len(all) != 1 {
			return fmt.Errorf("Job %s has %d pods", job.Name, len(all))
		}
		return nil
	}, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	require.Equal(s, run.Name, pods[0].Annotations[fleetflowv1alpha1.GroupName+"/update-run"])
	pods[0].Status.Phase = phase
	require.NoError(s, s.hub.Status().Update(s.Context(), pods[0]))
}
