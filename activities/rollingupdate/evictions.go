package rollingupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bindingwrite"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/liveread"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// WaitingEvictions lists the evictions from a placement that have no outcome, in the
// order in which they were created.
func WaitingEvictions(ctx context.Context, reader client.Reader, placement string) ([]placementv1beta1.ClusterResourcePlacementEviction, error) {
	var all placementv1beta1.ClusterResourcePlacementEvictionList
	if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
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

// maxEvictions bounds how many evictions one batch decides.
const maxEvictions = 200

// askedFor adds to the facts which evictions wait, and what bounds them.
func (a *advanceCall) askedFor(ctx context.Context, f *rolloutFacts) error {
	waiting, err := WaitingEvictions(ctx, a.Client, a.placement.Name)
	if err != nil {
		return err
	}
	begun := a.claim.Evictions
	for i := range waiting {
		e := &waiting[i]
		if a.concluded[e.UID] || len(f.Evictions) == maxEvictions {
			continue
		}
		asked := rollout.Eviction{Name: e.Name, Cluster: e.Spec.ClusterName}
		if was, ok := begun[e.Name]; ok && was.UID == string(e.UID) {
			asked.Begun, asked.Gone = &was.Verdict, !f.there[was.Binding]
		}
		f.Evictions = append(f.Evictions, asked)
		f.evictionUIDs[e.Name] = string(e.UID)
	}
	if len(f.Evictions) == 0 {
		return nil
	}
	f.Policy, err = a.evictionPolicy(ctx)
	return err
}

// evictionPolicy reads, live, what evictions from the placement are judged by.
func (a *advanceCall) evictionPolicy(ctx context.Context) (rollout.EvictionPolicy, error) {
	out := rollout.EvictionPolicy{Type: string(placementv1beta1.PickAllPlacementType)}
	if p := a.placement.Spec.Policy; p != nil {
		if p.PlacementType != "" {
			out.Type = string(p.PlacementType)
		}
		if p.NumberOfClusters != nil && p.PlacementType == placementv1beta1.PickNPlacementType {
			out.Clusters = int(*p.NumberOfClusters)
		}
	}
	budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{}
	err := a.Live.Get(ctx, client.ObjectKey{Name: a.placement.Name}, budget)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("reading the disruption budget of placement %s: %w", a.placement.Name, err)
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

// expendable says whether evicting costs nothing: what should be on the cluster could not
// be worked out or written, or is only compared.
func expendable(b *placementv1beta1.ClusterResourceBinding) bool {
	if reportsOnly(b.Spec.ApplyStrategy) {
		return true
	}
	for _, step := range []string{placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized} {
		c := meta.FindStatusCondition(b.Status.Conditions, step)
		if c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == b.Generation {
			return true
		}
	}
	return false
}

// reportsOnly says whether nothing is applied, and differences are only reported.
func reportsOnly(s *placementv1beta1.ApplyStrategy) bool {
	return s != nil && s.Type == placementv1beta1.ApplyStrategyTypeReportDiff
}

// evictionChange is what the history keeps of a decided eviction.
func (f *rolloutFacts) evictionChange(step rollout.EvictionStep) act.Change {
	c := act.Change{Cluster: step.Cluster}
	if step.Op == rollout.Evict {
		c = f.pins[step.Cluster]
	}
	c.Op, c.Eviction, c.EvictionUID = string(step.Op), step.Eviction, f.evictionUIDs[step.Eviction]
	c.Verdict = &act.Verdict{Code: string(step.Verdict.Code), Available: step.Verdict.Available, Total: step.Verdict.Total}
	return c
}

func verdictOf(change act.Change) rollout.Verdict {
	if change.Verdict == nil {
		return rollout.Verdict{}
	}
	return rollout.Verdict{Code: rollout.Code(change.Verdict.Code), Available: change.Verdict.Available, Total: change.Verdict.Total}
}

// writeEviction does what was decided about an eviction, if it would be decided like that
// again now. First the binding goes, then the outcome is written: an attempt that dies
// between the two has left the claim, by which the next one knows that the eviction was
// executed.
// It says whether the eviction is over.
func (a *advanceCall) writeEviction(ctx context.Context, change act.Change, now rollout.EvictionStep) (bool, error) {
	if now.Op == rollout.Conclude {
		if change.Op == act.OpConclude || now.Verdict.Executed() {
			return true, a.conclude(ctx, change, now.Verdict)
		}
		return false, nil
	}
	if change.Op != act.OpEvict {
		return false, nil
	}
	binding, err := a.liveBinding(ctx, change.Binding)
	if err != nil || binding == nil || string(binding.UID) != change.UID || !a.claim.pends(binding) {
		return false, err
	}
	err = bindingwrite.Remove(ctx, a.Client, binding)
	if errors.Is(err, bindingwrite.ErrFenced) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, a.conclude(ctx, change, now.Verdict)
}

// conclude writes the outcome of an eviction that has none.
func (a *advanceCall) conclude(ctx context.Context, change act.Change, verdict rollout.Verdict) error {
	a.mu.Lock()
	if verdict.Executed() {
		a.evicted = true
	}
	a.mu.Unlock()
	e, err := a.outcome(ctx, change.Eviction, change.EvictionUID, verdict)
	if err != nil || e == nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.concluded[e.UID] = true
	return nil
}

// outcome writes the outcome of an eviction and tells of it. It returns nil if another
// writer was faster: then the eviction is looked at again.
func (r *Activities) outcome(ctx context.Context, name, uid string, verdict rollout.Verdict) (*placementv1beta1.ClusterResourcePlacementEviction, error) {
	e := &placementv1beta1.ClusterResourcePlacementEviction{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, e)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading eviction %s: %w", name, err)
	}
	if string(e.UID) != uid || e.Ended() {
		return e, nil
	}
	status := placementv1beta1.PlacementEvictionStatus{Conditions: outcomeConditions(verdict, e.Generation, metav1.NewTime(r.Clock.Now()))}
	patch, err := fence.Patch(e.UID, fence.Test("/metadata/resourceVersion", e.ResourceVersion), fence.Add("/status", status))
	if err != nil {
		return nil, err
	}
	err = r.Client.Status().Patch(ctx, e, patch)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing the outcome of eviction %s: %w", name, err)
	}
	r.tellOutcome(e, verdict)
	return e, nil
}

