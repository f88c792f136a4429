package records

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
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

	// subjects has one at a time write the records of a run: who looks after the run when it is deleted does so, too.
	subjects keymutex.KeyMutex
}

// writers is how many locks the runs share.
const writers = 64

// NewKeeper makes a Keeper.
func NewKeeper(c client.Client, live client.Reader, clk clock.PassiveClock, bounds Bounds) *Keeper {
	return &Keeper{Client: c, Live: live, Clock: clk, Bounds: bounds, subjects: keymutex.NewHashed(writers)}
}

// BeforeEnd returns what has to be done before a run that is being deleted is gone; nil if no records are written.
func (k *Keeper) BeforeEnd() func(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if k == nil {
		return nil
	}
	return k.Keep
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

// areKnown reports whether, by the cache, nothing is missing. Whether a run goes on after a stop follows from the records themselves: that of
// one that has stopped is looked at as if it did.
func (k *Keeper) areKnown(ctx context.Context, run placementv1beta1.UpdateRunObject) (bool, error) {
	requests, err := k.requests(ctx, k.Client, run)
	if err != nil {
		return false, err
	}
	of := metav1.PartialObjectMetadataList{}
	of.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecordList"))
	if err := k.Client.List(ctx, &of, client.MatchingFields{bySubject: string(run.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the records of run %s: %w", run.GetName(), err)
	}
	names := make(map[string]bool, len(of.Items))
	first := int64(0)
	stops := 0
	for i := range of.Items {
		names[of.Items[i].Name] = true
		switch fleetflowv1alpha1.AuditRecordType(of.Items[i].Labels[fleetflowv1alpha1.AuditTypeLabel]) {
		case fleetflowv1alpha1.RecordRunStopped:
			stops++
		case fleetflowv1alpha1.RecordRunResumed:
			stops--
		}
		if sequence := sequenceOf(&of.Items[i]); first == 0 || sequence < first {
			first = sequence
		}
	}
	if stops != 0 || first > 1 {
		return false, nil // what there has to be depends on what the records say
	}
	for _, spec := range k.due(Derive(World{Run: run, Requests: requests, Now: k.Clock.Now()})) {
		if !names[fleetflowv1alpha1.RecordName(spec.ID)] {
			return false, nil
		}
	}
	return true, nil
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

// append writes the records that are missing behind those that there are.
func (k *Keeper) append(ctx context.Context, world World) error {
	written := make(map[string]bool, len(world.Records))
	sequence := int64(0)
	previous := ""
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
		sequence++
		spec.Sequence = sequence
		spec.Previous = previous
		record := newRecord(spec)
		previous = record.Digest()
		// That there is one already, which the list has not had, says that another agent writes, too: the next look tells.
		if err := k.Client.Create(ctx, record); err != nil {
			return fmt.Errorf("writing record %s of run %s: %w", spec.Type, world.Run.GetName(), err)
		}
	}
	return nil
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
