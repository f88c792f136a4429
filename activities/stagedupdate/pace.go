package stagedupdate

import (
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A large run writes its status at most so often: it is large, too, and each step writes it.
const (
	largeQuiet  = 200 * time.Millisecond
	largeAtMost = time.Second
)

// quietOf and atMostOf are how long to collect clusters that are done before the next step;
// zero is as usual.
func quietOf(run *placementv1beta1.ClusterStagedUpdateRun) time.Duration {
	if large(run) {
		return largeQuiet
	}
	return 0
}

func atMostOf(run *placementv1beta1.ClusterStagedUpdateRun) time.Duration {
	if large(run) {
		return largeAtMost
	}
	return 0
}
