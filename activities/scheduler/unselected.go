package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// rejection is a cluster that was not picked, and why.
type rejection struct {
	cluster string
	// by is the filter that keeps it out; or byRank, or byName.
	by     int
	reason string
	// rank and score are those of a cluster that others were better than.
	rank  framework.Score
	score *placementv1beta1.ClusterScore
}

const (
	// byRank marks clusters that could have been picked.
	byRank = math.MaxInt
	// byName marks clusters the user named; their reasons are worded already.
	byName = -1
)

// reject reports a cluster that a filter keeps out, and lets go of what it got under an
// earlier policy.
func (c *cycle) reject(cluster *clusterv1beta1.MemberCluster, reason string, by int) {
	if _, ok := c.obsolete[cluster.Name]; ok {
		c.release(cluster.Name)
		// What the placement has there no longer speaks for it.
		if now, filter := c.run.filter(cluster); now != "" {
			reason, by = now, filter
		}
	}
	c.rejected = append(c.rejected, rejection{cluster: cluster.Name, by: by, reason: reason})
}

func compareRejections(a, b rejection) int {
	if a.by == byRank && b.by == byRank {
		return cmp.Or(a.rank.Compare(b.rank), cmp.Compare(b.cluster, a.cluster))
	}
	return cmp.Compare(a.cluster, b.cluster)
}

func (r *rejection) decision() placementv1beta1.ClusterDecision {
	decision := placementv1beta1.ClusterDecision{ClusterName: r.cluster, ClusterScore: r.score, Reason: r.reason}
	switch r.by {
	case byName:
	case byRank:
		decision.Reason = fmt.Sprintf("Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)",
			r.cluster, r.rank.Affinity, r.rank.Topology)
	default:
		decision.Reason = unschedulable + r.reason
	}
	return decision
}

// rejections are the clusters that were not picked, in no order.
type rejections []rejection

// telling are those that tell most: from every kind of reason some, the kinds in turn,
// that which came closest to being picked first; within a kind the best ranked first, or
// in the order of names.
func (r rejections) telling(most int) []placementv1beta1.ClusterDecision {
	kinds := map[int]*queue[rejection]{}
	for _, rejection := range r {
		kind, ok := kinds[rejection.by]
		if !ok {
			kind = newRejectionQueue()
			kinds[rejection.by] = kind
		}
		kind.items = append(kind.items, rejection)
	}
	inTurn := make([]*queue[rejection], 0, len(kinds))
	for _, by := range slices.Backward(sortedKeys(kinds)) {
		kinds[by].order()
		inTurn = append(inTurn, kinds[by])
	}
	var told []placementv1beta1.ClusterDecision
	for most = min(most, len(r)); len(told) < most; {
		for _, kind := range inTurn {
			if len(kind.items) > 0 && len(told) < most {
				next := kind.pop()
				told = append(told, next.decision())
			}
		}
	}
	return told
}

func newRejectionQueue() *queue[rejection] {
	return &queue[rejection]{compare: compareRejections}
}

func sortedKeys(kinds map[int]*queue[rejection]) []int {
	keys := make([]int, 0, len(kinds))
	for key := range kinds {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
