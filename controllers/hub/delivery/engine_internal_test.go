package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var start = time.Date(2026, 11, 21, 21, 52, 14, 0, time.UTC)

// hub is an API server in memory with records, of which marks may fail.
type hub struct {
	client.Client
	marks int
	// counting is held while marks are counted.
	counting sync.Mutex
	fails    func() error
	// refuses is the name of a record of which no mark is taken.
	refuses string
	refusal error
	source  *source
}

// source has the records of the hub.
type source struct {
	hub     *hub
	watches int
}

func (s *source) Watch(ctx context.Context, seen func(*fleetflowv1alpha1.AuditRecord), _ func(string)) error {
	s.watches++
	list := fleetflowv1alpha1.AuditRecordList{}
	if err := s.hub.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		seen(&list.Items[i])
	}
	return nil
}

// newHub has records of some runs, by as many as each has.
func newHub(t *testing.T, runs, each int) *hub {
	t.Helper()
	h := &hub{}
	h.source = &source{hub: h}
	var all []client.Object
	for run := range runs {
		for i := range each {
			all = append(all, recordOf(fmt.Sprintf("run-%d", run), int64(i+1)))
		}
	}
	h.Client = fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).WithObjects(all...).WithStatusSubresource(&fleetflowv1alpha1.AuditRecord{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			h.counting.Lock()
			h.marks++
			h.counting.Unlock()
			if h.fails != nil {
				if err := h.fails(); err != nil {
					return err
				}
			}
			if h.refuses == o.GetName() {
				return h.refusal
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		}}).Build()
	return h
}

func recordOf(subject string, sequence int64) *fleetflowv1alpha1.AuditRecord {
	id := fleetflowv1alpha1.RecordID(subject, fleetflowv1alpha1.RecordStageStarted, fmt.Sprint(sequence))
	return &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{Name: fleetflowv1alpha1.RecordName(subject, sequence), UID: types.UID("uid-" + id[:8]), CreationTimestamp: metav1.NewTime(start)},
		Spec: fleetflowv1alpha1.AuditRecordSpec{
			ID: id, Type: fleetflowv1alpha1.RecordStageStarted, Time: metav1.NewTime(start), Sequence: sequence,
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: subject, UID: subject},
		},
	}
}

// driven is an engine that goes on when the test says so.
type driven struct {
	*Engine
	clock *clocktesting.FakeClock
	hub   *hub
}

// drive starts an engine at a time.
func (h *hub) drive(t *testing.T, at time.Time) *driven {
	t.Helper()
	clk := clocktesting.NewFakeClock(at)
	e := NewEngine(h, h, h.source, clk, logr.Discard())
	e.Jitter = func(wait time.Duration) time.Duration { return wait }
	e.isLeading = true
	return &driven{e, clk, h}
}

// learn has the engine know the records that there are.
func (d *driven) learn(t *testing.T) {
	t.Helper()
	require.NoError(t, d.hub.source.Watch(t.Context(), d.seen, d.forget))
	d.hasSynced = true
}

// step does what is to be done now, one after the other, and returns when there is more.
func (d *driven) step(ctx context.Context) (again time.Time, did int) {
	var all []func()
	again = d.turn(ctx, func(do func()) { all = append(all, do) })
	for _, do := range all {
		do()
	}
	return again, len(all)
}

// settle goes through the time until nothing is to be done, or an instant.
func (d *driven) settle(t *testing.T, until time.Time) {
	t.Helper()
	for range 1_000_000 {
		again, did := d.step(t.Context())
		switch {
		case did > 0:
		case again.IsZero(), again.After(until):
			return
		default:
			d.clock.SetTime(again)
		}
	}
	t.Fatal("it never comes to rest")
}

// taker is a destination that notes what it takes.
type taker struct {
	taken    []string // subject/sequence, in the order in which they came
	batches  [][]string
	requests int
	// answers says what becomes of a request.
	answers func(records []fleetflowv1alpha1.AuditRecord) error
}

