package records

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// pruner deletes records after their time, and the oldest if there are too many.
type pruner struct {
	keeper *Keeper
	events events.EventRecorder
	// dropped counts records that were deleted before they were delivered.
	dropped prometheus.Counter
}

// longer is how many times as long, and as many, records are kept that are still to be delivered.
const longer = 2

// pruned are the records to delete.
type pruned struct {
	// expired have been kept for as long as they are to be, crowded have not: there are too many. Dropped are still to be delivered.
	expired, crowded, dropped []metav1.PartialObjectMetadata
	// next is when the next one expires; zero if there is none.
	next time.Time
}

// choosePruned returns which records are to be deleted. It is pure. Of each subject the first go first, so that what is left is a chain, and
// the last one stays as long as the subject lives: from it follows what was recorded before. What is still to be delivered stays for longer, and
// what is behind it in its chain.
func choosePruned(all []metav1.PartialObjectMetadata, bounds Bounds, lives, waits func(string) bool, now time.Time) pruned {
	found := prune(all, bounds, lives, waits, now)
	bounds = Bounds{Age: longer * bounds.Age, Total: longer * bounds.Total, OfSubject: longer * bounds.OfSubject}
	gone := map[string]bool{}
	for _, record := range slices.Concat(found.expired, found.crowded) {
		gone[record.Name] = true
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(record metav1.PartialObjectMetadata) bool { return gone[record.Name] })
	last := prune(rest, bounds, lives, func(string) bool { return false }, now)
	for _, record := range slices.Concat(last.expired, last.crowded) {
		if waits(record.Name) {
			found.dropped = append(found.dropped, record)
		} else {
			found.expired = append(found.expired, record)
		}
	}
	if found.next.IsZero() || !last.next.IsZero() && last.next.Before(found.next) {
		found.next = last.next
	}
	return found
}

// prune returns which records are to be deleted that wait for nothing, and have none before them in their chain that does.
func prune(all []metav1.PartialObjectMetadata, bounds Bounds, lives, waits func(string) bool, now time.Time) pruned {
	chains := map[string][]metav1.PartialObjectMetadata{}
	for i := range all {
		subject := all[i].Labels[fleetflowv1alpha1.AuditSubjectLabel]
		chains[subject] = append(chains[subject], all[i])
	}
	found := pruned{}
	var rest []metav1.PartialObjectMetadata
	for subject, chain := range chains {
		slices.SortFunc(chain, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(sequenceOf(&a), sequenceOf(&b)) })
		if lives(subject) {
			chain = chain[:len(chain)-1]
		}
		if first := slices.IndexFunc(chain, func(record metav1.PartialObjectMetadata) bool { return waits(record.Name) }); first >= 0 {
			chain = chain[:first]
		}
		for len(chain) > 0 && !now.Before(chain[0].CreationTimestamp.Add(bounds.Age)) {
			found.expired, chain = append(found.expired, chain[0]), chain[1:]
		}
		if more := len(chain) - bounds.OfSubject; more > 0 {
			found.crowded, chain = append(found.crowded, chain[:more]...), chain[more:]
		}
		rest = append(rest, chain...)
	}
	slices.SortFunc(rest, olderFirst)
	if more := min(len(all)-len(found.expired)-len(found.crowded)-bounds.Total, len(rest)); more > 0 {
		crowded := chooseCrowded(rest, more, bounds.Total/partOfMembers)
		found.crowded = append(found.crowded, crowded...)
		gone := map[string]bool{}
		for i := range crowded {
			gone[crowded[i].Name] = true
		}
		rest = slices.DeleteFunc(rest, func(record metav1.PartialObjectMetadata) bool { return gone[record.Name] })
	}
	if len(rest) > 0 {
		found.next = rest[0].CreationTimestamp.Add(bounds.Age)
	}
	return found
}

// partOfMembers is how large a part of all records those of members may be where there are too many: an outage of a large fleet makes two of each.
const partOfMembers = 4

