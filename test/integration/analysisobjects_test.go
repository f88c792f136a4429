//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// analysisOfObjects is a template that looks at a ConfigMap on each cluster, whose name is an argument. It needs no source.
func (s *spec) analysisOfObjects() *fleetflowv1alpha1.StageAnalysis {
	s.Helper()
	template := &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	template.Spec.Args = []fleetflowv1alpha1.AnalysisParameter{{Name: "object"}}
	template.Spec.Metrics = []fleetflowv1alpha1.AnalysisMetric{{
		Name: "applied", PerCluster: &fleetflowv1alpha1.PerCluster{Missing: fleetflowv1alpha1.OutcomeFailure},
		Objects: &fleetflowv1alpha1.ObjectReading{
			From: fleetflowv1alpha1.ObjectsFromWorks, APIVersion: "v1", Kind: "ConfigMap", Namespace: s.name, Name: "$(args.object)",
		},
		Success: `conditions.Applied == "True" && object.metadata.name == args.object`,
	}}
	s.create(template)
	await(s, s.hub, template.DeepCopy(), "to be valid", func(a *fleetflowv1alpha1.StageAnalysis) error {
		return isTrue(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted, a.Generation)
	})
	return template
}

// lookingFor is a stage that passes if an object is applied on its clusters, and is taken back otherwise.
func (s *spec) lookingFor(object string) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeAnalysis, Analysis: &placementv1beta1.AnalysisConfig{
		Templates: []placementv1beta1.AnalysisTemplate{{Name: s.name}},
		Args:      []placementv1beta1.AnalysisArgument{{Name: "object", Value: object}}, OnFailure: placementv1beta1.AnalysisRollback,
	}}
}

// analysisLooksAtObjects lets a stage pass because of what its clusters report of an object, takes one back that lacks it, and
// has the command line measure the same.
func analysisLooksAtObjects(s *spec) {
	template := s.analysisOfObjects()
	defer s.delete(s.hub, template)
	s.externalPlacement()
	s.strategy(staging(s.lookingFor(configMapName)), canary())
	run := s.startRun("there", "0")
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisSucceeded)

	// From the desk of a user: for the clusters of the stage, and for an object that is nowhere.
	out, code := s.kubectlFleet("analysis", "try", s.name, "--arg", "object="+configMapName, "--run", run.Name, "--stage", "staging")
	require.Zero(s, code, out)
	require.Regexp(s, `applied +Success`, out)
	out, code = s.kubectlFleet("analysis", "try", s.name, "--arg", "object=elsewhere", "--run", run.Name)
	require.Contains(s, out, "Failure", "exit code %d", code)
	s.Logf("try of an object that is nowhere:\n%s", out)

	elsewhere := s.name + "-elsewhere"
	s.strategyNamed(elsewhere, staging(s.lookingFor("elsewhere")), canary())
	s.changeTo(value2)
	run = s.run("missing", "")
	run.Spec.StagedUpdateStrategyName = elsewhere
	s.create(run)
	ended := s.awaitEnd(run)
	failed := meta.FindStatusCondition(ended.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	require.Equal(s, metav1.ConditionFalse, failed.Status)
	require.Contains(s, failed.Message, "applied")
	require.Nil(s, ended.Status.StagesStatus[1].StartTime, "stage canary was not begun")
	s.requireMeasured(run, fleetflowv1alpha1.AnalysisFailed)
	s.awaitSucceeded(&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-rollback"}})
	s.awaitValue(value1, allMembers...)
}

// requireMeasured waits until the analysis after stage staging of a run has ended, as it should.
func (s *spec) requireMeasured(run *placementv1beta1.ClusterStagedUpdateRun, phase fleetflowv1alpha1.AnalysisPhase) {
	s.Helper()
	measured := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-staging-after"}}
	await(s, s.hub, measured, "to be "+string(phase), func(a *fleetflowv1alpha1.ClusterStageAnalysisRun) error {
		if fleetflowv1alpha1.PhaseOfAttempt(a) != phase {
			return fmt.Errorf("its status is %+v", a.Status)
		}
		return nil
	})
}
