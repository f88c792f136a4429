package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var start = time.Date(2026, 11, 21, 21, 52, 14, 0, time.UTC)

// hub is an API server in memory whose writes may be lost.
type hub struct {
	client.Client
	// fails says what becomes of a write: it is not made, or its answer is lost.
	fails  func(write int) (before, behind bool)
	writes int
	// refuses is a type of records that the API server says are invalid.
	refuses fleetflowv1alpha1.AuditRecordType
	// reads counts those past the cache.
	reads int
}

var errLost = errors.New("the process ends here")

func newHub(t *testing.T, objects ...client.Object) *hub {
	h := &hub{}
	h.Client = fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).
		WithIndex(&fleetflowv1alpha1.AuditRecord{}, bySubject, subjectOf).WithIndex(&fleetflowv1alpha1.AuditRecord{}, byKind, kindOf).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if record, is := o.(*fleetflowv1alpha1.AuditRecord); is && h.refuses != "" && record.Spec.Type == h.refuses {
				return apierrors.NewInvalid(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord").GroupKind(), o.GetName(), nil)
			}
			h.writes++
			before, behind := false, false
			if h.fails != nil {
				before, behind = h.fails(h.writes)
			}
			if before {
				return errLost
			}
			if err := c.Create(ctx, o, options...); err != nil {
				return err
			}
			if behind {
				return errLost
			}
			return nil
		}}).Build()
	return h
}

// List counts reads of whole records, which are past the cache.
func (h *hub) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, whole := list.(*fleetflowv1alpha1.AuditRecordList); whole {
		h.reads++
	}
	return h.Client.List(ctx, list, options...)
}

func (h *hub) keeper(now time.Time) *Keeper {
	return NewKeeper(h, h, clocktesting.NewFakePassiveClock(now), Bounds{Age: 30 * 24 * time.Hour, Total: 100, OfSubject: 50})
}

// chain returns the records of a run, as they were written.
func (h *hub) chain(t *testing.T) []fleetflowv1alpha1.AuditRecord {
	t.Helper()
	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(t, h.Client.List(t.Context(), &list))
	fleetflowv1alpha1.SortRecords(list.Items)
	return list.Items
}

func typesOf(chain []fleetflowv1alpha1.AuditRecord) string {
	var all []string
	for i := range chain {
		all = append(all, string(chain[i].Spec.Type))
	}
	return strings.Join(all, " ")
}

func run(conditions ...metav1.Condition) *placementv1beta1.ClusterStagedUpdateRun {
	r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{
		Name: "web-2", UID: "run-uid", CreationTimestamp: metav1.NewTime(start), Finalizers: []string{placementv1beta1.UpdateRunFinalizer},
		Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane@example.com"},
	}}
	r.Spec.PlacementName = "web"
	r.Status.PlanHash = "sha256:" + strings.Repeat("a", 64)
	r.Status.Conditions = conditions
	return r
}

func said(kind string, status metav1.ConditionStatus, reason string, generation int64, seconds int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))}
}

