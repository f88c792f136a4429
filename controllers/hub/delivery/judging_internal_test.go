package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// A rule that takes its time holds up neither another destination nor who asks how far it is.
func TestASlowRuleHoldsUpNoOther(t *testing.T) {
	h := newHub(t, 3, 2)
	d := h.drive(t, start)
	k := &taker{}
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	slow := Route{Key: Key{"NotificationRule", "slow/ops"}, Version: "1", Since: start, Batch: 100, To: &taker{}, Wants: func(*fleetflowv1alpha1.AuditRecord) (bool, error) {
		asked <- struct{}{}
		<-goOn
		return false, nil
	}}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	took := make(chan string, 100)
	d.OnChange("AuditSink", func(name string) { took <- name })
	d.Put(slow)
	d.Put(siem(k, 50))
	go func() { done <- d.Start(ctx) }()
	<-asked
	for d.Report(Key{"AuditSink", "siem"}).Delivered < 6 {
		<-took
	}
	assert.Len(t, d.Reports(), 2)
	assert.Zero(t, d.Report(slow.Key).Pending, "whether it wants any is not known yet")
	assert.True(t, d.IsUndelivered(recordOf("run-0", 1).Name), "it may be wanted")
	d.Put(siem(k, 10))
	d.Remove(Key{"AuditSink", "none"})
	close(goOn)
	end()
	require.NoError(t, <-done)
	checkOrder(t, k.taken, 3, 2, 0)
}

// What is marked before it is known whether a rule wants it is complete once that is known.
func TestWhatIsFoundOutLateCompletesARecord(t *testing.T) {
	for _, isWanted := range []bool{false, true} {
		t.Run(fmt.Sprint(isWanted), func(t *testing.T) {
			h := newHub(t, 1, 1)
			d := h.drive(t, start)
			k := &taker{}
			d.Put(siem(&taker{}, 1))
			d.Put(Route{Key: Key{"NotificationRule", "slow/ops"}, Version: "1", To: k, Wants: func(*fleetflowv1alpha1.AuditRecord) (bool, error) { return isWanted, nil }})
			d.learn(t)
			slow := d.queues[Key{"NotificationRule", "slow/ops"}]
			slow.isJudging = true // it has not answered yet
			d.settle(t, start.Add(time.Minute))
			require.Equal(t, 1, h.marks)
			record := recordOf("run-0", 1)
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
			assert.False(t, record.Status.Complete)
			d.judge(slow)
			d.settle(t, start.Add(2*time.Minute))
			require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
			assert.True(t, record.Status.Complete)
			assert.Equal(t, 2, h.marks)
			assert.Equal(t, isWanted, len(k.taken) == 1)
		})
	}
}

// An answer by a rule as it was says nothing of the rule as it is.
func TestALateAnswerOfAnOldRuleCountsForNothing(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	k := &taker{}
	route := Route{Key: Key{"NotificationRule", "people/ops"}, Version: "1", To: k}
	route.Wants = func(*fleetflowv1alpha1.AuditRecord) (bool, error) {
		other := route
		other.Version = "2"
		other.Wants = func(*fleetflowv1alpha1.AuditRecord) (bool, error) { return false, nil }
		d.Put(other)
		return true, nil
	}
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	assert.Zero(t, k.requests)
	assert.False(t, d.IsUndelivered(recordOf("run-0", 1).Name))
}

// What is owed to a sink stays so when its placement gets other labels meanwhile, until the filter is another one.
func TestWhatIsOwedStaysOwed(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	isDown, isWanted := true, true
	k := &taker{answers: func([]fleetflowv1alpha1.AuditRecord) error {
		if isDown {
			return errors.New("it is away")
		}
		return nil
	}}
	route := siem(k, 1)
	route.FilterVersion = "1"
	route.Wants = func(*fleetflowv1alpha1.AuditRecord) (bool, error) { return isWanted, nil }
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	require.Equal(t, 1, d.Report(route.Key).Pending)

	isWanted = false // its placement has other labels
	d.learn(t)
	d.settle(t, start.Add(2*time.Minute))
	assert.Equal(t, 1, d.Report(route.Key).Pending, "it is seen once more")
	route.Version = "2"
	d.Put(route)
	d.settle(t, start.Add(3*time.Minute))
	assert.Equal(t, 1, d.Report(route.Key).Pending, "the sink has other settings")
	isDown = false
	d.settle(t, start.Add(time.Hour))
	assert.Len(t, k.taken, 1)

	isDown, isWanted = true, true
	h = newHub(t, 1, 1)
	d = h.drive(t, start)
	d.Put(route)
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	isWanted = false
	route.FilterVersion = "2"
	d.Put(route)
	d.settle(t, start.Add(2*time.Minute))
	assert.Zero(t, d.Report(route.Key).Pending, "the filter is another one")
}

// What cannot be found out is asked again: the record waits meanwhile, and is not complete.
func TestWhatIsNotKnownToBeWantedIsAskedAgain(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	k := &taker{}
	failure := errors.New("the hub does not answer")
	route := siem(k, 1)
	asked := 0
	route.Wants = func(*fleetflowv1alpha1.AuditRecord) (bool, error) {
		asked++
		return failure == nil, failure
	}
	d.Put(route)
	d.Put(Route{Key: Key{"AuditSink", "other"}, Since: start, To: &taker{}})
	d.learn(t)
	d.settle(t, start.Add(time.Minute))
	assert.Empty(t, k.taken)
	assert.InDelta(t, 7, asked, 1, "not as often as it goes")
	assert.True(t, d.IsUndelivered(recordOf("run-0", 1).Name))
	assert.Contains(t, d.Report(route.Key).LastError, "does not answer")
	record := recordOf("run-0", 1)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Len(t, record.Status.Deliveries, 1)
	assert.False(t, record.Status.Complete)

	failure = nil
	d.settle(t, start.Add(2*time.Minute))
	assert.Len(t, k.taken, 1)
	assert.Empty(t, d.Report(route.Key).LastError)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.True(t, record.Status.Complete)
}

