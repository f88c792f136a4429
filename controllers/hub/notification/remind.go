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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
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
	// runsAtATime is of how many runs the records are listed at a time: all of them are named in the address of the request.
	runsAtATime = 100
	// longestPause is how long what was not told is left alone at most, unless reminders are further apart.
	longestPause = 24 * time.Hour
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
	every := object.EffectiveReminder().Every.Duration
	waiting, first, next, err := r.waiting(ctx, every)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(waiting) > 0 {
		again, err := r.remindOf(ctx, of.rule, waiting, first)
		if err != nil {
			return reconcile.Result{}, err
		}
		next = sooner(next, again)
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(r.clock.Now()), time.Second)}, nil
}

// remindOf reminds by a rule of approvals that wait, and returns when there is more to be done; zero if only something that happens changes that.
// The first of them was made at a time before which none was told.
func (r *reminder) remindOf(ctx context.Context, rule *Rule, waiting map[asked]bool, first time.Time) (next time.Time, failed error) {
	every := rule.EffectiveReminder().Every.Duration
	if due := first.Add(every); r.clock.Now().Before(due) {
		return due, nil
	}
	records, err := r.requested(ctx, waiting)
	if err != nil {
		return next, err
	}
	r.forgetReminded(rule.Name, records)
	if len(records) < len(waiting) { // a record is written later, or was never
		next = untoldAgain(r.clock.Now(), first, every)
	}
	for _, name := range rule.ChannelNames() {
		again, err := r.remindIn(ctx, rule, name, records)
		next = sooner(next, again)
		failed = errors.Join(failed, err)
	}
	if soonest := r.clock.Now().Add(leastApart); !next.IsZero() && next.Before(soonest) {
		next = soonest
	}
	return next, failed
}

// isAnswered reports whether an approval request was answered, as far as it says: one that was rejected waits for those who talk about it.
func isAnswered(request placementv1beta1.ApprovalRequestObject) bool {
	said := meta.FindStatusCondition(request.GetConditions(), placementv1beta1.ConditionTypeApproved)
	return said != nil && said.Reason == placementv1beta1.ReasonVoteRejected || meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApproved) ||
		meta.IsStatusConditionTrue(request.GetConditions(), placementv1beta1.ConditionTypeApprovalAccepted)
}

// standing is how far an approval request is.
type standing int

const (
	// over is a request that is not answered any more, or that needs no answer.
	over standing = iota
	// early is a request for which its run does not wait, as far as is known, and may yet.
	early
	// open is a request for which its run waits.
	open
)

// standingOf returns how far an approval request is. The run is empty if it is not known: a request may be known before its run is, and before the run
// says that it was made. A run that was stopped waits for no answer until it goes on.
func standingOf(request placementv1beta1.ApprovalRequestObject, run placementv1beta1.UpdateRunObject, now time.Time) standing {
	expires := request.GetApprovalRequestSpec().ExpirationTime
	switch {
	case isAnswered(request), request.GetDeletionTimestamp() != nil, expires != nil && !now.Before(expires.Time):
		return over
	case run.GetUID() == "", request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation] != string(run.GetUID()):
		return early
	case run.GetDeletionTimestamp() != nil, rules.IsRunOver(run):
		return over
	}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for task := range stagetask.Statuses(&stages[i]) {
			switch {
			case task.ApprovalRequestName != request.GetName():
			case meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved):
				return over
			case meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated) && run.GetUpdateRunSpec().State != placementv1beta1.StateStop:
				return open
			}
		}
	}
	return early
}

// asked tells approval requests apart: by the run that waits, and their name.
type asked struct {
	run     types.UID
	request string
}

// waiting returns the approval requests that wait for an answer, when the first of them was made, and when to look again at those that do not wait yet;
// zero if there are none. Nothing else has the rule look when a run begins to wait: there is one look when a reminder is due at the earliest, and one
// every so often after that.
func (r *reminder) waiting(ctx context.Context, every time.Duration) (waiting map[asked]bool, first, again time.Time, err error) {
	waiting = map[asked]bool{}
	now := r.clock.Now()
	for _, scope := range placementv1beta1.Scopes() {
		all := scope.NewApprovalRequestList()
		if err := r.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return nil, first, again, fmt.Errorf("listing the approval requests: %w", err)
		}
		for _, request := range all.Objects() {
			if isAnswered(request) {
				continue
			}
			of := placementv1beta1.ScopeOf(request)
			run := of.NewUpdateRun("")
			err := r.client.Get(ctx, of.Key(request.GetApprovalRequestSpec().TargetUpdateRun), run, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return nil, first, again, fmt.Errorf("reading the run of approval request %s: %w", request.GetName(), err)
			}
			made := request.GetCreationTimestamp().Time
			switch standingOf(request, run, now) {
			case open:
				waiting[asked{run.GetUID(), request.GetName()}] = true
				first = sooner(first, made)
			case early:
				again = sooner(again, now.Add(every))
				if earliest := made.Add(every); now.Before(earliest) {
					again = sooner(again, earliest)
				}
			case over:
			}
		}
	}
	return waiting, first, again, nil
}

// requested returns, of each of the approval requests, the last record that says that it was made.
func (r *reminder) requested(ctx context.Context, waiting map[asked]bool) ([]*fleetflowv1alpha1.AuditRecord, error) {
	runs := map[string]bool{}
	for of := range waiting {
		runs[string(of.run)] = true
	}
	last := map[asked]*fleetflowv1alpha1.AuditRecord{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(runs)), runsAtATime) {
		ofRuns, err := labels.NewRequirement(fleetflowv1alpha1.AuditSubjectLabel, selection.In, some)
		if err != nil {
			return nil, fmt.Errorf("selecting the records of the runs that wait: %w", err)
		}
		ofType := labels.Set{fleetflowv1alpha1.AuditTypeLabel: string(fleetflowv1alpha1.RecordApprovalRequested)}
		var all fleetflowv1alpha1.AuditRecordList
		if err := r.live.List(ctx, &all, client.MatchingLabelsSelector{Selector: ofType.AsSelector().Add(*ofRuns)}); err != nil {
			return nil, fmt.Errorf("listing the records of approval requests: %w", err)
		}
		for i := range all.Items {
			record := &all.Items[i]
			of := asked{types.UID(record.Spec.SubjectRef.UID), string(record.Spec.Data["approvalRequest"])}
			if waiting[of] && (last[of] == nil || last[of].Spec.Sequence < record.Spec.Sequence) {
				last[of] = record
			}
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
			if !record.Status.Complete { // what is complete is not told by the way any more
				next = sooner(next, untoldAgain(now, record.Spec.Time.Time, reminder.Every.Duration))
			}
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

// untoldAgain returns when to look again at what was not told since a time: after longer and longer pauses.
func untoldAgain(now, since time.Time, every time.Duration) time.Time {
	return now.Add(max(every, min(now.Sub(since), longestPause)))
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

// forgetReminded forgets what a rule has reminded of, of records of approvals for which no run waits.
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
		of.Reminders = told.Reminders
		of.LastReminderTime = told.LastReminderTime
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
		there := &fleetflowv1alpha1.AuditRecord{} // decoded into the record, what an answer leaves out would stay as it was set here
		if err = r.live.Get(ctx, client.ObjectKeyFromObject(record), there); err != nil {
			break
		}
		*record = *there
	}
	return fmt.Errorf("writing that %s has reminded of record %s: %w", strings.Replace(told.Name, "/", " in ", 1), record.Name, err)
}
