package stageanalysis

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// measuresOn is for how long the call that measures may go on after the end of what it measures, and begin another Job.
const measuresOn = time.Minute

// JobDeleter deletes the Jobs of an analysis that have not ended.
type JobDeleter interface {
	DeleteUnended(ctx context.Context, run fleetflowv1alpha1.StageAnalysisRunObject) error
}

// jobs deletes the Jobs that nothing waits for any more: those of analyses that have ended or are waived, of attempts after which
// there is another, and of update runs that are over.
type jobs struct {
	client  client.Client
	deleter JobDeleter
	clock   clock.PassiveClock
}

// Reconcile looks at one analysis.
func (r *jobs) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run := fleetflowv1alpha1.NewStageAnalysisRun(request.Namespace, request.Name)
	if err := r.client.Get(ctx, request.NamespacedName, run); err != nil || !runsJobs(run) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	over, since, err := r.isOver(ctx, run)
	if err != nil || !over {
		return ctrl.Result{}, err
	}
	if err := r.deleter.DeleteUnended(ctx, run); err != nil {
		return ctrl.Result{}, err
	}
	if r.clock.Since(since) < measuresOn {
		return ctrl.Result{RequeueAfter: measuresOn}, nil
	}
	return ctrl.Result{}, nil
}

// isOver reports whether nothing is measured any more of the attempt that the status is about, and since when.
func (r *jobs) isOver(ctx context.Context, run fleetflowv1alpha1.StageAnalysisRunObject) (over bool, since time.Time, err error) {
	spec := run.GetStageAnalysisRunSpec()
	status := run.GetStageAnalysisRunStatus()
	if status.ObservedAttempt != spec.Attempt || fleetflowv1alpha1.PhaseOfAttempt(run).IsOver() {
		if at := status.EndTime; at != nil {
			since = at.Time
		}
		return true, since, nil
	}
	of := placementv1beta1.Scope{Namespace: run.GetNamespace()}.NewUpdateRun(spec.RunRef.Name)
	err = r.client.Get(ctx, client.ObjectKeyFromObject(of), of)
	switch {
	case apierrors.IsNotFound(err):
		return true, since, nil
	case err != nil:
		return false, since, fmt.Errorf("reading the update run of analysis %s: %w", run.GetName(), err)
	case of.GetUID() != spec.RunRef.UID:
		return true, since, nil
	}
	if ended := meta.FindStatusCondition(of.GetConditions(), placementv1beta1.ConditionTypeSucceeded); ended != nil {
		since = ended.LastTransitionTime.Time
	}
	return rules.IsRunOver(of), since, nil
}

func runsJobs(object client.Object) bool {
	run, is := object.(fleetflowv1alpha1.StageAnalysisRunObject)
	return is && slices.ContainsFunc(run.GetStageAnalysisRunSpec().Metrics,
		func(m fleetflowv1alpha1.AnalysisRunMetric) bool { return m.Job != nil })
}

func (r *jobs) setUp(mgr ctrl.Manager) error {
	running := builder.WithPredicates(predicate.NewPredicateFuncs(runsJobs))
	b := ctrl.NewControllerManagedBy(mgr).Named("analysis-jobs").
		For(&fleetflowv1alpha1.ClusterStageAnalysisRun{}, running).
		Watches(&fleetflowv1alpha1.StageAnalysisRun{}, &handler.EnqueueRequestForObject{}, running)
	for _, scope := range placementv1beta1.Scopes() {
		b = b.Watches(scope.NewUpdateRun(""), handler.EnqueueRequestsFromMapFunc(analysesOf),
			builder.WithPredicates(predicate.NewPredicateFuncs(isRunOver)))
	}
	return b.Complete(r)
}

func isRunOver(object client.Object) bool {
	run, is := object.(placementv1beta1.UpdateRunObject)
	return is && rules.IsRunOver(run)
}

// analysesOf requests the analyses of an update run.
func analysesOf(_ context.Context, object client.Object) []reconcile.Request {
	run, is := object.(placementv1beta1.UpdateRunObject)
	if !is {
		return nil
	}
	var requests []reconcile.Request
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for task := range stagetask.Statuses(&stages[i]) {
			if task.AnalysisRunName != "" {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: run.GetNamespace(),
					Name: task.AnalysisRunName}})
			}
		}
	}
	return requests
}
