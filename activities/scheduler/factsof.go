package scheduler

import (
	"time"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// FactsOf returns what a decision about a placement rests on: the decisions of the hub, the look whether one is due and the
// explanation of one all begin with it. The latest policy snapshot may be nil. Demands, and the workloads that run short on clusters,
// are read apart; the kinds of what is placed are those that the last decision noted, or else those that the placement had selected when
// its status was written last.
func FactsOf(placement placementv1beta1.PlacementObject, latest placementv1beta1.PolicySnapshotObject,
	bindings []placementv1beta1.BindingObject,
	clusters []clusterv1beta1.MemberCluster, now time.Time) Facts {
	facts := Facts{
		Namespace: placement.GetNamespace(),
		Policy:    rules.PolicyInForce(placement, latest),
		Undecided: WhyUndecided(placement, latest),
		Clusters:  clusters,
		Bindings:  BindingsOf(placement, bindings),
		Failover:  rules.FailoverOf(placement),
		Resources: snapshot.LatestOf(placement),
		Now:       now,
	}
	facts.Replacing.Immovable, facts.Replacing.NoRoom = rules.WhyImmovable(placement)
	facts.Kinds = rules.KindsToServe(facts.Policy, rules.SelectedKinds(placement))
	if latest != nil {
		facts.PolicySnapshot = latest.GetName()
		facts.Afresh = rules.AsksToReschedule(placement, latest)
		state := StateOf(latest)
		if facts.Kinds != nil && len(state.Kinds) > 0 { // what is within envelopes is in no status
			facts.Kinds = state.Kinds
		}
		facts.Groups = GroupRecord{Last: lastGroup(latest.GetPolicySnapshotStatus()), FitSince: state.FitSince}
		facts.Bars = state.Bars
	}
	return facts
}
