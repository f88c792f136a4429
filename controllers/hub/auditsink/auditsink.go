package auditsink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

const (
	// lookAgain is after how long a sink is looked at once more: Secrets are not watched, and names get other addresses.
	lookAgain = time.Minute
	// writeEvery is how often the status of a sink is written at most.
	writeEvery = time.Minute
	// changes is how many sinks may wait to be looked at because something was delivered.
	changes = 1024
	// inFile is how many lines are written to the disk at once.
	inFile = 200
	// inLogs is how many logs a request to a collector has.
	inLogs = 50
)

// Reconciler has records delivered to sinks.
type Reconciler struct {
	Client client.Client
	// Placement knows the labels of the placements of records.
	Placement fleetflowv1alpha1.PlacementOf
	// Outbound calls servers of sinks.
	Outbound *outbound.Client
	Routes   delivery.Routes
	Events   events.EventRecorder
	Clock    clock.PassiveClock
	// Folder has the files of sinks; without one there are none. Stdout is written to by a sink of the name "-".
	Folder string
	Stdout io.Writer

	mu    sync.Mutex
	known map[string]*known
}

// known is what is remembered of a sink.
type known struct {
	uid     string
	version string
	to      delivery.Destination
	// generation is that of which it was found out, when it was checked last, what is wrong with it: problem.
	generation int64
	checked    time.Time
	problem    *analysis.Problem
	// counted is what of the report is in the status, and written when that was written last.
	counted int64
	written time.Time
}

