package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
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
	// byChoice marks clusters in whose stead others were chosen.
	byChoice = math.MaxInt - 1
	// byName marks clusters the user named; their reasons are worded already.
	byName = -1
	// byMark marks clusters that a user wants replaced.
	byMark = -2
)

func compareRejections(a, b rejection) int {
	if a.by == byRank && b.by == byRank {
		return cmp.Or(a.rank.Compare(b.rank), cmp.Compare(b.cluster, a.cluster))
	}
	return cmp.Compare(a.cluster, b.cluster)
}

func (r *rejection) asDecision() placementv1beta1.ClusterDecision {
	decision := placementv1beta1.ClusterDecision{ClusterName: r.cluster, ClusterScore: r.score, Reason: r.reason}
	switch r.by {
	case byName:
	case byRank:
		decision.Reason = fmt.Sprintf("Cluster %q does not score high enough (%s)", r.cluster, describeScore(r.rank))
	default:
		decision.Reason = unschedulable + r.reason
	}
	return decision
}

// rejections are clusters that were not picked, by what keeps them out; no more of each kind than can be reported.
type rejections map[int][]rejection

// addRejection takes note of a rejection, if it may be among those that are reported.
func (r rejections) addRejection(rejected rejection) {
	kind := r[rejected.by]
	if len(kind) == MaxUnselected {
		if compareRejections(rejected, kind[len(kind)-1]) > 0 {
			return
		}
		kind = kind[:len(kind)-1]
	}
	at, _ := slices.BinarySearchFunc(kind, rejected, compareRejections)
	r[rejected.by] = slices.Insert(kind, at, rejected)
}

// mostTelling returns those that tell most: from every kind of reason some, the kinds in turn,
// that which came closest to being picked first; within a kind the best ranked first, or
// in the order of names.
func (r rejections) mostTelling() []placementv1beta1.ClusterDecision {
	kinds := slices.Sorted(maps.Keys(r))
	slices.Reverse(kinds)
	var told []placementv1beta1.ClusterDecision
	for turn := range MaxUnselected {
		for _, kind := range kinds {
			if turn < len(r[kind]) && len(told) < MaxUnselected {
				told = append(told, r[kind][turn].asDecision())
			}
		}
	}
	return told
}
