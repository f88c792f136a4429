package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// SourceChecker says whether a metric source can be used, as far as that is known without calling it.
type SourceChecker interface {
	Check(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (*analysis.Problem, error)
}

// analyst makes the analyses of a run.
type analyst struct {
	acts *Activities
	run  placementv1beta1.UpdateRunObject
}

// prepareAll makes all analyses of a run whose plan is made, before any of its clusters changes: what is wrong with a
// template ends the run then. All are put together before the first is made.
func (a analyst) prepareAll(ctx context.Context) error {
	type place struct {
		task  stagetask.Task
		stage *placementv1beta1.StageUpdatingStatus
	}
	var places []place
	for i := range a.run.GetUpdateRunStatus().StagesStatus {
		stage := &a.run.GetUpdateRunStatus().StagesStatus[i]
		for _, side := range stagetask.Sides() {
			for _, task := range updaterun.Tasks(a.run, i, side) {
				if task.Status.Type == placementv1beta1.StageTaskTypeAnalysis && len(stage.Clusters) > 0 {
					places = append(places, place{task, stage}) // a stage without clusters skips its tasks
				}
			}
		}
	}
	for _, p := range places {
		if _, refused, err := a.resolve(ctx, p.task, p.stage); err != nil || refused != "" {
			return asRefusal(refused, err)
		}
	}
	for _, p := range places {
		if _, refused, err := a.ensure(ctx, p.task, p.stage, false); err != nil || refused != "" {
			return asRefusal(refused, err)
		}
	}
	return nil
}

func asRefusal(refused string, err error) error {
	if err != nil {
		return err
	}
	return refuse("%s", refused)
}

// ensure reads the analysis of a task, makes it if it is missing, and begins another attempt if that is asked for and the
// newest one has ended.
func (a analyst) ensure(
	ctx context.Context, task stagetask.Task, stage *placementv1beta1.StageUpdatingStatus, again bool,
) (run fleetflowv1alpha1.StageAnalysisRunObject, refused string, err error) {
	name := task.Status.AnalysisRunName
	namespace := a.run.GetNamespace()
	found, err := hubread.Existing(ctx, a.acts.Live, fleetflowv1alpha1.NewStageAnalysisRun(namespace, name), "analysis")
	if meta.IsNoMatchError(errors.Unwrap(err)) {
		return nil, notServed(fleetflowv1alpha1.StageAnalysisRunKind(namespace).Kind), nil
	}
	if err != nil {
		return nil, "", err
	}
	if found != nil && found.GetStageAnalysisRunSpec().RunRef.UID == a.run.GetUID() {
		if !again || !fleetflowv1alpha1.PhaseOfAttempt(found).IsOver() {
			return found, "", nil
		}
		return a.tryAgain(ctx, found, task, stage)
	}
	if found != nil {
		if err := client.IgnoreNotFound(a.acts.Client.Delete(ctx, found, client.Preconditions{UID: new(found.GetUID())})); err != nil {
			return nil, "", fmt.Errorf("replacing analysis %s of an earlier run: %w", name, err)
		}
	}
	spec, refused, err := a.resolve(ctx, task, stage)
	if err != nil || refused != "" {
		return nil, refused, err
	}
	made := fleetflowv1alpha1.NewStageAnalysisRun(namespace, name)
	*made.GetStageAnalysisRunSpec() = spec
	made.SetLabels(map[string]string{fleetflowv1alpha1.AnalysisRunLabel: a.run.GetName()})
	made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(a.run, placementv1beta1.ScopeOf(a.run).UpdateRunKind())})
	if err := a.acts.Client.Create(ctx, made); err != nil {
		return nil, "", fmt.Errorf("creating analysis %s: %w", name, err)
	}
	return made, "", nil
}

// tryAgain begins another attempt, with what the templates say now.
func (a analyst) tryAgain(
	ctx context.Context, run fleetflowv1alpha1.StageAnalysisRunObject, task stagetask.Task, stage *placementv1beta1.StageUpdatingStatus,
) (fleetflowv1alpha1.StageAnalysisRunObject, string, error) {
	spec, refused, err := a.resolve(ctx, task, stage)
	if err != nil || refused != "" {
		return nil, refused, err
	}
	spec.Attempt = run.GetStageAnalysisRunSpec().Attempt + 1
	*run.GetStageAnalysisRunSpec() = spec
	if err := a.acts.Client.Update(ctx, run); err != nil {
		return nil, "", fmt.Errorf("beginning another attempt of analysis %s: %w", run.GetName(), err)
	}
	return run, "", nil
}

