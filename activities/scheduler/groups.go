package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/clusteraffinity"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// GroupRecord is what the latest policy snapshot has recorded of the policy's affinity groups.
type GroupRecord struct {
	// Last is the group that clusters were picked from last; empty if that is not known.
	Last string
	// FitSince is that of the last decision.
	FitSince map[string]time.Time
}

// lastGroup returns the affinity group that clusters were picked from last; empty if that is not known.
func lastGroup(status *placementv1beta1.SchedulingPolicySnapshotStatus) string {
	for i := range status.ClusterDecisions {
		if decision := &status.ClusterDecisions[i]; decision.Selected && decision.AffinityGroup != "" {
			return decision.AffinityGroup
		}
	}
	return ""
}

// joinGroups returns the group of all clusters that are in one of several.
func joinGroups(groups []placementv1beta1.AffinityGroup) *placementv1beta1.AffinityGroup {
	joint := &placementv1beta1.AffinityGroup{ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}}}
	var names []string
	all := false
	for i := range groups {
		names = append(names, groups[i].Name)
		terms := groups[i].ClusterSelector.ClusterSelectorTerms
		all = all || len(terms) == 0
		joint.ClusterSelector.ClusterSelectorTerms = append(joint.ClusterSelector.ClusterSelectorTerms, terms...)
	}
	joint.Name = strings.Join(names, ", ")
	if all {
		joint.ClusterSelector.ClusterSelectorTerms = nil
	}
	return joint
}

// groupSearch finds the affinity group that clusters are picked from.
type groupSearch struct {
	facts  Facts
	fleet  fleet
	groups []placementv1beta1.AffinityGroup
	// rounds are the cycles that picked from a group, by its place; what is nil was not tried.
	rounds []*cycle
	// fitSince is what the decision says.
	fitSince map[string]time.Time
}

// pickGroup picks from the first group that fits, in the order of trial: those that the placement may go back to, the group that
// it is in, then all.
func (s *groupSearch) pickGroup() (*cycle, Decision) {
	in := s.groupHeld()
	due, err := s.findDue(in)
	order := []int{due, in}
	for i := range s.groups {
		order = append(order, i)
	}
	for _, i := range order {
		fits := false
		if i >= 0 && err == nil {
			fits, err = s.tryGroup(i)
		}
		if err != nil {
			return keepEverything(newCycle(s.facts, s.fleet, nil), err.Error())
		}
		if fits {
			return s.finish(i)
		}
	}
	return s.keepHeld()
}

// groupHeld returns the place of the group that the placement is in; -1 if it is in none, or is to be picked afresh. That of
// clusters picked for the latest policy comes first; of several, for a move may have been cut short, the first.
func (s *groupSearch) groupHeld() int {
	if s.facts.Afresh {
		return -1
	}
	var current, earlier []string
	for _, binding := range s.facts.Bindings {
		switch {
		case binding.Disputed, !binding.holdsCluster():
		case binding.PolicySnapshot == s.facts.PolicySnapshot:
			current = append(current, binding.Decision.AffinityGroup)
		default:
			earlier = append(earlier, binding.Decision.AffinityGroup)
		}
	}
	for _, names := range [][]string{current, {s.facts.Groups.Last}, earlier} {
		held := slices.IndexFunc(s.groups, func(group placementv1beta1.AffinityGroup) bool { return slices.Contains(names, group.Name) })
		if held >= 0 {
			return held
		}
	}
	return -1
}

// findDue finds the first group before the one that the placement is in that has had enough clusters for long enough; -1 if there
// is none, or the policy does not go back.
func (s *groupSearch) findDue(in int) (int, error) {
	after, goesBack := rules.FailbackAfter(s.facts.Policy)
	if !goesBack {
		return -1, nil
	}
	for i := range max(in, 0) {
		fits, err := s.tryGroup(i)
		if err != nil || !fits {
			if err != nil {
				return -1, err
			}
			continue
		}
		name := s.groups[i].Name
		since, known := s.facts.Groups.FitSince[name]
		if !known {
			since = s.facts.Now.Truncate(time.Second)
		}
		if !since.Add(after).After(s.facts.Now) {
			return i, nil
		}
		if s.fitSince == nil {
			s.fitSince = map[string]time.Time{}
		}
		s.fitSince[name] = since
	}
	return -1, nil
}

// tryGroup picks from a group, once, and says whether that has enough clusters. The error is for the user.
func (s *groupSearch) tryGroup(i int) (bool, error) {
	if s.rounds[i] == nil {
		c := newCycle(s.facts, s.fleet, &s.groups[i])
		var err error
		if c.picks, err = pickClusters(c); err != nil {
			return false, err
		}
		s.rounds[i] = c
	}
	return s.rounds[i].picks.unmet == "" && s.foundIn(i) >= s.neededIn(i), nil
}

func (s *groupSearch) foundIn(i int) int {
	return len(s.rounds[i].picks.selected) - s.rounds[i].picks.amiss
}

// neededIn returns how many clusters a group must have.
func (s *groupSearch) neededIn(i int) int {
	if typeOf(s.facts.Policy) == placementv1beta1.PickAllPlacementType {
		return 1
	}
	return s.rounds[i].picks.wanted
}

// finish makes the decision to pick from a group.
func (s *groupSearch) finish(i int) (*cycle, Decision) {
	ended, decision := finishCycle(s.rounds[i])
	decision.Message += fmt.Sprintf(", from affinity group %q", s.groups[i].Name)
	after, _ := rules.FailbackAfter(s.facts.Policy)
	for _, group := range s.groups[i:] {
		delete(s.fitSince, group.Name)
	}
	decision.FitSince = s.fitSince
	for _, name := range slices.Sorted(maps.Keys(s.fitSince)) {
		at := s.fitSince[name].Add(after)
		decision.WakeAt = earliest(decision.WakeAt, at)
		decision.Message += fmt.Sprintf("; affinity group %q has enough clusters again, and is gone back to at %s if that stays so", name,
			at.UTC().Format(time.RFC3339))
	}
	return ended, decision
}

// keepHeld decides to move nothing, because no group fits. What an earlier policy placed is of no group then: the next decision must
// not take it for picked from one.
func (s *groupSearch) keepHeld() (*cycle, Decision) {
	reasons := make([]string, 0, len(s.groups))
	for i := range s.groups {
		reasons = append(reasons, s.reasonAgainst(i))
	}
	facts := s.facts
	facts.Bindings = slices.Clone(facts.Bindings)
	for i := range facts.Bindings {
		if binding := &facts.Bindings[i]; binding.PolicySnapshot != facts.PolicySnapshot {
			binding.Decision.AffinityGroup = ""
		}
	}
	c := newCycle(facts, s.fleet, nil)
	c.rounds = s.rounds
	return keepEverything(c, "no affinity group has enough clusters, so that nothing is moved: "+strings.Join(reasons, "; "))
}

// reasonAgainst returns how many clusters a group lacks, and what keeps its other clusters out.
func (s *groupSearch) reasonAgainst(i int) string {
	c := s.rounds[i]
	if c.picks.unmet != "" {
		return fmt.Sprintf("%q: %s", s.groups[i].Name, c.picks.unmet)
	}
	text := fmt.Sprintf("%q has %d of %d", s.groups[i].Name, s.foundIn(i), s.neededIn(i))
	if out := describeKeptOut(c, func(filter string) bool { return filter != clusteraffinity.GroupName }); out != "" {
		text += " (" + out + ")"
	}
	return text
}