// story is a run as it is looked at, from its creation to its deletion.
func story() []*placementv1beta1.ClusterStagedUpdateRun {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	initialized := said("Initialized", yes, "", 1, 1)
	steps := []*placementv1beta1.ClusterStagedUpdateRun{
		run(), run(initialized),
		run(initialized, said("Progressing", no, placementv1beta1.ReasonUpdateRunStopped, 2, 5)),
		run(initialized, said("Progressing", no, placementv1beta1.ReasonUpdateRunStopped, 3, 5)), // looked at again, for another change
		run(initialized, said("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 4, 8)),
		run(initialized, said("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 4, 8), said("Succeeded", yes, "", 4, 9)),
	}
	deleted := steps[len(steps)-1].DeepCopy()
	at := metav1.NewTime(start.Add(time.Minute))
	deleted.DeletionTimestamp = &at
	return append(steps, deleted)
}

const wholeStory = "run.created run.initialized run.stopped run.resumed run.succeeded run.deleted"

func TestRecordsOfARunAreAChain(t *testing.T) {
	h := newHub(t)
	for _, step := range story() {
		require.NoError(t, h.keeper(start.Add(time.Hour)).Keep(t.Context(), step))
		require.NoError(t, h.keeper(start.Add(2*time.Hour)).Keep(t.Context(), step), "once more, by the next agent")
	}
	chain := h.chain(t)
	assert.Equal(t, wholeStory, typesOf(chain))
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
	assert.Equal(t, len(chain), h.writes, "each is written once")
}

// Wherever the agent ends, before or behind any write, the next one writes what the first would have. It is acceptance 2 of records.
func TestRecordsAreTheSameWhereverTheAgentEnds(t *testing.T) {
	undisturbed := newHub(t)
	for _, step := range story() {
		require.NoError(t, undisturbed.keeper(start.Add(time.Hour)).Keep(t.Context(), step))
	}
	want := undisturbed.chain(t)
	for write := 1; write <= len(want); write++ {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, behind it %t", write, behind), func(t *testing.T) {
				h := newHub(t)
				h.fails = func(n int) (bool, bool) { return n == write && !behind, n == write && behind }
				ends := 0
				for _, step := range story() {
					if err := h.keeper(start.Add(time.Hour)).Keep(t.Context(), step); err != nil {
						require.ErrorIs(t, err, errLost)
						ends++
						require.NoError(t, h.keeper(start.Add(time.Hour)).Keep(t.Context(), step))
					}
				}
				assert.Equal(t, 1, ends)
				got := h.chain(t)
				assert.Empty(t, fleetflowv1alpha1.VerifyRecords(got).Breaks)
				require.Len(t, got, len(want))
				for i := range want {
					assert.Equal(t, want[i].Spec, got[i].Spec)
				}
			})
		}
	}
}

func TestARunOfWhichNothingIsMissingIsReadFromTheCacheAlone(t *testing.T) {
	h := newHub(t)
	step := story()[1]
	require.NoError(t, h.keeper(start).Keep(t.Context(), step))
	reads, writes := h.reads, h.writes
	require.NoError(t, h.keeper(start).Keep(t.Context(), step))
	assert.Equal(t, []int{reads, writes}, []int{h.reads, h.writes})
}

// An agent goes on with the chain that it knows. What another has written since has the name of the next record, so that it looks again.
func TestAnAgentListsTheRecordsOfAnObjectOnce(t *testing.T) {
	h := newHub(t)
	keeper := h.keeper(start.Add(time.Hour))
	steps := story()
	for _, step := range steps[:3] {
		require.NoError(t, keeper.Keep(t.Context(), step))
	}
	assert.Equal(t, 1, h.reads)
	require.NoError(t, h.keeper(start.Add(time.Hour)).Keep(t.Context(), steps[4]), "another agent, which has noticed the same")
	require.NoError(t, keeper.Keep(t.Context(), steps[4]))
	assert.Equal(t, 2, h.reads, "that of the other")
	chain := h.chain(t)
	last := chain[len(chain)-1]
	other := last.Spec
	other.ID = fleetflowv1alpha1.RecordID(other.SubjectRef.UID, fleetflowv1alpha1.RecordRunHeld)
	other.Type = fleetflowv1alpha1.RecordRunHeld
	other.Sequence++
	other.Previous = last.Digest()
	require.NoError(t, h.Create(t.Context(), newRecord(other)))
	require.ErrorIs(t, keeper.Keep(t.Context(), steps[5]), errOvertaken)
	for _, step := range steps[5:] {
		require.NoError(t, keeper.Keep(t.Context(), step))
	}
	chain = h.chain(t)
	assert.Equal(t, "run.created run.initialized run.stopped run.resumed run.held run.succeeded run.deleted", typesOf(chain))
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
	assert.Equal(t, 3, h.reads, "once more after that")
}

func TestARunThatIsOverIsReadFromTheCacheAloneOnceItsEndIsRecorded(t *testing.T) {
	steps := story()
	for sentence, test := range map[string]struct {
		step  int
		loses fleetflowv1alpha1.AuditRecordType
		reads bool
	}{
		"its first record was deleted after its time": {step: 5, loses: fleetflowv1alpha1.RecordRunCreated},
		"the record that it was resumed is gone":      {step: 5, loses: fleetflowv1alpha1.RecordRunResumed},
		"one that is being deleted has another":       {step: 6, loses: fleetflowv1alpha1.RecordRunCreated, reads: true},
		"the record of its end is missing":            {step: 5, loses: fleetflowv1alpha1.RecordRunSucceeded, reads: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			for _, step := range steps[:6] {
				require.NoError(t, h.keeper(start).Keep(t.Context(), step))
			}
			for _, record := range h.chain(t) {
				if record.Spec.Type == test.loses {
					require.NoError(t, h.Delete(t.Context(), &record))
				}
			}
			reads := h.reads
			require.NoError(t, h.keeper(start).Keep(t.Context(), steps[test.step]))
			assert.Equal(t, test.reads, h.reads > reads)
		})
	}
}

