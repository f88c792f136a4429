// Package stagedupdate wakes the workflows of update runs when the run, one of its approval requests or its placement
// changes. What the workflow does, and the run's status, belong to the activities.
package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Reconciler watches over update runs.
type Reconciler struct {
	client client.Client
	// scope chooses between the cluster-scoped kinds and their twins in namespaces.
	scope placementv1beta1.Scope
	waker *waker.Waker
	clock clock.PassiveClock
	// BeforeEnd, if there is one, is called for a run that is being deleted while all that belongs to it is still there. As long as it
	// fails, the run stays.
	BeforeEnd func(ctx context.Context, run placementv1beta1.UpdateRunObject) error
}

// New returns a reconciler; see SetupWithManager.
func New(c client.Client, poker waker.Poker, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, waker: waker.New(poker, clk), clock: clk}
}

// Reconcile looks at one run.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run := placementv1beta1.Scope{Namespace: request.Namespace}.NewUpdateRun(request.Name)
	// It is only read, and its status may be large.
	if err := r.client.Get(ctx, request.NamespacedName, run, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !run.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, r.releaseRun(ctx, run)
	}
	if err := fence.AddFinalizer(ctx, r.client, run, placementv1beta1.UpdateRunFinalizer); err != nil {
		return ctrl.Result{}, fmt.Errorf("adding the finalizer to run %s: %w", run.GetName(), err)
	}
	if !NeedsWork(run) {
		r.waker.Forget(waker.UpdateRunRef(run))
		return ctrl.Result{}, r.clearUnreachable(ctx, run) // its workflow may have ended it before the next poke
	}
	return r.wakeWorkflow(ctx, run)
}

// wakeWorkflow wakes the run's workflow. That Temporal is away is no error: the run says so, and the poke is tried again.
func (r *Reconciler) wakeWorkflow(ctx context.Context, run placementv1beta1.UpdateRunObject) (ctrl.Result, error) {
	ref := waker.UpdateRunRef(run)
	cause := wf.CauseSpec
	if r.waker.HasWokenFor(ref, run.GetGeneration()) {
		cause = wf.CauseApproval // whatever else may open a gate
	}
	if retry := r.waker.Wake(ctx, ref, run.GetGeneration(), cause); retry > 0 {
		return ctrl.Result{RequeueAfter: retry}, r.reportUnreachable(ctx, run)
	}
	return ctrl.Result{}, r.clearUnreachable(ctx, run)
}

// reportUnreachable says on the run why it does not progress; clearUnreachable takes that back.
func (r *Reconciler) reportUnreachable(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	changed := placementv1beta1.DeepCopyOf(run)
	if !meta.SetStatusCondition(&changed.GetUpdateRunStatus().Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse,
		Reason: placementv1beta1.ReasonTemporalUnreachable, ObservedGeneration: run.GetGeneration(),
		Message: "Temporal cannot be reached; the run continues by itself once it can",
	}) {
		return nil
	}
	return r.patchConditions(ctx, run, changed)
}

func (r *Reconciler) clearUnreachable(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if !meta.IsStatusConditionFalse(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeEngineReachable) {
		return nil // as nearly always; a run of many clusters is not copied for that
	}
	changed := placementv1beta1.DeepCopyOf(run)
	placementv1beta1.Resolve(&changed.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeEngineReachable, run.GetGeneration(),
		metav1.NewTime(r.clock.Now()))
	return r.patchConditions(ctx, run, changed)
}

// patchConditions writes only if the run has not changed since it was read: the rest of the status belongs to the
// run's activities.
func (r *Reconciler) patchConditions(ctx context.Context, run, changed placementv1beta1.UpdateRunObject) error {
	err := r.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing whether Temporal is reachable to run %s: %w", run.GetName(), err)
	}
	return nil
}

// deleteAnalyses deletes the analyses of a run that has any.
func (r *Reconciler) deleteAnalyses(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if !slices.ContainsFunc(run.GetUpdateRunStatus().StagesStatus, hasAnalysis) {
		return nil
	}
	err := r.client.DeleteAllOf(ctx, fleetflowv1alpha1.NewStageAnalysisRun(run.GetNamespace(), ""), client.InNamespace(run.GetNamespace()),
		client.MatchingLabels{fleetflowv1alpha1.AnalysisRunLabel: run.GetName()})
	if err != nil {
		return fmt.Errorf("deleting the analyses of run %s: %w", run.GetName(), err)
	}
	return nil
}

func hasAnalysis(stage placementv1beta1.StageUpdatingStatus) bool {
	for task := range stagetask.Statuses(&stage) {
		if task.AnalysisRunName != "" {
			return true
		}
	}
	return false
}

// releaseRun cleans up after a run that is being deleted: its approval requests and analyses are deleted, clusters that it has only
// prepared go back into service, and what it has placed stays. The workflow is woken, finds the run gone and ends. If the
// poke fails, the workflow finds out at its next step.
func (r *Reconciler) releaseRun(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if r.BeforeEnd != nil {
		if err := r.BeforeEnd(ctx, run); err != nil {
			return errors.Join(err, r.putBackPrepared(ctx, run)) // service does not wait for what comes before the end
		}
	}
	err := r.client.DeleteAllOf(ctx, placementv1beta1.ScopeOf(run).NewApprovalRequest(""), client.InNamespace(run.GetNamespace()),
		client.MatchingLabels{placementv1beta1.TargetUpdateRunLabel: run.GetName()})
	if err != nil {
		return fmt.Errorf("deleting the approval requests of run %s: %w", run.GetName(), err)
	}
	if err := r.deleteAnalyses(ctx, run); err != nil {
		return err
	}
	if err := r.putBackPrepared(ctx, run); err != nil {
		return err
	}
	if !rules.IsRunOver(run) {
		r.waker.Wake(ctx, waker.UpdateRunRef(run), run.GetGeneration(), wf.CauseSpec) // without it, the workflow ends at its next step
	}
	r.waker.Forget(waker.UpdateRunRef(run))
	if err := fence.RemoveFinalizer(ctx, r.client, run, placementv1beta1.UpdateRunFinalizer); err != nil {
		return fmt.Errorf("removing the finalizer of run %s: %w", run.GetName(), err)
	}
	return nil
}

// Needing lists the runs that need an open workflow, for the audit.
func (r *Reconciler) Needing(ctx context.Context, _ bool) ([]wf.Ref, error) {
	runs := r.scope.NewUpdateRunList()
	if err := r.client.List(ctx, runs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing update runs: %w", err)
	}
	var refs []wf.Ref
	for _, run := range runs.Objects() {
		if NeedsWork(run) {
			refs = append(refs, waker.UpdateRunRef(run))
		}
	}
	return refs, nil
}
