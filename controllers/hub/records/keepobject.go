package records

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// recorded is a kind of objects of which there are records, other than runs.
type recorded struct {
	kind schema.GroupVersionKind
	new  func() client.Object
	list func() client.ObjectList
	tell func(s *state, o client.Object)
	// gone is what it is recorded as that an object is not there any more; empty if it is not, as where ended says that there is a record of
	// its end.
	gone  fleetflowv1alpha1.AuditRecordType
	ended []fleetflowv1alpha1.AuditRecordType
	// again is with what an object goes on after such an end.
	again fleetflowv1alpha1.AuditRecordType
}

// recordedKinds returns the kinds of objects of which there are records, other than runs.
func recordedKinds() []recorded {
	kinds := []recorded{{
		kind: fleetflowv1alpha1.GroupVersion.WithKind("RolloutHold"),
		new:  func() client.Object { return &fleetflowv1alpha1.RolloutHold{} },
		list: func() client.ObjectList { return &fleetflowv1alpha1.RolloutHoldList{} },
		tell: (*state).ofHold, gone: fleetflowv1alpha1.RecordHoldLifted, ended: []fleetflowv1alpha1.AuditRecordType{fleetflowv1alpha1.RecordHoldExpired},
		again: fleetflowv1alpha1.RecordHoldSet,
	}, evictions(), {
		kind: memberKind,
		new:  func() client.Object { return &clusterv1beta1.MemberCluster{} },
		list: func() client.ObjectList { return &clusterv1beta1.MemberClusterList{} },
		tell: (*state).ofMember, gone: fleetflowv1alpha1.RecordMemberLeft, ended: []fleetflowv1alpha1.AuditRecordType{fleetflowv1alpha1.RecordMemberForceRemoved},
	}}
	for _, scope := range placementv1beta1.Scopes() {
		kinds = append(kinds, recorded{
			kind: scope.PlacementKind(),
			new:  func() client.Object { return scope.NewPlacement("") },
			list: func() client.ObjectList { return scope.NewPlacementList() },
			tell: (*state).ofPlacement, gone: fleetflowv1alpha1.RecordPlacementDeleted,
		}, recorded{
			kind: scope.OverrideKind(),
			new:  func() client.Object { return scope.NewOverride("") },
			list: func() client.ObjectList { return scope.NewOverrideList() },
			tell: (*state).ofOverride, gone: fleetflowv1alpha1.RecordOverrideChanged,
		})
	}
	return kinds
}

// memberKind is the kind of members.
var memberKind = clusterv1beta1.GroupVersion.WithKind("MemberCluster")

// evictions is how there are records of evictions.
func evictions() recorded {
	return recorded{
		kind: placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacementEviction"),
		new:  func() client.Object { return &placementv1beta1.ClusterResourcePlacementEviction{} },
		list: func() client.ObjectList { return &placementv1beta1.ClusterResourcePlacementEvictionList{} },
		tell: (*state).ofEviction,
	}
}

// EvictionEnds returns what has to be done before an eviction is deleted after its time; nil if no records are written. Once it is gone, nothing
// tells any more what has come of it.
func (k *Keeper) EvictionEnds() func(ctx context.Context, eviction *placementv1beta1.ClusterResourcePlacementEviction) error {
	if k == nil {
		return nil
	}
	return func(ctx context.Context, eviction *placementv1beta1.ClusterResourcePlacementEviction) error {
		err := k.keepObject(ctx, evictions(), eviction)
		if apierrors.IsInvalid(err) {
			log.FromContext(ctx).Error(err, "Letting an eviction go without the records that the API server refuses", "object", eviction.Name)
			return nil
		}
		return err
	}
}