func TestARecordThatTheListHasNotIsTakenAsItWasWritten(t *testing.T) {
	h := newHub(t)
	steps := story()
	require.NoError(t, h.keeper(start).Keep(t.Context(), steps[0]))
	unlabeled := h.chain(t)[0]
	unlabeled.Labels = nil
	require.NoError(t, h.Update(t.Context(), &unlabeled))
	require.NoError(t, h.keeper(start).Keep(t.Context(), steps[1]))
	chain := h.chain(t)
	assert.Equal(t, "run.created run.initialized", typesOf(chain))
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
}

func TestARecordOfTheSameNameAndAnotherSubjectIsAnError(t *testing.T) {
	h := newHub(t)
	step := story()[0]
	spec := Derive(World{Run: step, Now: start})[0]
	spec.Sequence = 1
	forged := newRecord(spec)
	forged.Spec.SubjectRef.UID = "another"
	forged.Labels = nil
	require.NoError(t, h.Create(t.Context(), forged))
	require.ErrorContains(t, h.keeper(start).Keep(t.Context(), step), "has the name of a record and is none")
}

// An agent that has lost the lead goes on with a write that it has begun, while the next one writes. At whichever write that is, and whatever the
// next one has seen that it has not, no place in the chain is taken twice and no fact is told twice.
func TestAFailoverInTheMiddleOfAWriteLeavesOneRecordAtEachPlace(t *testing.T) {
	steps := story()
	for late := range steps {
		for ahead := late; ahead < len(steps); ahead++ {
			for write := 1; write <= 2; write++ {
				t.Run(fmt.Sprintf("write %d of step %d while another does step %d", write, late, ahead), func(t *testing.T) {
					h := newHub(t)
					for _, step := range steps[:late] {
						require.NoError(t, h.keeper(start).Keep(t.Context(), step))
					}
					others := func() {
						for _, step := range steps[late : ahead+1] {
							require.NoError(t, h.keeper(start).Keep(t.Context(), step))
						}
					}
					begun := h.writes
					h.fails = func(n int) (bool, bool) {
						if n == begun+write {
							others()
						}
						return false, false
					}
					if err := h.keeper(start).Keep(t.Context(), steps[late]); err != nil {
						require.ErrorIs(t, err, errOvertaken)
					}
					h.fails = nil
					others()
					require.NoError(t, h.keeper(start).Keep(t.Context(), steps[late]), "once more, by the one that has seen less")
					for _, step := range steps[ahead:] {
						require.NoError(t, h.keeper(start).Keep(t.Context(), step))
					}
					chain := h.chain(t)
					assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
					assert.Equal(t, wholeStory, typesOf(chain))
				})
			}
		}
	}
}

// Of two agents of which each has seen a state of the run that the other has not, only one takes a place in the chain.
func TestAgentsThatHaveSeenOtherStatesDoNotShareAPlace(t *testing.T) {
	steps := story()
	for late := range steps {
		for ahead := late + 1; ahead < len(steps); ahead++ {
			t.Run(fmt.Sprintf("step %d and step %d", late, ahead), func(t *testing.T) {
				h := newHub(t)
				for _, step := range steps[:late] {
					require.NoError(t, h.keeper(start).Keep(t.Context(), step))
				}
				begun := h.writes
				h.fails = func(n int) (bool, bool) {
					if n == begun+1 {
						require.NoError(t, h.keeper(start).Keep(t.Context(), steps[ahead]))
					}
					return false, false
				}
				if err := h.keeper(start).Keep(t.Context(), steps[late]); err != nil {
					require.ErrorIs(t, err, errOvertaken)
				}
				h.fails = nil
				require.NoError(t, h.keeper(start).Keep(t.Context(), steps[ahead]))
				assert.Empty(t, fleetflowv1alpha1.VerifyRecords(h.chain(t)).Breaks)
			})
		}
	}
}

func TestARunIsDeletedWithoutTheRecordsThatTheAPIServerDoesNotTake(t *testing.T) {
	h := newHub(t)
	h.refuses = fleetflowv1alpha1.RecordRunInitialized
	steps := story()
	require.True(t, apierrors.IsInvalid(h.keeper(start).Keep(t.Context(), steps[1])))
	require.NoError(t, h.keeper(start).BeforeEnd()(t.Context(), steps[6]))
	chain := h.chain(t)
	assert.Equal(t, "run.created run.succeeded run.deleted", typesOf(chain))
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)

	h.fails = func(int) (bool, bool) { return true, false }
	other := steps[6].DeepCopy()
	other.UID = "other"
	require.ErrorIs(t, h.keeper(start).BeforeEnd()(t.Context(), other), errLost, "what can be written later is waited for")
}

