package placement

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// takeState returns the state that goes along to the one cluster that a decision picks anew, encoded; empty if nothing does. It is that of
// the cluster that the placement leaves for it, or what was on its way to one that has not been given anything yet. A cluster that is
// picked again before it was cleared needs none: its copy is still there.
func takeState(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject,
	existing []placementv1beta1.BindingObject,
	decision scheduler.Decision) (string, error) {
	if len(decision.Create) != 1 || len(decision.Selected) != 1 || len(rules.StatePathsOf(placement)) == 0 {
		return "", nil
	}
	state := rules.PreservedState{}
	for _, left := range leavingOf(placement, existing, decision) {
		taken, err := bind.TakeState(ctx, live, left)
		if err != nil {
			return "", err
		}
		state = state.Merge(taken)
	}
	return state.Encode(), nil
}

// leavingOf returns the bindings whose state goes along: first those that have not been given anything, of which only what is on
// its way does.
func leavingOf(placement placementv1beta1.PlacementObject, existing []placementv1beta1.BindingObject,
	decision scheduler.Decision) []bind.LeavingBinding {
	var passing, leaving []bind.LeavingBinding
	for _, binding := range existing {
		name := binding.GetName()
		if !slices.Contains(decision.Unschedule, name) {
			continue
		}
		rules := rulesFor(placement, decision, name)
		switch given := binding.GetBindingSpec().ResourceSnapshotName != ""; {
		case !given:
			passing = append(passing, bind.LeavingBinding{Binding: binding})
		case len(rules) > 0:
			leaving = append(leaving, bind.LeavingBinding{Binding: binding, Rules: rules})
		}
	}
	return append(passing, leaving...)
}

// rulesFor returns the rules by which state of a binding that goes is preserved; none if the placement does not fail over from there.
func rulesFor(placement placementv1beta1.PlacementObject, decision scheduler.Decision,
	name string) []placementv1beta1.StatePreservationRule {
	cause := placementv1beta1.CauseCluster
	switch {
	case decision.FailedOver[name] == "":
		return nil
	case decision.Ill[name]:
		cause = placementv1beta1.CauseApplication
	}
	return rules.StatePreservedFor(rules.FailoverOf(placement), cause)
}