// resolve puts the templates of a task together.
func (a analyst) resolve(ctx context.Context, task stagetask.Task,
	stage *placementv1beta1.StageUpdatingStatus) (spec fleetflowv1alpha1.StageAnalysisRunSpec, refused string, err error) {
	config := task.Config.Analysis
	if config == nil {
		return spec, "the strategy has no templates any more", nil
	}
	var templates []analysis.Template
	for _, wanted := range config.Templates {
		template, refused, err := a.readTemplate(ctx, wanted.Name)
		if err != nil || refused != "" {
			return spec, refused, err
		}
		templates = append(templates, template)
	}
	given := map[string]string{}
	for _, arg := range config.Args {
		given[arg.Name] = arg.Value
	}
	status := a.run.GetUpdateRunStatus()
	spec, problem := analysis.Resolve(analysis.Subject{
		Namespace: a.run.GetNamespace(), Run: a.run.GetName(), RunUID: a.run.GetUID(), Placement: a.run.GetUpdateRunSpec().PlacementName,
		Stage: stage.StageName, Position: task.Side.Position(), Snapshot: status.ResourceSnapshotIndexUsed,
		Clusters: updaterun.ClusterNames(stage),
	}, templates, given, config.DryRun)
	if problem != nil {
		return spec, fmt.Sprintf("the analysis %s stage `%s`: %s", strings.ToLower(task.Side.Position()), stage.StageName, problem.Text), nil
	}
	return spec, "", nil
}

// readTemplate reads a template with its sources, and says why no analysis can be made of it. That a source cannot be reached now
// is no reason: that it lacks its Secret is.
func (a analyst) readTemplate(ctx context.Context, name string) (t analysis.Template, refused string, err error) {
	t.Sources = map[string]*fleetflowv1alpha1.MetricSource{}
	t.Reach = a.acts.Reach
	t.Object, err = hubread.Existing(ctx, a.acts.Live, &fleetflowv1alpha1.StageAnalysis{ObjectMeta: named(name)}, "StageAnalysis")
	if meta.IsNoMatchError(errors.Unwrap(err)) {
		return t, notServed("StageAnalysis"), nil
	}
	if err != nil {
		return t, "", err
	}
	if t.Object == nil {
		return t, fmt.Sprintf("StageAnalysis `%s` not found", name), nil
	}
	if !t.Object.AllowsNamespace(a.run.GetNamespace()) {
		return t, fmt.Sprintf("StageAnalysis `%s` is not for runs of namespace %s: see its allowedNamespaces", name, a.run.GetNamespace()), nil
	}
	for i := range t.Object.Spec.Metrics {
		source, _ := analysis.SourceOf(t.Object.Spec.Metrics[i])
		if _, known := t.Sources[source]; known || source == "" {
			continue
		}
		found, why, err := a.readSource(ctx, source)
		if err != nil {
			return t, "", err
		}
		if why != "" {
			return t, fmt.Sprintf("MetricSource `%s` of StageAnalysis `%s` %s", source, name, why), nil
		}
		t.Sources[source] = found
	}
	if problem := analysis.CheckTemplate(t); problem != nil {
		return t, fmt.Sprintf("StageAnalysis `%s` is not valid: %s", name, problem.Text), nil
	}
	return t, "", nil
}

