package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/attempt"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/selection"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// maxClusterReads bounds the requests for single clusters under way at the same time.
const maxClusterReads = 16

// ScheduleClusters makes the bindings of a placement follow its policy: new ones
// for clusters that were picked, Unscheduled for those no longer picked. What is
// rolled out to them, and when, is not decided here.
func (a *Activities) ScheduleClusters(ctx context.Context, ref wf.Ref) (wf.ScheduleResult, error) {
	// The time is taken before anything is read, so that a slow read makes no cluster look
	// as if it had stopped to send heartbeats.
	now := a.Clock.Now()
	placement, err := hubread.CurrentPlacement(ctx, a.Live, ref)
	if err != nil {
		return wf.ScheduleResult{}, err
	}
	if placement == nil {
		return wf.ScheduleResult{Gone: true}, nil
	}
	policies, revision, err := a.listPolicySnapshots(ctx, placement)
	if err != nil {
		return wf.ScheduleResult{}, err
	}
	afresh := rules.AsksToReschedule(placement, newestPolicy(policies))
	policy, err := a.ensurePolicySnapshot(ctx, placement, policies)
	if err != nil {
		return wf.ScheduleResult{}, err
	}
	decided, err := a.decideClusters(ctx, placement, policy, revision, now,
		decisionKind{respecified: isRespecified(placement, policies, policy), afresh: afresh})
	if err != nil {
		return wf.ScheduleResult{}, err
	}
	if held, err := holdOrBar(ctx, a, placement, policy, decided, now); err != nil || held {
		return wf.ScheduleResult{PolicySnapshot: policy.GetName(), Held: max(len(decided.unexplained), len(decided.tooMany))}, err
	}
	decision := decided.decision
	if len(decision.Create) > 0 {
		if err := checkLabels(ctx, a.Client, placement, decided.bindings); err != nil {
			return wf.ScheduleResult{}, err
		}
	}
	created, err := a.writeBindings(ctx, placement, policy.GetName(), decided.bindings, decision, now)
	if err != nil {
		return wf.ScheduleResult{}, err
	}
	if err := a.reportDecision(ctx, placement, policy, decision); err != nil {
		return wf.ScheduleResult{}, err
	}
	// Noted after the bindings were written: until then, the placement is known to need a decision.
	state := scheduler.State{
		Bars: decision.Bars, FitSince: decision.FitSince, LeaveAt: decision.LeaveAt, Requests: decided.requests, Kinds: decided.kinds,
		Demand:   rules.HashDemand(decided.demands, decided.kinds),
		Overdue:  listOverdue(placement, decided.bindings, decision, decision.Bars, now),
		NotFound: listNotFound(placement, policy, decision),
	}
	notes := state.Notes()
	notes[placementv1beta1.RescheduleAtAnnotation] = carriedOut(placement, policy)
	if err := noteOnPolicy(ctx, a.Client, policy, notes); err != nil {
		return wf.ScheduleResult{}, err
	}
	if err := writeHeld(ctx, a.Client, placement, ""); err != nil {
		return wf.ScheduleResult{}, err
	}
	return wf.ScheduleResult{
		PolicySnapshot: policy.GetName(),
		Selected:       len(decision.Selected),
		Created:        created,
		Unscheduled:    len(decision.Unschedule),
		WakeAt:         decision.WakeAt,
	}, a.prunePolicies(ctx, placement, policies, policy.GetName(), revision)
}

// carriedOut returns what a policy snapshot notes of requests to reschedule, once the one that the placement has was carried out. Without
// a readable one, it is what it was.
func carriedOut(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject) string {
	if asked, err := rules.RescheduleAt(placement); err == nil && !asked.IsZero() {
		if done, err := rules.RescheduleAt(policy); err != nil || asked.After(done) {
			return placement.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
		}
	}
	return policy.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
}

// holdOrBar reports whether a decision is not to be carried out. Otherwise it notes which clusters are barred by it, before the bindings
// are written: nothing tells afterwards that these go for that reason.
func holdOrBar(ctx context.Context, a *Activities, placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject,
	decided decided, now time.Time) (bool, error) {
	held, err := a.holdRemovals(ctx, placement, decided)
	if err != nil {
		return false, err
	}
	state := scheduler.StateOf(policy)
	if held {
		state.Overdue = listOverdue(placement, decided.bindings, scheduler.Decision{}, state.Bars, now)
	} else {
		state.Bars = decided.decision.Bars
	}
	return held, noteOnPolicy(ctx, a.Client, policy, state.Notes())
}

