package brake

import (
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Refusal returns what a cluster waits for whose binding the API server refuses to write: why, since when, and when that is tried
// again.
func Refusal(cluster, why string, since, nextTry time.Time) rollout.Wait {
	return rollout.Wait{
		Cluster: cluster, Kind: rollout.BrakeRefusal, Reason: placementv1beta1.ReasonRefused, Why: why, Since: since, Until: nextTry,
	}
}