// readSource reads a source of metrics, nil if there is none, and says why the run has nothing of it.
func (a analyst) readSource(ctx context.Context, name string) (found *fleetflowv1alpha1.MetricSource, refused string, err error) {
	found, err = hubread.Existing(ctx, a.acts.Live, &fleetflowv1alpha1.MetricSource{ObjectMeta: named(name)}, "MetricSource")
	if err != nil || found == nil {
		return nil, "", err
	}
	if !found.AllowsNamespace(a.run.GetNamespace()) {
		return nil, fmt.Sprintf("is not for runs of namespace %s: see its allowedNamespaces", a.run.GetNamespace()), nil
	}
	if a.acts.Sources == nil {
		return found, "", nil
	}
	problem, err := a.acts.Sources.Check(ctx, found)
	if err != nil || problem == nil {
		return found, "", err
	}
	return nil, "is not ready: " + problem.Text, nil
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func notServed(kind string) string {
	return fmt.Sprintf("the hub does not serve the kind %s: apply the CustomResourceDefinitions of the hub agent's chart", kind)
}

// Analysis implements stagetask.Hub.
func (h taskHub) Analysis(ctx context.Context, check stagetask.Check,
	again bool) (fleetflowv1alpha1.StageAnalysisRunObject, string, error) {
	return analyst{h.acts, h.run}.ensure(ctx, check.Task, check.Stage, again)
}

// Waive implements stagetask.Hub. That the analysis is waived is written into the analysis before the run goes by it.
func (h taskHub) Waive(ctx context.Context, check stagetask.Check) (string, error) {
	exemptions, err := hubread.Exemptions(ctx, h.acts.Live, h.acts.Exemptions, brake.SubjectOfRun(h.run, nil, check.Stage.StageName))
	if err != nil {
		return "", err
	}
	exemption := exemptions.From(fleetflowv1alpha1.ExemptFromAnalysis, check.Stage.StageName)
	if exemption == nil || !check.Now.Before(exemption.Spec.ExpirationTime.Time) {
		return "", nil
	}
	waiver := exemption.Record()
	analysed, err := hubread.Existing(ctx, h.acts.Live, fleetflowv1alpha1.NewStageAnalysisRun(h.run.GetNamespace(),
		check.Status.AnalysisRunName), "analysis")
	if err != nil || analysed == nil || fleetflowv1alpha1.PhaseOfAttempt(analysed) == fleetflowv1alpha1.AnalysisWaived {
		return waiver, err
	}
	fleetflowv1alpha1.SetPhase(analysed, fleetflowv1alpha1.AnalysisWaived, truncateText(waiver, maxNote), check.Now)
	if err := h.acts.Client.Status().Update(ctx, analysed); err != nil {
		return "", fmt.Errorf("waiving analysis %s: %w", analysed.GetName(), err)
	}
	return waiver, nil
}

// ReportWarning implements stagetask.Hub.
func (h taskHub) ReportWarning(reason, note string) {
	h.acts.runs().emitStageWarning(h.run, h.stage, reason, truncateText(note, maxNote))
}

// actOn does with a run what a task asks for whose conditions are recorded, and says whether there was anything to do.
func (s runStore) actOn(ctx context.Context, run placementv1beta1.UpdateRunObject, checked []checkedTask) (acted bool, err error) {
	for _, c := range checked {
		switch c.outcome.Action {
		case "":
			continue
		case placementv1beta1.AnalysisPause:
			return true, s.pauseAfter(ctx, run, c.Status.Type, c.outcome.Because)
		case placementv1beta1.AnalysisRollback:
			return true, s.rollBackRun(ctx, run, c.outcome.Because)
		default:
			return true, refuse("%s", cannotContinue(c.outcome.Because))
		}
	}
	return false, nil
}

// eventApprovalExpired is the reason of events about runs that stop because a stage was not approved in time.
const eventApprovalExpired = "ApprovalExpired"

// pauseAfter stops a run after an analysis or a rehearsal that has not passed, or an approval that was not given in time.
func (s runStore) pauseAfter(ctx context.Context, run placementv1beta1.UpdateRunObject, task placementv1beta1.StageTaskType,
	why string) error {
	before := client.MergeFrom(placementv1beta1.DeepCopyOf(run))
	run.GetUpdateRunSpec().State = placementv1beta1.StateStop
	if err := s.client.Patch(ctx, run, before); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("stopping run %s, as %s: %w", run.GetName(), why, err)
	}
	event := "AnalysisPaused"
	next := "measure"
	switch task {
	case placementv1beta1.StageTaskTypeRehearsal:
		event = "RehearsalPaused"
		next = "ask the clusters"
	case placementv1beta1.StageTaskTypeApproval:
		event = eventApprovalExpired
		next = "ask for the approval"
	}
	s.emitWarning(run, event, truncateText("The run stops: "+why, maxNote-80)+"; set spec.state to Run to "+next+" once more")
	return nil
}

// measureOf returns what the checks of tasks ask to measure; nil for nothing.
func measureOf(in wf.GateRequest, checked []checkedTask) *wf.MeasureRequest {
	for _, c := range checked {
		if c.outcome.Measure != "" {
			return &wf.MeasureRequest{Run: in.Run, Analysis: c.outcome.Measure, Stage: in.Stage}
		}
	}
	return nil
}
