package brake

import (
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Hook returns what a lifecycle hook has a cluster wait for, given what the hook holds; nothing if that is nil.
func Hook(cluster string, held *rules.HookWait) []rollout.Wait {
	if held == nil {
		return nil
	}
	return []rollout.Wait{{
		Cluster: cluster, Kind: rollout.BrakeHook, Reason: placementv1beta1.ReasonWaitingForHook, Object: held.Hook, Why: held.Need(),
		Since: held.Since, Until: held.Until,
	}}
}

// HookText says what a lifecycle hook has a cluster wait for, as the end of a sentence about the cluster.
func HookText(held *rules.HookWait) string { return Hook("", held)[0].Text() }
