package resourcewatch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// reportInterval is the least time between two writes of the status of PropagatedTypes: while many placements are made,
// each of them changes the number of placements.
const reportInterval = 500 * time.Millisecond

// typeReporter watches PropagatedTypes and reports on them.
type typeReporter struct {
	watcher *Watcher
	// watches says that they are watched, reported when their status was written last.
	watches  bool
	reported time.Time
}

// watchTypes has the catalog read again whenever a PropagatedType changes, once the hub serves them.
func (r *typeReporter) watchTypes(ctx context.Context) error {
	w := r.watcher
	if r.watches || !w.catalog.Serves(fleetflowv1alpha1.PropagatedTypes) {
		return nil
	}
	informer, err := w.Cache.GetInformer(ctx, &fleetflowv1alpha1.PropagatedType{})
	if err != nil {
		return fmt.Errorf("watching PropagatedTypes: %w", err)
	}
	changed := func(any) { w.requests.addCatalog() }
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		DeleteFunc: changed,
		UpdateFunc: func(before, after any) {
			old, _ := before.(*fleetflowv1alpha1.PropagatedType)
			updated, ok := after.(*fleetflowv1alpha1.PropagatedType)
			if ok && (old.UID != updated.UID || old.Generation != updated.Generation) {
				w.requests.addCatalog()
			}
		},
	}); err != nil {
		return fmt.Errorf("watching PropagatedTypes: %w", err)
	}
	r.watches = true
	return nil
}

// reportTypes writes into the PropagatedTypes what the hub makes of them. What is not to be written yet is to be looked at
// again later.
func (r *typeReporter) reportTypes(ctx context.Context) (later time.Duration, failed error) {
	w := r.watcher
	if !r.watches {
		return 0, nil
	}
	types := &fleetflowv1alpha1.PropagatedTypeList{}
	if err := w.Placements.List(ctx, types); err != nil {
		return 0, fmt.Errorf("listing PropagatedTypes: %w", err)
	}
	now := w.Clock.Now()
	wrote := false
	for i := range types.Items {
		propagated := &types.Items[i]
		if w.catalog.Holds(propagated.Name) != propagated.IsDisabled() {
			continue // the catalog is of before or after: another request is on its way
		}
		status := describeType(w.catalog, propagated, w.countConcerned(propagated.Name), metav1.NewTime(now))
		if reflect.DeepEqual(status, propagated.Status) {
			continue
		}
		told := meta.FindStatusCondition(propagated.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
		tell := meta.FindStatusCondition(status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted)
		isNews := told == nil || told.Reason != tell.Reason
		if wait := r.reported.Add(reportInterval).Sub(now); wait > 0 && !isNews {
			later = wait
			continue
		}
		if err := fence.ReplaceStatus(ctx, w.Reports, propagated, status); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		wrote = true
		if isNews {
			w.Events.Eventf(propagated, nil, severityOf(tell), tell.Reason, "Observe", "%s", tell.Message)
		}
	}
	if wrote {
		r.reported = now
	}
	return later, failed
}

// severityOf returns the type of an event about a condition.
func severityOf(observed *metav1.Condition) string {
	if observed.Status == metav1.ConditionTrue {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// countConcerned counts the placements whose selectors can select objects of a kind.
func (w *Watcher) countConcerned(name string) int {
	kind, served := w.catalog.ServedAs(name)
	if !served {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	concerned := 0
	for _, placement := range w.placements {
		if placement.kinds[kind.GroupKind()] || placement.selection != nil && placement.selection.CanHold(name) {
			concerned++
		}
	}
	return concerned
}

// describeType returns what the hub makes of a PropagatedType.
func describeType(catalog *snapshot.Catalog, propagated *fleetflowv1alpha1.PropagatedType, placements int,
	now metav1.Time) fleetflowv1alpha1.PropagatedTypeStatus {
	status := fleetflowv1alpha1.PropagatedTypeStatus{Placements: int32(min(placements, 1<<30))}
	observed := metav1.Condition{
		Type: fleetflowv1alpha1.ConditionTypeAccepted, Status: metav1.ConditionTrue, ObservedGeneration: propagated.Generation,
		LastTransitionTime: now,
		Reason:             fleetflowv1alpha1.ReasonPropagationEnabled,
		Message:            fmt.Sprintf("What changes of %s on the hub reaches members", propagated.Name),
	}
	kind, served := catalog.ServedAs(propagated.Name)
	switch {
	case !served:
		observed.Status = metav1.ConditionFalse
		observed.Reason = fleetflowv1alpha1.ReasonKindNotServed
		observed.Message = fmt.Sprintf("The hub serves no kind of the name %s, which is to be <plural>.<group>, or <plural> in the core group",
			propagated.Name)
		if similar := catalog.SimilarTo(propagated.Name); similar != "" {
			observed.Message += fmt.Sprintf("; if you mean %s, create a PropagatedType of that name and delete this one", similar)
		}
	case !kind.Placeable:
		observed.Status = metav1.ConditionFalse
		observed.Reason = fleetflowv1alpha1.ReasonKindNotPlaced
		observed.Message = fmt.Sprintf("Objects of the kind %s are never placed: delete this PropagatedType", kind)
	case propagated.IsDisabled():
		observed.Reason = fleetflowv1alpha1.ReasonPropagationDisabled
		observed.Message = fmt.Sprintf("No change, addition or removal of %s reaches members; placements keep what their latest resource snapshot has of them", propagated.Name)
	}
	status.Conditions = []metav1.Condition{observed}
	if before := meta.FindStatusCondition(propagated.Status.Conditions, observed.Type); before != nil && before.Status == observed.Status {
		status.Conditions[0].LastTransitionTime = before.LastTransitionTime
	}
	return status
}