func (k *taker) Deliver(_ context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	k.requests++
	if k.answers != nil {
		if err := k.answers(records); err != nil {
			return err
		}
	}
	var batch []string
	for i := range records {
		batch = append(batch, fmt.Sprintf("%s/%d", records[i].Spec.SubjectRef.UID, records[i].Spec.Sequence))
	}
	k.taken = append(k.taken, batch...)
	k.batches = append(k.batches, batch)
	return nil
}

// checkOrder asserts that all were taken, those of each run in their order, and at most so many twice.
func checkOrder(t *testing.T, taken []string, runs, each, repeats int) {
	t.Helper()
	last := map[string]int{}
	repeated := 0
	for _, one := range taken {
		subject, text, _ := strings.Cut(one, "/")
		var sequence int
		_, err := fmt.Sscan(text, &sequence)
		require.NoError(t, err)
		if sequence <= last[subject] {
			repeated++
			continue
		}
		require.Equal(t, last[subject]+1, sequence, "%s has a gap or another order", subject)
		last[subject] = sequence
	}
	assert.LessOrEqual(t, repeated, repeats)
	require.Len(t, last, runs)
	for subject, sequence := range last {
		assert.Equal(t, each, sequence, subject)
	}
}

func siem(to Destination, batch int) Route {
	return Route{Key: Key{"AuditSink", "siem"}, Version: "1", Since: start, Batch: batch, To: to}
}

// posting posts records to a server, as sinks do.
type posting struct {
	client *outbound.Client
	url    string
}

func (p *posting) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	var lines []string
	for i := range records {
		lines = append(lines, fmt.Sprintf("%s/%d", records[i].Spec.SubjectRef.UID, records[i].Spec.Sequence))
	}
	answer, failure, err := p.client.Post(ctx, outbound.Server{Object: "siem", URL: p.url}, outbound.Request{Body: []byte(strings.Join(lines, "\n"))}, Bounds())
	if err != nil {
		return err
	}
	return Judge("the sink", answer, failure, p.client.Clock.Now())
}

// Acceptance 3 of the design: a sink that answers 500 for 10 minutes gets all in order, within 15 minutes of its recovery, and the hub is
// written to once for each record.
func TestAcceptance3ASinkThatIsAwayForTenMinutesGetsAllInOrder(t *testing.T) {
	const runs, each = 20, 12
	h := newHub(t, runs, each)
	d := h.drive(t, start)
	recovers := start.Add(10 * time.Minute)
	var taken []string
	var last time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.clock.Now().Before(recovers) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		body, _ := io.ReadAll(r.Body)
		taken = append(taken, strings.Split(string(body), "\n")...)
		last = d.clock.Now()
	}))
	t.Cleanup(server.Close)
	to := &posting{url: server.URL, client: &outbound.Client{Caller: outbound.Caller{Guard: outbound.Guard{AllowLoopback: true}}, Live: h, Clock: d.clock, Of: "sink"}}
	d.Put(siem(to, 50))
	d.learn(t)
	d.settle(t, recovers.Add(-time.Second))
	assert.Zero(t, h.marks, "nothing is written while nothing is delivered")
	report := d.Report(Key{"AuditSink", "siem"})
	assert.Equal(t, runs*each, report.Pending)
	assert.Equal(t, start, report.OldestPending.UTC())
	assert.Equal(t, "the sink answers 500", report.LastError)
	assert.True(t, d.IsUndelivered(recordOf("run-3", 3).Name))

	d.settle(t, recovers.Add(time.Hour))
	checkOrder(t, taken, runs, each, 0)
	assert.LessOrEqual(t, last.Sub(recovers), 15*time.Minute)
	assert.Equal(t, runs*each, h.marks, "one mark a record")
	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(t, h.List(t.Context(), &list))
	for i := range list.Items {
		assert.True(t, list.Items[i].Status.Complete)
		assert.NotNil(t, list.Items[i].Delivery("AuditSink", "siem"))
	}
	assert.Zero(t, d.Report(Key{"AuditSink", "siem"}).Pending)
	assert.Empty(t, d.Report(Key{"AuditSink", "siem"}).LastError)
}

