package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Bounds are how many records are kept, and for how long.
type Bounds struct {
	// Age is for how long a record is kept.
	Age time.Duration
	// Total is how many there are at most, and OfSubject how many of one subject.
	Total, OfSubject int
}

// Keeper writes the records of runs and of other objects.
type Keeper struct {
	// Client writes, and reads from the cache, which has the metadata of records.
	Client client.Client
	// Live reads past the cache.
	Live   client.Reader
	Clock  clock.PassiveClock
	Bounds Bounds
	// Undelivered reports whether a record is still to be delivered somewhere; with nil none is.
	Undelivered func(name string) bool
	// Dropped counts those that were deleted all the same.
	Dropped prometheus.Counter

	// subjects has one at a time write the records of a run: who looks after the run when it is deleted does so, too.
	subjects keymutex.KeyMutex
	// chains has the records of the objects that were written last, as this agent knows them: it goes on with them without a list of all that there
	// are. The name of a record is its place in the chain, so one that another agent has written since refuses the next.
	chains *lru.Cache
	// told has, of objects other than runs, the facts of which there are records: the objects change more often than these.
	told sync.Map
	// whys has why objects were deleted that are gone.
	whys sync.Map
}

const (
	// writers is how many locks the runs share.
	writers = 64
	// chainsKnown is of how many objects the records are kept in memory, about 50 KB each.
	chainsKnown = 256
)

// NewKeeper makes a Keeper.
func NewKeeper(c client.Client, live client.Reader, clk clock.PassiveClock, bounds Bounds) *Keeper {
	return &Keeper{
		Client: c, Live: live, Clock: clk, Bounds: bounds, subjects: keymutex.NewHashed(writers), chains: lru.New(chainsKnown), Dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fleetflow_audit_dropped_total", Help: "How many AuditRecords were deleted before they were delivered, since this agent has started.",
		}),
	}
}

// BeforeEnd returns what has to be done before a run that is being deleted is gone; nil if no records are written. A record that the API
// server will never take does not keep the run.
func (k *Keeper) BeforeEnd() func(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if k == nil {
		return nil
	}
	return func(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
		err := k.Keep(ctx, run)
		if apierrors.IsInvalid(err) {
			log.FromContext(ctx).Error(err, "Letting a run go without the records that the API server refuses", "run", run.GetName())
			return nil
		}
		return err
	}
}

