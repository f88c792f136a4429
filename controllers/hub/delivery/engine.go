package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// sendTimeout is how long a destination may take to answer.
	sendTimeout = 10 * time.Second
	// marksAtOnce is how many records are marked at the same time.
	marksAtOnce = 4
	// settle is for how long a record that one destination has taken waits for others, to be marked once.
	settle = time.Second
	// inOrderAfter is for how long a record waits for those before it: after a break, a watch lists what there is in any order.
	inOrderAfter = 200 * time.Millisecond
	// watchAgain is after how long it is tried again to learn of records.
	watchAgain = 10 * time.Second
	// maxError is how much is kept of what has gone wrong.
	maxError = 256
	// judgeAtOnce is of how many records it is found out at a time whether a destination wants them.
	judgeAtOnce = 100
)

// Source has the records that are not complete.
type Source interface {
	// Watch calls seen for each record that there is and that comes, and gone for each that is gone or complete, until the context ends. It returns
	// when all that there are were seen.
	Watch(ctx context.Context, seen func(*fleetflowv1alpha1.AuditRecord), gone func(name string)) error
}

// Existing returns the destinations that there are.
type Existing func(ctx context.Context) ([]Route, error)

// list returns them; none without a function that knows them.
func (of Existing) list(ctx context.Context) ([]Route, error) {
	if of == nil {
		return nil, nil
	}
	return of(ctx)
}

// Engine delivers records to the destinations that are put into it. It runs on the agent that leads, and needs no Temporal.
type Engine struct {
	// Client writes the marks, Live reads a record past every cache.
	Client client.Client
	Live   client.Reader
	Source Source
	Clock  clock.WithTicker
	Log    logr.Logger
	// Existing returns the destinations that there are, also those that were not put yet, with Key, Since and Wants: what one of them waits for is
	// not complete. With nil there are no others.
	Existing Existing
	// Jitter varies a wait; with nil by up to a fifth, downwards.
	Jitter func(time.Duration) time.Duration

	mu      sync.Mutex
	queues  map[Key]*queue
	records map[string]*tracked
	// unmarked are those of the records that have deliveries which are not in their status.
	unmarked map[string]*tracked
	told     map[string]func(name string)
	// isLeading is whether this agent delivers, and hasSynced whether all records that there were are known.
	isLeading bool
	hasSynced bool
	marking   int
	poked     chan struct{}
}

// tracked is a record that is not complete.
type tracked struct {
	record *fleetflowv1alpha1.AuditRecord
	// inOrder is from when on those before it are known.
	inOrder time.Time
	// over are the deliveries of this agent; of these unmarked are not in its status yet, the first since since.
	over      map[Key]bool
	unmarked  []fleetflowv1alpha1.AuditDelivery
	since     time.Time
	isMarking bool
	// failures counts marks that could not be written, and notBefore is when to try again.
	failures  int
	notBefore time.Time
	// completesLate is whether it was marked while it was not known yet who wants it.
	completesLate bool
	// isRefused is whether the API server takes no mark of it: nothing waits for one.
	isRefused bool
}

// NewEngine makes an Engine.
func NewEngine(c client.Client, live client.Reader, source Source, clk clock.WithTicker, log logr.Logger) *Engine {
	return &Engine{
		Client: c, Live: live, Source: source, Clock: clk, Log: log, Jitter: jitter,
		queues: map[Key]*queue{}, records: map[string]*tracked{}, unmarked: map[string]*tracked{}, told: map[string]func(string){}, poked: make(chan struct{}, 1),
	}
}

// jitter shortens a wait by up to a fifth.
func jitter(wait time.Duration) time.Duration {
	return wait - time.Duration(rand.Int64N(int64(wait)/5+1)) //nolint:gosec // nothing is kept secret by it
}

// bounded returns a text as it may be kept.
func bounded(text string) string {
	return clusterv1beta1.CutText(clusterv1beta1.Printable(text), maxError)
}

