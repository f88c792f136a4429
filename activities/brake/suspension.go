package brake

import (
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Suspension returns what a cluster waits for that its placement suspends; nothing if it does not.
func Suspension(placement placementv1beta1.PlacementObject, cluster string) []rollout.Wait {
	if !rules.IsSuspended(placement, cluster) {
		return nil
	}
	return []rollout.Wait{{
		Cluster: cluster, Kind: rollout.BrakeSuspension, Reason: placementv1beta1.ReasonSuspended, Why: rules.SuspensionText,
	}}
}