// Keep writes the records of a run that are missing. By the cache there are none nearly always; only if one is missing is what they
// follow from read past the cache, so that each has what it has for good.
func (k *Keeper) Keep(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	k.subjects.LockKey(string(run.GetUID()))
	defer func() { _ = k.subjects.UnlockKey(string(run.GetUID())) }() // no mutex of this kind fails
	known, err := k.areKnown(ctx, run)
	if err != nil || known {
		return err
	}
	requests, err := k.requests(ctx, k.Live, run)
	if err != nil {
		return err
	}
	return k.append(ctx, run.GetUID(), func(records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec {
		return Derive(World{Run: run, Requests: requests, Records: records, Now: k.Clock.Now()})
	})
}

// waits reports whether a record is still to be delivered somewhere.
func (k *Keeper) waits(name string) bool { return k.Undelivered != nil && k.Undelivered(name) }

// areKnown reports whether, by the cache, nothing is missing. Whether a run goes on after a stop follows from the records themselves: that of
// one that has stopped is looked at as if it did.
func (k *Keeper) areKnown(ctx context.Context, run placementv1beta1.UpdateRunObject) (bool, error) {
	seen, err := k.glance(ctx, run.GetUID())
	if err != nil {
		return false, err
	}
	hasEnd := slices.ContainsFunc([]fleetflowv1alpha1.AuditRecordType{
		fleetflowv1alpha1.RecordRunSucceeded, fleetflowv1alpha1.RecordRunFailed, fleetflowv1alpha1.RecordRunRefused,
	}, func(end fleetflowv1alpha1.AuditRecordType) bool { return seen.types[end] > 0 })
	if hasEnd && rules.IsRunOver(run) && !rules.IsDeleting(run) {
		return true, nil // all before was written first, and nothing more happens to it
	}
	if seen.types[fleetflowv1alpha1.RecordRunStopped] != seen.types[fleetflowv1alpha1.RecordRunResumed] || seen.first > 1 {
		return false, nil // what there has to be depends on what the records say
	}
	requests, err := k.requests(ctx, k.Client, run)
	if err != nil {
		return false, err
	}
	return seen.has(k.due(Derive(World{Run: run, Requests: requests, Now: k.Clock.Now()}))), nil
}

// glance is what the metadata of an object's records says.
type glance struct {
	// ids are those of the facts, types how many there are of each.
	ids   map[string]bool
	types map[fleetflowv1alpha1.AuditRecordType]int
	// last has the highest sequence of each type.
	last map[fleetflowv1alpha1.AuditRecordType]int64
	// first is the lowest sequence; 0 if there are no records.
	first int64
	// generation is the latest of the object of which it is recorded what was asked for.
	generation int64
}

// has reports whether there are records of all these facts.
func (g glance) has(all []fleetflowv1alpha1.AuditRecordSpec) bool {
	return !slices.ContainsFunc(all, func(spec fleetflowv1alpha1.AuditRecordSpec) bool { return !g.hasFact(spec.ID) })
}

// hasFact reports whether there is a record of a fact. Those that were written before records had the ID as an annotation have it in their name.
func (g glance) hasFact(id string) bool {
	return g.ids[id] || g.ids[fleetflowv1alpha1.RecordNameOf(id)]
}

// see takes one record in.
func (g *glance) see(record metav1.Object) {
	if g.ids == nil {
		g.ids = map[string]bool{}
		g.types = map[fleetflowv1alpha1.AuditRecordType]int{}
		g.last = map[fleetflowv1alpha1.AuditRecordType]int64{}
	}
	g.ids[cmp.Or(record.GetAnnotations()[fleetflowv1alpha1.AuditIDAnnotation], record.GetName())] = true
	kind := fleetflowv1alpha1.AuditRecordType(record.GetLabels()[fleetflowv1alpha1.AuditTypeLabel])
	sequence := sequenceOf(record)
	g.types[kind]++
	g.last[kind] = max(g.last[kind], sequence)
	if g.first == 0 || sequence < g.first {
		g.first = sequence
	}
	g.generation = max(g.generation, numberOf(record, fleetflowv1alpha1.AuditGenerationAnnotation))
}

// glance returns what the metadata of an object's records says, by the cache.
func (k *Keeper) glance(ctx context.Context, subject types.UID) (glance, error) {
	seen := glance{}
	of := metav1.PartialObjectMetadataList{}
	of.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecordList"))
	if err := k.Client.List(ctx, &of, client.MatchingFields{bySubject: string(subject)}, client.UnsafeDisableDeepCopy); err != nil {
		return seen, fmt.Errorf("listing the records of object %s: %w", subject, err)
	}
	for i := range of.Items {
		seen.see(&of.Items[i])
	}
	return seen, nil
}

// due returns the facts that are not older than a record may become.
func (k *Keeper) due(all []fleetflowv1alpha1.AuditRecordSpec) []fleetflowv1alpha1.AuditRecordSpec {
	oldest := k.Clock.Now().Add(-k.Bounds.Age)
	return slices.DeleteFunc(all, func(spec fleetflowv1alpha1.AuditRecordSpec) bool { return spec.Time.Time.Before(oldest) })
}

// read reads the records of an object past the cache, as they were written.
func (k *Keeper) read(ctx context.Context, subject types.UID) ([]fleetflowv1alpha1.AuditRecord, error) {
	records := fleetflowv1alpha1.AuditRecordList{}
	if err := k.Live.List(ctx, &records, client.MatchingLabels{fleetflowv1alpha1.AuditSubjectLabel: string(subject)}); err != nil {
		return nil, fmt.Errorf("listing the records of object %s: %w", subject, err)
	}
	fleetflowv1alpha1.SortRecords(records.Items)
	return records.Items, nil
}

// chain returns the records of an object as this agent has written or read them last, else past the cache. The lock of the object is held.
func (k *Keeper) chain(ctx context.Context, subject types.UID) ([]fleetflowv1alpha1.AuditRecord, error) {
	if known, is := k.chains.Get(subject); is {
		records, _ := known.([]fleetflowv1alpha1.AuditRecord) // nothing else is in it
		return records, nil
	}
	return k.read(ctx, subject)
}

// requests returns the approval requests of a run, by name: those that its tasks name and that are of this run.
func (k *Keeper) requests(ctx context.Context, from client.Reader, run placementv1beta1.UpdateRunObject) (map[string]placementv1beta1.ApprovalRequestObject, error) {
	found := map[string]placementv1beta1.ApprovalRequestObject{}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for task := range stagetask.Statuses(&stages[i]) {
			if task.ApprovalRequestName == "" || len(task.Conditions) == 0 {
				continue
			}
			request := placementv1beta1.ScopeOf(run).NewApprovalRequest(task.ApprovalRequestName)
			err := from.Get(ctx, types.NamespacedName{Namespace: run.GetNamespace(), Name: task.ApprovalRequestName}, request)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading approval request %s: %w", task.ApprovalRequestName, err)
			}
			if request.GetAnnotations()[placementv1beta1.ApprovalRunUIDAnnotation] == string(run.GetUID()) {
				found[request.GetName()] = request
			}
		}
	}
	return found, nil
}

