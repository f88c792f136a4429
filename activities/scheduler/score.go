package scheduler

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

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

// scores are those in decisions. Most clusters of a fleet have the same few, so equal
// ones are made once.
type scores map[framework.Score]*placementv1beta1.ClusterScore

func (s scores) shareScore(score framework.Score) *placementv1beta1.ClusterScore {
	score.Placed = 0 // is not told of
	known, ok := s[score]
	if !ok {
		affinity := score.Affinity
		topology := score.Topology
		known = &placementv1beta1.ClusterScore{AffinityScore: &affinity, TopologySpreadScore: &topology}
		if taints := score.Taints; taints != 0 {
			known.TaintScore = &taints
		}
		s[score] = known
	}
	return known
}

// wordings are how the reason of a picked cluster ends, by its score in scores.
type wordings map[*placementv1beta1.ClusterScore]string

func (w wordings) endingFor(score *placementv1beta1.ClusterScore) string {
	known, ok := w[score]
	if !ok {
		known = ": picked by scheduling policy"
		if score != nil {
			known = fmt.Sprintf(" (%s)%s", describeScore(scoreOf(score)), known)
		}
		w[score] = known
	}
	return known
}

// scoreOf reads a score from a decision.
func scoreOf(s *placementv1beta1.ClusterScore) framework.Score {
	if s == nil {
		return framework.Score{}
	}
	return framework.Score{Affinity: ptr.Deref(s.AffinityScore, 0), Topology: ptr.Deref(s.TopologySpreadScore, 0),
		Taints: ptr.Deref(s.TaintScore, 0)}
}

// describeScore words a score; of taints only if there are some.
func describeScore(score framework.Score) string {
	text := fmt.Sprintf("affinity score: %d, topology spread score: %d", score.Affinity, score.Topology)
	if score.Taints != 0 {
		text += fmt.Sprintf(", taint score: %d", score.Taints)
	}
	return text
}