// listOverdue identifies the clusters that are to be left, once a decision is carried out, because of the health of what is
// placed there. The bars are those that are noted then.
func listOverdue(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, decision scheduler.Decision,
	bars map[string]scheduler.Bar, now time.Time) string {
	rule := rules.ApplicationFailoverOf(placement)
	if rule == nil {
		return ""
	}
	changes := map[string]bool{}
	for _, name := range decision.Unschedule {
		changes[name] = true
	}
	for _, kept := range decision.Keep {
		changes[kept.Name] = true
	}
	barred := func(cluster string) bool { _, is := bars[cluster]; return is }
	overdue, _ := rules.Overdue(rule, slices.DeleteFunc(slices.Clone(bindings), func(b placementv1beta1.BindingObject) bool {
		return changes[b.GetName()] && rules.IsLiveBinding(b) == slices.Contains(decision.Unschedule, b.GetName())
	}), barred, now)
	return overdue
}

// decisionKind says what a decision is made for.
type decisionKind struct {
	// respecified says that the placement has changed since the last one.
	respecified bool
	// afresh says that a user asks to pick all clusters anew.
	afresh bool
}

// decided is what the scheduler has made of the fleet and the bindings.
type decided struct {
	decision scheduler.Decision
	bindings []placementv1beta1.BindingObject
	// demands are what the workloads ask for whose replicas were divided.
	demands []rules.ReplicaDemand
	// kinds are those that clusters have to serve; nil if the policy does not ask for that.
	kinds []schema.GroupVersionKind
	// requests are, encoded, what their pods request for which it counts how much room clusters have.
	requests string
	// unexplained are the bindings that would go for no reason that a user has given.
	unexplained []rules.HeldRemoval
	// tooMany are the bindings that would go because the placement leaves too many clusters at once; nil if these are not too many.
	tooMany []rules.HeldRemoval
}

// decideClusters reads the fleet and the bindings and picks clusters. It holds the copy
// of the fleet no longer than that.
func (a *Activities) decideClusters(ctx context.Context, placement placementv1beta1.PlacementObject,
	policy placementv1beta1.PolicySnapshotObject, revision string, now time.Time, kind decisionKind) (decided, error) {
	demands, err := selection.ReadDemands(ctx, a.Live, placement)
	if err != nil {
		return decided{}, err
	}
	kinds, err := selection.ReadKinds(ctx, a.Live, placement)
	if err != nil {
		return decided{}, err
	}
	release, err := attempt.Acquire(ctx, a.FleetReads)
	if err != nil {
		return decided{}, err
	}
	defer release()
	candidates := rules.PolicyInForce(placement, policy)
	if scheduler.WhyUndecided(placement, policy) != "" {
		candidates = nil // to know which of the clusters that it has are still there
	}
	clusters, err := a.readCandidates(ctx, candidates, revision)
	if err != nil {
		return decided{}, err
	}
	bindings := placementv1beta1.ScopeOf(placement).NewBindingList()
	err = a.Live.List(ctx, bindings, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}, hubread.SinceRevision(revision))
	if err != nil {
		return decided{}, fmt.Errorf("listing bindings of placement %s: %w", placement.GetName(), err)
	}
	facts := scheduler.FactsOf(placement, policy, bindings.Objects(), clusters, now)
	facts.Demands = demands
	if kinds != nil { // the status may not say yet what is selected now
		facts.Kinds = kinds
	}
	facts.Afresh = kind.afresh // a policy snapshot that was made just now is not asked
	if demands != nil {
		if err := a.addShort(ctx, facts.Bindings); err != nil {
			return decided{}, err
		}
	}
	decision := scheduler.Decide(facts)
	return decided{
		decision: decision, bindings: bindings.Objects(), demands: demands, kinds: kinds,
		unexplained: scheduler.Unexplained(facts, decision, kind.respecified || kind.afresh || rules.SchedulerOf(placement) != ""),
		requests:    scheduler.RequestsToWatch(facts, decision), tooMany: scheduler.TooManyAtOnce(facts, decision),
	}, nil
}

// addShort adds to bindings what members report of pods that no node takes, as the cache has it.
func (a *Activities) addShort(ctx context.Context, bindings []scheduler.Binding) error {
	var all []placementv1beta1.Work
	for i := range bindings {
		var works placementv1beta1.WorkList
		err := a.Client.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(bindings[i].Cluster)),
			client.MatchingLabels{placementv1beta1.ParentBindingLabel: bindings[i].Name}, hubread.NearBinding(bindings[i].Name),
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the Works of binding %s: %w", bindings[i].Name, err)
		}
		all = append(all, works.Items...)
	}
	scheduler.AddShort(bindings, all)
	return nil
}