// Acceptance 2 of the design, of what delivers: wherever the agent ends, a receiver has no gaps, and none has more than one request twice. With a
// batch of one that is one record.
func TestAcceptance2AKillRepeatsOneRequestAtMost(t *testing.T) {
	const runs, each = 5, 4
	for _, batch := range []int{1, 3, 50} {
		for _, sinks := range []int{1, 2} {
			for _, isWritten := range []bool{false, true} {
				t.Run(fmt.Sprintf("batch %d, %d sinks, the last write is there: %v", batch, sinks, isWritten), func(t *testing.T) {
					for kill := 0; ; kill++ {
						if !killAt(t, kill, runs, each, batch, sinks, isWritten) {
							assert.Greater(t, kill, runs*each, "each mark and each request")
							return
						}
					}
				})
			}
		}
	}
}

// killAt has the agent end at its call of that number, be it of a sink or of the hub, and another deliver the rest; it reports whether there was
// such a call. What is under way at that time arrives all the same: at the sinks always, at the hub if it is written.
func killAt(t *testing.T, kill, runs, each, batch, sinks int, isWritten bool) bool {
	t.Helper()
	h := newHub(t, runs, each)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	lost := errors.New("the process ends here")
	calls := 0
	call := func() error {
		if calls++; calls > kill {
			end()
			return lost
		}
		return nil
	}
	h.fails = func() error {
		if failed := call(); failed != nil && !isWritten {
			return failed
		}
		return nil
	}
	takers := make([]*taker, sinks)
	put := func(d *driven, answers func([]fleetflowv1alpha1.AuditRecord) error) {
		for i := range takers {
			if takers[i] == nil {
				takers[i] = &taker{}
			}
			d.Put(Route{Key: Key{"AuditSink", fmt.Sprint("siem-", i)}, Version: "1", Since: start, Batch: batch, To: &losing{takers[i], answers}})
		}
	}
	first := h.drive(t, start)
	put(first, func([]fleetflowv1alpha1.AuditRecord) error { return call() })
	first.learn(t)
	for ctx.Err() == nil {
		if again, did := first.step(ctx); did == 0 {
			if again.IsZero() {
				break
			}
			first.clock.SetTime(again)
		}
	}
	wasKilled := ctx.Err() != nil
	h.fails = nil
	second := h.drive(t, start.Add(time.Minute))
	put(second, nil)
	second.learn(t)
	second.settle(t, start.Add(time.Hour))
	for i, k := range takers {
		checkOrder(t, k.taken, runs, each, batch)
		times := map[string]int{}
		repeated := 0
		for _, request := range k.batches {
			isRepeat := false
			for _, one := range request {
				times[one]++
				isRepeat = isRepeat || times[one] > 1
			}
			if isRepeat {
				repeated++
			}
		}
		assert.LessOrEqual(t, repeated, 1, "kill %d, sink %d: %v", kill, i, k.batches)
	}
	return wasKilled
}

// losing is a destination of which the answer may be lost, after it has taken what was sent.
type losing struct {
	*taker
	answers func([]fleetflowv1alpha1.AuditRecord) error
}

func (l *losing) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	if err := l.taker.Deliver(ctx, records); err != nil || l.answers == nil {
		return err
	}
	return l.answers(records)
}

