package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// describeShortage returns how many of the wanted clusters were found, and what keeps the others out.
func describeShortage(c *cycle, found int) string {
	text := fmt.Sprintf("%d of %d clusters found", found, c.picks.wanted)
	named := c.picks.rejected[byName]
	switch {
	case len(named) == 1:
		return text + ": " + named[0].reason
	case len(named) > 1:
		return text + fmt.Sprintf(": %s; and so on for %d more", named[0].reason, len(named)-1)
	}
	if out := describeKeptOut(c, func(string) bool { return true }); out != "" {
		return text + ": " + out
	}
	if c.picks.amiss == 0 && len(c.picks.selected) == len(c.fleet.members) {
		return text + ": the fleet has no more"
	}
	return text
}

// describeEmptyChoice returns why a policy is followed with no cluster at all.
func describeEmptyChoice(c *cycle) string {
	if typeOf(c.facts.Policy) == placementv1beta1.PickAllPlacementType {
		text := fmt.Sprintf("The policy matches none of %d clusters, nothing is placed", len(c.fleet.members))
		if out := describeKeptOut(c, func(string) bool { return true }); out != "" {
			text += ": " + out
		}
		return text
	}
	return "The policy wants no cluster, nothing is placed"
}

// describeKeptOut counts the clusters that each filter of those asked for keeps out; empty if they keep none out.
func describeKeptOut(c *cycle, asked func(filter string) bool) string {
	var parts []string
	for _, by := range slices.Sorted(maps.Keys(c.picks.keptOut)) {
		if name := c.picks.run.nameFilter(by); asked(name) {
			parts = append(parts, fmt.Sprintf("%s keeps %d out", name, c.picks.keptOut[by]))
		}
	}
	return strings.Join(parts, ", ")
}
