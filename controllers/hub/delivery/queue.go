package delivery

import (
	"cmp"
	"errors"
	"slices"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// firstWait is how long is waited after the first failure, each next one twice as long up to longestWait. What has failed for longTrouble is
	// tried again every slowWait.
	firstWait   = time.Second
	longestWait = 15 * time.Minute
	longTrouble = 72 * time.Hour
	slowWait    = time.Hour
	// longestAsked is for how long a destination may ask to be left alone.
	longestAsked = time.Hour
)

// queue has the records for one destination. It decides: it calls nothing and knows no clock.
type queue struct {
	route Route
	// jitter varies a wait, so that agents that have failed together do not try again together.
	jitter func(time.Duration) time.Duration

	// subjects have what waits, in the order of each subject.
	subjects map[string][]*waiting
	byName   map[string]*waiting
	// toJudge are those of which it is to be found out, whether they are wanted by the route as it was put last, for the putsth time.
	toJudge   map[string]*waiting
	puts      int
	isJudging bool
	// judgeAgain is when it is asked again what could not be found out, and unjudged why that is; empty if nothing is.
	judgeAgain time.Time
	unjudged   string
	// isServed is whether it is among as many destinations as are served.
	isServed bool

	// failures counts those since the last success, the first at failingSince; notBefore is when to try again, and limit how many records
	// are sent at once until one attempt has succeeded.
	failures     int
	failingSince time.Time
	notBefore    time.Time
	limit        int
	// isUnderWay is whether a request is: there is one at a time, as each that was not marked is repeated when the agent ends.
	isUnderWay bool
	// lastSuccess is when the destination has taken something.
	lastSuccess time.Time
	// refused is whether the destination refuses whatever it gets, by its settings.
	refused bool
	report  Report
}

// waiting is a record that a destination is to get.
type waiting struct {
	record   *fleetflowv1alpha1.AuditRecord
	attempts int32
	// inOrder is from when on those before it are known, notBefore when to try again.
	inOrder   time.Time
	notBefore time.Time
	// tried is when the last attempt began, failingSince when the first one has failed.
	tried, failingSince time.Time
	underWay            bool
	// isWanted is what is known of whether it is wanted, and isHeld whether that is to be known before it is sent.
	isWanted, isHeld bool
	// passedOver is whether the destination refuses this record: those behind it pass, and it waits for other settings.
	passedOver bool
}

func newQueue(route Route, jitter func(time.Duration) time.Duration) *queue {
	q := &queue{jitter: jitter, subjects: map[string][]*waiting{}, byName: map[string]*waiting{}, toJudge: map[string]*waiting{}, isServed: true}
	q.set(route)
	return q
}

// set takes over how records are delivered. Under other settings everything is tried again at once.
func (q *queue) set(route Route) {
	isOther := q.route.Version != route.Version
	isJudgedAgain := route.FilterVersion == "" || q.route.FilterVersion != route.FilterVersion
	q.route = route
	q.puts++
	q.route.Batch = max(route.Batch, 1)
	for _, w := range q.byName {
		w.isHeld = w.isHeld || isJudgedAgain // until it is added again
	}
	if q.limit > q.route.Batch || q.limit == 0 {
		q.limit = q.route.Batch
	}
	if !isOther {
		return
	}
	q.refused = false
	q.failures = 0
	q.notBefore = time.Time{}
	q.limit = q.route.Batch
	for _, w := range q.byName {
		w.notBefore = time.Time{}
		w.passedOver = false
	}
}

// enqueue has a record wait for the destination, if that does not have it. Whether it is wanted is found out without the lock, unless it is plain.
func (q *queue) enqueue(t *tracked) {
	if q.route.isBefore(t.record) || t.isOver(q.route.Key) {
		q.drop(t.record.Name)
		return
	}
	q.add(t.record, t.inOrder)
}

// add has a record wait, unless it does; it is sent from a time on.
func (q *queue) add(record *fleetflowv1alpha1.AuditRecord, from time.Time) {
	w := q.byName[record.Name]
	isNew := w == nil
	if isNew {
		w = &waiting{inOrder: from, isHeld: true}
		q.byName[record.Name] = w
	}
	isOwed := w.isOwed(q.route.FilterVersion, record)
	w.record = record
	switch {
	case q.route.Wants == nil:
		q.note(w, true)
	case !isOwed:
		q.toJudge[record.Name] = w
	}
	if !isNew {
		return
	}
	subject := record.Spec.SubjectRef.UID
	at, _ := slices.BinarySearchFunc(q.subjects[subject], w, inOrder)
	q.subjects[subject] = slices.Insert(q.subjects[subject], at, w)
}