// A record of which the API server, or a webhook of it, takes no mark is sent again by the next agent, and keeps nothing back.
func TestARecordThatCannotBeMarkedKeepsNoOtherBack(t *testing.T) {
	for _, refusal := range []error{
		apierrors.NewInvalid(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord").GroupKind(), "it", nil),
		apierrors.NewBadRequest("admission webhook denied the request"),
		fmt.Errorf("patching: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "auditrecords"}, "it", errors.New("denied"))),
	} {
		t.Run(string(apierrors.ReasonForError(refusal)), func(t *testing.T) {
			h := newHub(t, 1, 4)
			h.refuses = recordOf("run-0", 2).Name
			h.refusal = refusal
			d := h.drive(t, start)
			k := &taker{}
			route := siem(k, 1)
			d.Put(route)
			d.learn(t)
			d.settle(t, start.Add(time.Minute))
			checkOrder(t, k.taken, 1, 4, 0)
			assert.Less(t, h.marks, 12)
			assert.Contains(t, d.Report(route.Key).LastError, h.refuses+" was taken and waits for its mark")
			assert.Contains(t, d.Reports()[route.Key].LastError, "waits for its mark")
			h.refuses = ""
			d.settle(t, start.Add(time.Hour))
			assert.False(t, d.IsUndelivered(recordOf("run-0", 2).Name))
			assert.Empty(t, d.Report(route.Key).LastError)
		})
	}
}

func TestWhichMarksAreRefused(t *testing.T) {
	for code, is := range map[int]bool{400: true, 401: false, 403: true, 404: true, 408: false, 409: false, 413: true, 422: true, 429: false, 500: false, 503: false} {
		assert.Equal(t, is, isMarkRefused(apierrors.NewGenericServerResponse(code, "patch", schema.GroupResource{}, "it", "", 0, true)), code)
	}
	assert.False(t, isMarkRefused(errors.New("the hub is away")))
}

// Acceptance 4 of the design, of what delivers: of the 4,000 records that a hundred runs over a thousand clusters make at most, each is written once and
// marked once, however many sinks there are. That is no more than two of a hundred of the writes of the runs: a cluster takes four, by the figures.
func TestAcceptance4EachRecordIsMarkedOnce(t *testing.T) {
	const runs, each, clusters, writesOfACluster = 100, 40, 1000, 4
	h := newHub(t, runs, each)
	d := h.drive(t, start)
	first, second := &taker{}, &taker{}
	d.Put(siem(first, 50))
	d.Put(Route{Key: Key{"AuditSink", "file"}, Since: start, Batch: 200, To: second})
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	checkOrder(t, first.taken, runs, each, 0)
	checkOrder(t, second.taken, runs, each, 0)
	assert.Equal(t, runs*each, h.marks)
	assert.LessOrEqual(t, (runs*each+h.marks)*100, 2*runs*clusters*writesOfACluster)
}

func TestTwoDestinationsCostOneMark(t *testing.T) {
	h := newHub(t, 3, 3)
	d := h.drive(t, start)
	first, second := &taker{}, &taker{}
	d.Put(siem(first, 10))
	d.Put(Route{Key: Key{"NotificationChannel", "ops"}, Since: start, To: second})
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	checkOrder(t, first.taken, 3, 3, 0)
	checkOrder(t, second.taken, 3, 3, 0)
	assert.Equal(t, 9, h.marks)
}

func TestWhatOneHasIsMarkedWhileAnotherIsAway(t *testing.T) {
	h := newHub(t, 1, 2)
	d := h.drive(t, start)
	away := &taker{answers: func([]fleetflowv1alpha1.AuditRecord) error { return errors.New("away") }}
	d.Put(siem(&taker{}, 10))
	d.Put(Route{Key: Key{"AuditSink", "away"}, Since: start, To: away})
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	assert.Equal(t, 2, h.marks, "once, and not for each attempt")
	again := h.drive(t, start.Add(time.Hour))
	repeated := &taker{}
	again.Put(siem(repeated, 10))
	again.learn(t)
	again.settle(t, start.Add(2*time.Hour))
	assert.Empty(t, repeated.taken, "the next agent that leads knows")
	assert.False(t, again.IsUndelivered(recordOf("run-0", 1).Name))
	again.Put(Route{Key: Key{"AuditSink", "away"}, Since: start, To: repeated})
	again.settle(t, start.Add(3*time.Hour))
	checkOrder(t, repeated.taken, 1, 2, 0)
	assert.Equal(t, 4, h.marks)
}

func TestWhatIsRefusedWaitsForOtherSettings(t *testing.T) {
	h := newHub(t, 3, 2)
	d := h.drive(t, start)
	k := &taker{answers: func([]fleetflowv1alpha1.AuditRecord) error { return &RefusedError{Why: "the sink answers 401"} }}
	d.Put(siem(k, 1))
	d.learn(t)
	d.settle(t, start.Add(100*time.Hour))
	assert.Equal(t, 1, k.requests)
	assert.True(t, d.Report(Key{"AuditSink", "siem"}).Refused)
	k.answers = nil
	d.Put(siem(k, 1))
	d.settle(t, start.Add(100*time.Hour))
	assert.Empty(t, k.taken, "nothing has changed")
	other := siem(k, 1)
	other.Version = "2"
	d.Put(other)
	d.settle(t, start.Add(100*time.Hour))
	checkOrder(t, k.taken, 3, 2, 0)
	assert.False(t, d.Report(Key{"AuditSink", "siem"}).Refused)
}

func TestARecordThatIsRefusedKeepsNoOtherBack(t *testing.T) {
	for sentence, refusal := range map[string]error{
		"it is refused": &RefusedError{Why: "the sink answers 413", Content: true},
		"it fails":      errors.New("the sink answers 500"),
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t, 20, 3)
			d := h.drive(t, start)
			k := &taker{}
			k.answers = func(records []fleetflowv1alpha1.AuditRecord) error {
				for i := range records {
					if records[i].Spec.SubjectRef.UID == "run-7" && records[i].Spec.Sequence == 2 {
						return refusal
					}
				}
				return nil
			}
			d.Put(siem(k, 50))
			d.learn(t)
			d.settle(t, start.Add(2*time.Hour))
			want := 58 // those behind it wait
			if sentence == "it is refused" {
				want++
			}
			assert.Len(t, k.taken, want)
			assert.Less(t, k.requests, 60)
			report := d.Report(Key{"AuditSink", "siem"})
			assert.Equal(t, 60-want, report.Pending)
			assert.Equal(t, sentence == "it is refused", report.Refused)
		})
	}
}

