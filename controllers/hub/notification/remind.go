package notification

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

const (
	// leastApart is how much time is between two looks at what is to be reminded of: what is due within it goes together.
	leastApart = time.Minute
	// remindAgain is after how long a reminder is tried again that did not arrive.
	remindAgain = 15 * time.Minute
	// markTries is how often it is tried to write that a reminder was sent, while others write the record.
	markTries = 3
)

// reminded is what was reminded of: a record, by a way.
type reminded struct {
	record string
	way    delivery.Key
}

// reminder tells once more of approvals that wait.
type reminder struct {
	// client reads from the cache, and writes statuses; live reads records as they are now.
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	teller sendsByRules

	mu sync.Mutex
	// reminded is of what was reminded that is not in the status of a record yet.
	reminded map[reminded]fleetflowv1alpha1.AuditDelivery
}

// sendsByRules reads rules, and sends messages by their ways.
type sendsByRules interface {
	follow(rule *fleetflowv1alpha1.NotificationRule) followed
	send(ctx context.Context, way delivery.Key, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error
}

// newReminder makes a reminder.
func newReminder(c client.Client, live client.Reader, clk clock.PassiveClock, teller sendsByRules) *reminder {
	return &reminder{client: c, live: live, clock: clk, teller: teller, reminded: map[reminded]fleetflowv1alpha1.AuditDelivery{}}
}

// setupWithManager registers what reminds of approvals that wait. Without a rule that reminds, it looks at nothing.
func (r *reminder) setupWithManager(mgr ctrl.Manager) error {
	reminders := ctrl.NewControllerManagedBy(mgr).Named("notification-reminder").
		For(&fleetflowv1alpha1.NotificationRule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, scope := range placementv1beta1.Scopes() {
		reminders.Watches(scope.NewApprovalRequest(""), handler.EnqueueRequestsFromMapFunc(r.requestRules), builder.WithPredicates(onWait()))
	}
	return reminders.Complete(reconcile.Func(r.Reconcile))
}

// onWait picks the events by which an approval begins to wait: it is asked for, or was given and taken back.
func onWait() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, is := e.ObjectOld.(placementv1beta1.ApprovalRequestObject)
			after, isToo := e.ObjectNew.(placementv1beta1.ApprovalRequestObject)
			return is && isToo && isAnswered(before) && !isAnswered(after)
		},
	}
}

// requestRules requests the rules that remind.
func (r *reminder) requestRules(ctx context.Context, _ client.Object) []reconcile.Request {
	var all fleetflowv1alpha1.NotificationRuleList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if all.Items[i].Spec.Remind != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// Reconcile tells once more, by one rule, of approvals that it has told of and that still wait. How often it has, and when, is in the status of the
// records: an agent that leads after this one goes on from there.
func (r *reminder) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &fleetflowv1alpha1.NotificationRule{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	of := r.teller.follow(object)
	if object.Spec.Remind == nil || of.rule == nil || of.problem != nil {
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	waiting, first, err := r.waiting(ctx, now)
	if err != nil || len(waiting) == 0 {
		return reconcile.Result{}, err
	}
	every := object.EffectiveReminder().Every.Duration
	if due := first.Add(every); now.Before(due) {
		return reconcile.Result{RequeueAfter: due.Sub(now)}, nil // nothing can be due yet
	}
	records, err := r.requested(ctx, waiting)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.forgetReminded(object.Name, records)
	var next time.Time
	var failed error
	for _, name := range object.ChannelNames() {
		again, err := r.remindIn(ctx, of.rule, name, records)
		next = sooner(next, again)
		failed = errors.Join(failed, err)
	}
	if failed != nil || next.IsZero() {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(r.clock.Now()), leastApart)}, nil
}

// isAnswered reports whether an approval request was answered, as far as it says: one that was rejected waits for those who talk about it.
func isAnswered(request placementv1beta1.ApprovalRequestObject) bool {
	said := meta.FindStatusCondition(request.GetConditions(), placementv1beta1.ConditionTypeApproved)
	return said != nil && said.Reason == placementv1beta1.ReasonVoteRejected || meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApproved) ||
		meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApprovalAccepted)
}

