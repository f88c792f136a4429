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
	for _, reason := range []string{a.whyOfChanges(), a.whyOfAdditions()} {
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

// whyOfChanges says why maxUnavailable lets no cluster be changed; empty if it lets one, or if none is to be.
func (a Account) whyOfChanges() string {
	if a.Changes == 0 || a.Available > a.Target-a.MaxUnavailable {
		return ""
	}
	return fmt.Sprintf("of the %d cluster(s) asked for %d are available, and with maxUnavailable %d none of them may become unavailable",
		a.Target, a.Available, a.MaxUnavailable)
}

// whyOfAdditions says why maxSurge lets no cluster have resources for the first time; empty if it lets one, or if none is to.
func (a Account) whyOfAdditions() string {
	if a.Additions == 0 || a.Placed < a.Target+a.MaxSurge {
		return ""
	}
	return fmt.Sprintf("%d cluster(s) have resources, %d are asked for, and with maxSurge %d no other may get any", a.Placed, a.Target, a.MaxSurge)
}

// explainLimits says in the waits for the limits that no cluster is on its way to free them.
func (p *planner) explainLimits() {
	kinds := map[string]int{}
	for _, wait := range p.plan.Waits {
		kinds[wait.Kind]++
	}
	account := Account{Limits: p.limits, Available: p.available, Placed: p.placed,
		Changes: kinds[BrakeMaxUnavailable], Additions: kinds[BrakeMaxSurge]}
	for i := range p.plan.Waits {
		switch wait := &p.plan.Waits[i]; wait.Kind {
		case BrakeMaxUnavailable:
			wait.Why = account.whyOfChanges()
		case BrakeMaxSurge:
			wait.Why = account.whyOfAdditions()
		}
	}
}