func TestAServerMayAskToBeLeftAlone(t *testing.T) {
	h := newHub(t, 2, 1)
	d := h.drive(t, start)
	var at []time.Duration
	k := &taker{}
	k.answers = func([]fleetflowv1alpha1.AuditRecord) error {
		at = append(at, d.clock.Since(start))
		if len(at) == 1 {
			return &RetryError{Why: "the sink answers 429", After: 90 * time.Second}
		}
		return nil
	}
	d.Put(siem(k, 10))
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	require.Len(t, at, 3, "in smaller parts afterwards")
	assert.Equal(t, []time.Duration{0, 90 * time.Second, 90 * time.Second}, at)
}

func TestHowOftenItIsTried(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	var at []time.Duration
	k := &taker{}
	k.answers = func([]fleetflowv1alpha1.AuditRecord) error {
		at = append(at, d.clock.Since(start))
		return errors.New("away")
	}
	d.Put(siem(k, 10))
	d.learn(t)
	d.settle(t, start.Add(80*time.Hour))
	assert.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second}, at[:5])
	assert.Equal(t, longestWait, at[20]-at[19])
	n := len(at)
	assert.Equal(t, slowWait, at[n-1]-at[n-2], "after three days")
	assert.Less(t, n, 320)
}

func TestAfterItsPatienceARecordIsGivenUp(t *testing.T) {
	h := newHub(t, 1, 2)
	d := h.drive(t, start)
	k := &taker{answers: func([]fleetflowv1alpha1.AuditRecord) error { return errors.New("away") }}
	route := siem(k, 1)
	route.Patience = time.Hour
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(10*time.Hour))
	report := d.Report(route.Key)
	assert.Equal(t, int64(2), report.GivenUp)
	assert.Zero(t, report.Pending)
	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(t, h.List(t.Context(), &list))
	for i := range list.Items {
		assert.True(t, list.Items[i].Status.Complete)
		assert.Equal(t, "away", list.Items[i].Status.Deliveries[0].Error)
	}
}

