package hollow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// seen is what was answered last about a Work, and how.
type seen struct {
	uid        types.UID
	generation int64
	fails      bool
	waits      bool
}

// workChanged notes that a Work may have to be answered.
func (f *Fleet) workChanged(object client.Object) {
	member, ours := clusterv1beta1.MemberOfNamespace(object.GetNamespace())
	if !ours {
		return
	}
	behaviour := f.behaviour(member)
	f.mu.Lock()
	last, known := f.answered[client.ObjectKeyFromObject(object)]
	f.mu.Unlock()
	if !known { // an earlier process may have answered it
		last = said(object)
	}
	if last == of(object, behaviour) && object.GetDeletionTimestamp().IsZero() {
		return
	}
	f.works.AddAfter(client.ObjectKeyFromObject(object), behaviour.Latency)
}

func of(work client.Object, b Behaviour) seen {
	return seen{uid: work.GetUID(), generation: work.GetGeneration(), fails: b.Fails, waits: b.Unavailable && !b.Fails}
}

// said returns what the status of a Work says was answered.
func said(object client.Object) seen {
	work, ok := object.(*placementv1beta1.Work)
	if !ok {
		return seen{}
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionTypeApplied)
	available := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
	if applied == nil || available == nil {
		return seen{}
	}
	fails := applied.Status != metav1.ConditionTrue
	return seen{uid: work.UID, generation: applied.ObservedGeneration, fails: fails, waits: !fails && available.Status != metav1.ConditionTrue}
}

// answer reports on a Work, once for each generation of it and each way to behave.
func (f *Fleet) answer(ctx context.Context, key client.ObjectKey) error {
	member, _ := clusterv1beta1.MemberOfNamespace(key.Namespace)
	behaviour := f.behaviour(member)
	work := &placementv1beta1.Work{}
	err := f.cache.Get(ctx, key, work)
	if apierrors.IsNotFound(err) {
		f.mu.Lock()
		delete(f.answered, key)
		f.mu.Unlock()
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Work %s: %w", key, err)
	}
	now := of(work, behaviour)
	f.mu.Lock()
	done := f.answered[key] == now && work.DeletionTimestamp.IsZero()
	f.mu.Unlock()
	if done || behaviour.Vanished {
		return nil
	}
	if !work.DeletionTimestamp.IsZero() {
		return f.release(ctx, work)
	}
	if err := f.store(ctx, work, statusOf(work, behaviour, metav1.NewTime(time.Now().Add(behaviour.Clock)))); err != nil {
		return err
	}
	f.mu.Lock()
	f.answered[key] = now
	f.mu.Unlock()
	return nil
}

// release lets a Work go: what it has placed is gone, as there was nothing.
func (f *Fleet) release(ctx context.Context, work *placementv1beta1.Work) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	err := f.client.Patch(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}, patch)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// store replaces the status of a Work.
func (f *Fleet) store(ctx context.Context, work *placementv1beta1.Work, status placementv1beta1.WorkStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": work.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of Work %s: %w", work.Name, err)
	}
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err = f.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one
	}
	if err != nil {
		return fmt.Errorf("writing the status of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// statusOf returns what a member says of a Work.
func statusOf(work *placementv1beta1.Work, b Behaviour, now metav1.Time) placementv1beta1.WorkStatus {
	applied := metav1.ConditionTrue
	available := metav1.ConditionTrue
	if b.Fails {
		applied = metav1.ConditionFalse
	}
	if b.Fails || b.Unavailable {
		available = metav1.ConditionFalse
	}
	status := placementv1beta1.WorkStatus{Conditions: []metav1.Condition{
		condition(placementv1beta1.ConditionTypeApplied, applied, work.Generation, now),
		condition(placementv1beta1.ConditionTypeAvailable, available, work.Generation, now),
	}}
	for i, manifest := range work.Spec.Workload.Manifests {
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: identify(i, manifest.Raw),
			Conditions: []metav1.Condition{
				condition(placementv1beta1.ConditionTypeApplied, applied, 1, now),
				condition(placementv1beta1.ConditionTypeAvailable, available, 1, now),
			},
		})
	}
	return status
}

// reasons of the conditions, as the member agent gives them; the first if they are true.
var reasons = map[string][2]string{
	placementv1beta1.ConditionTypeApplied: {placementv1beta1.ReasonAllManifestsApplied, placementv1beta1.ReasonSomeManifestsAreNotApplied},
	placementv1beta1.ConditionTypeAvailable: {placementv1beta1.ReasonAllManifestsAvailable,
		placementv1beta1.ReasonSomeManifestsAreNotAvailable},
}

func condition(kind string, status metav1.ConditionStatus, generation int64, now metav1.Time) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: status, Reason: reasons[kind][0], ObservedGeneration: generation, LastTransitionTime: now,
		Message: "A hollow member says so",
	}
	if status != metav1.ConditionTrue {
		c.Reason = reasons[kind][1]
	}
	return c
}

// identify names a manifest. One that cannot be read has its place only.
func identify(ordinal int, manifest []byte) placementv1beta1.WorkResourceIdentifier {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest, &object); err != nil {
		return placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal}
	}
	kind := object.GroupVersionKind()
	return placementv1beta1.WorkResourceIdentifier{
		Ordinal: ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name,
	}
}
