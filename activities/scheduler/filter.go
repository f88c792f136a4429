package scheduler

import (
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// unschedulable begins the reason of every cluster that a filter keeps out.
const unschedulable = "ClusterUnschedulable, "

// runner runs the plug-ins of one cycle. Those whose answers depend on what else is
// picked are kept apart: they are asked again after every batch.
type runner struct {
	cycle   *framework.Cycle
	plugins []framework.Plugin
	batch   int

	filters      []framework.FilterPlugin
	batchFilters []framework.FilterPlugin
	scores       []framework.ScorePlugin
	batchScores  []framework.ScorePlugin
	reserves     []framework.ReservePlugin
	// scoring are the places in reserves of batchScores. Those of batchFilters are the first.
	scoring []int
	// chooser is nil if every cluster that fits is picked.
	chooser framework.ChoosePlugin
	// classes number the combinations of what reserves cannot tell apart; members are, by that number, the class of each of
	// reserves.
	classes map[[2]int]int
	members [][]int
}

// newRunner runs PostBatch and PreFilter. The error is for the user.
func newRunner(plugins profile, cycle *framework.Cycle) (*runner, error) {
	r := &runner{cycle: cycle, classes: map[[2]int]int{}, members: [][]int{nil}}
	for _, create := range plugins {
		plugin := create()
		r.plugins = append(r.plugins, plugin)
		if bound, ok := plugin.(framework.PostBatchPlugin); ok {
			r.limitBatch(bound.PostBatch(cycle))
		}
		if chooser, ok := plugin.(framework.ChoosePlugin); ok && len(cycle.Policy.SpreadConstraints) > 0 {
			r.chooser = chooser
		}
		filter, ok := plugin.(framework.FilterPlugin)
		if pre, asks := plugin.(framework.PreFilterPlugin); asks {
			skip, err := pre.PreFilter(cycle)
			if err != nil {
				return nil, err
			}
			ok = ok && !skip
		}
		reserve, again := plugin.(framework.ReservePlugin)
		switch {
		case !ok:
		case again:
			r.batchFilters = append(r.batchFilters, filter)
			r.reserves = append(r.reserves, reserve)
		default:
			r.filters = append(r.filters, filter)
		}
	}
	return r, nil
}

func (r *runner) limitBatch(bound int) {
	if bound > 0 && (r.batch == 0 || bound < r.batch) {
		r.batch = bound
	}
}

// nameFilter returns the name of the filter with a number that filterCluster or batchFilter has returned.
func (r *runner) nameFilter(by int) string {
	if by < len(r.filters) {
		return r.filters[by].Name()
	}
	return r.batchFilters[by-len(r.filters)].Name()
}

// filterCluster returns the first reason against a cluster, of those that hold for the whole
// cycle, and which filter it is from.
func (r *runner) filterCluster(cluster *clusterv1beta1.MemberCluster) (reason string, by int) {
	return firstReason(r.filters, r.cycle, cluster)
}

// batchFilter is filterCluster for a class, as classOf numbers it, and the reasons that hold until the next pick. They come after
// those that hold for the whole cycle.
func (r *runner) batchFilter(class int) (reason string, by int) {
	for i := range r.batchFilters {
		if reason := r.reserves[i].FilterClass(r.cycle, r.members[class][i]); reason != "" {
			return reason, len(r.filters) + i
		}
	}
	return "", len(r.filters)
}

// without returns what the plug-ins know if the placement does not hold a cluster.
func (r *runner) without(cluster string) *framework.Cycle {
	if r.cycle.Holds(cluster) {
		return r.cycle.Supposing(cluster, framework.Nothing)
	}
	return r.cycle
}

func firstReason(filters []framework.FilterPlugin, cycle *framework.Cycle, cluster *clusterv1beta1.MemberCluster) (string, int) {
	for i, filter := range filters {
		if reason := filter.Filter(cycle, cluster); reason != "" {
			return reason, i
		}
	}
	return "", 0
}

// classOf is equal for clusters that no plug-in tells apart from batch to batch.
func (r *runner) classOf(cluster *clusterv1beta1.MemberCluster) int {
	class := 0
	for _, reserve := range r.reserves {
		member := reserve.Class(cluster)
		pair := [2]int{class, member}
		known, ok := r.classes[pair]
		if !ok {
			known = len(r.members)
			r.classes[pair] = known
			r.members = append(r.members, append(slices.Clone(r.members[class]), member))
		}
		class = known
	}
	return class
}

// reserveCluster tells that a cluster has been picked.
func (r *runner) reserveCluster(cluster *clusterv1beta1.MemberCluster) {
	for _, reserve := range r.reserves {
		reserve.Reserve(r.cycle, cluster)
	}
}

// filtered are the clusters that pass the filters, and what is to be said of the others.
type filtered struct {
	passed   []*clusterv1beta1.MemberCluster
	rejected rejections
	// keptOut counts the others, by filter.
	keptOut map[int]int
	// released are the bindings that an earlier policy has made for them.
	released []string
}

// filterClusters asks the filters about the fleet, except for clusters that are decided already.
func filterClusters(run *runner, c *cycle, isDecided func(cluster string) bool) filtered {
	found := filtered{rejected: rejections{}, keptOut: map[int]int{}}
	for i, cluster := range c.fleet.members {
		if isDecided(cluster.Name) {
			continue
		}
		if c.passesOver(cluster.Name) {
			continue
		}
		if reason := c.facts.Replacing.yields[cluster.Name]; reason != "" {
			if binding, ok := c.held.obsolete[cluster.Name]; ok {
				found.released = append(found.released, binding.Name)
			}
			found.rejected.addRejection(rejection{cluster: cluster.Name, by: byMark, reason: reason})
			continue
		}
		reason, by := run.filterCluster(cluster)
		if reason == "" {
			if found.passed == nil {
				// A group that no cluster is in takes no memory: many may be tried before one fits.
				found.passed = make([]*clusterv1beta1.MemberCluster, 0, len(c.fleet.members)-i)
			}
			found.passed = append(found.passed, cluster)
			continue
		}
		if binding, ok := c.held.obsolete[cluster.Name]; ok {
			found.released = append(found.released, binding.Name)
			// What the placement has there no longer speaks for it.
			if now, filter := firstReason(run.filters, run.without(cluster.Name), cluster); now != "" {
				reason = now
				by = filter
			}
		}
		found.keptOut[by]++
		found.rejected.addRejection(rejection{cluster: cluster.Name, by: by, reason: reason})
	}
	return found
}
