package clusterwatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// wouldDecideAnew reports whether the scheduler would decide differently on the objects in the cache. It writes nothing.
// Checks that need the whole fleet come last: most placements have all the clusters they want. What its condition
// says of the replacement of clusters is compared in any case if that has changed.
func (r *Reconciler) wouldDecideAnew(ctx context.Context, placement placementv1beta1.PlacementObject, changed framework.Interest) (bool, error) {
	// The changes are counted before anything is read: a change meanwhile causes a request of its own, which this
	// decision must not answer.
	asked := decisionInputs{changes: r.changes.Load(), generation: placement.GetGeneration()}
	if _, known := r.recallDecision(placement, asked); known && changed != framework.Replacement {
		return false, nil
	}
	scope := placementv1beta1.ScopeOf(placement)
	bindings := scope.NewBindingList()
	if err := r.client.List(ctx, bindings, client.InNamespace(scope.Namespace),
		client.MatchingFields{fieldindex.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the bindings of placement %s: %w", placement.GetName(), err)
	}
	stays, err := r.keepsClusters(ctx, placement, bindings.Objects(), changed)
	if err != nil {
		return false, err
	}
	if stays {
		r.decisions.Add(placement.GetUID(), rememberedDecision{decisionInputs: asked})
		return false, nil
	}
	policy, err := r.latestPolicyOf(ctx, placement)
	if err != nil {
		return false, err
	}
	told := meta.FindStatusCondition(policy.GetPolicySnapshotStatus().Conditions, placementv1beta1.ConditionTypeScheduled)
	if told == nil || policy.GetPolicySnapshotStatus().ObservedCRPGeneration != placement.GetGeneration() {
		return true, nil // it is about to be scheduled, perhaps on what was before
	}
	asked.policy = policy.GetName()
	asked.found = rules.FoundAllClusters(told)
	if anew, known := r.recallDecision(placement, asked); known {
		return anew, nil
	}
	clusters, err := r.listCandidates(ctx, rules.PolicyInForce(placement, policy))
	if err != nil {
		return false, err
	}
	facts := scheduler.FactsOf(placement, policy, bindings.Objects(), clusters, r.clock.Now())
	decision := scheduler.Decide(facts)
	anew := decision.Satisfied != asked.found || differsFromBindings(decision, facts.Bindings) || !saysWhoStays(placement, told, decision) ||
		!maps.EqualFunc(decision.FitSince, facts.Groups.FitSince, time.Time.Equal)
	r.decisions.Add(placement.GetUID(), rememberedDecision{asked, anew})
	return anew, nil
}

// keepsClusters reports whether a placement has all the clusters it wants, and nothing has changed of the replacement of one of them.
func (r *Reconciler) keepsClusters(ctx context.Context, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject,
	changed framework.Interest) (bool, error) {
	if changed == framework.Replacement || !isFull(placement, bindings) {
		return false, nil
	}
	replaced, err := isAnyReplaced(ctx, r.client, bindings)
	return err == nil && !replaced, err
}

// saysWhoStays reports whether the condition of a placement says on which clusters it stays that a user wants replaced. What another scheduler
// has picked is in its own words.
func saysWhoStays(placement placementv1beta1.PlacementObject, told *metav1.Condition, decision scheduler.Decision) bool {
	return rules.SchedulerOf(placement) != "" || decision.TellsStays(told.Message)
}

// listCandidates lists the clusters that a policy can pick from: the whole fleet, or those that it names.
func (r *Reconciler) listCandidates(ctx context.Context, policy *placementv1beta1.PlacementPolicy) ([]clusterv1beta1.MemberCluster, error) {
	if policy == nil || policy.PlacementType != placementv1beta1.PickFixedPlacementType {
		list := &clusterv1beta1.MemberClusterList{}
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing member clusters: %w", err)
		}
		return list.Items, nil
	}
	clusters := make([]clusterv1beta1.MemberCluster, 0, len(policy.ClusterNames))
	for _, name := range policy.ClusterNames {
		cluster, err := r.readCluster(ctx, name)
		if err != nil {
			return nil, err
		}
		if cluster != nil {
			clusters = append(clusters, *cluster)
		}
	}
	return clusters, nil
}