// OnChange has a function be told the name of a destination of a kind whose report has changed.
func (e *Engine) OnChange(kind string, tell func(name string)) { e.told[kind] = tell }

// Put makes a destination known, or changes it.
func (e *Engine) Put(route Route) {
	e.tell(e.put(route))
}

func (e *Engine) put(route Route) (changed []Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queues[route.Key]
	if q == nil {
		q = newQueue(route, e.Jitter)
		e.queues[route.Key] = q
	} else {
		q.set(route)
	}
	for _, t := range e.records {
		e.enqueue(q, t)
	}
	e.poke()
	return e.serve()
}

// Remove has nothing be delivered any more to a destination.
func (e *Engine) Remove(key Key) {
	e.tell(e.remove(key))
}

func (e *Engine) remove(key Key) (changed []Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.queues, key)
	e.poke()
	return e.serve()
}

// serve has those destinations be served that are there the longest, as many as the status of a record can tell of, and returns those of which
// that has changed. What is for the others waits.
func (e *Engine) serve() (changed []Key) {
	all := slices.SortedFunc(maps.Keys(e.queues), func(a, b Key) int {
		return cmp.Or(e.queues[a].route.Since.Compare(e.queues[b].route.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for i, key := range all {
		isServed := i < fleetflowv1alpha1.MaxDeliveries
		if e.queues[key].isServed != isServed {
			e.queues[key].isServed = isServed
			changed = append(changed, key)
		}
	}
	return changed
}

// tell tells that the reports of destinations have changed. The lock is not held.
func (e *Engine) tell(changed []Key) {
	for _, key := range changed {
		if tell := e.told[key.Kind]; tell != nil {
			tell(key.Name)
		}
	}
}

// Report returns what became of the records for a destination.
func (e *Engine) Report(key Key) Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.queues[key]; q != nil {
		return q.state()
	}
	return Report{}
}

// Reports returns what became of the records for each destination.
func (e *Engine) Reports() map[Key]Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[Key]Report, len(e.queues))
	for key, q := range e.queues {
		all[key] = q.state()
	}
	return all
}

// IsUndelivered reports whether a destination waits for a record, or may: what is not known yet may be so.
func (e *Engine) IsUndelivered(name string) bool {
	existing, err := e.Existing.list(context.Background()) // it is asked of a cache
	wanting := e.wanting(name, existing)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch t := e.records[name]; {
	case err != nil || !e.isLeading:
		return true
	case len(e.queues) == 0:
		return len(existing) > 0
	default:
		return !e.hasSynced || t != nil && (len(t.unmarked) > 0 || isOwed(e.queues, t) || isMissed(e.queues, t.record, wanting))
	}
}

// wanting returns which of the destinations that there are want a record. They are asked without the lock.
func (e *Engine) wanting(name string, existing []Route) (all []Key) {
	e.mu.Lock()
	t := e.records[name]
	var record *fleetflowv1alpha1.AuditRecord
	if t != nil {
		record = t.record
	}
	e.mu.Unlock()
	for i := range existing {
		if record != nil && existing[i].wants(record) {
			all = append(all, existing[i].Key)
		}
	}
	return all
}

// isMissed reports whether one of those that want a record was not put yet, and does not have it.
func isMissed(queues map[Key]*queue, record *fleetflowv1alpha1.AuditRecord, wanting []Key) bool {
	return slices.ContainsFunc(wanting, func(key Key) bool {
		return queues[key] == nil && !hasDelivery(record.Status.Deliveries, key)
	})
}

// poke has the engine look what is to be done. It never waits.
func (e *Engine) poke() {
	select {
	case e.poked <- struct{}{}:
	default:
	}
}

// Start delivers until the context ends, on the agent that leads, as a manager starts what does not say otherwise. As long as there is no destination, nothing is watched.
func (e *Engine) Start(ctx context.Context) error {
	e.mu.Lock()
	e.isLeading = true
	e.mu.Unlock()
	var watching context.CancelFunc
	for {
		e.mu.Lock()
		needed := len(e.queues) > 0
		e.mu.Unlock()
		switch {
		case needed && watching == nil:
			inner, stop := context.WithCancel(ctx)
			watching = stop
			go e.watch(inner)
		case !needed && watching != nil:
			watching()
			watching = nil
			e.forgetAll()
		}
		again := e.turn(ctx, func(do func()) { go do() })
		if !e.sleep(ctx, again) {
			if watching != nil {
				watching()
			}
			return nil
		}
	}
}

// sleep waits until something has happened, or a time; it reports whether the context goes on.
func (e *Engine) sleep(ctx context.Context, until time.Time) bool {
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := e.Clock.NewTimer(max(until.Sub(e.Clock.Now()), 0))
		defer timer.Stop()
		alarm = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-e.poked:
	case <-alarm:
	}
	return true
}

