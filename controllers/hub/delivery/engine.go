package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// watchAgain is after how long it is tried again to learn of records, and to find out whether one is wanted.
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

	mu       sync.Mutex
	queues   queues
	tracking tracking
	told     listeners
	// isLeading is whether this agent delivers, and hasSynced whether all records that there were are known.
	isLeading bool
	hasSynced bool
	poked     alarm
}

// NewEngine makes an Engine.
func NewEngine(c client.Client, live client.Reader, source Source, clk clock.WithTicker, log logr.Logger) *Engine {
	return &Engine{
		Client: c, Live: live, Source: source, Clock: clk, Log: log, Jitter: jitter,
		queues: queues{}, tracking: newTracking(), told: listeners{}, poked: make(alarm, 1),
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
	e.told.tell(e.put(route)...)
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
	for _, t := range e.tracking.records {
		q.enqueue(t)
	}
	e.poked.poke()
	return e.queues.serve()
}

// Remove has nothing be delivered any more to a destination.
func (e *Engine) Remove(key Key) {
	e.told.tell(e.remove(key)...)
}

func (e *Engine) remove(key Key) (changed []Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.queues, key)
	e.poked.poke()
	return e.queues.serve()
}

// Report returns what became of the records for a destination.
func (e *Engine) Report(key Key) Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.queues[key]; q != nil {
		return e.tracking.withRefusal(key, q.state())
	}
	return Report{}
}

// Reports returns what became of the records for each destination.
func (e *Engine) Reports() map[Key]Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make(map[Key]Report, len(e.queues))
	for key, q := range e.queues {
		all[key] = e.tracking.withRefusal(key, q.state())
	}
	return all
}

// IsUndelivered reports whether a destination waits for a record, or may: what is not known yet may be so.
func (e *Engine) IsUndelivered(name string) bool {
	existing, err := e.Existing.list(context.Background()) // it is asked of a cache
	wanting := e.wanting(name, existing)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch t := e.tracking.records[name]; {
	case err != nil || !e.isLeading:
		return true
	case len(e.queues) == 0:
		return len(existing) > 0
	default:
		return !e.hasSynced || t != nil && (len(t.unmarked) > 0 || e.queues.isOwed(t) || e.queues.isMissed(t.record, wanting))
	}
}

// wanting returns which of the destinations that there are want a record, or may. They are asked without the lock.
func (e *Engine) wanting(name string, existing []Route) (all []Key) {
	e.mu.Lock()
	t := e.tracking.records[name]
	var record *fleetflowv1alpha1.AuditRecord
	if t != nil {
		record = t.record
	}
	e.mu.Unlock()
	for i := range existing {
		if record == nil {
			continue
		}
		if isWanted, err := existing[i].wants(record); isWanted || err != nil { // what is not known may be so
			all = append(all, existing[i].Key)
		}
	}
	return all
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
		if !e.poked.sleep(ctx, e.Clock, again) {
			if watching != nil {
				watching()
			}
			return nil
		}
	}
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
	if ctx.Err() == nil { // a watch that was ended says nothing of the next one
		e.hasSynced = true
	}
	e.poked.poke()
}

// forgetAll forgets the records: there is no destination.
func (e *Engine) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracking.forgetAll()
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
	t := e.tracking.records[record.Name]
	if t == nil || t.record.UID != record.UID {
		t = &tracked{over: map[Key]bool{}}
		if e.hasSynced {
			t.inOrder = e.Clock.Now().Add(inOrderAfter)
		}
		e.tracking.records[record.Name] = t
	}
	t.record = record
	for _, q := range e.queues {
		q.enqueue(t)
	}
	e.poked.poke()
}

// forget notes that a record is gone, or complete.
func (e *Engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracking.forget(name)
	for _, q := range e.queues {
		q.drop(name)
	}
	e.poked.poke()
}

// judge finds out which records a destination wants. Others go on meanwhile, however long it takes.
func (e *Engine) judge(q *queue) {
	e.mu.Lock()
	asked := q.toAsk(judgeAtOnce)
	route := q.route
	e.mu.Unlock()
	for i := range asked {
		asked[i].isWanted, asked[i].err = route.wants(asked[i].record)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range q.answered(asked, e.Clock.Now()) {
		e.tracking.noteUnwanted(name, e.queues, e.Clock.Now())
	}
	e.poked.poke()
}

// turn starts what is to be done now, and returns when there is more; zero if only something that happens changes that. A destination gets
// nothing while something that it has taken is not marked: whenever the agent ends, the next one repeats one request to it at most.
func (e *Engine) turn(ctx context.Context, run func(do func())) (again time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Clock.Now()
	asking, again := e.queues.toJudge(now)
	for _, q := range asking {
		run(func() { e.judge(q) })
	}
	if !e.hasSynced {
		return again // what is known has gaps
	}
	due, blocked, marking := e.tracking.nextMarks(e.queues, now)
	for name, t := range due {
		run(func() { e.mark(ctx, name, t) })
	}
	batches, from := e.queues.nextBatches(blocked, now)
	for key, batch := range batches {
		q := e.queues[key]
		run(func() { e.send(ctx, key, q, batch) })
	}
	return earliest(again, earliest(marking, from))
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
			e.tracking.note(key, w, why, now)
		}
	}
	e.poked.poke()
	e.mu.Unlock()
	e.told.tell(key)
}

// mark writes into the status of a record what has become of it.
func (e *Engine) mark(ctx context.Context, name string, t *tracked) {
	existing, err := e.Existing.list(ctx)
	wanting := e.wanting(name, existing)
	e.mu.Lock()
	before := t.record.DeepCopy()
	record := t.withMark(e.queues, wanting)
	written := len(t.unmarked)
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
	e.tracking.marking--
	t.isMarking = false
	defer e.poked.poke()
	switch {
	case err == nil:
		t.noteMark(record, written)
		e.tracking.noteMarked(name, t, e.queues)
	case apierrors.IsNotFound(err):
		if e.tracking.records[name] == t {
			e.tracking.forget(name)
		}
	case ctx.Err() != nil:
	default:
		if current == nil && t.failures == 0 {
			e.Log.Error(err, "Marking a record that was delivered", "name", t.record.Name)
		}
		t.noteFailure(err, current, e.Clock.Now(), e.Jitter)
	}
}