func TestFactsThatAreOlderThanARecordMayBecomeAreNotRecorded(t *testing.T) {
	h := newHub(t)
	require.NoError(t, h.keeper(start.Add(31*24*time.Hour)).Keep(t.Context(), story()[5]))
	assert.Empty(t, h.chain(t), "records were turned on long after the run has ended")
}

func TestVerifyingFindsWhatIsWrong(t *testing.T) {
	h := newHub(t)
	for _, step := range story() {
		require.NoError(t, h.keeper(start.Add(time.Hour)).Keep(t.Context(), step))
	}
	for sentence, test := range map[string]struct {
		change func(chain []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord
		says   string
		first  int64
	}{
		"nothing": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord { return c }, first: 1},
		"the order in which they are listed does not matter": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord {
			slices.Reverse(c)
			return c
		}, first: 1},
		"the first ones were deleted after their time": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord { return c[2:] }, first: 3},
		"one is missing": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord { return slices.Delete(c, 2, 3) },
			says: "record 3 is missing", first: 1},
		"two are missing": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord { return slices.Delete(c, 2, 4) },
			says: "records 3 to 4 are missing", first: 1},
		"one was changed": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord {
			c[1].Spec.PlanHash = "sha256:" + strings.Repeat("b", 64)
			return c
		}, says: "record 2 (" + h.chain(t)[1].Name + ") is not as it was when record 3 was written", first: 1},
		"one was written twice": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord {
			forged := c[2]
			forged.Name, forged.Spec.ID = "r-forged", strings.Repeat("f", 64)
			return append(c, forged)
		}, says: "there are two records 3", first: 1},
		"one is another's": {change: func(c []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecord {
			c[5].Name = "r-other"
			return c
		}, says: "record 6 (r-other) has the name of another: its own is r-run-uid-0006", first: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := fleetflowv1alpha1.VerifyRecords(test.change(h.chain(t)))
			assert.Equal(t, test.first, found.First)
			if test.says == "" {
				assert.Empty(t, found.Breaks)
				return
			}
			assert.Contains(t, strings.Join(found.Breaks, "\n"), test.says)
		})
	}
}

func TestWhichRecordsAreDeleted(t *testing.T) {
	record := func(subject string, sequence int, age time.Duration) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", subject, sequence), CreationTimestamp: metav1.NewTime(start.Add(-age)), UID: types.UID(fmt.Sprint(subject, sequence)),
			Labels:      map[string]string{fleetflowv1alpha1.AuditSubjectLabel: subject},
			Annotations: map[string]string{fleetflowv1alpha1.AuditSequenceAnnotation: fmt.Sprint(sequence)},
		}}
	}
	member := func(subject string, sequence int, age time.Duration) metav1.PartialObjectMetadata {
		of := record(subject, sequence, age)
		of.Labels[fleetflowv1alpha1.AuditKindLabel] = "MemberCluster"
		return of
	}
	names := func(records []metav1.PartialObjectMetadata) string {
		var all []string
		for i := range records {
			all = append(all, records[i].Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	for sentence, test := range map[string]struct {
		all                       []metav1.PartialObjectMetadata
		expired, crowded, dropped string
		next                      time.Duration
	}{
		"what is to be delivered stays for twice as long": {all: []metav1.PartialObjectMetadata{record("waits", 1, 31*day), record("waits", 2, 30*day)}, next: 29 * day},
		"and not for longer":                              {all: []metav1.PartialObjectMetadata{record("waits", 1, 61*day), record("waits", 2, 30*day)}, dropped: "waits-1", next: 30 * day},
		"twice as many stay that are to be delivered": {all: []metav1.PartialObjectMetadata{record("waits", 1, day), record("waits", 2, day), record("waits", 3, day),
			record("waits", 4, day), record("waits", 5, day), record("waits", 6, day)}, next: 59 * day},
		"and no more": {all: []metav1.PartialObjectMetadata{record("waits", 1, day), record("waits", 2, day), record("waits", 3, day),
			record("waits", 4, day), record("waits", 5, day), record("waits", 6, day), record("waits", 7, day)}, dropped: "waits-1", next: 59 * day},
		"what is delivered goes first": {all: []metav1.PartialObjectMetadata{record("waits", 1, 9*day), record("waits", 2, 9*day), record("waits", 3, 9*day), record("gone", 1, day), record("gone", 2, day), record("gone", 3, 0)},
			crowded: "gone-1", next: 29 * day},
		"none are there": {},
		"those that are old enough": {all: []metav1.PartialObjectMetadata{record("gone", 1, 31*day), record("gone", 2, 30*day), record("gone", 3, 29*day)},
			expired: "gone-1 gone-2", next: day},
		"the last of a run that is there stays": {all: []metav1.PartialObjectMetadata{record("lives", 1, 40*day), record("lives", 2, 35*day)}, expired: "lives-1"},
		"the first of a run that has too many": {all: []metav1.PartialObjectMetadata{record("gone", 4, day), record("gone", 1, day), record("gone", 3, day), record("gone", 2, day)},
			crowded: "gone-1", next: 29 * day},
		"the oldest, if there are too many": {all: []metav1.PartialObjectMetadata{record("gone", 1, 2*day), record("lives", 1, 3*day), record("other", 1, day),
			record("last", 1, day), record("last", 2, 0), record("more", 1, 0)}, crowded: "gone-1", next: 29 * day},
		"those of members before others, if they have more than their share": {all: []metav1.PartialObjectMetadata{record("gone", 1, 3*day), record("gone", 2, 3*day),
			record("other", 1, 3*day), member("m-1", 1, 2*day), member("m-2", 1, day), member("m-2", 2, 0), record("last", 1, day)}, crowded: "m-1-1 m-2-1", next: 27 * day},
		"and like others, if not": {all: []metav1.PartialObjectMetadata{record("gone", 1, 2*day), record("gone", 2, day), record("other", 1, day), record("other", 2, day),
			member("m-1", 1, 3*day), record("last", 1, 0), record("more", 1, 0)}, crowded: "gone-1 m-1-1", next: 29 * day},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := choosePruned(test.all, Bounds{Age: 30 * day, Total: 5, OfSubject: 3}, func(subject string) bool { return subject == "lives" }, func(name string) bool { return strings.HasPrefix(name, "waits-") }, start)
			assert.Equal(t, test.dropped, names(found.dropped))
			assert.Equal(t, test.expired, names(found.expired))
			assert.Equal(t, test.crowded, names(found.crowded))
			if test.next == 0 {
				assert.True(t, found.next.IsZero())
			} else {
				assert.Equal(t, start.Add(test.next), found.next)
			}
		})
	}
}