// watch learns of records until the context ends.
func (e *Engine) watch(ctx context.Context) {
	for {
		err := e.Source.Watch(ctx, e.seen, e.forget)
		if err == nil || ctx.Err() != nil {
			break
		}
		e.Log.Error(err, "Watching the records that are to be delivered")
		timer := e.Clock.NewTimer(watchAgain)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hasSynced = ctx.Err() == nil
	e.poke()
}

// forgetAll forgets the records: there is no destination.
func (e *Engine) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records = map[string]*tracked{}
	e.unmarked = map[string]*tracked{}
	e.hasSynced = false
}

// seen notes a record that is not complete.
func (e *Engine) seen(record *fleetflowv1alpha1.AuditRecord) {
	if record.Status.Complete {
		e.forget(record.Name)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queues) == 0 {
		return // no destination asks for it any more
	}
	t := e.records[record.Name]
	if t == nil || t.record.UID != record.UID {
		t = &tracked{over: map[Key]bool{}}
		if e.hasSynced {
			t.inOrder = e.Clock.Now().Add(inOrderAfter)
		}
		e.records[record.Name] = t
	}
	t.record = record
	for _, q := range e.queues {
		e.enqueue(q, t)
	}
	e.poke()
}

// forget notes that a record is gone, or complete.
func (e *Engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.records, name)
	delete(e.unmarked, name)
	for _, q := range e.queues {
		q.drop(name)
	}
	e.poke()
}

// enqueue has a record wait for a destination that does not have it. Whether it is wanted is found out without the lock, unless it is plain.
func (e *Engine) enqueue(q *queue, t *tracked) {
	if q.route.isBefore(t.record) || t.isOver(q.route.Key) {
		q.drop(t.record.Name)
		return
	}
	q.add(t.record, t.inOrder)
}

