package rollout

import (
	"fmt"
	"strings"
)

// Account is how a rollout that plans nothing stands with its limits.
type Account struct {
	Limits
	// Available clusters, and those that hold resources.
	Available, Placed int
	// Changes that wait for maxUnavailable, and first placements that wait for maxSurge.
	Changes, Additions int
}

// Held returns why the limits hold a rollout back though no cluster is on its way to become
// available: then it is stuck by definition, and only other limits or other clusters help.
// It is empty if there is room.
func (a Account) Held() string {
	var reasons []string
	if a.Changes > 0 && a.Available <= a.Target-a.MaxUnavailable {
		reasons = append(reasons, fmt.Sprintf(
			"of the %d cluster(s) asked for %d are available, and with maxUnavailable %d none of them may become unavailable", a.Target, a.Available,
			a.MaxUnavailable))
	}
	if a.Additions > 0 && a.Placed >= a.Target+a.MaxSurge {
		reasons = append(reasons, fmt.Sprintf(
			"%d cluster(s) have resources, %d are asked for, and with maxSurge %d no other may get any", a.Placed, a.Target, a.MaxSurge))
	}
	return strings.Join(reasons, "; ")
}
