package work

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

func TestBackoffDoublesUpToAMinute(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 200 * time.Millisecond, 2: 400 * time.Millisecond, 3: 800 * time.Millisecond,
		8: 25600 * time.Millisecond, 9: 51200 * time.Millisecond, 10: time.Minute, 100: time.Minute,
	} {
		assert.Equal(t, want, retryDelay(failures), "after %d failures", failures)
	}
}

func TestRepairsSlowDownWhenSomebodyKeepsUndoingThem(t *testing.T) {
	now := noon.Time
	var r repairs
	for range immediateRepairs {
		assert.False(t, r.mustWait(now), "the first repairs are free")
		r = r.addRepair(now)
	}
	r = r.addRepair(now)
	assert.True(t, r.mustWait(now))
	assert.False(t, r.mustWait(now.Add(200*time.Millisecond)))
	r = r.addRepair(now.Add(200 * time.Millisecond))
	assert.Equal(t, now.Add(600*time.Millisecond), r.nextAllowed())

	later := now.Add(time.Hour)
	assert.Equal(t, repairs{count: 1, last: later}, r.addRepair(later), "after a while the slate is clean")
}

func TestHeldUntilIsTheFirstRepairDue(t *testing.T) {
	at := func(count int, last time.Time) outcome {
		return outcome{struggle: struggle{held: true, repairs: repairs{count: count, last: last}}}
	}
	assert.True(t, earliestRepair([]outcome{{struggle: struggle{repairs: repairs{count: 9, last: noon.Time}}}}).IsZero(), "nothing is held back")
	got := earliestRepair([]outcome{at(immediateRepairs+3, noon.Time), at(immediateRepairs+1, noon.Time), {}})
	assert.Equal(t, noon.Add(200*time.Millisecond), got)
}

// A pass that fails may have written other manifests. If the Work is set back to the one that the
// memory knows, a watch that lags behind would not show that the objects differ.
func TestAPassThatFailsLeavesNothingKnownOfEarlierManifests(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.mustReconcile(t, "w")
	before := a.work(t, "w")
	manifests := apply.Decode(before.Spec.Workload.Manifests)
	require.Len(t, a.memories.memoryOf(before).lastOutcomes(before.Generation+1, manifests), 2)

	a.setManifests(t, "w", mapManifests("b", "c"))
	a.fail = func(write string) error {
		if write == "member create ConfigMap c" {
			return &url.Error{Op: "Post", URL: "https://member", Err: errors.New("refused")}
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err)
	assert.Empty(t, a.memories.memoryOf(before).lastOutcomes(before.Generation+2, manifests))
}

func TestMemoryIsOfOneWorkAndNotOfItsName(t *testing.T) {
	m := newMemories()
	first := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	m.memoryOf(first).generation = 7
	assert.EqualValues(t, 7, m.memoryOf(first).generation)
	second := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "2"}}
	assert.Zero(t, m.memoryOf(second).generation)
}

func TestMemoryKnowsWhoWaitsForADefinition(t *testing.T) {
	m := newMemories()
	widget := outcome{retry: true, id: placementv1beta1.WorkResourceIdentifier{Group: "example.com"}}
	m.recordUnapplied("a", []outcome{widget, {}})
	m.recordUnapplied("b", []outcome{{}})
	assert.Equal(t, []string{"a"}, m.worksLacking("example.com"))
	assert.Empty(t, m.worksLacking("other.com"))
	m.recordUnapplied("a", []outcome{{}})
	assert.Empty(t, m.worksLacking("example.com"))
}

func TestWhatIsStillKnownOfAnotherGeneration(t *testing.T) {
	decode := func(names ...string) []apply.Manifest { return apply.Decode(mapManifests(names...)) }
	found := func(o outcome) *memory {
		m := decode("a")[0]
		o.id = m.Identifier
		o.hash = m.Hash
		return &memory{generation: 1, outcomes: []outcome{o}}
	}
	well := outcome{observed: true}
	changed := apply.Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"},"data":{"x":"2"}}`)}}})
	tests := map[string]struct {
		mem        *memory
		generation int64
		manifests  []apply.Manifest
		want       []int
	}{
		"an object whose manifest is the same, wherever it stands": {found(well), 2, decode("b", "a"), []int{1}},
		"nothing of a manifest that has changed":                   {found(well), 2, changed, nil},
		"nothing of what is to be tried again":                     {found(outcome{observed: true, retry: true}), 2, decode("a"), nil},
		"nothing of what was never looked at":                      {found(outcome{}), 2, decode("a"), nil},
		"nothing of what is held back":                             {found(outcome{observed: true, struggle: struggle{held: true}}), 2, decode("a"), nil},
		"nothing of the second of two manifests of one object":     {found(well), 2, decode("a", "a"), []int{0}},
		"all there is of the same generation":                      {found(outcome{retry: true}), 1, decode("a"), []int{0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []int
			for ordinal, o := range tc.mem.lastOutcomes(tc.generation, tc.manifests) {
				assert.Equal(t, ordinal, o.id.Ordinal)
				got = append(got, ordinal)
			}
			assert.ElementsMatch(t, tc.want, got)
		})
	}
}

func TestNothingIsKnownOnceAWorkIsCarriedOutInAnotherWay(t *testing.T) {
	always := placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeAlways}
	drifted := placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}
	assert.True(t, applySettings{strategy: always}.isEqual(applySettings{strategy: *always.DeepCopy()}))
	assert.False(t, applySettings{strategy: always}.isEqual(applySettings{strategy: drifted}))
	assert.False(t, applySettings{strategy: always}.isEqual(applySettings{strategy: always, mirrorStatus: true}))
}
