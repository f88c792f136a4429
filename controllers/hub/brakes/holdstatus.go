package brakes

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fleet is what the status of holds is computed from. The objects belong to the cache and must not be changed.
type fleet struct {
	// labels are those of the member clusters, by name.
	labels map[string]map[string]string
	// namespaces are the labels of the Namespaces of placements, by name.
	namespaces map[string]map[string]string
	placements []placementv1beta1.PlacementObject
	// bindings are those of each placement, and evictions the clusters that evictions of it without an outcome are for.
	bindings  map[types.NamespacedName][]placementv1beta1.BindingObject
	evictions map[types.NamespacedName][]string
	runs      []placementv1beta1.UpdateRunObject
	// exemptions are all of them; with onlyVerified, those do not count of which it is not known who made them.
	exemptions   []fleetflowv1alpha1.RolloutExemption
	onlyVerified bool
}

// byPlacement finds the bindings of each placement. Those of one placement mostly follow each other, so that the map is asked
// once for them.
func byPlacement(bindings []placementv1beta1.BindingObject) map[types.NamespacedName][]placementv1beta1.BindingObject {
	found := map[types.NamespacedName][]placementv1beta1.BindingObject{}
	keyOf := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: bindings[i].GetNamespace(), Name: bindings[i].GetLabels()[placementv1beta1.ParentPlacementLabel]}
	}
	for begin := 0; begin < len(bindings); {
		key := keyOf(begin)
		end := begin + 1
		for end < len(bindings) && keyOf(end) == key {
			end++
		}
		found[key] = append(found[key], bindings[begin:end]...)
		begin = end
	}
	return found
}

// describeHold returns what waits for a hold to end, and what it covers that is still under way. It is pure.
func describeHold(hold *fleetflowv1alpha1.RolloutHold, f *fleet, now metav1.Time) fleetflowv1alpha1.RolloutHoldStatus {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: hold.Generation}
	}
	status := fleetflowv1alpha1.RolloutHoldStatus{}
	conditions := []metav1.Condition{}
	accepted := condition(fleetflowv1alpha1.ConditionTypeAccepted, metav1.ConditionTrue, fleetflowv1alpha1.ReasonAccepted,
		"The hold is followed as it is")
	if err := hold.Flaw(); err != nil {
		accepted.Status = metav1.ConditionFalse
		accepted.Reason = fleetflowv1alpha1.ReasonInvalidSelector
		accepted.Message = fmt.Sprintf("A selector cannot be read and selects everything until it is corrected: %v", err)
	}
	conditions = append(conditions, accepted)
	if !hold.IsInForce(now.Time) {
		conditions = append(conditions,
			condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionFalse, fleetflowv1alpha1.ReasonHoldExpired,
				"The hold has expired and holds nothing: delete it, or set another spec.expirationTime"),
			condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionFalse, fleetflowv1alpha1.ReasonHoldExpired,
				"The hold has expired: what it has covered may change"))
		status.Conditions = placementv1beta1.KeepTransitionTimes(hold.Status.Conditions, conditions, now)
		return status
	}
	covered := f.coveredPlacements(hold)
	clusters := f.coveredClusters(hold)
	for key, placement := range covered {
		if f.holdsPlacement(hold, placement, clusters, now.Time) {
			status.HeldPlacements++
		}
		for _, binding := range f.bindings[key] {
			if clusters(binding.GetBindingSpec().TargetCluster) && isInFlight(binding) {
				status.InFlight++
			}
		}
	}
	for _, run := range f.runs {
		placement := covered[placementv1beta1.ScopeOf(run).Key(run.GetUpdateRunSpec().PlacementName)]
		if placement != nil && f.holdsRun(hold, run, placement, now.Time) {
			status.HeldRuns++
		}
	}
	conditions = append(conditions, condition(fleetflowv1alpha1.ConditionTypeEffective, metav1.ConditionTrue,
		fleetflowv1alpha1.ReasonHoldInForce,
		"Nothing begins on the clusters that the hold covers"))
	quiet := condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionTrue, fleetflowv1alpha1.ReasonNothingInFlight,
		"No change that the hold covers is under way")
	if status.InFlight > 0 {
		quiet = condition(fleetflowv1alpha1.ConditionTypeQuiet, metav1.ConditionFalse, fleetflowv1alpha1.ReasonChangesInFlight,
			fmt.Sprintf("On %d cluster(s) a change that began before is under way, or its resources are not available", status.InFlight))
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(hold.Status.Conditions, append(conditions, quiet), now)
	return status
}

// coveredPlacements returns the placements that a hold covers.
func (f *fleet) coveredPlacements(hold *fleetflowv1alpha1.RolloutHold) map[types.NamespacedName]placementv1beta1.PlacementObject {
	covered := make(map[types.NamespacedName]placementv1beta1.PlacementObject, len(f.placements))
	for _, placement := range f.placements {
		if hold.CoversPlacement(fleetflowv1alpha1.GateLabels(placement), f.namespaces[placement.GetNamespace()]) {
			covered[client.ObjectKeyFromObject(placement)] = placement
		}
	}
	return covered
}

// coveredClusters makes what says whether a hold covers a cluster. The labels of each are compared once; one that has left the fleet
// has none.
func (f *fleet) coveredClusters(hold *fleetflowv1alpha1.RolloutHold) func(string) bool {
	covered := make(map[string]bool, len(f.labels))
	gone := hold.CoversCluster(nil)
	for name, of := range f.labels {
		covered[name] = hold.CoversCluster(of)
	}
	return func(name string) bool {
		covers, known := covered[name]
		return known && covers || !known && gone
	}
}

// isInFlight reports whether a change of a cluster is under way.
func isInFlight(binding placementv1beta1.BindingObject) bool {
	return rules.IsDeleting(binding) || binding.GetBindingSpec().ResourceSnapshotName != "" &&
		!rules.SaysAvailable(binding)
}