// A watch that was ended says nothing of the one that has begun since.
func TestAnOldWatchEndsNoDelivery(t *testing.T) {
	h := newHub(t, 1, 1)
	d := h.drive(t, start)
	d.Put(siem(&taker{}, 1))
	d.learn(t)
	ended, end := context.WithCancel(t.Context())
	end()
	d.watch(ended)
	assert.True(t, d.hasSynced)
}

// A mark waits for another destination only while that can take the record.
func TestAMarkWaitsForNoDestinationThatCannotTakeTheRecord(t *testing.T) {
	h := newHub(t, 1, 2)
	d := h.drive(t, start)
	d.Put(siem(&taker{}, 2))
	d.learn(t)
	q := d.queues[Key{"AuditSink", "siem"}]
	record := recordOf("run-0", 2)
	w := q.byName[record.Name]
	of := d.tracking.records[record.Name]
	assert.True(t, d.queues.isExpected(of, start), "it is ready")
	q.isUnderWay = true
	assert.False(t, d.queues.isExpected(of, start), "others are sent, and nobody knows for how long")
	w.underWay = true
	assert.True(t, d.queues.isExpected(of, start), "it is under way")
	q.isUnderWay = false
	w.underWay = false
	w.notBefore = start.Add(time.Second)
	assert.False(t, d.queues.isExpected(of, start), "it waits itself")
	w.notBefore = time.Time{}
	w.isHeld = true
	assert.False(t, d.queues.isExpected(of, start), "it is not known whether it is wanted")
	w.isHeld = false
	q.isServed = false
	assert.False(t, d.queues.isExpected(of, start), "it is not served")
}

// However old the ways of rules are, they take no place of a sink.
func TestSinksAreServedBeforeTheWaysOfRules(t *testing.T) {
	all := queues{}
	for i := range fleetflowv1alpha1.MaxDeliveries {
		key := Key{"NotificationRule", fmt.Sprintf("people/ops-%02d", i)}
		all[key] = newQueue(Route{Key: key, Since: start}, jitter)
	}
	sink := Key{"AuditSink", "siem"}
	all[sink] = newQueue(Route{Key: sink, Since: start.Add(time.Hour)}, jitter)
	assert.Equal(t, []Key{{"NotificationRule", "people/ops-63"}}, all.serve())
	assert.True(t, all[sink].isServed)
}

// Of more destinations than the status of a record has place for, the oldest are served. What is for the others waits, and they say so.
func TestMoreDestinationsThanARecordTellsOf(t *testing.T) {
	h := newHub(t, 1, 2)
	d := h.drive(t, start)
	var told []string
	d.OnChange("AuditSink", func(name string) { told = append(told, name) })
	takers := make([]*taker, fleetflowv1alpha1.MaxDeliveries+2)
	keys := make([]Key, len(takers))
	for i := range takers {
		takers[i] = &taker{}
		keys[i] = Key{"AuditSink", fmt.Sprintf("sink-%02d", len(takers)-i)}
	}
	for i := range slices.Backward(takers) { // the oldest is known last
		d.Put(Route{Key: keys[i], Since: start.Add(time.Duration(i-100) * time.Second), Batch: 10, To: takers[i]})
	}
	assert.Equal(t, []string{keys[65].Name, keys[64].Name}, told)
	d.learn(t)
	d.settle(t, start.Add(time.Hour))
	for i := range takers {
		report := d.Report(keys[i])
		isServed := i < fleetflowv1alpha1.MaxDeliveries
		assert.Equal(t, !isServed, report.Unserved, i)
		assert.Equal(t, isServed, len(takers[i].taken) == 2, i)
		assert.Equal(t, isServed, report.Pending == 0, i)
	}
	record := recordOf("run-0", 1)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Len(t, record.Status.Deliveries, fleetflowv1alpha1.MaxDeliveries)
	assert.False(t, record.Status.Complete)
	assert.True(t, d.IsUndelivered(record.Name))

	d.Remove(keys[7])
	assert.Equal(t, keys[64].Name, told[len(told)-1])
	d.Remove(keys[9])
	d.settle(t, start.Add(2*time.Hour))
	for _, i := range []int{64, 65} {
		assert.Len(t, takers[i].taken, 2)
		assert.False(t, d.Report(keys[i]).Unserved)
	}
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(record), record))
	assert.Len(t, record.Status.Deliveries, fleetflowv1alpha1.MaxDeliveries)
	assert.Nil(t, record.Delivery("AuditSink", keys[7].Name), "it is not there any more")
	assert.NotNil(t, record.Delivery("AuditSink", keys[65].Name))
	assert.True(t, record.Status.Complete)
}

func TestDeliveriesFitIntoAStatus(t *testing.T) {
	var all []fleetflowv1alpha1.AuditDelivery
	for i := range fleetflowv1alpha1.MaxDeliveries + 3 {
		all = append(all, fleetflowv1alpha1.AuditDelivery{Kind: "AuditSink", Name: fmt.Sprint(i), Time: metav1.NewTime(start)})
	}
	left := fitting(all, func(key Key) bool { return key.Name != "5" })
	require.Len(t, left, fleetflowv1alpha1.MaxDeliveries)
	assert.Equal(t, []string{"2", "3", "4", "6"}, []string{left[0].Name, left[1].Name, left[2].Name, left[3].Name}, "those that are gone first, then the oldest")
}
