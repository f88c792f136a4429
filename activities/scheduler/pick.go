package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// picks are the clusters that are picked, and those that are not.
type picks struct {
	// run has the plug-ins as they were asked last; nil if the policy cannot be followed.
	run *runner
	// wanted is how many clusters satisfy the policy, amiss how many of those picked
	// do not count.
	wanted, amiss int
	// selected are the clusters, by name: those in create have no binding yet, those in keep have.
	selected, create []placementv1beta1.ClusterDecision
	keep             []Kept
	// newlyWithheld are the bindings in keep of clusters that get no replicas any more.
	newlyWithheld []string
	// wakeAt is when some get replicas again; zero if that is not known.
	wakeAt time.Time
	// unschedule are the bindings that are let go, by name.
	unschedule []string
	rejected   rejections
	// keptOut counts the clusters that a filter keeps out, by filter.
	keptOut map[int]int
	// unmet says why there is no choice of clusters that the policy allows; empty if there is one, or
	// none is needed. unchosen says why clusters are not chosen, by name.
	unmet    string
	unchosen map[string]string
	// marked are the clusters of a PickN placement that a user wants replaced: they are picked only if
	// no other can be.
	marked map[string]Binding
}

// pickClusters picks as the policy says. The error is for the user.
func pickClusters(c *cycle) (picks, error) {
	pick, ok := map[placementv1beta1.PlacementType]func(*cycle) (picks, error){
		placementv1beta1.PickAllPlacementType:   pickAll,
		placementv1beta1.PickNPlacementType:     pickN,
		placementv1beta1.PickFixedPlacementType: pickFixed,
	}[typeOf(c.facts.Policy)]
	if !ok {
		return picks{}, fmt.Errorf("the scheduling policy's placementType %q is none of PickAll, PickN, PickFixed", c.facts.Policy.PlacementType)
	}
	return pick(c)
}

// picking makes the picks of a cycle.
type picking struct {
	cycle   *cycle
	picks   picks
	scores  scores
	wording wordings
}

// newPicking begins with what the filters have said.
func newPicking(c *cycle, run *runner, found filtered) *picking {
	return &picking{cycle: c, scores: scores{}, wording: wordings{}, picks: picks{
		run: run, rejected: found.rejected, keptOut: found.keptOut, unschedule: slices.Concat(c.held.released, found.released),
	}}
}

// finish brings the picks into a stable order.
func (p *picking) finish() picks {
	byCluster := func(a, b placementv1beta1.ClusterDecision) int { return cmp.Compare(a.ClusterName, b.ClusterName) }
	slices.SortFunc(p.picks.selected, byCluster)
	slices.SortFunc(p.picks.create, byCluster)
	slices.SortFunc(p.picks.keep, func(a, b Kept) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(p.picks.newlyWithheld)
	slices.Sort(p.picks.unschedule)
	return p.picks
}

func (p *picking) releaseBinding(binding Binding) {
	if binding.holdsCluster() {
		p.picks.unschedule = append(p.picks.unschedule, binding.Name)
	}
}

// keepBinding leaves a binding in place, in the state it has.
func (p *picking) keepBinding(binding Binding, decision placementv1beta1.ClusterDecision) {
	told := decision
	told.Assignments = nil // they are told on bindings only
	p.picks.selected = append(p.picks.selected, told)
	withheld := p.cycle.leaves.withheld[binding.Name]
	decision.Withheld = withheld.replicas
	p.picks.wakeAt = earliest(p.picks.wakeAt, withheld.until)
	if withheld.anew {
		p.picks.newlyWithheld = append(p.picks.newlyWithheld, binding.Name)
	}
	p.picks.keep = append(p.picks.keep, Kept{Name: binding.Name, State: binding.State, Decision: decision})
	if p.cycle.leaves.failing[binding.Cluster] != "" && p.cycle.facts.replacesClusters() {
		p.picks.amiss++
	}
}

// pickCluster selects a cluster: it keeps the binding there is, gives an Unscheduled one
// its state back, or asks for a new one.
func (p *picking) pickCluster(cluster string, score *placementv1beta1.ClusterScore) {
	decision := placementv1beta1.ClusterDecision{
		ClusterName: cluster, Selected: true, ClusterScore: score,
		Reason: "Successfully scheduled resources for placement in \"" + cluster + "\"" + p.wording.endingFor(score),
	}
	if group := p.cycle.groupOf(cluster); group != "" {
		decision.AffinityGroup = group
		decision.Reason += ", from affinity group \"" + group + "\""
	}
	if binding, ok := p.cycle.held.obsolete[cluster]; ok {
		p.keepBinding(binding, decision)
		return
	}
	if binding, ok := p.cycle.held.unscheduled[cluster]; ok {
		binding.State = binding.Previous
		if binding.State != placementv1beta1.BindingStateBound {
			binding.State = placementv1beta1.BindingStateScheduled
		}
		p.keepBinding(binding, decision)
		return
	}
	p.picks.selected = append(p.picks.selected, decision)
	p.picks.create = append(p.picks.create, decision)
}
