package delivery

import (
	"errors"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// tracking has the records that are not complete, and what is to be marked of them.
type tracking struct {
	records map[string]*tracked
	// unmarked are those of the records that have deliveries which are not in their status.
	unmarked map[string]*tracked
	// marking is how many are marked at this time.
	marking int
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
	// refusal says why the API server takes no mark of it, and nothing waits for one; empty if it does.
	refusal string
}

// newTracking makes a tracking that has no records.
func newTracking() tracking {
	return tracking{records: map[string]*tracked{}, unmarked: map[string]*tracked{}}
}

// forgetAll forgets the records. Marks that are being written still end.
func (k *tracking) forgetAll() {
	k.records = map[string]*tracked{}
	k.unmarked = map[string]*tracked{}
}

// forget forgets a record.
func (k *tracking) forget(name string) {
	delete(k.records, name)
	delete(k.unmarked, name)
}

// note notes that the delivery of a record is over.
func (k *tracking) note(key Key, w *waiting, why string, now time.Time) {
	t := k.records[w.record.Name]
	if t == nil || t.record.UID != w.record.UID || t.isOver(key) {
		return
	}
	if len(t.unmarked) == 0 {
		t.since = now
	}
	k.unmarked[w.record.Name] = t
	t.over[key] = true
	t.unmarked = append(t.unmarked, fleetflowv1alpha1.AuditDelivery{
		Kind: key.Kind, Name: key.Name, Time: metav1.NewTime(now.UTC().Truncate(time.Second)), Attempts: w.attempts, Error: why,
	})
}

// noteUnwanted has a record be marked that a destination turned out not to want, if that completes it.
func (k *tracking) noteUnwanted(name string, all queues, now time.Time) {
	if t := k.records[name]; t != nil && k.unmarked[name] == nil && t.isMarkDue(all) {
		t.since = now
		k.unmarked[name] = t
	}
}

// noteMarked has a record that was marked be marked no more, unless there is more to be written.
func (k *tracking) noteMarked(name string, t *tracked, all queues) {
	if k.unmarked[name] == t && !t.isMarkDue(all) {
		delete(k.unmarked, name)
	}
}

// nextMarks returns the records to mark now, the destinations that are blocked by what is not marked, and when there is more to mark; zero if only
// something that happens changes that.
func (k *tracking) nextMarks(all queues, now time.Time) (due map[string]*tracked, blocked map[Key]bool, again time.Time) {
	due = map[string]*tracked{}
	blocked = map[Key]bool{}
	for name, t := range k.unmarked {
		for _, d := range t.unmarked {
			blocked[Key{d.Kind, d.Name}] = blocked[Key{d.Kind, d.Name}] || t.refusal == ""
		}
		from := t.notBefore
		if settled := t.since.Add(settle); all.isExpected(t, now) && settled.After(from) {
			from = settled
		}
		switch {
		case t.isMarking || k.marking >= marksAtOnce:
		case now.Before(from):
			again = earliest(again, from)
		default:
			t.isMarking = true
			k.marking++
			due[name] = t
		}
	}
	return due, blocked, again
}

// isMarkDue reports whether there is something to be written into the status of a record.
func (t *tracked) isMarkDue(all queues) bool {
	return len(t.unmarked) > 0 || t.completesLate && !all.isOwed(t)
}

// isOver reports whether the delivery to a destination is over. What is seen of a record may be older than what this agent has done.
func (t *tracked) isOver(key Key) bool {
	return t.over[key] || hasDelivery(t.record.Status.Deliveries, key)
}

// withMark returns the record with what has become of it in its status; wanting are the destinations that there are and that want it.
func (t *tracked) withMark(all queues, wanting []Key) *fleetflowv1alpha1.AuditRecord {
	record := t.record.DeepCopy()
	for _, d := range t.unmarked {
		if !hasDelivery(record.Status.Deliveries, Key{d.Kind, d.Name}) {
			record.Status.Deliveries = append(record.Status.Deliveries, d)
		}
	}
	record.Status.Complete = !all.isOwed(t) && !all.isMissed(record, wanting)
	t.completesLate = !record.Status.Complete && all.isUnknown(t)
	record.Status.Deliveries = fitting(record.Status.Deliveries, func(key Key) bool {
		return all[key] != nil || slices.Contains(wanting, key)
	})
	return record
}

// noteMark notes that a mark was written with so many of the deliveries.
func (t *tracked) noteMark(record *fleetflowv1alpha1.AuditRecord, written int) {
	t.record = record
	t.unmarked = t.unmarked[written:]
	t.failures = 0
	t.notBefore = time.Time{}
	t.refusal = ""
}

// noteFailure notes that a mark could not be written, and when it is tried again; current is the record as another has written it, nil if that is not
// why.
func (t *tracked) noteFailure(err error, current *fleetflowv1alpha1.AuditRecord, now time.Time, jitter func(time.Duration) time.Duration) {
	if current != nil {
		t.record = current
	}
	t.refusal = ""
	if isMarkRefused(err) {
		t.refusal = err.Error()
	}
	t.failures++
	if current == nil || t.failures > 1 { // a destination waits for it: what another has written is gone on with at once
		t.notBefore = now.Add(jitter(min(firstWait<<min(t.failures-1, 6), time.Minute)))
	}
}

// isMarkRefused reports whether the API server, or a webhook of it, says that it does not take a mark as it is.
func isMarkRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// withRefusal returns a report that also says which record of the destination waits for its mark, if the last attempt to deliver has not failed.
func (k *tracking) withRefusal(key Key, report Report) Report {
	if report.LastError != "" {
		return report
	}
	for name, t := range k.unmarked {
		if t.refusal != "" && slices.ContainsFunc(t.unmarked, func(d fleetflowv1alpha1.AuditDelivery) bool { return Key{d.Kind, d.Name} == key }) {
			report.LastError = bounded("record " + name + " was taken and waits for its mark: " + t.refusal)
			break
		}
	}
	return report
}

// hasDelivery reports whether a delivery to a destination is over by a status.
func hasDelivery(all []fleetflowv1alpha1.AuditDelivery, key Key) bool {
	return slices.ContainsFunc(all, func(d fleetflowv1alpha1.AuditDelivery) bool { return Key{d.Kind, d.Name} == key })
}

// fitting returns as many deliveries as a status has place for: those go first that were to destinations which are not there any more.
func fitting(all []fleetflowv1alpha1.AuditDelivery, isThere func(Key) bool) []fleetflowv1alpha1.AuditDelivery {
	for len(all) > fleetflowv1alpha1.MaxDeliveries {
		gone := slices.IndexFunc(all, func(d fleetflowv1alpha1.AuditDelivery) bool { return !isThere(Key{d.Kind, d.Name}) })
		all = slices.Delete(all, max(gone, 0), max(gone, 0)+1)
	}
	return all
}
