package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// runsAtOnce is of how many runs records are written at the same time.
	runsAtOnce = 4
	// pruneAfter is how long after a record came it is looked whether others go: many come at once.
	pruneAfter = time.Minute
	// bySubject is the field by which the cache finds the records of a subject, byKind that by which it finds those of all objects of a kind.
	bySubject = "auditSubject"
	byKind    = "auditKind"
	// goneAfter is how long after an object is gone that is recorded: many go at once.
	goneAfter = time.Second
)

// errNotServed says that the hub has no records.
var errNotServed = errors.New("this hub does not serve AuditRecords: upgrade the chart of the hub agent, or leave --records off")

// Reconciler has the records of runs written while the runs are there. Who looks after a run that is deleted writes the last ones.
type Reconciler struct {
	keeper *Keeper
	scope  placementv1beta1.Scope
}

// SetupWithManager registers reconcilers for the runs of both scopes, and what deletes records.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, keeper *Keeper, recorder events.EventRecorder) error {
	kind := fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord")
	_, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return errNotServed
	}
	if err != nil {
		return fmt.Errorf("asking whether the hub serves records: %w", err)
	}
	for field, values := range map[string]client.IndexerFunc{bySubject: subjectOf, byKind: kindOf} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, metadataOfRecord(), field, values); err != nil {
			return fmt.Errorf("indexing records: %w", err)
		}
	}
	for _, of := range recordedKinds() {
		if err := (&ObjectReconciler{keeper: keeper, of: of}).setUp(mgr); err != nil {
			return err
		}
	}
	for _, scope := range placementv1beta1.Scopes() {
		r := &Reconciler{keeper: keeper, scope: scope}
		err := ctrl.NewControllerManagedBy(mgr).Named(scope.ControllerName("records")).
			For(scope.NewUpdateRun(""), builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
			Watches(scope.NewApprovalRequest(""), handler.EnqueueRequestsFromMapFunc(requestRun),
				builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
			WithOptions(controller.Options{MaxConcurrentReconciles: runsAtOnce}).
			Complete(r)
		if err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("records-prune").
		WatchesMetadata(&fleetflowv1alpha1.AuditRecord{}, pruneLater()).
		Complete(&pruner{keeper: keeper, events: recorder, dropped: keeper.Dropped})
}

// metadataOfRecord is what the cache holds of records: their metadata.
func metadataOfRecord() *metav1.PartialObjectMetadata {
	record := &metav1.PartialObjectMetadata{}
	record.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord"))
	return record
}

func subjectOf(record client.Object) []string {
	return []string{record.GetLabels()[fleetflowv1alpha1.AuditSubjectLabel]}
}

func kindOf(record client.Object) []string {
	return []string{record.GetLabels()[fleetflowv1alpha1.AuditKindLabel]}
}

// ObjectReconciler has the records of the objects of a kind written.
type ObjectReconciler struct {
	keeper *Keeper
	of     recorded
}

// gone is the request to look for objects that are not there any more.
var gone = reconcile.Request{}

// setUp registers the reconciler. What has gone while no agent led shows when the records that there are come.
func (r *ObjectReconciler) setUp(mgr ctrl.Manager) error {
	later := handler.Funcs{
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.keeper.forget(r.of, e.Object)
			queue.AddAfter(gone, goneAfter)
		},
	}
	atStart := handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.IsInInitialList && e.Object.GetLabels()[fleetflowv1alpha1.AuditKindLabel] == r.of.kind.Kind {
				queue.AddAfter(gone, goneAfter)
			}
		},
	}
	return ctrl.NewControllerManagedBy(mgr).Named("records-of-"+strings.ToLower(r.of.kind.Kind)).
		For(r.of.new(), builder.WithPredicates(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }})).
		Watches(r.of.new(), later).
		WatchesMetadata(&fleetflowv1alpha1.AuditRecord{}, atStart).
		WithOptions(controller.Options{MaxConcurrentReconciles: runsAtOnce}).
		Complete(r)
}

// Reconcile looks at one object, or for those that are gone.
func (r *ObjectReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request == gone {
		return ctrl.Result{}, r.keeper.keepGone(ctx, r.of)
	}
	object := r.of.new()
	if err := r.keeper.Client.Get(ctx, request.NamespacedName, object, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.keeper.keepObject(ctx, r.of, object)
}

// pruneLater requests a look at all records some time after one has come.
func pruneLater() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}, pruneAfter)
	}}
}

// requestRun requests the run of an approval request.
func requestRun(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[placementv1beta1.TargetUpdateRunLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// Reconcile looks at one run.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	run := placementv1beta1.Scope{Namespace: request.Namespace}.NewUpdateRun(request.Name)
	if err := r.keeper.Client.Get(ctx, request.NamespacedName, run, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if rules.IsDeleting(run) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.keeper.Keep(ctx, run)
}
