package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
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

// Keeper writes the records of runs.
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
}

// writers is how many locks the runs share.
const writers = 64

// NewKeeper makes a Keeper.
func NewKeeper(c client.Client, live client.Reader, clk clock.PassiveClock, bounds Bounds) *Keeper {
	return &Keeper{
		Client: c, Live: live, Clock: clk, Bounds: bounds, subjects: keymutex.NewHashed(writers), Dropped: prometheus.NewCounter(prometheus.CounterOpts{
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
	world, err := k.read(ctx, run)
	if err != nil {
		return err
	}
	return k.append(ctx, world)
}

// waits reports whether a record is still to be delivered somewhere.
func (k *Keeper) waits(name string) bool { return k.Undelivered != nil && k.Undelivered(name) }

// areKnown reports whether, by the cache, nothing is missing. Whether a run goes on after a stop follows from the records themselves: that of
// one that has stopped is looked at as if it did.
func (k *Keeper) areKnown(ctx context.Context, run placementv1beta1.UpdateRunObject) (bool, error) {
	of := metav1.PartialObjectMetadataList{}
	of.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecordList"))
	if err := k.Client.List(ctx, &of, client.MatchingFields{bySubject: string(run.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the records of run %s: %w", run.GetName(), err)
	}
	seen := glanceAt(of.Items)
	if seen.hasEnd && rules.IsRunOver(run) && !rules.IsDeleting(run) {
		return true, nil // all before was written first, and nothing more happens to it
	}
	if seen.stops != 0 || seen.first > 1 {
		return false, nil // what there has to be depends on what the records say
	}
	requests, err := k.requests(ctx, k.Client, run)
	if err != nil {
		return false, err
	}
	for _, spec := range k.due(Derive(World{Run: run, Requests: requests, Now: k.Clock.Now()})) {
		if !seen.names[fleetflowv1alpha1.RecordName(spec.ID)] {
			return false, nil
		}
	}
	return true, nil
}

// glance is what the metadata of a run's records says.
type glance struct {
	names map[string]bool
	// first is the lowest sequence; 0 if there are no records.
	first int64
	// stops are how many more stops than resumptions there are.
	stops int
	// hasEnd is whether there is a record of the end of the run.
	hasEnd bool
}

// glanceAt returns what the metadata of a run's records says.
func glanceAt(records []metav1.PartialObjectMetadata) glance {
	seen := glance{names: make(map[string]bool, len(records))}
	for i := range records {
		seen.names[records[i].Name] = true
		switch fleetflowv1alpha1.AuditRecordType(records[i].Labels[fleetflowv1alpha1.AuditTypeLabel]) {
		case fleetflowv1alpha1.RecordRunStopped:
			seen.stops++
		case fleetflowv1alpha1.RecordRunResumed:
			seen.stops--
		case fleetflowv1alpha1.RecordRunSucceeded, fleetflowv1alpha1.RecordRunFailed, fleetflowv1alpha1.RecordRunRefused:
			seen.hasEnd = true
		}
		if sequence := sequenceOf(&records[i]); seen.first == 0 || sequence < seen.first {
			seen.first = sequence
		}
	}
	return seen
}

// due returns the facts that are not older than a record may become.
func (k *Keeper) due(all []fleetflowv1alpha1.AuditRecordSpec) []fleetflowv1alpha1.AuditRecordSpec {
	oldest := k.Clock.Now().Add(-k.Bounds.Age)
	return slices.DeleteFunc(all, func(spec fleetflowv1alpha1.AuditRecordSpec) bool { return spec.Time.Time.Before(oldest) })
}

// read reads what the records of a run follow from, past the cache.
func (k *Keeper) read(ctx context.Context, run placementv1beta1.UpdateRunObject) (World, error) {
	requests, err := k.requests(ctx, k.Live, run)
	if err != nil {
		return World{}, err
	}
	records := fleetflowv1alpha1.AuditRecordList{}
	if err := k.Live.List(ctx, &records, client.MatchingLabels{fleetflowv1alpha1.AuditSubjectLabel: string(run.GetUID())}); err != nil {
		return World{}, fmt.Errorf("listing the records of run %s: %w", run.GetName(), err)
	}
	fleetflowv1alpha1.SortRecords(records.Items)
	return World{Run: run, Requests: requests, Records: records.Items, Now: k.Clock.Now()}, nil
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

// append writes the records that are missing behind those that there are. Those that the API server says are invalid are left out, and the
// error says which.
func (k *Keeper) append(ctx context.Context, world World) error {
	written := make(map[string]bool, len(world.Records))
	sequence := int64(0)
	previous := ""
	var refused []error
	for i := range world.Records {
		written[world.Records[i].Spec.ID] = true
	}
	if n := len(world.Records); n > 0 {
		sequence = world.Records[n-1].Spec.Sequence
		previous = world.Records[n-1].Digest()
	}
	for _, spec := range k.due(Derive(world)) {
		if written[spec.ID] {
			continue
		}
		spec.Sequence = sequence + 1
		spec.Previous = previous
		record := newRecord(spec)
		err := k.Client.Create(ctx, record)
		if apierrors.IsAlreadyExists(err) {
			if record, err = k.readWritten(ctx, record); err == nil && record.Spec.Sequence <= sequence {
				continue
			}
		}
		if err != nil {
			err = fmt.Errorf("writing record %s of run %s: %w", spec.Type, world.Run.GetName(), err)
			if !apierrors.IsInvalid(err) {
				return err
			}
			refused = append(refused, err)
			continue
		}
		sequence = record.Spec.Sequence
		previous = record.Digest()
	}
	return errors.Join(refused...)
}

// readWritten returns the record of a fact that is there although the list has not had it: another agent writes, too, or its label
// was removed.
func (k *Keeper) readWritten(ctx context.Context, want *fleetflowv1alpha1.AuditRecord) (*fleetflowv1alpha1.AuditRecord, error) {
	written := &fleetflowv1alpha1.AuditRecord{}
	if err := k.Live.Get(ctx, types.NamespacedName{Name: want.Name}, written); err != nil {
		return nil, fmt.Errorf("reading record %s, which is there: %w", want.Name, err)
	}
	if written.Spec.ID != want.Spec.ID {
		return nil, fmt.Errorf("record %s is of another fact, %s", want.Name, written.Spec.Type)
	}
	return written, nil
}

// newRecord returns the record of a fact.
func newRecord(spec fleetflowv1alpha1.AuditRecordSpec) *fleetflowv1alpha1.AuditRecord {
	return &fleetflowv1alpha1.AuditRecord{
		ObjectMeta: metav1.ObjectMeta{
			Name: fleetflowv1alpha1.RecordName(spec.ID),
			Labels: map[string]string{
				fleetflowv1alpha1.AuditSubjectLabel: spec.SubjectRef.UID, fleetflowv1alpha1.AuditTypeLabel: string(spec.Type),
			},
			Annotations: map[string]string{fleetflowv1alpha1.AuditSequenceAnnotation: strconv.FormatInt(spec.Sequence, 10)},
		},
		Spec: spec,
	}
}

// sequenceOf returns the sequence of a record of which only the metadata is known; 0 if it says none.
func sequenceOf(record metav1.Object) int64 {
	sequence, err := strconv.ParseInt(record.GetAnnotations()[fleetflowv1alpha1.AuditSequenceAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return sequence
}
