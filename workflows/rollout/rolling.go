package rollout

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State of a cluster in a placement, as its binding says.
type State string

// The states of a binding.
const (
	Scheduled   State = "Scheduled"   // picked, nothing written yet
	Bound       State = "Bound"       // written
	Unscheduled State = "Unscheduled" // no longer picked, still written
)

// Op is what a step does to one cluster.
type Op string

// The operations of a rolling update.
const (
	Update Op = "update" // in place, to the target revision
	Add    Op = "add"    // first write to a newly picked cluster
	Remove Op = "remove" // take the resources away
)

// Cluster is what is known of one cluster when deciding.
type Cluster struct {
	Name  string
	State State
	// Deleting says that its binding is on the way out. It may still hold
	// resources, and never counts as available.
	Deleting bool
	// Placed says that the cluster holds, or may hold, resources.
	Placed bool
	// Current says that the binding is at the target revision.
	Current bool
	// Available says that all its Works were seen available at the revision of
	// its binding, and that no recorded change of it is still under way.
	Available bool
	// Failed says that the placement on it is known to be broken.
	Failed bool
	// ReadyAt is when a cluster whose objects cannot be tracked will count as
	// available; zero otherwise.
	ReadyAt time.Time
}

// Limits of a rolling update, resolved to numbers of clusters.
type Limits struct {
	// Target is the number of clusters the policy asks for.
	Target int
	// MaxUnavailable and MaxSurge as in the rollout strategy.
	MaxUnavailable int
	MaxSurge       int
}

// Step is one decided change.
type Step struct {
	Cluster string
	Op      Op
}

// Plan is what to write now and what is left for later.
type Plan struct {
	Steps []Step
	// Blocked counts clusters that wait for the limits.
	Blocked int
	// WakeAt is the next instant at which time alone changes the plan.
	WakeAt time.Time
	// Settled says that nothing is left to write.
	Settled bool
}

// Next decides the next batch under the limits (the promise I1 of the
// product): no available cluster is taken away when fewer than Target −
// MaxUnavailable would remain, and no more than Target + MaxSurge clusters hold
// resources. Rewriting a cluster that is unavailable anyway, and first
// placements, are not bounded by MaxUnavailable. Broken clusters come first, so
// that a fix reaches them before it touches a healthy one.
func Next(clusters []Cluster, limits Limits) Plan {
	ordered := slices.Clone(clusters)
	slices.SortFunc(ordered, func(a, b Cluster) int {
		if a.Failed != b.Failed {
			if a.Failed {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	p := planner{limits: limits}
	for _, c := range ordered {
		p.count(c)
	}
	p.free(ordered)
	p.takeAway(ordered)
	p.add(ordered)
	p.plan.Settled = len(p.plan.Steps) == 0 && p.plan.Blocked == 0
	return p.plan
}

// planner keeps the two accounts of a rolling update.
type planner struct {
	limits    Limits
	available int
	placed    int
	plan      Plan
}

func (p *planner) count(c Cluster) {
	if c.Available && !c.Deleting {
		p.available++
	}
	if c.Placed || c.Deleting {
		p.placed++
	}
	if !c.ReadyAt.IsZero() && (p.plan.WakeAt.IsZero() || c.ReadyAt.Before(p.plan.WakeAt)) {
		p.plan.WakeAt = c.ReadyAt
	}
}

// free plans what costs no availability.
func (p *planner) free(clusters []Cluster) {
	for _, c := range clusters {
		if !c.Available && !c.Deleting && wantsTakeAway(c) {
			p.plan.Steps = append(p.plan.Steps, Step{c.Name, takeAwayOp(c)})
		}
	}
}

// takeAway plans updates in place and removals of available clusters, removals
// first, as far as the budget goes.
func (p *planner) takeAway(clusters []Cluster) {
	budget := p.available - (p.limits.Target - p.limits.MaxUnavailable)
	for _, op := range []Op{Remove, Update} {
		for _, c := range clusters {
			if !c.Available || c.Deleting || !wantsTakeAway(c) || takeAwayOp(c) != op {
				continue
			}
			if budget <= 0 {
				p.plan.Blocked++
				continue
			}
			budget--
			p.plan.Steps = append(p.plan.Steps, Step{c.Name, op})
		}
	}
}

// add plans first writes as far as the surge goes.
func (p *planner) add(clusters []Cluster) {
	room := p.limits.Target + p.limits.MaxSurge - p.placed
	for _, c := range clusters {
		if c.State != Scheduled || c.Deleting {
			continue
		}
		if room <= 0 {
			p.plan.Blocked++
			continue
		}
		room--
		p.plan.Steps = append(p.plan.Steps, Step{c.Name, Add})
	}
}

// wantsTakeAway says that the cluster must be rewritten or removed.
func wantsTakeAway(c Cluster) bool {
	return c.State == Unscheduled || c.State == Bound && !c.Current
}

func takeAwayOp(c Cluster) Op {
	if c.State == Unscheduled {
		return Remove
	}
	return Update
}

// Resolve turns a limit such as 3 or "25%" into a number of clusters of total;
// percentages are rounded up (API reference, RollingUpdateConfig).
func Resolve(value string, total int) (int, error) {
	percent, isPercent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(percent)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("limit %q is neither a number of clusters nor a percentage", value)
	}
	if isPercent {
		return int(math.Ceil(float64(n) * float64(total) / 100)), nil
	}
	return n, nil
}
