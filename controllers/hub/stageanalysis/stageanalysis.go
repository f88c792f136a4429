// Package stageanalysis writes into the status of StageAnalyses whether they can be used, and into that of MetricSources, and deletes
// Jobs that nothing waits for any more. It measures nothing: runs do that.
package stageanalysis

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/fence"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// lookAgain is after how long a source is looked at once more: Secrets are not watched, and names get other addresses.
const lookAgain = time.Minute

// SourceChecker says whether a source can be used, as far as that is known without calling it.
type SourceChecker interface {
	Check(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (*analysis.Problem, error)
}

// templates keeps the condition Accepted of StageAnalyses current.
type templates struct {
	client client.Client
	events events.EventRecorder
	reach  analysis.Reach
	clock  clock.PassiveClock
}

// Reconcile looks at one template.
func (r *templates) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	template := &fleetflowv1alpha1.StageAnalysis{}
	if err := r.client.Get(ctx, request.NamespacedName, template); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var sources fleetflowv1alpha1.MetricSourceList
	if err := r.client.List(ctx, &sources); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the metric sources: %w", err)
	}
	byName := map[string]*fleetflowv1alpha1.MetricSource{}
	for i := range sources.Items {
		byName[sources.Items[i].Name] = &sources.Items[i]
	}
	problem := analysis.CheckTemplate(analysis.Template{Object: template, Sources: byName, Reach: r.reach})
	condition := conditionOn(fleetflowv1alpha1.ConditionTypeAccepted, fleetflowv1alpha1.ReasonAccepted, "The template can be used", problem)
	status := *template.Status.DeepCopy()
	if !putInto(&status.Conditions, condition, template.Generation, r.clock.Now()) {
		return ctrl.Result{}, nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, template, status); err != nil {
		return ctrl.Result{}, err
	}
	if isRefusedAnew(template.Status.Conditions, condition) {
		r.events.Eventf(template, nil, corev1.EventTypeWarning, "AnalysisNotAccepted", "Observe", "%s", condition.Message)
	}
	return ctrl.Result{}, nil
}

// isRefusedAnew reports whether a condition Accepted is False for another reason than it was.
func isRefusedAnew(before []metav1.Condition, accepted metav1.Condition) bool {
	told := meta.FindStatusCondition(before, accepted.Type)
	return accepted.Status == metav1.ConditionFalse && (told == nil || told.Reason != accepted.Reason)
}

// sources keeps the conditions Accepted and Ready of MetricSources current.
type sources struct {
	client  client.Client
	events  events.EventRecorder
	checker SourceChecker
	clock   clock.PassiveClock
}

// Reconcile looks at one source.
func (r *sources) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	source := &fleetflowv1alpha1.MetricSource{}
	if err := r.client.Get(ctx, request.NamespacedName, source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	problem, err := r.checker.Check(ctx, source)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("checking metric source %s: %w", source.Name, err)
	}
	status := *source.Status.DeepCopy()
	accepted := conditionOn(fleetflowv1alpha1.ConditionTypeAccepted, fleetflowv1alpha1.ReasonAccepted, "The source can be used", problem)
	changed := putInto(&status.Conditions, accepted, source.Generation, r.clock.Now())
	if problem != nil || !source.IsUnreachable() { // of one that does not answer, who asks it next says when that has changed
		ready := conditionOn(fleetflowv1alpha1.ConditionTypeReady, fleetflowv1alpha1.ReasonSourceReady,
			"The source can be used; whether it answers is known when it is asked", problem)
		changed = putInto(&status.Conditions, ready, source.Generation, r.clock.Now()) || changed
	}
	if !changed {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, source, status); err != nil {
		return ctrl.Result{}, err
	}
	if isRefusedAnew(source.Status.Conditions, accepted) {
		r.events.Eventf(source, nil, corev1.EventTypeWarning, "SourceNotAccepted", "Observe", "%s", accepted.Message)
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

func conditionOn(kind, reason, message string, problem *analysis.Problem) metav1.Condition {
	if problem != nil {
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: problem.Reason, Message: problem.Text}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func putInto(conditions *[]metav1.Condition, condition metav1.Condition, generation int64, now time.Time) (changed bool) {
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now)
	return meta.SetStatusCondition(conditions, condition)
}

// SetupWithManager registers all, if the hub serves the kinds; what looks after Jobs, if any namespace may have some.
func SetupWithManager(mgr ctrl.Manager, recorder events.EventRecorder, checker SourceChecker, deleter JobDeleter, reach analysis.Reach,
	clk clock.PassiveClock) error {
	for _, kind := range []string{"StageAnalysis", "MetricSource", "ClusterStageAnalysisRun", "StageAnalysisRun"} {
		_, err := mgr.GetRESTMapper().RESTMapping(fleetflowv1alpha1.GroupVersion.WithKind(kind).GroupKind(),
			fleetflowv1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking whether the hub serves the kind %s: %w", kind, err)
		}
	}
	changed := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	t := &templates{mgr.GetClient(), recorder, reach, clk}
	err := ctrl.NewControllerManagedBy(mgr).Named("stage-analysis").
		For(&fleetflowv1alpha1.StageAnalysis{}, changed).
		Watches(&fleetflowv1alpha1.MetricSource{}, handler.EnqueueRequestsFromMapFunc(t.requestAll), changed).
		Complete(t)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("metric-source").
		For(&fleetflowv1alpha1.MetricSource{}, changed).
		Complete(&sources{mgr.GetClient(), recorder, checker, clk})
	if err != nil || deleter == nil || len(reach.JobNamespaces) == 0 {
		return err
	}
	return (&jobs{mgr.GetClient(), deleter, clk}).setUp(mgr)
}

// requestAll requests every template: a source that comes, goes or changes may make it valid or not.
func (r *templates) requestAll(ctx context.Context, _ client.Object) []reconcile.Request {
	var all fleetflowv1alpha1.StageAnalysisList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for i := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}