// decisionInputs identify what a decision was made from. On start, and when much changes at once, every cluster
// causes a request; the decision for the first then answers all. If a placement had all the clusters it wants, its
// policy snapshot was not read.
type decisionInputs struct {
	changes    uint64
	generation int64
	policy     string
	// found says that all clusters were found that it asks for.
	found bool
}

type rememberedDecision struct {
	decisionInputs
	anew bool
}

// recallDecision returns the last decision about a placement, if it was made from the same inputs.
func (r *Reconciler) recallDecision(placement placementv1beta1.PlacementObject, asked decisionInputs) (anew, known bool) {
	if last, ok := r.decisions.Get(placement.GetUID()); ok && last.(rememberedDecision).decisionInputs == asked {
		return last.(rememberedDecision).anew, true
	}
	return false, false
}

// isFull reports whether a placement that wants a number of clusters has them.
func isFull(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject) bool {
	policy := placement.GetPlacementSpec().Policy
	if policy == nil || policy.PlacementType != placementv1beta1.PickNPlacementType || policy.NumberOfClusters == nil ||
		policy.SchedulerName != "" {
		return false
	}
	if _, goesBack := rules.FailbackAfter(policy); goesBack {
		return false // it may go to other clusters though it has enough
	}
	if rules.FailoverOf(placement) != nil {
		return false // one of those that it has may be to be replaced
	}
	picked := 0
	for _, binding := range bindings {
		if rules.IsLiveBinding(binding) && !rules.IsMarkedForDelete(binding) { // a marked one waits for another
			picked++
		}
	}
	return picked >= int(*policy.NumberOfClusters)
}

// isAnyReplaced reports whether a user wants one of the clusters of bindings replaced.
func isAnyReplaced(ctx context.Context, cached client.Reader, bindings []placementv1beta1.BindingObject) (bool, error) {
	var replaced clusterv1beta1.MemberClusterList
	err := cached.List(ctx, &replaced, client.MatchingFields{hubread.ByReplacement: hubread.AnyReplacement}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the clusters that are replaced: %w", err)
	}
	return slices.ContainsFunc(replaced.Items, func(cluster clusterv1beta1.MemberCluster) bool {
		return slices.ContainsFunc(bindings, func(binding placementv1beta1.BindingObject) bool {
			return binding.GetBindingSpec().TargetCluster == cluster.Name
		})
	}), nil
}

// latestPolicyOf reads the latest policy snapshot of a placement; an empty one if there is none.
func (r *Reconciler) latestPolicyOf(ctx context.Context, placement placementv1beta1.PlacementObject) (placementv1beta1.PolicySnapshotObject, error) {
	scope := placementv1beta1.ScopeOf(placement)
	policies := scope.NewPolicySnapshotList()
	if err := r.client.List(ctx, policies, client.InNamespace(scope.Namespace),
		client.MatchingFields{fieldindex.ByPlacement: placement.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the policy snapshots of placement %s: %w", placement.GetName(), err)
	}
	controlled := slices.DeleteFunc(policies.Objects(), func(policy placementv1beta1.PolicySnapshotObject) bool {
		return !metav1.IsControlledBy(policy, placement)
	})
	latest := rules.LatestSnapshot(controlled, placementv1beta1.PolicyIndexLabel)
	if latest == nil {
		latest = scope.NewPolicySnapshot("")
	}
	return latest, nil
}

// differsFromBindings reports whether a decision asks for other bindings than those that exist.
func differsFromBindings(decision scheduler.Decision, bindings []scheduler.Binding) bool {
	if len(decision.Create) > 0 || len(decision.Unschedule) > 0 || len(decision.Replaced) > 0 {
		return true
	}
	states := make(map[string]placementv1beta1.BindingState, len(bindings))
	withheld := make(map[string]bool, len(bindings))
	for _, binding := range bindings {
		states[binding.Name] = binding.State
		withheld[binding.Name] = binding.Decision.Withheld != nil
	}
	for _, kept := range decision.Keep {
		if states[kept.Name] != kept.State || withheld[kept.Name] != (kept.Decision.Withheld != nil) {
			return true
		}
	}
	return false
}