// What is deleted before it was delivered is told, and that is not told of itself.
func TestWhatIsDroppedIsOnRecord(t *testing.T) {
	var all []client.Object
	for i := range 203 {
		spec := fleetflowv1alpha1.AuditRecordSpec{Sequence: int64(i + 1), SubjectRef: fleetflowv1alpha1.AuditSubjectReference{UID: fmt.Sprint("run-", i/50)},
			ID: fleetflowv1alpha1.RecordID("run", fleetflowv1alpha1.RecordStageStarted, fmt.Sprint(i)), Type: fleetflowv1alpha1.RecordStageStarted}
		record := newRecord(spec)
		record.UID = types.UID(fmt.Sprint("uid-", i))
		record.CreationTimestamp = metav1.NewTime(start.Add(time.Duration(i) * time.Second))
		all = append(all, record)
	}
	h := newHub(t, all...)
	k := h.keeper(start.Add(time.Hour))
	k.Undelivered = func(string) bool { return true }
	recorder := events.NewFakeRecorder(10)
	p := &pruner{keeper: k, events: recorder, dropped: k.Dropped}
	for range 3 {
		_, err := p.Reconcile(t.Context(), ctrl.Request{})
		require.NoError(t, err)
		for _, record := range h.chain(t) { // an API server notes when
			if record.CreationTimestamp.IsZero() {
				record.CreationTimestamp = metav1.NewTime(start.Add(time.Hour))
				require.NoError(t, h.Update(t.Context(), &record))
			}
		}
	}
	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(t, h.Client.List(t.Context(), &list))
	assert.Len(t, list.Items, 200)
	var told []fleetflowv1alpha1.AuditRecord
	for _, record := range list.Items {
		if record.Spec.Type == fleetflowv1alpha1.RecordConfigRecordsDropped {
			told = append(told, record)
		}
	}
	require.Len(t, told, 1)
	assert.Equal(t, "At least 3 records are deleted that were not delivered: there are more than 2 times 100, or they were kept for 2 times 720h0m0s", told[0].Spec.Message)
	assert.Contains(t, <-recorder.Events, "Warning RecordsNotDelivered At least 3 records are deleted")
	assert.InDelta(t, 4, testutil.ToFloat64(k.Dropped), 0, "and the one in whose place that is")
}