// readCandidates reads the clusters a policy can pick from: the few it names, or a whole fleet,
// which is much to read.
func (a *Activities) readCandidates(ctx context.Context, policy *placementv1beta1.PlacementPolicy,
	revision string) ([]clusterv1beta1.MemberCluster, error) {
	if policy == nil || policy.PlacementType != placementv1beta1.PickFixedPlacementType {
		clusters := &clusterv1beta1.MemberClusterList{}
		if err := a.Live.List(ctx, clusters, hubread.SinceRevision(revision)); err != nil {
			return nil, fmt.Errorf("listing member clusters: %w", err)
		}
		return clusters.Items, nil
	}
	names := slices.Compact(slices.Sorted(slices.Values(policy.ClusterNames)))
	found := make([]clusterv1beta1.MemberCluster, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxClusterReads)
	for i, name := range names {
		group.Go(func() error {
			if err := a.Live.Get(ctx, client.ObjectKey{Name: name}, &found[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading member cluster %s: %w", name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(found, func(c clusterv1beta1.MemberCluster) bool { return c.Name == "" }), err
}

// reportDecision writes the status of the policy snapshot, if it says something
// else than before.
func (a *Activities) reportDecision(ctx context.Context, placement placementv1beta1.PlacementObject,
	policy placementv1beta1.PolicySnapshotObject, decision scheduler.Decision) error {
	base := placementv1beta1.DeepCopyOf(policy)
	before := base.GetPolicySnapshotStatus()
	status := policy.GetPolicySnapshotStatus()
	switch told := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeScheduled); {
	case rules.SchedulerOf(placement) == "":
		status.ObservedCRPGeneration = placement.GetGeneration()
		status.ClusterDecisions = boundDecisions(decision)
		meta.SetStatusCondition(&status.Conditions, a.scheduledCondition(policy, decision))
	case rules.WaitsForScheduler(placement, policy):
		// What another scheduler has not decided is not told.
	case told == nil || told.Status == metav1.ConditionTrue || isOwnReason(told.Reason):
		condition := a.scheduledCondition(policy, decision)
		if scheduler := rules.SchedulerOf(placement); condition.Status == metav1.ConditionTrue {
			condition.Message += ", as scheduler " + scheduler + " has picked them"
		} else {
			condition.Message = "scheduler " + scheduler + " has picked the clusters: " + condition.Message
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(withoutAges(*before), withoutAges(*status)) {
		return nil
	}
	// Pinned to the version that was read, so that an attempt that was overtaken does not
	// overwrite the decision of a newer one.
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := a.Client.Status().Patch(ctx, policy, patch); err != nil {
		return fmt.Errorf("writing the status of policy snapshot %s: %w", policy.GetName(), err)
	}
	return nil
}

// isOwnReason reports whether a condition was written here, and not by another scheduler.
func isOwnReason(reason string) bool {
	return reason == placementv1beta1.ReasonSchedulingPolicyUnfulfilled || reason == placementv1beta1.ReasonReplicasUnplaced
}

// listNotFound lists the clusters that another scheduler has picked and that a decision does not select.
func listNotFound(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject,
	decision scheduler.Decision) []string {
	if rules.SchedulerOf(placement) == "" {
		return nil
	}
	names := rules.PolicyInForce(placement, policy).ClusterNames
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(decision.Selected, func(d placementv1beta1.ClusterDecision) bool { return d.ClusterName == name })
	})
}

// withoutAges returns a status without the ages in its reasons, which grow all the time.
func withoutAges(status placementv1beta1.SchedulingPolicySnapshotStatus) placementv1beta1.SchedulingPolicySnapshotStatus {
	status.ClusterDecisions = slices.Clone(status.ClusterDecisions)
	for i := range status.ClusterDecisions {
		decision := &status.ClusterDecisions[i]
		decision.Reason = scheduler.WithoutAges(decision.Reason)
	}
	status.Conditions = slices.Clone(status.Conditions)
	for i := range status.Conditions {
		status.Conditions[i].Message = scheduler.WithoutAges(status.Conditions[i].Message)
	}
	return status
}

// boundDecisions returns the decisions for which there is room: every selected cluster, then
// the others. If there are too many selected ones to list them all, the others tell more
// than the last of them.
func boundDecisions(decision scheduler.Decision) []placementv1beta1.ClusterDecision {
	selected := decision.Selected
	unselected := decision.Unselected
	if len(selected) > rules.MaxClusterDecisions {
		selected = selected[:rules.MaxClusterDecisions-len(unselected)]
	}
	unselected = unselected[:min(len(unselected), rules.MaxClusterDecisions-len(selected))]
	return slices.Concat(selected, unselected)
}

func (a *Activities) scheduledCondition(policy placementv1beta1.PolicySnapshotObject, decision scheduler.Decision) metav1.Condition {
	condition := metav1.Condition{
		Type:               placementv1beta1.ConditionTypeScheduled,
		Status:             metav1.ConditionTrue,
		Reason:             placementv1beta1.ReasonSchedulingPolicyFulfilled,
		Message:            decision.Message,
		ObservedGeneration: policy.GetGeneration(),
	}
	switch {
	case !decision.Satisfied:
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonSchedulingPolicyUnfulfilled
	case len(decision.Unplaced) > 0:
		condition.Status = metav1.ConditionFalse
		condition.Reason = placementv1beta1.ReasonReplicasUnplaced
	}
	// A condition that keeps its status keeps its transition time; see SetStatusCondition.
	condition.LastTransitionTime = metav1.NewTime(a.Clock.Now())
	return condition
}
