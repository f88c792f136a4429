package stagetask

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// analysis waits until what its ClusterStageAnalysisRun or StageAnalysisRun has measured is good, and says what to do if it is not.
type analysis struct{}

// Position returns what the analyses of runs call the side.
func (s Side) Position() string {
	switch s {
	case Before:
		return fleetflowv1alpha1.PositionBefore
	case During:
		return fleetflowv1alpha1.PositionDuring
	}
	return fleetflowv1alpha1.PositionAfter
}

// Validate implements Type.
func (analysis) Validate(_ Side, config placementv1beta1.StageTask) string {
	switch {
	case config.Analysis == nil || len(config.Analysis.Templates) == 0:
		return "an Analysis needs templates"
	case config.WaitTime != nil:
		return "an Analysis has no waitTime"
	}
	return ""
}

// Freeze implements Type.
func (analysis) Freeze(names Names, stage string, side Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{
		Type:            placementv1beta1.StageTaskTypeAnalysis,
		AnalysisRunName: fleetflowv1alpha1.AnalysisRunName(names.Run, stage, side.Position()),
	}
}

// Describe implements Type.
func (analysis) Describe(task Task) State {
	state := State{Title: "analysis", Subject: task.Status.AnalysisRunName, RunPhase: "Analyzing"}
	if started := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeAnalysisStarted); started != nil {
		state.Begun = started.LastTransitionTime.Time
	}
	state.readDone(task.Status, placementv1beta1.ConditionTypeAnalysisSucceeded)
	measured := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded)
	if measured != nil && measured.Status == metav1.ConditionFalse && measured.Reason != placementv1beta1.ReasonStageTaskAnalysisStopped {
		state.Failed = true
		state.Message = measured.Message
	}
	return state
}

// measuredWithin is how soon a measurement has to be due for the activity that measures to wait for it, not the workflow.
const measuredWithin = time.Minute

// Check implements Type. An attempt that has not passed is acted upon once, and after the user has resumed the run there is
// another: that the run's generation has changed since the condition was recorded says so.
func (a analysis) Check(ctx context.Context, check Check) (Outcome, error) {
	measured := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded)
	if measured != nil && measured.Status == metav1.ConditionTrue {
		return Outcome{}, nil
	}
	if waiver, err := check.Hub.Waive(ctx, check); err != nil || waiver != "" {
		return a.waived(check, waiver), err
	}
	again := isResumedAfter(measured, check.Run)
	run, refused, err := check.Hub.Analysis(ctx, check, again)
	if err != nil || refused != "" {
		return Outcome{Refused: refused}, err
	}
	kind := fleetflowv1alpha1.StageAnalysisRunKind(run.GetNamespace()).Kind
	started := metav1.Condition{
		Type: placementv1beta1.ConditionTypeAnalysisStarted, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonStageTaskAnalysisStarted, Message: fmt.Sprintf("%s %s measures, attempt %d", kind, run.GetName(),
			run.GetStageAnalysisRunSpec().Attempt),
	}
	if phase := fleetflowv1alpha1.PhaseOfAttempt(run); phase.IsOver() {
		return a.concluded(check, run, phase, started), nil
	}
	if measured == nil || again {
		check.Hub.Report("AnalysisStarted", fmt.Sprintf("Stage %s is analysed: %s %s measures, attempt %d", check.Stage.StageName, kind,
			run.GetName(), run.GetStageAnalysisRunSpec().Attempt))
	}
	outcome := Outcome{Conditions: []metav1.Condition{started, {
		Type: placementv1beta1.ConditionTypeAnalysisSucceeded, Status: metav1.ConditionUnknown,
		Reason: placementv1beta1.ReasonStageTaskAnalysisStarted, Message: "What is measured has not been enough yet",
	}}}
	if next := run.GetStageAnalysisRunStatus().NextMeasurementTime; fleetflowv1alpha1.PhaseOfAttempt(
		run) == fleetflowv1alpha1.AnalysisRunning && next != nil && next.Sub(check.Now) >= measuredWithin {
		outcome.CheckAgain = next.Time
		return outcome, nil
	}
	outcome.Measure = run.GetName()
	return outcome, nil
}

// isResumedAfter reports whether the user has resumed the run since an attempt that has not passed was recorded.
func isResumedAfter(measured *metav1.Condition, run placementv1beta1.UpdateRunObject) bool {
	return measured != nil && measured.Status == metav1.ConditionFalse &&
		measured.ObservedGeneration != 0 && measured.ObservedGeneration != run.GetGeneration()
}

// waived lets the stage pass, by an exemption.
func (analysis) waived(check Check, waiver string) Outcome {
	if waiver == "" {
		return Outcome{}
	}
	check.Hub.ReportWarning("AnalysisWaived", fmt.Sprintf("The analysis of stage %s, %s, is waived: %s", check.Stage.StageName,
		check.Status.AnalysisRunName, waiver))
	return Outcome{Conditions: []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeAnalysisSucceeded, Status: metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonStageTaskAnalysisWaived,
		Message: "Waived: " + waiver,
	}}}
}

