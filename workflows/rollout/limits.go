package rollout

import "fmt"

// account is how a rollout that plans nothing stands with its limits.
type account struct {
	Limits
	// available clusters, and those that hold resources.
	available, placed int
	// changes that wait for maxUnavailable, and additions that wait for maxSurge.
	changes, additions int
}

// whyOfChanges says why maxUnavailable lets no cluster be changed; empty if it lets one, or if none is to be.
func (a account) whyOfChanges() string {
	if a.changes == 0 || a.available > a.Target-a.MaxUnavailable {
		return ""
	}
	return fmt.Sprintf("of the %d cluster(s) asked for %d are available, and with maxUnavailable %d none of them may become unavailable",
		a.Target, a.available, a.MaxUnavailable)
}

// whyOfAdditions says why maxSurge lets no cluster have resources for the first time; empty if it lets one, or if none is to.
func (a account) whyOfAdditions() string {
	if a.additions == 0 || a.placed < a.Target+a.MaxSurge {
		return ""
	}
	return fmt.Sprintf("%d cluster(s) have resources, %d are asked for, and with maxSurge %d no other may get any", a.placed, a.Target, a.MaxSurge)
}

// explainLimits says in the waits for the limits that no cluster is on its way to free them.
func (p *planner) explainLimits() {
	kinds := map[string]int{}
	for _, wait := range p.plan.Waits {
		kinds[wait.Kind]++
	}
	stands := account{p.limits, p.available, p.placed, kinds[BrakeMaxUnavailable], kinds[BrakeMaxSurge]}
	for i := range p.plan.Waits {
		switch wait := &p.plan.Waits[i]; wait.Kind {
		case BrakeMaxUnavailable:
			wait.Why = stands.whyOfChanges()
		case BrakeMaxSurge:
			wait.Why = stands.whyOfAdditions()
		}
	}
}