// telling returns what there has to be a record of, where there are records already.
type telling func(records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec

// append writes the records of an object that are missing behind those that there are, one after the other. Those that the API server says are
// invalid are left out, and the error says which.
func (k *Keeper) append(ctx context.Context, subject types.UID, tell telling) error {
	records, err := k.chain(ctx, subject)
	if err != nil {
		return err
	}
	k.chains.Remove(subject) // after an error it is read again
	written := make(map[string]bool, len(records))
	for i := range records {
		written[records[i].Spec.ID] = true
	}
	var refused []error
	for {
		next := firstMissing(k.due(tell(records)), written)
		if next == nil {
			k.chains.Add(subject, records)
			return errors.Join(refused...)
		}
		if n := len(records); n > 0 {
			next.Sequence = records[n-1].Spec.Sequence
			next.Previous = records[n-1].Digest()
		}
		next.Sequence++
		record, err := k.take(ctx, behind(records, newRecord(*next)))
		if err != nil {
			err = fmt.Errorf("writing record %s of %s: %w", next.Type, next.SubjectRef.Name, err)
			if !apierrors.IsInvalid(err) {
				return err
			}
			refused = append(refused, err)
			written[next.ID] = true
			continue
		}
		written[record.Spec.ID] = true
		records = append(records, *record)
	}
}

// behind notes on the next record of a chain which generation of the object was told so far: the record that told it may go before.
func behind(records []fleetflowv1alpha1.AuditRecord, next *fleetflowv1alpha1.AuditRecord) *fleetflowv1alpha1.AuditRecord {
	told := max(glanceAt(records).generation, numberOf(next, fleetflowv1alpha1.AuditGenerationAnnotation))
	if told > 0 && next.Labels[fleetflowv1alpha1.AuditKindLabel] != "" {
		next.Annotations[fleetflowv1alpha1.AuditGenerationAnnotation] = strconv.FormatInt(told, 10)
	}
	return next
}

// firstMissing returns the first fact that has no record; nil if there is none.
func firstMissing(all []fleetflowv1alpha1.AuditRecordSpec, written map[string]bool) *fleetflowv1alpha1.AuditRecordSpec {
	i := slices.IndexFunc(all, func(spec fleetflowv1alpha1.AuditRecordSpec) bool { return !written[spec.ID] })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// errOvertaken says that another agent writes records of the object, too: it may know more of it.
var errOvertaken = errors.New("another agent has written the next record: the object is looked at again")

// take writes a record to its place in the chain, and returns the one that has the place then: the same fact, which another agent was first to
// write, or one that the list has not had, as its label was removed.
func (k *Keeper) take(ctx context.Context, record *fleetflowv1alpha1.AuditRecord) (*fleetflowv1alpha1.AuditRecord, error) {
	err := k.Client.Create(ctx, record)
	if !apierrors.IsAlreadyExists(err) {
		return record, err
	}
	there := &fleetflowv1alpha1.AuditRecord{}
	if err := k.Live.Get(ctx, types.NamespacedName{Name: record.Name}, there); err != nil {
		return nil, fmt.Errorf("reading record %s, which is there: %w", record.Name, err)
	}
	if there.Spec.SubjectRef.UID != record.Spec.SubjectRef.UID || there.Spec.Sequence != record.Spec.Sequence {
		return nil, fmt.Errorf("%s has the name of a record and is none: it is %s of %s", record.Name, there.Spec.Type, there.Spec.SubjectRef.Name)
	}
	if there.Spec.ID != record.Spec.ID && there.Labels[fleetflowv1alpha1.AuditSubjectLabel] == record.Spec.SubjectRef.UID {
		return nil, errOvertaken
	}
	return there, nil
}

// newRecord returns the record of a fact.
func newRecord(spec fleetflowv1alpha1.AuditRecordSpec) *fleetflowv1alpha1.AuditRecord {
	record := &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{
			Name: fleetflowv1alpha1.RecordName(spec.SubjectRef.UID, spec.Sequence),
			Labels: map[string]string{
				fleetflowv1alpha1.AuditSubjectLabel: spec.SubjectRef.UID, fleetflowv1alpha1.AuditTypeLabel: string(spec.Type),
			},
			Annotations: map[string]string{
				fleetflowv1alpha1.AuditSequenceAnnotation: strconv.FormatInt(spec.Sequence, 10), fleetflowv1alpha1.AuditIDAnnotation: spec.ID,
			},
		},
		Spec: spec,
	}
	if spec.UpdateRunName == "" {
		record.Labels[fleetflowv1alpha1.AuditKindLabel] = spec.SubjectRef.Kind
		if spec.Data[changeKey] != "" {
			record.Annotations[fleetflowv1alpha1.AuditGenerationAnnotation] = string(spec.Data[generationKey])
		}
	}
	return record
}

// sequenceOf returns the sequence of a record of which only the metadata is known; 0 if it says none.
func sequenceOf(record metav1.Object) int64 {
	return numberOf(record, fleetflowv1alpha1.AuditSequenceAnnotation)
}

// numberOf returns the number that an annotation has; 0 if it has none.
func numberOf(record metav1.Object, annotation string) int64 {
	number, err := strconv.ParseInt(record.GetAnnotations()[annotation], 10, 64)
	if err != nil {
		return 0
	}
	return number
}