// isWaiting reports whether a run waits for an answer to an approval request. One that was stopped waits for no one.
func isWaiting(request placementv1beta1.ApprovalRequestObject, run placementv1beta1.UpdateRunObject, now time.Time) bool {
	expires := request.GetApprovalRequestSpec().ExpirationTime
	switch {
	case request.GetDeletionTimestamp() != nil || run.GetDeletionTimestamp() != nil:
		return false
	case request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation] != string(run.GetUID()):
		return false
	case isAnswered(request), expires != nil && !now.Before(expires.Time), rules.IsRunOver(run), run.GetUpdateRunSpec().State == placementv1beta1.StateStop:
		return false
	}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for task := range stagetask.Statuses(&stages[i]) {
			if task.ApprovalRequestName == request.GetName() {
				return meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated) &&
					!meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
			}
		}
	}
	return false
}

// asked tells approval requests apart: by the run that waits, and their name.
type asked struct {
	run     types.UID
	request string
}

// waiting returns the approval requests that wait for an answer, and when the first of them was made.
func (r *reminder) waiting(ctx context.Context, now time.Time) (waiting map[asked]bool, first time.Time, err error) {
	waiting = map[asked]bool{}
	for _, scope := range placementv1beta1.Scopes() {
		all := scope.NewApprovalRequestList()
		if err := r.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return nil, first, fmt.Errorf("listing the approval requests: %w", err)
		}
		for _, request := range all.Objects() {
			if isAnswered(request) {
				continue
			}
			of := placementv1beta1.ScopeOf(request)
			run := of.NewUpdateRun("")
			err := r.client.Get(ctx, of.Key(request.GetApprovalRequestSpec().TargetUpdateRun), run, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return nil, first, fmt.Errorf("reading the run of approval request %s: %w", request.GetName(), err)
			}
			if err == nil && isWaiting(request, run, now) {
				waiting[asked{run.GetUID(), request.GetName()}] = true
				first = sooner(first, request.GetCreationTimestamp().Time)
			}
		}
	}
	return waiting, first, nil
}

// requested returns, of each of the approval requests, the last record that says that it was made.
func (r *reminder) requested(ctx context.Context, waiting map[asked]bool) ([]*fleetflowv1alpha1.AuditRecord, error) {
	var all fleetflowv1alpha1.AuditRecordList
	ofType := client.MatchingLabels{fleetflowv1alpha1.AuditTypeLabel: string(fleetflowv1alpha1.RecordApprovalRequested)}
	if err := r.live.List(ctx, &all, ofType); err != nil {
		return nil, fmt.Errorf("listing the records of approval requests: %w", err)
	}
	last := map[asked]*fleetflowv1alpha1.AuditRecord{}
	for i := range all.Items {
		record := &all.Items[i]
		of := asked{types.UID(record.Spec.SubjectRef.UID), string(record.Spec.Data["approvalRequest"])}
		if waiting[of] && (last[of] == nil || last[of].Spec.Sequence < record.Spec.Sequence) {
			last[of] = record
		}
	}
	records := make([]*fleetflowv1alpha1.AuditRecord, 0, len(last))
	for _, record := range last {
		records = append(records, record)
	}
	return records, nil
}

// remindIn reminds of approvals in a channel, and returns when there is more to be done; zero if only something that happens changes that.
func (r *reminder) remindIn(ctx context.Context, rule *Rule, name string, records []*fleetflowv1alpha1.AuditRecord) (next time.Time, failed error) {
	way := keyOf(rule.Name, name)
	reminder := rule.EffectiveReminder()
	now := r.clock.Now()
	var due []*fleetflowv1alpha1.AuditRecord
	for _, record := range records {
		told := r.toldBy(record, way)
		if told == nil {
			next = sooner(next, now.Add(reminder.Every.Duration)) // it was not told yet: what is not known waits
			continue
		}
		if isAhead(told, record.Delivery(way.Kind, way.Name)) {
			failed = errors.Join(failed, r.writeReminder(ctx, record, told))
		}
		switch at := reminder.Due(told); {
		case at.IsZero():
		case now.Before(at):
			next = sooner(next, at)
		default:
			due = append(due, record)
		}
	}
	if len(due) == 0 {
		return next, failed
	}
	channel := &fleetflowv1alpha1.NotificationChannel{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, channel); err != nil {
		return sooner(next, now.Add(remindAgain)), errors.Join(failed, client.IgnoreNotFound(err))
	}
	for _, message := range r.reminders(channel, rule, due, way, now) {
		if err := r.teller.send(ctx, way, channel, &message); err != nil {
			return sooner(next, now.Add(remindAgain)), failed // the status of the channel says why
		}
		for _, record := range message.Records {
			told := r.noteReminder(record, way, now)
			failed = errors.Join(failed, r.writeReminder(ctx, record, told))
			next = sooner(next, reminder.Due(told))
		}
	}
	return next, failed
}

