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

// preScore has to come before any score is asked for. The error is for the user.
func (r *runner) preScore() error {
	for _, plugin := range r.plugins {
		score, ok := plugin.(framework.ScorePlugin)
		if pre, asks := plugin.(framework.PreScorePlugin); asks {
			skip, err := pre.PreScore(r.cycle)
			if err != nil {
				return err
			}
			ok = ok && !skip
		}
		reserve, again := plugin.(framework.ReservePlugin)
		switch {
		case !ok:
		case again:
			if !slices.Contains(r.reserves, reserve) {
				r.reserves = append(r.reserves, reserve)
			}
			r.batchScores = append(r.batchScores, score)
			r.scoring = append(r.scoring, slices.Index(r.reserves, reserve))
		default:
			r.scores = append(r.scores, score)
		}
	}
	return nil
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

func firstReason(filters []framework.FilterPlugin, cycle *framework.Cycle, cluster *clusterv1beta1.MemberCluster) (string, int) {
	for i, filter := range filters {
		if reason := filter.Filter(cycle, cluster); reason != "" {
			return reason, i
		}
	}
	return "", 0
}

// scoreCluster returns the part of a cluster's score that holds for the whole cycle.
func (r *runner) scoreCluster(cluster *clusterv1beta1.MemberCluster) framework.Score {
	return sumScores(r.scores, r.cycle, cluster)
}

// batchScore returns the part of the score of a class, as classOf numbers it, that holds until the next pick.
func (r *runner) batchScore(class int) framework.Score {
	var total framework.Score
	for _, i := range r.scoring {
		total = total.Add(r.reserves[i].ScoreClass(r.cycle, r.members[class][i]))
	}
	return total
}

func sumScores(scores []framework.ScorePlugin, cycle *framework.Cycle, cluster *clusterv1beta1.MemberCluster) framework.Score {
	var total framework.Score
	for _, score := range scores {
		total = total.Add(score.Score(cycle, cluster))
	}
	return total
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