// judge finds out which records a destination wants. Others go on meanwhile, however long it takes.
func (e *Engine) judge(q *queue) {
	e.mu.Lock()
	asked := q.toAsk(judgeAtOnce)
	route := q.route
	e.mu.Unlock()
	for i := range asked {
		asked[i].isWanted = route.wants(asked[i].record)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range q.answered(asked) {
		if t := e.records[name]; t != nil && e.unmarked[name] == nil && e.isMarkDue(t) {
			t.since = e.Clock.Now()
			e.unmarked[name] = t
		}
	}
	e.poke()
}

// isMarkDue reports whether there is something to be written into the status of a record.
func (e *Engine) isMarkDue(t *tracked) bool {
	return len(t.unmarked) > 0 || t.completesLate && !isOwed(e.queues, t)
}

// isOver reports whether the delivery to a destination is over. What is seen of a record may be older than what this agent has done.
func (t *tracked) isOver(key Key) bool {
	return t.over[key] || hasDelivery(t.record.Status.Deliveries, key)
}

// hasDelivery reports whether a delivery to a destination is over by a status.
func hasDelivery(all []fleetflowv1alpha1.AuditDelivery, key Key) bool {
	return slices.ContainsFunc(all, func(d fleetflowv1alpha1.AuditDelivery) bool { return Key{d.Kind, d.Name} == key })
}

// isUnknown reports whether it is not known yet if a destination wants a record.
func isUnknown(queues map[Key]*queue, t *tracked) bool {
	for _, q := range queues {
		if q.toJudge[t.record.Name] != nil {
			return true
		}
	}
	return false
}

// fitting returns as many deliveries as a status has place for: those go first that were to destinations which are not there any more.
func fitting(all []fleetflowv1alpha1.AuditDelivery, isThere func(Key) bool) []fleetflowv1alpha1.AuditDelivery {
	for len(all) > fleetflowv1alpha1.MaxDeliveries {
		gone := slices.IndexFunc(all, func(d fleetflowv1alpha1.AuditDelivery) bool { return !isThere(Key{d.Kind, d.Name}) })
		all = slices.Delete(all, max(gone, 0), max(gone, 0)+1)
	}
	return all
}

// isOwed reports whether a destination waits for a record, or may.
func isOwed(queues map[Key]*queue, t *tracked) bool {
	for _, q := range queues {
		if q.byName[t.record.Name] != nil {
			return true
		}
	}
	return false
}

// isExpected reports whether another destination that takes what it gets is to get a record soon: both are in one mark then.
func isExpected(queues map[Key]*queue, t *tracked) bool {
	for _, q := range queues {
		if w := q.byName[t.record.Name]; w != nil && !w.passedOver && !q.refused && q.failures == 0 && q.route.Collect == 0 {
			return true
		}
	}
	return false
}

// turn starts what is to be done now, and returns when there is more; zero if only something that happens changes that. A destination gets
// nothing while something that it has taken is not marked: whenever the agent ends, the next one repeats one request to it at most.
func (e *Engine) turn(ctx context.Context, run func(do func())) (again time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.queues {
		if q.isServed && !q.isJudging && len(q.toJudge) > 0 {
			q.isJudging = true
			run(func() { e.judge(q) })
		}
	}
	if !e.hasSynced {
		return again // what is known has gaps
	}
	now := e.Clock.Now()
	unmarked := map[Key]bool{}
	for name, t := range e.unmarked {
		for _, d := range t.unmarked {
			unmarked[Key{d.Kind, d.Name}] = unmarked[Key{d.Kind, d.Name}] || !t.isRefused
		}
		from := t.notBefore
		if settled := t.since.Add(settle); isExpected(e.queues, t) && settled.After(from) {
			from = settled
		}
		switch {
		case t.isMarking || e.marking >= marksAtOnce:
		case now.Before(from):
			again = earliest(again, from)
		default:
			t.isMarking = true
			e.marking++
			run(func() { e.mark(ctx, name, t) })
		}
	}
	for key, q := range e.queues {
		if !q.isServed || unmarked[key] {
			continue // a mark that is written, or fails, has this be looked at again
		}
		batch, from := q.next(now)
		if len(batch) == 0 {
			again = earliest(again, from)
			continue
		}
		run(func() { e.send(ctx, key, q, batch) })
	}
	return again
}

// send delivers a batch, and notes what became of it.
func (e *Engine) send(ctx context.Context, key Key, q *queue, batch []*waiting) {
	e.mu.Lock()
	to := q.route.To
	version := q.route.Version
	records := make([]fleetflowv1alpha1.AuditRecord, len(batch))
	for i, w := range batch {
		records[i] = *w.record.DeepCopy()
	}
	e.mu.Unlock()
	inTime, cancel := context.WithTimeout(ctx, sendTimeout)
	err := to.Deliver(inTime, records)
	if err != nil && inTime.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it has not answered within %s", sendTimeout)
	}
	cancel()
	e.mu.Lock()
	now := e.Clock.Now()
	over := batch
	why := ""
	switch {
	case err == nil:
		q.taken(batch, now)
	case q.route.Version != version:
		q.again(batch)
		over = nil
	default:
		why = bounded(err.Error())
		over = q.failed(batch, err, now)
	}
	if e.queues[key] == q || err == nil { // one that was removed meanwhile has the records all the same
		for _, w := range over {
			e.note(key, w, why, now)
		}
	}
	tell := e.told[key.Kind]
	e.poke()
	e.mu.Unlock()
	if tell != nil {
		tell(key.Name)
	}
}

