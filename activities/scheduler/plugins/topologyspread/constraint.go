package topologyspread

import (
	"fmt"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// effect is what picking a cluster would do to the skew, as the score it earns.
type effect int32

const (
	evens      effect = 1
	none       effect = 0
	unbalances effect = -1
	// violates is worse than unbalances: the skew would be larger than allowed.
	violates effect = -1000
)

// constraint is one constraint and the present state of its groups.
type constraint struct {
	key     string
	maxSkew int
	// strict constraints have to hold; the others only rank.
	strict bool
	// forbidden is what is said of clusters that a strict constraint keeps out: worded
	// once, as it is said of many groups after every pick.
	forbidden string
	// groups number the values of the label; placed are the picked clusters in each.
	groups map[string]int
	placed []int
	// least and most are the smallest and the largest number in placed; atLeast and atMost are
	// how many groups have these.
	least, most, atLeast, atMost int
}

func isStrict(spec *placementv1beta1.TopologySpreadConstraint) bool {
	return spec.WhenUnsatisfiable != placementv1beta1.ScheduleAnyway
}

func newConstraint(spec *placementv1beta1.TopologySpreadConstraint, c *framework.Cycle) *constraint {
	s := &constraint{key: spec.TopologyKey, maxSkew: 1, strict: isStrict(spec), groups: map[string]int{}}
	if spec.MaxSkew != nil {
		s.maxSkew = int(*spec.MaxSkew)
	}
	s.forbidden = fmt.Sprintf("violated doNotSchedule topology spread constraint %q (max skew %d)", s.key, s.maxSkew)
	for _, cluster := range c.Fleet {
		value, ok := cluster.Labels[s.key]
		if !ok {
			continue
		}
		group, known := s.groups[value]
		if !known {
			group = len(s.placed)
			s.groups[value] = group
			s.placed = append(s.placed, 0)
		}
		if c.HoldOn(cluster.Name) == framework.Picked {
			s.placed[group]++
		}
	}
	s.weighGroups()
	return s
}

// groupOf returns the number of a cluster's group; -1 if it is in none.
func (s *constraint) groupOf(cluster *clusterv1beta1.MemberCluster) int {
	value, ok := cluster.Labels[s.key]
	if !ok {
		return -1
	}
	return s.groups[value]
}

// countPick counts a picked cluster.
func (s *constraint) countPick(cluster *clusterv1beta1.MemberCluster) { s.addTo(s.groupOf(cluster), 1) }

// countDeparture no longer counts a picked cluster.
func (s *constraint) countDeparture(cluster *clusterv1beta1.MemberCluster) {
	s.addTo(s.groupOf(cluster), -1)
}

func (s *constraint) addTo(group, clusters int) {
	if group >= 0 {
		s.placed[group] += clusters
		s.weighGroups()
	}
}

func (s *constraint) weighGroups() {
	if len(s.placed) == 0 {
		return
	}
	s.least = slices.Min(s.placed)
	s.most = slices.Max(s.placed)
	s.atLeast = 0
	s.atMost = 0
	for _, placed := range s.placed {
		if placed == s.least {
			s.atLeast++
		}
		if placed == s.most {
			s.atMost++
		}
	}
}

// effectOfPick works out what one more pick in a group would do.
func (s *constraint) effectOfPick(group int) effect {
	if group < 0 || len(s.placed) < 2 {
		return none // it is in no group, or there is nothing to spread over
	}
	switch placed := s.placed[group]; {
	case placed == s.most && s.most+1-s.least > s.maxSkew:
		return violates
	case placed == s.most:
		return unbalances
	case placed == s.least && s.atLeast == 1:
		return evens
	}
	return none
}

// lossOf works out what remains if a cluster of a group goes.
func (s *constraint) lossOf(group int) framework.Loss {
	least := s.least
	most := s.most
	loss := framework.Loss{}
	if group >= 0 {
		placed := s.placed[group]
		loss.Crowd = placed
		least = min(least, placed-1)
		if placed == most && s.atMost == 1 {
			most--
		}
	}
	if len(s.placed) >= 2 { // else there is nothing to spread over
		loss.Skew = most - least
	}
	if s.strict {
		loss.Beyond = max(0, loss.Skew-s.maxSkew)
	}
	return loss
}

func (s *constraint) describeGroup(cluster *clusterv1beta1.MemberCluster) string {
	value, ok := cluster.Labels[s.key]
	switch {
	case !ok:
		return fmt.Sprintf("%s: the cluster does not have this label, so the constraint does not concern it", s.key)
	case len(s.placed) < 2:
		return fmt.Sprintf("%s: all clusters are in one group, so the constraint has no effect", s.key)
	}
	now := fmt.Sprintf("%s: %d picked in group %q, between %d and %d in each group, max skew %d",
		s.key, s.placed[s.groups[value]], value, s.least, s.most, s.maxSkew)
	switch s.effectOfPick(s.groupOf(cluster)) {
	case evens:
		return now + "; picking it evens the spread (1)"
	case unbalances:
		return now + "; picking it makes the spread more uneven (-1)"
	case violates:
		if s.strict {
			return now + "; picking it would exceed the max skew, which is forbidden"
		}
		return now + "; picking it exceeds the max skew (-1000)"
	}
	return now + "; picking it leaves the skew as it is (0)"
}