// outcomeConditions say how an eviction was decided.
func outcomeConditions(verdict rollout.Verdict, generation int64, now metav1.Time) []metav1.Condition {
	condition := func(kind string, status bool, yes, no, message string) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: yes, Message: message, ObservedGeneration: generation, LastTransitionTime: now}
		if !status {
			c.Status, c.Reason = metav1.ConditionFalse, no
		}
		return c
	}
	if !verdict.Valid() {
		return []metav1.Condition{condition(placementv1beta1.ConditionTypeValid, false, "", placementv1beta1.ReasonEvictionInvalid, verdict.Message())}
	}
	return []metav1.Condition{
		condition(placementv1beta1.ConditionTypeValid, true, placementv1beta1.ReasonEvictionValid, "", rollout.ValidMessage),
		condition(placementv1beta1.ConditionTypeExecuted, verdict.Executed(), placementv1beta1.ReasonEvictionExecuted,
			placementv1beta1.ReasonEvictionNotExecuted, verdict.Message()),
	}
}

// tellOutcome emits an event on the eviction.
func (r *Activities) tellOutcome(e *placementv1beta1.ClusterResourcePlacementEviction, verdict rollout.Verdict) {
	if r.Events == nil {
		return
	}
	kind, reason := "Normal", placementv1beta1.ReasonEvictionExecuted
	switch {
	case !verdict.Valid():
		kind, reason = "Warning", placementv1beta1.ReasonEvictionInvalid
	case !verdict.Executed():
		kind, reason = "Warning", placementv1beta1.ReasonEvictionNotExecuted
	}
	r.Events.Eventf(e, nil, kind, reason, "Evict", "Placement %s, cluster %s: %s", e.Spec.PlacementName, e.Spec.ClusterName, verdict.Message())
}

// RefuseEvictions concludes the evictions from a placement that is not there, or going.
// One that was about to be executed is: with the placement, its resources go.
func (r *Activities) RefuseEvictions(ctx context.Context, ref wf.Ref) (bool, error) {
	placement, err := liveread.Placement(ctx, r.Live, ref.Name)
	if err != nil || placement != nil && placement.DeletionTimestamp.IsZero() {
		return false, err
	}
	waiting, err := WaitingEvictions(ctx, r.Client, ref.Name)
	if err != nil {
		return false, err
	}
	for i := range waiting {
		e := &waiting[i]
		verdict := rollout.Verdict{Code: rollout.PlacementMissing}
		if placement != nil {
			verdict.Code = rollout.PlacementDeleting
			if was, ok := claimOn(placement).Evictions[e.Name]; ok && was.UID == string(e.UID) {
				verdict = was.Verdict
			}
		}
		if _, err := r.outcome(ctx, e.Name, string(e.UID), verdict); err != nil {
			return false, err
		}
	}
	return true, nil
}
