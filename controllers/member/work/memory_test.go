package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestBackoffDoublesUpToAMinute(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 3: 800 * time.Millisecond,
		8: 25600 * time.Millisecond, 9: 51200 * time.Millisecond, 10: time.Minute, 100: time.Minute,
	} {
		assert.Equal(t, want, backoff(failures), "after %d failures", failures)
	}
}

func TestRepairsSlowDownWhenSomebodyKeepsUndoingThem(t *testing.T) {
	now := noon.Time
	var r repairs
	for range freeRepairs {
		assert.False(t, r.hold(now), "the first repairs are free")
		r = r.another(now)
	}
	r = r.another(now)
	assert.True(t, r.hold(now))
	assert.False(t, r.hold(now.Add(200*time.Millisecond)))
	r = r.another(now.Add(200 * time.Millisecond))
	assert.Equal(t, now.Add(600*time.Millisecond), r.until())

	later := now.Add(time.Hour)
	assert.Equal(t, repairs{count: 1, last: later}, r.another(later), "after a while the slate is clean")
}

func TestHeldUntilIsTheFirstRepairDue(t *testing.T) {
	at := func(count int, last time.Time) outcome {
		return outcome{held: true, repairs: repairs{count: count, last: last}}
	}
	assert.True(t, heldUntil([]outcome{{repairs: repairs{count: 9, last: noon.Time}}}).IsZero(), "nothing is held back")
	got := heldUntil([]outcome{at(freeRepairs+3, noon.Time), at(freeRepairs+1, noon.Time), {}})
	assert.Equal(t, noon.Add(200*time.Millisecond), got)
}

func TestMemoryIsOfOneWorkAndNotOfItsName(t *testing.T) {
	m := newMemories()
	first := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	m.of(first).generation = 7
	assert.EqualValues(t, 7, m.of(first).generation)
	second := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "2"}}
	assert.Zero(t, m.of(second).generation)
}

func TestMemoryKnowsWhoWaitsForADefinition(t *testing.T) {
	m := newMemories()
	widget := outcome{retry: true, id: placementv1beta1.WorkResourceIdentifier{Group: "example.com"}}
	m.await("a", []outcome{widget, {}})
	m.await("b", []outcome{{}})
	assert.Equal(t, []string{"a"}, m.waitingFor("example.com"))
	assert.Empty(t, m.waitingFor("other.com"))
	m.await("a", []outcome{{}})
	assert.Empty(t, m.waitingFor("example.com"))
}