// words are what the phases of an analysis that has ended are called.
var words = map[fleetflowv1alpha1.AnalysisPhase]struct{ reason, event string }{
	fleetflowv1alpha1.AnalysisSucceeded:    {reason: placementv1beta1.ReasonStageTaskAnalysisSucceeded, event: "AnalysisSucceeded"},
	fleetflowv1alpha1.AnalysisFailed:       {reason: placementv1beta1.ReasonStageTaskAnalysisFailed, event: "AnalysisFailed"},
	fleetflowv1alpha1.AnalysisInconclusive: {reason: placementv1beta1.ReasonStageTaskAnalysisInconclusive, event: "AnalysisInconclusive"},
	fleetflowv1alpha1.AnalysisError:        {reason: placementv1beta1.ReasonStageTaskAnalysisError, event: "AnalysisError"},
}

// concluded returns what follows from an analysis that has ended.
func (analysis) concluded(check Check, run fleetflowv1alpha1.StageAnalysisRunObject, phase fleetflowv1alpha1.AnalysisPhase,
	started metav1.Condition) Outcome {
	ended := metav1.Condition{
		Type: placementv1beta1.ConditionTypeAnalysisSucceeded, Status: metav1.ConditionTrue, Reason: words[phase].reason,
		Message: fleetflowv1alpha1.MessageOfAttempt(run),
	}
	action := actionAfter(check.Config.Analysis, phase)
	note := fmt.Sprintf("The analysis of stage %s, %s, has ended as %s: %s", check.Stage.StageName, run.GetName(), phase,
		fleetflowv1alpha1.MessageOfAttempt(run))
	switch {
	case phase == fleetflowv1alpha1.AnalysisSucceeded:
	case run.GetStageAnalysisRunSpec().DryRun:
		ended.Reason = placementv1beta1.ReasonStageTaskAnalysisDryRun
		ended.Message = fmt.Sprintf("A dry run, which passes; it has ended as %s: %s", phase, fleetflowv1alpha1.MessageOfAttempt(run))
	case action == placementv1beta1.AnalysisProceed:
		ended.Message += "; the strategy says Proceed"
	default:
		ended.Status = metav1.ConditionFalse
	}
	outcome := Outcome{Conditions: []metav1.Condition{started, ended}}
	before := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeAnalysisSucceeded)
	if before == nil || before.Status != ended.Status {
		if phase == fleetflowv1alpha1.AnalysisSucceeded {
			check.Hub.Report(words[phase].event, note)
		} else {
			check.Hub.ReportWarning(words[phase].event, note)
		}
	}
	if ended.Status == metav1.ConditionFalse {
		outcome.Action = action
		outcome.Because = fmt.Sprintf("the analysis of stage `%s`, %s, has ended as %s: %s", check.Stage.StageName, run.GetName(), phase,
			fleetflowv1alpha1.MessageOfAttempt(run))
	}
	return outcome
}

// judgements are the conditions of tasks that say whether what was found out is good, and the reasons that they get if the run ends
// before that is known.
var judgements = map[string]string{
	placementv1beta1.ConditionTypeAnalysisSucceeded: placementv1beta1.ReasonStageTaskAnalysisStopped,
	placementv1beta1.ConditionTypeRehearsed:         placementv1beta1.ReasonStageTaskRehearsalStopped,
	placementv1beta1.ConditionTypeImagesPulled:      placementv1beta1.ReasonStageTaskPrePullStopped,
}

// IsJudgement reports whether a condition of a task says whether what was found out is good. One keeps the generation that it was made at.
func IsJudgement(conditionType string) bool {
	_, is := judgements[conditionType]
	return is
}

// RecordEnd records in the tasks of a stage whose run ends which of them still find something out: nothing will any more.
func RecordEnd(stage *placementv1beta1.StageUpdatingStatus, generation int64, now time.Time) {
	for task := range Statuses(stage) {
		for judgement, stopped := range judgements {
			found := meta.FindStatusCondition(task.Conditions, judgement)
			if found == nil || found.Status != metav1.ConditionUnknown {
				continue
			}
			meta.SetStatusCondition(&task.Conditions, metav1.Condition{
				Type: judgement, Status: metav1.ConditionFalse, Reason: stopped, Message: "The run has ended first",
				ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
			})
		}
	}
}

// actionAfter returns what the task asks for after a phase. What could not be measured takes nothing back.
func actionAfter(config *placementv1beta1.AnalysisConfig, phase fleetflowv1alpha1.AnalysisPhase) placementv1beta1.AnalysisAction {
	if config == nil {
		config = &placementv1beta1.AnalysisConfig{}
	}
	action := config.OnFailure
	switch phase {
	case fleetflowv1alpha1.AnalysisInconclusive:
		action = config.OnInconclusive
	case fleetflowv1alpha1.AnalysisError:
		if action = config.OnError; action == placementv1beta1.AnalysisRollback {
			action = placementv1beta1.AnalysisPause
		}
	}
	return cmp.Or(action, placementv1beta1.AnalysisPause)
}