// note notes that the delivery of a record is over.
func (e *Engine) note(key Key, w *waiting, why string, now time.Time) {
	t := e.records[w.record.Name]
	if t == nil || t.record.UID != w.record.UID || t.isOver(key) {
		return
	}
	if len(t.unmarked) == 0 {
		t.since = now
	}
	e.unmarked[w.record.Name] = t
	t.over[key] = true
	t.unmarked = append(t.unmarked, fleetflowv1alpha1.AuditDelivery{
		Kind: key.Kind, Name: key.Name, Time: metav1.NewTime(now.UTC().Truncate(time.Second)), Attempts: w.attempts, Error: why,
	})
}

// mark writes into the status of a record what has become of it.
func (e *Engine) mark(ctx context.Context, name string, t *tracked) {
	existing, err := e.Existing.list(ctx)
	wanting := e.wanting(name, existing)
	e.mu.Lock()
	record := t.record.DeepCopy()
	unmarked := len(t.unmarked)
	before := record.DeepCopy()
	for _, d := range t.unmarked {
		if !hasDelivery(record.Status.Deliveries, Key{d.Kind, d.Name}) {
			record.Status.Deliveries = append(record.Status.Deliveries, d)
		}
	}
	record.Status.Complete = !isOwed(e.queues, t) && !isMissed(e.queues, record, wanting)
	t.completesLate = !record.Status.Complete && isUnknown(e.queues, t)
	record.Status.Deliveries = fitting(record.Status.Deliveries, func(key Key) bool {
		return e.queues[key] != nil || slices.Contains(wanting, key)
	})
	e.mu.Unlock()
	if err == nil {
		err = e.Client.Status().Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	var current *fleetflowv1alpha1.AuditRecord
	if apierrors.IsConflict(err) {
		current = &fleetflowv1alpha1.AuditRecord{}
		if failed := e.Live.Get(ctx, client.ObjectKeyFromObject(record), current); failed != nil {
			err = failed
			current = nil
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marking--
	t.isMarking = false
	defer e.poke()
	switch {
	case err == nil:
		t.record = record
		t.unmarked = t.unmarked[unmarked:]
		t.failures = 0
		t.notBefore = time.Time{}
		t.isRefused = false
		if e.unmarked[name] == t && !e.isMarkDue(t) {
			delete(e.unmarked, name)
		}
	case apierrors.IsNotFound(err):
		if e.records[name] == t {
			delete(e.records, name)
			delete(e.unmarked, name)
		}
	case ctx.Err() != nil:
	default:
		e.noteFailure(t, err, current)
	}
}

// noteFailure notes that a mark could not be written, and when it is tried again; current is the record as another has written it, nil if that is not
// why.
func (e *Engine) noteFailure(t *tracked, err error, current *fleetflowv1alpha1.AuditRecord) {
	if current != nil {
		t.record = current
	} else if t.failures == 0 {
		e.Log.Error(err, "Marking a record that was delivered", "name", t.record.Name)
	}
	t.isRefused = apierrors.IsInvalid(err)
	t.failures++
	if current == nil || t.failures > 1 { // a destination waits for it: what another has written is gone on with at once
		t.notBefore = e.Clock.Now().Add(e.Jitter(min(firstWait<<min(t.failures-1, 6), time.Minute)))
	}
}