func TestWhatWasBeforeADestinationIsNotForIt(t *testing.T) {
	h := newHub(t, 2, 2)
	d := h.drive(t, start)
	k := &taker{}
	route := siem(k, 10)
	route.Since = start.Add(time.Second)
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	assert.Zero(t, k.requests)
	assert.Zero(t, h.marks)
	assert.False(t, d.IsUndelivered(recordOf("run-0", 1).Name))
	route.Since = start
	route.Wants = func(r *fleetflowv1alpha1.AuditRecord) (bool, error) { return r.Spec.SubjectRef.UID == "run-1", nil }
	d.Put(route)
	d.settle(t, start.Add(time.Hour))
	checkOrder(t, k.taken, 1, 2, 0)
}

func TestRecordsOfARunAreCollected(t *testing.T) {
	h := newHub(t, 2, 3)
	d := h.drive(t, start)
	k := &taker{}
	route := siem(k, 20)
	route.OneSubject = true
	route.Collect = 30 * time.Second
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(29*time.Second))
	assert.Zero(t, k.requests)
	d.settle(t, start.Add(time.Hour))
	assert.Equal(t, 2, k.requests, "one for each run")
	checkOrder(t, k.taken, 2, 3, 0)
}

func TestMarksThatCannotBeWrittenHoldDeliveriesUp(t *testing.T) {
	h := newHub(t, 400, 1)
	d := h.drive(t, start)
	h.fails = func() error { return errors.New("the hub is away") }
	k := &taker{}
	d.Put(siem(k, 50))
	d.learn(t)
	d.settle(t, start.Add(10*time.Minute))
	assert.Len(t, k.taken, 50, "one request")
	h.fails = nil
	d.settle(t, start.Add(time.Hour))
	checkOrder(t, k.taken, 400, 1, 0)
}

func TestAMarkGoesOnWithWhatAnotherHasWritten(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	d.Put(siem(&taker{}, 1))
	d.learn(t)
	record := recordOf("run-0", 1)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	record.Status.Deliveries = []fleetflowv1alpha1.AuditDelivery{{Kind: "AuditSink", Name: "other", Time: metav1.NewTime(start)}}
	require.NoError(t, h.Status().Update(t.Context(), record))
	d.settle(t, start.Add(time.Hour))
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Len(t, record.Status.Deliveries, 2)
	assert.True(t, record.Status.Complete)
}

func TestWithoutADestinationNothingIsWatched(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Start(ctx) }()
	end()
	require.NoError(t, <-done)
	assert.Zero(t, h.source.watches)
	assert.Zero(t, h.marks)
}

// A whole run of the engine, with the goroutines that it has in production.
func TestAnEngineDelivers(t *testing.T) {
	h := newHub(t, 10, 5)
	d := h.drive(t, start)
	told := make(chan string, 1000)
	d.OnChange("AuditSink", func(name string) { told <- name })
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	k := &taker{}
	d.Put(siem(k, 50))
	go func() { done <- d.Start(ctx) }()
	for d.Report(Key{"AuditSink", "siem"}).Delivered < 50 {
		select {
		case name := <-told:
			assert.Equal(t, "siem", name)
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is delivered")
		}
	}
	end()
	require.NoError(t, <-done)
	checkOrder(t, k.taken, 10, 5, 0)
}

