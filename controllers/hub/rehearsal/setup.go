package rehearsal

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/hubread"
	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// rehearsedAtOnce is how many rehearsals are asked or counted at the same time.
const rehearsedAtOnce = 4

// SetupWithManager registers a reconciler for rehearsals in namespaces, and one for the others, if the hub serves them.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, o Options) error {
	served, err := hubread.RehearsalsServed(mgr.GetRESTMapper())
	if err != nil || !served {
		return err
	}
	index := fieldindex.Questions()
	if err := mgr.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Extract); err != nil {
		return fmt.Errorf("indexing questions: %w", err)
	}
	for _, scope := range placementv1beta1.Scopes() {
		if err := NewReconciler(o).setUp(mgr, scope); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) setUp(mgr ctrl.Manager, scope placementv1beta1.Scope) error {
	r.scope = scope
	return ctrl.NewControllerManagedBy(mgr).
		Named(scope.ControllerName("rehearsal")).
		For(fleetflowv1alpha1.NewRehearsal(scope.Namespace, ""), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleetflowv1alpha1.MemberQuestion{}, handler.EnqueueRequestsFromMapFunc(r.requestOrigin),
			builder.WithPredicates(predicate.Funcs{
				UpdateFunc: onAnswer,
				DeleteFunc: func(event.DeleteEvent) bool { return false },
			})).
		Watches(scope.NewUpdateRun(""), handler.EnqueueRequestsFromMapFunc(r.running.pullsOf), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: onRunEnd,
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: rehearsedAtOnce}).
		Complete(r)
}

// onAnswer passes an answer that comes.
func onAnswer(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*fleetflowv1alpha1.MemberQuestion)
	after, also := e.ObjectNew.(*fleetflowv1alpha1.MemberQuestion)
	return ok && also && !rehearsals.IsAnswered(before) && rehearsals.IsAnswered(after)
}

// onRunEnd passes that a run is over, stopped or about to be deleted from now on.
func onRunEnd(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(placementv1beta1.UpdateRunObject)
	after, also := e.ObjectNew.(placementv1beta1.UpdateRunObject)
	return ok && also && !waitsForNothing(before) && waitsForNothing(after)
}

// waitsForNothing reports whether no stage of a run waits for its tasks, whatever they are.
func waitsForNothing(run placementv1beta1.UpdateRunObject) bool {
	return rules.IsDeleting(run) || whatEndsPull(run, "") != ""
}

// pullsOf requests the rehearsals by which the clusters of a run pull images, of those that this process has looked at.
func (r *running) pullsOf(_ context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(placementv1beta1.UpdateRunObject)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []reconcile.Request
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		key := types.NamespacedName{Namespace: run.GetNamespace(), Name: fleetflowv1alpha1.PrePullName(run.GetName(), stages[i].StageName)}
		if r.byKey[key] != nil {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// requestOrigin requests the rehearsal that a question is asked for. One that is gone leaves questions behind.
func (r *Reconciler) requestOrigin(_ context.Context, object client.Object) []reconcile.Request {
	question, ok := object.(*fleetflowv1alpha1.MemberQuestion)
	if !ok || (question.Spec.AskedFor.Namespace != "") != r.scope.Namespaced() {
		return nil
	}
	origin := types.NamespacedName{Namespace: question.Spec.AskedFor.Namespace, Name: question.Spec.AskedFor.Name}
	if rehearsals.IsAnswered(question) {
		if p := r.running.find(origin, question.Spec.AskedFor.UID); p != nil {
			p.arrived.Add(1)
		}
	}
	return []reconcile.Request{{NamespacedName: origin}}
}