// isOwed reports whether a record that waits is wanted by the filter that there is: whatever becomes of its placement, it stays so.
func (w *waiting) isOwed(filterVersion string, record *fleetflowv1alpha1.AuditRecord) bool {
	return filterVersion != "" && w.isWanted && !w.isHeld && w.record.UID == record.UID
}

// note notes that a record is wanted.
func (q *queue) note(w *waiting, isWanted bool) {
	delete(q.toJudge, w.record.Name)
	w.isWanted = isWanted
	w.isHeld = false
}

// asked is a question whether a record is wanted, by the route of a put.
type asked struct {
	w        *waiting
	record   *fleetflowv1alpha1.AuditRecord
	puts     int
	isWanted bool
	// err is why that is not known.
	err error
}

// toAsk returns up to so many questions whether a record is wanted.
func (q *queue) toAsk(most int) (all []asked) {
	for _, w := range q.toJudge {
		if len(all) == most {
			break
		}
		all = append(all, asked{w: w, record: w.record, puts: q.puts})
	}
	return all
}

// answered notes which records are wanted, and returns the names of those that are not. An answer about a route or a record that is another one
// meanwhile counts for nothing, and neither does one that says that it is not known: it is asked again.
func (q *queue) answered(all []asked, now time.Time) (unwanted []string) {
	q.isJudging = false
	q.unjudged = ""
	for _, a := range all {
		name := a.record.Name
		switch {
		case a.puts != q.puts || q.byName[name] != a.w || a.w.record != a.record:
		case a.err != nil:
			q.unjudged = bounded(a.err.Error())
			q.judgeAgain = now.Add(q.jitter(watchAgain))
		case a.isWanted:
			q.note(a.w, true)
		default:
			q.drop(name)
			unwanted = append(unwanted, name)
		}
	}
	return unwanted
}

// inOrder compares records of one subject.
func inOrder(a, b *waiting) int {
	return cmp.Or(cmp.Compare(a.record.Spec.Sequence, b.record.Spec.Sequence), cmp.Compare(a.record.Name, b.record.Name))
}

// drop has a record wait no more.
func (q *queue) drop(name string) {
	w := q.byName[name]
	if w == nil {
		return
	}
	delete(q.byName, name)
	delete(q.toJudge, name)
	subject := w.record.Spec.SubjectRef.UID
	q.subjects[subject] = slices.DeleteFunc(q.subjects[subject], func(other *waiting) bool { return other == w })
	if len(q.subjects[subject]) == 0 {
		delete(q.subjects, subject)
	}
}

// next returns which records to send now; none if there are none. Without any, again is when to ask once more; zero if only something else that
// happens changes that.
func (q *queue) next(now time.Time) (batch []*waiting, again time.Time) {
	switch {
	case q.refused, q.isUnderWay, len(q.byName) == 0:
		return nil, time.Time{}
	case now.Before(q.notBefore):
		return nil, q.notBefore
	}
	if q.route.Together {
		if due := q.dueTogether(); now.Before(due) {
			return nil, due
		}
		if q.isHeldUp(now) {
			return nil, time.Time{} // an answer comes
		}
	}
	var heads [][]*waiting
	for _, all := range q.subjects {
		ready, from := q.readyOf(all, now)
		again = earliest(again, from)
		if len(ready) > 0 {
			heads = append(heads, ready)
		}
	}
	slices.SortFunc(heads, func(a, b []*waiting) int {
		return cmp.Or(a[0].tried.Compare(b[0].tried), a[0].record.CreationTimestamp.Compare(b[0].record.CreationTimestamp.Time),
			cmp.Compare(a[0].record.Name, b[0].record.Name))
	})
	for _, ready := range heads {
		batch = append(batch, ready[:min(len(ready), q.limit-len(batch))]...)
		if len(batch) >= q.limit || q.route.OneSubject {
			break
		}
	}
	for _, w := range batch {
		w.underWay = true
		w.tried = now
		w.attempts++
	}
	if len(batch) > 0 {
		q.isUnderWay = true
		return batch, time.Time{}
	}
	return nil, again
}

// dueTogether returns when all that waits is due: when the first of it is, and as much time has passed since the last time.
func (q *queue) dueTogether() time.Time {
	var oldest time.Time
	for _, w := range q.byName {
		if !w.passedOver && !w.isHeld {
			oldest = earliest(oldest, w.record.CreationTimestamp.Time)
		}
	}
	due := oldest.Add(q.route.Collect)
	if again := q.lastSuccess.Add(q.route.Collect); !q.lastSuccess.IsZero() && again.After(due) {
		return again
	}
	return due
}

// isHeldUp reports whether records are due of which it is not known yet whether they are wanted.
func (q *queue) isHeldUp(now time.Time) bool {
	for _, w := range q.toJudge {
		if w.isHeld && !now.Before(w.record.CreationTimestamp.Add(q.route.Collect)) {
			return true
		}
	}
	return false
}