// A sink of which the engine was not told yet gets what another sink has got before.
func TestNothingIsCompleteThatASinkIsToGetWhichWasNotPutYet(t *testing.T) {
	h := newHub(t, 2, 2)
	d := h.drive(t, start)
	late := &taker{}
	route := Route{Key: Key{"AuditSink", "late"}, Version: "1", Since: start, Batch: 10, To: late}
	fails := errors.New("the cache has not begun")
	d.Existing = func(context.Context) ([]Route, error) {
		return []Route{{Key: route.Key, Since: start}, {Key: Key{"AuditSink", "none"}, Since: start.Add(time.Hour)}}, fails
	}
	d.Put(siem(&taker{}, 10))
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	assert.Zero(t, h.marks, "it is not known who is to get them")
	fails = nil
	d.settle(t, start.Add(time.Hour))
	assert.Equal(t, 4, h.marks)
	assert.True(t, d.IsUndelivered(recordOf("run-0", 1).Name))
	record := &fleetflowv1alpha1.AuditRecord{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Name: recordOf("run-0", 1).Name}, record))
	assert.NotNil(t, record.Delivery("AuditSink", "siem"))
	assert.False(t, record.Status.Complete)

	second := h.drive(t, start.Add(time.Hour))
	second.Existing = d.Existing
	assert.True(t, second.IsUndelivered(record.Name), "there is a sink, of which the engine was not told")
	second.isLeading = false
	second.Existing = nil
	assert.True(t, second.IsUndelivered(record.Name), "nothing is known before the agent leads")
	second.isLeading = true
	assert.False(t, second.IsUndelivered(record.Name), "there is no destination")
	second.Put(siem(&taker{}, 10))
	second.Put(route)
	second.learn(t)
	second.settle(t, start.Add(2*time.Hour))
	checkOrder(t, late.taken, 2, 2, 0)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.True(t, record.Status.Complete)
}

func TestNothingIsSentBeforeAllRecordsAreKnown(t *testing.T) {
	h := newHub(t, 1, 0)
	d := h.drive(t, start)
	k := &taker{}
	d.Put(siem(k, 10))
	for _, sequence := range []int64{3, 1, 2} {
		record := recordOf("run-0", sequence)
		require.NoError(t, h.Create(t.Context(), record))
		d.seen(record)
		d.settle(t, start.Add(time.Minute))
	}
	assert.Zero(t, k.requests)
	d.hasSynced = true
	d.settle(t, start.Add(time.Minute))
	checkOrder(t, k.taken, 1, 3, 0)
}

// A watch that was broken tells in any order of what has come meanwhile.
func TestWhatComesInAnotherOrderIsSentInItsOrder(t *testing.T) {
	h := newHub(t, 1, 0)
	d := h.drive(t, start)
	k := &taker{}
	d.Put(siem(k, 10))
	d.learn(t)
	for _, sequence := range []int64{3, 2, 1} {
		record := recordOf("run-0", sequence)
		require.NoError(t, h.Create(t.Context(), record))
		d.seen(record)
		d.settle(t, d.clock.Now().Add(10*time.Millisecond))
		d.clock.Step(10 * time.Millisecond)
	}
	assert.Zero(t, k.requests)
	d.settle(t, start.Add(time.Minute))
	checkOrder(t, k.taken, 1, 3, 0)
	assert.Less(t, d.clock.Since(start), time.Second)
}

// An answer of a server that a sink named before says nothing of the one that it names now.
func TestALateAnswerOfOldSettingsIsNoRefusal(t *testing.T) {
	h := newHub(t, 1, 3)
	d := h.drive(t, start)
	mended := &taker{}
	old := &taker{}
	old.answers = func([]fleetflowv1alpha1.AuditRecord) error {
		route := siem(mended, 10)
		route.Version = "2"
		d.Put(route)
		return &RefusedError{Why: "the sink answers 401"}
	}
	d.Put(siem(old, 10))
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	checkOrder(t, mended.taken, 1, 3, 0)
	assert.Equal(t, start, d.clock.Now(), "at once")
	assert.False(t, d.Report(Key{"AuditSink", "siem"}).Refused)
}

func TestASinkThatIsAwayDoesNotSlowOthers(t *testing.T) {
	h := newHub(t, 1000, 1)
	d := h.drive(t, start)
	k := &taker{}
	d.Put(siem(k, 50))
	d.Put(Route{Key: Key{"AuditSink", "away"}, Since: start, To: &taker{answers: func([]fleetflowv1alpha1.AuditRecord) error { return &RefusedError{Why: "away"} }}})
	d.learn(t)
	d.settle(t, start.Add(9*time.Second))
	assert.Len(t, k.taken, 1000)
}