// keepObject writes the records of an object that are missing. An object changes more often than there is something to record: what was
// looked at before is not again.
func (k *Keeper) keepObject(ctx context.Context, of recorded, object client.Object) error {
	uid := object.GetUID()
	k.subjects.LockKey(string(uid))
	defer func() { _ = k.subjects.UnlockKey(string(uid)) }() // no mutex of this kind fails
	signature := k.signatureOf(of, object)
	if told, is := k.told.Load(uid); is && told == signature {
		return nil
	}
	seen, err := k.glance(ctx, uid)
	if err != nil {
		return err
	}
	if !seen.has(k.due(k.tell(of, object, seen, nil))) {
		err := k.append(ctx, uid, func(records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec {
			return k.tell(of, object, glanceAt(records), records)
		})
		if err != nil {
			return err
		}
	}
	k.told.Store(uid, signature)
	return nil
}

// glanceAt returns what is to be seen of records at a glance.
func glanceAt(records []fleetflowv1alpha1.AuditRecord) glance {
	seen := glance{}
	for i := range records {
		seen.see(&records[i])
	}
	return seen
}

// tell returns what there has to be a record of.
func (k *Keeper) tell(of recorded, object client.Object, seen glance, records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec {
	now := k.Clock.Now()
	s := &state{teller: teller{subject: referenceTo(object, of.kind), records: records, now: now}, seen: seen, oldest: now.Add(-k.Bounds.Age)}
	of.tell(s, object)
	return s.inOrder()
}

// signatureOf returns what tells an object from the same at a time when there was something else to record.
func (k *Keeper) signatureOf(of recorded, object client.Object) string {
	var ids []string
	for _, seen := range []glance{{}, {last: map[fleetflowv1alpha1.AuditRecordType]int64{fleetflowv1alpha1.RecordMemberLost: 1}}} {
		for _, spec := range k.tell(of, object, seen, nil) {
			ids = append(ids, spec.ID)
		}
	}
	return fleetflowv1alpha1.RecordID(string(object.GetUID()), "", ids...)
}

// isOver reports whether, by what is seen of the records of an object, its end is recorded.
func (of recorded) isOver(subject string, seen glance) bool {
	return seen.hasFact(fleetflowv1alpha1.RecordID(subject, of.gone, changeDeleted)) ||
		slices.ContainsFunc(of.ended, func(end fleetflowv1alpha1.AuditRecordType) bool { return seen.last[end] > seen.last[of.again] })
}

// keepGone writes that objects are gone of which there are records, and no record of that.
func (k *Keeper) keepGone(ctx context.Context, of recorded) error {
	if of.gone == "" {
		return nil
	}
	all := metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecordList"))
	if err := k.Client.List(ctx, &all, client.MatchingFields{byKind: of.kind.Kind}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the records of objects of kind %s: %w", of.kind.Kind, err)
	}
	living, err := k.living(ctx, of.list())
	if err != nil {
		return err
	}
	seen := map[string]*glance{}
	for i := range all.Items {
		subject := all.Items[i].Labels[fleetflowv1alpha1.AuditSubjectLabel]
		if living[subject] {
			continue
		}
		if seen[subject] == nil {
			seen[subject] = &glance{}
		}
		seen[subject].see(&all.Items[i])
	}
	var failed []error
	for subject, g := range seen {
		if of.isOver(subject, *g) {
			k.whys.Delete(subject)
			continue
		}
		failed = append(failed, k.end(ctx, of, subject))
	}
	return errors.Join(failed...)
}

// living returns the UIDs of the objects that there are, by the cache.
func (k *Keeper) living(ctx context.Context, list client.ObjectList) (map[string]bool, error) {
	if err := k.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the objects that there are: %w", err)
	}
	living := map[string]bool{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		item, err := meta.Accessor(o)
		if err == nil {
			living[string(item.GetUID())] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking at the objects that there are: %w", err)
	}
	return living, nil
}

// end writes that an object is gone, if it is: the cache may not have it yet.
func (k *Keeper) end(ctx context.Context, of recorded, subject string) error {
	k.subjects.LockKey(subject)
	defer func() { _ = k.subjects.UnlockKey(subject) }() // no mutex of this kind fails
	records, err := k.chain(ctx, types.UID(subject))
	if err != nil || len(records) == 0 {
		return err
	}
	last := records[len(records)-1].Spec
	object := of.new()
	err = k.Live.Get(ctx, types.NamespacedName{Namespace: last.SubjectRef.Namespace, Name: last.SubjectRef.Name}, object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("asking whether %s %s is gone: %w", of.kind.Kind, last.SubjectRef.Name, err)
	}
	if err == nil && string(object.GetUID()) == subject {
		return nil
	}
	now := k.Clock.Now()
	err = k.append(ctx, types.UID(subject), func(records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec {
		if of.isOver(subject, glanceAt(records)) {
			return nil
		}
		s := &state{teller: teller{subject: last.SubjectRef, placement: last.PlacementName, records: records, now: now}}
		why, _ := k.whys.Load(subject)
		comment, _ := why.(string)
		s.gone(of.gone, now, comment, map[string]string{changeKey: changeDeleted})
		return s.inOrder()
	})
	if err == nil {
		k.whys.Delete(subject)
	}
	return err
}

// forget forgets what was looked at of an object that is gone. Why a user has deleted it stands on the object, and goes with it: it is kept until
// that is recorded.
func (k *Keeper) forget(of recorded, object client.Object) {
	k.told.Delete(object.GetUID())
	if why := object.GetAnnotations()[placementv1beta1.ReasonAnnotation]; why != "" && of.gone != "" {
		k.whys.Store(string(object.GetUID()), why)
	}
}

// MemberLeaves returns what has to be done before a member that leaves is gone, and before it is let go without something that it was to do; nil
// if no records are written.
func (k *Keeper) MemberLeaves() func(ctx context.Context, member *clusterv1beta1.MemberCluster, without string) error {
	if k == nil {
		return nil
	}
	return func(ctx context.Context, member *clusterv1beta1.MemberCluster, without string) error {
		subject := referenceTo(member, memberKind)
		k.subjects.LockKey(subject.UID)
		defer func() { _ = k.subjects.UnlockKey(subject.UID) }() // no mutex of this kind fails
		now := k.Clock.Now()
		err := k.append(ctx, member.UID, func(records []fleetflowv1alpha1.AuditRecord) []fleetflowv1alpha1.AuditRecordSpec {
			s := &state{teller: teller{subject: subject, records: records, now: now}}
			switch {
			case without != "":
				s.add(fact{
					kind: fleetflowv1alpha1.RecordMemberForceRemoved, which: []string{changeDeleted}, at: now, by: unknown(),
					message: "The member agent did not answer in time; it was removed without waiting for " + without,
				})
			case glanceAt(records).types[fleetflowv1alpha1.RecordMemberForceRemoved] == 0:
				s.gone(fleetflowv1alpha1.RecordMemberLeft, now, "", nil)
			}
			return s.inOrder()
		})
		if apierrors.IsInvalid(err) {
			log.FromContext(ctx).Error(err, "Letting a member go without the records that the API server refuses", "cluster", member.Name)
			return nil // it would keep the member for good
		}
		return err
	}
}
