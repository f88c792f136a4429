package rollout

import "fmt"

// account is how a rollout that plans nothing stands with its limits.
type account struct {
	Limits
	// available clusters, and those that hold resources.
	available, placed int
	// changes that wait for maxUnavailable, and additions that wait for maxSurge.
	changes, additions int
	// losing and filling are available clusters, and those without resources, whose refused writes may still be made: their claims
	// could not be given back.
	losing, filling []string
}

// whyOfChanges says why maxUnavailable lets no cluster be changed; empty if it lets one, or if none is to be.
func (a account) whyOfChanges() string {
	switch least := a.Target - a.MaxUnavailable; {
	case a.changes == 0 || a.available-len(a.losing) > least:
		return ""
	case a.available > least:
		return fmt.Sprintf("%s may still become unavailable, and with maxUnavailable %d no other may", describeClaims(a.losing), a.MaxUnavailable)
	}
	return fmt.Sprintf("of the %d cluster(s) asked for %d are available, and with maxUnavailable %d none of them may become unavailable",
		a.Target, a.available, a.MaxUnavailable)
}

// whyOfAdditions says why maxSurge lets no cluster have resources for the first time; empty if it lets one, or if none is to.
func (a account) whyOfAdditions() string {
	switch most := a.Target + a.MaxSurge; {
	case a.additions == 0 || a.placed+len(a.filling) < most:
		return ""
	case a.placed < most:
		return fmt.Sprintf("%s may still get resources, and with maxSurge %d no other may", describeClaims(a.filling), a.MaxSurge)
	}
	return fmt.Sprintf("%d cluster(s) have resources, %d are asked for, and with maxSurge %d no other may get any", a.placed, a.Target, a.MaxSurge)
}

// describeClaims names the first of some clusters whose claims could not be given back.
func describeClaims(clusters []string) string {
	if more := len(clusters) - 1; more > 0 {
		return fmt.Sprintf("cluster %s and %d more, whose refused writes cannot be taken back,", clusters[0], more)
	}
	return fmt.Sprintf("cluster %s, whose refused write cannot be taken back,", clusters[0])
}

// explainLimits says in the waits for the limits that no cluster is on its way to free them.
func (p *planner) explainLimits(clusters []Cluster) {
	kinds := map[string]int{}
	for _, wait := range p.plan.Waits {
		kinds[wait.Kind]++
	}
	stands := account{
		Limits: p.limits, available: p.accounts.available, placed: p.accounts.placed,
		changes: kinds[BrakeMaxUnavailable], additions: kinds[BrakeMaxSurge],
	}
	for _, c := range clusters {
		switch {
		case !c.Claimed || c.Refusal() == nil:
		case isUp(c):
			stands.losing = append(stands.losing, c.Name)
		case !holdsResources(c):
			stands.filling = append(stands.filling, c.Name)
		}
	}
	for i := range p.plan.Waits {
		switch wait := &p.plan.Waits[i]; wait.Kind {
		case BrakeMaxUnavailable:
			wait.Why = stands.whyOfChanges()
		case BrakeMaxSurge:
			wait.Why = stands.whyOfAdditions()
		}
	}
}