// chooseCrowded returns so many records, the oldest first. Those of members go before all others while there are more of them than their share.
func chooseCrowded(oldest []metav1.PartialObjectMetadata, more, share int) (crowded []metav1.PartialObjectMetadata) {
	var members, others []metav1.PartialObjectMetadata
	for _, record := range oldest {
		if record.Labels[fleetflowv1alpha1.AuditKindLabel] == memberKind.Kind {
			members = append(members, record)
		} else {
			others = append(others, record)
		}
	}
	first := max(min(more, len(members)-share), 0)
	crowded = append(crowded, members[:first]...)
	rest := slices.Concat(members[first:], others)
	slices.SortFunc(rest, olderFirst)
	return append(crowded, rest[:more-first]...)
}

func olderFirst(a, b metav1.PartialObjectMetadata) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(sequenceOf(&a), sequenceOf(&b)))
}

// Reconcile looks at all records.
func (p *pruner) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	all := metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecordList"))
	if err := p.keeper.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the records: %w", err)
	}
	living, err := p.living(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := p.keeper.Clock.Now()
	found := choosePruned(all.Items, p.keeper.Bounds, func(subject string) bool { return living[subject] }, p.keeper.waits, now)
	if err := p.tellDropped(ctx, found.dropped, now); err != nil {
		return ctrl.Result{}, err
	}
	for i, record := range slices.Concat(found.expired, found.crowded, found.dropped) {
		gone := &fleetflowv1alpha1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: record.Name}}
		if err := p.keeper.Client.Delete(ctx, gone, client.Preconditions{UID: &record.UID}); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting record %s: %w", record.Name, err)
		}
		if i >= len(found.expired)+len(found.crowded) {
			p.dropped.Inc()
		}
	}
	if n := len(found.crowded); n > 0 {
		last := found.crowded[n-1]
		last.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord"))
		p.events.Eventf(&last, nil, corev1.EventTypeWarning, "RecordsDropped", "Prune",
			"%d records were deleted before their time, as there are more than %d, or more than %d of one object: keep more of them, or take them elsewhere in time",
			n, p.keeper.Bounds.Total, p.keeper.Bounds.OfSubject)
	}
	if found.next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(found.next.Sub(now), time.Second)}, nil
}

// tellDropped puts on record that records are deleted which were to be delivered, before they are: once an hour, as that record takes the place of
// another.
func (p *pruner) tellDropped(ctx context.Context, dropped []metav1.PartialObjectMetadata, now time.Time) error {
	if len(dropped) == 0 {
		return nil
	}
	last := dropped[len(dropped)-1]
	last.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord"))
	hour := now.UTC().Format("2006-01-02t15") // stands for the subject, so that the record has one name for an hour
	message := fmt.Sprintf("At least %d records are deleted that were not delivered: there are more than %d times %d, or they were kept for %d times %s", len(dropped),
		longer, p.keeper.Bounds.Total, longer, p.keeper.Bounds.Age)
	err := p.keeper.Client.Create(ctx, newRecord(fleetflowv1alpha1.AuditRecordSpec{
		ID:   fleetflowv1alpha1.RecordID("records", fleetflowv1alpha1.RecordConfigRecordsDropped, hour),
		Type: fleetflowv1alpha1.RecordConfigRecordsDropped, Time: metav1.NewTime(now.UTC().Truncate(time.Second)), Message: message, Sequence: 1,
		SubjectRef: fleetflowv1alpha1.AuditSubjectReference{APIVersion: last.APIVersion, Kind: last.Kind, Name: last.Name, UID: "dropped-" + hour},
		Data:       map[string]fleetflowv1alpha1.AuditValue{"records": fleetflowv1alpha1.AuditValue(strconv.Itoa(len(dropped)))},
	}))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing that records are deleted which were not delivered: %w", err)
	}
	p.events.Eventf(&last, nil, corev1.EventTypeWarning, "RecordsNotDelivered", "Prune", "%s", message)
	return nil
}

// living returns the UIDs of the objects that there are of the kinds of which there are records.
func (p *pruner) living(ctx context.Context) (map[string]bool, error) {
	var lists []client.ObjectList
	for _, scope := range placementv1beta1.Scopes() {
		lists = append(lists, scope.NewUpdateRunList())
	}
	for _, of := range recordedKinds() {
		lists = append(lists, of.list())
	}
	all := map[string]bool{}
	for _, list := range lists {
		living, err := p.keeper.living(ctx, list)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, living)
	}
	return all, nil
}