// readyOf returns what may be sent of one subject: the first of its records and what follows it without a gap. A record that has failed lets
// nothing behind it pass, one that is passed over does.
func (q *queue) readyOf(all []*waiting, now time.Time) (ready []*waiting, from time.Time) {
	for _, w := range all {
		switch {
		case w.underWay:
			return nil, time.Time{} // an answer comes
		case w.isHeld:
			return ready, time.Time{}
		case w.passedOver:
			continue
		}
		if from = w.notBefore; w.inOrder.After(from) {
			from = w.inOrder
		}
		if collected := w.record.CreationTimestamp.Add(q.route.Collect); len(ready) == 0 && q.route.Collect > 0 && !q.route.Together && collected.After(from) {
			from = collected
		}
		if now.Before(from) {
			return ready, from
		}
		ready = append(ready, w)
	}
	return ready, time.Time{}
}

// isReady reports whether a destination that takes what it gets may get a record at once.
func (w *waiting) isReady(q *queue, now time.Time) bool {
	takes := q.isServed && !q.isUnderWay && !q.refused && q.failures == 0 && q.route.Collect == 0
	return takes && !w.passedOver && !w.isHeld && !now.Before(w.inOrder) && !now.Before(w.notBefore)
}

// earliest returns the earlier of two times; a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// taken notes that the destination has taken a batch.
func (q *queue) taken(batch []*waiting, now time.Time) {
	q.isUnderWay = false
	q.failures = 0
	q.notBefore = time.Time{}
	q.limit = min(2*q.limit, q.route.Batch)
	q.lastSuccess = now
	q.report.LastError = ""
	for _, w := range batch {
		q.report.Delivered++
		q.drop(w.record.Name)
	}
}

// again has a batch that was sent under other settings be sent once more: what was answered says nothing of those that there are.
func (q *queue) again(batch []*waiting) {
	q.isUnderWay = false
	for _, w := range batch {
		w.underWay = false
	}
}

// failed notes that the destination has not taken a batch, and returns what is given up of it. Whatever fails is sent in smaller parts, until
// it shows which record it is.
func (q *queue) failed(batch []*waiting, err error, now time.Time) (givenUp []*waiting) {
	q.isUnderWay = false
	q.report.LastError = bounded(err.Error())
	for _, w := range batch {
		w.underWay = false
		if w.failingSince.IsZero() {
			w.failingSince = now
		}
	}
	if refused, is := errors.AsType[*RefusedError](err); is {
		q.noteRefusal(batch, refused)
		return nil
	}
	if !q.route.Together {
		q.limit = max(len(batch)/2, 1)
	}
	if q.failures == 0 {
		q.failingSince = now
	}
	q.failures++
	q.notBefore = now.Add(q.wait(q.failures, q.failingSince, now))
	if asked, is := errors.AsType[*RetryError](err); is {
		q.notBefore = now.Add(min(asked.After, longestAsked))
	}
	for _, w := range batch {
		if !q.route.Together {
			w.notBefore = now.Add(q.wait(int(w.attempts), w.failingSince, now))
		}
		switch {
		case q.route.Patience > 0 && now.Sub(w.failingSince) >= q.route.Patience:
			givenUp = append(givenUp, w)
		case len(batch) == 1 && now.Sub(w.failingSince) >= longTrouble && q.lastSuccess.After(w.failingSince):
			w.passedOver = true // others were taken all the time: it is this one
		}
	}
	for _, w := range givenUp {
		q.report.GivenUp++
		q.drop(w.record.Name)
	}
	return givenUp
}

// noteRefusal notes that trying again is no use, of the destination or of a record.
func (q *queue) noteRefusal(batch []*waiting, refused *RefusedError) {
	switch {
	case !refused.Content:
		q.refused = true
	case len(batch) == 1:
		batch[0].passedOver = true
	default:
		q.limit = max(len(batch)/2, 1)
	}
}

// wait returns how long to wait after so many failures.
func (q *queue) wait(failures int, since, now time.Time) time.Duration {
	if now.Sub(since) >= longTrouble {
		return q.jitter(slowWait)
	}
	wait := longestWait
	if doublings := failures - 1; doublings < 10 {
		wait = min(firstWait<<max(doublings, 0), longestWait)
	}
	return q.jitter(wait)
}

// state returns what became of the records for the destination.
func (q *queue) state() Report {
	report := q.report
	report.Refused = q.refused
	report.Unserved = !q.isServed
	report.LastError = cmp.Or(report.LastError, q.unjudged)
	for _, w := range q.byName {
		if !w.isWanted {
			continue
		}
		report.Pending++
		report.OldestPending = earliest(report.OldestPending, w.record.CreationTimestamp.Time)
		report.Refused = report.Refused || w.passedOver
	}
	return report
}
