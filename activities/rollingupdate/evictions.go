package rollingupdate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// WaitingEvictions lists the evictions from a placement that have no outcome, in the
// order in which they were created. Only cluster-scoped placements have evictions.
func WaitingEvictions(ctx context.Context, reader client.Reader, scope placementv1beta1.Scope,
	placement string) ([]placementv1beta1.ClusterResourcePlacementEviction, error) {
	var all placementv1beta1.ClusterResourcePlacementEvictionList
	if err := reader.List(ctx, &all, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the evictions from placement %s: %w", placement, err)
	}
	var waiting []placementv1beta1.ClusterResourcePlacementEviction
	for i := range all.Items {
		if e := &all.Items[i]; e.Spec.PlacementName == placement && !e.Ended() && e.DeletionTimestamp.IsZero() {
			waiting = append(waiting, *e)
		}
	}
	slices.SortFunc(waiting, func(a, b placementv1beta1.ClusterResourcePlacementEviction) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return waiting, nil
}

// readEvictionPolicy reads, live, what evictions from a placement are judged by.
func readEvictionPolicy(ctx context.Context, live client.Reader,
	placement placementv1beta1.PlacementObject) (rollout.EvictionPolicy, error) {
	out := rollout.EvictionPolicy{Type: string(placementv1beta1.PickAllPlacementType)}
	if p := placement.GetPlacementSpec().Policy; p != nil {
		if p.PlacementType != "" {
			out.Type = string(p.PlacementType)
		}
		if p.NumberOfClusters != nil && p.PlacementType == placementv1beta1.PickNPlacementType {
			out.Clusters = int(*p.NumberOfClusters)
		}
	}
	budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: placement.GetName()}}
	budget, err := hubread.Existing(ctx, live, budget, "the disruption budget of placement")
	if err != nil || budget == nil {
		return out, err
	}
	out.Budget = &rollout.Budget{}
	if v := budget.Spec.MaxUnavailable; v != nil {
		out.Budget.MaxUnavailable = v.String()
	}
	if v := budget.Spec.MinAvailable; v != nil {
		out.Budget.MinAvailable = v.String()
	}
	return out, nil
}

// isExpendable reports whether evicting costs nothing: what should be on the cluster could
// not be worked out or written, or is only compared.
func isExpendable(b placementv1beta1.BindingObject) bool {
	if reportsOnly(b.GetBindingSpec().ApplyStrategy) {
		return true
	}
	for _, step := range []string{placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized} {
		c := meta.FindStatusCondition(b.GetBindingStatus().Conditions, step)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == b.GetGeneration() {
			return true
		}
	}
	return false
}

// reportsOnly reports whether nothing is applied, and differences are only reported.
func reportsOnly(s *placementv1beta1.ApplyStrategy) bool {
	return s != nil && s.Type == placementv1beta1.ApplyStrategyTypeReportDiff
}

// writeOutcome writes the outcome of an eviction and emits an event. It returns nil if
// another writer was faster: then the eviction is decided again.
func (a *Activities) writeOutcome(ctx context.Context, name, uid string,
	verdict rollout.Verdict) (*placementv1beta1.ClusterResourcePlacementEviction, error) {
	e, err := hubread.Existing(ctx, a.Live, &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: name}},
		"eviction")
	if err != nil || e == nil {
		return nil, err
	}
	if string(e.UID) != uid || e.Ended() {
		return e, nil
	}
	status := placementv1beta1.PlacementEvictionStatus{Conditions: outcomeConditions(verdict, e.Generation, metav1.NewTime(a.Clock.Now()))}
	patch, err := fence.Patch(e.UID, fence.Test("/metadata/resourceVersion", e.ResourceVersion), fence.Add("/status", status))
	if err != nil {
		return nil, err
	}
	err = a.Client.Status().Patch(ctx, e, patch)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing the outcome of eviction %s: %w", name, err)
	}
	a.emitOutcome(e, verdict)
	return e, nil
}

// outcomeConditions say how an eviction was decided.
func outcomeConditions(verdict rollout.Verdict, generation int64, now metav1.Time) []metav1.Condition {
	condition := func(kind string, status bool, yes, no, message string) metav1.Condition {
		c := metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: yes, Message: message, ObservedGeneration: generation, LastTransitionTime: now,
		}
		if !status {
			c.Status = metav1.ConditionFalse
			c.Reason = no
		}
		return c
	}
	if !verdict.Valid() {
		return []metav1.Condition{
			condition(placementv1beta1.ConditionTypeValid, false, "", placementv1beta1.ReasonEvictionInvalid, verdict.Message()),
		}
	}
	return []metav1.Condition{
		condition(placementv1beta1.ConditionTypeValid, true, placementv1beta1.ReasonEvictionValid, "", rollout.ValidMessage),
		condition(placementv1beta1.ConditionTypeExecuted, verdict.Executed(), placementv1beta1.ReasonEvictionExecuted,
			placementv1beta1.ReasonEvictionNotExecuted, verdict.Message()),
	}
}

// emitOutcome emits an event on the eviction.
func (a *Activities) emitOutcome(e *placementv1beta1.ClusterResourcePlacementEviction, verdict rollout.Verdict) {
	if a.Events == nil {
		return
	}
	kind := "Normal"
	reason := placementv1beta1.ReasonEvictionExecuted
	switch {
	case !verdict.Valid():
		kind = "Warning"
		reason = placementv1beta1.ReasonEvictionInvalid
	case !verdict.Executed():
		kind = "Warning"
		reason = placementv1beta1.ReasonEvictionNotExecuted
	}
	a.Events.Eventf(e, nil, kind, reason, "Evict", "Placement %s, cluster %s: %s", e.Spec.PlacementName, e.Spec.ClusterName, verdict.Message())
}

// RefuseEvictions concludes the evictions from a placement that is not there, or going.
// One that was about to be executed is: with the placement, its resources go.
func (a *Activities) RefuseEvictions(ctx context.Context, ref wf.Ref) (bool, error) {
	scope := placementv1beta1.Scope{Namespace: ref.Namespace}
	placement, err := hubread.Placement(ctx, a.Live, scope, ref.Name)
	if err != nil || placement != nil && placement.GetDeletionTimestamp().IsZero() {
		return false, err
	}
	waiting, err := WaitingEvictions(ctx, a.Client, scope, ref.Name)
	if err != nil {
		return false, err
	}
	for i := range waiting {
		e := &waiting[i]
		verdict := rollout.Verdict{Code: rollout.PlacementMissing}
		if placement != nil {
			verdict.Code = rollout.PlacementDeleting
			if started, ok := claimOn(placement).startedEviction(e); ok {
				verdict = started.Verdict
			}
		}
		if _, err := a.writeOutcome(ctx, e.Name, string(e.UID), verdict); err != nil {
			return false, err
		}
	}
	return true, nil
}