// sooner returns the earlier of two times; a zero one is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reminders returns the messages by which a rule reminds, which are grouped as the first ones were.
func (r *reminder) reminders(channel *fleetflowv1alpha1.NotificationChannel, rule *Rule, due []*fleetflowv1alpha1.AuditRecord, way delivery.Key, now time.Time) []Message {
	messages := Messages(channel, rule, due)
	for i := range messages {
		message := &messages[i]
		message.Title = "Reminder: " + message.Title
		message.Reminder = r.toldBy(message.Records[0], way).Reminders + 1
		message.ID = fmt.Sprintf("%s-%d", message.ID, message.Reminder)
		for _, record := range message.Records[:min(len(message.Records), maxObjects)] {
			message.Entries = append(message.Entries, Entry{Custom: fmt.Sprintf("stage %s of run %s has waited for %s; reminder %d of %d at most", shown(record.Spec.StageName),
				shown(record.Spec.UpdateRunName), duration.HumanDuration(now.Sub(record.Spec.Time.Time)), r.toldBy(record, way).Reminders+1, rule.EffectiveReminder().AtMost)})
		}
	}
	return messages
}

// toldBy returns what is known of the delivery of a record by a way, also what could not be written yet; nil if it was not told.
func (r *reminder) toldBy(record *fleetflowv1alpha1.AuditRecord, way delivery.Key) *fleetflowv1alpha1.AuditDelivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	written := record.Delivery(way.Kind, way.Name)
	if last, is := r.reminded[reminded{record.Name, way}]; is && isAhead(&last, written) {
		return &last
	}
	return written
}

// isAhead reports whether more reminders are known than are written.
func isAhead(known, written *fleetflowv1alpha1.AuditDelivery) bool {
	return written != nil && known.Reminders > written.Reminders
}

// noteReminder notes that a reminder has arrived.
func (r *reminder) noteReminder(record *fleetflowv1alpha1.AuditRecord, way delivery.Key, at time.Time) *fleetflowv1alpha1.AuditDelivery {
	told := r.toldBy(record, way).DeepCopy()
	told.Reminders++
	told.LastReminderTime = &metav1.Time{Time: at}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reminded[reminded{record.Name, way}] = *told
	return told
}

// forgetReminded forgets what a rule has reminded of, of records for which no run waits any more.
func (r *reminder) forgetReminded(rule string, records []*fleetflowv1alpha1.AuditRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.reminded, func(of reminded, _ fleetflowv1alpha1.AuditDelivery) bool {
		return strings.HasPrefix(of.way.Name, rule+"/") &&
			!slices.ContainsFunc(records, func(record *fleetflowv1alpha1.AuditRecord) bool { return record.Name == of.record })
	})
}

// writeReminder writes into the status of a record that it was reminded of.
func (r *reminder) writeReminder(ctx context.Context, record *fleetflowv1alpha1.AuditRecord, told *fleetflowv1alpha1.AuditDelivery) error {
	var err error
	for range markTries {
		before := record.DeepCopy()
		of := record.Delivery(told.Kind, told.Name)
		if of == nil {
			return nil // there was no place for it any more
		}
		*of = *told
		err = r.client.Status().Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err == nil || apierrors.IsNotFound(err) {
			r.mu.Lock()
			delete(r.reminded, reminded{record.Name, delivery.Key{Kind: told.Kind, Name: told.Name}})
			r.mu.Unlock()
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
		if err = r.live.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil {
			break
		}
	}
	return fmt.Errorf("writing that %s has reminded of record %s: %w", strings.Replace(told.Name, "/", " in ", 1), record.Name, err)
}