// NewReconciler makes a Reconciler. Secrets and ConfigMaps of sinks are where those of metric sources are.
func NewReconciler(c client.Client, sources *outbound.Client, routes delivery.Routes, recorder events.EventRecorder,
	clk clock.PassiveClock, folder string) *Reconciler {
	return &Reconciler{
		Client: c, Placement: hubread.PlacementOf(context.Background(), c), Routes: routes, Events: recorder, Clock: clk, Folder: folder, Stdout: os.Stdout, known: map[string]*known{},
		Outbound: &outbound.Client{
			Caller: sources.Caller, Live: sources.Live, Namespace: sources.Namespace, Clock: clk,
			Of: "sink", Label: fleetflowv1alpha1.AuditSinkLabel, URLAnnotation: fleetflowv1alpha1.AuditSinkURLAnnotation,
		},
	}
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := make(chan event.GenericEvent, changes)
	r.Routes.OnChange(fleetflowv1alpha1.AuditSinkKind, func(name string) {
		select {
		case changed <- event.GenericEvent{Object: &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
		default: // it is looked at in a minute anyway
		}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("audit-sink").
		For(&fleetflowv1alpha1.AuditSink{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(changed, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// Reconcile looks at one sink.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sink := &fleetflowv1alpha1.AuditSink{}
	err := r.Client.Get(ctx, request.NamespacedName, sink)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.remove(request.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if of := r.known[sink.Name]; of != nil && of.uid != string(sink.UID) {
		if err := r.remove(sink.Name); err != nil {
			return ctrl.Result{}, err
		}
	}
	problem, failed := r.route(ctx, sink)
	if failed != nil && problem == nil {
		return ctrl.Result{}, failed
	}
	result, err := r.report(ctx, sink, problem)
	return result, errors.Join(failed, err)
}

// Existing returns the sinks that there are, also those that the engine was not told of yet, and what they want.
func (r *Reconciler) Existing(ctx context.Context) ([]delivery.Route, error) {
	all := fleetflowv1alpha1.AuditSinkList{}
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the audit sinks: %w", err)
	}
	routes := make([]delivery.Route, len(all.Items))
	for i := range all.Items {
		routes[i] = delivery.Route{Key: keyOf(all.Items[i].Name), Since: all.Items[i].CreationTimestamp.Time, Wants: r.wantedBy(&all.Items[i])}
	}
	return routes, nil
}

// wantedBy returns what tells the records that are for a sink.
func (r *Reconciler) wantedBy(sink *fleetflowv1alpha1.AuditSink) func(*fleetflowv1alpha1.AuditRecord) (bool, error) {
	return func(record *fleetflowv1alpha1.AuditRecord) (bool, error) { return sink.Wants(record, r.Placement) }
}

// filterVersion tells a filter from others.
func filterVersion(of *fleetflowv1alpha1.AuditSinkFilter) string {
	if of == nil {
		return "all"
	}
	return fmt.Sprintf("%q %s", of.Types, of.PlacementSelector)
}

// remove has nothing be delivered any more to a sink that is gone.
func (r *Reconciler) remove(name string) error {
	of := r.known[name]
	if of == nil {
		return nil
	}
	r.Routes.Remove(keyOf(name))
	delete(r.known, name)
	return closeFile(of.to)
}

// closeFile closes the file of a destination, if it has one.
func closeFile(of delivery.Destination) error {
	if closer, is := of.(io.Closer); is {
		return closer.Close()
	}
	return nil
}

func keyOf(name string) delivery.Key {
	return delivery.Key{Kind: fleetflowv1alpha1.AuditSinkKind, Name: name}
}

// route makes the sink known as it is now. What cannot be used gets nothing until that has changed. If that cannot be found out, there is an error,
// too, unless the sink could be used as it is.
func (r *Reconciler) route(ctx context.Context, sink *fleetflowv1alpha1.AuditSink) (*analysis.Problem, error) {
	of := r.known[sink.Name]
	if of == nil {
		of = &known{uid: string(sink.UID)}
		r.known[sink.Name] = of
	}
	now := r.Clock.Now()
	if of.generation == sink.Generation && now.Before(of.checked.Add(lookAgain)) {
		return of.problem, nil
	}
	problem, version, failed := r.check(ctx, sink)
	switch {
	case failed == nil:
		of.generation = sink.Generation
		of.checked = now
	case of.generation == sink.Generation:
		return nil, fmt.Errorf("checking audit sink %s: %w", sink.Name, failed)
	default:
		failed = fmt.Errorf("checking audit sink %s: %w", sink.Name, failed)
		problem = &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSinkNotChecked, Text: failed.Error()}
	}
	of.problem = problem
	version = strconv.FormatInt(sink.Generation, 10) + " " + version
	if problem != nil {
		version += " " + problem.Text
	}
	if of.version == version {
		return problem, failed
	}
	before := of.to
	of.to = r.destinationOf(sink)
	batch := inLogs
	switch {
	case problem != nil:
		of.to = unusable(problem.Text)
	case sink.Spec.Webhook != nil:
		batch = int(sink.Spec.Webhook.Batch)
	case sink.Spec.File != nil:
		batch = inFile
	}
	r.Routes.Put(delivery.Route{
		Key: keyOf(sink.Name), Version: version, FilterVersion: filterVersion(sink.Spec.Filter), Since: sink.CreationTimestamp.Time,
		Wants: r.wantedBy(sink.DeepCopy()), Batch: batch, To: of.to,
	})
	of.version = version
	return problem, errors.Join(failed, closeFile(before))
}

// check returns why a sink cannot be used, and what tells its Secrets from others.
func (r *Reconciler) check(ctx context.Context, sink *fleetflowv1alpha1.AuditSink) (*analysis.Problem, string, error) {
	server, has := serverOf(sink)
	if !has {
		if of := sink.Spec.File; of != nil && of.Name != standardOutput && r.Folder == "" {
			return &analysis.Problem{
				Reason: fleetflowv1alpha1.ReasonNoFolder,
				Text:   "the hub agent has no folder for files: set records.files in the values of its chart, or write to standard output with the name -",
			}, "", nil
		}
		problem, err := r.checkFile(ctx, sink)
		return problem, "", err
	}
	version, err := r.Outbound.Version(ctx, server)
	if err != nil {
		return nil, "", err
	}
	problem, err := r.Outbound.Check(ctx, server)
	return problem, version, err
}

// checkFile returns why a sink cannot have the file that it names: an older one has it.
func (r *Reconciler) checkFile(ctx context.Context, sink *fleetflowv1alpha1.AuditSink) (*analysis.Problem, error) {
	of := sink.Spec.File
	if of == nil || of.Name == standardOutput {
		return nil, nil
	}
	all := fleetflowv1alpha1.AuditSinkList{}
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the audit sinks: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.Name == sink.Name || other.Spec.File == nil || other.Spec.File.Name != of.Name {
			continue
		}
		if cmp.Or(other.CreationTimestamp.Compare(sink.CreationTimestamp.Time), cmp.Compare(other.Name, sink.Name)) < 0 {
			return &analysis.Problem{
				Reason: fleetflowv1alpha1.ReasonFileTaken,
				Text:   fmt.Sprintf("AuditSink %s has the file %s: choose another name", other.Name, of.Name),
			}, nil
		}
	}
	return nil, nil
}

// serverOf returns the server of a sink, if it has one.
func serverOf(sink *fleetflowv1alpha1.AuditSink) (outbound.Server, bool) {
	var of *fleetflowv1alpha1.AuditSinkServer
	switch {
	case sink.Spec.Webhook != nil:
		of = &sink.Spec.Webhook.AuditSinkServer
	case sink.Spec.OTLP != nil:
		of = &sink.Spec.OTLP.AuditSinkServer
	default:
		return outbound.Server{}, false
	}
	return outbound.Server{Object: sink.Name, URL: of.URL, Auth: of.Auth, TLS: of.TLS}, true
}

// destinationOf returns what takes the records of a sink.
func (r *Reconciler) destinationOf(sink *fleetflowv1alpha1.AuditSink) delivery.Destination {
	server, _ := serverOf(sink.DeepCopy())
	switch {
	case sink.Spec.Webhook != nil:
		return &webhook{client: r.Outbound, server: server}
	case sink.Spec.OTLP != nil && sink.Spec.OTLP.Protocol == fleetflowv1alpha1.AuditSinkGRPC:
		return &grpcCollector{client: r.Outbound, server: server}
	case sink.Spec.OTLP != nil:
		return &collector{client: r.Outbound, server: server}
	case sink.Spec.File != nil:
		return newFile(sink.Spec.File.DeepCopy(), r.Folder, r.Stdout)
	}
	return unusable("the sink has nothing to deliver to")
}

// unusable says of a destination why it gets nothing.
type unusable string

// Deliver refuses.
func (u unusable) Deliver(context.Context, []fleetflowv1alpha1.AuditRecord) error {
	return &delivery.RefusedError{Why: string(u)}
}

// report writes into the status how far the delivery has come. Only that the spec is another is told at once.
func (r *Reconciler) report(ctx context.Context, sink *fleetflowv1alpha1.AuditSink, problem *analysis.Problem) (ctrl.Result, error) {
	of := r.known[sink.Name]
	now := r.Clock.Now()
	seen := r.Routes.Report(keyOf(sink.Name))
	ready := readyOf(problem, seen)
	told := meta.FindStatusCondition(sink.Status.Conditions, ready.Type)
	isNew := told == nil || told.ObservedGeneration != sink.Generation
	if next := of.written.Add(writeEvery); !isNew && now.Before(next) {
		return ctrl.Result{RequeueAfter: next.Sub(now)}, nil
	}
	status := statusOf(sink, ready, seen, seen.Delivered-of.counted, now)
	if equality.Semantic.DeepEqual(status, sink.Status) {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if err := fence.ReplaceStatus(ctx, r.Client, sink, status); err != nil {
		return ctrl.Result{}, err
	}
	of.written = now
	of.counted = seen.Delivered
	switch wasReady := told == nil || told.Status == metav1.ConditionTrue; {
	case ready.Status == metav1.ConditionFalse && (wasReady || told.Reason != ready.Reason):
		r.Events.Eventf(sink, nil, corev1.EventTypeWarning, "AuditSinkNotReady", "Deliver", "%s", ready.Message)
	case ready.Status == metav1.ConditionTrue && !wasReady:
		r.Events.Eventf(sink, nil, corev1.EventTypeNormal, "AuditSinkReady", "Deliver", "The sink takes records again")
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// readyOf returns the condition Ready.
func readyOf(problem *analysis.Problem, seen delivery.Report) metav1.Condition {
	ready := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeReady, Status: metav1.ConditionFalse, Reason: fleetflowv1alpha1.ReasonUnreachable, Message: seen.LastError,
	}
	switch {
	case problem != nil:
		ready.Reason = problem.Reason
		ready.Message = problem.Text
	case seen.Unserved:
		ready.Reason = fleetflowv1alpha1.ReasonTooManyDestinations
		ready.Message = fleetflowv1alpha1.TooManyDestinations() + ": what is for it waits"
	case seen.Refused:
		ready.Reason = fleetflowv1alpha1.ReasonSinkRefused
		ready.Message = "Not tried again until the spec or a Secret changes: " + seen.LastError
	case seen.LastError == "":
		ready.Status = metav1.ConditionTrue
		ready.Reason = fleetflowv1alpha1.ReasonSinkReady
		ready.Message = "The sink can be used; whether it takes records is known when there are some"
	}
	return ready
}

// statusOf returns the status of a sink. It is pure.
func statusOf(sink *fleetflowv1alpha1.AuditSink, ready metav1.Condition, seen delivery.Report, more int64, now time.Time) fleetflowv1alpha1.AuditSinkStatus {
	status := *sink.Status.DeepCopy()
	ready.ObservedGeneration = sink.Generation
	ready.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(&status.Conditions, ready)
	status.Delivered += max(more, 0)
	status.Pending = int64(seen.Pending)
	status.OldestPendingTime = nil
	if !seen.OldestPending.IsZero() {
		status.OldestPendingTime = &metav1.Time{Time: seen.OldestPending}
	}
	status.LastError = seen.LastError
	return status
}

// IsServed reports whether the hub has AuditSinks.
func IsServed(mapper meta.RESTMapper) (bool, error) {
	kind := fleetflowv1alpha1.GroupVersion.WithKind(fleetflowv1alpha1.AuditSinkKind)
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the hub serves AuditSinks: %w", err)
	}
	return true, nil
}
